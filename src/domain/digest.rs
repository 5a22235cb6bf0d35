//! Digests of section 6: over a canonical form of a plan, keyed, and over the plans of a wave. What they
//! leave out (time, order, ids, prior state, marks) never moves them; everything else does.

use super::ids::{Digest, RootKey};
use super::plan::PlanError;
use super::rollout::Tool;

/// What a plan's digest binds beside the plan's JSON.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    /// Root and workspace.
    pub root: &'a RootKey,
    /// Tool and version.
    pub tool: &'a Tool,
    /// The source digest.
    pub source: &'a str,
    /// Extra arguments of the tool.
    pub args: &'a [String],
}

/// The digest of one plan: HMAC-SHA256 with the installation's key over the canonical form.
pub fn of_plan(json: &[u8], bound: &Bound<'_>, key: &[u8]) -> Result<Digest, PlanError> {
    let _ = (json, bound, key);
    unimplemented!()
}

/// The set digest of a wave: SHA-256 over its sorted (root, digest) pairs.
pub fn of_set(pairs: &[(RootKey, Digest)]) -> Digest {
    let _ = pairs;
    unimplemented!()
}
