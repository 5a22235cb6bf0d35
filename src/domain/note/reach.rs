//! The blast radius and the resources downstream, in the forms of the spec, and what could not be read. It walks
//! nothing: the walk is done.

use super::cut::Budget;
use super::markdown::{code, details, html, list, text};
use super::words::{count, root, verb};
use super::{Subject, beside};
use crate::domain::estate::Edge;
use crate::domain::reach::{Class, Downstream, Reach, Reached, ResourceReach, Through};
use crate::domain::rollout::Rollout;

/// Names of changed roots before "and N more".
const MOST_NAMES: usize = 10;

/// Reached resources of one resource before "and N more".
const MOST_REACHED: usize = 15;

/// From here on, roots whose value stays as it is are folded.
const MOST_UNCHANGED: usize = 5;

/// `**Blast radius:** …`; left out when nothing reads a changed root.
pub(super) fn radius(subject: Subject<'_>, budget: &Budget) -> Option<String> {
    let reach = subject.rollout.reach.as_ref()?;
    let here = here(subject, reach, budget);
    let Some(outside) = &reach.outside else { return here };
    let alone = || {
        let changed = count(reach.changed.len(), "root");
        let verb = verb(reach.changed.len(), "changes", "change");
        let whose = if reach.changed.len() == 1 { "its" } else { "their" };
        format!("**Blast radius:** {changed} {verb} ({}), and no other root here reads {whose} state.", names(reach))
    };
    Some(format!("{}\n\n{}", here.unwrap_or_else(alone), beside::outside(outside)))
}

fn here(subject: Subject<'_>, reach: &Reach, budget: &Budget) -> Option<String> {
    if reach.downstream.is_empty() {
        return among_themselves(subject.rollout, reach);
    }
    let unchanged = reach.downstream.iter().filter(|down| is_unchanged(down)).count();
    let fold = unchanged > MOST_UNCHANGED;
    let (folded, open): (Vec<&Downstream>, Vec<&Downstream>) =
        reach.downstream.iter().partition(|down| fold && is_unchanged(down));
    let mut blocks = vec![radius_line(reach)];
    if !open.is_empty() {
        blocks.push(list_of(subject.rollout, &open, budget.reach));
    }
    if !folded.is_empty() {
        let summary = format!("{} whose values stay as they are", count(folded.len(), "more root"));
        blocks.push(details(&html(&summary), &list_of(subject.rollout, &folded, budget.reach)));
    }
    Some(blocks.join("\n\n"))
}

/// The roots that change read one another, and nobody else reads them: the radius is those roots.
fn among_themselves(rollout: &Rollout, reach: &Reach) -> Option<String> {
    let within = |edge: &Edge| reach.changed.contains(&edge.reader) && reach.changed.contains(&edge.source);
    if !rollout.edges.iter().any(within) {
        return None;
    }
    let changed = count(reach.changed.len(), "root");
    let verb = verb(reach.changed.len(), "changes", "change");
    Some(format!("**Blast radius:** {changed} {verb} ({}), and no other root reads their state.", names(reach)))
}

fn names(reach: &Reach) -> String {
    let names: Vec<String> = reach.changed.iter().map(root).collect();
    if names.len() > MOST_NAMES {
        format!("{} and {} more", names[..MOST_NAMES].join(", "), names.len() - MOST_NAMES)
    } else {
        names.join(", ")
    }
}

fn radius_line(reach: &Reach) -> String {
    let names = names(reach);
    let (changed, down) = (reach.changed.len(), reach.downstream.len());
    let by_order = reach.downstream.iter().filter(|down| down.by_order).count();
    let them = match by_order {
        0 => format!("{} their state", verb(down, "reads", "read")),
        _ if by_order == down => format!("{} after them", verb(down, "comes", "come")),
        _ => "read their state or come after them".to_owned(),
    };
    format!(
        "**Blast radius:** {} {} ({names}), and {} downstream {them}:",
        count(changed, "root"),
        verb(changed, "changes", "change"),
        count(down, "root")
    )
}

fn list_of(rollout: &Rollout, downstream: &[&Downstream], most: usize) -> String {
    let mut lines: Vec<String> = downstream.iter().take(most).map(|down| entry(rollout, down)).collect();
    if downstream.len() > most {
        lines.push(format!("- and {}", count(downstream.len() - most, "more root")));
    }
    lines.join("\n")
}

