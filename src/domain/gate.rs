//! The gate of a wave: from policy, plans and approvals to a verdict with its reasons. Only this file
//! makes a [`Permit`], and nothing is applied without one.

use super::approval::{Approval, Confirmed, Review};
use super::config::{ApprovalSource, GatePolicy};
use super::ids::{Digest, Login, RootKey, Sha, Timestamp};
use super::pull::AppliedDigest;

/// Everything that decides about one wave.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// `wave-N`, 1-based.
    pub wave: usize,
    /// The digest that it plans now; `None` when nothing changes.
    pub digest: Option<&'a Digest>,
    /// The strictest policy of its roots.
    pub policy: GatePolicy,
    /// Addresses that would be deleted or replaced.
    pub destroyed: &'a [(RootKey, String)],
    /// Approvals by comment, oldest first.
    pub approvals: &'a [Approval],
    /// The newest verdict of each reviewer.
    pub reviews: &'a [Review],
    /// Digests that an apply used.
    pub applied: &'a [AppliedDigest],
    /// The rules, read from the base commit.
    pub rules: &'a Rules,
    /// The head: a review of another head approves nothing.
    pub head: &'a Sha,
    /// When the digest was first shown; a review before it does not count. `None`: the note shows no digest for
    /// the wave (it plans again after another), so that no review approves it.
    pub shown_at: Option<Timestamp>,
}

/// Who may approve, how many it takes, and what must be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What counts.
    pub source: ApprovalSource,
    /// Different people needed.
    pub count: usize,
    /// Whose approval never counts, with `four_eyes`: the author and committers.
    pub barred: Vec<Login>,
    /// When the settings name approvers, only these; `None`: everyone with write access.
    pub named: Option<Vec<Login>>,
    /// `confirm_destructive`.
    pub confirm_destructive: bool,
}

/// Proof that the gate let a wave pass with exactly this digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    wave: usize,
    digest: Digest,
    by: Vec<Login>,
}

impl Permit {
    /// `wave-N`.
    pub fn wave(&self) -> usize {
        self.wave
    }
    /// The set digest that may be applied.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
    /// Whose approvals are used; empty when the policy asks for none.
    pub fn by(&self) -> &[Login] {
        &self.by
    }
}

/// What the gate says, and the exit code of the command line that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to apply.
    Nothing,
    /// Apply (exit 0).
    Open(Permit),
    /// Waits (exit 3): for what.
    Held(Vec<Reason>),
    /// Applies nothing (exit 4): its plans changed after this approval, which no run applied.
    Refused {
        /// The approval's digest.
        approved: Digest,
        /// Who gave it.
        by: Login,
    },
}

/// What a wave waits for, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// More approvals.
    Missing {
        /// How many more people.
        more: usize,
        /// Who may; `None`: anyone with write access.
        named: Option<Vec<Login>>,
        /// The author and committers may not.
        four_eyes: bool,
    },
    /// Addresses that no counted approval names.
    Unconfirmed(Vec<(RootKey, String)>),
    /// Somebody who approved asks for changes now.
    ChangesRequested(Login),
}

/// Decides about a wave (the tables of section 5).
pub fn decide(question: &Question<'_>) -> Verdict {
    let _ = (question, Confirmed { root: None, address: String::new() });
    unimplemented!()
}

/// Why a person may not approve; `None`: they may.
pub fn bars(rules: &Rules, by: &Login, permission: super::approval::Permission) -> Option<Bar> {
    let _ = (rules, by, permission);
    unimplemented!()
}

/// Why a person may not approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// No write access.
    NoWriteAccess,
    /// The author or a committer, with `four_eyes`.
    FourEyes,
    /// The settings name others.
    NotNamed,
}
