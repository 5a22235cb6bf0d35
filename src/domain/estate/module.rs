//! One directory's configuration: its files put together as the tools do it, overrides last, a `.tofu` file in place of its `.tf`
//! twin. It evaluates nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Hole;
use crate::domain::hcl::{
    Backend, Expr, FileCall, FileFacts, ModuleCall, Named, Output, Provider, Reference, Resource, StateRead, Variable,
    WorkspaceBlock,
};

/// A directory's configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Module {
    pub dir: String,
    /// The block in force and its file.
    pub backend: Option<(Backend, String)>,
    pub required_version: Option<String>,
    pub providers: Vec<Provider>,
    pub variables: BTreeMap<String, Variable>,
    pub locals: BTreeMap<String, Expr>,
    pub calls: BTreeMap<String, ModuleCall>,
    pub resources: BTreeMap<String, Resource>,
    pub outputs: BTreeMap<String, Output>,
    pub reads: BTreeMap<String, (StateRead, String)>,
    pub files: Vec<(FileCall, String)>,
    pub imports: Vec<(String, Vec<Reference>)>,
    pub workspaces: Vec<WorkspaceBlock>,
    pub holes: Vec<Hole>,
    /// Every file is a symbolic link's target.
    pub only_targets: bool,
}

/// A file of a directory: its path and what it declares.
pub(super) type File = (String, Arc<FileFacts>);

impl Module {
    /// Puts files together; they come sorted by path.
    pub fn new(dir: &str, files: &[File]) -> Self {
        let names: BTreeSet<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        let hidden = |path: &str| {
            let twin = path.strip_suffix(".tf").map(|stem| format!("{stem}.tofu"));
            let twin = twin.or_else(|| path.strip_suffix(".tf.json").map(|stem| format!("{stem}.tofu.json")));
            twin.is_some_and(|twin| names.contains(twin.as_str()))
        };
        let mut module = Self { dir: dir.to_owned(), ..Self::default() };
        let shown = || files.iter().filter(|(path, _)| !hidden(path));
        for (path, facts) in shown().filter(|(path, _)| !is_override(path)) {
            module.add(path, facts);
        }
        for (path, facts) in shown().filter(|(path, _)| is_override(path)) {
            module.backend = module.backend.take().filter(|_| facts.backends.is_empty());
            module.add(path, facts);
        }
        module
    }

    /// Whether it declares anything that a root would.
    pub fn has_content(&self) -> bool {
        !(self.resources.is_empty() && self.calls.is_empty() && self.outputs.is_empty() && self.reads.is_empty())
    }

    /// Whether something must be given to it: a variable without a default, or the whole of its backend.
    pub fn is_open(&self) -> bool {
        let backend = self.backend.as_ref().is_some_and(|(backend, _)| backend.args.is_empty());
        backend || self.variables.values().any(|variable| variable.default.is_none())
    }

    /// Whether its backend is an empty block, as modules have it whose backend Terragrunt writes.
    pub fn is_left_to_terragrunt(&self) -> bool {
        self.backend.as_ref().is_none_or(|(backend, _)| backend.args.is_empty())
    }

    fn add(&mut self, path: &str, facts: &FileFacts) {
        for hole in &facts.holes {
            self.holes.push(Hole { path: path.to_owned(), line: hole.line, what: hole.what.clone() });
        }
        for backend in &facts.backends {
            if let Some((_, first)) = &self.backend {
                let what =
                    format!("A second `{}` block: `{first}` has one already, and the tools refuse both.", backend.kind);
                self.holes.push(Hole { path: path.to_owned(), line: backend.line, what });
            } else {
                self.backend = Some((backend.clone(), path.to_owned()));
            }
        }
        // A version in a .tofu file speaks to OpenTofu alone.
        if !path.ends_with(".tofu") && !path.ends_with(".tofu.json") {
            self.required_version = facts.required_versions.last().cloned().or(self.required_version.take());
        }
        self.providers.extend(facts.providers.iter().cloned());
        self.locals.extend(facts.locals.iter().cloned());
        self.files.extend(facts.files.iter().map(|call| (call.clone(), path.to_owned())));
        self.workspaces.extend(facts.workspaces.iter().cloned());
        self.add_blocks(path, facts);
    }

