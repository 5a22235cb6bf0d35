//! The aggregate that a turn loads and stores: one pull request, what we know of it, and its
//! current rollout. It changes only by `decide`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::approval::{Approval, Review};
use super::ids::{Login, PullKey, Sha, StateKey, Timestamp};
use super::neighbour::{Interest, Neighbour};
use super::rollout::Rollout;

/// Comments and reviews have ids of two sequences; this bit keeps the texts of reviews apart.
pub const REVIEW_TEXT: u64 = 1 << 62;

/// How many comment ids are remembered one by one.
const REMEMBERED: usize = 1000;

/// Everything we keep of a pull.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// Which one.
    pub key: PullKey,
    /// `owner/name` as last seen.
    pub repo: String,
    /// When we first heard of it: a comment from before that is never run, however late it is found.
    pub first_seen: Timestamp,
    /// What the forge says of it; `None` until the first observation.
    pub seen: Option<Seen>,
    /// How many rollouts there were; numbers the next.
    pub rollouts: u32,
    /// What its head does.
    pub rollout: Option<Rollout>,
    /// Rollouts of earlier heads whose apply still runs; their results count for them only.
    pub retired: Vec<Rollout>,
    /// Every approval given by comment, oldest first, those taken back left out.
    pub approvals: Vec<Approval>,
    /// The newest verdict of each reviewer.
    pub reviews: Vec<Review>,
    /// Comments already read (ids), newest last, bounded: a comment runs once however often it is delivered.
    pub comments: Vec<u64>,
    /// Set digests that an apply of this pull used, with the approvers: "another digest, which a run applied".
    pub applied: Vec<AppliedDigest>,
    /// States that an apply of this pull worked on: what they hold may differ from the base's code, so their locks stay
    /// until the pull ends, whatever a later head changes.
    #[serde(default)]
    pub touched: BTreeSet<StateKey>,
    /// What others may know of its plans, as it was last told.
    #[serde(default)]
    pub interests: Vec<Interest>,
    /// Other open pulls that plan changes to the same resources, as they were last seen.
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    /// Pulls of the repository that merged since this one is known and that own a state it has to do with; the newest.
    #[serde(default)]
    pub merges: Vec<Merge>,
    /// Heads that a maintainer let run although the pull comes from a fork.
    pub permitted: Vec<Sha>,
    /// Whether the note was ever posted: a pull that reaches no root gets none.
    pub noted: bool,
}

/// A set digest that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedDigest {
    /// `wave-N`.
    pub wave: usize,
    /// The digest.
    pub digest: super::ids::Digest,
    /// When.
    pub at: Timestamp,
}

/// Another pull that merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// Its number.
    pub pull: u64,
    /// Who opened it.
    pub by: Login,
    /// The branch that it merged into.
    pub base_ref: String,
    /// States of the roots that it reached.
    pub states: Vec<StateKey>,
}

/// A pull as the forge shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// `owner/name`.
    pub repo: String,
    /// Tip of the pull's branch.
    pub head: Sha,
    /// The branch it wants to merge into.
    pub base_ref: String,
    /// That branch's tip as the forge last said it.
    pub base: Sha,
    /// Who opened it.
    pub author: Login,
    /// Its title, for pages only.
    pub title: String,
    /// Open, closed or merged.
    pub state: PullState,
    /// A draft takes no lock and cannot be applied.
    pub draft: bool,
    /// The head lives in another repository (another id, or one that is gone).
    pub fork: bool,
    /// The forge's `mergeable`: `None` while it computes.
    pub mergeable: Option<bool>,
    /// The forge's `updated_at`: an older observation never replaces a newer one.
    pub updated: Timestamp,
}

/// Whether a pull can still merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullState {
    /// Open.
    Open,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

impl Pull {
    /// A pull of which nothing is known yet.
    pub fn unseen(key: PullKey, repo: impl Into<String>, at: Timestamp) -> Self {
        Self {
            key,
            repo: repo.into(),
            first_seen: at,
            seen: None,
            rollouts: 0,
            rollout: None,
            retired: Vec::new(),
            approvals: Vec::new(),
            reviews: Vec::new(),
            comments: Vec::new(),
            applied: Vec::new(),
            touched: BTreeSet::new(),
            interests: Vec::new(),
            neighbours: Vec::new(),
            merges: Vec::new(),
            permitted: Vec::new(),
            noted: false,
        }
    }

    /// Whether a comment (or review text) was read before. Only the newest are remembered one by one; older ones count as
    /// read, so that the sweep never runs an old command again.
    pub fn has_read(&self, id: u64) -> bool {
        let own_kind = |known: &&u64| *known & REVIEW_TEXT == id & REVIEW_TEXT;
        let older = || self.comments.iter().filter(own_kind).min().is_some_and(|oldest| id < *oldest);
        self.comments.contains(&id) || self.comments.len() >= REMEMBERED && older()
    }

    /// Remembers that a comment was read.
    pub fn remember(&mut self, id: u64) {
        self.comments.push(id);
        let excess = self.comments.len().saturating_sub(REMEMBERED);
        self.comments.drain(..excess);
    }

    /// Open as far as we know.
    pub fn is_open(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.state == PullState::Open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RepoKey;

    #[test]
    fn a_comment_is_read_once_however_many_there_were() {
        let key = PullKey { repo: RepoKey { forge: "github".to_owned(), id: 1 }, number: 1 };
        let mut pull = Pull::unseen(key, "o/r", Timestamp(0));
        for id in 100..100 + 2 * REMEMBERED as u64 {
            assert!(!pull.has_read(id), "{id}");
            pull.remember(id);
        }
        assert!(pull.has_read(100), "forgotten one by one, but older than all that are remembered");
        assert!(!pull.has_read(REVIEW_TEXT | 5), "the text of a review is of another sequence");
    }
}
