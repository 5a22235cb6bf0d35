//! What a root takes in beside its configuration: var files, backend files, and the files that its functions read.

use std::collections::{BTreeMap, BTreeSet};

use super::evaluate::{Here, Tree};
use super::ground::Ground;
use super::module::{File, Module};
use super::reached::is_documentation;
use super::value::Value;
use super::{Hole, path, state};
use crate::domain::config::RootSettings;

/// What var files set at a root, in the tools' order. An unreadable file makes unknown what it might have set.
pub(super) fn variables(
    ground: &Ground,
    module: &Module,
    settings: &RootSettings,
    holes: &mut Vec<Hole>,
) -> BTreeMap<String, Value> {
    let dir = module.dir.as_str();
    let near = ground.values.get(dir).map(Vec::as_slice).unwrap_or_default();
    let rank = |path: &str| match path.rsplit('/').next().unwrap_or(path) {
        "terraform.tfvars" => Some(0),
        "terraform.tfvars.json" => Some(1),
        name if name.ends_with(".auto.tfvars") || name.ends_with(".auto.tfvars.json") => Some(2),
        _ => None,
    };
    let mut files: Vec<(u8, &File)> = near.iter().filter_map(|file| Some((rank(&file.0)?, file))).collect();
    files.sort_by(|a, b| (a.0, &a.1.0).cmp(&(b.0, &b.1.0)));
    let mut files: Vec<Option<&File>> = files.into_iter().map(|(_, file)| Some(file)).collect();
    for name in &settings.var_files {
        let path = path::join(dir, name);
        let file = ground.values_at(&path);
        if file.is_none() {
            let what = format!("`var_files` of `{dir}` names this file, which is not there or was not read.");
            holes.push(Hole { path, line: 0, what });
        }
        files.push(file);
    }
    let mut set = BTreeMap::new();
    // Var files hold constants, so a tree of nothing evaluates them.
    let nothing = Module::default();
    let constants = Tree::new(&nothing, BTreeMap::new(), "default", &|_, _| None);
    for file in files {
        let Some((_, facts)) = file.filter(|(_, facts)| facts.holes.is_empty()) else {
            set = module.variables.keys().map(|name| (name.clone(), Value::Unknown)).collect();
            if let Some((path, facts)) = file {
                holes.extend(facts.holes.iter().map(|hole| Hole {
                    path: path.clone(),
                    line: hole.line,
                    what: hole.what.clone(),
                }));
            }
            continue;
        };
        set.extend(facts.values.iter().map(|(name, value)| (name.clone(), constants.eval(value, Here::of(0)))));
    }
    set
}

/// Sets of backend files that a convention gives a root, one per environment: those in it and below it, each on those of
/// `config/` folders above.
pub(super) fn backend_files<'a>(ground: &'a Ground, dir: &str, dirs: &BTreeSet<&str>) -> Vec<Vec<&'a File>> {
    let mut above: Vec<&File> = Vec::new();
    for at in path::ancestors(dir).take(3) {
        let files = ground.values.get(&path::join(at, "config")).into_iter().flatten();
        let backends: Vec<&File> = files.filter(|(path, _)| is_backend(path)).collect();
        if let [only] = backends.as_slice() {
            above.push(only);
        }
    }
    let below = ground
        .values
        .range(dir.to_owned()..)
        .take_while(|(at, _)| at.as_str() == dir || dir == "." || at.starts_with(dir));
    let mut sets = Vec::new();
    for (at, files) in below {
        let ours = at == dir || (path::is_in(at, dir) && owner(at, dirs) == Some(dir));
        for file in files.iter().filter(|(path, _)| ours && is_backend(path)) {
            sets.push(above.iter().copied().chain([file]).collect());
        }
    }
    if sets.is_empty() && !above.is_empty() {
        sets.push(above);
    }
    sets
}

fn is_backend(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".tfbackend") || name.ends_with(".backend") || name == "backend.tfvars" || name == "backend.hcl"
}

/// The root that a directory belongs to: the deepest.
fn owner<'a>(dir: &'a str, dirs: &BTreeSet<&str>) -> Option<&'a str> {
    std::iter::once(dir).chain(path::ancestors(dir)).find(|at| dirs.contains(at))
}

/// Files outside the root's directory and its modules that it reads.
pub(super) fn files(
    tree: &Tree<'_>,
    ground: &Ground,
    settings: &RootSettings,
    dirs: &BTreeSet<&str>,
    holes: &mut Vec<Hole>,
) -> Vec<String> {
    let dir = tree.scopes[0].module.dir.as_str();
    let mut patterns = BTreeSet::new();
    for (at, scope) in tree.scopes.iter().enumerate() {
        for (call, file) in &scope.module.files {
            let text = tree.eval(&call.path, Here::of(at)).as_partial().unwrap_or_else(|| "\0".to_owned());
            let text = wildcards(&state::starred(&text), &call.function);
            if !text.contains(char::is_alphanumeric) {
                let what = format!(
                    "`{}` reads a file whose name is not known from the code: a change to it reaches nobody.",
                    call.function
                );
                holes.push(Hole { path: file.clone(), line: call.line, what });
            } else if text.starts_with("*/") {
                // The folder is unknown and may lie anywhere.
                patterns.insert(text);
            } else if !text.starts_with('/') && !text.starts_with('~') {
                patterns.insert(path::join(dir, &text));
            }
        }
    }
    patterns.extend(settings.var_files.iter().chain(&settings.backend_config).map(|name| path::join(dir, name)));
    for at in path::ancestors(dir).take(3).filter(|_| settings.backend_config.is_empty()) {
        let files = ground.values.get(&path::join(at, "config")).into_iter().flatten();
        patterns.extend(files.map(|(path, _)| path.clone()).filter(|path| is_backend(path)));
    }
    let inside = |pattern: &String| {
        let head = pattern.split('*').next().unwrap_or(pattern);
        let folder = path::parent(head);
        let plain = !pattern.contains('*');
        // Documentation reaches nobody by itself, so a read of it must stay.
        if is_documentation(pattern) {
            return false;
        }
        let ours = path::is_in(pattern, dir) && owner(folder, dirs) == Some(dir);
        ours && (plain || !dirs.iter().any(|other| *other != dir && path::is_in(other, folder)))
    };
    patterns.into_iter().filter(|pattern| !pattern.starts_with("..") && !inside(pattern)).collect()
}

/// The wildcards of `fileset` as plain stars; other functions know none.
fn wildcards(text: &str, function: &str) -> String {
    if !function.ends_with("fileset") {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut depth = 0;
    for letter in text.chars() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' if depth > 0 => depth -= 1,
            _ => {}
        }
        let star = depth > 0 || matches!(letter, '*' | '?' | '}' | ']');
        match (star, out.ends_with('*')) {
            (true, false) => out.push('*'),
            (true, true) => {}
            (false, _) => out.push(letter),
        }
    }
    // `**/` also stands for no folder at all.
    out.replace("*/*", "*")
}
