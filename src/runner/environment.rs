//! What of the job's environment the tool may see. Nothing of ours reaches it, and nothing that bends what it does.

use std::collections::BTreeMap;
use std::path::Path;

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
        "TF_WORKSPACE" | "TF_DATA_DIR" => false,
        // A file that is not there makes the tool print a warning in the middle of its JSON.
        "TF_CLI_CONFIG_FILE" => Path::new(value).is_file(),
        name => !["TIDEGATE_", "TF_CLI_ARGS", "TF_LOG"].iter().any(|prefix| name.starts_with(prefix)),
    }
}

/// Adds the values of the environment that are secret by their name.
pub(super) fn add_secrets(given: &BTreeMap<String, String>, secrets: &mut Secrets) {
    for (name, value) in given {
        let upper = name.to_ascii_uppercase();
        let secret = ["TOKEN", "SECRET", "PASSWORD", "KEY", "ENCRYPTION"].iter().any(|word| upper.contains(word));
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
}
