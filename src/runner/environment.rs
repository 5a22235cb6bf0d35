//! What of the job's environment the tool may see. Nothing of ours reaches it, and nothing that bends what it does.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::domain::job::JobSpec;
use crate::domain::secret::Secrets;

/// The tool's environment: what the job was given without our own variables and without those that inject arguments,
/// switch on tracing (which prints every secret) or choose another workspace than the one that was asked for.
pub(super) fn scrub(given: &BTreeMap<String, String>, spec: &JobSpec) -> BTreeMap<String, String> {
    let mut kept: BTreeMap<String, String> =
        given.iter().filter(|(name, value)| may_pass(name, value)).map(|(n, v)| (n.clone(), v.clone())).collect();
    for (name, value) in [("TF_IN_AUTOMATION", "1"), ("CHECKPOINT_DISABLE", "1"), ("TF_INPUT", "0")] {
        kept.insert(name.to_owned(), value.to_owned());
    }
    if spec.root.workspace() != "default" {
        kept.insert("TF_WORKSPACE".to_owned(), spec.root.workspace().to_owned());
    }
    kept
}

fn may_pass(name: &str, value: &str) -> bool {
    match name {
        // Of the last two: the tools' own cache breaks when two jobs write to it at once.
        "TF_WORKSPACE" | "TF_DATA_DIR" | "TF_PLUGIN_CACHE_DIR" | "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE" => {
            false
        }
        // A file that is not there makes the tool print a warning in the middle of its JSON.
        "TF_CLI_CONFIG_FILE" => Path::new(value).is_file(),
        name => !["TIDEGATE_", "TF_CLI_ARGS", "TF_LOG"].iter().any(|prefix| name.starts_with(prefix)),
    }
}

/// Parts of the name of a variable that make its value a secret.
const WORDS: [&str; 9] =
    ["TOKEN", "SECRET", "PASS", "KEY", "ENCRYPTION", "CREDENTIAL", "CONN_STR", "CONNECTION_STRING", "PRIVATE"];
/// The environment of `tofu apply`: without the variables whose planned value is another. OpenTofu would take a value that comes
/// for the first time at the apply in place of the default that was planned, and say nothing (Terraform keeps the planned one).
pub(super) fn as_planned(environment: &BTreeMap<String, String>, plan_json: &[u8]) -> BTreeMap<String, String> {
    let plan: Value = serde_json::from_slice(plan_json).unwrap_or_default();
    let as_planned = |name: &str, value: &str| {
        // In no plan are the values of ephemeral variables, which must be given again.
        if plan["configuration"]["root_module"]["variables"][name]["ephemeral"] == true {
            return true;
        }
        let planned = &plan["variables"][name]["value"];
        planned.as_str() == Some(value) || serde_json::from_str::<Value>(value).is_ok_and(|value| value == *planned)
    };
    let mut kept = environment.clone();
    kept.retain(|name, value| name.strip_prefix("TF_VAR_").is_none_or(|name| as_planned(name, value)));
    kept
}

/// The environment of a call in which no provider runs. Such a call is short and small: with its garbage collected less often it
/// takes a fifth less CPU time (measured), and the limit keeps a large one about as small as it was. A provider would inherit
/// this and may be large already, so its calls stay as they are; and so does whatever the user set.
pub(super) fn of_the_tool_alone(environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut own = environment.clone();
    if !own.contains_key("GOGC") && !own.contains_key("GOMEMLIMIT") {
        own.insert("GOGC".to_owned(), "400".to_owned());
        own.insert("GOMEMLIMIT".to_owned(), "256MiB".to_owned());
    }
    own
}

/// The ephemeral variables of the root that was planned. Their values are in no plan.
pub(super) fn ephemeral(plan_json: &[u8]) -> Vec<String> {
    let plan: Value = serde_json::from_slice(plan_json).unwrap_or_default();
    let all = plan["configuration"]["root_module"]["variables"].as_object();
    let ephemeral = all.into_iter().flatten().filter(|(_, variable)| variable["ephemeral"] == true);
    ephemeral.map(|(name, _)| name.clone()).collect()
}

/// Those of these variables that this environment sets.
pub(super) fn set_of<'a>(names: &'a [String], environment: &BTreeMap<String, String>) -> Vec<&'a String> {
    names.iter().filter(|name| environment.contains_key(&format!("TF_VAR_{name}"))).collect()
}

/// The environment with exactly those ephemeral variables that the plan was made with; else the names of those that it lacks. OpenTofu
/// would take the default in place of one that is not given again, and one that comes new in place of a planned default, and say nothing.
pub(super) fn with_ephemeral(
    mut environment: BTreeMap<String, String>,
    all: &[String],
    planned: &[String],
) -> Result<BTreeMap<String, String>, Vec<String>> {
    let missing: Vec<String> =
        planned.iter().filter(|name| !environment.contains_key(&format!("TF_VAR_{name}"))).cloned().collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    for name in all.iter().filter(|name| !planned.contains(name)) {
        environment.remove(&format!("TF_VAR_{name}"));
    }
    Ok(environment)
}

