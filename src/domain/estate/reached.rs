//! What a set of changed paths reaches, why, and in which layers; what a root's source digest covers. It reads no content.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::order;
use super::path::{self, Crossing};
use super::{Edge, Estate, Root, RootKind};
use crate::domain::config::RepoConfig;
use crate::domain::ids::{RootKey, StateKey};
use crate::domain::tool::is_version_file;
use crate::domain::tree::{Entry, EntryKind, Listing};

/// Why a root is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A changed path lies in its directory.
    Changed(String),
    /// A changed path lies in a local module that it calls.
    Module {
        /// The module's directory.
        dir: String,
        /// The path.
        path: String,
    },
    /// It reads a changed file.
    File(String),
    /// It reads the state of a reached root.
    Reads(RootKey),
    /// `waves.after` puts it after a reached root.
    After(RootKey),
    /// Somebody named it.
    Asked,
}

/// What a set of changed paths reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Reached roots by key.
    pub roots: Vec<ReachedRoot>,
    /// Their dependency layers, canary first; each reached root once.
    pub waves: Vec<Vec<RootKey>>,
    /// Edges between reached roots.
    pub edges: Vec<Edge>,
}

/// A reached root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedRoot {
    /// Which.
    pub root: RootKey,
    /// Why, sorted, without repeats.
    pub reasons: Vec<Reason>,
}

/// Roots of the base whose state no root of the head owns, by key.
pub fn deleted(base: &Estate, head: &Estate) -> Vec<Root> {
    let kept: BTreeSet<&StateKey> = head.roots.iter().map(|root| &root.state).collect();
    // A root that stays but whose state can no longer, or only now, be evaluated has not gone.
    let stays = |root: &Root| {
        head.roots.iter().any(|other| {
            other.key == root.key && other.kind == RootKind::Certain && other.state_known != root.state_known
        })
    };
    let gone =
        base.roots.iter().filter(|root| root.kind == RootKind::Certain && !kept.contains(&root.state) && !stays(root));
    gone.cloned().collect()
}

impl Estate {
    /// What these changed paths reach of all that is planned. An error is a cycle made by `waves.after`, with its path.
    pub fn reached(&self, changed: &[String], config: &RepoConfig) -> Result<Reached, Vec<RootKey>> {
        self.reached_of(&[RootKind::Certain], changed, config)
    }

    /// What these changed paths reach, units of Terragrunt included: to be looked at, not to be planned.
    pub fn touched(&self, changed: &[String], config: &RepoConfig) -> Result<Reached, Vec<RootKey>> {
        self.reached_of(&[RootKind::Certain, RootKind::Unit], changed, config)
    }

    fn reached_of(&self, kinds: &[RootKind], changed: &[String], config: &RepoConfig) -> Result<Reached, Vec<RootKey>> {
        let places = Places::new(&self.roots);
        let mut reasons: Vec<BTreeSet<Reason>> = vec![BTreeSet::new(); self.roots.len()];
        for changed in changed {
            places.owners(changed, |root, reason| {
                reasons[root].insert(reason);
            });
            for name in self.ground.links.names_of(changed) {
                places.owners(&name, |root, _| {
                    reasons[root].insert(Reason::File(changed.clone()));
                });
            }
        }
        self.follow_version_files(changed, &mut reasons, config);
        self.follow(&mut reasons, kinds, config);
        let reached: BTreeSet<RootKey> = self
            .roots
            .iter()
            .zip(&reasons)
            .filter(|(_, why)| !why.is_empty())
            .map(|(root, _)| root.key.clone())
            .collect();
        let waves = self.layers(&reached, config)?;
        let within = |edge: &&Edge| reached.contains(&edge.reader) && reached.contains(&edge.source);
        let edges = self.edges.iter().filter(within).cloned().collect();
        let roots = self.roots.iter().zip(reasons).filter(|(_, why)| !why.is_empty());
        let roots = roots.map(|(root, why)| ReachedRoot { root: root.key.clone(), reasons: why.into_iter().collect() });
        Ok(Reached { roots: roots.collect(), waves, edges })
    }

