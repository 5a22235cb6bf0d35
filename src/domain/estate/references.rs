//! The references of one root's module tree as a graph: who uses whom, through locals, arguments, outputs, providers and modules.
//! It errs on the side of an edge too many; it knows no plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Estate;
use super::ground::Ground;
use super::module::{self, Module};
use crate::domain::hcl::{ModuleCall, Provider, Reference};
use crate::domain::ids::RootKey;

/// Users of each thing in a root's module tree.
#[derive(Clone, Debug, Default)]
pub struct References {
    names: Vec<String>,
    kinds: Vec<Kind>,
    at: HashMap<String, usize>,
    users: Vec<Vec<usize>>,
    modules: usize,
}

/// More module calls than this are not followed in one root: a stranger's code could double them at each level.
const MOST_MODULES: usize = 5_000;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Resource,
    Output,
    Other,
}

/// What a walk came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// Addresses of managed resources, without instance keys.
    pub resources: BTreeSet<String>,
    /// Outputs of the root.
    pub outputs: BTreeSet<String>,
}

impl Estate {
    /// The references of a root's module tree; empty for a root that is not here.
    pub fn references(&self, root: &RootKey) -> References {
        let mut references = References::default();
        if let Some(module) = self.ground.modules.get(root.dir()) {
            let build = Build { ground: &self.ground, module, prefix: String::new(), parent: None };
            build.add(&mut references);
        }
        references.users.iter_mut().for_each(|users| {
            users.sort_unstable();
            users.dedup();
        });
        references
    }
}

impl References {
    /// Everything that depends on these nodes; they themselves are not in it.
    pub fn users(&self, start: &[String]) -> Users {
        let mut found = Users::default();
        let mut seen = vec![false; self.names.len()];
        let mut open: Vec<usize> = start.iter().filter_map(|name| self.at.get(name)).copied().collect();
        open.iter().for_each(|at| seen[*at] = true);
        while let Some(at) = open.pop() {
            for user in &self.users[at] {
                if std::mem::replace(&mut seen[*user], true) {
                    continue;
                }
                open.push(*user);
                match self.kinds[*user] {
                    Kind::Resource => found.resources.insert(self.names[*user].clone()),
                    Kind::Output => found.outputs.insert(self.names[*user]["output.".len()..].to_owned()),
                    Kind::Other => false,
                };
            }
        }
        found
    }

    /// The node at which an output of another root's state enters, or the whole object, by the block that reads it.
    pub fn entry(block: &str, output: Option<&str>) -> String {
        format!("{block}#{}", output.unwrap_or("*"))
    }

    fn node(&mut self, name: String, kind: Kind) -> usize {
        if let Some(at) = self.at.get(&name).copied() {
            // A reference may have named it before its declaration came.
            if kind != Kind::Other {
                self.kinds[at] = kind;
            }
            return at;
        }
        self.names.push(name.clone());
        self.kinds.push(kind);
        self.users.push(Vec::new());
        self.at.insert(name, self.names.len() - 1);
        self.names.len() - 1
    }

    fn other(&mut self, name: String) -> usize {
        self.node(name, Kind::Other)
    }

    fn edge(&mut self, used: usize, user: usize) {
        if used != user {
            self.users[used].push(user);
        }
    }
}

/// One module of the tree while the graph is made. Instances of a module are one.
struct Build<'a> {
    ground: &'a Ground,
    module: &'a Module,
    /// `module.app.`
    prefix: String,
    parent: Option<(&'a Build<'a>, &'a ModuleCall)>,
}

