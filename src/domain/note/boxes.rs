//! What must not be overlooked: failures, what dies and why, and locks in the way. It hides nothing behind a fold.

use super::Subject;
use super::headline::has_failed;
use super::markdown::{alert, code, cut, fence, list, text};
use super::two_tools;
use super::unsaved;
use super::words::{count, ordinal, person, root, verb};
use crate::domain::job::{Failure, ResourceStage, ResourceState};
use crate::domain::plan::{Action, Change, Plan};
use crate::domain::reply::quoted;
use crate::domain::rollout::{ApplyRun, Blocker, Hold, PlanRun, RootRun};

/// Boxes, roots in a box, and names of a root that are shown before "and N more".
const MOST: usize = 5;

/// The most roots in the box of what dies: beyond, the table still names each.
const MOST_ROOTS: usize = 20;

/// The most characters of a tool's detail: the log has all of it.
const DETAIL: usize = 1200;

/// One box for each failure, the first five.
pub(super) fn failures(subject: Subject<'_>) -> Option<String> {
    let failed: Vec<&RootRun> = subject.rollout.runs.values().filter(|run| has_failed(run)).collect();
    let boxed = |run: &&RootRun| {
        let failed = alert("WARNING", &failure_of(run, &subject.context.url));
        std::iter::once(failed).chain(unsaved::steps(subject, run)).collect::<Vec<_>>().join("\n\n")
    };
    let mut blocks: Vec<String> = failed.iter().take(MOST).map(boxed).collect();
    if failed.len() > MOST {
        let more: Vec<String> = failed[MOST..].iter().map(|run| root(&run.root)).collect();
        let failed = verb(more.len(), "failed as well", "failed as well");
        blocks.push(format!("{} {failed}.", list(&more, 20)));
    }
    (!blocks.is_empty()).then(|| blocks.join("\n\n"))
}

/// What must be said beside the plans: a root that is removed, say.
pub(super) fn notices(subject: Subject<'_>) -> Option<String> {
    let notices: Vec<String> = subject.rollout.notices.iter().cloned().chain(two_tools::notices(subject)).collect();
    let shown: Vec<String> = notices.iter().take(MOST).map(|notice| alert("IMPORTANT", notice)).collect();
    let more = notices.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("And {more} more of this kind: [run]({}).", subject.context.url));
    (!shown.is_empty()).then(|| shown.into_iter().chain(more).collect::<Vec<_>>().join("\n\n"))
}

fn failure_of(run: &RootRun, url: &str) -> String {
    match (&run.plan, &run.apply) {
        (PlanRun::Failed { failure, .. }, _) => failure_text(run, "plan", failure, url),
        (_, ApplyRun::Failed { failure, resources, .. }) => {
            if !failure.summary.is_empty() {
                return failure_text(run, "apply", failure, url);
            }
            let failed: Vec<&ResourceState> = resources.iter().filter(|it| it.state == ResourceStage::Failed).collect();
            let names: Vec<String> = failed.iter().map(|resource| code(&resource.address)).collect();
            let errors = failed.iter().filter_map(|resource| resource.error.as_deref()).take(3);
            let errors: Vec<String> = errors.map(|error| format!("{}\n", fence("", &cut(error.trim(), 600)))).collect();
            let head = format!("{} failed in **apply** of {}", root(&run.root), list(&names, MOST));
            format!("{head}\n{}[full log]({url})", errors.concat())
        }
        _ => format!("{} failed. [full log]({url})", root(&run.root)),
    }
}

/// The tool's own words, with the place in the code.
pub(super) fn failure_text(run: &RootRun, phase: &str, failure: &Failure, url: &str) -> String {
    let step = if failure.step.is_empty() { phase } else { &failure.step };
    let place = match (&failure.file, failure.line) {
        (Some(file), Some(line)) => format!(", {}", code(&format!("{file}:{line}"))),
        (Some(file), None) => format!(", {}", code(file)),
        (None, _) => String::new(),
    };
    let of = failure.address.as_ref().map(|address| format!(" of {}", code(address))).unwrap_or_default();
    let summary = text(&cut(&failure.summary, 300));
    let mut blocks = vec![format!("{} failed in **{}**{of}: {summary}{place}", root(&run.root), text(step))];
    let quoted = failure.code.as_ref().map(|line| match failure.line {
        Some(number) => format!("{number}: {line}"),
        None => line.clone(),
    });
    let detail = Some(cut(failure.detail.trim(), DETAIL)).filter(|detail| !detail.is_empty());
    let body: Vec<String> = quoted.into_iter().chain(detail).collect();
    if !body.is_empty() {
        blocks.push(fence("", &body.join("\n")));
    }
    for other in failure.others.iter().take(3) {
        blocks.push(format!("- {}", text(&cut(other, 300))));
    }
    let more = match failure.others.len().saturating_sub(3) {
        0 => String::new(),
        hidden => format!("and {} · ", count(hidden, "more error")),
    };
    if failure.others.is_empty() {
        blocks.push(format!("[full log]({url})"));
    } else {
        blocks.push(format!("\n{more}[full log]({url})"));
    }
    blocks.join("\n")
}

/// What dies, by name and with the reason.
pub(super) fn caution(subject: Subject<'_>) -> Option<String> {
    let rollout = subject.rollout;
    let in_order = rollout.waves.iter().flatten().filter_map(|root| rollout.runs.get(root));
    let dying: Vec<String> = in_order
        .filter(|run| !run.is_applied())
        .filter_map(|run| Some(format!("{} {}.", root(&run.root), dies(&left(run)?)?)))
        .collect();
    let mut lines: Vec<String> = dying.iter().take(MOST_ROOTS).cloned().collect();
    if dying.len() > MOST_ROOTS {
        let more = dying.len() - MOST_ROOTS;
        let what = verb(more, "deletes, replaces or forgets", "delete, replace or forget");
        lines.push(format!("{} {what} something: see the table.", count(more, "more root")));
    }
    (!lines.is_empty()).then(|| alert("CAUTION", &lines.join("\n\n")))
}

