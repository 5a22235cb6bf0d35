//! Finds roots, the state of each, who reads whom and which files each reads, from a listing and facts. It never runs a tool, and
//! what it cannot evaluate becomes a hole, not a guess.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::evaluate::{Here, Tree};
use super::ground::Ground;
use super::module::{File, Module};
use super::owners::{Index, Standing};
use super::state::{self, Args, Place, Workspace};
use super::terragrunt::{self, Code, Unit};
use super::value::Value;
use super::{Edge, Estate, Hole, Root, RootKind, convention, inputs, path, reads, workspaces};
use crate::domain::config::{RepoConfig, RootSettings};
use crate::domain::hcl::FileFacts;
use crate::domain::ids::{RootKey, StateKey};
use crate::domain::tree::Listing;

/// Finds roots, states and edges. `facts` maps a blob id to the facts of the wanted files of the listing; `links`
/// maps a symlink's blob id to its target.
pub fn survey(
    listing: &Listing,
    facts: &BTreeMap<String, Arc<FileFacts>>,
    links: &BTreeMap<String, String>,
    config: &RepoConfig,
) -> Estate {
    let mut estate = Estate::default();
    let ground = Ground::new(listing, facts, links, config, &mut estate.holes);
    let units = terragrunt::units(&ground, listing, &mut estate.holes);
    let units: BTreeMap<String, Unit> = units.into_iter().filter(|(dir, _)| !is_ignored(dir, config)).collect();
    let mut called: BTreeSet<String> = BTreeSet::new();
    for dir in ground.modules.keys() {
        called.extend(ground.closure(dir));
    }
    called.extend(units.values().filter_map(Unit::code_elsewhere).map(str::to_owned));
    let code: BTreeSet<&str> = units.values().filter_map(Unit::code_elsewhere).collect();
    let mut index = Index::default();
    let candidates: Vec<(&Module, RootKind)> = ground
        .modules
        .values()
        .filter(|module| !is_ignored(&module.dir, config) && !units.contains_key(&module.dir))
        .filter(|module| !(code.contains(module.dir.as_str()) && module.is_left_to_terragrunt()))
        .filter_map(|module| Some((module, kind_of(module, &called, ground.values_in(&module.dir))?)))
        .collect();
    let dirs = candidates.iter().map(|(module, _)| module.dir.as_str());
    let dirs: BTreeSet<&str> = dirs.chain(units.keys().map(String::as_str)).collect();
    let mut found = Vec::new();
    let (mut made, mut conventions) = (BTreeSet::new(), Vec::new());
    for (module, kind) in &candidates {
        let settings = config.for_root(&module.dir);
        let workspaces =
            if settings.workspaces.is_empty() { vec!["default".to_owned()] } else { settings.workspaces.clone() };
        for workspace in workspaces {
            let site = Site { ground: &ground, module, kind, settings: &settings, dirs: &dirs };
            let visited = site.visit(&workspace, &mut estate.holes);
            let (root, places, reads) = (visited.root, visited.places, visited.reads);
            made.extend(visited.workspaces);
            conventions.extend(visited.backend_files);
            index.name(root.key.dir());
            for (place, standing) in places {
                index.add(estate.roots.len(), place, standing);
            }
            found.push(reads);
            estate.roots.push(root);
        }
    }
    for (name, dir) in made {
        own_by_name(&estate, &mut index, &name, &dir);
    }
    estate.conventions = convention::told(conventions);
    for unit in units.values() {
        index.name(&unit.dir);
        let (root, places, reads) = of_unit(unit, &ground, &dirs, &mut estate.holes);
        for (place, standing) in places {
            index.add(estate.roots.len(), place, standing);
        }
        found.push(reads);
        estate.roots.push(root);
    }
    for (reader, reads) in found.into_iter().enumerate() {
        reads::link(&mut estate, reader, reads, &index);
    }
    units.values().for_each(|unit| link_unit(&mut estate, unit, &units));
    share_states(&mut estate);
    module_holes(&mut estate, &ground);
    estate.ground = ground;
    sort(&mut estate);
    estate
}

/// A root whose block names no workspace owns those that other code lets work in its directory.
fn own_by_name(estate: &Estate, index: &mut Index, name: &str, dir: &str) {
    let is_meant =
        |root: &Root| root.key.dir() == dir && !root.state_known && matches!(root.backend.as_str(), "cloud" | "remote");
    for (at, _) in estate.roots.iter().enumerate().filter(|(_, root)| is_meant(root)) {
        let place = Place { family: "remote".to_owned(), container: vec![None, None], location: name.to_owned() };
        index.add(at, place, Standing::Convention);
    }
}