fn entry(rollout: &Rollout, down: &Downstream) -> String {
    let reads: Vec<String> = down.reads.iter().map(root).collect();
    let (reads, how) = (list(&reads, 5), if down.by_order { "comes after" } else { "reads" });
    let said = match (down.by_order, down.class, down.planned) {
        (true, _, true) | (false, Class::Changes, true) => String::new(),
        (_, Class::Unchanged, false) => "; value unchanged, not planned".to_owned(),
        (true, _, false) | (false, Class::Changes, false) => "; not planned in this run".to_owned(),
        (false, Class::Unchanged, true) => "; value unchanged".to_owned(),
        (false, Class::MayChange, true) => format!("; may change{}", doubt(rollout, down)),
        (false, Class::MayChange, false) => format!("; may change{}, not planned in this run", doubt(rollout, down)),
    };
    format!("- {} (wave {}) {how} {reads}{said}", root(&down.root), down.wave)
}

/// Why a value may change, when the edges tell.
fn doubt(rollout: &Rollout, down: &Downstream) -> &'static str {
    let mut edges =
        rollout.edges.iter().filter(|edge| edge.reader == down.root && down.reads.contains(&edge.source)).peekable();
    if edges.peek().is_none() {
        return "";
    }
    if edges.any(|edge| edge.outputs.is_none()) {
        ": the whole output object is read"
    } else {
        ": known only after the apply"
    }
}

fn is_unchanged(down: &Downstream) -> bool {
    down.class == Class::Unchanged && !down.by_order
}

/// `**By resource:** …`; left out when no resource reaches another.
pub(super) fn by_resource(subject: Subject<'_>, budget: &Budget) -> Option<String> {
    let reach = subject.rollout.reach.as_ref()?;
    let all: Vec<&ResourceReach> = reach.resources.iter().filter(|it| !it.reaches.is_empty()).collect();
    if all.is_empty() {
        return None;
    }
    let mut lines: Vec<String> = all.iter().take(budget.resources).map(|resource| reaching(resource)).collect();
    let more = all.len().saturating_sub(budget.resources);
    if more > 0 {
        lines.push(format!("- and {} {} others", count(more, "more resource"), verb(more, "reaches", "reach")));
    }
    Some(format!("**By resource:**\n\n{}", lines.join("\n")))
}

fn reaching(resource: &ResourceReach) -> String {
    let head =
        format!("- {} in {} ({}) reaches:", code(&resource.address), root(&resource.root), resource.action.word());
    let shown = resource.reaches.iter().take(MOST_REACHED).map(|reached| format!("  - {}", of(resource, reached)));
    let mut lines: Vec<String> = std::iter::once(head).chain(shown).collect();
    if resource.reaches.len() > MOST_REACHED {
        lines.push(format!("  - and {} more", resource.reaches.len() - MOST_REACHED));
    }
    lines.join("\n")
}

fn of(from: &ResourceReach, reached: &Reached) -> String {
    let address = code(&reached.address);
    let place = if reached.root == from.root { String::new() } else { format!(" in {}", root(&reached.root)) };
    let through = reached.through.as_ref().map(through).unwrap_or_default();
    let unplanned = if reached.planned { "" } else { " · not planned in this run" };
    format!("{address}{place}{through}{unplanned}")
}

fn through(through: &Through) -> String {
    let what = match &through.output {
        Some(output) => format!("output {}", code(output)),
        None => "the whole output object".to_owned(),
    };
    let class = match through.class {
        Class::Changes => "",
        Class::MayChange => " · may change",
        Class::Unchanged => " · value unchanged",
    };
    format!(", through {what} of {}{class}", root(&through.root))
}

/// What could not be read or is not planned, folded.
pub(super) fn holes(rollout: &Rollout, budget: &Budget) -> Option<String> {
    if rollout.holes.is_empty() {
        return None;
    }
    let total = rollout.holes.len();
    let mut lines: Vec<String> = Vec::new();
    for hole in rollout.holes.iter().take(budget.holes) {
        let place = if hole.line == 0 { hole.path.clone() } else { format!("{}:{}", hole.path, hole.line) };
        lines.push(format!("- {}: {}", code(&place), text(&hole.what)));
    }
    if total > budget.holes {
        lines.push(format!("- and {} more", total - budget.holes));
    }
    Some(details(&html(&format!("Could not be read, or is not planned: {}", count(total, "place"))), &lines.join("\n")))
}
