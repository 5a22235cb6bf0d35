//! The table of roots by wave: what each changes, which digest an approval names, and where it stands. Nothing that is
//! deleted or failed is ever folded away.

use super::Subject;
use super::cut::Budget;
use super::headline::{has_failed, plan_numbers};
use super::markdown::{code, code_cell, list, text};
use super::words::{count, milliseconds};
use crate::domain::job::ResourceStage;
use crate::domain::rollout::{ApplyRun, Hold, PlanRun, Read, RootRun, WaveState};

/// Rows by wave; `None` without roots.
pub(super) fn table(subject: Subject<'_>, budget: &Budget) -> Option<String> {
    let mut rows = vec!["| Wave | Root | Changes | Plan | Now |".to_owned(), "|---|---|---|---|---|".to_owned()];
    let mut plain = 0;
    let mut hidden = 0;
    for (number, run) in in_order(subject) {
        if !must_stay(run) {
            plain += 1;
            if plain > budget.rows {
                hidden += 1;
                continue;
            }
        }
        rows.push(row(subject, number, run));
    }
    if rows.len() == 2 && hidden == 0 {
        return None;
    }
    if hidden > 0 {
        rows.push(format!("| | and {} without deletions | | | |", count(hidden, "more root")));
    }
    Some(rows.join("\n"))
}

/// Every run with its wave; a run that is in no wave comes last.
pub(super) fn in_order<'a>(subject: Subject<'a>) -> Vec<(Option<usize>, &'a RootRun)> {
    let rollout = subject.rollout;
    let mut rows: Vec<(Option<usize>, &RootRun)> = Vec::new();
    for (index, wave) in rollout.waves.iter().enumerate() {
        rows.extend(wave.iter().filter_map(|root| rollout.runs.get(root)).map(|run| (Some(index + 1), run)));
    }
    let in_no_wave = rollout.runs.values().filter(|run| rollout.wave_of(&run.root).is_none());
    rows.extend(in_no_wave.map(|run| (None, run)));
    rows
}

/// How many rows may be folded when there is no room.
pub(super) fn plain_rows(subject: Subject<'_>) -> usize {
    in_order(subject).iter().filter(|(_, run)| !must_stay(run)).count()
}

/// A root whose row is never folded.
fn must_stay(run: &RootRun) -> bool {
    has_failed(run) || run.planned().is_some_and(|planned| planned.plan.is_destructive())
}

fn row(subject: Subject<'_>, number: Option<usize>, run: &RootRun) -> String {
    let wave = number.map_or("–".to_owned(), |number| number.to_string());
    let changes = match &run.plan {
        PlanRun::Unread => "none".to_owned(),
        _ => run.planned().map_or("–".to_owned(), |planned| plan_numbers(&planned.plan)),
    };
    let name = code_cell(&run.root.to_string());
    format!("| {wave} | {name} | {changes} | {} | {} |", plan(subject, number, run), now(subject, number, run))
}

fn plan(subject: Subject<'_>, number: Option<usize>, run: &RootRun) -> String {
    match &run.plan {
        PlanRun::Done(_) if run.reads_unknown() => again(run),
        PlanRun::Done(planned) if run.changes_something() => {
            // People approve the wave: the digest that they see is the one that they type.
            let digest = number.and_then(|number| wave_digest(subject, number));
            digest.unwrap_or_else(|| if run.is_applied() { code(planned.digest.short()) } else { "–".to_owned() })
        }
        _ => "–".to_owned(),
    }
}

/// The short set digest of a wave in code, while an approval of it can count.
pub(super) fn wave_digest(subject: Subject<'_>, number: usize) -> Option<String> {
    if subject.rollout.wave(number).any(RootRun::reads_unknown) {
        return None;
    }
    let digest = match subject.context.wave(number) {
        Some(WaveState::Waiting(Some(digest)) | WaveState::Open(digest)) => Some(digest.clone()),
        Some(WaveState::Planning | WaveState::Failed | WaveState::NoChanges) => None,
        _ => subject.rollout.set_digest(number),
    };
    digest.map(|digest| code(digest.short()))
}

