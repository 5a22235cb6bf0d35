//! The structure of the source, kept by a scan: which layer may use which, that every file says what it is for, and that
//! documents agree with the code. Rust does not check directions inside a crate, so this does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What each top-level module may use of ours. `serve`, `demo` and `main` put everything together.
const MAY_USE: &[(&str, &[&str])] = &[
    ("domain", &["domain"]),
    ("ports", &["domain", "ports"]),
    ("app", &["app", "domain", "ports"]),
    ("forge", &["forge", "domain", "ports"]),
    ("store", &["store", "domain", "ports"]),
    ("source", &["source", "domain", "ports"]),
    ("executor", &["executor", "domain", "ports"]),
    ("runner", &["runner", "domain"]),
    ("local", &["local", "domain", "ports", "runner"]),
    ("web", &["web", "app", "domain", "ports"]),
    ("sandbox", &["sandbox", "domain"]),
    ("config", &["config", "domain"]),
    ("telemetry", &["telemetry"]),
    ("shield", &["shield"]),
];

/// What the pure part may not name.
const IMPURE: &[&str] = &[
    "tokio::",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "async fn",
    ".await",
    "rand::",
    "reqwest",
    "sqlx",
    "octocrab",
    "axum",
];

/// Names that say nothing.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helpers", "helper", "manager", "types", "misc"];

fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    files.sort();
    assert!(files.len() > 30, "the scan found only {} files", files.len());
    files
}

fn walk(dir: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            walk(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push((entry.clone(), fs::read_to_string(&entry).expect("a text")));
        }
    }
}

fn module_of(path: &Path) -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let inside = path.strip_prefix(&src).expect("below src");
    let first = inside.components().next().expect("a component").as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// The part of a file before its tests.
fn production(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    production(text)
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(at, line)| (at + 1, line))
}

#[test]
fn layers_use_only_what_they_may() {
    let rules: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Some(allowed) = rules.get(module_of(&path).as_str()) else { continue };
        for (number, line) in code_lines(&text) {
            for (at, _) in line.match_indices("crate::") {
                let used: String = line[at + 7..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if !used.is_empty() && !allowed.contains(&used.as_str()) {
                    wrong.push(format!("{}:{number} uses `{used}`", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "layers (docs/architecture.md):\n{}", wrong.join("\n"));
}

#[test]
fn siblings_among_adapters_do_not_know_each_other() {
    for (path, text) in sources() {
        let inside = path.to_string_lossy().into_owned();
        for (own, other) in [("src/forge/github", "gitlab"), ("src/executor/local", "kubernetes")] {
            assert!(
                !inside.contains(own) || !production(&text).contains(&format!("{other}::")),
                "{inside} knows {other}"
            );
        }
    }
}

#[test]
fn the_domain_is_pure() {
    let mut wrong = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| module_of(path) == "domain") {
        for (number, line) in code_lines(&text) {
            for word in IMPURE {
                if line.contains(word) {
                    wrong.push(format!("{}:{number} names `{word}`", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "domain has no IO, no clock and no environment:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in sources() {
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 20, "{} does not open with what it is for", path.display());
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(!EMPTY_NAMES.contains(&name.as_str()), "{} has a name that says nothing", path.display());
    }
}

#[test]
fn nothing_is_unfinished() {
    for (path, text) in sources() {
        for word in ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "XXX"] {
            assert!(!text.contains(word), "{} has `{word}`", path.display());
        }
    }
}

#[test]
fn integration_tests_are_all_reached() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = fs::read_to_string(folder.join("main.rs")).expect("tests/it/main.rs");
    for entry in fs::read_dir(&folder).expect("tests/it").map(|entry| entry.expect("an entry").path()) {
        let stem = entry.file_stem().expect("a name").to_string_lossy().into_owned();
        // A folder of snapshots holds no code.
        if stem != "main"
            && stem != "snapshots"
            && (entry.is_dir() || entry.extension().is_some_and(|extension| extension == "rs"))
        {
            assert!(
                main.contains(&format!("mod {stem};")),
                "tests/it/{stem} is never compiled: add `mod {stem};` to tests/it/main.rs"
            );
        }
    }
}
