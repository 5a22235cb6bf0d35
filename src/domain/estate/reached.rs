//! stub
use super::{Edge, Estate};
use crate::domain::ids::RootKey;
use crate::domain::tree::Listing;
use serde::{Deserialize, Serialize};
/// Why a root is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A changed path lies in its directory.
    Changed(String),
    /// A changed path lies in a local module that it calls.
    Module {
        /// The module's directory.
        dir: String,
        /// The path.
        path: String,
    },
    /// It reads a changed file.
    File(String),
    /// It reads the state of a reached root.
    Reads(RootKey),
    /// `waves.after` puts it after a reached root.
    After(RootKey),
    /// Somebody named it.
    Asked,
}
/// What a set of changed paths reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Reached roots by key.
    pub roots: Vec<ReachedRoot>,
    /// Their dependency layers, canary first; each reached root once.
    pub waves: Vec<Vec<RootKey>>,
    /// Edges between reached roots.
    pub edges: Vec<Edge>,
}
/// A reached root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedRoot {
    /// Which.
    pub root: RootKey,
    /// Why, sorted, without repeats.
    pub reasons: Vec<Reason>,
}
impl Estate {
    /// What these changed paths reach. An error is a cycle made by `waves.after`, with its path.
    pub fn reached(
        &self,
        changed: &[String],
        config: &crate::domain::config::RepoConfig,
    ) -> Result<Reached, Vec<RootKey>> {
        let _ = (changed, config);
        unimplemented!()
    }
    /// The source digest of a root: over path, kind and blob of every file of its directory (not of roots below it),
    /// its local modules and the files it reads; with what it covers.
    pub fn source_of(&self, root: &RootKey, listing: &Listing) -> (String, Vec<String>) {
        let _ = (root, listing);
        unimplemented!()
    }
}
/// stub
pub fn deleted(base: &Estate, head: &Estate) -> Vec<super::Root> {
    let _ = (base, head);
    unimplemented!()
}
