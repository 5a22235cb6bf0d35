//! What one head of a pull does: its runs in waves, from the inspection of the tree to the last
//! apply. States are enums; the transitions live in `decide`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::{RepoConfig, RootSettings, ToolKind};
use super::digest;
use super::estate::{Edge, Hole, Reason};
use super::ids::{Digest, JobId, Login, RolloutId, RootKey, Sha, StateKey, Timestamp};
use super::job::{Failure, FellBack, ResourceState, StateLeft};
use super::plan::{Counts, Plan};
use super::reach::Reach;

/// One head's runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// Its id, also of its page.
    pub id: RolloutId,
    /// The pull's head.
    pub head: Sha,
    /// The branch it merges into.
    pub base_ref: String,
    /// The base commit that was merged for planning; empty until inspected.
    pub base: Sha,
    /// The tree that is planned: the merge result of base and head; empty until inspected.
    pub tree: Sha,
    /// Whether the head contains the base's tip.
    pub undiverged: bool,
    /// Authors and committers of the pull's commits: with `four_eyes` they approve nothing.
    pub committers: Vec<Login>,
    /// When it began.
    pub started: Timestamp,
    /// When the last plan ended.
    pub planned_at: Option<Timestamp>,
    /// Where it stands.
    pub stage: Stage,
    /// The repository's configuration, read from the base commit.
    pub config: RepoConfig,
    /// The reached roots by key.
    pub runs: BTreeMap<RootKey, RootRun>,
    /// Dependency layers of the reached roots, first to apply first: `waves[0]` is `wave-1`.
    pub waves: Vec<Vec<RootKey>>,
    /// Edges between reached roots.
    pub edges: Vec<Edge>,
    /// Blast radius and by-resource list; set when the plans are complete.
    pub reach: Option<Reach>,
    /// What could not be read in the reached roots.
    pub holes: Vec<Hole>,
    /// What must be said beside the plans (a root that is removed, say): whole sentences of Markdown.
    pub notices: Vec<String>,
    /// The apply that somebody asked for.
    pub apply: Option<Apply>,
    /// How many applies were asked for; numbers their comments.
    pub applies: u32,
    /// How many jobs were made; numbers the next.
    pub jobs: u32,
    /// The base's newer tip that is looked at once nothing is being applied.
    pub moved_base: Option<Sha>,
    /// How often the head was read on another base; tells one reading from the next.
    #[serde(default)]
    pub readings: u32,
    /// Whether it is being read on a base that moved: a wave that waits does not start before that is known.
    #[serde(default)]
    pub reading: bool,
    /// Extra arguments that `plan -- ARGS` gave for every root.
    pub args: Vec<String>,
    /// Where each wave stood, from wave 1 on, when people were last told.
    #[serde(default)]
    pub standing: Vec<Standing>,
}

/// Where a wave stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Its state, as the gate sees it.
    pub state: WaveState,
    /// What it waits for, in words.
    pub waits: Option<String>,
}

/// Where a rollout stands before and beside its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The tree is being fetched and read.
    Inspecting,
    /// Nothing can be planned: what is wrong and the way out, in whole sentences of Markdown.
    Refused(Refusal),
    /// Roots are known.
    Ready,
}

/// Why nothing can be planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Headline of the note, e.g. `Not planned: base and head conflict`.
    pub title: String,
    /// Details and the way out.
    pub text: String,
}

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

/// An apply that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {
    /// Its number within the rollout, for its comment.
    pub number: u32,
    /// Who asked.
    pub by: Login,
    /// When.
    pub at: Timestamp,
    /// How far.
    pub scope: Scope,
    /// The wave at work, 1-based.
    pub wave: usize,
    /// Where it stands.
    pub stage: ApplyStage,
}

/// How far an apply goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every wave.
    All,
    /// Up to this wave, 1-based.
    UpTo(usize),
    /// These roots, with what they need.
    Roots(Vec<RootKey>),
}

