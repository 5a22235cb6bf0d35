//! The blast radius: the roots downstream of those whose plan changes something, with what their reads can become. It plans nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::{Class, Downstream};
use crate::domain::config::RepoConfig;
use crate::domain::estate::{Edge, Estate, RootKind, order};
use crate::domain::ids::RootKey;
use crate::domain::plan::Plan;

/// The roots downstream of those whose plan changes something. `plans` are the plans of this run, `waves` its waves: a root has one
/// number wherever it is named.
pub fn blast(
    estate: &Estate,
    config: &RepoConfig,
    waves: &[Vec<RootKey>],
    plans: &[(RootKey, &Plan)],
) -> Vec<Downstream> {
    let plans: HashMap<&RootKey, &Plan> = plans.iter().map(|(key, plan)| (key, *plan)).collect();
    let changed: BTreeSet<&RootKey> =
        plans.iter().filter(|(_, plan)| plan.changes_something()).map(|(key, _)| *key).collect();
    let graph = Graph::new(estate, config);
    let depths = graph.depths(&changed);
    let classes = graph.classes(&depths, &plans, &changed);
    let wave_of = super::numbers(waves);
    let mut found: Vec<Downstream> = depths
        .iter()
        .filter(|(key, _)| !changed.contains(*key))
        .map(|(key, depth)| {
            let reads = graph.before(key, &graph.reads, &depths);
            let by_order = reads.is_empty();
            Downstream {
                root: (*key).clone(),
                // Who is in no wave of this run comes after all of them.
                wave: wave_of.get(*key).copied().unwrap_or(waves.len() + 1),
                depth: *depth,
                reads: if by_order { graph.before(key, &graph.after, &depths) } else { reads },
                by_order,
                planned: plans.contains_key(*key),
                class: classes.get(*key).copied().unwrap_or(Class::Unchanged),
            }
        })
        .collect();
    found.sort_by(|a, b| (a.wave, a.depth, &a.root).cmp(&(b.wave, b.depth, &b.root)));
    found
}

/// What the outputs of a planned source become for someone who uses these of them.
pub fn class_of(plan: &Plan, outputs: Option<&[String]>) -> Class {
    match outputs {
        None if plan.outputs.is_empty() => Class::Unchanged,
        None => Class::MayChange,
        Some(outputs) => {
            let changes = plan.outputs.iter().filter(|change| outputs.contains(&change.name));
            changes
                .map(|change| if change.unknown { Class::MayChange } else { Class::Changes })
                .min()
                .unwrap_or(Class::Unchanged)
        }
    }
}

struct Graph<'a> {
    /// Reader to sources.
    reads: BTreeMap<&'a RootKey, BTreeSet<&'a RootKey>>,
    /// Later root to earlier ones.
    after: BTreeMap<&'a RootKey, BTreeSet<&'a RootKey>>,
    /// Source to those that come after it either way.
    next: BTreeMap<&'a RootKey, BTreeSet<&'a RootKey>>,
    edges: BTreeMap<&'a RootKey, Vec<&'a Edge>>,
}

impl<'a> Graph<'a> {
    fn new(estate: &'a Estate, config: &RepoConfig) -> Self {
        let mut graph =
            Self { reads: BTreeMap::new(), after: BTreeMap::new(), next: BTreeMap::new(), edges: BTreeMap::new() };
        let certain = estate.roots.iter().filter(|root| root.kind == RootKind::Certain);
        let keys: Vec<&RootKey> = certain.map(|root| &root.key).collect();
        let known: BTreeSet<&RootKey> = keys.iter().copied().collect();
        for edge in estate.edges.iter().filter(|edge| known.contains(&edge.reader)) {
            graph.reads.entry(&edge.reader).or_default().insert(&edge.source);
            graph.next.entry(&edge.source).or_default().insert(&edge.reader);
            graph.edges.entry(&edge.reader).or_default().push(edge);
        }
        for (source, later) in order::after_pairs(&keys, config) {
            graph.after.entry(keys[later]).or_default().insert(keys[source]);
            graph.next.entry(keys[source]).or_default().insert(keys[later]);
        }
        graph
    }

    /// Every root of the radius with the fewest steps to it; changed roots are at 0.
    fn depths(&self, changed: &BTreeSet<&'a RootKey>) -> BTreeMap<&'a RootKey, usize> {
        let mut depths: BTreeMap<&RootKey, usize> = changed.iter().map(|key| (*key, 0)).collect();
        let mut open: VecDeque<&RootKey> = changed.iter().copied().collect();
        while let Some(key) = open.pop_front() {
            let depth = depths[key] + 1;
            for reader in self.next.get(key).into_iter().flatten() {
                if !depths.contains_key(reader) {
                    depths.insert(reader, depth);
                    open.push_back(reader);
                }
            }
        }
        depths
    }

    fn before(
        &self,
        key: &RootKey,
        sources: &BTreeMap<&'a RootKey, BTreeSet<&'a RootKey>>,
        within: &BTreeMap<&'a RootKey, usize>,
    ) -> Vec<RootKey> {
        let sources = sources.get(key).into_iter().flatten();
        sources
            .filter(|source| within.contains_key(*source) && **source != key)
            .map(|source| (*source).clone())
            .collect()
    }

    /// The strongest class of what each root reads. A root without a plan passes on that something may change, once
    /// something it reads does.
    fn classes(
        &self,
        depths: &BTreeMap<&'a RootKey, usize>,
        plans: &HashMap<&RootKey, &Plan>,
        changed: &BTreeSet<&'a RootKey>,
    ) -> HashMap<&'a RootKey, Class> {
        let mut classes: HashMap<&RootKey, Class> = HashMap::new();
        let mut open: VecDeque<&RootKey> = depths.keys().copied().collect();
        while let Some(reader) = open.pop_front() {
            let before = classes.get(reader).copied().unwrap_or(Class::Unchanged);
            let edges = self.edges.get(reader).into_iter().flatten().filter(|edge| depths.contains_key(&edge.source));
            let class = edges
                .map(|edge| match plans.get(&edge.source) {
                    Some(plan) => class_of(plan, edge.outputs.as_deref()),
                    None if changed.contains(&edge.source) => Class::MayChange,
                    None => classes.get(&edge.source).map_or(Class::Unchanged, |class| (*class).max(Class::MayChange)),
                })
                .min()
                .unwrap_or(Class::Unchanged)
                .min(before);
            if class != before {
                classes.insert(reader, class);
                open.extend(self.next.get(reader).into_iter().flatten());
            }
        }
        classes
    }
}

#[cfg(test)]
pub(super) mod tests;
