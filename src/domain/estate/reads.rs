//! Reads of other states: each block of a root's module tree as a place, and each place as an edge, an external read or a hole.

use std::collections::BTreeMap;

use super::evaluate::{Here, Tree};
use super::owners::{Index, Owners};
use super::state::{self, Args, Place, Workspace};
use super::value::Value;
use super::{Edge, Estate, ExternalRead, Hole};
use crate::domain::hcl::{ReadKind, StateRead};

/// A read of a root, not yet matched.
pub(super) struct Read {
    block: String,
    outputs: Option<Vec<String>>,
    /// The place, or why it is not known.
    place: Result<Place, String>,
    path: String,
    line: usize,
}

/// The reads of a root's module tree, one per block and instance.
pub(super) fn of(tree: &Tree<'_>) -> Vec<Read> {
    let mut uses = BTreeMap::new();
    let mut found = Vec::new();
    for (at, scope) in tree.scopes.iter().enumerate() {
        if scope.module.reads.is_empty() {
            continue;
        }
        let uses = uses.entry(scope.module.dir.as_str()).or_insert_with(|| scope.module.uses());
        for (name, (read, path)) in &scope.module.reads {
            let kind = match read.kind {
                ReadKind::RemoteState => "terraform_remote_state",
                ReadKind::TfeOutputs => "tfe_outputs",
            };
            let outputs = uses.get(name).cloned().flatten().map(|outputs| outputs.into_iter().collect());
            for (_, each, index) in tree.instances(read.count.as_ref(), read.for_each.as_ref(), Here::of(at)) {
                let here = Here { each: each.as_ref(), index: Some(&index), ..Here::of(at) };
                found.push(Read {
                    block: format!("{}data.{kind}.{name}", scope.prefix),
                    outputs: outputs.clone(),
                    place: place(tree, read, here),
                    path: path.clone(),
                    line: read.line,
                });
            }
        }
    }
    found
}

fn place(tree: &Tree<'_>, read: &StateRead, here: Here<'_>) -> Result<Place, String> {
    let arg = |name: &str| {
        let found = read.args.iter().find(|(key, _)| key == name);
        found.map_or(Value::Null, |(_, value)| tree.eval(value, here))
    };
    let partial = |value: &Value| value.as_partial().map(|text| state::starred(&text));
    if read.kind == ReadKind::TfeOutputs {
        let location = partial(&arg("workspace")).unwrap_or_else(|| "*".to_owned());
        let container = vec![Some("app.terraform.io".to_owned()), arg("organization").as_known()];
        return Ok(Place { family: "remote".to_owned(), container, location });
    }
    let Some(kind) = arg("backend").as_known() else {
        return Err("its backend's type is not known from the code".to_owned());
    };
    let args: Args = match arg("config") {
        Value::Object(args) => args,
        Value::List(items) => match items.into_iter().next() {
            Some(Value::Object(args)) => args,
            _ => return Err("its `config` is not known from the code".to_owned()),
        },
        Value::Null => Args::new(),
        _ => return Err("its `config` is not known from the code".to_owned()),
    };
    let workspace = match arg("workspace") {
        Value::Null => "default".to_owned(),
        value => partial(&value).unwrap_or_else(|| "*".to_owned()),
    };
    // A local path is relative to the root, also in a module.
    let dir = tree.scopes[0].module.dir.as_str();
    state::place(&kind, &args, Workspace::Of(&workspace), dir)
        .ok_or_else(|| format!("the backend `{kind}` is not known here"))
}

/// Matches the reads of one root against all owners.
pub(super) fn link(estate: &mut Estate, reader: usize, reads: Vec<Read>, index: &Index) {
    for read in reads {
        let place = match &read.place {
            Ok(place) => place,
            Err(why) => {
                estate.holes.push(read.hole(&format!("nobody is seen behind it: {why}")));
                continue;
            }
        };
        let (owners, certain) = match index.of(place) {
            Owners::Certain(owners) => (owners, true),
            Owners::Probable(owners) => (owners, false),
        };
        let mut owners: Vec<usize> = owners.into_iter().collect();
        narrow(estate, reader, &mut owners);
        match owners.as_slice() {
            [] if place.location.contains('*') => {
                let own = estate.roots[reader].key.dir();
                let hint = index.looks_like(place).filter(|dir| *dir != own).map(|dir| {
                    format!(
                        ". Its last part, `{}`, looks like `{dir}`: `state` in `.tidegate.yaml` can say so",
                        place.location.rsplit('/').next().unwrap_or(&place.location)
                    )
                });
                let what = format!(
                    "its state is not known from the code (`{}:{}`), so no order follows from it{}",
                    place.family,
                    place.location,
                    hint.unwrap_or_default()
                );
                estate.holes.push(read.hole(&what));
            }
            [] => estate.external.push(ExternalRead {
                reader: estate.roots[reader].key.clone(),
                block: read.block.clone(),
                state: place.key(),
                outputs: read.outputs.clone(),
            }),
            [own] if *own == reader => {}
            [source] => estate.edges.push(Edge {
                reader: estate.roots[reader].key.clone(),
                source: estate.roots[*source].key.clone(),
                block: read.block.clone(),
                outputs: read.outputs.clone(),
                certain,
            }),
            [first, rest @ ..] => {
                let first = &estate.roots[*first].key;
                let what = format!(
                    "{} roots may own its state (`{first}` and {} more), so no order follows from it",
                    rest.len() + 1,
                    rest.len()
                );
                estate.holes.push(read.hole(&what));
            }
        }
    }
}

/// Of several workspaces of one directory the reader's own is meant, unless the place says otherwise.
fn narrow(estate: &Estate, reader: usize, owners: &mut Vec<usize>) {
    let dir = |root: usize| estate.roots[root].key.dir();
    let workspace = |root: usize| estate.roots[root].key.workspace();
    if owners.len() > 1
        && owners.iter().all(|owner| dir(*owner) == dir(owners[0]))
        && let Some(same) = owners.iter().copied().find(|owner| workspace(*owner) == workspace(reader))
    {
        *owners = vec![same];
    }
}

impl Read {
    fn hole(&self, what: &str) -> Hole {
        // The module in front differs from root to root; the place in the code does not.
        let block = self.block.find("data.").map_or(self.block.as_str(), |at| &self.block[at..]);
        Hole { path: self.path.clone(), line: self.line, what: format!("`{block}`: {what}.") }
    }
}
