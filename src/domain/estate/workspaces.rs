//! Workspaces of a remote organisation that code makes, and the directory that each works in: how roots are found whose own `cloud`
//! block names only tags.

use std::collections::BTreeSet;

use super::evaluate::{Here, Tree};
use super::path;
use super::value::Value;
use crate::domain::hcl::{Expr, Named};

/// Name and directory of each workspace whose both are known.
pub(super) fn of(tree: &Tree<'_>) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (at, scope) in tree.scopes.iter().enumerate() {
        for block in &scope.module.workspaces {
            take(tree, at, &block.args, (block.count.as_ref(), block.for_each.as_ref()), &mut found);
        }
        // Modules that make workspaces have such arguments, and most of them lie in other repositories.
        for call in scope.module.calls.values() {
            take(tree, at, &call.args, (call.count.as_ref(), call.for_each.as_ref()), &mut found);
        }
    }
    found
}

fn take(
    tree: &Tree<'_>,
    at: usize,
    args: &[Named],
    (count, for_each): (Option<&Expr>, Option<&Expr>),
    found: &mut BTreeSet<(String, String)>,
) {
    let arg = |name: &str| args.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let (Some(name), Some(dir)) = (arg("workspace_name").or(arg("name")), arg("working_directory")) else { return };
    for (_, each, index) in tree.instances(count, for_each, Here::of(at)) {
        let here = Here { each: each.as_ref(), index: Some(&index), ..Here::of(at) };
        let known = |expr| tree.eval(expr, here);
        if let (Some(name), Value::Text(dir)) = (known(name).as_known(), known(dir))
            && let Some(dir) = Value::Text(dir).as_known()
        {
            found.insert((name, path::join(".", dir.trim_matches('/'))));
        }
    }
}
