//! What a turn needs to know of other pulls and other repositories: only for the states that its event is about.

use std::collections::BTreeSet;

use crate::app::{App, FlowError};
use crate::domain::command::Command;
use crate::domain::event::{Event, Outcome};
use crate::domain::ids::{JobId, PullKey, RootKey, StateKey};
use crate::domain::lock::LockTable;
use crate::domain::neighbour::{Interest, Role};
use crate::domain::outside::{CrossRepo, ForeignRead, is_shared};
use crate::domain::pull::{Pull, PullState, Seen};
use crate::domain::rollout::{ApplyRun, PlanRun, Rollout};

/// What else tells which states an event is about.
pub(super) struct Asked<'a> {
    /// The forge's look at the pull, when it was asked for.
    pub(super) fresh: Option<&'a Seen>,
    /// The command of a comment.
    pub(super) command: Option<&'a Command>,
    /// Locks, and states that are not saved.
    pub(super) locks: &'a LockTable,
}

/// Open pulls that have to do with the states of the event.
pub(super) async fn interested(
    app: &App,
    pull: &Pull,
    event: &Event,
    asked: &Asked<'_>,
) -> Result<Vec<(PullKey, Interest)>, FlowError> {
    let states: BTreeSet<StateKey> = match event {
        Event::StateLeft { job, root } => left_by(pull, job, root),
        _ if matches!(asked.command, Some(Command::Settle(_))) => asked.locks.unsaved.keys().cloned().collect(),
        Event::JobEnded { job, outcome } if !matches!(**outcome, Outcome::Planned(_)) => applied_by(pull, job),
        Event::Reclaimed(states) => owned(pull).chain(states.iter().cloned()).collect(),
        Event::NeighbourMoved => owned(pull).collect(),
        Event::Seen(seen) if is_end(pull, seen) => owned(pull).collect(),
        _ if asked.fresh.is_some_and(|seen| is_end(pull, seen)) => owned(pull).collect(),
        _ => return Ok(Vec::new()),
    };
    let states: Vec<StateKey> = states.into_iter().collect();
    let mut found = app.store.interested(&states, &pull.key).await?;
    let abroad = app.cross_repo != CrossRepo::Off;
    found.retain(|(key, interest)| key.repo == pull.key.repo || abroad && is_shared(&interest.state));
    Ok(found)
}

fn owned(pull: &Pull) -> impl Iterator<Item = StateKey> {
    pull.interests.iter().filter(|interest| interest.role == Role::Owns).map(|interest| interest.state.clone())
}

/// Whether an open pull is seen merged.
fn is_end(pull: &Pull, seen: &Seen) -> bool {
    pull.is_open() && seen.state == PullState::Merged
}

/// The state that this job applies, in the rollout or in an earlier one.
fn applied_by(pull: &Pull, job: &JobId) -> BTreeSet<StateKey> {
    let runs = pull.rollout.iter().chain(&pull.retired).flat_map(|rollout| rollout.runs.values());
    let by_it = runs.filter(|run| matches!(&run.apply, ApplyRun::Running { job: known, .. } if known == job));
    by_it.map(|run| run.state.clone()).collect()
}

/// The state that this job of an apply left.
fn left_by(pull: &Pull, job: &JobId, root: &RootKey) -> BTreeSet<StateKey> {
    let runs = pull.rollout.iter().chain(&pull.retired).flat_map(|rollout| rollout.runs.values());
    let concerned = runs.filter(|run| match &run.apply {
        ApplyRun::Running { job: known, .. } | ApplyRun::Failed { job: known, .. } if known == job => true,
        _ => run.root == *root,
    });
    concerned.map(|run| run.state.clone()).collect()
}

/// Reads by roots of other repositories, when the event may complete the plans.
pub(super) async fn foreign(app: &App, pull: &Pull, event: &Event) -> Result<Vec<ForeignRead>, FlowError> {
    if app.cross_repo == CrossRepo::Off {
        return Ok(Vec::new());
    }
    let running =
        |rollout: &Rollout| rollout.runs.values().filter(|run| matches!(run.plan, PlanRun::Running { .. })).count();
    let mut states: BTreeSet<StateKey> = match (event, &pull.rollout) {
        (Event::Inspected(inspection), _) => inspection.roots.iter().map(|root| root.state.clone()).collect(),
        // Only the end of the last plan can complete them.
        (Event::JobEnded { .. }, Some(rollout)) if running(rollout) > 1 => BTreeSet::new(),
        (_, Some(rollout)) => rollout.runs.values().map(|run| run.state.clone()).collect(),
        (_, None) => BTreeSet::new(),
    };
    states.retain(is_shared);
    let states: Vec<StateKey> = states.into_iter().collect();
    Ok(app.store.foreign_reads(&states, &pull.key.repo).await?)
}
