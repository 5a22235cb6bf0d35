//! The order of roots: layers in which no root reads another, canary roots first. Groups that read each other share a layer;
//! only a cycle made by `waves.after` is an error.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::Estate;
use crate::domain::config::RepoConfig;
use crate::domain::ids::RootKey;
use crate::domain::nearest::nearest;

/// Source and the root that comes after it, as places in a list of roots.
pub(in crate::domain) type Pair = (usize, usize);

impl Estate {
    /// The dependency layers of these roots, canary first. An error is a cycle made by `waves.after`: its path, closed.
    pub fn layers(&self, keys: &BTreeSet<RootKey>, config: &RepoConfig) -> Result<Vec<Vec<RootKey>>, Vec<RootKey>> {
        let keys: Vec<&RootKey> = keys.iter().collect();
        let at: HashMap<&RootKey, usize> = keys.iter().enumerate().map(|(at, key)| (*key, at)).collect();
        let ends = |edge: &super::Edge| Some((*at.get(&edge.source)?, *at.get(&edge.reader)?));
        let mut reads: Vec<Pair> = self.edges.iter().filter_map(ends).filter(|(a, b)| a != b).collect();
        reads.sort_unstable();
        reads.dedup();
        let after = after_pairs(&keys, config);
        let named = |path: Vec<usize>| -> Vec<RootKey> { path.into_iter().map(|at| keys[at].clone()).collect() };
        let (groups, pairs) = settle(keys.len(), reads, &after).map_err(named)?;
        let canary = upstream(keys.len(), &pairs, |at| is_named(keys[at], &config.waves.canary));
        Ok(stack(&groups, &pairs, &canary)
            .into_iter()
            .map(|layer| layer.into_iter().map(|at| keys[at].clone()).collect())
            .collect())
    }
}

/// A name in `waves` that means no root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stranger {
    /// `waves.canary` or `waves.after`.
    pub setting: &'static str,
    /// As it is written.
    pub name: String,
    /// The root that it most likely means.
    pub near: Option<String>,
}

impl Estate {
    /// Names in `waves` that mean no root here: whoever mistypes one believes in an order that is not there.
    pub fn strangers(&self, config: &RepoConfig) -> Vec<Stranger> {
        let waves = &config.waves;
        let after = waves.after.iter().flat_map(|(later, sources)| std::iter::once(later).chain(sources));
        let named =
            waves.canary.iter().map(|name| ("waves.canary", name)).chain(after.map(|name| ("waves.after", name)));
        let unknown = named.filter(|(_, name)| !self.roots.iter().any(|root| is_called(&root.key, name)));
        let found: BTreeSet<Stranger> = unknown
            .map(|(setting, name)| {
                let near = nearest(name, self.roots.iter().map(|root| root.key.dir()));
                Stranger { setting, name: name.clone(), near: near.map(str::to_owned) }
            })
            .collect();
        found.into_iter().collect()
    }
}

fn is_named(key: &RootKey, names: &[String]) -> bool {
    names.iter().any(|name| is_called(key, name))
}

/// A name in the settings is a directory, or a directory with its workspace.
fn is_called(key: &RootKey, name: &str) -> bool {
    let name = name.trim_start_matches("./").trim_end_matches('/');
    key.dir() == name || *key == RootKey::from(name.to_owned())
}

/// The pairs of `waves.after` among these roots, sorted.
pub(in crate::domain) fn after_pairs(keys: &[&RootKey], config: &RepoConfig) -> Vec<Pair> {
    if config.waves.after.is_empty() {
        return Vec::new();
    }
    let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, key) in keys.iter().enumerate() {
        by_name.entry(key.dir().to_owned()).or_default().push(at);
        by_name.entry(format!("{}:{}", key.dir(), key.workspace())).or_default().push(at);
    }
    let find = |name: &String| {
        let name = name.trim_start_matches("./").trim_end_matches('/');
        by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    };
    let mut pairs = BTreeSet::new();
    for (later, sources) in &config.waves.after {
        for source in sources.iter().flat_map(find) {
            // Workspaces of one directory are not ordered by its own name; a root after itself is a cycle.
            let own = |reader: usize| reader != *source && keys[reader].dir() == keys[*source].dir();
            pairs.extend(find(later).iter().filter(|reader| !own(**reader)).map(|reader| (*source, *reader)));
        }
    }
    pairs.into_iter().collect()
}

type Groups = Vec<Vec<usize>>;

