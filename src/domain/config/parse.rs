//! From the text of `.tidegate.yaml` to its value: every unknown key and wrong type, each with line, column and the
//! nearest name. It never guesses a value.

use super::tree::{self, Node, Value, problem_at};
use super::{
    ApplyPolicy, ApplyWhen, ApprovalSource, Approvers, GatePolicy, LockMode, MergePolicy, Prune, RepoConfig,
    Requirement, RootSettings, ToolKind, Waves, glob,
};
use crate::domain::nearest::nearest;
use crate::domain::tool::Constraint;

/// Something wrong in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// 1-based, 0 when unknown.
    pub line: usize,
    /// 1-based, 0 when unknown.
    pub column: usize,
    /// What is wrong, with the nearest name or the right type: a whole sentence.
    pub what: String,
}

/// The keys that can differ from root to root; they stand at the top and in `roots.match`.
pub(super) const ROOT_KEYS: [&str; 9] =
    ["tool", "version", "gate", "require_approval", "approvers", "workspaces", "var_files", "backend_config", "state"];
/// The keys that stand at the top alone.
pub(super) const TOP_KEYS: [&str; 8] =
    ["roots", "waves", "confirm_destructive", "approval", "apply", "locks", "parallelism", "prune"];
pub(super) const ROOTS_KEYS: [&str; 2] = ["ignore", "match"];
pub(super) const WAVES_KEYS: [&str; 3] = ["canary", "after", "jobs"];
pub(super) const APPROVERS_KEYS: [&str; 3] = ["four_eyes", "count", "names"];
pub(super) const APPLY_KEYS: [&str; 3] = ["when", "requires", "merge"];

pub(super) const TOOLS: [(&str, ToolKind); 2] = [("terraform", ToolKind::Terraform), ("tofu", ToolKind::Tofu)];
pub(super) const GATES: [(&str, GatePolicy); 3] =
    [("always", GatePolicy::Always), ("on-destructive", GatePolicy::OnDestructive), ("never", GatePolicy::Never)];
pub(super) const APPROVALS: [(&str, ApprovalSource); 3] =
    [("ledger", ApprovalSource::Ledger), ("pr-review", ApprovalSource::PrReview), ("sealed", ApprovalSource::Sealed)];
pub(super) const LOCKS: [(&str, LockMode); 2] = [("apply", LockMode::Apply), ("plan", LockMode::Plan)];
pub(super) const WHENS: [(&str, ApplyWhen); 1] = [("pull-request", ApplyWhen::PullRequest)];
pub(super) const MERGES: [(&str, MergePolicy); 2] = [("manual", MergePolicy::Manual), ("auto", MergePolicy::Auto)];
pub(super) const REQUIREMENTS: [(&str, Requirement); 3] = [
    ("approved", Requirement::Approved),
    ("mergeable", Requirement::Mergeable),
    ("undiverged", Requirement::Undiverged),
];

/// Reads the file; all problems at once, in the order of the file.
pub fn parse(text: &str) -> Result<RepoConfig, Vec<Problem>> {
    let document = tree::read(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|problem| vec![problem])?;
    let mut reader = Reader { problems: Vec::new() };
    let config = reader.top(&document);
    if reader.problems.is_empty() {
        return Ok(config);
    }
    reader.problems.sort_by_key(|problem| (problem.line, problem.column));
    Err(reader.problems)
}

struct Reader {
    problems: Vec<Problem>,
}

/// Who says how a wave's gate is set, to find a contradiction.
#[derive(Default)]
struct GateSaid {
    by_gate: bool,
    by_require_approval: bool,
}

impl Reader {
    fn top(&mut self, node: &Node) -> RepoConfig {
        let mut config = RepoConfig::default();
        let mut said = GateSaid::default();
        let known: Vec<&str> = ROOT_KEYS.iter().chain(&TOP_KEYS).copied().collect();
        for (key, value) in self.entries(node, "the file", &known) {
            match key {
                "roots" => self.roots(value, &mut config),
                "waves" => config.waves = self.waves(value),
                "confirm_destructive" => config.confirm_destructive = self.switch(key, value).unwrap_or_default(),
                "approval" => config.approval = self.choice(key, value, &APPROVALS).unwrap_or_default(),
                "approvers" if matches!(value.value, Value::Map(_)) => {
                    let (approvers, names) = self.approvers(value);
                    config.approvers = approvers;
                    config.top.approvers = names;
                }
                "apply" => config.apply = self.apply(value),
                "locks" => config.locks = self.choice(key, value, &LOCKS).unwrap_or_default(),
                "parallelism" => config.parallelism = self.count(key, value, 1).unwrap_or_default(),
                "prune" => {
                    let asked = self.switch(key, value).unwrap_or(true);
                    config.prune = if asked { Prune::Unchanged } else { Prune::Nothing };
                }
                _ => self.root_key(key, value, &mut config.top, &mut said),
            }
        }
        config
    }

