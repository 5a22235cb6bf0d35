//! The comment of one apply: what is done, what is in flight, what failed and what remains. It follows and never decides.

use super::Subject;
use super::boxes::{dies, failure_text};
use super::headline::plan_numbers;
use super::markdown::{alert, code, cut, fence, list, text};
use super::next::{addresses_dying, is_done};
use super::unsaved;
use super::words::{capital, count, milliseconds, person, root, seconds, verb};
use crate::domain::config::MergePolicy;
use crate::domain::ids::Digest;
use crate::domain::job::{ResourceStage, ResourceState};
use crate::domain::plan::Counts;
use crate::domain::reply::quoted;
use crate::domain::rollout::{Apply, ApplyRun, ApplyStage, RootRun, Scope};

/// The most lines of resources; what failed or runs is always among them.
const MOST_LINES: usize = 40;

/// The whole comment.
pub(super) fn comment(subject: Subject<'_>, apply: &Apply) -> String {
    match &apply.stage {
        ApplyStage::Planning => planning(subject, apply),
        ApplyStage::Applying => applying(subject, apply),
        ApplyStage::Waiting(digest) => waiting(subject, apply, digest),
        ApplyStage::Done => done(subject, apply),
        ApplyStage::Failed => failed(subject, apply),
        ApplyStage::Refused(moved) => refused(subject, apply, moved),
    }
}

fn planning(subject: Subject<'_>, apply: &Apply) -> String {
    let head = format!(
        "**Planning wave {} of {} again** for {} · {}, on what the waves before it left",
        apply.wave,
        last_wave(subject, apply),
        person(&apply.by),
        names(&wave(subject, apply)),
    );
    join([head, footer(subject, apply)])
}

fn applying(subject: Subject<'_>, apply: &Apply) -> String {
    let runs = wave(subject, apply);
    let all: Vec<&ResourceState> = runs.iter().flat_map(|run| resources(run)).collect();
    let done = all.iter().filter(|resource| resource.state == ResourceStage::Done).count();
    let progress =
        if all.is_empty() { "starting".to_owned() } else { format!("{done} of {} done", count(all.len(), "resource")) };
    let head = format!(
        "**Applying wave {} of {}** for {} · {} · {progress}",
        apply.wave,
        last_wave(subject, apply),
        person(&apply.by),
        names(&runs),
    );
    join([head, progress_lists(&runs), footer(subject, apply)])
}

fn waiting(subject: Subject<'_>, apply: &Apply, digest: &Digest) -> String {
    let head = format!("**wave-{} waits for an approval** of {}", apply.wave, code(digest.short()));
    let waits = subject.context.wait(apply.wave).map(|waits| format!(" ({waits})")).unwrap_or_default();
    let mut lines = Vec::new();
    for run in wave(subject, apply) {
        let Some(planned) = run.planned().filter(|_| run.changes_something()) else { continue };
        let dies = dies(&planned.plan).map(|dies| format!("; {dies}")).unwrap_or_default();
        lines.push(format!("- {} · {}{dies}", root(&run.root), plan_numbers(&planned.plan)));
    }
    let typed: Vec<String> = std::iter::once(format!("approve wave-{} {}", apply.wave, digest.short()))
        .chain(addresses_dying(subject, apply.wave).into_iter().map(|named| format!("confirm {named}")))
        .collect();
    let type_this =
        format!("The note above shows the plans. To approve exactly these, type:\n{}", fence("", &typed.join("\n")));
    join([format!("{head}{waits}"), shorten(lines), type_this, footer(subject, apply)])
}

fn done(subject: Subject<'_>, apply: &Apply) -> String {
    let last = last_wave(subject, apply);
    let total = subject.rollout.waves.len();
    let applied: Vec<&RootRun> = subject.rollout.runs.values().filter(|run| run.is_applied()).collect();
    let counts = applied.iter().fold(Counts::default(), |sum, run| sum + applied_counts(run));
    let head = format!("**Applied** {last} of {} for {} · {counts}", count(total, "wave"), person(&apply.by));
    let runs = || subject.rollout.runs.values();
    let unplanned = runs().filter(|run| run.lacks_plan() && !run.is_applied()).count();
    let open = runs().filter(|run| !is_done(run)).count() - unplanned;
    let rest = if unplanned > 0 {
        format!("{} {} no plan yet: see the note above.", count(unplanned, "root"), verb(unplanned, "has", "have"))
    } else if open > 0 {
        format!("{} {} still to be applied: type `apply`.", count(open, "root"), verb(open, "is", "are"))
    } else {
        match subject.rollout.config.apply.merge {
            MergePolicy::Auto => "This pull merges by itself now.".to_owned(),
            MergePolicy::Manual => "Everything is applied: merge this pull.".to_owned(),
        }
    };
    let locks = match applied.len() {
        0 => String::new(),
        number => format!(" What was applied stays locked by this pull until it merges: {}.", count(number, "root")),
    };
    join([head, wave_lines(subject), format!("{rest}{locks} [run]({})", subject.context.url)])
}

