//! Which root owns a place: an index over the places of all roots, so that a read looks at few of them.

use std::collections::{BTreeSet, HashMap};

use super::state::{Match, Place};

/// Why a root is taken for the owner of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its backend says so.
    Own,
    /// Its backend in some workspace that no setting names.
    AnyWorkspace,
    /// A backend file near it says so.
    Convention,
}

/// Owners found for a read, by index of their root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// These, from code on both sides.
    Certain(BTreeSet<usize>),
    /// These, by what is known.
    Probable(BTreeSet<usize>),
}

/// Places of roots, by what can be looked up.
#[derive(Default)]
pub(super) struct Index {
    all: Vec<(usize, Place, Standing)>,
    exact: HashMap<(String, String), Vec<usize>>,
    by_last: HashMap<(String, String), Vec<usize>>,
    loose: HashMap<String, Vec<usize>>,
    family: HashMap<String, Vec<usize>>,
    names: HashMap<String, BTreeSet<String>>,
}

impl Index {
    pub fn add(&mut self, root: usize, place: Place, standing: Standing) {
        let at = self.all.len();
        let family = place.family.clone();
        self.family.entry(family.clone()).or_default().push(at);
        if !place.location.contains('*') {
            self.exact.entry((family.clone(), place.location.clone())).or_default().push(at);
            self.by_last.entry((family, last(&place.location).to_owned())).or_default().push(at);
        } else if place.location != "*" {
            if last(&place.location).contains('*') {
                self.loose.entry(family).or_default().push(at);
            } else {
                self.by_last.entry((family, last(&place.location).to_owned())).or_default().push(at);
            }
        }
        self.all.push((root, place, standing));
    }

    /// Notes the directory of a root, for hints.
    pub fn name(&mut self, dir: &str) {
        self.names.entry(last(dir).to_owned()).or_default().insert(dir.to_owned());
    }

    /// The one directory whose name is the last part of the place, when there is one.
    pub fn looks_like(&self, place: &Place) -> Option<&str> {
        let name = last(&place.location);
        let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
        let dirs = self.names.get(stem)?;
        dirs.first().filter(|_| dirs.len() == 1).map(String::as_str)
    }

    /// The owners of the place that a read names.
    pub fn of(&self, read: &Place) -> Owners {
        let exact = self.exact.get(&(read.family.clone(), read.location.clone()));
        let (certain, probable) = self.sort(read, exact.into_iter().flatten().copied());
        if !certain.is_empty() {
            return Owners::Certain(certain);
        }
        if !read.location.contains('*') && !probable.is_empty() {
            return Owners::Probable(probable);
        }
        let none = Vec::new();
        let candidates: Vec<usize> = if last(&read.location).contains('*') {
            self.family.get(&read.family).unwrap_or(&none).clone()
        } else {
            let key = (read.family.clone(), last(&read.location).to_owned());
            let by_last = self.by_last.get(&key).unwrap_or(&none);
            by_last.iter().chain(self.loose.get(&read.family).unwrap_or(&none)).copied().collect()
        };
        let (certain, probable) = self.sort(read, candidates.into_iter());
        if certain.is_empty() { Owners::Probable(probable) } else { Owners::Certain(certain) }
    }

    fn sort(&self, read: &Place, candidates: impl Iterator<Item = usize>) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let (mut certain, mut probable) = (BTreeSet::new(), BTreeSet::new());
        for (root, place, standing) in candidates.map(|at| &self.all[at]) {
            match (read.matches(place), standing) {
                (Match::Certain, Standing::Own | Standing::AnyWorkspace) => certain.insert(*root),
                (Match::Certain | Match::Probable, _) => probable.insert(*root),
                (Match::No, _) => false,
            };
        }
        (certain, probable)
    }
}

fn last(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or(location)
}
