//! Reads across the repositories of a server: which states of one repository the roots of others read, and what a change may say of
//! them. A state is matched by its whole name only. Pure; where the index is kept is the store's matter.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::estate::{Estate, RootKind};
use super::ids::{RepoKey, RootKey, StateKey};
use super::plan::Plan;
use super::reach::{Class, class_of};

/// What a pull may say of other repositories: its readers may not be allowed to see those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrossRepo {
    /// Repositories, roots and pulls by name.
    Names,
    /// How many roots, and nothing else.
    #[default]
    Counts,
    /// Nothing is matched across repositories.
    Off,
}

impl FromStr for CrossRepo {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "names" => Ok(Self::Names),
            "counts" => Ok(Self::Counts),
            "off" => Ok(Self::Off),
            _ => Err(()),
        }
    }
}

/// A read of a state that no root of the reader's repository owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OutsideRead {
    /// Who reads.
    pub reader: RootKey,
    /// The block.
    pub block: String,
    /// The state.
    pub state: StateKey,
    /// The outputs it uses; `None` when the whole object is used somewhere.
    pub outputs: Option<Vec<String>>,
}

/// A read by a root of another repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignRead {
    /// Whose root.
    pub repo: RepoKey,
    /// `owner/name`.
    pub name: String,
    /// The read.
    pub read: OutsideRead,
}

/// The roots of other repositories that read states which a change touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// How many roots; one that reads several states counts once.
    pub readers: usize,
    /// By the root that is read and what becomes of what is read.
    pub sources: Vec<OutsideSource>,
}

/// Roots of other repositories that read one root's state and to which the same happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideSource {
    /// The root whose state they read.
    pub source: RootKey,
    /// What becomes of what they read.
    pub class: Class,
    /// How many.
    pub readers: usize,
    /// Who, sorted; empty when the server's settings do not allow names.
    pub names: Vec<OutsideName>,
}

/// A root of another repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OutsideName {
    /// `owner/name`.
    pub repo: String,
    /// The root.
    pub root: RootKey,
}

/// Whether this name means the same state whoever says it: a path within a repository, or a stand-in for a state that is not known,
/// means another in each.
pub fn is_shared(state: &StateKey) -> bool {
    match state.as_str().split_once(':') {
        Some(("local", path)) => path.starts_with('/'),
        Some((family, _)) => family != "dir",
        None => false,
    }
}

/// What the roots of an estate read of states that other repositories may own.
pub fn reads_of(estate: &Estate) -> Vec<OutsideRead> {
    let is_planned = |key: &RootKey| estate.root(key).is_some_and(|root| root.kind == RootKind::Certain);
    let mut reads: Vec<OutsideRead> = estate
        .external
        .iter()
        .filter(|read| is_planned(&read.reader))
        .filter_map(|read| {
            let state = read.state.clone().filter(is_shared)?;
            let (reader, block, outputs) = (read.reader.clone(), read.block.clone(), read.outputs.clone());
            Some(OutsideRead { reader, block, state, outputs })
        })
        .collect();
    reads.sort();
    reads.dedup();
    reads
}

/// What the plans mean for roots of other repositories; nothing when nobody there reads a root that changes.
pub fn outside(plans: &[(&RootKey, &StateKey, &Plan)], reads: &[ForeignRead], say: CrossRepo) -> Option<Outside> {
    if say == CrossRepo::Off {
        return None;
    }
    let mut classes: BTreeMap<(&RootKey, OutsideName), Class> = BTreeMap::new();
    for (source, state, plan) in plans.iter().filter(|(_, _, plan)| plan.changes_something()) {
        for foreign in reads.iter().filter(|foreign| foreign.read.state == **state) {
            let name = OutsideName { repo: foreign.name.clone(), root: foreign.read.reader.clone() };
            let class = class_of(plan, foreign.read.outputs.as_deref());
            let known = classes.entry((*source, name)).or_insert(class);
            *known = (*known).min(class);
        }
    }
    let readers = classes.keys().map(|(_, name)| name).collect::<BTreeSet<_>>().len();
    let mut groups: BTreeMap<(Class, &RootKey), Vec<OutsideName>> = BTreeMap::new();
    for ((source, name), class) in &classes {
        groups.entry((*class, source)).or_default().push(name.clone());
    }
    let sources: Vec<OutsideSource> = groups
        .into_iter()
        .map(|((class, source), names)| OutsideSource {
            source: source.clone(),
            class,
            readers: names.len(),
            names: if say == CrossRepo::Names { names } else { Vec::new() },
        })
        .collect();
    (readers > 0).then_some(Outside { readers, sources })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::plan::{Action, OutputChange, Shown};

    #[test]
    fn only_a_name_that_means_one_state_is_matched() {
        for (state, shared) in [
            ("s3:bucket/key", true),
            ("remote:app.terraform.io/org/net", true),
            ("local:/states/net.tfstate", true),
            ("local:net/terraform.tfstate", false),
            ("dir:net", false),
            ("odd", false),
        ] {
            assert_eq!(is_shared(&StateKey::new(state)), shared, "{state}");
        }
    }

    fn plan(outputs: &[(&str, bool)]) -> Plan {
        let output = |(name, unknown): &(&str, bool)| OutputChange {
            name: (*name).to_owned(),
            action: Action::Update,
            before: Shown::Absent,
            after: Shown::Absent,
            unknown: *unknown,
        };
        Plan { outputs: outputs.iter().map(output).collect(), ..Plan::default() }
    }

    fn read(repo: &str, reader: &str, state: &str, outputs: Option<&[&str]>) -> ForeignRead {
        let outputs = outputs.map(|all| all.iter().map(|name| (*name).to_owned()).collect());
        let read = OutsideRead { reader: RootKey::new(reader), block: "data.x".into(), state: state.into(), outputs };
        ForeignRead { repo: RepoKey { forge: "github".to_owned(), id: 2 }, name: repo.to_owned(), read }
    }

    #[test]
    fn readers_are_told_by_what_becomes_of_what_they_read() {
        let (net, state) = (RootKey::new("net"), StateKey::new("s3:b/net"));
        let plan = plan(&[("cidr", false), ("id", true)]);
        let plans = [(&net, &state, &plan)];
        let reads = [
            read("o/a", "x", "s3:b/net", Some(&["cidr"])),
            read("o/a", "y", "s3:b/net", Some(&["id"])),
            read("o/b", "x", "s3:b/net", None),
            read("o/b", "z", "s3:b/net", Some(&["zone"])),
            read("o/b", "z", "s3:b/other", Some(&["cidr"])),
        ];
        let found = outside(&plans, &reads, CrossRepo::Names).expect("readers");
        let said: Vec<(Class, usize, usize)> =
            found.sources.iter().map(|it| (it.class, it.readers, it.names.len())).collect();
        assert_eq!(found.readers, 4);
        assert_eq!(said, [(Class::Changes, 1, 1), (Class::MayChange, 2, 2), (Class::Unchanged, 1, 1)]);
        let counted = outside(&plans, &reads, CrossRepo::Counts).expect("readers");
        assert_eq!(counted.readers, 4);
        let text = serde_json::to_string(&counted).expect("JSON");
        assert!(!text.contains("o/a") && !text.contains("\"x\""), "no name of another repository: {text}");
        assert_eq!(outside(&plans, &reads, CrossRepo::Off), None);
        assert_eq!(outside(&[(&net, &state, &Plan::default())], &reads, CrossRepo::Names), None, "nothing changes");
    }
}
