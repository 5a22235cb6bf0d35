//! One line of the tool's `-json` stream. A line of an unknown shape or type is never an error: it only says less.

use serde_json::Value;

use super::diagnostic::Diagnostic;
use crate::domain::config::ToolKind;
use crate::domain::rollout::Tool;

/// A line that is JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What a person may read, as the tool words it.
    pub message: String,
    /// What it means for us.
    pub what: What,
}

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The first line: who speaks.
    Version(Tool),
    /// Something about one resource.
    Hook(Hook),
    /// An error or a warning.
    Diagnostic(Diagnostic),
    /// The whole state, which the tool could save neither to its backend nor to a file: these words are all that is left of it.
    StateDump(String),
    /// All else.
    Other,
}

/// Something about one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// What happened.
    pub verb: Verb,
    /// The whole address.
    pub address: String,
    /// `create`, `update`, `delete`, `read`, …
    pub action: String,
    /// Whether it is a data source.
    pub data_source: bool,
    /// Whole seconds since it started, when the line says.
    pub seconds: Option<u64>,
}

/// What happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It started.
    Start,
    /// It still runs.
    Progress,
    /// It ended well.
    Complete,
    /// It ended badly.
    Error,
}

impl Line {
    /// Reads a line; `None` when it is no JSON object.
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        if !line.starts_with('{') {
            return None;
        }
        let json: Value = serde_json::from_str(line).ok()?;
        let message = json.get("@message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let what = match json.get("type").and_then(Value::as_str).unwrap_or_default() {
            "version" => version(&json).map(What::Version),
            "diagnostic" => json.get("diagnostic").and_then(Diagnostic::from_json).map(What::Diagnostic),
            "log" => {
                json.get("state").filter(|state| state.is_object()).map(|state| What::StateDump(state.to_string()))
            }
            "apply_start" => hook(&json, Verb::Start).map(What::Hook),
            "apply_progress" => hook(&json, Verb::Progress).map(What::Hook),
            "apply_complete" => hook(&json, Verb::Complete).map(What::Hook),
            "apply_errored" => hook(&json, Verb::Error).map(What::Hook),
            _ => None,
        };
        Some(Self { message, what: what.unwrap_or(What::Other) })
    }
}

impl Line {
    /// The message without the id that the tool puts at its end: an id can be a secret, and nobody follows a run by it.
    pub fn spoken(&self) -> &str {
        match self.message.rfind(" [id=") {
            Some(at) if self.message.ends_with(']') => &self.message[..at],
            _ => &self.message,
        }
    }
}

fn version(json: &Value) -> Option<Tool> {
    let of = |key: &str| json.get(key).and_then(Value::as_str).map(str::to_owned);
    let terraform = of("terraform").map(|version| Tool { kind: ToolKind::Terraform, version });
    terraform.or_else(|| of("tofu").map(|version| Tool { kind: ToolKind::Tofu, version }))
}

fn hook(json: &Value, verb: Verb) -> Option<Hook> {
    let hook = json.get("hook")?;
    let resource = hook.get("resource")?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(Hook {
        verb,
        address: text(resource, "addr"),
        action: text(hook, "action"),
        data_source: text(resource, "resource").starts_with("data."),
        seconds: hook.get("elapsed_seconds").and_then(Value::as_f64).map(|seconds| seconds.max(0.0) as u64),
    })
}