/// A unit as a root, with the place of its state and what its module reads.
fn of_unit(
    unit: &Unit,
    ground: &Ground,
    dirs: &BTreeSet<&str>,
    holes: &mut Vec<Hole>,
) -> (Root, Vec<(Place, Standing)>, Vec<reads::Read>) {
    let key = RootKey::new(&unit.dir);
    let place = unit.state.as_ref();
    let place = place.and_then(|(kind, args)| state::place(kind, args, Workspace::Of("default"), &unit.dir));
    let state = place.as_ref().and_then(Place::key);
    let mut root = Root {
        backend: unit.state.as_ref().map_or("terragrunt", |(kind, _)| kind).to_owned(),
        state_known: state.is_some(),
        state: state.unwrap_or_else(|| StateKey::new(format!("dir:{key}"))),
        kind: RootKind::Unit,
        modules: Vec::new(),
        files: unit.files.iter().cloned().collect(),
        required_version: None,
        key,
    };
    let dir = match &unit.code {
        Code::Here => unit.dir.as_str(),
        Code::Local(dir) => dir,
        Code::Elsewhere => "",
    };
    let mut found = Vec::new();
    if let Some(module) = ground.modules.get(dir) {
        let find = |from: &str, source: &str| ground.called(from, source);
        let tree = Tree::new(module, unit.inputs.clone(), "default", &find);
        let mut modules = ground.closure(dir);
        modules.extend(tree.scopes.iter().map(|scope| scope.module.dir.clone()));
        modules.remove(unit.dir.as_str());
        root.modules = modules.into_iter().collect();
        root.files.extend(inputs::files(&tree, ground, &RootSettings::default(), dirs, holes));
        root.files.sort();
        root.files.dedup();
        found = reads::of(&tree);
    } else if !dir.is_empty() {
        // A directory of the tree that holds no configuration of its own is still the unit's code.
        root.modules.push(dir.to_owned());
    }
    (root, place.into_iter().map(|place| (place, Standing::Own)).collect(), found)
}

/// The edges of a unit's `dependency` and `dependencies` blocks.
fn link_unit(estate: &mut Estate, unit: &Unit, units: &BTreeMap<String, Unit>) {
    for need in &unit.needs {
        let what = match &need.dir {
            Some(dir) if units.contains_key(dir) => {
                if *dir != unit.dir {
                    estate.edges.push(Edge {
                        reader: RootKey::new(&unit.dir),
                        source: RootKey::new(dir),
                        block: need.block.clone(),
                        outputs: if need.block == "dependencies" { Some(Vec::new()) } else { None },
                        certain: true,
                    });
                }
                continue;
            }
            Some(dir) => format!("`{}` names `{dir}`, which is no unit here.", need.block),
            None => format!("`{}` names a unit that is not known from the code.", need.block),
        };
        estate.holes.push(Hole { path: need.path.clone(), line: need.line, what });
    }
}

fn kind_of(module: &Module, called: &BTreeSet<String>, values: &[File]) -> Option<RootKind> {
    if module.backend.is_some() {
        // A directory of files for others to link to: it has nothing of its own, or it cannot run by itself.
        let shared_file_only =
            module.only_targets && (!module.has_content() || (values.is_empty() && module.is_open()));
        return (!shared_file_only).then_some(RootKind::Certain);
    }
    let configured = module.providers.iter().any(|provider| provider.configured);
    (configured && !called.contains(&module.dir)).then_some(RootKind::Probable)
}

/// Examples of modules and fixtures of tests are no roots, whatever they declare; no other folder name says anything.
pub(super) fn is_ignored(dir: &str, config: &RepoConfig) -> bool {
    let parts: Vec<&str> = dir.split('/').collect();
    let example = parts.iter().position(|part| *part == "modules").is_some_and(|at| parts[at..].contains(&"examples"));
    let fixture = parts.windows(2).any(|pair| matches!(pair, ["test" | "tests", "fixtures"]));
    // What `init` downloads, when somebody keeps it beside the code.
    let downloaded = parts.iter().any(|part| matches!(*part, ".terraform" | ".terragrunt-cache"));
    example || fixture || downloaded || config.ignores(dir)
}

/// A directory that is a root, and what is around it.
struct Site<'a> {
    ground: &'a Ground,
    module: &'a Module,
    kind: &'a RootKind,
    settings: &'a RootSettings,
    dirs: &'a BTreeSet<&'a str>,
}

