//! Keeps a comment within the forge's limit: the largest diffs go first, deletions last, and the note says what went.
//! Counts, failures and what dies are never cut away.

use std::collections::BTreeSet;

use super::diff::Depth;
use super::words::count;
use super::{Context, Subject, details, table};

/// The sender puts a marker of its own around the text.
const RESERVED: usize = 200;
/// A quarter of what forges say they take.
const SHORT: usize = 16_000;

/// How much of each part is written.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// Groups of details that are left out.
    pub(super) dropped: BTreeSet<usize>,
    /// How deep the diffs go.
    pub(super) depth: Depth,
    /// Resources of the by-resource list.
    pub(super) resources: usize,
    /// Roots of the blast radius.
    pub(super) reach: usize,
    /// Rows of roots that neither fail nor delete.
    pub(super) rows: usize,
    /// Lines of what could not be read.
    pub(super) holes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { dropped: BTreeSet::new(), depth: Depth::Attributes, resources: 50, reach: 100, rows: 400, holes: 50 }
    }
}

/// Renders with less and less until it fits.
pub(super) fn within_limit(subject: Subject<'_>, render: impl Fn(&Budget) -> String) -> String {
    let limit = subject.context.limit.saturating_sub(RESERVED);
    let mut budget = Budget::default();
    let mut text = render(&budget);
    let steps: [fn(&mut Budget, Subject<'_>, usize); 7] = [
        |budget, subject, over| drop_details(budget, subject, over, Kind::Harmless),
        |budget, _, _| budget.resources = 10,
        |budget, _, _| (budget.resources, budget.reach, budget.holes) = (3, 20, 5),
        |budget, _, _| budget.rows = 50,
        |budget, _, _| (budget.depth, budget.rows) = (Depth::Lines, 5),
        |budget, subject, over| drop_details(budget, subject, over, Kind::Destructive),
        |budget, _, _| (budget.resources, budget.reach, budget.holes, budget.rows) = (0, 3, 0, 0),
    ];
    for step in steps {
        let length = text.chars().count();
        if length <= limit {
            return text;
        }
        step(&mut budget, subject, length - limit);
        text = render(&budget);
    }
    hard(text, subject.context)
}

/// Which details go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Harmless,
    Destructive,
}

/// Leaves out the largest until `over` characters are saved.
fn drop_details(budget: &mut Budget, subject: Subject<'_>, over: usize, kind: Kind) {
    let groups = details::groups(subject);
    let mut candidates: Vec<(usize, usize)> = groups
        .iter()
        .enumerate()
        .filter(|(index, group)| {
            !budget.dropped.contains(index) && group.is_destructive() == (kind == Kind::Destructive)
        })
        .map(|(index, group)| (group.size(), index))
        .collect();
    candidates.sort_by_key(|(size, index)| (std::cmp::Reverse(*size), *index));
    // The line that says what was cut takes room as well.
    let mut left = over + 400;
    for (size, index) in candidates {
        if left == 0 {
            break;
        }
        budget.dropped.insert(index);
        left = left.saturating_sub(size);
    }
}

/// What was cut, and where the rest is.
pub(super) fn said(subject: Subject<'_>, budget: &Budget) -> Option<String> {
    let mut parts: Vec<String> = details::dropped(subject, budget).into_iter().collect();
    if budget.depth == Depth::Lines {
        parts.push("the attributes of every change".to_owned());
    }
    let reach = subject.rollout.reach.as_ref();
    let lists = [
        (table::plain_rows(subject), budget.rows, "row", "table"),
        (reach.map_or(0, |reach| reach.downstream.len()), budget.reach, "root", "blast radius"),
        (reach.map_or(0, |reach| reach.resources.len()), budget.resources, "resource", "by-resource list"),
        (subject.rollout.holes.len(), budget.holes, "line", "places that could not be read"),
    ];
    let cut = lists.into_iter().filter(|(total, most, ..)| total > most);
    parts.extend(cut.map(|(total, most, word, of)| format!("{} of the {of}", count(total - most, word))));
    if parts.is_empty() {
        return None;
    }
    let url = &subject.context.url;
    Some(format!("**Left out**, because a comment is limited: {}. [All of it]({url})", parts.join("; ")))
}

/// The last resort: whole lines from the top, every open block closed, and a link.
pub(super) fn hard(text: String, context: &Context) -> String {
    let limit = context.limit.saturating_sub(RESERVED);
    if text.chars().count() <= limit {
        return text;
    }
    top(&text, limit, &format!("\n\n**Cut here**, because a comment is limited. [All of it]({})", context.url))
}

/// What a forge takes that found the text too long, whatever it counts: every character may be four bytes.
pub fn shortened(text: &str) -> String {
    if text.chars().count() <= SHORT {
        return text.to_owned();
    }
    let link = text.rsplit_once("[run](").and_then(|(_, rest)| rest.split_once(')')).map(|(url, _)| url);
    let all = link.map(|url| format!(" [All of it]({url})")).unwrap_or_default();
    top(text, SHORT, &format!("\n\n**Cut here**, because the forge takes no longer comment.{all}"))
}

/// Whole lines from the top with no block left open, then the end.
fn top(text: &str, limit: usize, end: &str) -> String {
    let mut left = limit.saturating_sub(end.chars().count());
    let mut kept = Vec::new();
    // Where no block was open: the text before is whole.
    let mut whole = 0;
    let mut fence: Option<String> = None;
    let mut folds = 0_usize;
    for line in text.lines() {
        let length = line.chars().count() + 1;
        if length > left {
            break;
        }
        left -= length;
        kept.push(line);
        let bare = line.trim_start_matches("> ");
        let ticks: String = bare.chars().take_while(|letter| *letter == '`').collect();
        match &fence {
            Some(open) if bare.trim_end() == open.as_str() => fence = None,
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => {
                folds = (folds + bare.matches("<details>").count()).saturating_sub(bare.matches("</details>").count());
            }
            Some(_) => {}
        }
        if fence.is_none() && folds == 0 {
            whole = kept.len();
        }
    }
    kept.truncate(whole);
    kept.join("\n") + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_forge_found_too_long_keeps_its_top_and_its_link() {
        let rows = "- `a` changes ä\n".repeat(3_000);
        let text =
            format!("### 3 delete\n\n<details>\n```diff\n{rows}```\n</details>\n\n[run](https://host.invalid/r/1)");
        let short = shortened(&text);
        assert!(short.starts_with("### 3 delete"), "{short}");
        assert!(short.ends_with("[All of it](https://host.invalid/r/1)"), "{short}");
        assert!(!short.contains("<details>") && !short.contains("```"), "nothing is left open: {short}");
        let plain = shortened(&rows);
        assert!(plain.chars().count() <= SHORT && plain.ends_with("takes no longer comment."), "{}", plain.len());
        assert_eq!(shortened("### 1 update"), "### 1 update");
    }
}
