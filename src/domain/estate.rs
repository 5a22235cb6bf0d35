//! The estate: which roots a tree holds, which state each owns, who reads whom, and what a set of
//! changed paths reaches. Pure: made from a [`Listing`](super::tree::Listing) and the facts of its
//! files; it runs no tool and guesses nothing it does not mark.

use serde::{Deserialize, Serialize};

use super::ids::{RootKey, StateKey};

mod convention;
mod evaluate;
#[cfg(test)]
pub(in crate::domain) mod fixture;
mod function;
mod ground;
mod inputs;
mod module;
mod operator;
pub(in crate::domain) mod order;
mod owners;
mod path;
mod reached;
mod reads;
mod references;
mod shape;
mod state;
mod survey;
mod terragrunt;
mod unreached;
mod value;
mod workspaces;

pub use ground::{Ground, read_by_links};
pub use order::Stranger;
pub use reached::{Reached, ReachedRoot, Reason, deleted};
pub use references::{References, Users};
pub use survey::survey;
pub use unreached::Unreached;

/// Roots, edges and what could not be read, each list sorted.
#[derive(Clone, Debug, Default)]
pub struct Estate {
    /// Every root, certain and probable.
    pub roots: Vec<Root>,
    /// Reader to source.
    pub edges: Vec<Edge>,
    /// Reads of a state that no root here owns.
    pub external: Vec<ExternalRead>,
    /// What could not be read or evaluated.
    pub holes: Vec<Hole>,
    /// How states are named where the code does not say it.
    pub conventions: Vec<Convention>,
    /// States that several roots write.
    pub shared_states: Vec<(StateKey, Vec<RootKey>)>,
    /// What the walks need beside the lists; empty in an estate made by hand.
    pub ground: Ground,
}

/// A naming of backend files that roots follow; said once for a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Convention {
    /// `*.s3.tfbackend`, seen from a root's directory.
    pub pattern: String,
    /// How many roots have such files.
    pub roots: usize,
    /// One of the files.
    pub example: String,
}

/// A directory that holds a root module, in one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Directory and workspace.
    pub key: RootKey,
    /// `s3`, `local`, `cloud`, …; `none` for a probable root.
    pub backend: String,
    /// The state it owns; a stand-in made from the directory (`dir:…`) while the backend cannot be evaluated.
    pub state: StateKey,
    /// Whether `state` is evaluated or the stand-in.
    pub state_known: bool,
    /// Plan it, or only list it.
    pub kind: RootKind,
    /// Directories of the local modules that it calls, through any depth, symlinks resolved.
    pub modules: Vec<String>,
    /// Files outside its directory and modules that it reads, patterns with `*` for what is unknown.
    pub files: Vec<String>,
    /// A version of the `.tf` files' `required_version`, as written.
    pub required_version: Option<String>,
}

/// Whether a root is planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RootKind {
    /// It declares a backend: planned.
    Certain,
    /// A Terragrunt unit: in the graph with its edges, not planned.
    Unit,
    /// Only a configured provider: listed with the line that would make it one, never planned silently.
    Probable,
}

/// A reader of another root's state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edge {
    /// Who reads.
    pub reader: RootKey,
    /// Whose state.
    pub source: RootKey,
    /// `data.terraform_remote_state.network`, with its module in front.
    pub block: String,
    /// The outputs it uses; `None` when the whole object is used somewhere.
    pub outputs: Option<Vec<String>>,
    /// Evaluated from code on both sides, or by a convention.
    pub certain: bool,
}

/// A read of a state that no root of this repository owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExternalRead {
    /// Who reads.
    pub reader: RootKey,
    /// The block.
    pub block: String,
    /// The state, when it evaluates.
    pub state: Option<StateKey>,
    /// The outputs it uses; `None` when the whole object is used somewhere.
    pub outputs: Option<Vec<String>>,
}

/// Something that could not be read or evaluated, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hole {
    /// The file.
    pub path: String,
    /// 1-based; 0 when it concerns the whole file.
    pub line: usize,
    /// What and why, a whole sentence.
    pub what: String,
}

impl Estate {
    /// The root of that key.
    pub fn root(&self, key: &RootKey) -> Option<&Root> {
        self.roots.iter().find(|root| root.key == *key)
    }
}