/// Adds the values of the environment that are secret by their name.
pub(super) fn add_secrets(given: &BTreeMap<String, String>, secrets: &mut Secrets) {
    for (name, value) in given {
        let upper = name.to_ascii_uppercase();
        let secret = WORDS.iter().any(|word| upper.contains(word));
        // `true` or `1` in a variable is no secret, and masking it would tear every log apart.
        let telling = value.len() >= 4 && !matches!(value.as_str(), "true" | "false" | "null");
        if (secret || name.starts_with("TF_VAR_")) && telling && !Path::new(value).exists() {
            secrets.add(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RootKey;
    use crate::domain::job::{Phase, StateLock, VERSION};

    fn spec(root: RootKey) -> JobSpec {
        JobSpec {
            version: VERSION,
            id: "j".into(),
            phase: Phase::Plan,
            root,
            head: "h".into(),
            tree: "t".into(),
            tool: None,
            tool_version: None,
            asked_by: crate::domain::tool::AskedBy::default(),
            var_files: Vec::new(),
            backend_config: Vec::new(),
            args: Vec::new(),
            plan_of: None,
            source: String::new(),
            state_lock: StateLock::Off,
            linked: vec![],
            sources: vec![],
        }
    }

    #[test]
    fn only_what_bends_nothing_passes() {
        let names = [
            "PATH",
            "AWS_REGION",
            "TF_VAR_x",
            "TF_CLI_ARGS",
            "TF_CLI_ARGS_plan",
            "TF_LOG",
            "TF_LOG_PROVIDER",
            "TF_WORKSPACE",
            "TF_DATA_DIR",
            "TF_PLUGIN_CACHE_DIR",
            "TF_CLI_CONFIG_FILE",
            "TIDEGATE_JOB_TOKEN",
        ];
        let given = names.iter().map(|name| ((*name).to_owned(), "/nowhere".to_owned())).collect();
        let kept = scrub(&given, &spec(RootKey::in_workspace("a", "blue")));
        let seen: Vec<String> = kept.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            seen,
            [
                "AWS_REGION=/nowhere",
                "CHECKPOINT_DISABLE=1",
                "PATH=/nowhere",
                "TF_INPUT=0",
                "TF_IN_AUTOMATION=1",
                "TF_VAR_x=/nowhere",
                "TF_WORKSPACE=blue"
            ]
        );
        assert!(!scrub(&BTreeMap::new(), &spec(RootKey::new("a"))).contains_key("TF_WORKSPACE"));
    }

    #[test]
    fn what_the_user_says_of_memory_stays() {
        for (given, expected) in [
            (vec![], vec![("GOGC", "400"), ("GOMEMLIMIT", "256MiB")]),
            (vec![("GOGC", "50")], vec![("GOGC", "50")]),
            (vec![("GOMEMLIMIT", "1GiB")], vec![("GOMEMLIMIT", "1GiB")]),
        ] {
            let map = |all: Vec<(&str, &str)>| -> BTreeMap<String, String> {
                all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            };
            assert_eq!(of_the_tool_alone(&map(given)), map(expected));
        }
    }

    #[test]
    fn a_variable_reaches_the_apply_only_as_it_was_planned() {
        let plan = serde_json::json!({
            "variables": {
                "same": { "value": "a" }, "other": { "value": "default" }, "number": { "value": 5 },
                "list": { "value": ["x"] }, "other_list": { "value": ["x"] }, "now": { "value": "default" },
            },
            "configuration": { "root_module": { "variables": { "now": { "ephemeral": true }, "token": { "ephemeral": true } } } },
        });
        let given = [
            ("TF_VAR_same", "a"),
            ("TF_VAR_other", "changed"),
            ("TF_VAR_number", "5"),
            ("TF_VAR_list", "[\"x\"]"),
            ("TF_VAR_other_list", "[\"y\"]"),
            ("TF_VAR_now", "set"),
            ("TF_VAR_token", "t"),
            ("TF_VAR_undeclared", "u"),
            ("PATH", "/bin"),
        ];
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let kept = as_planned(&given, plan.to_string().as_bytes());
        let names: Vec<&str> = kept.keys().map(String::as_str).collect();
        assert_eq!(names, ["PATH", "TF_VAR_list", "TF_VAR_now", "TF_VAR_number", "TF_VAR_same", "TF_VAR_token"]);
        assert_eq!(as_planned(&given, b"").keys().collect::<Vec<_>>(), ["PATH"], "nothing that no plan vouches for");
    }

    #[test]
    fn ephemeral_variables_are_given_again_as_they_were() {
        let plan = br#"{"configuration": {"root_module": {"variables": {"kept": {}, "now": {"ephemeral": true}, "token": {"ephemeral": true}}}}}"#;
        let all = ephemeral(plan);
        assert_eq!(all, ["now", "token"]);
        assert_eq!(ephemeral(b"{}"), Vec::<String>::new());
        let given = |names: &[&str]| -> BTreeMap<String, String> {
            names.iter().map(|name| (format!("TF_VAR_{name}"), "x".to_owned())).collect()
        };
        assert_eq!(set_of(&all, &given(&["kept", "token"])), ["token"]);
        let token = ["token".to_owned()];
        assert_eq!(with_ephemeral(given(&["kept", "now", "token"]), &all, &token), Ok(given(&["kept", "token"])));
        assert_eq!(with_ephemeral(given(&["now", "token"]), &all, &[]), Ok(given(&[])));
        assert_eq!(with_ephemeral(given(&["now"]), &all, &token), Err(token.to_vec()));
    }
}
