//! The repository's `.tidegate.yaml` as a value (section 14 of the design), with its defaults. It is
//! read from the base commit, so that a change cannot loosen its own rule. It knows no server setting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tool::AskedBy;

mod glob;
mod parse;
mod tree;

pub use glob::branch_fits;
pub use parse::{Problem, parse};

/// The file's name at the top of the repository.
pub const FILE: &str = ".tidegate.yaml";

/// Everything the file can say, with defaults filled in: a repository without the file has `RepoConfig::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoConfig {
    /// Globs of directories that are no roots.
    pub ignore: Vec<String>,
    /// Glob and settings, in the order of the file: the first that fits a root's directory wins over `top`.
    pub matches: Vec<(String, RootSettings)>,
    /// The same keys at the top of the file.
    pub top: RootSettings,
    /// Canary roots, order by hand, shares.
    pub waves: Waves,
    /// Each address that dies must be named in the approval.
    pub confirm_destructive: bool,
    /// What counts as an approval.
    pub approval: ApprovalSource,
    /// Who may approve.
    pub approvers: Approvers,
    /// When and under which conditions to apply.
    pub apply: ApplyPolicy,
    /// When a root's lock is taken.
    pub locks: LockMode,
    /// How many jobs of one rollout run at once; 0 leaves it to the server.
    pub parallelism: usize,
    /// Whether a reader is planned of whose sources nothing that it reads changes.
    #[serde(default)]
    pub prune: Prune,
}

/// What can differ from root to root; `None` and empty mean "not said here".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootSettings {
    /// Terraform or OpenTofu; by default what is installed, Terraform first.
    pub tool: Option<ToolKind>,
    /// An exact version or a constraint of the tool.
    pub version: Option<String>,
    /// Who asks for that version; set when the tree is read, which may name one where the settings do not.
    #[serde(default)]
    pub asked_by: AskedBy,
    /// When a wave with this root waits.
    pub gate: Option<GatePolicy>,
    /// Logins, `@org/team`s or `@codeowners` that may approve instead of everyone with write access.
    pub approvers: Vec<String>,
    /// The workspaces to plan; empty means `default` alone.
    pub workspaces: Vec<String>,
    /// `-var-file`s, relative to the root's directory.
    pub var_files: Vec<String>,
    /// `-backend-config` files, relative to the root's directory.
    pub backend_config: Vec<String>,
    /// Where the state lies when something else writes the backend: `KIND:LOCATION`, with `{name}` for the directory's name.
    pub state: Option<String>,
}

/// Which program plans and applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// `terraform`
    Terraform,
    /// `tofu`
    Tofu,
}

/// When a wave waits for an approval (section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatePolicy {
    /// Never.
    Never,
    /// When something is destroyed or replaced.
    OnDestructive,
    /// When anything changes.
    #[default]
    Always,
}

/// `waves:`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waves {
    /// Directories that go first.
    pub canary: Vec<String>,
    /// Root to the roots that it comes after.
    pub after: BTreeMap<String, Vec<String>>,
    /// Jobs that share a wide wave; 0 and 1 mean one.
    pub jobs: usize,
}

/// `approval:`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalSource {
    /// A comment, a button or the API; an approving review does not count.
    #[default]
    Ledger,
    /// An approving review of the head counts as well.
    PrReview,
    /// Only a record sealed by a key of the signers file.
    Sealed,
}

/// `approvers:` at the top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvers {
    /// Never the author or a committer of the change.
    pub four_eyes: bool,
    /// How many different people must approve.
    pub count: usize,
}

impl Default for Approvers {
    fn default() -> Self {
        Self { four_eyes: true, count: 1 }
    }
}

/// `apply:`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyPolicy {
    /// Apply from the pull, before the merge. The only mode so far.
    pub when: ApplyWhen,
    /// Conditions beside the gate.
    pub requires: Vec<Requirement>,
    /// Merge when everything is applied.
    pub merge: MergePolicy,
}

impl Default for ApplyPolicy {
    fn default() -> Self {
        Self { when: ApplyWhen::PullRequest, requires: Vec::new(), merge: MergePolicy::Manual }
    }
}

/// `apply.when`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplyWhen {
    /// By a comment on the open pull.
    PullRequest,
}

/// `apply.requires`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requirement {
    /// The forge counts the pull as approved.
    Approved,
    /// The forge could merge it, our own checks left aside.
    Mergeable,
    /// The head contains the base's tip.
    Undiverged,
}

/// `apply.merge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergePolicy {
    /// A person merges.
    Manual,
    /// We merge once every root of the head is applied or unchanged, and at least one was applied.
    Auto,
}

/// `prune:`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prune {
    /// A reader whose read outputs do not change is not planned.
    #[default]
    Unchanged,
    /// Every reached root is planned.
    Nothing,
}

/// `locks:`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockMode {
    /// Taken by the pull that applies.
    #[default]
    Apply,
    /// Taken from the first plan.
    Plan,
}

impl RepoConfig {
    /// The settings of a root's directory: the first match wins over the top, key by key.
    pub fn for_root(&self, dir: &str) -> RootSettings {
        let Some((_, first)) = self.matches.iter().find(|(pattern, _)| glob::fits(pattern, dir)) else {
            return self.top.clone();
        };
        let list = |said: &Vec<String>, top: &Vec<String>| if said.is_empty() { top.clone() } else { said.clone() };
        RootSettings {
            tool: first.tool.or(self.top.tool),
            version: first.version.clone().or_else(|| self.top.version.clone()),
            asked_by: AskedBy::Settings,
            gate: first.gate.or(self.top.gate),
            approvers: list(&first.approvers, &self.top.approvers),
            workspaces: list(&first.workspaces, &self.top.workspaces),
            var_files: list(&first.var_files, &self.top.var_files),
            backend_config: list(&first.backend_config, &self.top.backend_config),
            state: first.state.clone().or_else(|| self.top.state.clone()),
        }
    }

    /// Whether a directory is ignored.
    pub fn ignores(&self, dir: &str) -> bool {
        self.ignore.iter().any(|pattern| glob::fits(pattern, dir))
    }
}
