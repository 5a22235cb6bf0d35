//! A Terragrunt file as one unit sees it: its own functions answered from the tree, its locals and blocks evaluated. Environment
//! variables, commands and accounts are unknown.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::super::evaluate::{Here, Tree};
use super::super::ground::Ground;
use super::super::module::Module;
use super::super::path;
use super::super::value::{GAP, Value};
use super::{FILE, OLD_FILE};
use crate::domain::hcl::{Call, Expr, Step};
use crate::domain::tree::Listing;

/// Stands for the directory of the repository, wherever it lies.
pub(super) const TOP: &str = "/\u{1}";

/// Files behind files that are followed.
const DEEPEST: usize = 6;

/// Reads files of a tree.
pub(super) struct Reader<'a> {
    pub ground: &'a Ground,
    pub listing: &'a Listing,
}

/// From where a file is read.
pub(super) struct Scene<'a> {
    /// The directory that `get_terragrunt_dir()` means.
    unit: &'a str,
    /// The directory of the unit at the beginning.
    original: &'a str,
    /// Label of an `include`, and its file.
    pub parents: BTreeMap<String, String>,
    /// Labels of those that are only looked at: nothing of theirs becomes the unit's.
    pub apart: BTreeSet<String>,
    /// `include` as the unit's expressions see it.
    exposed: Option<Expr>,
    depth: usize,
    /// Every file that was read on the way.
    pub read: RefCell<BTreeSet<String>>,
}

/// A block, evaluated as far as it is known.
pub(super) struct Block {
    pub kind: String,
    pub label: String,
    args: BTreeMap<String, Value>,
    pub path: String,
    pub line: usize,
}

impl Block {
    /// An argument; null when it is not there.
    pub fn arg(&self, name: &str) -> Value {
        self.args.get(name).cloned().unwrap_or(Value::Null)
    }
}

/// What a file says.
pub(super) struct Said {
    locals: BTreeMap<String, Value>,
    pub inputs: Value,
    pub blocks: Vec<Block>,
}

/// A path that Terragrunt would see, from the top of the repository; `None` for one that leads out or is not known.
pub(super) fn real(text: &str, dir: &str) -> Option<String> {
    if text.contains(GAP) {
        return None;
    }
    let path = match text.strip_prefix(TOP) {
        Some(rest) => path::join(".", rest.trim_start_matches('/')),
        None if text.starts_with('/') => return None,
        None => path::join(dir, text),
    };
    (!path.starts_with("..") && !path.contains('\u{1}')).then_some(path)
}

fn placed(path: &str) -> Value {
    Value::Text(if path == "." { TOP.to_owned() } else { format!("{TOP}/{path}") })
}

