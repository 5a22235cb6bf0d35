//! `report.json`: a rollout for programs, versioned, with its schema in `docs/report.schema.json`. Made from the value that the note is made
//! from; it decides nothing, and no sensitive value is in it because none is in a plan.

use serde::Serialize;

use super::config::{GatePolicy, ToolKind};
use super::estate::{Hole, Reason};
use super::event::StateRead;
use super::ids::{RootKey, Timestamp};
use super::job::{Failure, ResourceStage};
use super::neighbour::{Because, Neighbour};
use super::outside::Outside;
use super::plan::{Change, Counts, OutputChange};
use super::pull::Pull;
use super::reach::{Downstream, ResourceReach};
use super::rollout::{ApplyRun, PlanRun, Read, Rollout, RootRun, Stage, WaveState};

mod read;

use read::read;
pub use read::{PlannedOn, ReportRead};

/// The version of the form. Within one version fields are only added.
pub const VERSION: u32 = 1;

/// A rollout.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// The rollout's id.
    pub id: String,
    /// `owner/name`.
    pub repository: String,
    /// The pull's number.
    pub pull: u64,
    /// Commits and trees.
    pub commits: Commits,
    /// Where it stands.
    pub stage: ReportStage,
    /// Why nothing can be planned: title and text.
    pub refusal: Option<ReportRefusal>,
    /// Began, milliseconds since 1970.
    pub started: Timestamp,
    /// The last plan ended.
    pub planned: Option<Timestamp>,
    /// Resources by kind of change, over every plan that is there.
    pub counts: Counts,
    /// Every reached root.
    pub roots: Vec<ReportRoot>,
    /// Their waves, first to apply first.
    pub waves: Vec<ReportWave>,
    /// What the change reaches beyond itself; `null` until every plan is there.
    pub blast: Option<Blast>,
    /// Other open pulls that plan changes to the same resources.
    pub neighbours: Vec<Neighbour>,
    /// What could not be read; empty when all was.
    pub holes: Vec<Hole>,
    /// What is said beside the plans, sentences in Markdown.
    pub notices: Vec<String>,
}

/// Commits and trees.
#[derive(Clone, Debug, Serialize)]
pub struct Commits {
    /// The pull's head.
    pub head: String,
    /// The branch it merges into.
    pub base_ref: String,
    /// The base commit that was merged for planning; empty until inspected.
    pub base: String,
    /// The tree that is planned; empty until inspected.
    pub tree: String,
}

/// Where a rollout stands before and beside its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStage {
    /// The tree is being read.
    Inspecting,
    /// Nothing can be planned.
    Refused,
    /// The server's settings leave pulls into this branch alone.
    Unmanaged,
    /// Roots are known.
    Ready,
}

/// Why nothing can be planned.
#[derive(Clone, Debug, Serialize)]
pub struct ReportRefusal {
    /// A headline.
    pub title: String,
    /// Details and the way out.
    pub text: String,
}

/// A reached root.
#[derive(Clone, Debug, Serialize)]
pub struct ReportRoot {
    /// `dir`, or `dir:workspace`.
    pub root: RootKey,
    /// Its directory.
    pub dir: String,
    /// Its workspace.
    pub workspace: String,
    /// The state that it owns.
    pub state: String,
    /// Its wave, 1-based; `null` when it is in none.
    pub wave: Option<usize>,
    /// Where it stands.
    pub status: RootStatus,
    /// Why it is reached.
    pub reasons: Vec<Reason>,
    /// Resources by kind of change; `null` without a plan.
    pub counts: Option<Counts>,
    /// The whole digest of its plan.
    pub digest: Option<String>,
    /// What planned it.
    pub tool: Option<ReportTool>,
    /// What its plan changes.
    pub changes: Vec<Change>,
    /// Outputs that change.
    pub outputs: Vec<OutputChange>,
    /// Addresses that changed outside.
    pub drift: Vec<String>,
    /// The reached roots whose state it reads.
    pub reads: Vec<ReportRead>,
    /// Its reads of states that no root of the repository owns.
    pub external: Vec<ReportExternal>,
    /// Roots after whose apply it is planned again.
    pub replans_after: Vec<Read>,
    /// Why its newest plan was made, or is being made, without anybody of this pull having asked.
    pub again: Option<Because>,
    /// Why its plan or its apply failed.
    pub failure: Option<Failure>,
}

/// Where a root stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RootStatus {
    /// Waits for a job.
    Queued,
    /// Another pull holds its state.
    Blocked,
    /// Waits for a source that was never applied.
    AwaitsSource,
    /// It reads nothing that changes, and is not planned.
    Unread,
    /// A job plans it.
    Planning,
    /// Planned, and changes nothing.
    NoChanges,
    /// Planned.
    Planned,
    /// Its plan failed.
    PlanFailed,
    /// Its plan was dropped.
    Discarded,
    /// A job applies it.
    Applying,
    /// Applied.
    Applied,
    /// Its apply failed.
    ApplyFailed,
}

