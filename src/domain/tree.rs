//! A commit's tree as a value: which paths it has and which blob each is. It holds no content and
//! never reads any.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a path of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// An ordinary or executable file.
    File,
    /// A symbolic link; its blob holds the target.
    Link,
    /// A submodule; its content is in another repository.
    Submodule,
}

/// One path of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// File, link or submodule.
    pub kind: EntryKind,
    /// The git object id of its content.
    pub blob: String,
    /// Bytes; 0 for a submodule.
    pub size: u64,
}

/// All files of a tree by path (`/` between components, no leading `./`), sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Path to entry.
    pub entries: BTreeMap<String, Entry>,
}

impl Listing {
    /// Paths whose entry is new, gone or another blob or kind in `self` than in `base`, sorted. A rename is two paths.
    pub fn changed_since(&self, base: &Listing) -> Vec<String> {
        let gone = base.entries.keys().filter(|path| !self.entries.contains_key(*path));
        let new = self.entries.iter().filter(|(path, entry)| {
            base.entries.get(*path).is_none_or(|old| old.blob != entry.blob || old.kind != entry.kind)
        });
        let mut paths: Vec<String> = gone.cloned().chain(new.map(|(path, _)| path.clone())).collect();
        paths.sort();
        paths
    }

    /// Whether any file lies in `dir` (`.` is the top).
    pub fn has_dir(&self, dir: &str) -> bool {
        if dir == "." {
            return !self.entries.is_empty();
        }
        let prefix = format!("{dir}/");
        self.entries.range(prefix.clone()..).next().is_some_and(|(path, _)| path.starts_with(&prefix))
    }
}
