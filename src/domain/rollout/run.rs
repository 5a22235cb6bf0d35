//! One root's run in a rollout: its plan, its apply, and what they were made on. Values only; who waits for whom is decided
//! elsewhere.

use serde::{Deserialize, Serialize};

use crate::domain::config::{RootSettings, ToolKind};
use crate::domain::estate::Reason;
use crate::domain::event::StateRead;
use crate::domain::ids::{Digest, JobId, Login, RootKey, StateKey, Timestamp};
use crate::domain::job::{Failure, FellBack, ResourceState, StateLeft};
use crate::domain::neighbour::Because;
use crate::domain::plan::{Counts, Plan};

/// One root's run in a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootRun {
    /// Which root.
    pub root: RootKey,
    /// Why it is here.
    pub reasons: Vec<Reason>,
    /// Its settings, effective.
    pub settings: RootSettings,
    /// The state it owns, for the lock.
    pub state: StateKey,
    /// States of other roots that it reads.
    pub reads: Vec<StateKey>,
    /// Which outputs of them; a state that is missing here is read as a whole.
    #[serde(default)]
    pub uses: Vec<StateRead>,
    /// Tree ids of its directory, modules and read files in one digest: binds what the plan JSON does not show.
    pub source: String,
    /// The directories and files that `source` covers, for fetching and for "does base's move matter".
    pub closure: Vec<String>,
    /// `terraform`'s extra arguments from `plan -- ARGS`.
    pub args: Vec<String>,
    /// Its plan.
    pub plan: PlanRun,
    /// Its apply.
    pub apply: ApplyRun,
    /// Roots whose changed outputs it reads, with the outputs: it is planned again after they applied.
    pub replans_after: Vec<Read>,
    /// Steps of its newest job.
    pub steps: Vec<Step>,
    /// The plan that was shown before the current one, to say what moved.
    pub previous: Option<Planned>,
    /// How often its current plan job was lost; a plan is tried once more, an apply never.
    pub lost: u32,
    /// What of its sources its newest plan was made on; a plan made on anything else than what is now is never applied.
    #[serde(default)]
    pub basis: Vec<Basis>,
    /// Why its newest plan was made, or is being made, without anybody of this pull having asked for it.
    #[serde(default)]
    pub again: Option<Because>,
}

/// What a plan was made on, for one block that reads outputs which this rollout changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The source.
    pub source: RootKey,
    /// The block, with its module in front.
    pub block: String,
    /// The digest of the source's plan.
    pub digest: Digest,
    /// Which of its outputs were read.
    pub outputs: Outputs,
}

/// Which outputs of a source a plan was made on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outputs {
    /// Those that its plan will make.
    Planned,
    /// Those before its plan, because the link cannot be followed or its own plan is not sure of them.
    Earlier,
    /// Those that are there since its plan was applied.
    Applied,
}

/// Outputs of another root that a run reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The source.
    pub source: RootKey,
    /// The outputs that change and that it uses; empty when the whole object is read.
    pub outputs: Vec<String>,
    /// Any of them is known only after the source applied.
    pub unknown: bool,
    /// Why the plan was made on the applied outputs instead of the planned ones, as a part of a sentence.
    #[serde(default)]
    pub why: Option<String>,
}

/// The plan of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanRun {
    /// Not started: it waits for a free job or for its sources.
    Queued,
    /// Another pull holds its state, or the state is not saved.
    Blocked(Blocker),
    /// It reads the state of this root, which has never been applied: it is planned after it.
    AwaitsSource(RootKey),
    /// Nothing that it reads changes, and it is here for nothing else: not planned.
    Unread,
    /// A job plans it.
    Running {
        /// The job.
        job: JobId,
        /// Since when.
        since: Timestamp,
    },
    /// Planned.
    Done(Planned),
    /// The plan failed; nothing of it is kept.
    Failed {
        /// The job.
        job: JobId,
        /// What the tool said.
        failure: Failure,
    },
    /// Dropped by `discard` or `cancel`.
    Dropped {
        /// By whom.
        by: Login,
    },
}

/// The pull in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// Its number.
    pub pull: u64,
    /// Who took the lock.
    pub by: Login,
    /// When.
    pub since: Timestamp,
    /// Pulls ahead of us in the line.
    pub ahead: Vec<u64>,
    /// What it has done to be in the way.
    #[serde(default)]
    pub how: Hold,
}