/// What a visit finds.
struct Visited {
    root: Root,
    places: Vec<(Place, Standing)>,
    reads: Vec<reads::Read>,
    /// Workspaces that its code makes, and the directory of each.
    workspaces: BTreeSet<(String, String)>,
    /// Its directory, and the backend files that a convention gives it.
    backend_files: Option<(String, Vec<String>)>,
}

impl Site<'_> {
    fn visit(&self, workspace: &str, holes: &mut Vec<Hole>) -> Visited {
        let (ground, dir) = (self.ground, self.module.dir.as_str());
        let set = inputs::variables(ground, self.module, self.settings, holes);
        let find = |from: &str, source: &str| ground.called(from, source);
        let tree = Tree::new(self.module, set, workspace, &find);
        let key = RootKey::in_workspace(dir, workspace);
        let stand_in = || StateKey::new(format!("dir:{key}"));
        let mut root = Root {
            state: stand_in(),
            key: key.clone(),
            backend: "none".to_owned(),
            state_known: false,
            kind: self.kind.clone(),
            modules: ground.closure(dir).into_iter().collect(),
            files: Vec::new(),
            required_version: self.module.required_version.clone(),
        };
        let places = self.places(&tree, workspace, &mut root, holes);
        self.calls(&tree, &mut root, holes);
        root.files = inputs::files(&tree, ground, self.settings, self.dirs, holes);
        let by_convention = places.iter().any(|(_, standing)| *standing == Standing::Convention);
        let backend_files = (by_convention && self.module.backend.is_some()).then(|| {
            let sets = inputs::backend_files(ground, dir, self.dirs);
            (dir.to_owned(), sets.iter().filter_map(|set| set.last()).map(|(path, _)| path.clone()).collect())
        });
        Visited { root, places, reads: reads::of(&tree), workspaces: workspaces::of(&tree), backend_files }
    }

    /// Adds the modules whose source had to be evaluated, and says which local ones are not found.
    fn calls(&self, tree: &Tree<'_>, root: &mut Root, holes: &mut Vec<Hole>) {
        let mut dirs: BTreeSet<String> = root.modules.drain(..).collect();
        dirs.extend(tree.scopes.iter().skip(1).map(|scope| scope.module.dir.clone()));
        for (at, scope) in tree.scopes.iter().enumerate() {
            for (name, call) in &scope.module.calls {
                let Some(source) = &call.source else { continue };
                let what = match tree.eval(source, Here::of(at)).as_known() {
                    None => "has a source that is not known from the code: a change in it reaches nobody",
                    Some(source)
                        if source.starts_with('.') && self.ground.called(&scope.module.dir, &source).is_none() =>
                    {
                        "names a directory that holds no configuration"
                    }
                    Some(_) => continue,
                };
                let path = scope.module.dir.clone();
                holes.push(Hole { path, line: call.line, what: format!("The call `module.{name}` {what}.") });
            }
        }
        root.modules = dirs.into_iter().collect();
    }

    /// Where it keeps its state, and sets what the root says of it.
    fn places(
        &self,
        tree: &Tree<'_>,
        workspace: &str,
        root: &mut Root,
        holes: &mut Vec<Hole>,
    ) -> Vec<(Place, Standing)> {
        let dir = self.module.dir.as_str();
        let Some((backend, file)) = &self.module.backend else {
            let line =
                self.module.providers.iter().find(|provider| provider.configured).map_or(0, |provider| provider.line);
            let what = "Only a configured provider makes this look like a root: `terraform { backend … }` would make it one, \
                        and an entry in `roots.ignore` would hide it.";
            holes.push(Hole { path: dir.to_owned(), line, what: what.to_owned() });
            // Without a backend the state lies beside the code, unless a backend is written at run time.
            let beside =
                || Some((state::place("local", &Args::new(), Workspace::Of(workspace), dir)?, Standing::Convention));
            return self.said().or_else(beside).into_iter().collect();
        };
        root.backend.clone_from(&backend.kind);
        let mut args: Args =
            backend.args.iter().map(|(name, value)| (name.clone(), tree.eval(value, Here::of(0)))).collect();
        for value in args.values_mut() {
            let Some(text) = value.as_known().filter(|text| is_placeholder(text)) else { continue };
            // Somebody fills it in before the first init; what else the block says still stands.
            *value = Value::Unknown;
            if root.kind == RootKind::Certain {
                let what = format!("The backend holds a placeholder, `{text}`: the root is listed and not planned.");
                holes.push(Hole { path: file.clone(), line: backend.line, what });
            }
            root.kind = RootKind::Probable;
        }
        let explicit = !self.settings.backend_config.is_empty();
        for name in &self.settings.backend_config {
            match self.ground.values_at(&path::join(dir, name)) {
                Some((_, facts)) => set(&mut args, facts, tree),
                None => holes.push(Hole {
                    path: path::join(dir, name),
                    line: 0,
                    what: format!("`backend_config` of `{dir}` names this file, which is not there or was not read."),
                }),
            }
        }
        let at = |args: &Args, workspace| state::place(&backend.kind, args, workspace, dir);
        let Some(own) = at(&args, Workspace::Of(workspace)) else {
            let what =
                format!("The backend `{}` is not known here, so nobody is seen to read this state.", backend.kind);
            holes.push(Hole { path: file.clone(), line: backend.line, what });
            return Vec::new();
        };
        if let Some(key) = own.key() {
            (root.state, root.state_known) = (key, true);
        }
        let known = root.state_known;
        if let Some(said) = self.said().filter(|_| !known) {
            return vec![said];
        }
        let mut places = vec![(own, Standing::Own)];
        if self.settings.workspaces.is_empty() {
            places.extend(at(&args, Workspace::Any).map(|place| (place, Standing::AnyWorkspace)));
        }
        if !known && !explicit {
            for facts in inputs::backend_files(self.ground, dir, self.dirs) {
                let mut args = args.clone();
                facts.iter().for_each(|(_, facts)| set(&mut args, facts, tree));
                places.extend(at(&args, Workspace::Of(workspace)).map(|place| (place, Standing::Convention)));
            }
            // The bare block says nothing that a backend file would not say better.
            if places.iter().any(|(_, standing)| *standing == Standing::Convention) {
                places.retain(|(_, standing)| *standing == Standing::Convention);
            }
        }
        places
    }
}

