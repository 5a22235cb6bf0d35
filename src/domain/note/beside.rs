//! What other pulls and other repositories have to do with this one: who plans changes to the same resources, because of whom plans
//! are made again, and who reads from elsewhere. It matches nothing: that is done.

use super::Subject;
use super::markdown::{code, details, html, list};
use super::words::{count, person, root, verb};
use crate::domain::ids::{RootKey, Timestamp};
use crate::domain::neighbour::{Because, Mover, Neighbour, Shared};
use crate::domain::outside::{Outside, OutsideSource};
use crate::domain::plan::Action;
use crate::domain::reach::Class;
use crate::domain::rollout::{PlanRun, RootRun};

/// Lines before the rest is folded.
const MOST: usize = 5;
/// Folded lines before "and N more".
const MOST_FOLDED: usize = 40;
/// Names in a sentence.
const MOST_NAMES: usize = 3;

/// Other open pulls that plan changes to the same resources, deletions first.
pub(super) fn neighbours(subject: Subject<'_>) -> Option<String> {
    let is_open = |shared: &&Shared| {
        let run = subject.rollout.runs.get(&shared.root);
        run.is_some_and(|run| !run.is_applied())
    };
    let mut lines: Vec<(u8, u64, String)> = Vec::new();
    let (mut pulls, mut resources) = (0, 0);
    for neighbour in &subject.pull.neighbours {
        let shared: Vec<&Shared> = neighbour.shared.iter().filter(is_open).collect();
        pulls += usize::from(!shared.is_empty());
        resources += shared.len();
        lines.extend(groups(&shared).iter().map(|group| {
            let deadly = !(group[0].theirs.is_destructive() || group[0].ours.is_destructive());
            (u8::from(deadly), neighbour.pull, same(neighbour, group))
        }));
    }
    if lines.is_empty() {
        return None;
    }
    lines.sort();
    let who = if pulls == 1 { "Another open pull".to_owned() } else { format!("{pulls} other open pulls") };
    let head = format!(
        "**{who} {} the same {}:** whoever applies first locks the root until that pull merges or closes, and the others are planned again on what is there then.",
        verb(pulls, "changes", "change"),
        verb(resources, "resource", "resources"),
    );
    let lines: Vec<String> = lines.into_iter().map(|(.., line)| line).collect();
    Some(format!("{head}\n\n{}", folded(&lines, "more line")))
}

/// Resources of one root to which the same happens on both sides, in the order of the list.
fn groups<'a>(shared: &[&'a Shared]) -> Vec<Vec<&'a Shared>> {
    let mut groups: Vec<Vec<&Shared>> = Vec::new();
    for one in shared {
        let alike = |group: &&mut Vec<&Shared>| {
            (&group[0].root, group[0].theirs, group[0].ours) == (&one.root, one.theirs, one.ours)
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

fn same(neighbour: &Neighbour, group: &[&Shared]) -> String {
    let addresses: Vec<String> = group.iter().map(|shared| code(&shared.address)).collect();
    let draft = if neighbour.draft { " (a draft)" } else { "" };
    let (theirs, ours) = (does(group[0].theirs), does(group[0].ours));
    let we = if theirs == ours { "as this pull does".to_owned() } else { format!("which this pull {ours}") };
    format!(
        "- #{} by {}{draft} {theirs} {} in {}, {we}",
        neighbour.pull,
        person(&neighbour.by),
        list(&addresses, MOST_NAMES),
        root(&group[0].root),
    )
}

fn does(action: Action) -> &'static str {
    match action {
        Action::Delete => "deletes",
        Action::DeleteThenCreate | Action::CreateThenDelete | Action::ForgetThenCreate => "replaces",
        Action::Update => "updates",
        Action::Create => "creates",
        Action::Forget => "forgets",
        Action::Read => "reads",
        Action::Nothing => "moves or imports",
    }
}

/// Plans that are made again although nobody of this pull asked, and because of whom.
pub(super) fn again(subject: Subject<'_>) -> Option<String> {
    let mut groups: Vec<(Stand, String, Vec<&RootRun>)> = Vec::new();
    for run in subject.rollout.runs.values().filter(|run| !run.is_applied()) {
        let (Some(because), Some(stand)) = (&run.again, Stand::of(run)) else { continue };
        let why = why(because, run);
        match groups.iter_mut().find(|(known, text, _)| *known == stand && *text == why) {
            Some((.., runs)) => runs.push(run),
            None => groups.push((stand, why, vec![run])),
        }
    }
    groups.sort_by_key(|(stand, ..)| *stand);
    let sentences: Vec<String> = groups
        .iter()
        .map(|(stand, why, runs)| {
            let names: Vec<String> = runs.iter().map(|run| root(&run.root)).collect();
            let names = list(&names, MOST_NAMES);
            match stand {
                Stand::Coming => format!("**Being planned again:** {names}, because {why}. The plan before no longer counts."),
                Stand::Other => format!("**Planned again:** {names}, because {why}."),
                Stand::Same => {
                    let plans = verb(runs.len(), "The plan is", "The plans are");
                    format!("**Planned again:** {names}, because {why}. {plans} the same as before; what was approved still is.")
                }
            }
        })
        .collect();
    (!sentences.is_empty()).then(|| folded_text(&sentences))
}

/// Where a plan that is made again stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    Coming,
    Other,
    Same,
}

