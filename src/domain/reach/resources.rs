//! The by-resource list: each changed resource and the resources that depend on it, across roots only through the outputs that the
//! change reaches. It follows references; the plans say what a value becomes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::roots::class_of;
use super::{Class, Reached, ResourceReach, Through};
use crate::domain::estate::{Edge, Estate, References, RootKind, Users};
use crate::domain::ids::RootKey;
use crate::domain::plan::{Action, Change, Plan, without_keys};

/// The by-resource list. `plans` are the plans of this run, `waves` its waves; a root without a plan is followed by its configuration as
/// far as something that it reads can change, and says that it was not planned.
pub fn resources(estate: &Estate, waves: &[Vec<RootKey>], plans: &[(RootKey, &Plan)]) -> Vec<ResourceReach> {
    let mut walk =
        Walk { estate, plans: BTreeMap::new(), edges: HashMap::new(), graphs: HashMap::new(), users: HashMap::new() };
    walk.plans.extend(plans.iter().map(|(key, plan)| (key, *plan)));
    for edge in &estate.edges {
        walk.edges.entry(&edge.source).or_default().push(edge);
    }
    let mut found = Vec::new();
    for (root, plan) in walk.plans.clone() {
        let mut of_address: HashMap<(String, bool), Vec<Reached>> = HashMap::new();
        for (address, action) in changed(plan) {
            let node = without_keys(&address);
            // What a deleted resource carried may be told by the state alone.
            let prior = plan.dependents.get(&node).filter(|_| action == Action::Delete);
            let key = (node.clone(), prior.is_some());
            let reaches = of_address.entry(key).or_insert_with(|| walk.from(root, &node, prior)).clone();
            if !reaches.is_empty() {
                found.push(ResourceReach { address, root: root.clone(), action, reaches });
            }
        }
    }
    let wave_of = super::numbers(waves);
    let order = |reach: &ResourceReach| (reach.action.rank(), wave_of.get(&reach.root).copied());
    found.sort_by(|a, b| (order(a), &a.root, &a.address).cmp(&(order(b), &b.root, &b.address)));
    found
}

/// Changed addresses with what happens: without instance keys when all instances share the action.
fn changed(plan: &Plan) -> Vec<(String, Action)> {
    let counts = |change: &&Change| !matches!(change.action, Action::Read | Action::Nothing | Action::Forget);
    let changes: Vec<&Change> = plan.changes.iter().filter(counts).filter(|change| change.deposed.is_none()).collect();
    let mut actions: BTreeMap<String, BTreeSet<Action>> = BTreeMap::new();
    for change in &changes {
        actions.entry(without_keys(&change.address)).or_default().insert(change.action);
    }
    let shared = |address: &String| actions.get(address).is_some_and(|actions| actions.len() == 1);
    let named: BTreeSet<(String, Action)> = changes
        .iter()
        .map(|change| {
            let plain = without_keys(&change.address);
            (if shared(&plain) { plain } else { change.address.clone() }, change.action)
        })
        .collect();
    named.into_iter().collect()
}

struct Walk<'a> {
    estate: &'a Estate,
    plans: BTreeMap<&'a RootKey, &'a Plan>,
    /// By source.
    edges: HashMap<&'a RootKey, Vec<&'a Edge>>,
    graphs: HashMap<RootKey, References>,
    /// By root and node, since many changes come by the same output.
    users: HashMap<(RootKey, String), Rc<Users>>,
}

impl<'a> Walk<'a> {
    fn users(&mut self, root: &RootKey, node: &str) -> Rc<Users> {
        let key = (root.clone(), node.to_owned());
        if let Some(known) = self.users.get(&key) {
            return Rc::clone(known);
        }
        let estate = self.estate;
        let graph = self.graphs.entry(root.clone()).or_insert_with(|| estate.references(root));
        let users = Rc::new(graph.users(&[node.to_owned()]));
        self.users.insert(key, Rc::clone(&users));
        users
    }

    /// The users of a node, and of what depended on it before.
    fn users_then_and_now(&mut self, root: &RootKey, node: &str, prior: Option<&BTreeSet<String>>) -> Rc<Users> {
        let now = self.users(root, node);
        let Some(prior) = prior else { return now };
        let mut all = Users::clone(&now);
        for user in prior {
            let through = self.users(root, user);
            all.resources.extend(through.resources.iter().chain([user]).cloned());
            all.outputs.extend(through.outputs.iter().cloned());
        }
        all.resources.remove(node);
        Rc::new(all)
    }

    fn from(&mut self, root: &'a RootKey, node: &str, prior: Option<&BTreeSet<String>>) -> Vec<Reached> {
        let users = self.users_then_and_now(root, node, prior);
        let mut own: Vec<Reached> = Vec::new();
        own.extend(users.resources.iter().cloned().map(|address| Reached {
            root: root.clone(),
            address,
            through: None,
            planned: true,
        }));
        let mut others: BTreeMap<(RootKey, String), Through> = BTreeMap::new();
        let mut open: Vec<(&RootKey, String)> = users.outputs.iter().cloned().map(|output| (root, output)).collect();
        let mut seen: BTreeSet<(&RootKey, String)> = open.iter().cloned().collect();
        while let Some((source, output)) = open.pop() {
            for edge in self.edges.get(source).cloned().unwrap_or_default() {
                for (entry, through) in self.crossings(edge, &output) {
                    let users = self.users(&edge.reader, &entry);
                    for address in users.resources.iter().filter(|_| edge.reader != *root) {
                        let known =
                            others.entry((edge.reader.clone(), address.clone())).or_insert_with(|| through.clone());
                        if (through.class, &through) < (known.class, known) {
                            *known = through.clone();
                        }
                    }
                    for output in users.outputs.iter().cloned() {
                        if seen.insert((&edge.reader, output.clone())) {
                            open.push((&edge.reader, output));
                        }
                    }
                }
            }
        }
        let others = others.into_iter().map(|((root, address), through)| Reached {
            planned: self.plans.contains_key(&root),
            root,
            address,
            through: Some(through),
        });
        own.into_iter().chain(others).collect()
    }

    /// Where an output enters a reader: by its name, and with the whole object where that is used. A reader that was not planned since
    /// what it reads stays as it is has nothing that is reached.
    fn crossings(&self, edge: &Edge, output: &str) -> Vec<(String, Through)> {
        let planned = self.plans.contains_key(&edge.reader);
        let is_root = |key: &RootKey| self.estate.root(key).is_some_and(|root| root.kind == RootKind::Certain);
        if !planned && !is_root(&edge.reader) {
            return Vec::new();
        }
        let plan = self.plans.get(&edge.source);
        let class = |outputs: Option<&[String]>| plan.map_or(Class::MayChange, |plan| class_of(plan, outputs));
        let through = |output: Option<String>, class| Through { output, root: edge.source.clone(), class };
        let named = [output.to_owned()];
        let by_name =
            (References::entry(&edge.block, Some(output)), through(Some(output.to_owned()), class(Some(&named))));
        let whole = edge.outputs.is_none().then(|| (References::entry(&edge.block, None), through(None, class(None))));
        let all = std::iter::once(by_name).chain(whole);
        all.filter(|(_, through)| planned || through.class != Class::Unchanged).collect()
    }
}

#[cfg(test)]
mod tests;
