//! Traces of the other tool in a root: the host of its registry, in a lock file or a state, where the code does not ask for that host.
//! It decides nothing: which tool plans a root is settled before.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::domain::config::ToolKind;
use crate::domain::packages;

/// Where the other tool left its registry's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trace {
    /// In the state.
    State,
    /// In the lock file.
    LockFile,
}

/// The host that a tool means by a provider without one.
pub fn host(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Terraform => "registry.terraform.io",
        ToolKind::Tofu => "registry.opentofu.org",
    }
}

/// The tool that this one is not.
pub fn other(kind: ToolKind) -> ToolKind {
    match kind {
        ToolKind::Terraform => ToolKind::Tofu,
        ToolKind::Tofu => ToolKind::Terraform,
    }
}

/// What the other tool left, by `show -json PLANFILE` and the root's lock file. OpenTofu shows a state of Terraform's as its own, so of
/// that nothing is seen here.
pub fn traces(json: &[u8], lock_file: Option<&str>, kind: ToolKind) -> Vec<Trace> {
    let Ok(document) = serde_json::from_slice::<Document>(json) else { return Vec::new() };
    let asked: BTreeSet<&str> =
        document.configuration.provider_config.values().map(|provider| provider.full_name.as_str()).collect();
    let host = format!("{}/", host(other(kind)));
    let is_strange = |provider: &str| provider.starts_with(&host) && !asked.contains(provider);
    let in_state = kind == ToolKind::Terraform
        && document.prior_state.is_some_and(|state| state.values.root_module.any(&is_strange));
    let in_lock_file = packages::locked(lock_file.unwrap_or_default()).iter().any(|locked| is_strange(&locked.source));
    let found = [(in_state, Trace::State), (in_lock_file, Trace::LockFile)];
    found.into_iter().filter(|(is_there, _)| *is_there).map(|(_, trace)| trace).collect()
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    configuration: Configuration,
    prior_state: Option<State>,
}

#[derive(Default, Deserialize)]
struct Configuration {
    #[serde(default)]
    provider_config: BTreeMap<String, Provider>,
}

#[derive(Deserialize)]
struct Provider {
    #[serde(default)]
    full_name: String,
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    values: Values,
}

#[derive(Default, Deserialize)]
struct Values {
    #[serde(default)]
    root_module: Module,
}

#[derive(Default, Deserialize)]
struct Module {
    #[serde(default)]
    resources: Vec<Resource>,
    #[serde(default)]
    child_modules: Vec<Module>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    provider_name: String,
}

impl Module {
    fn any(&self, is: &impl Fn(&str) -> bool) -> bool {
        self.resources.iter().any(|resource| is(&resource.provider_name))
            || self.child_modules.iter().any(|module| module.any(is))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(configured: &str, in_state: &str) -> String {
        format!(
            r#"{{"configuration": {{"provider_config": {{"x": {{"name": "x", "full_name": "{configured}"}}}}}},
            "prior_state": {{"format_version": "1.0", "values": {{"root_module": {{"child_modules": [
                {{"resources": [{{"address": "module.m.x_y.z", "provider_name": "{in_state}"}}]}}]}}}}}}}}"#
        )
    }

    fn lock(source: &str) -> String {
        format!("provider \"{source}\" {{\n  version = \"1.2.3\"\n  hashes = []\n}}\n")
    }

    #[test]
    fn the_others_host_is_seen_unless_the_code_asks_for_it() {
        const TERRAFORM: &str = "registry.terraform.io/acme/x";
        const TOFU: &str = "registry.opentofu.org/acme/x";
        const OWN: &str = "terraform.io/builtin/terraform";
        for (kind, configured, in_state, in_lock, found) in [
            (ToolKind::Terraform, TERRAFORM, TERRAFORM, Some(TERRAFORM), vec![]),
            (ToolKind::Terraform, TERRAFORM, TOFU, None, vec![Trace::State]),
            (ToolKind::Terraform, TERRAFORM, OWN, Some(TOFU), vec![Trace::LockFile]),
            (ToolKind::Terraform, TERRAFORM, TOFU, Some(TOFU), vec![Trace::State, Trace::LockFile]),
            (ToolKind::Terraform, TOFU, TOFU, Some(TOFU), vec![]),
            (ToolKind::Tofu, TOFU, TOFU, Some(TERRAFORM), vec![Trace::LockFile]),
            (ToolKind::Tofu, TERRAFORM, TERRAFORM, Some(TERRAFORM), vec![]),
            (ToolKind::Tofu, TOFU, TOFU, Some("registry.example/acme/x"), vec![]),
        ] {
            let lock_file = in_lock.map(lock);
            let json = plan(configured, in_state);
            assert_eq!(traces(json.as_bytes(), lock_file.as_deref(), kind), found, "{kind:?} {in_state} {in_lock:?}");
        }
        assert_eq!(traces(b"nonsense", None, ToolKind::Tofu), vec![]);
        assert_eq!(traces(b"{}", Some("provider {"), ToolKind::Tofu), vec![]);
    }
}
