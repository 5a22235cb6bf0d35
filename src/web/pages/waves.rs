//! The waves of a rollout as its page shows them: where each stands, what it waits for and what to type, how long it took, and the
//! blast radius. It decides nothing.

use super::RootView;
use crate::domain::ids::Timestamp;
use crate::domain::reach::{Class, Downstream};
use crate::domain::rollout::{ApplyRun, Rollout, RootRun, WaveState};

/// A column of the page.
pub(super) struct WaveView {
    pub number: usize,
    pub state: &'static str,
    /// What it waits for, or why it was refused.
    pub said: String,
    /// What to type now; empty when nothing is to be approved.
    pub typed: String,
    /// Plan, gate and apply, each with its time.
    pub times: Vec<(&'static str, String)>,
    pub roots: Vec<RootView>,
}

/// Every wave, first to apply first.
pub(super) fn waves(rollout: &Rollout, now: Timestamp, view: impl Fn(&RootRun) -> RootView) -> Vec<WaveView> {
    (1..=rollout.waves.len())
        .map(|number| {
            let standing = number.checked_sub(1).and_then(|at| rollout.standing.get(at));
            let state = standing.map_or(&WaveState::Planning, |standing| &standing.state);
            let waits = standing.and_then(|standing| standing.waits.clone());
            WaveView {
                number,
                state: word(state),
                // Its sentences are Markdown.
                said: said(state, waits).replace('`', ""),
                typed: typed(number, state),
                times: times(rollout, number, now),
                roots: rollout.wave(number).map(&view).collect(),
            }
        })
        .collect()
}

fn word(state: &WaveState) -> &'static str {
    match state {
        WaveState::Planning => "planning",
        WaveState::NoChanges => "nothing to apply",
        WaveState::Waiting(_) => "waiting",
        WaveState::Open(_) => "can be applied",
        WaveState::After(_) => "not started",
        WaveState::Applying => "applying",
        WaveState::Applied => "applied",
        WaveState::Refused(_) => "refused",
        WaveState::Failed => "failed",
    }
}

fn said(state: &WaveState, waits: Option<String>) -> String {
    match state {
        WaveState::Waiting(_) => format!("waits for {}", waits.unwrap_or_else(|| "an approval".to_owned())),
        WaveState::After(earlier) => format!("after wave-{earlier}"),
        WaveState::Refused(why) => why.clone(),
        _ => String::new(),
    }
}

fn typed(number: usize, state: &WaveState) -> String {
    match state {
        WaveState::Waiting(Some(digest)) => format!("approve wave-{number} {}", digest.short()),
        WaveState::Open(_) => format!("apply wave-{number}"),
        _ => String::new(),
    }
}

/// What has begun, in the order in which it began. A wait that has not ended is measured until now.
fn times(rollout: &Rollout, number: usize, now: Timestamp) -> Vec<(&'static str, String)> {
    let runs: Vec<&RootRun> = rollout.wave(number).filter(|run| run.changes_something()).collect();
    let planned = || runs.iter().filter_map(|run| run.planned());
    let Some(ready) = planned().map(|planned| planned.at).max() else { return Vec::new() };
    let mut times = vec![("plan", super::took(planned().map(|planned| planned.took_ms).max()))];
    let begun = runs.iter().filter_map(|run| match &run.apply {
        ApplyRun::None => None,
        ApplyRun::Running { since, .. } => Some((*since, None)),
        ApplyRun::Applied { at, took_ms, .. } => Some((Timestamp(at.0 - took_ms), Some(*at))),
        ApplyRun::Failed { at, .. } => Some((*at, Some(*at))),
    });
    let begun: Vec<(Timestamp, Option<Timestamp>)> = begun.collect();
    let Some(start) = begun.iter().map(|(start, _)| *start).min() else {
        times.push(("gate", format!("{} so far", super::took(Some(now.since_ms(ready).max(0))))));
        return times;
    };
    times.push(("gate", super::took(Some(start.since_ms(ready).max(0)))));
    let end = begun.iter().map(|(_, end)| *end).collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
    let took = super::took(Some(end.unwrap_or(now).since_ms(start).max(0)));
    times.push(("apply", if end.is_some() { took } else { format!("{took} so far") }));
    times
}

/// `changes`, `downstream` or nothing: the place of a root in the blast radius.
pub(super) fn place(rollout: &Rollout, run: &RootRun) -> &'static str {
    let Some(reach) = &rollout.reach else { return "" };
    if reach.changed.contains(&run.root) {
        "changes"
    } else if reach.downstream.iter().any(|down| down.root == run.root) {
        "downstream"
    } else {
        ""
    }
}

/// One line for each root downstream.
pub(super) fn radius(rollout: &Rollout) -> Vec<String> {
    rollout.reach.iter().flat_map(|reach| &reach.downstream).map(line).collect()
}

fn line(down: &Downstream) -> String {
    let sources: Vec<String> = down.reads.iter().map(ToString::to_string).collect();
    let how = if down.by_order { "comes after" } else { "reads" };
    let class = match (down.by_order, down.class) {
        (true, _) | (_, Class::Changes) => "",
        (_, Class::MayChange) => "; may change",
        (_, Class::Unchanged) => "; value unchanged",
    };
    let planned = if down.planned { "" } else { "; not planned in this run" };
    format!("{} (wave {}) {how} {}{class}{planned}", down.root, down.wave, sources.join(", "))
}