/// Where an apply stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyStage {
    /// Roots of the wave are planned again on real outputs.
    Planning,
    /// The wave waits for an approval of this set digest.
    Waiting(Digest),
    /// Jobs apply the wave.
    Applying,
    /// Every wave of the scope is applied.
    Done,
    /// A root of the wave failed.
    Failed,
    /// The wave's plans changed after an approval: what moved, as whole sentences.
    Refused(String),
}

/// Where a wave stands, for the note, the page and the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaveState {
    /// Not all of its plans are there.
    Planning,
    /// Nothing to apply.
    NoChanges,
    /// Waits for an approval of this digest (or of a digest not yet known, when it plans again first).
    Waiting(Option<Digest>),
    /// Could apply now.
    Open(Digest),
    /// Comes after this earlier wave.
    After(usize),
    /// Applying.
    Applying,
    /// Applied.
    Applied,
    /// Refused.
    Refused(String),
    /// A root failed to plan or to apply.
    Failed,
}

/// The names of section 4, derived and never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// Waits for a job or a lock.
    Queued,
    /// A job plans.
    Planning,
    /// The plan changes nothing.
    NoChanges,
    /// Planned.
    Planned,
    /// Its wave waits for an approval.
    AwaitingApproval,
    /// Approved, waits for a job.
    ApplyQueued,
    /// A job applies.
    Applying,
    /// Applied.
    Applied,
    /// Failed.
    Failed,
    /// Dropped.
    Discarded,
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

    /// Its plan, if any, is made again.
    pub fn queue_again(&mut self) {
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

impl Rollout {
    /// The rollout of a head of which nothing is read yet.
    pub fn of_head(id: RolloutId, head: Sha, base_ref: String, started: Timestamp) -> Self {
        Self {
            id,
            head,
            base_ref,
            base: Sha::new(""),
            tree: Sha::new(""),
            undiverged: false,
            committers: Vec::new(),
            standing: Vec::new(),
            started,
            planned_at: None,
            stage: Stage::Inspecting,
            config: RepoConfig::default(),
            runs: BTreeMap::new(),
            waves: Vec::new(),
            edges: Vec::new(),
            reach: None,
            holes: Vec::new(),
            notices: Vec::new(),
            apply: None,
            applies: 0,
            jobs: 0,
            moved_base: None,
            readings: 0,
            reading: false,
            args: Vec::new(),
        }
    }

    /// The 1-based wave of a root.
    pub fn wave_of(&self, root: &RootKey) -> Option<usize> {
        self.waves.iter().position(|wave| wave.contains(root)).map(|index| index + 1)
    }

    /// The runs of a wave, 1-based; empty beyond the last.
    pub fn wave(&self, number: usize) -> impl Iterator<Item = &RootRun> {
        let roots = number.checked_sub(1).and_then(|index| self.waves.get(index));
        roots.into_iter().flatten().filter_map(|root| self.runs.get(root))
    }

    /// The set digest of a wave over its roots that change something; `None` while a plan is missing or when nothing changes.
    pub fn set_digest(&self, number: usize) -> Option<Digest> {
        if self.wave(number).any(RootRun::lacks_plan) {
            return None;
        }
        let pairs: Vec<(RootKey, Digest)> = self
            .wave(number)
            .filter(|run| run.changes_something())
            .filter_map(|run| Some((run.root.clone(), run.planned()?.digest.clone())))
            .collect();
        (!pairs.is_empty()).then(|| digest::of_set(&pairs))
    }

    /// Resource counts over every plan that is there.
    pub fn counts(&self) -> Counts {
        self.runs
            .values()
            .filter_map(RootRun::planned)
            .fold(Counts::default(), |sum, planned| sum + planned.plan.counts())
    }

    /// Whether each reached root has a plan, needs none, or has one that failed.
    pub fn is_planned(&self) -> bool {
        self.stage == Stage::Ready
            && self.runs.values().all(|run| {
                matches!(
                    run.plan,
                    PlanRun::Done(_)
                        | PlanRun::Unread
                        | PlanRun::Failed { .. }
                        | PlanRun::Dropped { .. }
                        | PlanRun::AwaitsSource(_)
                )
            })
    }
}
