//! The folded diffs. Roots whose change is the same share one; a root that deletes or replaces something always has
//! its own.

use super::Subject;
use super::cut::Budget;
use super::diff::{self, Depth};
use super::headline::plan_numbers;
use super::markdown::{code, details as fold, fence, html, list};
use super::table::{in_order, wave_digest};
use super::words::{count, root};
use crate::domain::plan::Plan;
use crate::domain::rollout::RootRun;

/// Roots that change alike.
pub(super) struct Group<'a> {
    /// Its wave and runs, the first one shown.
    members: Vec<(Option<usize>, &'a RootRun)>,
    plan: &'a Plan,
    body: String,
}

impl Group<'_> {
    /// How many roots.
    pub(super) fn roots(&self) -> usize {
        self.members.len()
    }

    /// Whether something that exists dies.
    pub(super) fn is_destructive(&self) -> bool {
        self.plan.is_destructive()
    }

    /// How large its block is, about.
    pub(super) fn size(&self) -> usize {
        self.body.chars().count() + 200
    }
}

/// All blocks that the budget leaves.
pub(super) fn details(subject: Subject<'_>, budget: &Budget) -> Option<String> {
    let groups = groups(subject);
    let shown = groups.iter().enumerate().filter(|(index, _)| !budget.dropped.contains(index));
    let blocks: Vec<String> = shown.map(|(_, group)| block(subject, group, budget.depth)).collect();
    (!blocks.is_empty()).then(|| blocks.join("\n\n"))
}

/// The groups in the order in which they are read: what dies, then by wave and name.
pub(super) fn groups(subject: Subject<'_>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (wave, run) in in_order(subject) {
        let Some(planned) = run.planned().filter(|_| run.changes_something()) else { continue };
        let body = diff::lines(&planned.plan, Depth::Attributes);
        let alike = groups
            .iter_mut()
            .find(|group| !planned.plan.is_destructive() && !group.is_destructive() && group.body == body);
        match alike {
            Some(group) => group.members.push((wave, run)),
            None => groups.push(Group { members: vec![(wave, run)], plan: &planned.plan, body }),
        }
    }
    groups.sort_by_key(|group| rank(group.plan));
    groups
}

/// Deletions first, then replacements, updates, creations and the rest.
fn rank(plan: &Plan) -> u8 {
    let counts = plan.counts();
    let present = [counts.delete, counts.replace, counts.update, counts.create];
    let first = present.iter().position(|number| *number > 0);
    first.and_then(|index| u8::try_from(index).ok()).unwrap_or(4)
}

fn block(subject: Subject<'_>, group: &Group<'_>, depth: Depth) -> String {
    let (wave, first) = group.members[0];
    let numbers = html(&plan_numbers(group.plan));
    let body = match depth {
        Depth::Attributes => group.body.clone(),
        Depth::Lines => diff::lines(group.plan, Depth::Lines),
    };
    let diff = fence("diff", &body);
    if group.members.len() == 1 {
        let name = html(&first.root.to_string());
        let digest = wave.and_then(|number| wave_digest(subject, number));
        let digest = digest.map(|digest| format!(" · {}", digest.trim_matches('`'))).unwrap_or_default();
        return fold(&format!("<b>{name}</b> · {numbers}{digest}"), &diff);
    }
    let names: Vec<String> = group.members.iter().map(|(_, run)| root(&run.root)).collect();
    let head = format!("The same in each of {}:", list(&names, 40));
    fold(&format!("<b>{}</b> · {numbers} in each", count(group.members.len(), "root")), &format!("{head}\n\n{diff}"))
}

/// What the budget left out, in words.
pub(super) fn dropped(subject: Subject<'_>, budget: &Budget) -> Option<String> {
    if budget.dropped.is_empty() {
        return None;
    }
    let groups = groups(subject);
    let cut = || budget.dropped.iter().filter_map(|index| groups.get(*index));
    let roots: usize = cut().map(Group::roots).sum();
    let mut names: Vec<String> =
        cut().flat_map(|group| &group.members).map(|(_, run)| code(&run.root.to_string())).collect();
    names.sort();
    Some(format!("the diff of {} ({})", count(roots, "root"), list(&names, 5)))
}
