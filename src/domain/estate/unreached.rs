//! Why a path reaches nobody, for those who wonder. It only explains what `reached` decided.

use super::reached::is_documentation;
use super::survey::is_ignored;
use super::{Estate, RootKind, path};
use crate::domain::config::RepoConfig;

/// Why a path reaches no root; the later, the more it says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unreached {
    /// Nobody holds, calls or reads it.
    Nobody,
    /// It is documentation.
    Documentation,
    /// Its directory declares no backend and nobody calls it.
    Uncalled(String),
    /// Its directory is ignored.
    Ignored(String),
    /// Its directory is only probably a root.
    Probable(String),
}

impl Estate {
    /// Why this path reaches nobody, when it does not.
    pub fn unreached(&self, changed: &str, config: &RepoConfig) -> Unreached {
        if is_documentation(changed) {
            return Unreached::Documentation;
        }
        for dir in path::ancestors(changed) {
            if self.roots.iter().any(|root| root.key.dir() == dir && root.kind == RootKind::Probable) {
                return Unreached::Probable(dir.to_owned());
            }
            let Some(module) = self.ground.modules.get(dir) else { continue };
            if module.backend.is_some() && is_ignored(dir, config) {
                return Unreached::Ignored(dir.to_owned());
            }
            return Unreached::Uncalled(dir.to_owned());
        }
        Unreached::Nobody
    }
}
