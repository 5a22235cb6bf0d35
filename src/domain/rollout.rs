//! What one head of a pull does: its runs in waves, from the inspection of the tree to the last
//! apply. States are enums; the transitions live in `decide`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::RepoConfig;
use super::digest;
use super::estate::{Edge, Hole};
use super::ids::{Digest, Login, RolloutId, RootKey, Sha, Timestamp};
use super::plan::Counts;
use super::reach::Reach;

mod run;

pub use run::{ApplyRun, Basis, Blocker, Hold, Outputs, PlanRun, Planned, Read, RootRun, Step, StepState, Tool};

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
    /// The pull is none of ours to plan, and nothing is wrong with it: why, and the way out.
    Unmanaged(Refusal),
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
