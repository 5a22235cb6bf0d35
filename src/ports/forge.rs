//! A forge (GitHub, GitLab, Forgejo) as the flows need it. Writes are made so that a repeat is
//! harmless: they take the receipt of the earlier write, or a marker by which it can be found.

use async_trait::async_trait;
use http::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::domain::approval::{Permission, Review};
use crate::domain::effect::{CheckReport, Reaction};
use crate::domain::event::Incoming;
use crate::domain::ids::{Login, PullKey, RepoKey, Sha};
use crate::domain::pull::Seen;

/// A repository as a call needs it: the stable key, and the name for the URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RepoRef {
    /// The stable key.
    pub key: RepoKey,
    /// `owner/name`.
    pub name: String,
}

/// A pull as a call needs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PullRef {
    /// Its repository.
    pub repo: RepoRef,
    /// Its number.
    pub number: u64,
}

impl PullRef {
    /// The key.
    pub fn key(&self) -> PullKey {
        PullKey { repo: self.repo.key.clone(), number: self.number }
    }
}

/// What a write leaves to find it again: a comment id, a check run id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Receipt(pub String);

/// How git reaches a repository: never stored, never logged.
#[derive(Clone, Debug)]
pub struct GitAccess {
    /// The clone URL, without credentials.
    pub url: String,
    /// The value of an `Authorization` header, when one is needed.
    pub authorization: Option<secrecy::SecretString>,
}

/// Why a call failed, by what the caller can do.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// It is not there, or not visible to us. Right after an event it may still appear.
    #[error("not found: {0}")]
    NotFound(String),
    /// We may not. Retrying helps nobody.
    #[error("the forge refuses: {0}")]
    Denied(String),
    /// The state of the thing does not allow it (a merge that is not possible, say).
    #[error("conflict: {0}")]
    Conflict(String),
    /// What we sent is wrong for the forge (422).
    #[error("the forge rejects what was sent: {0}")]
    Invalid(String),
    /// The body is longer than the forge takes; a shorter one would do.
    #[error("the forge finds it too long: {0}")]
    TooLong(String),
    /// The installation is suspended: later again, until somebody lifts it.
    #[error("the installation is suspended: {0}")]
    Suspended(String),
    /// Wait this long; the limit was reached.
    #[error("rate limited for {wait_ms} ms")]
    RateLimited {
        /// Milliseconds to wait, from the forge's own headers.
        wait_ms: i64,
    },
    /// It answered, and not as its API does: what stands at the address is something else, or changed. The write may have happened.
    #[error(
        "the forge's answer cannot be read: {0}; what answers at the forge's API address may be a proxy, or another API"
    )]
    Unreadable(String),
    /// It did not answer, or with a 5xx: later again. The write may have happened.
    #[error("the forge is unavailable: {0}")]
    Unavailable(String),
}

/// Why a delivery is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// A needed header is missing: 400.
    #[error("the header `{0}` is missing")]
    Missing(&'static str),
    /// The signature does not fit the body: 401.
    #[error("the signature does not fit the body")]
    Forged,
    /// The body is no JSON: 400.
    #[error("the body is no JSON: {0}")]
    Malformed(String),
}

/// A delivery that passed its signature check; only [`Hooks::verify`] makes one.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The forge's delivery id, unique.
    pub id: String,
    /// Its event name, for the inbox.
    pub event: String,
    /// What it says, as far as we read it.
    pub incoming: Vec<Incoming>,
    /// Why nothing was read from it, when it has a shape or event that we do not know.
    pub ignored: Option<String>,
}

/// Turns raw webhooks into deliveries.
pub trait Hooks: Send + Sync {
    /// Checks the signature over the raw body in constant time, then reads it. Never fails on a shape that we do not know.
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Delivery, HookError>;
}

/// The calls.
#[async_trait]
pub trait Forge: Send + Sync {
    /// A pull as it is now.
    async fn pull(&self, pull: &PullRef) -> Result<Seen, ForgeError>;
    /// All open pulls of a repository.
    async fn open_pulls(&self, repo: &RepoRef) -> Result<Vec<(u64, Seen)>, ForgeError>;
    /// All repositories that we can see.
    async fn repos(&self) -> Result<Vec<RepoRef>, ForgeError>;
    /// The repository of that name.
    async fn repo(&self, name: &str) -> Result<RepoRef, ForgeError>;
    /// What a person may do with the repository.
    async fn permission(&self, repo: &RepoRef, login: &Login) -> Result<Permission, ForgeError>;
    /// Each reviewer's newest verdict.
    async fn reviews(&self, pull: &PullRef) -> Result<Vec<Review>, ForgeError>;
    /// Authors and committers of the pull's commits that are known to the forge.
    async fn committers(&self, pull: &PullRef) -> Result<Vec<Login>, ForgeError>;
    /// Members of a team `org/slug`; [`ForgeError::NotFound`] when there is no such team.
    async fn team(&self, org: &str, slug: &str) -> Result<Vec<Login>, ForgeError>;
    /// Comments by people on a pull, as incoming events, oldest first (for the sweep).
    async fn comments(&self, pull: &PullRef) -> Result<Vec<Incoming>, ForgeError>;
    /// Creates or updates a check of a head. `receipt` is what the last call for the same head and name gave.
    async fn put_check(
        &self,
        repo: &RepoRef,
        report: &CheckReport,
        receipt: Option<&Receipt>,
    ) -> Result<Receipt, ForgeError>;
    /// Creates or edits a comment. Without a receipt it first looks for our own comment that contains `marker`
    /// when `tried` says that an earlier create may have worked; `body` contains the marker.
    async fn put_comment(&self, pull: &PullRef, comment: &CommentDraft<'_>) -> Result<Receipt, ForgeError>;
    /// Reacts to a comment; again is harmless.
    async fn react(&self, pull: &PullRef, comment: u64, reaction: Reaction) -> Result<(), ForgeError>;
    /// Merges if the head still is `head`. Already merged is no error.
    async fn merge(&self, pull: &PullRef, head: &Sha) -> Result<(), ForgeError>;
    /// How git reaches the repository, with a fresh credential.
    async fn git_access(&self, repo: &RepoRef) -> Result<GitAccess, ForgeError>;
    /// The most characters that a comment may have.
    fn comment_limit(&self) -> usize;
}

/// A comment to write.
#[derive(Clone, Copy, Debug)]
pub struct CommentDraft<'a> {
    /// The whole body, marker included.
    pub body: &'a str,
    /// A hidden HTML comment that stands in the body and nowhere else.
    pub marker: &'a str,
    /// What the last write gave.
    pub receipt: Option<&'a Receipt>,
    /// Whether a create was tried before.
    pub tried: Tried,
}

/// Whether an earlier create may have worked without our knowing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// No.
    Never,
    /// Perhaps: look before creating.
    Perhaps,
}
