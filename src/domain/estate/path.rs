//! Paths of a repository as text: joined, normalised, through its symbolic links, matched against patterns. It reads no file.

use std::collections::BTreeMap;

use crate::domain::tree::{EntryKind, Listing};

/// `dir` and `path` behind it, without `.` and `..`; a path that leaves the top keeps its `..`, an absolute one stays.
pub(super) fn join(dir: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

/// The directory of a path, `.` for the top.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(dir, _)| dir)
}

/// The directories that hold a path, deepest first, `.` last.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let mut next = if path == "." { None } else { Some(parent(path)) };
    std::iter::from_fn(move || {
        let here = next?;
        next = if here == "." { None } else { Some(parent(here)) };
        Some(here)
    })
}

/// Whether a path lies in a directory, by component.
pub(super) fn is_in(path: &str, dir: &str) -> bool {
    dir == "." || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// The way from one directory to another, as the tools write `path.module`.
pub(super) fn relative(from: &str, to: &str) -> String {
    let split = |dir: &str| -> Vec<String> { dir.split('/').filter(|part| *part != ".").map(str::to_owned).collect() };
    let (from, to) = (split(from), split(to));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - common);
    let way: Vec<String> = up.chain(to[common..].iter().cloned()).collect();
    if way.is_empty() { ".".to_owned() } else { way.join("/") }
}

/// Whether `text` fits a pattern; `*` stands for any text, `/` included when `crossing` says so.
pub(super) fn fits(pattern: &str, text: &str, crossing: Crossing) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            retry = Some((p + 1, t));
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((after, from)) = retry.filter(|(_, from)| crossing == Crossing::Any || text[*from] != b'/') {
            retry = Some((after, from + 1));
            p = after;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// What a `*` may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crossing {
    /// Any text.
    Any,
    /// Text without `/`.
    Segment,
}

/// The symbolic links of a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    /// Link to target, both paths from the top.
    targets: BTreeMap<String, String>,
    /// Target to links.
    sources: BTreeMap<String, Vec<String>>,
}

impl Links {
    pub fn new(listing: &Listing, blobs: &BTreeMap<String, String>) -> Self {
        let mut links = Self::default();
        for (path, entry) in listing.entries.iter().filter(|(_, entry)| entry.kind == EntryKind::Link) {
            if let Some(target) = blobs.get(&entry.blob) {
                links.targets.insert(path.clone(), join(parent(path), target.trim_end_matches('/')));
            }
        }
        for path in links.targets.keys() {
            let target = links.resolve(&links.targets[path]).unwrap_or_else(|| links.targets[path].clone());
            links.sources.entry(target).or_default().push(path.clone());
        }
        links
    }

    /// The real path; `None` for a loop or a way out of the repository.
    pub fn resolve(&self, path: &str) -> Option<String> {
        let mut path = path.to_owned();
        for _ in 0..40 {
            if path.starts_with("..") || path.starts_with('/') {
                return None;
            }
            let link = std::iter::once(path.as_str())
                .chain(ancestors(&path))
                .filter_map(|at| self.targets.get_key_value(at))
                .last();
            let Some((link, target)) = link else { return Some(path) };
            path = join(target, path[link.len()..].trim_start_matches('/'));
        }
        None
    }

    /// The other names under which a changed path is seen.
    pub fn names_of(&self, path: &str) -> Vec<String> {
        let mut names = Vec::new();
        for at in std::iter::once(path).chain(ancestors(path)) {
            let rest = if at == "." { path } else { path[at.len()..].trim_start_matches('/') };
            for link in self.sources.get(at).into_iter().flatten() {
                names.push(join(link, rest));
            }
        }
        names
    }

    pub fn is_target(&self, path: &str) -> bool {
        self.sources.contains_key(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_compared_by_component() {
        for (dir, path, right) in [
            (".", "a", "a"),
            ("a/b", "../c", "a/c"),
            ("a", "..", "."),
            ("a", "../../x", "../x"),
            ("a", "/abs", "/abs"),
            (".", ".", "."),
            ("a", "./b/./c", "a/b/c"),
        ] {
            assert_eq!(join(dir, path), right, "{dir} + {path}");
        }
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["a/b", "a", "."]);
        assert!(is_in("test/x", "test") && !is_in("test222/x", "test") && is_in("x", "."));
        for (from, to, right) in [("a/b", "a/c", "../c"), ("a", "a", "."), (".", "m", "m"), ("a", ".", "..")] {
            assert_eq!(relative(from, to), right);
            assert_eq!(join(from, right), to);
        }
    }

    #[test]
    fn a_star_ends_at_a_slash_only_in_states() {
        for (pattern, text, segment, any) in [
            ("*/net.tfstate", "blue/net.tfstate", true, true),
            ("*/net.tfstate", "blue/old-net.tfstate", false, false),
            ("*/net.tfstate", "a/b/net.tfstate", false, true),
            ("a*", "a", true, true),
            ("*a*b", "xaxxab", true, true),
            ("", "x", false, false),
        ] {
            assert_eq!(fits(pattern, text, Crossing::Segment), segment, "{pattern} {text}");
            assert_eq!(fits(pattern, text, Crossing::Any), any, "{pattern} {text}");
        }
    }
}
