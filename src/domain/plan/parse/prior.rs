//! Who depends on what dies, as the state before the plan recorded it: the configuration may hold neither of them any more. It decides
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::domain::plan::{Action, Change, without_keys};

/// The managed resources that depend on each deleted one; addresses without instance keys.
pub(super) fn dependents(plan: &Value, changes: &[Change]) -> BTreeMap<String, BTreeSet<String>> {
    let dying: BTreeSet<String> = changes
        .iter()
        .filter(|change| change.action == Action::Delete && change.deposed.is_none())
        .map(|change| without_keys(&change.address))
        .collect();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut open: Vec<&Value> = vec![&plan["prior_state"]["values"]["root_module"]];
    while let Some(module) = open.pop() {
        open.extend(module["child_modules"].as_array().into_iter().flatten());
        for resource in module["resources"].as_array().into_iter().flatten() {
            let Some(user) = resource["address"].as_str().filter(|_| resource["mode"] == "managed") else { continue };
            let user = without_keys(user);
            let used = resource["depends_on"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for used in used.map(without_keys).filter(|used| *used != user && dying.contains(used)) {
                found.entry(used).or_default().insert(user.clone());
            }
        }
    }
    found
}