    /// Blocks with a name: one that is there already is overridden, argument by argument.
    fn add_blocks(&mut self, path: &str, facts: &FileFacts) {
        for variable in &facts.variables {
            let known = self.variables.entry(variable.name.clone()).or_insert_with(|| variable.clone());
            known.default = variable.default.clone().or(known.default.take());
        }
        for call in &facts.modules {
            let known = self.calls.entry(call.name.clone()).or_insert_with(|| call.clone());
            known.source = call.source.clone().or(known.source.take());
            known.count = call.count.clone().or(known.count.take());
            known.for_each = call.for_each.clone().or(known.for_each.take());
            override_args(&mut known.args, &call.args);
        }
        for resource in &facts.resources {
            let known = self.resources.entry(resource.address.clone()).or_insert_with(|| resource.clone());
            known.references.extend(resource.references.iter().cloned());
            known.references.sort();
            known.references.dedup();
        }
        for output in &facts.outputs {
            self.outputs.insert(output.name.clone(), output.clone());
        }
        for read in &facts.reads {
            let known = self.reads.entry(read.name.clone()).or_insert_with(|| (read.clone(), path.to_owned()));
            known.0.count = read.count.clone().or(known.0.count.take());
            known.0.for_each = read.for_each.clone().or(known.0.for_each.take());
            override_args(&mut known.0.args, &read.args);
        }
        for import in facts.moves.iter().filter(|import| import.kind == "import") {
            if let Some(address) = &import.address {
                self.imports.push((address.join("."), import.references.clone()));
            }
        }
    }

    /// Follows a local that is only another name: `local.net.vpc_id` with `net = data.….outputs` is the output itself.
    pub fn unalias(&self, reference: &[String]) -> Reference {
        let mut path = reference.to_vec();
        for _ in 0..8 {
            let [head, name, rest @ ..] = path.as_slice() else { break };
            if head != "local" {
                break;
            }
            let Some(target) = self.locals.get(name).and_then(Expr::as_reference).filter(|target| target.len() > 1)
            else {
                break;
            };
            path = target.into_iter().chain(rest.iter().cloned()).collect();
        }
        path
    }

    /// Whether the local is only another name for something.
    pub fn is_alias(&self, local: &str) -> bool {
        self.locals.get(local).and_then(Expr::as_reference).is_some_and(|target| target.len() > 1)
    }

    /// The outputs of each state read that anything in this directory uses; `None` when the whole object is used.
    pub fn uses(&self) -> BTreeMap<String, Option<BTreeSet<String>>> {
        let mut uses: BTreeMap<String, Option<BTreeSet<String>>> =
            self.reads.keys().map(|name| (name.clone(), Some(BTreeSet::new()))).collect();
        if uses.is_empty() {
            return uses;
        }
        let mut all: Vec<Reference> = Vec::new();
        all.extend(self.resources.values().flat_map(|resource| resource.references.iter().cloned()));
        all.extend(self.outputs.values().flat_map(|output| output.references.iter().cloned()));
        all.extend(self.providers.iter().flat_map(|provider| provider.references.iter().cloned()));
        all.extend(self.variables.values().flat_map(|variable| variable.references.iter().cloned()));
        all.extend(self.imports.iter().flat_map(|(_, references)| references.iter().cloned()));
        for call in self.calls.values() {
            all.extend(call.args.iter().flat_map(|(_, value)| value.references()));
            all.extend(call.count.iter().chain(&call.for_each).flat_map(Expr::references));
        }
        for (name, value) in self.locals.iter().filter(|(name, _)| !self.is_alias(name)) {
            all.extend(value.references().into_iter().filter(|path| path.get(1) != Some(name)));
        }
        for reference in all {
            let path = self.unalias(&reference);
            let Some((read, output)) = read_of(&path) else { continue };
            let Some(used) = uses.get_mut(read) else { continue };
            match (output, used.as_mut()) {
                (Some(output), Some(used)) => {
                    used.insert(output.to_owned());
                }
                (None, _) => *used = None,
                _ => {}
            }
        }
        uses
    }
}

/// The state read that a reference means, and its output when it names one.
pub(super) fn read_of(path: &[String]) -> Option<(&str, Option<&str>)> {
    let [data, kind, name, rest @ ..] = path else { return None };
    if data != "data" || !matches!(kind.as_str(), "terraform_remote_state" | "tfe_outputs") {
        return None;
    }
    let holds = |step: &String| matches!(step.as_str(), "outputs" | "values" | "nonsensitive_values");
    // One key of a counted block may stand before `outputs`.
    let at = rest.iter().take(2).position(holds);
    let output = at.and_then(|at| rest.get(at + 1)).map(String::as_str).filter(|output| *output != "*");
    Some((name, output))
}

fn override_args(known: &mut Vec<Named>, new: &[Named]) {
    for (name, value) in new {
        match known.iter_mut().find(|(key, _)| key == name) {
            Some(entry) => entry.1 = value.clone(),
            None => known.push((name.clone(), value.clone())),
        }
    }
}

fn is_override(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split(".t").next().unwrap_or(name);
    stem == "override" || stem.ends_with("_override")
}
