//! The last lines: what this pull waits for, and the commands that it can use now. Never a fixed help text.

use super::headline::has_failed;
use super::markdown::{code, code_cell, list};
use super::words::{count, root, verb};
use super::{Subject, is_pending};
use crate::domain::config::{ApprovalSource, LockMode, MergePolicy};
use crate::domain::estate::Reason;
use crate::domain::ids::RootKey;
use crate::domain::pull::PullState;
use crate::domain::reply::{quoted, quoted_path};
use crate::domain::rollout::{ApplyRun, Hold, PlanRun, RootRun, WaveState};

/// What comes next, and the table of commands; `None` while nothing can be typed that helps.
pub(super) fn next(subject: Subject<'_>) -> Option<String> {
    if let Some(ended) = ended(subject) {
        return Some(ended);
    }
    let blocks: Vec<String> = [sentence(subject), commands(subject)].into_iter().flatten().collect();
    (!blocks.is_empty()).then(|| blocks.join("\n\n"))
}

/// A pull that is over has no next step.
fn ended(subject: Subject<'_>) -> Option<String> {
    let runs = || subject.rollout.runs.values();
    match subject.pull.seen.as_ref()?.state {
        PullState::Open => None,
        PullState::Closed => Some("**Closed.** Nothing is locked by this pull any more.".to_owned()),
        PullState::Merged if runs().all(is_done) => {
            Some("**Merged.** Nothing is locked by this pull any more.".to_owned())
        }
        PullState::Merged => {
            let open: Vec<String> = runs().filter(|run| !is_done(run)).map(|run| root(&run.root)).collect();
            let was = verb(open.len(), "was", "were");
            Some(format!(
                "**Merged before everything was applied.** {} {was} not applied; nothing is locked any more.",
                list(&open, 5)
            ))
        }
    }
}

fn sentence(subject: Subject<'_>) -> Option<String> {
    let rollout = subject.rollout;
    if rollout.runs.values().any(|run| is_pending(&run.plan)) {
        return None;
    }
    let draft = subject.pull.seen.as_ref().is_some_and(|seen| seen.draft);
    let said = first_open(subject).map(|(number, state)| state_of(subject, number, state)).or_else(|| failed(subject));
    let said = said.or_else(|| all_applied(subject))?;
    let draft = if draft { " A draft cannot be applied: mark it as ready first." } else { "" };
    Some(format!("**Next:** {said}{draft}"))
}

/// The first wave that is not done with.
fn first_open<'a>(subject: Subject<'a>) -> Option<(usize, &'a WaveState)> {
    let waves = subject.context.waves.iter().enumerate().map(|(index, state)| (index + 1, state));
    waves.into_iter().find(|(_, state)| !matches!(state, WaveState::Applied | WaveState::NoChanges))
}

fn state_of(subject: Subject<'_>, number: usize, state: &WaveState) -> String {
    let gate = format!("`wave-{number}`");
    let waits = || subject.context.wait(number).unwrap_or("an approval");
    match state {
        WaveState::Waiting(Some(_)) => format!("{gate} waits for {}.", waits()),
        WaveState::Waiting(None) => format!("{gate} is planned again first, then waits for {}.", waits()),
        WaveState::Open(_) => format!("{gate} can be applied: type `apply`."),
        WaveState::After(earlier) => format!("{gate} comes after `wave-{earlier}`."),
        WaveState::Applying => format!("{gate} is being applied; the comment of the apply follows it."),
        WaveState::Refused(why) => format!("{gate} is refused: {why} Review it as it is now, then approve it."),
        WaveState::Planning => {
            let held = subject.rollout.wave(number).find_map(|run| match &run.plan {
                PlanRun::Blocked(blocker) => Some(&blocker.how),
                _ => None,
            });
            let what = match held {
                Some(Hold::Lock) => "is locked by another pull",
                Some(Hold::Unsaved(_)) => "waits for a state to be saved",
                None => "has no plan of every root yet",
            };
            format!("{gate} {what}.")
        }
        WaveState::Failed => failed(subject).unwrap_or_else(|| format!("{gate} failed.")),
        WaveState::Applied | WaveState::NoChanges => format!("{gate} is done."),
    }
}

fn failed(subject: Subject<'_>) -> Option<String> {
    let names: Vec<String> =
        subject.rollout.runs.values().filter(|run| has_failed(run)).map(|run| root(&run.root)).collect();
    let them = verb(names.len(), "it", "them");
    (!names.is_empty()).then(|| format!("fix {} and push, or plan {them} again.", list(&names, 5)))
}

fn all_applied(subject: Subject<'_>) -> Option<String> {
    let runs = || subject.rollout.runs.values();
    if !runs().all(is_done) || !runs().any(RootRun::is_applied) {
        return None;
    }
    let merge = match subject.rollout.config.apply.merge {
        MergePolicy::Auto => "it merges by itself",
        MergePolicy::Manual => "merge it",
    };
    Some(format!("everything is applied; {merge}. What is applied stays locked until then."))
}

/// Applied, or planned with nothing to apply now or later.
pub(super) fn is_done(run: &RootRun) -> bool {
    run.is_applied() || run.is_unchanged()
}