/// A program and its version.
#[derive(Clone, Debug, Serialize)]
pub struct ReportTool {
    /// `terraform` or `tofu`.
    pub kind: ToolKind,
    /// Its version.
    pub version: String,
}

/// A read of a state that no root of the repository owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportExternal {
    /// The state.
    pub state: String,
    /// The outputs that it uses; `null` when the whole object is used.
    pub outputs: Option<Vec<String>>,
}

/// A wave.
#[derive(Clone, Debug, Serialize)]
pub struct ReportWave {
    /// 1-based.
    pub number: usize,
    /// Its roots.
    pub roots: Vec<RootKey>,
    /// The whole digest that an approval names; `null` while a plan is missing or will be made again, or when nothing changes.
    pub digest: Option<String>,
    /// The strictest rule of its roots.
    pub gate: GatePolicy,
    /// Where it stands.
    pub state: WaveStatus,
    /// What it waits for, in words.
    pub waits_for: Option<String>,
    /// The earlier wave that it comes after.
    pub after: Option<usize>,
    /// Roots of earlier waves after whose apply a part of it is planned again.
    pub replans_after: Vec<RootKey>,
    /// Its roots whose plan changes something.
    pub changed: Vec<RootKey>,
    /// Its resources while and after it is applied; `null` before.
    pub progress: Option<Progress>,
}

/// How far the resources of a wave are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// All of them.
    pub total: usize,
    /// Those that are done.
    pub done: usize,
    /// Those that failed.
    pub failed: usize,
}

/// Where a wave stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaveStatus {
    /// Not all of its plans are there.
    Planning,
    /// Nothing to apply.
    NoChanges,
    /// Waits for an approval.
    Waiting,
    /// Could be applied now.
    Open,
    /// Comes after an earlier wave.
    After,
    /// A job applies it.
    Applying,
    /// Applied.
    Applied,
    /// Its plans changed after an approval.
    Refused,
    /// A root failed.
    Failed,
}

/// What the change reaches beyond itself.
#[derive(Clone, Debug, Serialize)]
pub struct Blast {
    /// Roots whose plan changes something.
    pub roots: Vec<RootKey>,
    /// Roots that read those, followed through.
    pub downstream: Vec<Downstream>,
    /// Each changed resource that reaches something.
    pub resources: Vec<ResourceReach>,
    /// Roots of other repositories that read those that change; `null` when there is none that may be told.
    pub outside: Option<Outside>,
}

/// The report of a rollout of a pull.
pub fn report(pull: &Pull, rollout: &Rollout) -> Report {
    let refusal = match &rollout.stage {
        Stage::Refused(refusal) | Stage::Unmanaged(refusal) => {
            Some(ReportRefusal { title: refusal.title.clone(), text: refusal.text.clone() })
        }
        _ => None,
    };
    Report {
        version: VERSION,
        id: rollout.id.to_string(),
        repository: pull.repo.clone(),
        pull: pull.key.number,
        commits: Commits {
            head: rollout.head.to_string(),
            base_ref: rollout.base_ref.clone(),
            base: rollout.base.to_string(),
            tree: rollout.tree.to_string(),
        },
        stage: match rollout.stage {
            Stage::Inspecting => ReportStage::Inspecting,
            Stage::Refused(_) => ReportStage::Refused,
            Stage::Unmanaged(_) => ReportStage::Unmanaged,
            Stage::Ready => ReportStage::Ready,
        },
        refusal,
        started: rollout.started,
        planned: rollout.planned_at,
        counts: rollout.counts(),
        roots: rollout.runs.values().map(|run| root(rollout, run)).collect(),
        waves: (1..=rollout.waves.len()).map(|number| wave(rollout, number)).collect(),
        blast: rollout.reach.as_ref().map(|reach| Blast {
            roots: reach.changed.clone(),
            downstream: reach.downstream.clone(),
            resources: reach.resources.clone(),
            outside: reach.outside.clone(),
        }),
        neighbours: pull.neighbours.clone(),
        holes: rollout.holes.clone(),
        notices: rollout.notices.clone(),
    }
}