    /// A version file speaks for every root below it whose settings name no version.
    fn follow_version_files(&self, changed: &[String], reasons: &mut [BTreeSet<Reason>], config: &RepoConfig) {
        for changed in changed.iter().filter(|path| is_version_file(path)) {
            let above = path::parent(changed);
            for (root, why) in self.roots.iter().zip(reasons.iter_mut()) {
                let dir = root.key.dir();
                if why.is_empty() && path::is_in(dir, above) && config.for_root(dir).version.is_none() {
                    why.insert(Reason::File(changed.clone()));
                }
            }
        }
    }

    /// Adds everything downstream, over reads and `waves.after`; takes away what is never planned.
    fn follow(&self, reasons: &mut [BTreeSet<Reason>], kinds: &[RootKind], config: &RepoConfig) {
        let at: HashMap<&RootKey, usize> = self.roots.iter().enumerate().map(|(at, root)| (&root.key, at)).collect();
        let mut next: Vec<Vec<(usize, bool)>> = vec![Vec::new(); self.roots.len()];
        for edge in &self.edges {
            if let (Some(source), Some(reader)) = (at.get(&edge.source), at.get(&edge.reader)) {
                next[*source].push((*reader, true));
            }
        }
        let keys: Vec<&RootKey> = self.roots.iter().map(|root| &root.key).collect();
        for (source, reader) in order::after_pairs(&keys, config) {
            next[source].push((reader, false));
        }
        let planned = |at: usize| kinds.contains(&self.roots[at].kind);
        for (_, why) in reasons.iter_mut().enumerate().filter(|(at, _)| !planned(*at)) {
            why.clear();
        }
        let mut open: Vec<usize> = (0..keys.len()).filter(|at| !reasons[*at].is_empty()).collect();
        let mut seen: Vec<bool> = reasons.iter().map(|why| !why.is_empty()).collect();
        while let Some(source) = open.pop() {
            for (reader, reads) in next[source].iter().filter(|(reader, _)| planned(*reader) && *reader != source) {
                let key = keys[source].clone();
                reasons[*reader].insert(if *reads { Reason::Reads(key) } else { Reason::After(key) });
                if !std::mem::replace(&mut seen[*reader], true) {
                    open.push(*reader);
                }
            }
        }
    }

    /// The source digest of a root: over path, kind and blob of every file of its directory (not of roots below it),
    /// its local modules and the files it reads; with what it covers.
    pub fn source_of(&self, root: &RootKey, listing: &Listing) -> (String, Vec<String>) {
        let dirs: BTreeSet<&str> = self.roots.iter().map(|root| root.key.dir()).collect();
        let mut covers = BTreeSet::from([root.dir().to_owned()]);
        let mut entries: BTreeMap<&str, &Entry> = BTreeMap::new();
        let found = self.root(root);
        let modules = found.map(|root| root.modules.as_slice()).unwrap_or_default();
        for dir in std::iter::once(root.dir()).chain(modules.iter().map(String::as_str)) {
            covers.insert(dir.to_owned());
            for (path, entry) in below(listing, dir) {
                let owner = path::ancestors(path).take_while(|at| *at != dir).find(|at| dirs.contains(at));
                if owner.is_none() {
                    entries.insert(path, entry);
                }
            }
        }
        for pattern in found.iter().flat_map(|root| &root.files) {
            for (path, entry) in matching(listing, pattern) {
                covers.insert(path.to_owned());
                entries.insert(path, entry);
            }
        }
        self.add_targets(listing, &mut entries, &mut covers);
        let mut hash = Sha256::new();
        for (path, entry) in entries {
            let kind = match entry.kind {
                EntryKind::File => "file",
                EntryKind::Link => "link",
                EntryKind::Submodule => "submodule",
            };
            for part in [path, kind, &entry.blob] {
                hash.update(part.as_bytes());
                hash.update([0]);
            }
        }
        (hex::encode(hash.finalize()), covers.into_iter().collect())
    }