fn commands(subject: Subject<'_>) -> Option<String> {
    let rollout = subject.rollout;
    let mut rows: Vec<(String, String)> = Vec::new();
    if rollout.config.approval != ApprovalSource::Sealed {
        rows.extend(approvals(subject));
    }
    let draft = subject.pull.seen.as_ref().is_some_and(|seen| seen.draft);
    rows.extend(apply(subject).filter(|_| !draft));
    rows.extend(plan_again(subject));
    let applied = rollout.runs.values().any(|run| !matches!(run.apply, ApplyRun::None));
    let applying = rollout.runs.values().any(|run| matches!(run.apply, ApplyRun::Running { .. }));
    let plan_locks = rollout.config.locks == LockMode::Plan && rollout.runs.values().any(RootRun::changes_something);
    if (applied || plan_locks) && !applying {
        rows.push(("unlock".to_owned(), "free the roots that this pull has locked".to_owned()));
    }
    if let Some(path) = changed_path(subject) {
        rows.push((format!("explain {}", quoted_path(&path)), "see why a root is here".to_owned()));
    }
    if rows.is_empty() {
        return None;
    }
    let lines: Vec<String> = rows.iter().map(|(typed, does)| format!("| {} | {does} |", code_cell(typed))).collect();
    Some(format!("| Type | To |\n|---|---|\n{}", lines.join("\n")))
}

/// One row for each wave that waits now and whose digest is known.
fn approvals(subject: Subject<'_>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for (index, state) in subject.context.waves.iter().enumerate() {
        let number = index + 1;
        let digest = match state {
            WaveState::Waiting(Some(digest)) => Some(digest.clone()),
            // Its plans changed after an approval: an approval of what it plans now is the way out.
            WaveState::Refused(_) => subject.rollout.set_digest(number),
            _ => None,
        };
        let Some(digest) = digest else { continue };
        let confirm = match dying(subject, number) {
            0 => String::new(),
            dying => format!(", with a line `confirm ADDRESS` for {}", each(dying)),
        };
        rows.push((format!("approve wave-{number}"), format!("approve exactly {}{confirm}", code(digest.short()))));
    }
    rows.truncate(3);
    rows
}

fn each(dying: usize) -> String {
    if dying == 1 { "the address that dies".to_owned() } else { format!("each of the {dying} addresses that die") }
}

/// Addresses that an approval of the wave must name.
pub(super) fn dying(subject: Subject<'_>, wave: usize) -> usize {
    addresses_dying(subject, wave).len()
}

/// The same by name, with the root in front where several roots destroy the same address.
pub(super) fn addresses_dying(subject: Subject<'_>, wave: usize) -> Vec<String> {
    if !subject.rollout.config.confirm_destructive {
        return Vec::new();
    }
    let plans = subject.rollout.wave(wave).filter_map(|run| Some((&run.root, &run.planned()?.plan)));
    let changes = plans.flat_map(|(root, plan)| plan.changes.iter().map(move |change| (root, change)));
    let dying: Vec<(&RootKey, &str)> = changes
        .filter(|(_, change)| change.action.is_destructive())
        .map(|(root, change)| (root, change.address.as_str()))
        .collect();
    let shared = |address: &str| dying.iter().filter(|(_, other)| *other == address).count() > 1;
    let typed = |(root, address): &(&RootKey, &str)| {
        if shared(address) { format!("{} {address}", quoted(root)) } else { (*address).to_owned() }
    };
    dying.iter().map(typed).collect()
}

/// The `apply` that would be taken now: a wave that lacks a plan stops at itself.
fn apply(subject: Subject<'_>) -> Option<(String, String)> {
    let has_no_plan = |run: &RootRun| matches!(run.plan, PlanRun::Failed { .. } | PlanRun::Dropped { .. });
    let waves = subject.context.waves.len();
    let broken = (1..=waves).find(|number| subject.rollout.wave(*number).any(has_no_plan));
    let whole = broken.map_or(waves, |number| number - 1);
    let ready = |state: &WaveState| matches!(state, WaveState::Waiting(Some(_)) | WaveState::Open(_));
    if !subject.context.waves.iter().take(whole).any(ready) {
        return None;
    }
    Some(match broken {
        None => ("apply".to_owned(), apply_does(subject).to_owned()),
        Some(_) => (format!("apply wave-{whole}"), "apply what comes before the wave that lacks a plan".to_owned()),
    })
}

fn apply_does(subject: Subject<'_>) -> &'static str {
    let left = subject.context.waves.iter().filter(|it| !matches!(it, WaveState::Applied | WaveState::NoChanges));
    if left.count() > 1 { "apply wave by wave, stopping at each gate" } else { "apply it once it is approved" }
}

fn plan_again(subject: Subject<'_>) -> Option<(String, String)> {
    let runs = || subject.rollout.runs.values();
    let failed: Vec<&RootRun> = runs().filter(|run| has_failed(run)).collect();
    let dropped: Vec<&RootRun> = runs().filter(|run| matches!(run.plan, PlanRun::Dropped { .. })).collect();
    if runs().any(|run| matches!(run.apply, ApplyRun::Running { .. })) || runs().all(is_done) {
        return None;
    }
    match (failed.as_slice(), dropped.as_slice()) {
        ([one], _) | ([], [one]) => Some((format!("plan -d {}", quoted(&one.root)), "plan it again".to_owned())),
        ([], []) => runs().all(|run| !run.lacks_plan()).then(|| ("plan".to_owned(), "plan again".to_owned())),
        _ => Some(("plan".to_owned(), format!("plan {} again", count(subject.rollout.runs.len(), "root")))),
    }
}

/// A changed path of the first root, so that the command can be typed as it stands.
fn changed_path(subject: Subject<'_>) -> Option<String> {
    let roots = subject.rollout.waves.iter().flatten();
    let mut reasons = roots.filter_map(|root| subject.rollout.runs.get(root)).flat_map(|run| &run.reasons);
    reasons.find_map(|reason| match reason {
        Reason::Changed(path) | Reason::Module { path, .. } | Reason::File(path) => Some(path.clone()),
        Reason::Reads(_) | Reason::After(_) | Reason::Asked => None,
    })
}