    fn roots(&mut self, node: &Node, config: &mut RepoConfig) {
        for (key, value) in self.entries(node, "`roots`", &ROOTS_KEYS) {
            if key == "ignore" {
                config.ignore = self.texts("roots.ignore", value);
                for pattern in &config.ignore {
                    self.check_glob(pattern, value);
                }
                continue;
            }
            let Some(matches) = self.map("`roots.match`", value) else { continue };
            for (pattern, settings) in matches {
                self.check_glob(&pattern.value, settings);
                let mut read = RootSettings::default();
                let mut said = GateSaid::default();
                let place = format!("`{}`", pattern.value);
                for (key, value) in self.entries(settings, &place, &ROOT_KEYS) {
                    self.root_key(key, value, &mut read, &mut said);
                }
                config.matches.push((pattern.value.clone(), read));
            }
        }
    }

    fn check_glob(&mut self, pattern: &str, node: &Node) {
        if let Err(why) = glob::check(pattern) {
            self.problems.push(node.problem(format!("`{pattern}` is no pattern: {why}.")));
        }
    }

    fn root_key(&mut self, key: &str, value: &Node, settings: &mut RootSettings, said: &mut GateSaid) {
        match key {
            "tool" => settings.tool = self.choice(key, value, &TOOLS),
            "version" => settings.version = self.version(value),
            "gate" => {
                settings.gate = self.choice(key, value, &GATES);
                said.by_gate = true;
            }
            "require_approval" => {
                let gate = |asked| if asked { GatePolicy::Always } else { GatePolicy::Never };
                settings.gate = self.switch(key, value).map(gate);
                said.by_require_approval = true;
            }
            "approvers" => settings.approvers = self.texts(key, value),
            "workspaces" => settings.workspaces = self.texts(key, value),
            "var_files" => settings.var_files = self.texts(key, value),
            "state" => settings.state = self.state(value),
            _ => settings.backend_config = self.texts(key, value),
        }
        if said.by_gate && said.by_require_approval {
            self.problems.push(value.problem("`gate` and `require_approval` say the same thing twice; keep `gate`."));
            *said = GateSaid::default();
        }
    }

    fn state(&mut self, value: &Node) -> Option<String> {
        let state = self.text("state", value)?;
        if !state
            .split_once(':')
            .is_some_and(|(kind, place)| !kind.is_empty() && place.chars().any(char::is_alphanumeric))
        {
            self.problems.push(value.problem(format!(
                "`state` takes the kind of the backend and the place in it, with `*` for what is not known and `{{name}}` for the name \
                 of the root's directory (`s3:*/{{name}}.tfstate`), not `{state}`."
            )));
        }
        Some(state)
    }

    fn version(&mut self, value: &Node) -> Option<String> {
        let version = self.text("version", value)?;
        if Constraint::parse(&version).is_none() {
            self.problems.push(value.problem(format!(
                "`version` takes a version (`1.12.6`) or a constraint (`~> 1.5`, `>= 1.4, < 2`), not `{version}`."
            )));
        }
        Some(version)
    }

    fn waves(&mut self, node: &Node) -> Waves {
        let mut waves = Waves::default();
        for (key, value) in self.entries(node, "`waves`", &WAVES_KEYS) {
            match key {
                "canary" => waves.canary = self.dirs("waves.canary", value),
                "jobs" => waves.jobs = self.count("waves.jobs", value, 1).unwrap_or_default(),
                _ => {
                    for (root, sources) in self.map("`waves.after`", value).unwrap_or_default() {
                        let place = format!("waves.after.{}", root.value);
                        let sources = self.dirs(&place, sources);
                        if waves.after.insert(glob::tidy(&root.value).to_owned(), sources).is_some() {
                            self.problems.push(problem_at(
                                &root.referenced,
                                format!("`{}` stands in `waves.after` twice.", root.value),
                            ));
                        }
                    }
                }
            }
        }
        waves
    }

    fn approvers(&mut self, node: &Node) -> (Approvers, Vec<String>) {
        let mut approvers = Approvers::default();
        let mut names = Vec::new();
        for (key, value) in self.entries(node, "`approvers`", &APPROVERS_KEYS) {
            match key {
                "four_eyes" => approvers.four_eyes = self.switch("approvers.four_eyes", value).unwrap_or(true),
                "count" => approvers.count = self.count("approvers.count", value, 1).unwrap_or(1),
                _ => names = self.texts("approvers.names", value),
            }
        }
        (approvers, names)
    }

