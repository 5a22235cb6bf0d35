//! The naming of backend files that a repository follows, found from the files that its roots have. It matches nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use super::{Convention, path};

/// Folder names that say the same in every repository, and stay as they are in a pattern.
const FOLDERS: [&str; 8] = ["config", "backend", "backends", "env", "envs", "environments", "tfvars", "vars"];

/// One convention per naming; `found` has each root's directory with its backend files.
pub(super) fn told(found: Vec<(String, Vec<String>)>) -> Vec<Convention> {
    let mut by_pattern: BTreeMap<String, (BTreeSet<String>, String)> = BTreeMap::new();
    for (dir, files) in found {
        for file in files {
            let (roots, example) = by_pattern.entry(pattern(&dir, &file)).or_default();
            roots.insert(dir.clone());
            if example.is_empty() || file < *example {
                *example = file;
            }
        }
    }
    let told = |(pattern, (roots, example)): (String, (BTreeSet<String>, String))| Convention {
        pattern,
        roots: roots.len(),
        example,
    };
    by_pattern.into_iter().map(told).collect()
}

/// The way from the root to the file, names that differ from place to place as `*`.
fn pattern(dir: &str, file: &str) -> String {
    let way = path::relative(dir, path::parent(file));
    let name = file.rsplit('/').next().unwrap_or(file);
    let folders = way.split('/').filter(|part| *part != ".");
    let mut parts: Vec<&str> =
        folders.map(|part| if part == ".." || FOLDERS.contains(&part) { part } else { "*" }).collect();
    let name = match name {
        "backend.tfvars" | "backend.hcl" | "backend.tfbackend" => name.to_owned(),
        name => {
            let ending = name.rfind('.').map_or("", |at| &name[at..]);
            let middle = name.strip_suffix(ending).and_then(|stem| stem.rsplit_once('.')).map(|(_, middle)| middle);
            match middle.filter(|kind| ending == ".tfbackend" && kind.len() <= 10) {
                Some(kind) => format!("*.{kind}{ending}"),
                None => format!("*{ending}"),
            }
        }
    };
    parts.push(&name);
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_become_stars() {
        for (dir, file, wanted) in [
            ("net", "net/prod.blue.backend", "*.backend"),
            ("net", "net/prod.s3.tfbackend", "*.s3.tfbackend"),
            ("net", "net/prod.tfbackend", "*.tfbackend"),
            ("a/net", "a/net/env/prod/backend.tfvars", "env/*/backend.tfvars"),
            ("acc/eu/net", "acc/config/backend.tfvars", "../../config/backend.tfvars"),
            (".", "backend.hcl", "backend.hcl"),
        ] {
            assert_eq!(pattern(dir, file), wanted, "{dir} {file}");
        }
    }
}
