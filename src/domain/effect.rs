//! Everything that we can do to the outside. Effects are committed with the state and performed
//! afterwards, at least once; each has a slot, and a newer effect of a slot replaces an older one.

use serde::{Deserialize, Serialize};

use super::ids::{JobId, RolloutId, Sha, Timestamp};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// What it is about: `note`, `check:tidegate/plan:<sha>`, `job:<id>`. Unique within the pull.
    pub slot: String,
    /// Not before this; for edits that would otherwise come too fast.
    pub not_before: Option<Timestamp>,
    /// What to do.
    pub act: Act,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Act {
    /// Say the state of a check.
    Check(CheckReport),
    /// Create or edit one of our comments.
    Comment {
        /// The hidden marker by which it is found again.
        marker: String,
        /// The body; the marker is appended when it is sent.
        body: String,
    },
    /// React to a comment.
    React {
        /// Its id.
        comment: u64,
        /// How.
        reaction: Reaction,
    },
    /// Fetch, merge and read the tree of a head.
    Inspect {
        /// For whom: the same commits read for a new rollout are another effect.
        rollout: RolloutId,
        /// The head.
        head: Sha,
        /// The branch that it merges into.
        base_ref: String,
        /// That branch's tip as the forge said it.
        base: Sha,
        /// Counts the readings of a rollout: the same commits read again are another effect.
        #[serde(default)]
        reading: u32,
    },
    /// Hand a job to the executor.
    StartJob {
        /// Which; its spec is kept.
        job: JobId,
    },
    /// Interrupt a job once.
    CancelJob {
        /// Which.
        job: JobId,
    },
    /// Merge the pull.
    Merge {
        /// Only at this head.
        head: Sha,
    },
}

/// Effects of one lane of a pull are done strictly one after the other; lanes do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Calls of the forge that people see in order.
    Forge,
    /// Fetching and reading.
    Source,
    /// Jobs.
    Jobs,
}

impl Act {
    /// Its lane.
    pub fn lane(&self) -> Lane {
        match self {
            Act::Check(_) | Act::Comment { .. } | Act::React { .. } | Act::Merge { .. } => Lane::Forge,
            Act::Inspect { .. } => Lane::Source,
            Act::StartJob { .. } | Act::CancelJob { .. } => Lane::Jobs,
        }
    }
}

/// The state of one of our two checks on a head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// The head.
    pub head: Sha,
    /// Which check.
    pub name: CheckName,
    /// Where it stands.
    pub state: CheckState,
    /// One line, at most 140 characters.
    pub title: String,
    /// Markdown, may be empty.
    pub summary: String,
    /// Where to read more.
    pub url: Option<String>,
}

/// Our two checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CheckName {
    /// `tidegate/plan`
    #[serde(rename = "tidegate/plan")]
    Plan,
    /// `tidegate/apply`
    #[serde(rename = "tidegate/apply")]
    Apply,
}

impl CheckName {
    /// The name on the forge.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckName::Plan => "tidegate/plan",
            CheckName::Apply => "tidegate/apply",
        }
    }
}

/// Where a check stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// Waits for us or for a person: blocks a merge that requires it.
    Pending,
    /// We work on it.
    Running,
    /// Good.
    Success,
    /// Bad.
    Failure,
    /// The head was replaced before it was known; blocks nothing any more.
    Superseded,
}

/// Reactions that we give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// Read, at work.
    Eyes,
    /// Done as asked.
    ThumbsUp,
    /// Refused or not understood; a reply says why.
    Confused,
}