    fn apply(&mut self, node: &Node) -> ApplyPolicy {
        let mut apply = ApplyPolicy::default();
        for (key, value) in self.entries(node, "`apply`", &APPLY_KEYS) {
            match key {
                "when" => apply.when = self.choice("apply.when", value, &WHENS).unwrap_or(apply.when),
                "merge" => apply.merge = self.choice("apply.merge", value, &MERGES).unwrap_or(apply.merge),
                _ => {
                    let list = self.list("apply.requires", value);
                    apply.requires =
                        list.iter().filter_map(|item| self.choice("apply.requires", item, &REQUIREMENTS)).collect();
                }
            }
        }
        apply
    }

    /// The entries of a map whose keys are known; each other key is a problem, and one that holds nothing is as if it were not there.
    fn entries<'a, 'k>(&mut self, node: &'a Node, place: &str, known: &[&'k str]) -> Vec<(&'k str, &'a Node)> {
        let mut entries = Vec::new();
        for (key, value) in self.map(place, node).unwrap_or_default() {
            if let Some(name) = known.iter().find(|name| **name == key.value) {
                if !matches!(value.value, Value::Null) {
                    entries.push((*name, value));
                }
                continue;
            }
            let way = match nearest(&key.value, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("these are known: {}.", names(known.iter().copied())),
            };
            self.problems.push(problem_at(&key.referenced, format!("{place} has no key `{}`; {way}", key.value)));
        }
        entries
    }

    fn map<'a>(&mut self, place: &str, node: &'a Node) -> Option<Vec<(&'a serde_saphyr::Spanned<String>, &'a Node)>> {
        match &node.value {
            Value::Map(entries) => Some(entries.iter().map(|(key, value)| (key, value)).collect()),
            Value::Null => None,
            other => {
                self.problems.push(node.problem(format!("{place} must be a map, not {}.", other.kind())));
                None
            }
        }
    }

    fn list<'a>(&mut self, key: &str, node: &'a Node) -> &'a [Node] {
        if let Value::List(items) = &node.value {
            return items;
        }
        self.problems.push(node.problem(format!("`{key}` must be a list, not {}; write `[…]`.", node.value.kind())));
        &[]
    }

    fn texts(&mut self, key: &str, node: &Node) -> Vec<String> {
        self.list(key, node).iter().filter_map(|item| self.text(key, item)).collect()
    }

    fn dirs(&mut self, key: &str, node: &Node) -> Vec<String> {
        self.texts(key, node).iter().map(|dir| glob::tidy(dir).to_owned()).collect()
    }

    fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::Text(_) => self.refuse(node, format!("`{key}` must not hold an empty text.")),
            // YAML reads 1.10 as 1.1: only the author knows which was meant.
            Value::Number(_) | Value::Bool(_) => {
                self.refuse(node, format!("`{key}` must be a text; put it in quotes."))
            }
            other => self.refuse(node, format!("`{key}` must be a text, not {}.", other.kind())),
        }
    }

    fn switch(&mut self, key: &str, node: &Node) -> Option<bool> {
        match &node.value {
            Value::Bool(value) => Some(*value),
            other => self.refuse(node, format!("`{key}` must be `true` or `false`, not {}.", other.kind())),
        }
    }

    fn count(&mut self, key: &str, node: &Node, least: usize) -> Option<usize> {
        let number = match &node.value {
            Value::Number(number) => number.parse::<usize>().ok().filter(|number| (least..=1000).contains(number)),
            _ => None,
        };
        number.or_else(|| self.refuse(node, format!("`{key}` must be a whole number from {least} to 1000.")))
    }

    fn choice<T: Copy>(&mut self, key: &str, node: &Node, choices: &[(&str, T)]) -> Option<T> {
        let all = || names(choices.iter().map(|(name, _)| *name));
        let Value::Text(text) = &node.value else {
            return self.refuse(node, format!("`{key}` must be one of {}, not {}.", all(), node.value.kind()));
        };
        if let Some((_, value)) = choices.iter().find(|(name, _)| name == text) {
            return Some(*value);
        }
        let way = match nearest(text, choices.iter().map(|(name, _)| *name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it is one of {}.", all()),
        };
        self.refuse(node, format!("`{key}` cannot be `{text}`; {way}"))
    }

    fn refuse<T>(&mut self, node: &Node, what: String) -> Option<T> {
        self.problems.push(node.problem(what));
        None
    }
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    all.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
