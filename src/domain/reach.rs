//! What a change can touch: the blast radius (roots downstream) and the resources downstream, in the
//! forms of the spec. Pure walks over the estate and the plans; it decides nothing.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::ids::RootKey;
use super::outside::Outside;
use super::plan::Action;

mod resources;
mod roots;

pub use crate::domain::estate::References;
pub use resources::resources;
pub use roots::{blast, class_of};

/// The blast radius and the by-resource list of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Roots whose plan changes something.
    pub changed: Vec<RootKey>,
    /// Roots that read those, followed through; by wave, then depth, then name.
    pub downstream: Vec<Downstream>,
    /// Each changed resource that reaches something.
    pub resources: Vec<ResourceReach>,
    /// Roots of other repositories that read those that change.
    #[serde(default)]
    pub outside: Option<Outside>,
}

/// A root that reads a changed root, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downstream {
    /// The reader.
    pub root: RootKey,
    /// Its wave in the run, 1-based.
    pub wave: usize,
    /// Reads on the way from the changed roots: 1 for a direct reader.
    pub depth: usize,
    /// The changed or downstream roots that it reads directly, sorted.
    pub reads: Vec<RootKey>,
    /// It comes after them by `waves.after` alone, without a read.
    pub by_order: bool,
    /// Planned in this run.
    pub planned: bool,
    /// What its reads can become.
    pub class: Class,
}

/// What happens to a value that is read across roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The value that is read changes.
    Changes,
    /// It is unknown until the apply, or the whole object is read.
    MayChange,
    /// It stays as it is.
    Unchanged,
}

/// A changed resource and what depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceReach {
    /// Its address without instance keys when all instances share the action, else with.
    pub address: String,
    /// Its root.
    pub root: RootKey,
    /// What happens to it.
    pub action: Action,
    /// Own root first, then by root; sorted.
    pub reaches: Vec<Reached>,
}

/// A resource downstream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reached {
    /// Its root.
    pub root: RootKey,
    /// Its address.
    pub address: String,
    /// How it was reached from another root.
    pub through: Option<Through>,
    /// Its root was planned in this run; else only its configuration was followed.
    #[serde(default = "planned")]
    pub planned: bool,
}

fn planned() -> bool {
    true
}

/// The output by which a change crosses from one root into another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Through {
    /// The output; `None` when the whole object is read.
    pub output: Option<String>,
    /// Whose output.
    pub root: RootKey,
    /// What the value becomes.
    pub class: Class,
}

impl Reach {
    /// A root has its plan now: it came while its source was being applied, after the walk.
    pub fn mark_planned(&mut self, root: &RootKey) {
        for down in self.downstream.iter_mut().filter(|down| down.root == *root) {
            down.planned = true;
        }
        let reached = self.resources.iter_mut().flat_map(|resource| &mut resource.reaches);
        for reached in reached.filter(|reached| reached.root == *root) {
            reached.planned = true;
        }
    }
}

/// The number of each root's wave, from 1 on.
fn numbers(waves: &[Vec<RootKey>]) -> HashMap<&RootKey, usize> {
    waves.iter().enumerate().flat_map(|(at, wave)| wave.iter().map(move |root| (root, at + 1))).collect()
}
