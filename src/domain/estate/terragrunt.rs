//! Terragrunt's units: which directories are units, where the code and the state of each lie, and which units each needs. Terragrunt
//! itself is never run, and what only it would know is unknown here.

use std::collections::{BTreeMap, BTreeSet};

use super::evaluate::{Here, Tree};
use super::ground::Ground;
use super::module::Module;
use super::state::Args;
use super::value::{GAP, Value};
use super::{Hole, path};
use crate::domain::hcl;
use crate::domain::tree::Listing;

mod scene;

use scene::{Block, Reader, Scene};

const FILE: &str = "terragrunt.hcl";
/// Its name before Terragrunt had a file of its own.
pub(super) const OLD_FILE: &str = "terraform.tfvars";
const STACK: &str = "terragrunt.stack.hcl";

/// A directory that Terragrunt plans.
#[derive(Debug)]
pub(super) struct Unit {
    pub dir: String,
    pub code: Code,
    /// What it passes to the module's variables.
    pub inputs: BTreeMap<String, Value>,
    /// Kind and arguments of its backend, when Terragrunt writes it.
    pub state: Option<(String, Args)>,
    pub needs: Vec<Need>,
    /// The files that its configuration is made of, its own left out.
    pub files: BTreeSet<String>,
}

/// Where a unit's module lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// In the unit's own directory.
    Here,
    /// In this directory of the working tree.
    Local(String),
    /// In another repository, or at a fixed revision of this one: no change of the working tree reaches it.
    Elsewhere,
}

/// A unit that must be applied before.
#[derive(Debug)]
pub(super) struct Need {
    /// `dependency.vpc`, `dependencies`.
    pub block: String,
    /// The directory, when it is known.
    pub dir: Option<String>,
    pub path: String,
    pub line: usize,
}