impl<'a> Reader<'a> {
    /// A unit's file with its includes found.
    pub fn scene(&self, file: &str, unit: &'a str) -> Scene<'a> {
        let mut scene = Scene {
            unit,
            original: unit,
            parents: BTreeMap::new(),
            apart: BTreeSet::new(),
            exposed: None,
            depth: 0,
            read: RefCell::default(),
        };
        let said = self.read(file, &scene);
        let mut exposed = Vec::new();
        let apart = |block: &&Block| block.arg("merge_strategy").as_known().as_deref() == Some("no_merge");
        let includes = || said.blocks.iter().filter(|block| block.kind == "include");
        scene.apart = includes().filter(apart).map(|block| block.label.clone()).collect();
        for include in includes() {
            let path = include.arg("path").as_known().and_then(|path| real(&path, unit));
            let path = path.and_then(|path| self.ground.links.resolve(&path));
            if let Some(path) = path.filter(|path| self.ground.terragrunt.contains_key(path)) {
                scene.parents.insert(include.label.clone(), path);
            }
        }
        for (label, path) in &scene.parents {
            let said = self.read(path, &scene);
            let all = Expr::Object(vec![(word("locals"), object(&said.locals)), (word("inputs"), expr(&said.inputs))]);
            if label.is_empty() {
                scene_entries(&all, &mut exposed);
            } else {
                exposed.push((word(label), all));
            }
        }
        scene.exposed = Some(Expr::Object(exposed));
        scene
    }

    /// What a file says in a scene.
    pub fn read(&self, file: &str, scene: &Scene<'_>) -> Said {
        let nothing = Said { locals: BTreeMap::new(), inputs: Value::Unknown, blocks: Vec::new() };
        let Some(facts) = self.ground.terragrunt.get(file) else { return nothing };
        scene.read.borrow_mut().insert(file.to_owned());
        let settle = |expr: &Expr| expr.clone().map(&mut |part| self.answer(part, file, scene));
        let module = Module {
            dir: scene.unit.to_owned(),
            locals: facts.locals.iter().map(|(name, value)| (name.clone(), settle(value))).collect(),
            ..Module::default()
        };
        let tree = Tree::new(&module, BTreeMap::new(), "default", &|_, _| None);
        let eval = |expr: &Expr| tree.eval(&settle(expr), Here::of(0));
        let local = |name: &String| {
            let reference = Expr::Traversal(Box::new(Expr::Name("local".to_owned())), vec![Step::Attr(name.clone())]);
            (name.clone(), tree.eval(&reference, Here::of(0)))
        };
        let inputs = facts.values.iter().find(|(name, _)| name == "inputs").map(|(_, value)| eval(value));
        // The rest of an old file are the variables themselves, and those of a parent's are its own.
        let of_old = || facts.values.iter().map(|(name, value)| (name.clone(), eval(value))).collect();
        let inputs = match (file.ends_with(OLD_FILE), path::parent(file) == scene.unit) {
            (true, true) => Some(Value::Object(of_old())),
            (true, false) => None,
            (false, _) => inputs,
        };
        let blocks = facts.units.iter().map(|block| Block {
            kind: block.kind.clone(),
            label: block.label.clone(),
            args: block.args.iter().map(|(name, value)| (name.clone(), eval(value))).collect(),
            path: file.to_owned(),
            line: block.line,
        });
        Said {
            locals: module.locals.keys().map(local).collect(),
            inputs: inputs.unwrap_or(Value::Null),
            blocks: blocks.collect(),
        }
    }

    /// Terragrunt's own functions, and the included files, as what they are in this scene.
    fn answer(&self, part: Expr, file: &str, scene: &Scene<'_>) -> Expr {
        match part {
            Expr::Traversal(base, steps) if *base == Expr::Name("include".to_owned()) => {
                let base = scene.exposed.clone().unwrap_or_else(|| Expr::Unsupported(Vec::new()));
                Expr::Traversal(Box::new(base), steps)
            }
            Expr::Call(call) => match self.call(&call, file, scene) {
                Some(value) => expr(&value),
                None => Expr::Call(call),
            },
            other => other,
        }
    }

    fn call(&self, call: &Call, file: &str, scene: &Scene<'_>) -> Option<Value> {
        let constants = Module::default();
        let tree = Tree::new(&constants, BTreeMap::new(), "default", &|_, _| None);
        let arg = |at: usize| call.args.get(at).map_or(Value::Null, |arg| tree.eval(arg, Here::of(0)));
        // Within an included file, or with one include, it is the file's own directory that is meant.
        let parent = || {
            let labelled = arg(0).as_known().and_then(|label| scene.parents.get(&label));
            let only = scene.parents.values().next().filter(|_| scene.parents.len() == 1);
            let itself = scene.parents.values().find(|path| *path == file);
            labelled.or(itself).or(only).map_or(scene.unit, |path| path::parent(path)).to_owned()
        };
        Some(match call.name.as_str() {
            "get_terragrunt_dir" => placed(scene.unit),
            "get_original_terragrunt_dir" => placed(scene.original),
            "get_parent_terragrunt_dir" => placed(&parent()),
            "get_repo_root" => placed("."),
            "get_path_from_repo_root" => Value::text(scene.unit),
            "get_path_to_repo_root" => Value::text(path::relative(scene.unit, ".")),
            "path_relative_to_include" => Value::text(path::relative(&parent(), scene.unit)),
            "path_relative_from_include" => Value::text(path::relative(scene.unit, &parent())),
            "find_in_parent_folders" => {
                let of_old = file.ends_with(OLD_FILE);
                let usual = if of_old { OLD_FILE } else { FILE };
                let name = if call.args.is_empty() { usual.to_owned() } else { arg(0).as_known()? };
                self.above(scene.unit, &name).unwrap_or_else(|| match arg(1) {
                    Value::Null => Value::Missing,
                    fallback => fallback,
                })
            }
            "read_terragrunt_config" => self.config(&arg(0), scene).unwrap_or_else(|| match arg(1) {
                Value::Null => Value::Unknown,
                fallback => fallback,
            }),
            // What a pipeline sets is not in the code.
            "get_env" => Value::Unknown,
            _ => return None,
        })
    }

    /// The nearest file or folder of that name above a directory.
    fn above(&self, dir: &str, name: &str) -> Option<Value> {
        path::ancestors(dir).map(|at| path::join(at, name)).find(|path| self.is_there(path)).map(|path| placed(&path))
    }

    /// Whether a directory holds such a file of Terragrunt's.
    pub fn has(&self, dir: &str, name: &str) -> bool {
        self.ground.terragrunt.contains_key(&path::join(dir, name))
    }

    fn is_there(&self, path: &str) -> bool {
        self.listing.entries.contains_key(path) || self.listing.has_dir(path)
    }

    fn config(&self, path: &Value, scene: &Scene<'_>) -> Option<Value> {
        let path = real(&path.as_known()?, scene.unit)?;
        let path = if self.ground.terragrunt.contains_key(&path) { path } else { path::join(&path, FILE) };
        if scene.depth >= DEEPEST || !self.ground.terragrunt.contains_key(&path) {
            return None;
        }
        let inner = Scene {
            unit: path::parent(&path),
            original: scene.original,
            parents: BTreeMap::new(),
            apart: BTreeSet::new(),
            exposed: None,
            depth: scene.depth + 1,
            read: RefCell::default(),
        };
        let said = self.read(&path, &inner);
        scene.read.borrow_mut().append(&mut inner.read.borrow_mut());
        let parts = [("locals".to_owned(), Value::Object(said.locals)), ("inputs".to_owned(), said.inputs)];
        Some(Value::Object(parts.into_iter().collect()))
    }
}

fn scene_entries(all: &Expr, entries: &mut Vec<(Expr, Expr)>) {
    if let Expr::Object(inner) = all {
        entries.extend(inner.iter().cloned());
    }
}

fn word(text: &str) -> Expr {
    Expr::Literal(Json::String(text.to_owned()))
}

fn object(values: &BTreeMap<String, Value>) -> Expr {
    Expr::Object(values.iter().map(|(name, value)| (word(name), expr(value))).collect())
}

/// A value as an expression that evaluates to it.
fn expr(value: &Value) -> Expr {
    match value {
        Value::Null => Expr::Literal(Json::Null),
        Value::Bool(value) => Expr::Literal(Json::Bool(*value)),
        Value::Number(number) => {
            serde_json::from_str(number).map_or_else(|_| Expr::Unsupported(Vec::new()), Expr::Literal)
        }
        Value::Text(text) if text.contains(GAP) => {
            let mut parts = Vec::new();
            for (at, piece) in text.split(GAP).enumerate() {
                if at > 0 {
                    parts.push(Expr::Unsupported(Vec::new()));
                }
                parts.push(word(piece));
            }
            Expr::Template(parts)
        }
        Value::Text(text) => word(text),
        Value::List(items) => Expr::List(items.iter().map(expr).collect()),
        Value::Object(entries) => object(entries),
        Value::Missing | Value::Unknown => Expr::Unsupported(Vec::new()),
    }
}
