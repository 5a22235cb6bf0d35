//! A plan as lines of a `diff` block, in Terraform's own signs. The caller puts the fence around it.

use super::markdown::cut;
use super::words::count;
use crate::domain::plan::{Action, AttributeChange, Change, OutputChange, Plan, Shown};

/// The most attributes of one resource.
const MOST_ATTRIBUTES: usize = 40;

/// The most resources in full; deletions and replacements always have their line.
const MOST_RESOURCES: usize = 150;

/// The widest name that others are lined up with.
const WIDEST: usize = 24;

/// The most characters of one value: the page of the run has more.
const VALUE: usize = 160;

/// How much of each resource is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// With what changes inside.
    Attributes,
    /// Only its line.
    Lines,
}

/// The whole plan.
pub(super) fn lines(plan: &Plan, depth: Depth) -> String {
    let mut lines = Vec::new();
    let mut hidden = 0;
    for (index, change) in plan.changes.iter().enumerate() {
        if index >= MOST_RESOURCES && !change.action.is_destructive() {
            hidden += 1;
            continue;
        }
        lines.push(resource(change));
        if depth == Depth::Attributes {
            lines.extend(attributes(change));
        }
    }
    if hidden > 0 {
        lines.push(format!("    … and {} that nothing deletes", count(hidden, "more resource")));
    }
    lines.extend(outputs(&plan.outputs));
    if !plan.drift.is_empty() {
        let shown: Vec<&str> = plan.drift.iter().take(5).map(String::as_str).collect();
        let more = plan.drift.len().saturating_sub(5);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("    # changed outside: {}{more}", shown.join(", ")));
    }
    lines.join("\n")
}

fn resource(change: &Change) -> String {
    let deposed = change.deposed.as_ref().map(|key| format!(" (deposed {key})")).unwrap_or_default();
    let address = format!("{}{deposed}", one_line(&change.address));
    let notes = notes(change);
    if notes.is_empty() {
        return format!("{}{address}", sign(change.action));
    }
    format!("{}{address}  # {}", sign(change.action), notes.join(", "))
}

fn sign(action: Action) -> &'static str {
    match action {
        Action::Delete => "-   ",
        Action::DeleteThenCreate => "-/+ ",
        Action::CreateThenDelete => "+/- ",
        Action::ForgetThenCreate | Action::Create => "+   ",
        Action::Update => "!   ",
        Action::Forget | Action::Read | Action::Nothing => "    ",
    }
}

fn notes(change: &Change) -> Vec<String> {
    let mut notes = Vec::new();
    if change.action.is_replacement() && !change.replaced_by.is_empty() {
        let forces = if change.replaced_by.len() == 1 { "forces" } else { "force" };
        notes.push(format!("{} {forces} replacement", one_line(&change.replaced_by.join(", "))));
    }
    match change.action {
        Action::ForgetThenCreate => notes.push("the old object is left behind".to_owned()),
        Action::Forget => notes.push("left behind, no longer managed".to_owned()),
        Action::Read => notes.push("read during the apply".to_owned()),
        _ => {}
    }
    if let Some(from) = &change.previous_address {
        notes.push(format!("moved from {}", one_line(from)));
    }
    if change.importing {
        notes.push("imported".to_owned());
    }
    notes
}

fn attributes(change: &Change) -> Vec<String> {
    if matches!(change.action, Action::Delete | Action::Forget | Action::Read | Action::Nothing) {
        return Vec::new();
    }
    let shown = &change.attributes[..change.attributes.len().min(MOST_ATTRIBUTES)];
    let width = shown.iter().map(|attribute| width(&attribute.path)).filter(|it| *it <= WIDEST).max().unwrap_or(0);
    let mut lines: Vec<String> = shown.iter().map(|attribute| of_attribute(attribute, width)).collect();
    if change.attributes.len() > shown.len() {
        lines.push(format!("      … and {}", count(change.attributes.len() - shown.len(), "more attribute")));
    }
    lines
}

fn of_attribute(attribute: &AttributeChange, width: usize) -> String {
    value(&attribute.path, &attribute.before, &attribute.after, width)
}

fn outputs(outputs: &[OutputChange]) -> Vec<String> {
    if outputs.is_empty() {
        return Vec::new();
    }
    let shown = &outputs[..outputs.len().min(MOST_ATTRIBUTES)];
    let wide = shown.iter().map(|output| width(&output.name)).filter(|it| *it <= WIDEST).max().unwrap_or(0);
    let mut lines = vec!["    outputs".to_owned()];
    lines.extend(shown.iter().map(|output| value(&output.name, &output.before, &output.after, wide)));
    if outputs.len() > shown.len() {
        lines.push(format!("      … and {}", count(outputs.len() - shown.len(), "more output")));
    }
    lines
}

fn value(name: &str, before: &Shown, after: &Shown, wide: usize) -> String {
    let sign = match (before, after) {
        (Shown::Absent, _) => '+',
        (_, Shown::Absent) => '-',
        _ => '!',
    };
    let text = match (before, after) {
        (Shown::Absent, only) | (only, Shown::Absent) => shown(only),
        (Shown::Sensitive, Shown::Sensitive) => "(sensitive)".to_owned(),
        _ => format!("{} -> {}", shown(before), shown(after)),
    };
    let name = one_line(name);
    let gap = " ".repeat(wide.saturating_sub(width(&name)));
    format!("{sign}     {name}: {gap}{text}")
}

fn shown(value: &Shown) -> String {
    match value {
        Shown::Absent => "(none)".to_owned(),
        Shown::Value(text) => one_line(&cut(text, VALUE)),
        Shown::Sensitive => "(sensitive)".to_owned(),
        Shown::Unknown => "(known after apply)".to_owned(),
    }
}

/// One line of the block stays one line, whatever an address holds.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

fn width(text: &str) -> usize {
    text.chars().count()
}