    /// What links lead to is source as much as the links are.
    fn add_targets<'a>(
        &self,
        listing: &'a Listing,
        entries: &mut BTreeMap<&'a str, &'a Entry>,
        covers: &mut BTreeSet<String>,
    ) {
        let links: Vec<String> = entries
            .iter()
            .filter(|(_, entry)| entry.kind == EntryKind::Link)
            .map(|(path, _)| (*path).to_owned())
            .collect();
        for target in links.iter().filter_map(|link| self.ground.links.resolve(link)) {
            if let Some((path, entry)) = listing.entries.get_key_value(&target) {
                entries.insert(path, entry);
            } else {
                entries.extend(below(listing, &target));
            }
            covers.insert(target);
        }
    }
}

/// All entries below a directory.
fn below<'a>(listing: &'a Listing, dir: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> {
    let prefix = if dir == "." { String::new() } else { format!("{dir}/") };
    let range = listing.entries.range(prefix.clone()..);
    range.take_while(move |(path, _)| path.starts_with(&prefix)).map(|(path, entry)| (path.as_str(), entry))
}

/// The entries that a pattern fits; a plain path that names a directory means all below it.
fn matching<'a>(listing: &'a Listing, pattern: &str) -> Vec<(&'a str, &'a Entry)> {
    if !pattern.contains('*') {
        return listing
            .entries
            .get_key_value(pattern)
            .map(|(path, entry)| (path.as_str(), entry))
            .into_iter()
            .collect();
    }
    let head = pattern.split('*').next().unwrap_or_default();
    let range = listing.entries.range(head.to_owned()..).take_while(|(path, _)| path.starts_with(head));
    range
        .filter(|(path, _)| path::fits(pattern, path, Crossing::Any))
        .map(|(path, entry)| (path.as_str(), entry))
        .collect()
}

/// Roots by what a path can touch.
struct Places<'a> {
    dirs: HashMap<&'a str, Vec<usize>>,
    modules: HashMap<&'a str, Vec<usize>>,
    files: HashMap<&'a str, Vec<usize>>,
    patterns: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Places<'a> {
    fn new(roots: &'a [Root]) -> Self {
        let mut places =
            Self { dirs: HashMap::new(), modules: HashMap::new(), files: HashMap::new(), patterns: BTreeMap::new() };
        for (at, root) in roots.iter().enumerate() {
            places.dirs.entry(root.key.dir()).or_default().push(at);
            for dir in &root.modules {
                places.modules.entry(dir).or_default().push(at);
            }
            for file in &root.files {
                if file.contains('*') {
                    places.patterns.entry(file).or_default().push(at);
                } else {
                    places.files.entry(file).or_default().push(at);
                }
            }
        }
        places
    }

    /// Calls `found` for each root that the path touches, with the reason.
    fn owners(&self, changed: &str, mut found: impl FnMut(usize, Reason)) {
        let mut tell = |roots: Option<&Vec<usize>>, reason: &dyn Fn() -> Reason| {
            roots.into_iter().flatten().for_each(|root| found(*root, reason()));
        };
        tell(self.files.get(changed), &|| Reason::File(changed.to_owned()));
        for (pattern, roots) in &self.patterns {
            if path::fits(pattern, changed, Crossing::Any) {
                tell(Some(roots), &|| Reason::File(changed.to_owned()));
            }
        }
        if is_documentation(changed) {
            return;
        }
        let mut in_module = false;
        for dir in path::ancestors(changed) {
            if let Some(roots) = self.modules.get(dir).filter(|_| !in_module) {
                in_module = true;
                tell(Some(roots), &|| Reason::Module { dir: dir.to_owned(), path: changed.to_owned() });
            }
            if let Some(roots) = self.dirs.get(dir) {
                tell(Some(roots), &|| Reason::Changed(changed.to_owned()));
                return;
            }
        }
    }
}

/// Files that no tool reads: a change to one plans nothing.
pub(super) fn is_documentation(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = [".md", ".adoc", ".rst"].iter().any(|ending| name.to_ascii_lowercase().ends_with(ending));
    ending
        || name.starts_with("LICENSE")
        || matches!(name, ".gitignore" | ".gitattributes" | ".editorconfig" | "CODEOWNERS")
}

#[cfg(test)]
mod tests;
