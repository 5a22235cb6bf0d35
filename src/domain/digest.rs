//! Digests of section 6: over a canonical form of a plan, keyed, and over the plans of a wave. What they
//! leave out (time, order, ids, prior state, marks) never moves them; everything else does.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use super::config::ToolKind;
use super::ids::{Digest, RootKey};
use super::plan::PlanError;
use super::rollout::Tool;

mod canonical;
mod exact;

use canonical::Canonical;
pub(in crate::domain) use exact::Json;

/// What a plan's digest binds beside the plan's JSON.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    /// Root and workspace.
    pub root: &'a RootKey,
    /// Tool and version.
    pub tool: &'a Tool,
    /// The source digest.
    pub source: &'a str,
    /// Extra arguments of the tool.
    pub args: &'a [String],
}

/// The digest of one plan: HMAC-SHA256 with the installation's key over the canonical form.
pub fn of_plan(json: &[u8], bound: &Bound<'_>, key: &[u8]) -> Result<Digest, PlanError> {
    let plan = Json::parse(json).map_err(PlanError::Malformed)?;
    if plan.get("format_version").is_none() {
        return Err(PlanError::Malformed("`format_version` is missing".to_owned()));
    }
    if plan.get("errored") == Some(&Json::Bool(true)) {
        return Err(PlanError::Errored);
    }
    let mut form = Canonical::new("tidegate-plan-1");
    bind(&mut form, bound);
    put_plan(&mut form, &plan, bound.args);
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(form.bytes());
    Ok(Digest::from_hex(&hex::encode(mac.finalize().into_bytes())))
}

/// The set digest of a wave: SHA-256 over its sorted (root, digest) pairs.
pub fn of_set(pairs: &[(RootKey, Digest)]) -> Digest {
    let mut sorted: Vec<&(RootKey, Digest)> = pairs.iter().collect();
    sorted.sort();
    let mut form = Canonical::new("tidegate-set-1");
    form.count(sorted.len());
    for (root, digest) in sorted {
        form.text(root.dir());
        form.text(root.workspace());
        form.text(digest.as_str());
    }
    Digest::from_hex(&hex::encode(Sha256::digest(form.bytes())))
}

fn bind(form: &mut Canonical, bound: &Bound<'_>) {
    form.text(bound.root.dir());
    form.text(bound.root.workspace());
    form.text(match bound.tool.kind {
        ToolKind::Terraform => "terraform",
        ToolKind::Tofu => "tofu",
    });
    form.text(&bound.tool.version);
    form.text(bound.source);
    form.count(bound.args.len());
    bound.args.iter().for_each(|arg| form.text(arg));
}

fn put_plan(form: &mut Canonical, plan: &Json, args: &[String]) {
    form.value(plan.get("terraform_version"));
    form.value(plan.get("complete"));
    put_resources(form, plan.get("resource_changes"));
    // Only a refresh-only plan writes what changed outside; in every other plan it has no effect of its own.
    let refresh_only = args.iter().any(|arg| matches!(arg.as_str(), "-refresh-only" | "-refresh-only=true"));
    put_resources(form, plan.get("resource_drift").filter(|_| refresh_only));
    put_outputs(form, plan.get("output_changes"));
    put_variables(form, plan.get("variables"));
    put_actions(form, plan.get("action_invocations"));
}

/// The fields of a change that decide what the apply does.
const CHANGE: [&str; 6] = ["actions", "before", "after", "after_unknown", "replace_paths", "importing"];

fn put_resources(form: &mut Canonical, list: Option<&Json>) {
    let mut kept: Vec<&Json> = list.map_or(&[][..], Json::items).iter().filter(|item| does_something(item)).collect();
    kept.sort_by_key(|item| (text_of(item, "address"), text_of(item, "deposed")));
    form.count(kept.len());
    for resource in kept {
        for field in ["address", "deposed", "previous_address", "provider_name"] {
            form.value(resource.get(field));
        }
        for field in CHANGE {
            form.value(resource.get("change").and_then(|change| change.get(field)));
        }
    }
}

fn put_outputs(form: &mut Canonical, outputs: Option<&Json>) {
    let changes = outputs.map_or(&[][..], Json::entries);
    let kept: Vec<_> = changes.iter().filter(|(_, change)| !is_no_op(change)).collect();
    form.count(kept.len());
    for (name, change) in kept {
        form.text(name);
        for field in ["actions", "before", "after", "after_unknown"] {
            form.value(change.get(field));
        }
    }
}

fn put_variables(form: &mut Canonical, variables: Option<&Json>) {
    let variables = variables.map_or(&[][..], Json::entries);
    form.count(variables.len());
    for (name, variable) in variables {
        form.text(name);
        form.value(variable.get("value"));
    }
}

/// Actions that run beside the resources (Terraform 1.14): whole, in any order, without their marks.
fn put_actions(form: &mut Canonical, actions: Option<&Json>) {
    let mut encoded: Vec<Vec<u8>> = actions
        .map_or(&[][..], Json::items)
        .iter()
        .map(|action| {
            let mut one = Canonical::new("");
            let fields = action.entries().iter().filter(|(name, _)| !name.ends_with("_sensitive"));
            for (name, value) in fields {
                one.text(name);
                one.value(Some(value));
            }
            one.bytes().to_vec()
        })
        .collect();
    encoded.sort();
    form.count(encoded.len());
    encoded.iter().for_each(|bytes| form.blob(bytes));
}

fn does_something(resource: &Json) -> bool {
    let Some(change) = resource.get("change") else { return true };
    !is_no_op(change) || is_set(resource.get("previous_address")) || is_set(change.get("importing"))
}

fn is_no_op(change: &Json) -> bool {
    matches!(change.get("actions").map_or(&[][..], Json::items), [Json::Text(action)] if action == "no-op")
}

fn is_set(value: Option<&Json>) -> bool {
    !matches!(value, None | Some(Json::Null))
}

fn text_of<'a>(value: &'a Json, field: &str) -> &'a str {
    match value.get(field) {
        Some(Json::Text(text)) => text,
        _ => "",
    }
}

#[cfg(test)]
mod tests;