fn again(run: &RootRun) -> String {
    let unknown: Vec<&Read> = run.replans_after.iter().filter(|read| read.unknown).collect();
    let sources: Vec<String> = unknown.iter().map(|read| code_cell(&read.source.to_string())).collect();
    let mut outputs: Vec<String> = unknown.iter().flat_map(|read| &read.outputs).map(|name| code_cell(name)).collect();
    outputs.sort();
    outputs.dedup();
    let reads = if unknown.iter().any(|read| read.outputs.is_empty()) {
        "all their outputs at once".to_owned()
    } else {
        list(&outputs, 3)
    };
    let reads = if unknown.len() == 1 { reads.replace("their", "its") } else { reads };
    let why: Vec<&Read> = unknown.iter().filter(|read| read.why.is_some()).copied().collect();
    let why = match why.as_slice() {
        [] => return format!("planned again after {}: reads {reads}, known after apply", list(&sources, 3)),
        [one] => one.why.as_deref().unwrap_or_default(),
        _ => "more than one link cannot be followed",
    };
    format!("planned again after {}: reads {reads} as applied, because {}", list(&sources, 3), text(why))
}

fn now(subject: Subject<'_>, number: Option<usize>, run: &RootRun) -> String {
    match &run.apply {
        ApplyRun::Applied { took_ms, .. } => return format!("applied in {}", milliseconds(*took_ms)),
        ApplyRun::Failed { .. } => return "apply failed".to_owned(),
        ApplyRun::Running { resources, .. } => {
            let done = resources.iter().filter(|it| it.state == ResourceStage::Done).count();
            return format!("applying, {done} of {} done", resources.len());
        }
        ApplyRun::None => {}
    }
    match &run.plan {
        PlanRun::Blocked(blocker) if blocker.how != Hold::Lock => "its state is not saved".to_owned(),
        PlanRun::Blocked(blocker) => format!("waits for #{}", blocker.pull),
        PlanRun::Failed { .. } => "failed to plan".to_owned(),
        PlanRun::Dropped { by } => format!("dropped by {}", code_cell(&format!("@{by}"))),
        PlanRun::AwaitsSource(source) => {
            format!("waits for {}, which was never applied", code_cell(&source.to_string()))
        }
        PlanRun::Unread => "reads nothing that changes".to_owned(),
        PlanRun::Queued if run.again.is_some() => "stale, waits to be planned again".to_owned(),
        PlanRun::Running { .. } if run.again.is_some() => "stale, being planned again".to_owned(),
        PlanRun::Queued => "waits to be planned".to_owned(),
        PlanRun::Running { .. } => "being planned".to_owned(),
        PlanRun::Done(_) if !run.changes_something() && !run.reads_unknown() => "nothing to apply".to_owned(),
        PlanRun::Done(_) => number.map_or("–".to_owned(), |number| in_wave(subject, number, run)),
    }
}

fn in_wave(subject: Subject<'_>, number: usize, run: &RootRun) -> String {
    match subject.context.wave(number) {
        None => "–".to_owned(),
        Some(WaveState::Planning) => "waits for the other plans of its wave".to_owned(),
        Some(WaveState::NoChanges) => "nothing to apply".to_owned(),
        Some(WaveState::Waiting(Some(_))) => format!("waits for `wave-{number}`"),
        Some(WaveState::Waiting(None)) => "is planned again first".to_owned(),
        Some(WaveState::Open(_)) => "can be applied".to_owned(),
        Some(WaveState::After(earlier)) => after(subject, *earlier, run),
        Some(WaveState::Applying) => "in the wave that is being applied".to_owned(),
        Some(WaveState::Applied) => "its wave is applied".to_owned(),
        Some(WaveState::Refused(_)) => "refused: see below".to_owned(),
        Some(WaveState::Failed) => "held by a failure in its wave".to_owned(),
    }
}

/// Its sources by name when they are few and in the earlier wave, else the wave.
fn after(subject: Subject<'_>, earlier: usize, run: &RootRun) -> String {
    let rollout = subject.rollout;
    let edges = rollout.edges.iter().filter(|edge| edge.reader == run.root);
    let sources = edges.map(|edge| &edge.source).filter(|root| rollout.wave_of(root) == Some(earlier));
    let mut names: Vec<String> = sources.map(|root| code_cell(&root.to_string())).collect();
    names.sort();
    names.dedup();
    if (1..=2).contains(&names.len()) { format!("after {}", list(&names, 2)) } else { format!("after wave {earlier}") }
}