impl Build<'_> {
    fn add(&self, into: &mut References) {
        let name = |name: &str| format!("{}{name}", self.prefix);
        for (local, value) in &self.module.locals {
            let at = into.other(name(&format!("local.{local}")));
            self.uses(into, at, &value.references());
        }
        for (variable, declared) in &self.module.variables {
            let at = into.other(name(&format!("var.{variable}")));
            self.uses(into, at, &declared.references);
        }
        for provider in &self.module.providers {
            let at = into.other(name(&provider_node(provider)));
            self.uses(into, at, &provider.references);
        }
        for (output, declared) in &self.module.outputs {
            let kind = if self.parent.is_none() { Kind::Output } else { Kind::Other };
            let at = into.node(name(&format!("output.{output}")), kind);
            self.uses(into, at, &declared.references);
            self.belongs(into, at);
        }
        for (address, resource) in &self.module.resources {
            let managed = !address.starts_with("data.") && !address.starts_with("ephemeral.");
            let at = into.node(name(address), if managed { Kind::Resource } else { Kind::Other });
            self.uses(into, at, &resource.references);
            self.belongs(into, at);
            let own = resource.address.trim_start_matches("data.").trim_start_matches("ephemeral.");
            let provider =
                resource.provider.clone().unwrap_or_else(|| own.split(['_', '.']).next().unwrap_or(own).to_owned());
            if let Some(provider) = self.provider(&provider) {
                let provider = into.other(provider);
                into.edge(provider, at);
            }
        }
        for (address, references) in &self.module.imports {
            let at = into.node(name(address), Kind::Resource);
            self.uses(into, at, references);
        }
        for (call_name, call) in &self.module.calls {
            self.call(into, call_name, call);
        }
    }

    /// Everything in a module comes after what its call waits for, and is part of the module as a whole.
    fn belongs(&self, into: &mut References, at: usize) {
        if self.parent.is_some() {
            let opened = into.other(format!("{}open", self.prefix));
            let whole = into.other(format!("{}whole", self.prefix));
            into.edge(opened, at);
            into.edge(at, whole);
        }
    }

    fn call(&self, into: &mut References, call_name: &str, call: &ModuleCall) {
        let prefix = format!("{}module.{call_name}.", self.prefix);
        let opened = into.other(format!("{prefix}open"));
        let whole = into.other(format!("{prefix}whole"));
        into.edge(opened, whole);
        self.belongs(into, opened);
        self.belongs(into, whole);
        self.uses(into, opened, &call.depends_on);
        for expr in call.count.iter().chain(&call.for_each) {
            self.uses(into, opened, &expr.references());
        }
        let child = self.ground.child(self.module, call);
        for (argument, value) in &call.args {
            let at = into.other(format!("{prefix}var.{argument}"));
            self.uses(into, at, &value.references());
            // What a module from elsewhere does with it is not known: all of it may depend on all arguments.
            if child.is_none() {
                into.edge(at, whole);
            }
        }
        into.modules += 1;
        if let Some(child) = child.filter(|child| into.modules <= MOST_MODULES && !self.is_inside(&child.dir)) {
            Build { ground: self.ground, module: child, prefix, parent: Some((self, call)) }.add(into);
        }
    }

    /// Whether the directory is among the callers, or they are too many.
    fn is_inside(&self, dir: &str) -> bool {
        let (mut at, mut depth) = (self, 0);
        loop {
            match at.parent {
                _ if at.module.dir == dir || depth > 50 => return true,
                Some((parent, _)) => (at, depth) = (parent, depth + 1),
                None => return false,
            }
        }
    }

    /// Adds an edge from everything that the references mean.
    fn uses(&self, into: &mut References, user: usize, references: &[Reference]) {
        for reference in references {
            for used in self.meant(&self.module.unalias(reference)) {
                let used = into.other(used);
                into.edge(used, user);
            }
        }
    }

    /// The nodes that a reference means in this module.
    fn meant(&self, path: &[String]) -> Vec<String> {
        let name = |name: String| format!("{}{name}", self.prefix);
        if let Some((read, output)) = module::read_of(path) {
            let block = name(format!("data.{}.{read}", path[1]));
            return match output {
                Some(output) => vec![format!("{block}#{output}"), block],
                None => vec![format!("{block}#*"), block],
            };
        }
        match path {
            [head, first, ..] if head == "var" || head == "local" => vec![name(format!("{head}.{first}"))],
            [head, kind, resource, ..] if head == "data" || head == "ephemeral" => {
                vec![name(format!("{head}.{kind}.{resource}"))]
            }
            [head, call, rest @ ..] if head == "module" => {
                let child = self.module.calls.get(call).and_then(|call| self.ground.child(self.module, call));
                // A key of a counted module may stand before the output.
                let output =
                    rest.iter().take(2).find(|step| child.is_some_and(|child| child.outputs.contains_key(*step)));
                match output {
                    Some(output) => vec![name(format!("module.{call}.output.{output}"))],
                    None => vec![name(format!("module.{call}.whole"))],
                }
            }
            [kind, resource, ..] => {
                let address = format!("{kind}.{resource}");
                let here = self.module.resources.contains_key(&address);
                if here { vec![name(address)] } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    /// The node of the provider configuration that a name means here: its own, or the caller's.
    fn provider(&self, wanted: &str) -> Option<String> {
        if self.module.providers.iter().any(|provider| provider_node(provider) == format!("provider.{wanted}")) {
            return Some(format!("{}provider.{wanted}", self.prefix));
        }
        let (parent, call) = self.parent?;
        let passed = call.providers.iter().find(|(inner, _)| inner == wanted).map(|(_, outer)| outer.as_str());
        parent.provider(passed.unwrap_or(wanted))
    }
}

fn provider_node(provider: &Provider) -> String {
    match &provider.alias {
        Some(alias) => format!("provider.{}.{alias}", provider.name),
        None => format!("provider.{}", provider.name),
    }
}

impl References {
    /// Everything that each resource depends on, resources only, for comparison with the tool's own graph.
    pub fn dependencies(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, _) in self.names.iter().zip(&self.kinds).filter(|(_, kind)| **kind == Kind::Resource) {
            for user in self.users(std::slice::from_ref(name)).resources {
                all.entry(user).or_default().insert(name.clone());
            }
        }
        all
    }
}
