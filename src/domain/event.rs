//! Everything that can happen to a pull. Every entry point (webhook, job report, timer, button)
//! becomes one of these and goes through a turn.

use serde::{Deserialize, Serialize};

use super::approval::Review;
use super::config::RepoConfig;
use super::config::RootSettings;
use super::estate::{Edge, Hole, Reason};
use super::ids::{JobId, Login, RolloutId, RootKey, Sha, StateKey, Timestamp};
use super::job::{Failure, ResourceState, StateLeft};
use super::neighbour::Mover;
use super::pull::{Merge, Seen};
use super::rollout::{Planned, Refusal, Step};

/// What a webhook says, before we know which of our pulls it concerns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incoming {
    /// The forge's id of the repository.
    pub repo_id: u64,
    /// `owner/name`.
    pub repo: String,
    /// What happened.
    pub what: What,
}

/// What a webhook says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A pull was opened, pushed to, closed, edited, …: here is how it looked.
    Pull {
        /// Its number.
        number: u64,
        /// The snapshot of the delivery, when it could be read.
        seen: Option<Seen>,
    },
    /// A comment on a pull.
    Comment {
        /// The pull's number.
        number: u64,
        /// The comment.
        comment: Comment,
    },
    /// A review of a pull, submitted or dismissed.
    Review {
        /// The pull's number.
        number: u64,
        /// The review.
        review: Review,
        /// Its text, which may hold a command.
        body: String,
    },
    /// Somebody asked the forge to run our checks again.
    Recheck {
        /// The head.
        head: Sha,
        /// The pulls of that head, as the forge lists them.
        pulls: Vec<u64>,
    },
    /// A branch moved; open pulls that merge into it may be stale.
    Push {
        /// The branch.
        branch: String,
        /// Its new tip.
        tip: Sha,
    },
}

/// A comment on a pull.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// The forge's id.
    pub id: u64,
    /// Its author.
    pub by: Login,
    /// Whether the author is a program.
    pub author: AuthorKind,
    /// Its text.
    pub body: String,
    /// When it was written.
    pub at: Timestamp,
    /// New, or an edit of an older one, which runs nothing.
    pub kind: CommentKind,
}

/// Who wrote a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorKind {
    /// A person.
    Person,
    /// A program.
    Bot,
    /// Ourselves: never read.
    Ourselves,
}

/// Whether a comment is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommentKind {
    /// New.
    Created,
    /// Its text was changed.
    Edited,
    /// The body of a review.
    Review,
}

/// What goes through a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "of", rename_all = "snake_case")]
pub enum Event {
    /// A pull as a delivery or the sweep saw it; `owner/name` is in it.
    Seen(Box<Seen>),
    /// Something happened that only a look at the forge explains: `owner/name`.
    Look(String),
    /// Somebody commented: `owner/name` and the comment.
    Comment(String, Comment),
    /// Somebody reviewed: `owner/name`, the review.
    Review(String, Review),
    /// Somebody asked for the checks again.
    Recheck(Sha),
    /// The base branch moved.
    BaseMoved {
        /// The branch.
        branch: String,
        /// Its tip.
        tip: Sha,
    },
    /// The tree was read.
    Inspected(Box<Inspection>),
    /// The tree cannot be planned.
    Refused {
        /// The head that was inspected.
        head: Sha,
        /// Why.
        refusal: Refusal,
        /// The reading that it answers; none in what an earlier version kept.
        #[serde(default)]
        reading: Option<Reading>,
    },
    /// A job says where it stands.
    Progress {
        /// Which.
        job: JobId,
        /// Steps that began or ended.
        steps: Vec<Step>,
        /// Its resources, for an apply; empty when nothing is new.
        resources: Vec<ResourceState>,
    },
    /// A job ended.
    JobEnded {
        /// Which.
        job: JobId,
        /// How.
        outcome: Box<Outcome>,
    },
    /// The job of an apply uploaded a state that its backend did not take; it comes before the job's end, or long after it was given up.
    StateLeft {
        /// The job.
        job: JobId,
        /// The root that it applied.
        root: RootKey,
    },
    /// Another pull applied this state: plans of it, and of readers of what changed, are made again.
    StateMoved {
        /// The state.
        state: StateKey,
        /// Who, and which outputs; none in what an earlier version kept.
        #[serde(default)]
        mover: Option<Mover>,
    },
    /// What this pull plans on these states is something else now: whoever plans there as well is told.
    Reclaimed(Vec<StateKey>),
    /// Another pull plans something else on a state of this one.
    NeighbourMoved,
    /// Another pull merged.
    Merged(Merge),
    /// A lock that this pull waits for has another holder, or none.
    LockFreed,
}

/// How a job ended, secrets and files left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "of", rename_all = "snake_case")]
pub enum Outcome {
    /// A plan.
    Planned(Planned),
    /// An apply that did everything.
    Applied(Vec<ResourceState>),
    /// The saved plan no longer fits the state.
    Stale(Failure),
    /// A failure, for an apply with where each resource stands.
    Failed {
        /// What went wrong.
        failure: Failure,
        /// Where each resource stands.
        resources: Vec<ResourceState>,
        /// What became of a state that its backend did not take.
        #[serde(deserialize_with = "super::job::state_left")]
        errored_state: StateLeft,
    },
    /// It stopped before it changed anything.
    Canceled,
    /// It died or fell silent.
    Lost(String),
}

/// Which reading of which rollout an answer belongs to: a later one makes it void.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The rollout.
    pub rollout: RolloutId,
    /// Counted from 0 within the rollout.
    pub number: u32,
}

impl Event {
    /// The same as the answer to a reading.
    #[must_use]
    pub fn of_reading(mut self, of: Reading) -> Self {
        match &mut self {
            Self::Inspected(inspection) => inspection.reading = Some(of),
            Self::Refused { reading, .. } => *reading = Some(of),
            _ => {}
        }
        self
    }
}

/// What reading the tree of a head gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// The head that was read.
    pub head: Sha,
    /// The base's tip that was merged.
    pub base: Sha,
    /// The merged tree.
    pub tree: Sha,
    /// The configuration at the base commit.
    pub config: RepoConfig,
    /// Whether the head contains the base's tip.
    pub undiverged: bool,
    /// Authors and committers of the pull's commits.
    pub committers: Vec<Login>,
    /// Reached roots.
    pub roots: Vec<InspectedRoot>,
    /// Their layers.
    pub waves: Vec<Vec<RootKey>>,
    /// Edges between them.
    pub edges: Vec<Edge>,
    /// What could not be read.
    pub holes: Vec<Hole>,
    /// What must be said beside the plans (a root that is removed, say): whole sentences of Markdown.
    pub notices: Vec<String>,
    /// The reading that it answers; none in what an earlier version kept.
    #[serde(default)]
    pub reading: Option<Reading>,
}

/// A reached root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectedRoot {
    /// Which.
    pub root: RootKey,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Its settings.
    pub settings: RootSettings,
    /// Its state.
    pub state: StateKey,
    /// States of other roots that it reads.
    pub reads: Vec<StateKey>,
    /// Which outputs of them; a state that is missing here is read as a whole.
    #[serde(default)]
    pub uses: Vec<StateRead>,
    /// Its source digest.
    pub source: String,
    /// What that covers: directories and files.
    pub closure: Vec<String>,
}

/// A read of a state by one block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateRead {
    /// The state.
    pub state: StateKey,
    /// The outputs that it uses; `None` when the whole object is used.
    pub outputs: Option<Vec<String>>,
    /// Whether no root of the repository owns it.
    pub external: bool,
}