impl Stand {
    fn of(run: &RootRun) -> Option<Self> {
        match &run.plan {
            PlanRun::Queued | PlanRun::Running { .. } => Some(Self::Coming),
            PlanRun::Done(planned) if run.previous.as_ref().is_some_and(|before| before.digest == planned.digest) => {
                Some(Self::Same)
            }
            PlanRun::Done(_) | PlanRun::Failed { .. } => Some(Self::Other),
            _ => None,
        }
    }
}

fn why(because: &Because, run: &RootRun) -> String {
    match because {
        Because::Applied(mover) => applied(mover, run),
        Because::BaseMoved { branch, tip, merged: None } => {
            format!("{} moved to {}", code(branch), code(tip.short()))
        }
        Because::BaseMoved { branch, tip, merged: Some(merge) } => format!(
            "#{} by {} merged and moved {} to {}",
            merge.pull,
            person(&merge.by),
            code(branch),
            code(tip.short())
        ),
    }
}

fn applied(mover: &Mover, run: &RootRun) -> String {
    let at = hour(mover.at);
    let part = if mover.failed { " in part" } else { "" };
    let (who, what) = match &mover.pull {
        None => ("a pull of another repository".to_owned(), format!("applied a root whose state it reads{part}")),
        Some(pull) => {
            let repo = pull.repo.as_deref().unwrap_or_default();
            let place = if repo.is_empty() { String::new() } else { format!(" of {}", code(repo)) };
            let name = if pull.root == run.root && repo.is_empty() { "it".to_owned() } else { root(&pull.root) };
            (format!("{} by {}", pull_of(repo, pull.number), person(&pull.by)), format!("applied {name}{place}{part}"))
        }
    };
    let changed: Vec<String> = read_by(mover, run).iter().map(|output| code(output)).collect();
    let outputs = match changed.len() {
        0 => String::new(),
        1 => format!(" and changed output {}", changed[0]),
        _ => format!(" and changed outputs {}", list(&changed, MOST_NAMES)),
    };
    format!("{who} {what} at {at}{outputs}")
}

/// `#12` here; a pull of another repository links to nothing by itself.
fn pull_of(repo: &str, number: u64) -> String {
    if repo.is_empty() { format!("#{number}") } else { code(&format!("{repo}#{number}")) }
}

/// The outputs that changed and that the root reads; none for the root whose state it is.
fn read_by(mover: &Mover, run: &RootRun) -> Vec<String> {
    if mover.pull.as_ref().is_some_and(|pull| pull.root == run.root && pull.repo.is_none()) {
        return Vec::new();
    }
    let reads: Vec<Option<&Vec<String>>> = run.uses.iter().map(|read| read.outputs.as_ref()).collect();
    let is_read = |output: &String| reads.iter().any(|read| read.is_none_or(|read| read.contains(output)));
    mover.outputs.iter().flatten().filter(|output| is_read(output)).cloned().collect()
}

fn hour(at: Timestamp) -> String {
    format!("{} UTC", at.hour_minute())
}

/// Roots of other repositories that read those that change.
pub(super) fn outside(outside: &Outside) -> String {
    let all = outside.readers;
    let head = format!(
        "**In other repositories**, {} {} {} state:",
        count(all, "root"),
        verb(all, "reads", "read"),
        if outside.sources.iter().any(|it| it.source != outside.sources[0].source) { "their" } else { "its" },
    );
    let lines: Vec<String> = outside.sources.iter().flat_map(readers).collect();
    format!("{head}\n\n{}", folded(&lines, "more line"))
}

fn readers(source: &OutsideSource) -> Vec<String> {
    let class = match source.class {
        Class::Changes => "",
        Class::MayChange => "; may change",
        Class::Unchanged => "; value unchanged",
    };
    if source.names.is_empty() {
        let reads = verb(source.readers, "reads", "read");
        return vec![format!("- {} {reads} {}{class}", count(source.readers, "root"), root(&source.source))];
    }
    let named = |repo: &str, reader: &RootKey| {
        format!("- {} of {} reads {}{class}", root(reader), code(repo), root(&source.source))
    };
    source.names.iter().map(|name| named(&name.repo, &name.root)).collect()
}

/// The first lines, and the rest folded.
fn folded(lines: &[String], word: &str) -> String {
    if lines.len() <= MOST + 1 {
        return lines.join("\n");
    }
    let (open, rest) = lines.split_at(MOST);
    let mut shown: Vec<String> = rest.iter().take(MOST_FOLDED).cloned().collect();
    if rest.len() > MOST_FOLDED {
        shown.push(format!("- and {} more", rest.len() - MOST_FOLDED));
    }
    format!("{}\n\n{}", open.join("\n"), details(&html(&count(rest.len(), word)), &shown.join("\n")))
}

fn folded_text(sentences: &[String]) -> String {
    if sentences.len() <= MOST + 1 {
        return sentences.join("\n\n");
    }
    let (open, rest) = sentences.split_at(MOST);
    let shown: Vec<String> = rest.iter().take(MOST_FOLDED).cloned().collect();
    let more = details(&html(&format!("{} planned again", count(rest.len(), "more group"))), &shown.join("\n\n"));
    format!("{}\n\n{more}", open.join("\n\n"))
}