fn failed(subject: Subject<'_>, apply: &Apply) -> String {
    let runs = wave(subject, apply);
    let all: Vec<&ResourceState> = runs.iter().flat_map(|run| resources(run)).collect();
    let number = |stage| all.iter().filter(|resource| resource.state == stage).count();
    let parts = [(number(ResourceStage::Done), "done"), (number(ResourceStage::Failed), "failed")];
    let mut parts: Vec<String> =
        parts.into_iter().filter(|it| it.0 > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let left = number(ResourceStage::NotApplied) + number(ResourceStage::Pending);
    if left > 0 {
        parts.push(format!("{left} not applied"));
    }
    let broken: Vec<&RootRun> = runs.iter().copied().filter(|run| super::headline::has_failed(run)).collect();
    let broken_names = if broken.is_empty() { names(&runs) } else { names(&broken) };
    let parts = parts.iter().map(|part| format!(" · {part}")).collect::<String>();
    let head = format!("**Wave {} failed** · {broken_names}{parts}", apply.wave);
    let error = |run: &&&RootRun| own_error(run, &subject.context.url).into_iter().chain(unsaved::steps(subject, run));
    let errors: Vec<String> = broken.iter().flat_map(|run| error(&run).collect::<Vec<_>>()).collect();
    join([head, errors.join("\n\n"), progress_lists(&runs), way_out(&broken), footer(subject, apply)])
}

/// The run's own error, which belongs to none of its resources.
fn own_error(run: &RootRun, url: &str) -> Option<String> {
    match (&run.apply, &run.plan) {
        (ApplyRun::Failed { failure, .. }, _) if !failure.summary.is_empty() => {
            Some(alert("WARNING", &failure_text(run, "apply", failure, url)))
        }
        (_, crate::domain::rollout::PlanRun::Failed { failure, .. }) => {
            Some(alert("WARNING", &failure_text(run, "plan", failure, url)))
        }
        _ => None,
    }
}

fn way_out(broken: &[&RootRun]) -> String {
    let open: Vec<&&RootRun> = broken.iter().filter(|run| !unsaved::is_unsaved(run)).collect();
    let roots: String = open.iter().take(3).map(|run| format!(" -d {}", quoted(&run.root))).collect();
    let typed = if open.len() > 3 { "plan".to_owned() } else { format!("plan{roots}") };
    let locked = match broken {
        [] => "What is locked stays locked by this pull.".to_owned(),
        _ => format!("{} {} locked by this pull.", names(broken), verb(broken.len(), "stays", "stay")),
    };
    if open.is_empty() && !broken.is_empty() {
        return format!("What applied stays applied. {locked}");
    }
    format!("What applied stays applied. Fix and push, or type {} to plan what is left. {locked}", code(&typed))
}

fn refused(subject: Subject<'_>, apply: &Apply, moved: &str) -> String {
    let head = format!("**Not applied**: the plans of `wave-{}` changed after the approval.", apply.wave);
    let way = format!("Review the note above, then type `approve wave-{}`.", apply.wave);
    join([head, moved.to_owned(), way, footer(subject, apply)])
}

/// Lists of resources, by root when there are several.
fn progress_lists(runs: &[&RootRun]) -> String {
    let with: Vec<&&RootRun> = runs.iter().filter(|run| !resources(run).is_empty()).collect();
    let each = (MOST_LINES / with.len().max(1)).max(3);
    let mut blocks = Vec::new();
    for run in &with {
        let lines = resource_lines(resources(run), each);
        blocks.push(if with.len() == 1 { lines } else { format!("{}:\n\n{lines}", root(&run.root)) });
    }
    blocks.join("\n\n")
}

/// What failed and what runs always has its line; the rest as far as there is room.
fn resource_lines(resources: &[ResourceState], most: usize) -> String {
    let urgent = |resource: &ResourceState| matches!(resource.state, ResourceStage::Failed | ResourceStage::Applying);
    let mut room = most.saturating_sub(resources.iter().filter(|resource| urgent(resource)).count());
    let mut hidden = 0;
    let mut lines = Vec::new();
    for resource in resources {
        if urgent(resource) {
            lines.push(resource_line(resource));
        } else if room > 0 {
            room -= 1;
            lines.push(resource_line(resource));
        } else {
            hidden += 1;
        }
    }
    if hidden > 0 {
        lines.push(format!("- and {hidden} more"));
    }
    lines.join("\n")
}

fn resource_line(resource: &ResourceState) -> String {
    let deposed = resource.deposed.as_ref().map(|key| format!(" (deposed {})", code(key))).unwrap_or_default();
    let name = format!("- {}{deposed}", code(&resource.address));
    let time = if resource.seconds > 0 { format!(" {}", seconds(resource.seconds)) } else { String::new() };
    match resource.state {
        ResourceStage::Done => format!("{name} done"),
        ResourceStage::Pending => format!("{name} waiting"),
        ResourceStage::NotApplied => format!("{name} not applied; it will be in the next plan"),
        ResourceStage::Failed => {
            let error = resource.error.as_deref().unwrap_or("no reason was given");
            format!("{name} failed: {}", code(&cut(error.trim(), 500)))
        }
        ResourceStage::Applying if resource.stages.is_empty() => format!("{name} in flight{time}"),
        ResourceStage::Applying => {
            let stages: Vec<String> = resource
                .stages
                .iter()
                .map(|stage| format!("{} {}", text(&stage.what), stage_word(stage.state)))
                .collect();
            format!("{name} {}{time}", stages.join(", "))
        }
    }
}

fn stage_word(stage: ResourceStage) -> &'static str {
    match stage {
        ResourceStage::Pending => "waiting",
        ResourceStage::Applying => "in flight",
        ResourceStage::Done => "done",
        ResourceStage::Failed => "failed",
        ResourceStage::NotApplied => "not applied",
    }
}