impl Site<'_> {
    /// The place that the settings name for a backend that the code does not hold.
    fn said(&self) -> Option<(Place, Standing)> {
        let place = state::named(self.settings.state.as_deref()?, &self.module.dir)?;
        Some((place, Standing::Convention))
    }
}

fn set(args: &mut Args, facts: &FileFacts, tree: &Tree<'_>) {
    args.extend(facts.values.iter().map(|(name, value)| (name.clone(), tree.eval(value, Here::of(0)))));
}

fn is_placeholder(text: &str) -> bool {
    let after = |mark: char| text.split(mark).skip(1).filter_map(|rest| rest.chars().next());
    let tag = text.split_once('<').is_some_and(|(_, rest)| rest.contains('>'));
    let words = ["UPDATE_ME", "CHANGE_ME", "CHANGEME", "REPLACE_ME"];
    let template = text.split_once("{{").is_some_and(|(_, rest)| rest.contains("}}"));
    words.iter().any(|word| text.contains(word))
        || tag
        || template
        || after('$').any(|next| next.is_alphabetic() || next == '_')
}

fn share_states(estate: &mut Estate) {
    let mut owners: BTreeMap<&StateKey, Vec<RootKey>> = BTreeMap::new();
    for root in estate.roots.iter().filter(|root| root.state_known) {
        owners.entry(&root.state).or_default().push(root.key.clone());
    }
    let shared = owners.into_iter().filter(|(_, roots)| roots.len() > 1);
    estate.shared_states = shared.map(|(state, roots)| (state.clone(), roots)).collect();
}

/// Holes of the files that roots and their modules are made of; those of other folders concern nobody.
fn module_holes(estate: &mut Estate, ground: &Ground) {
    let dirs: BTreeSet<&str> = estate
        .roots
        .iter()
        .flat_map(|root| std::iter::once(root.key.dir()).chain(root.modules.iter().map(String::as_str)))
        .collect();
    // A file that hides everything may hide a backend, so it is said wherever it lies.
    let all = ground.modules.values().filter(|module| dirs.contains(module.dir.as_str()) || !module.has_content());
    estate.holes.extend(all.flat_map(|module| module.holes.iter().cloned()));
}

fn sort(estate: &mut Estate) {
    estate.roots.sort_by(|a, b| a.key.cmp(&b.key));
    estate.edges.sort();
    estate.edges.dedup();
    estate.external.sort();
    estate.external.dedup();
    estate.holes.sort();
    estate.holes.dedup();
    for (_, roots) in &mut estate.shared_states {
        roots.sort();
    }
}

#[cfg(test)]
mod tests;
