//! The first two lines: what happens in numbers, and of which commits. It counts and judges nothing.

use super::markdown::{code, list};
use super::words::{count, milliseconds, verb};
use super::{Subject, is_pending};
use crate::domain::ids::RootKey;
use crate::domain::plan::{Action, Counts, Plan};
use crate::domain::rollout::{ApplyRun, Hold, PlanRun, Rollout, RootRun};

/// `### 1 delete · 1 replace · 2 update · 2 create`, failures in front.
pub(super) fn headline(subject: Subject<'_>) -> String {
    let rollout = subject.rollout;
    let runs = || rollout.runs.values();
    let failed = runs().filter(|run| has_failed(run)).count();
    let mut parts = Vec::new();
    let pending = runs().filter(|run| is_pending(&run.plan)).count();
    if pending > 0 {
        parts.push(format!("Planning {}", count(rollout.runs.len(), "root")));
    }
    if failed > 0 {
        parts.push(format!("{} failed", count(failed, "root")));
    }
    if pending == 0 {
        parts.extend(numbers(rollout));
    }
    let held = |run: &&RootRun, lock: bool| matches!(&run.plan, PlanRun::Blocked(by) if (by.how == Hold::Lock) == lock);
    let blocked = runs().filter(|run| held(run, true)).count();
    if blocked > 0 {
        parts.push(format!("{} locked by another pull", count(blocked, "root")));
    }
    let unsaved = runs().filter(|run| held(run, false)).count();
    if unsaved > 0 {
        parts.push(format!("{} not saved", count(unsaved, "state")));
    }
    let dropped = runs().filter(|run| matches!(run.plan, PlanRun::Dropped { .. })).count();
    if dropped > 0 {
        parts.push(format!("{} dropped", count(dropped, "plan")));
    }
    let awaiting = runs().filter(|run| matches!(run.plan, PlanRun::AwaitsSource(_))).count();
    if awaiting > 0 {
        parts.push(format!("{} {} to be planned", count(awaiting, "root"), verb(awaiting, "waits", "wait")));
    }
    if parts.is_empty() {
        parts.push("No changes".to_owned());
    }
    format!("### {}", parts.join(" · "))
}

/// `**4 of 4 roots planned** at … on top of … · 38 s · [run](…)`
pub(super) fn summary(subject: Subject<'_>) -> String {
    let rollout = subject.rollout;
    let planned = rollout.runs.values().filter(|run| run.planned().is_some()).count();
    let total = rollout.runs.len();
    let roots = if total == 1 { "root" } else { "roots" };
    let took = took(rollout).map(|took| format!(" · {took}")).unwrap_or_default();
    let unread = unread(rollout);
    let url = &subject.context.url;
    format!("**{planned} of {total} {roots} planned**{unread} {}{took} · [run]({url})", commits(rollout))
}

/// `, 3 read nothing that changes`
fn unread(rollout: &Rollout) -> String {
    match rollout.runs.values().filter(|run| run.plan == PlanRun::Unread).count() {
        0 => String::new(),
        number => format!(", {number} {} nothing that changes", verb(number, "reads", "read")),
    }
}

/// The line of a pull whose plans change nothing.
pub(super) fn nothing_to_do(subject: Subject<'_>) -> String {
    let rollout = subject.rollout;
    if rollout.runs.is_empty() {
        return format!("This change reaches no root {} · [run]({})", commits(rollout), subject.context.url);
    }
    // What an earlier head applied keeps its locks until the merge.
    let locked = if subject.pull.applied.is_empty() { ", nothing is locked" } else { "" };
    format!(
        "{} planned{} {} · nothing to apply{locked} · [run]({})",
        count(rollout.runs.values().filter(|run| run.planned().is_some()).count(), "root"),
        unread(rollout),
        commits(rollout),
        subject.context.url
    )
}

