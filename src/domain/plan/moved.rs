//! What differs between two plans of one root, as the end of a sentence. It says what moved, never a value.

use std::collections::BTreeMap;

use super::{Change, Plan};
use crate::domain::note::markdown::code;

/// The most differences that are named one by one.
const NAMED: usize = 5;

/// "`a.b` also changes `size`; `c.d` is no longer changed". Never empty: what cannot be named is said to lie elsewhere.
pub fn moved(before: &Plan, now: &Plan) -> String {
    let mut parts = Vec::new();
    let old: BTreeMap<_, _> = before.changes.iter().map(|change| (key(change), change)).collect();
    let new: BTreeMap<_, _> = now.changes.iter().map(|change| (key(change), change)).collect();
    for (key, change) in &new {
        match old.get(key) {
            None => parts.push(format!("{} is now {}", code(&change.address), participle(change))),
            Some(was) if was != change => parts.push(changed(was, change)),
            Some(_) => {}
        }
    }
    parts.extend(
        old.iter()
            .filter(|(key, _)| !new.contains_key(*key))
            .map(|(_, was)| format!("{} no longer changes", code(&was.address))),
    );
    if before.outputs != now.outputs {
        parts.push("outputs change differently".to_owned());
    }
    if parts.is_empty() {
        return "something that the plan does not show (a variable, the source or the tool)".to_owned();
    }
    let more = parts.len().saturating_sub(NAMED);
    parts.truncate(NAMED);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    parts.join("; ")
}

fn key(change: &Change) -> (&str, Option<&str>) {
    (&change.address, change.deposed.as_deref())
}

fn participle(change: &Change) -> String {
    match change.action.word() {
        "delete" => "deleted".to_owned(),
        "replace" => "replaced".to_owned(),
        "update" => "updated".to_owned(),
        "create" => "created".to_owned(),
        "forget" => "forgotten".to_owned(),
        "read" => "read".to_owned(),
        _ => "moved".to_owned(),
    }
}

fn changed(was: &Change, now: &Change) -> String {
    if was.action != now.action {
        return format!("{} is now {} instead of {}", code(&now.address), participle(now), participle(was));
    }
    let attributes: Vec<String> = now
        .attributes
        .iter()
        .filter(|attribute| !was.attributes.contains(attribute))
        .map(|attribute| code(&attribute.path))
        .collect();
    if attributes.is_empty() {
        let gone: Vec<String> = was
            .attributes
            .iter()
            .filter(|old| !now.attributes.iter().any(|new| new.path == old.path))
            .map(|old| code(&old.path))
            .collect();
        return match gone.is_empty() {
            true => format!("{} changes differently", code(&now.address)),
            false => format!("{} no longer changes {}", code(&now.address), gone.join(", ")),
        };
    }
    format!("{} also changes {}", code(&now.address), attributes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::plan::{Action, AttributeChange, Shown};

    fn change(address: &str, action: Action, attributes: &[(&str, &str)]) -> Change {
        Change {
            address: address.to_owned(),
            resource_type: "x".to_owned(),
            action,
            deposed: None,
            previous_address: None,
            importing: false,
            replaced_by: Vec::new(),
            reason: None,
            attributes: attributes
                .iter()
                .map(|(path, after)| AttributeChange {
                    path: (*path).to_owned(),
                    before: Shown::Absent,
                    after: Shown::Value((*after).to_owned()),
                })
                .collect(),
        }
    }

    fn plan(changes: Vec<Change>) -> Plan {
        Plan { changes, ..Plan::default() }
    }

    #[test]
    fn what_moved_is_named() {
        let update = |attributes: &[(&str, &str)]| plan(vec![change("a.b", Action::Update, attributes)]);
        let cases = [
            (update(&[("size", "1")]), update(&[("size", "1"), ("class", "2")]), "`a.b` also changes `class`"),
            (update(&[("size", "1"), ("class", "2")]), update(&[("size", "1")]), "`a.b` no longer changes `class`"),
            (update(&[]), plan(vec![change("a.b", Action::Delete, &[])]), "`a.b` is now deleted instead of updated"),
            (update(&[]), plan(vec![]), "`a.b` no longer changes"),
            (plan(vec![]), plan(vec![change("c.d", Action::Create, &[])]), "`c.d` is now created"),
            (update(&[]), update(&[]), "something that the plan does not show (a variable, the source or the tool)"),
        ];
        for (before, now, expected) in cases {
            assert_eq!(moved(&before, &now), expected);
        }
    }
}