/// The units of a tree, by directory.
pub(super) fn units(ground: &Ground, listing: &Listing, holes: &mut Vec<Hole>) -> BTreeMap<String, Unit> {
    let reader = Reader { ground, listing };
    let files = ground
        .terragrunt
        .keys()
        .filter(|path| name(path) == FILE || (name(path) == OLD_FILE && !reader.has(path::parent(path), FILE)));
    let scenes: Vec<(&String, Scene<'_>)> = files.map(|path| (path, reader.scene(path, path::parent(path)))).collect();
    let included: BTreeSet<&str> =
        scenes.iter().flat_map(|(_, scene)| scene.parents.values()).map(String::as_str).collect();
    let mut units = BTreeMap::new();
    for (path, scene) in scenes.iter().filter(|(path, _)| !included.contains(path.as_str())) {
        if let Some(unit) = unit(ground, &reader, path, scene, holes) {
            units.insert(unit.dir.clone(), unit);
        }
    }
    for path in ground.terragrunt.keys().filter(|path| name(path) == STACK) {
        let what =
            "The units of a stack are made when Terragrunt runs; they are not listed, and no order follows from them.";
        holes.push(Hole { path: path.clone(), line: 0, what: what.to_owned() });
    }
    units
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn unit(ground: &Ground, reader: &Reader<'_>, path: &str, scene: &Scene<'_>, holes: &mut Vec<Hole>) -> Option<Unit> {
    let dir = path::parent(path).to_owned();
    let mut unit = Unit {
        dir: dir.clone(),
        code: Code::Here,
        inputs: BTreeMap::new(),
        state: None,
        needs: Vec::new(),
        files: BTreeSet::new(),
    };
    let mut sourced = false;
    // What is included first, so that the unit's own word stands last.
    let merged = scene.parents.iter().filter(|(label, _)| !scene.apart.contains(*label));
    for path in merged.map(|(_, path)| path.as_str()).chain([path]) {
        let read = reader.read(path, scene);
        if let Value::Object(inputs) = read.inputs {
            unit.inputs.extend(inputs);
        }
        for block in read.blocks {
            match block.kind.as_str() {
                "terraform" => {
                    let code = code(&block, &dir);
                    if code.is_none() {
                        holes.push(hole(
                            &block,
                            "`source` is not known from the code, so no change of a module is seen to reach this unit",
                        ));
                    }
                    unit.code = code.unwrap_or(Code::Elsewhere);
                    sourced = true;
                }
                "remote_state" => unit.state = state(&block, &dir).or(unit.state.take()),
                "generate" if block.arg("disable").as_bool() != Some(true) => {
                    unit.state = generated(&block, &dir).or(unit.state.take());
                }
                "dependency" if block.arg("enabled").as_bool() != Some(false) => {
                    let target = target(ground, &block.arg("config_path"), &dir, path);
                    unit.need(format!("dependency.{}", block.label), target, &block);
                }
                "dependencies" => match block.arg("paths") {
                    Value::List(paths) => paths.iter().for_each(|to| {
                        unit.need("dependencies".to_owned(), target(ground, to, &dir, path), &block);
                    }),
                    _ => unit.need("dependencies".to_owned(), None, &block),
                },
                _ => {}
            }
        }
        let broken = ground.terragrunt.get(path).into_iter().flat_map(|facts| &facts.holes);
        holes.extend(broken.map(|hole| Hole { path: path.to_owned(), line: hole.line, what: hole.what.clone() }));
    }
    unit.files = scene.read.borrow().iter().filter(|read| *read != path).cloned().collect();
    (sourced || ground.modules.contains_key(&dir)).then_some(unit)
}

impl Unit {
    /// The directory of its code, when that is another one of this tree.
    pub fn code_elsewhere(&self) -> Option<&str> {
        if let Code::Local(dir) = &self.code { Some(dir) } else { None }
    }

    fn need(&mut self, block: String, dir: Option<String>, of: &Block) {
        // One of the same name in an included file is another word for it, and no longer counts.
        self.needs.retain(|need| need.block == "dependencies" || need.block != block);
        self.needs.push(Need { block, dir, path: of.path.clone(), line: of.line });
    }
}

fn hole(block: &Block, what: &str) -> Hole {
    Hole { path: block.path.clone(), line: block.line, what: format!("{what}.") }
}

/// `None` while the source is not known.
fn code(block: &Block, dir: &str) -> Option<Code> {
    let source = match block.arg("source") {
        Value::Null => return Some(Code::Here),
        source => source.as_known()?,
    };
    let local = source.starts_with('.') || source.starts_with(scene::TOP);
    if !local {
        return Some(Code::Elsewhere);
    }
    let path = source.split('?').next().unwrap_or(&source).replace("//", "/");
    Some(
        scene::real(&path, dir)
            .map_or(Code::Elsewhere, |path| if path == dir { Code::Here } else { Code::Local(path) }),
    )
}

fn state(block: &Block, dir: &str) -> Option<(String, Args)> {
    let kind = block.arg("backend").as_known()?;
    let Value::Object(args) = block.arg("config") else { return Some((kind, Args::new())) };
    Some((kind, settled(args, dir)))
}

/// The backend in a file that the block writes; `None` when there is none in it.
fn generated(block: &Block, dir: &str) -> Option<(String, Args)> {
    // A part that is not known is not known either in what is made of it.
    let text = block.arg("contents").as_partial()?.replace(GAP, "${unknown.part}");
    let backend = hcl::parse("generated.tf", text.as_bytes()).backends.into_iter().next()?;
    let nothing = Module::default();
    let tree = Tree::new(&nothing, BTreeMap::new(), "default", &|_, _| None);
    let args = backend.args.iter().map(|(name, value)| (name.clone(), tree.eval(value, Here::of(0))));
    Some((backend.kind, settled(args.collect(), dir)))
}

/// The arguments of a backend with paths as the unit would see them.
fn settled(args: Args, dir: &str) -> Args {
    let settled = |value: Value| match value {
        // A place within the repository; anything else with the top in it would be a place on somebody's machine.
        Value::Text(text) if text.contains(scene::TOP) => {
            scene::real(&text, dir).map_or(Value::Text(GAP.to_string()), |path| Value::Text(path::relative(dir, &path)))
        }
        value => value,
    };
    args.into_iter().map(|(name, value)| (name, settled(value))).collect()
}

/// The unit that a path means: seen from the unit, or else from the file that says it.
fn target(ground: &Ground, to: &Value, dir: &str, file: &str) -> Option<String> {
    let to = to.as_known()?;
    let is_unit =
        |dir: &String| [FILE, OLD_FILE].iter().any(|name| ground.terragrunt.contains_key(&path::join(dir, name)));
    let seen = |from: &str| {
        let path = scene::real(&to, from)?;
        let path = path
            .strip_suffix(FILE)
            .or(path.strip_suffix(OLD_FILE))
            .map_or(path.as_str(), |dir| dir.trim_end_matches('/'));
        ground.links.resolve(&path::join(".", path))
    };
    let first = seen(dir);
    first.clone().filter(is_unit).or_else(|| seen(path::parent(file)).filter(is_unit)).or(first)
}

#[cfg(test)]
mod tests;