/// What changed outside, where no plan does anything about it.
pub(super) fn drift(rollout: &Rollout) -> Option<String> {
    let planned = rollout.runs.values().filter_map(|run| Some((&run.root, &run.planned()?.plan.drift)));
    let of = |(root, drift): (&RootKey, &Vec<String>)| {
        let names: Vec<String> = drift.iter().map(|address| code(address)).collect();
        format!("- {} in {}", list(&names, 5), code(&root.to_string()))
    };
    let mut lines: Vec<String> = planned.filter(|(_, drift)| !drift.is_empty()).map(of).collect();
    let hidden = lines.len().saturating_sub(20);
    lines.truncate(20);
    if hidden > 0 {
        lines.push(format!("- and {}", count(hidden, "more root")));
    }
    (!lines.is_empty()).then(|| format!("Changed outside, and the code asks for nothing else:\n\n{}", lines.join("\n")))
}

/// Whether every root is planned and none changes anything.
pub(super) fn is_unchanged(rollout: &Rollout) -> bool {
    rollout.runs.values().all(|run| !run.lacks_plan() && !run.changes_something())
}

/// Whether a plan or an apply of this root failed.
pub(super) fn has_failed(run: &RootRun) -> bool {
    matches!(run.plan, PlanRun::Failed { .. }) || matches!(run.apply, ApplyRun::Failed { .. })
}

/// What one plan changes, as in the table: the four counts, and what they leave out.
pub(super) fn plan_numbers(plan: &Plan) -> String {
    let parts = all_numbers(plan.counts(), &Extras::of(plan));
    if parts.is_empty() { "none".to_owned() } else { parts.join(" · ") }
}

fn numbers(rollout: &Rollout) -> Vec<String> {
    let plans = rollout.runs.values().filter_map(RootRun::planned).map(|planned| &planned.plan);
    let extras = plans.fold(Extras::default(), |sum, plan| sum.plus(&Extras::of(plan)));
    all_numbers(rollout.counts(), &extras)
}

fn all_numbers(counts: Counts, extras: &Extras) -> Vec<String> {
    let mut parts = Vec::new();
    if counts != Counts::default() {
        parts.push(counts.to_string());
    }
    if extras.forget > 0 {
        parts.push(format!("{} forget", extras.forget));
    }
    // Moves, imports and outputs touch nothing that runs: they are named only where nothing else is to say.
    if parts.is_empty() {
        let rest = [(extras.moved, "move"), (extras.import, "import"), (extras.output, "output")];
        parts.extend(rest.into_iter().filter(|(number, _)| *number > 0).map(|(number, word)| count(number, word)));
        if parts.is_empty() && extras.read > 0 {
            parts.push(count(extras.read, "read"));
        }
    }
    parts
}

/// What happens beside the four counts.
#[derive(Default)]
struct Extras {
    forget: usize,
    moved: usize,
    import: usize,
    output: usize,
    read: usize,
}

impl Extras {
    fn of(plan: &Plan) -> Self {
        let of =
            |wanted: &dyn Fn(&crate::domain::plan::Change) -> bool| plan.changes.iter().filter(|c| wanted(c)).count();
        Self {
            forget: of(&|change| change.action == Action::Forget),
            moved: of(&|change| change.previous_address.is_some()),
            import: of(&|change| change.importing),
            output: plan.outputs.len(),
            read: of(&|change| change.action == Action::Read),
        }
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            forget: self.forget + other.forget,
            moved: self.moved + other.moved,
            import: self.import + other.import,
            output: self.output + other.output,
            read: self.read + other.read,
        }
    }
}

fn commits(rollout: &Rollout) -> String {
    let head = code(rollout.head.short());
    if rollout.base.as_str().is_empty() {
        return format!("at {head}");
    }
    format!("at {head} on top of {} {}", code(&rollout.base_ref), code(rollout.base.short()))
}

fn took(rollout: &Rollout) -> Option<String> {
    Some(milliseconds(rollout.planned_at?.since_ms(rollout.started)))
}