/// One line for each wave that applied something.
fn wave_lines(subject: Subject<'_>) -> String {
    let mut lines = Vec::new();
    for number in 1..=subject.rollout.waves.len() {
        let applied: Vec<&RootRun> = subject.rollout.wave(number).filter(|run| run.is_applied()).collect();
        if applied.is_empty() {
            continue;
        }
        let counts = applied.iter().fold(Counts::default(), |sum, run| sum + applied_counts(run));
        let took = applied.iter().map(|run| took(run)).max().unwrap_or_default();
        lines.push(format!("- wave {number} · {} · {counts} · {}", names(&applied), milliseconds(took)));
    }
    shorten(lines)
}

/// What was, what comes, and where to look.
fn footer(subject: Subject<'_>, apply: &Apply) -> String {
    let mut parts = Vec::new();
    for number in 1..=subject.rollout.waves.len() {
        let runs: Vec<&RootRun> = subject.rollout.wave(number).collect();
        if number < apply.wave {
            let applied: Vec<&RootRun> = runs.into_iter().filter(|run| run.is_applied()).collect();
            if !applied.is_empty() {
                let took = applied.iter().map(|run| took(run)).max().unwrap_or_default();
                parts.push(format!("wave {number} applied {} in {}", names(&applied), milliseconds(took)));
            }
        } else if number > apply.wave && number <= last_wave(subject, apply) {
            let again: Vec<&RootRun> = runs.into_iter().filter(|run| run.reads_unknown()).collect();
            if !again.is_empty() {
                let plans = verb(again.len(), "plans", "plan");
                let after = if number == apply.wave + 1 { "this" } else { "what it reads" };
                parts.push(format!("wave {number} {} {plans} again after {after}", names(&again)));
            }
        }
    }
    let hidden = parts.len().saturating_sub(4);
    parts.drain(..hidden);
    parts.push(format!("[live]({})", subject.context.url));
    capital(&parts.join(" · "))
}

fn wave<'a>(subject: Subject<'a>, apply: &Apply) -> Vec<&'a RootRun> {
    let runs = subject.rollout.wave(apply.wave);
    runs.filter(|run| run.changes_something() || !matches!(run.apply, ApplyRun::None) || run.lacks_plan()).collect()
}

fn last_wave(subject: Subject<'_>, apply: &Apply) -> usize {
    let total = subject.rollout.waves.len();
    match &apply.scope {
        Scope::UpTo(wave) => (*wave).min(total),
        Scope::All => total,
        Scope::Roots(roots) => roots.iter().filter_map(|root| subject.rollout.wave_of(root)).max().unwrap_or(total),
    }
}

fn names(runs: &[&RootRun]) -> String {
    if runs.len() > 3 {
        return count(runs.len(), "root");
    }
    list(&runs.iter().map(|run| root(&run.root)).collect::<Vec<_>>(), 3)
}

fn resources(run: &RootRun) -> &[ResourceState] {
    match &run.apply {
        ApplyRun::None => &[],
        ApplyRun::Running { resources, .. }
        | ApplyRun::Applied { resources, .. }
        | ApplyRun::Failed { resources, .. } => resources,
    }
}

fn applied_counts(run: &RootRun) -> Counts {
    match &run.apply {
        ApplyRun::Applied { counts, .. } => *counts,
        _ => Counts::default(),
    }
}

fn took(run: &RootRun) -> i64 {
    match &run.apply {
        ApplyRun::Applied { took_ms, .. } => *took_ms,
        _ => 0,
    }
}

fn shorten(mut lines: Vec<String>) -> String {
    let hidden = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if hidden > 0 {
        lines.push(format!("- and {hidden} more"));
    }
    lines.join("\n")
}

fn join<const N: usize>(blocks: [String; N]) -> String {
    blocks.into_iter().filter(|block| !block.is_empty()).collect::<Vec<_>>().join("\n\n")
}
