//! Approvals and reviews as values, and who may give one. Which wave they open is the gate's business.

use serde::{Deserialize, Serialize};

use super::ids::{Digest, Login, RootKey, Timestamp};

/// One approval of one wave's set digest. It counts for that digest and for no other, ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// `wave-N`, 1-based.
    pub wave: usize,
    /// The set digest that was shown.
    pub digest: Digest,
    /// Who gave it.
    pub by: Login,
    /// When.
    pub at: Timestamp,
    /// By what means.
    pub source: Source,
    /// Addresses named by `confirm` lines.
    pub confirmed: Vec<Confirmed>,
}

/// An address that was named in an approval.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Confirmed {
    /// The root, when the line names it.
    pub root: Option<RootKey>,
    /// The address.
    pub address: String,
}

/// By what means an approval was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A comment, by its id.
    Comment(u64),
    /// An approving review of the head, by its id.
    Review(u64),
}

/// The newest review verdict of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// The forge's id.
    pub id: u64,
    /// Whose.
    pub by: Login,
    /// What it says.
    pub verdict: Verdict,
    /// The head it was given on.
    pub head: super::ids::Sha,
    /// When.
    pub at: Timestamp,
}

/// What a review says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Approved.
    Approved,
    /// Changes requested: this person's approvals do not count while it stands.
    ChangesRequested,
    /// Only a comment; changes no verdict.
    Commented,
    /// Taken back.
    Dismissed,
}

/// What the forge lets a person do with the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Push.
    Write,
    /// Everything.
    Admin,
}