/// The plan without what an apply that runs or failed has already done.
fn left(run: &RootRun) -> Option<Plan> {
    let mut plan = run.planned()?.plan.clone();
    if let ApplyRun::Running { resources, .. } | ApplyRun::Failed { resources, .. } = &run.apply {
        let done = |change: &Change, it: &ResourceState| {
            it.state == ResourceStage::Done && it.address == change.address && it.deposed == change.deposed
        };
        plan.changes.retain(|change| !resources.iter().any(|resource| done(change, resource)));
    }
    Some(plan)
}

/// `replaces … because …, and deletes …`; `None` when nothing dies or is left behind.
pub(super) fn dies(plan: &Plan) -> Option<String> {
    let of = |wanted: fn(Action) -> bool| {
        let chosen = plan.changes.iter().filter(move |change| wanted(change.action));
        chosen.map(named).collect::<Vec<String>>()
    };
    let clauses: Vec<String> = [
        ("replaces", of(Action::is_replacement)),
        ("deletes", of(|action| action == Action::Delete)),
        ("forgets", of(|action| action == Action::Forget)),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(verb, names)| format!("{verb} {}", list(&names, MOST)))
    .collect();
    match clauses.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [first @ .., last] => Some(format!("{}, and {last}", first.join(", "))),
    }
}

fn named(change: &Change) -> String {
    let deposed = change.deposed.as_ref().map(|key| format!(" (deposed object {})", code(key))).unwrap_or_default();
    let why = why(change).map(|why| format!(" {why}")).unwrap_or_default();
    let behind = match change.action {
        Action::ForgetThenCreate => " and leaves the old object behind",
        _ => "",
    };
    format!("{}{deposed}{why}{behind}", code(&change.address))
}

/// The tool's reason in words; none for the plain case, a block that was taken out.
fn why(change: &Change) -> Option<String> {
    let paths: Vec<String> = change.replaced_by.iter().map(|path| code(path)).collect();
    let said = match change.reason.as_deref()? {
        "replace_because_cannot_update" if paths.is_empty() => "because it cannot change in place".to_owned(),
        "replace_because_cannot_update" => format!("because {} cannot change in place", list(&paths, 3)),
        "replace_because_tainted" => "because it is tainted".to_owned(),
        "replace_by_request" => "because `-replace` asks for it".to_owned(),
        "replace_by_triggers" => "because of its `replace_triggered_by`".to_owned(),
        "delete_because_wrong_repetition" => "because `count` or `for_each` came or went".to_owned(),
        "delete_because_count_index" => "because `count` is smaller".to_owned(),
        "delete_because_each_key" => "because its key left `for_each`".to_owned(),
        "delete_because_no_module" => "because its module is gone".to_owned(),
        "delete_because_no_move_target" => "because it was moved to an address that the code does not have".to_owned(),
        "delete_because_enabled_false" => "because `enabled` is false".to_owned(),
        _ => return None,
    };
    Some(said)
}

/// Who is in the way, and how the way becomes free.
pub(super) fn locks(subject: Subject<'_>) -> Option<String> {
    let mut groups: Vec<(&Blocker, Vec<&RootRun>)> = Vec::new();
    for run in subject.rollout.runs.values() {
        let PlanRun::Blocked(blocker) = &run.plan else { continue };
        match groups.iter_mut().find(|(known, _)| *known == blocker) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((blocker, vec![run])),
        }
    }
    let (unsaved, groups): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(blocker, _)| blocker.how != Hold::Lock);
    let unsaved: Vec<String> =
        unsaved.iter().map(|(blocker, runs)| alert("CAUTION", &unsaved::held(blocker, runs))).collect();
    let mut lines: Vec<String> = groups.iter().take(MOST).map(|(blocker, runs)| lock(blocker, runs)).collect();
    let more: usize = groups.iter().skip(MOST).map(|(_, runs)| runs.len()).sum();
    if more > 0 {
        lines.push(format!("{} {} locked as well: see the table.", count(more, "more root"), verb(more, "is", "are")));
    }
    let locked = (!lines.is_empty()).then(|| alert("NOTE", &lines.join("\n\n")));
    let all: Vec<String> = unsaved.into_iter().chain(locked).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

fn lock(blocker: &Blocker, runs: &[&RootRun]) -> String {
    let names: Vec<String> = runs.iter().map(|run| root(&run.root)).collect();
    let line = if blocker.ahead.is_empty() {
        "This pull is first in line".to_owned()
    } else {
        let ahead: Vec<String> = blocker.ahead.iter().map(|pull| format!("#{pull}")).collect();
        format!("This pull is {} in line after {}", ordinal(blocker.ahead.len() + 1), list(&ahead, MOST))
    };
    let unlock = if runs.len() <= 3 {
        let roots: Vec<String> = runs.iter().map(|run| format!(" -d {}", quoted(&run.root))).collect();
        format!("unlock{}", roots.concat())
    } else {
        "unlock".to_owned()
    };
    format!(
        "Not planned: {} {} locked by #{} ({}, since {} UTC). {line}; it is planned by itself when its turn comes. {} on #{} frees {}.",
        list(&names, MOST),
        verb(runs.len(), "is", "are"),
        blocker.pull,
        person(&blocker.by),
        blocker.since.hour_minute(),
        code(&unlock),
        blocker.pull,
        verb(runs.len(), "it", "them"),
    )
}