/// Groups in order, sources first, and the pairs that hold between them; `Err` is a cycle.
fn settle(count: usize, mut reads: Vec<Pair>, after: &[Pair]) -> Result<(Groups, Vec<Pair>), Vec<usize>> {
    if let Some((at, _)) = after.iter().find(|(a, b)| a == b) {
        return Err(vec![*at, *at]);
    }
    if !after.is_empty() {
        break_reads(count, &mut reads, after);
    }
    let mut pairs: Vec<Pair> = reads.into_iter().chain(after.iter().copied()).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let groups = groups(count, &pairs);
    let group_of = group_of(count, &groups);
    match after.iter().find(|(source, reader)| group_of[*source] == group_of[*reader]) {
        Some((source, reader)) => Err(cycle(&pairs, *source, *reader)),
        None => Ok((groups, pairs)),
    }
}

/// Within a group of roots that read each other, `after` decides: reads that say the opposite give way, and if that leaves a cycle
/// with an `after` in it, all reads of that part do.
fn break_reads(count: usize, reads: &mut Vec<Pair>, after: &[Pair]) {
    let mutual = group_of(count, &groups(count, reads));
    let inner: Vec<Pair> = after.iter().copied().filter(|(a, b)| mutual[*a] == mutual[*b]).collect();
    if inner.is_empty() {
        return;
    }
    let opposite: HashSet<Pair> = inner.iter().map(|(source, reader)| (*reader, *source)).collect();
    reads.retain(|pair| !opposite.contains(pair));
    let all: Vec<Pair> = reads.iter().chain(&inner).copied().collect();
    let still = group_of(count, &groups(count, &all));
    let tangled: HashSet<usize> =
        inner.iter().filter(|(a, b)| still[*a] == still[*b]).map(|(a, _)| still[*a]).collect();
    reads.retain(|(a, b)| !(mutual[*a] == mutual[*b] && still[*a] == still[*b] && tangled.contains(&still[*a])));
}

/// Strongly connected groups, sources first, each sorted.
fn groups(count: usize, pairs: &[Pair]) -> Groups {
    let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(count, pairs.len());
    (0..count).for_each(|_| {
        graph.add_node(());
    });
    for (source, reader) in pairs {
        graph.add_edge(NodeIndex::new(*source), NodeIndex::new(*reader), ());
    }
    let mut groups: Groups = kosaraju_scc(&graph)
        .into_iter()
        .map(|group| group.into_iter().map(NodeIndex::index).collect::<Vec<_>>())
        .collect();
    groups.reverse();
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

fn group_of(count: usize, groups: &Groups) -> Vec<usize> {
    let mut of = vec![0; count];
    for (at, group) in groups.iter().enumerate() {
        group.iter().for_each(|member| of[*member] = at);
    }
    of
}

/// The closed path of a cycle through this pair, each root after the next.
fn cycle(pairs: &[Pair], source: usize, reader: usize) -> Vec<usize> {
    let mut next: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    pairs.iter().for_each(|(a, b)| next.entry(*a).or_default().push(*b));
    let mut from: HashMap<usize, usize> = HashMap::from([(reader, reader)]);
    let mut open = VecDeque::from([reader]);
    while let Some(at) = open.pop_front() {
        for to in next.get(&at).into_iter().flatten() {
            if !from.contains_key(to) {
                from.insert(*to, at);
                open.push_back(*to);
            }
        }
    }
    let mut path = vec![reader, source];
    let mut at = source;
    while at != reader {
        at = from.get(&at).copied().unwrap_or(reader);
        path.push(at);
    }
    path
}

/// Those that `first` picks and everything before them.
fn upstream(count: usize, pairs: &[Pair], first: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
    pairs.iter().for_each(|(source, reader)| before[*reader].push(*source));
    let mut picked: Vec<bool> = (0..count).map(first).collect();
    let mut open: Vec<usize> = (0..count).filter(|at| picked[*at]).collect();
    while let Some(at) = open.pop() {
        for source in &before[at] {
            if !picked[*source] {
                picked[*source] = true;
                open.push(*source);
            }
        }
    }
    picked
}

/// Layers: first those of the canary roots, then those of the others, which count from there.
fn stack(groups: &Groups, pairs: &[Pair], canary: &[bool]) -> Vec<Vec<usize>> {
    let of = group_of(canary.len(), groups);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    for (source, reader) in pairs.iter().filter(|(a, b)| of[*a] != of[*b] && canary[*a] == canary[*b]) {
        before[of[*reader]].push(of[*source]);
    }
    let mut level = vec![0; groups.len()];
    for at in 0..groups.len() {
        level[at] = before[at].iter().map(|source| level[*source] + 1).max().unwrap_or(0);
    }
    let is_canary = |at: usize| canary[groups[at][0]];
    let offset = (0..groups.len()).filter(|at| is_canary(*at)).map(|at| level[at] + 1).max().unwrap_or(0);
    let mut layers: Vec<Vec<usize>> = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let layer = level[at] + if is_canary(at) { 0 } else { offset };
        layers.resize(layers.len().max(layer + 1), Vec::new());
        layers[layer].extend(group);
    }
    layers.iter_mut().for_each(|layer| layer.sort_unstable());
    layers
}