/// How a pull is in the way of another, or of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// It holds the lock.
    #[default]
    Lock,
    /// This job of its applied, and the backend did not take the state.
    Unsaved(JobId),
}

/// A plan that can be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The job that made it; its saved plan file is kept under this id.
    pub job: JobId,
    /// What it changes.
    pub plan: Plan,
    /// Its digest.
    pub digest: Digest,
    /// Which program made it.
    pub tool: Tool,
    /// When.
    pub at: Timestamp,
    /// How long the run took from its start to its result, milliseconds; set by the turn that takes the result.
    pub took_ms: i64,
    /// Sources that it read as they are applied, although their planned outputs were to be read.
    #[serde(default)]
    pub fell_back: Vec<FellBack>,
    /// Since when a plan with this digest has been there; `None` when just now.
    #[serde(default)]
    pub since: Option<Timestamp>,
}

/// A program and its version; both are compared before a saved plan is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Terraform or OpenTofu.
    pub kind: ToolKind,
    /// `1.11.4`
    pub version: String,
}

/// The apply of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyRun {
    /// Nothing asked.
    None,
    /// A job applies it.
    Running {
        /// The job.
        job: JobId,
        /// Since when.
        since: Timestamp,
        /// Its resources, in plan order.
        resources: Vec<ResourceState>,
    },
    /// Applied.
    Applied {
        /// The job.
        job: JobId,
        /// The digest that was applied.
        digest: Digest,
        /// What it changed.
        counts: Counts,
        /// Its resources.
        resources: Vec<ResourceState>,
        /// When it ended.
        at: Timestamp,
        /// How long it took, milliseconds.
        took_ms: i64,
    },
    /// Failed; what applied stays applied.
    Failed {
        /// The job.
        job: JobId,
        /// The run's own error, when one belongs to no resource.
        failure: Failure,
        /// Its resources.
        resources: Vec<ResourceState>,
        /// When it ended.
        at: Timestamp,
        /// What became of a state that its backend did not take.
        #[serde(default)]
        left: StateLeft,
    },
}

/// A step of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// `checkout`, `init`, `plan`, `show`, `apply`, …
    pub name: String,
    /// Where it stands.
    pub state: StepState,
    /// Milliseconds, once ended.
    pub took_ms: Option<i64>,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Running.
    Running,
    /// Ended well.
    Done,
    /// Failed.
    Failed,
}

impl RootRun {
    /// The plan, when there is one.
    pub fn planned(&self) -> Option<&Planned> {
        match &self.plan {
            PlanRun::Done(planned) => Some(planned),
            _ => None,
        }
    }

    /// Whether its plan is there and changes something.
    pub fn changes_something(&self) -> bool {
        self.planned().is_some_and(|planned| planned.plan.changes_something())
    }

    /// The outputs of this state that it reads; `None` when it may read any.
    pub fn outputs_of(&self, state: &StateKey) -> Option<Vec<String>> {
        let mut all: Vec<String> = Vec::new();
        let mut known = false;
        for read in self.uses.iter().filter(|read| read.state == *state) {
            known = true;
            all.extend(read.outputs.clone()?);
        }
        all.sort();
        all.dedup();
        known.then_some(all)
    }

    /// Its plan, if any, is made again; whoever does it because of another pull says so afterwards.
    pub fn queue_again(&mut self) {
        self.again = None;
        if let PlanRun::Done(planned) = std::mem::replace(&mut self.plan, PlanRun::Queued) {
            self.previous = Some(planned);
        }
    }

    /// Whether a plan of it is still to come.
    pub fn lacks_plan(&self) -> bool {
        self.planned().is_none() && self.plan != PlanRun::Unread
    }

    /// Whether its plan does not know a value that it reads, so that another plan takes its place before it applies.
    pub fn reads_unknown(&self) -> bool {
        !self.is_applied() && self.replans_after.iter().any(|read| read.unknown)
    }

    /// Whether there is nothing to apply, now or later.
    pub fn is_unchanged(&self) -> bool {
        !self.reads_unknown() && !self.lacks_plan() && !self.changes_something()
    }

    /// Whether it was applied in this rollout.
    pub fn is_applied(&self) -> bool {
        matches!(self.apply, ApplyRun::Applied { .. })
    }
}