fn root(rollout: &Rollout, run: &RootRun) -> ReportRoot {
    let planned = run.planned();
    let plan = planned.map(|planned| &planned.plan);
    ReportRoot {
        root: run.root.clone(),
        dir: run.root.dir().to_owned(),
        workspace: run.root.workspace().to_owned(),
        state: run.state.to_string(),
        wave: rollout.wave_of(&run.root),
        status: status(run),
        reasons: run.reasons.clone(),
        counts: plan.map(super::plan::Plan::counts),
        digest: planned.map(|planned| planned.digest.as_str().to_owned()),
        tool: planned.map(|planned| ReportTool { kind: planned.tool.kind, version: planned.tool.version.clone() }),
        changes: plan.map(|plan| plan.changes.clone()).unwrap_or_default(),
        outputs: plan.map(|plan| plan.outputs.clone()).unwrap_or_default(),
        drift: plan.map(|plan| plan.drift.clone()).unwrap_or_default(),
        reads: rollout.edges.iter().filter(|edge| edge.reader == run.root).map(|edge| read(run, edge)).collect(),
        external: run.uses.iter().filter(|read| read.external).map(external).collect(),
        replans_after: run.replans_after.clone(),
        again: run.again.clone(),
        failure: match (&run.plan, &run.apply) {
            (_, ApplyRun::Failed { failure, .. }) | (PlanRun::Failed { failure, .. }, _) => Some(failure.clone()),
            _ => None,
        },
    }
}

fn external(read: &StateRead) -> ReportExternal {
    ReportExternal { state: read.state.to_string(), outputs: read.outputs.clone() }
}

fn status(run: &RootRun) -> RootStatus {
    match (&run.apply, &run.plan) {
        (ApplyRun::Running { .. }, _) => RootStatus::Applying,
        (ApplyRun::Applied { .. }, _) => RootStatus::Applied,
        (ApplyRun::Failed { .. }, _) => RootStatus::ApplyFailed,
        (ApplyRun::None, plan) => match plan {
            PlanRun::Queued => RootStatus::Queued,
            PlanRun::Blocked(_) => RootStatus::Blocked,
            PlanRun::Unread => RootStatus::Unread,
            PlanRun::AwaitsSource(_) => RootStatus::AwaitsSource,
            PlanRun::Running { .. } => RootStatus::Planning,
            PlanRun::Done(planned) if planned.plan.changes_something() => RootStatus::Planned,
            PlanRun::Done(_) => RootStatus::NoChanges,
            PlanRun::Failed { .. } => RootStatus::PlanFailed,
            PlanRun::Dropped { .. } => RootStatus::Discarded,
        },
    }
}

fn wave(rollout: &Rollout, number: usize) -> ReportWave {
    let standing = number.checked_sub(1).and_then(|at| rollout.standing.get(at));
    let mut again: Vec<RootKey> =
        rollout.wave(number).flat_map(|run| &run.replans_after).map(|read| read.source.clone()).collect();
    again.sort();
    again.dedup();
    let state = standing.map_or(&WaveState::Planning, |standing| &standing.state);
    ReportWave {
        number,
        roots: rollout.wave(number).map(|run| run.root.clone()).collect(),
        digest: rollout
            .set_digest(number)
            .filter(|_| !rollout.wave(number).any(RootRun::reads_unknown))
            .map(|digest| digest.as_str().to_owned()),
        gate: rollout.wave(number).map(|run| run.settings.gate.unwrap_or_default()).max().unwrap_or_default(),
        state: match state {
            WaveState::Planning => WaveStatus::Planning,
            WaveState::NoChanges => WaveStatus::NoChanges,
            WaveState::Waiting(_) => WaveStatus::Waiting,
            WaveState::Open(_) => WaveStatus::Open,
            WaveState::After(_) => WaveStatus::After,
            WaveState::Applying => WaveStatus::Applying,
            WaveState::Applied => WaveStatus::Applied,
            WaveState::Refused(_) => WaveStatus::Refused,
            WaveState::Failed => WaveStatus::Failed,
        },
        waits_for: standing.and_then(|standing| standing.waits.clone()),
        after: if let WaveState::After(earlier) = state { Some(*earlier) } else { None },
        replans_after: again,
        changed: rollout.wave(number).filter(|run| run.changes_something()).map(|run| run.root.clone()).collect(),
        progress: progress(rollout, number),
    }
}

fn progress(rollout: &Rollout, number: usize) -> Option<Progress> {
    let begun = rollout.wave(number).filter_map(|run| match &run.apply {
        ApplyRun::None => None,
        ApplyRun::Running { resources, .. }
        | ApplyRun::Applied { resources, .. }
        | ApplyRun::Failed { resources, .. } => Some(resources),
    });
    let begun: Vec<_> = begun.collect();
    let count = |stage| begun.iter().flat_map(|all| all.iter()).filter(|resource| resource.state == stage).count();
    (!begun.is_empty()).then(|| Progress {
        total: begun.iter().map(|all| all.len()).sum(),
        done: count(ResourceStage::Done),
        failed: count(ResourceStage::Failed),
    })
}
