//! From `show -json` to a [`Plan`]: what changes, by address and attribute. No sensitive value gets past this file, and
//! no change that does something is left out.

use serde_json::Value;

use super::{Action, Change, OutputChange, Plan, Shown};
use crate::domain::secret::Secrets;

mod attributes;
mod prior;
mod shown;

/// Why a plan's JSON is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It is no JSON, or not of a plan.
    #[error("this is no plan: {0}")]
    Malformed(String),
    /// The tool says that the plan is not complete (`errored`).
    #[error("the plan has errors and cannot be applied")]
    Errored,
}

/// Reads `show -json PLANFILE` with what else is known to be secret, which no part of the result shows, addresses
/// included.
pub fn parse_knowing(json: &[u8], known: &Secrets) -> Result<Plan, PlanError> {
    let mut secrets = Secrets::of_plan(json);
    secrets.extend(known);
    let mut plan = read(json, &secrets)?;
    for change in &mut plan.changes {
        // The key of an instance can be a secret that lost its mark.
        change.address = secrets.mask(&change.address);
        change.previous_address = change.previous_address.as_deref().map(|address| secrets.mask(address));
    }
    plan.drift = plan.drift.iter().map(|address| secrets.mask(address)).collect();
    let masked = plan
        .dependents
        .iter()
        .map(|(used, users)| (secrets.mask(used), users.iter().map(|user| secrets.mask(user)).collect()));
    plan.dependents = masked.collect();
    Ok(plan)
}

/// Reads `show -json PLANFILE`. Sensitive values, and every value equal to one, never enter the result; addresses are as
/// the tool knows them, to follow its events by.
pub fn parse(json: &[u8]) -> Result<Plan, PlanError> {
    read(json, &Secrets::of_plan(json))
}

fn read(json: &[u8], secrets: &Secrets) -> Result<Plan, PlanError> {
    let plan: Value = serde_json::from_slice(json).map_err(|error| PlanError::Malformed(error.to_string()))?;
    if !plan["format_version"].is_string() {
        return Err(PlanError::Malformed("`format_version` is missing".to_owned()));
    }
    if plan["errored"] == true {
        return Err(PlanError::Errored);
    }
    let changes = changes(&plan["resource_changes"], secrets)?;
    Ok(Plan {
        tool_version: text(&plan["terraform_version"]).unwrap_or_default(),
        dependents: prior::dependents(&plan, &changes),
        changes,
        outputs: outputs(&plan["output_changes"], secrets)?,
        drift: drift(&plan["resource_drift"]),
        traces: Vec::new(),
    })
}

fn changes(list: &Value, secrets: &Secrets) -> Result<Vec<Change>, PlanError> {
    let mut changes = Vec::new();
    for resource in list.as_array().into_iter().flatten() {
        changes.extend(change(resource, secrets)?);
    }
    changes.sort_by(|a, b| (rank(a.action), &a.address, &a.deposed).cmp(&(rank(b.action), &b.address, &b.deposed)));
    Ok(changes)
}

/// One resource; `None` for a bare no-op.
fn change(resource: &Value, secrets: &Secrets) -> Result<Option<Change>, PlanError> {
    let address = text(&resource["address"]).ok_or_else(|| malformed("a change has no address"))?;
    let change = &resource["change"];
    let action = action(&change["actions"], &address)?;
    let previous_address = text(&resource["previous_address"]);
    let importing = !change["importing"].is_null();
    if action == Action::Nothing && previous_address.is_none() && !importing {
        return Ok(None);
    }
    let attributes = match action {
        Action::Delete | Action::Forget | Action::Nothing => Vec::new(),
        _ => attributes::of(change, secrets),
    };
    Ok(Some(Change {
        address,
        resource_type: text(&resource["type"]).unwrap_or_default(),
        action,
        deposed: text(&resource["deposed"]),
        previous_address,
        importing,
        replaced_by: replaced_by(&change["replace_paths"], secrets),
        reason: text(&resource["action_reason"]),
        attributes,
    }))
}

/// An unknown verb is an error and never a change that nobody sees.
fn action(actions: &Value, of: &str) -> Result<Action, PlanError> {
    let words: Vec<&str> = actions.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    Ok(match words.as_slice() {
        ["no-op"] => Action::Nothing,
        ["create"] => Action::Create,
        ["read"] => Action::Read,
        ["update"] => Action::Update,
        ["delete"] => Action::Delete,
        ["forget"] => Action::Forget,
        ["delete", "create"] => Action::DeleteThenCreate,
        ["create", "delete"] => Action::CreateThenDelete,
        ["forget", "create"] | ["create", "forget"] => Action::ForgetThenCreate,
        _ => return Err(malformed(&format!("`{of}` has actions that are not known: {actions}"))),
    })
}

/// What dies first, then what changes, then what comes.
fn rank(action: Action) -> u8 {
    match action {
        Action::Delete => 0,
        Action::DeleteThenCreate | Action::CreateThenDelete | Action::ForgetThenCreate => 1,
        Action::Update => 2,
        Action::Create => 3,
        Action::Forget => 4,
        Action::Nothing => 5,
        Action::Read => 6,
    }
}

fn replaced_by(paths: &Value, secrets: &Secrets) -> Vec<String> {
    let paths = paths.as_array().into_iter().flatten();
    paths.filter_map(Value::as_array).map(|path| attributes::path_of(path, secrets)).collect()
}

fn outputs(changes: &Value, secrets: &Secrets) -> Result<Vec<OutputChange>, PlanError> {
    let mut outputs = Vec::new();
    for (name, change) in changes.as_object().into_iter().flatten() {
        let action = action(&change["actions"], name)?;
        if action == Action::Nothing {
            continue;
        }
        let unknown = &change["after_unknown"];
        let sensitive = change["before_sensitive"] == true || change["after_sensitive"] == true;
        let mark = if sensitive { &Value::Bool(true) } else { &change["after_sensitive"] };
        outputs.push(OutputChange {
            name: name.clone(),
            action,
            before: shown::of(&change["before"], &Value::Null, mark, secrets),
            after: match action {
                Action::Delete => Shown::Absent,
                _ => shown::of(&change["after"], unknown, mark, secrets),
            },
            unknown: shown::has_true(unknown),
        });
    }
    outputs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(outputs)
}

/// A move alone is listed as drift too, although nothing changed outside.
fn drift(list: &Value) -> Vec<String> {
    let changed = list.as_array().into_iter().flatten();
    let changed = changed.filter(|resource| resource["change"]["actions"] != serde_json::json!(["no-op"]));
    let mut addresses: Vec<String> = changed.filter_map(|resource| text(&resource["address"])).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn malformed(what: &str) -> PlanError {
    PlanError::Malformed(what.to_owned())
}

#[cfg(test)]
mod tests;
