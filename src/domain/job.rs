//! The contract between the server and `tidegate job`: what a job is told and what it reports. It is
//! the only wire format we own, versioned, the same for a child process and for a pod.

use serde::{Deserialize, Serialize};

use super::config::ToolKind;
use super::ids::{JobId, RootKey, Sha};
use super::plan::Action;
use super::rollout::Tool;
use super::tool::AskedBy;

/// The version that both sides must speak.
pub const VERSION: u32 = 1;

/// What a job does, with nothing left to choose at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// [`VERSION`].
    pub version: u32,
    /// Its id; the same id is never run twice (the server lets one process claim it).
    pub id: JobId,
    /// Plan or apply.
    pub phase: Phase,
    /// The root.
    pub root: RootKey,
    /// The pull's head, for additional data and logs.
    pub head: Sha,
    /// The tree to check out.
    pub tree: Sha,
    /// The tool to use; by default Terraform if installed, else OpenTofu.
    pub tool: Option<ToolKind>,
    /// The version to use, exact or a constraint; for an apply exactly the version that planned.
    pub tool_version: Option<String>,
    /// Who asks for that version.
    #[serde(default)]
    pub asked_by: AskedBy,
    /// `-var-file`s relative to the root's directory.
    pub var_files: Vec<String>,
    /// `-backend-config` files relative to the root's directory.
    pub backend_config: Vec<String>,
    /// Further arguments of the tool, exact.
    pub args: Vec<String>,
    /// The job whose saved plan is applied; `None` for a plan.
    pub plan_of: Option<JobId>,
    /// What the digest binds of the source, kept for the server; the job does not use it.
    pub source: String,
    /// Whether the tool takes the state's own lock.
    pub state_lock: StateLock,
    /// Sources whose planned outputs are read instead of their applied ones.
    #[serde(default)]
    pub linked: Vec<Link>,
    /// The jobs that planned the roots that it reads: what is sensitive there is masked here, where its mark is lost.
    #[serde(default)]
    pub sources: Vec<JobId>,
}

/// A block of the root that reads the planned outputs of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The block's name, `net` of `data.terraform_remote_state.net`.
    pub block: String,
    /// The job that planned the source.
    pub plan_of: JobId,
    /// The source.
    pub root: RootKey,
}

/// A source that was read as it is applied, although its planned outputs were to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FellBack {
    /// The source.
    pub source: RootKey,
    /// Why, as a part of a sentence: `its block has count`.
    pub why: String,
}

/// Which phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// `init`, `plan`, `show`.
    Plan,
    /// `init`, then `apply` of the saved plan.
    Apply,
}

/// Whether the tool locks the state while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateLock {
    /// `-lock=false`: plans for pulls, which must not hinder each other.
    Off,
    /// `-lock-timeout`: applies.
    Wait,
}

/// Something a job says while it works; sent in batches, in order, each once or more (`seq` makes a repeat harmless).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLine {
    /// Counts from 1 within the job.
    pub seq: u64,
    /// What.
    #[serde(flatten)]
    pub what: JobEvent,
}

/// What a job says while it works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JobEvent {
    /// A step began.
    StepStarted {
        /// `checkout`, `init`, `plan`, `show`, `apply`.
        step: String,
    },
    /// A step ended.
    StepEnded {
        /// Which.
        step: String,
        /// Well or not.
        ok: bool,
        /// Milliseconds.
        took_ms: i64,
    },
    /// A line of readable log, secrets masked, no ANSI.
    Log {
        /// The step it belongs to.
        step: String,
        /// The line.
        line: String,
    },
    /// The state of all resources of an apply, whole each time.
    Resources {
        /// In plan order.
        resources: Vec<ResourceState>,
    },
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JobResult {
    /// Planned; the plan file and its JSON were uploaded before.
    Planned {
        /// Which program made it.
        tool: Tool,
        /// Links that were not followed, with the reason.
        #[serde(default)]
        fell_back: Vec<FellBack>,
    },
    /// Applied.
    Applied {
        /// Every resource `done`.
        resources: Vec<ResourceState>,
    },
    /// The saved plan no longer fits the state; nothing was changed.
    Stale {
        /// The tool's own words.
        failure: Failure,
    },
    /// Anything else that went wrong.
    Failed {
        /// What.
        failure: Failure,
        /// For an apply, where each resource stands.
        resources: Vec<ResourceState>,
        /// What became of a state that its backend did not take.
        #[serde(deserialize_with = "state_left")]
        errored_state: StateLeft,
    },
    /// Interrupted before it began to change anything.
    Canceled,
}

/// What an apply left of a state that its backend did not take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateLeft {
    /// Nothing: the backend has the state.
    #[default]
    Nothing,
    /// `errored.tfstate`, uploaded: the server keeps it sealed.
    Kept,
    /// It could not be uploaded either, and lies there on the machine where the job ran.
    At(String),
}

/// Reads what became of a state; earlier versions said whether it was kept.
pub(super) fn state_left<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<StateLeft, D::Error> {
    match serde_json::Value::deserialize(reader)? {
        serde_json::Value::Bool(true) => Ok(StateLeft::Kept),
        serde_json::Value::Bool(false) => Ok(StateLeft::Nothing),
        other => serde_json::from_value(other).map_err(serde::de::Error::custom),
    }
}

/// What went wrong, as far as the tool or the job knows, secrets masked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The step.
    pub step: String,
    /// One line.
    pub summary: String,
    /// The tool's detail.
    pub detail: String,
    /// The file, relative to the repository.
    pub file: Option<String>,
    /// 1-based.
    pub line: Option<usize>,
    /// The source line that the tool quotes.
    pub code: Option<String>,
    /// The address it belongs to.
    pub address: Option<String>,
    /// Further errors, as `summary: detail` in one line each.
    pub others: Vec<String>,
}

/// One resource while and after an apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceState {
    /// Its address.
    pub address: String,
    /// The key of a deposed object.
    pub deposed: Option<String>,
    /// What is done to it.
    pub action: Action,
    /// Where it stands as a whole.
    pub state: ResourceStage,
    /// For a replacement its two stages, in the order they ran (`delete`, `create`); else empty.
    pub stages: Vec<ReplaceStage>,
    /// Seconds in flight or taken.
    pub seconds: u64,
    /// The tool's error.
    pub error: Option<String>,
}

/// Where a resource stands (the table of the spec).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceStage {
    /// Approved, has not started.
    Pending,
    /// Running.
    Applying,
    /// Finished.
    Done,
    /// Failed, with the tool's error.
    Failed,
    /// The apply ended before it started.
    NotApplied,
}

/// One of the two stages of a replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaceStage {
    /// `delete` or `create`.
    pub what: String,
    /// Where it stands.
    pub state: ResourceStage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_earlier_jobs_are_read() {
        let now =
            JobResult::Failed { failure: Failure::default(), resources: Vec::new(), errored_state: StateLeft::Nothing };
        let now = serde_json::to_string(&now).expect("text");
        assert!(now.contains("\"errored_state\":\"nothing\""), "{now}");
        let of = |left: &str| match serde_json::from_str(&now.replace("\"nothing\"", left)) {
            Ok(JobResult::Failed { errored_state, .. }) => Some(errored_state),
            _ => None,
        };
        assert_eq!(of("false"), Some(StateLeft::Nothing));
        assert_eq!(of("true"), Some(StateLeft::Kept));
        assert_eq!(of("\"kept\""), Some(StateLeft::Kept));
        assert_eq!(of("{\"at\": \"/tmp/x\"}"), Some(StateLeft::At("/tmp/x".to_owned())));
        assert_eq!(of("3"), None);
    }
}
