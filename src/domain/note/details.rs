//! The folded diffs. Roots whose change is the same share one; a root that deletes or replaces something always has
//! its own.

use super::Subject;
use super::cut::Budget;
use super::diff::{self, Depth};
use super::headline::plan_numbers;
use super::markdown::{code, details as fold, fence, html, list};
use super::table::{in_order, wave_digest};
use super::words::{count, root, verb};
use crate::domain::plan::Plan;
use crate::domain::rollout::RootRun;

/// Roots that change alike.
pub(super) struct Group<'a> {
    /// Its wave and runs, the first one shown.
    members: Vec<(Option<usize>, &'a RootRun)>,
    plan: &'a Plan,
    body: String,
    /// The body with the names of its root taken out.
    normal: String,
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
        let normal = normal(&body, run);
        let alike = groups
            .iter_mut()
            .find(|group| !planned.plan.is_destructive() && !group.is_destructive() && group.normal == normal);
        match alike {
            Some(group) => group.members.push((wave, run)),
            None => groups.push(Group { members: vec![(wave, run)], plan: &planned.plan, body, normal }),
        }
    }
    groups.sort_by_key(|group| rank(group.plan));
    groups
}

/// Roots made from one mould differ in their own names: the parts of the directory and the workspace.
fn normal(body: &str, run: &RootRun) -> String {
    let workspace = Some(run.root.workspace()).filter(|name| *name != "default");
    let names = run.root.dir().split('/').rev().chain(workspace).enumerate();
    let long_enough = names.filter(|(_, name)| name.chars().count() >= 3);
    long_enough.fold(body.to_owned(), |text, (index, name)| text.replace(name, &format!("\u{0}{index}\u{0}")))
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
    let alike = group.members.iter().all(|(_, run)| {
        run.planned().is_some_and(|planned| diff::lines(&planned.plan, Depth::Attributes) == group.body)
    });
    let head = if alike {
        format!("The same in each of {}:", list(&names, 40))
    } else {
        format!(
            "Shown for {}; {} {} from it only in {} own name:",
            names[0],
            list(&names[1..], 40),
            verb(names.len() - 1, "differs", "differ"),
            verb(names.len() - 1, "its", "their")
        )
    };
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
