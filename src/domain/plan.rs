//! A saved plan as people may see it: parsed from `show -json`, with every sensitive value already
//! dropped. It never holds a secret, so it may be stored and shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

mod moved;
mod parse;
pub mod trace;

pub use moved::moved;
pub use parse::{PlanError, parse, parse_knowing};
use trace::Trace;

/// What one root would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of the tool that made it (`terraform_version`, whatever the tool).
    pub tool_version: String,
    /// Everything that is not a bare no-op, in the order delete, replace, update, create, then the rest; by address within.
    pub changes: Vec<Change>,
    /// Outputs that change, by name.
    pub outputs: Vec<OutputChange>,
    /// Resources that changed outside, by address; shown, never counted.
    pub drift: Vec<String>,
    /// What depends on each resource that is deleted, as the state before recorded it; addresses without instance keys.
    #[serde(default)]
    pub dependents: BTreeMap<String, BTreeSet<String>>,
    /// Where the other tool left its registry's host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Trace>,
}

/// What happens to one resource instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The whole address, module and key included.
    pub address: String,
    /// `aws_db_instance`
    pub resource_type: String,
    /// What is done.
    pub action: Action,
    /// The key of a deposed object, whose address stands elsewhere as well.
    pub deposed: Option<String>,
    /// Where it was before a `moved` block.
    pub previous_address: Option<String>,
    /// Taken over by an `import` block.
    pub importing: bool,
    /// The attributes that force a replacement, `a.b[0]` form.
    pub replaced_by: Vec<String>,
    /// The tool's own reason for a replacement or deletion (`action_reason`).
    pub reason: Option<String>,
    /// The attributes that differ, in the order of the plan. Empty for a delete.
    pub attributes: Vec<AttributeChange>,
}

/// What is done to a resource instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Destroyed.
    Delete,
    /// Destroyed, then made again.
    DeleteThenCreate,
    /// Made again, then the old one destroyed.
    CreateThenDelete,
    /// A new one is made, the old one is left behind unmanaged (OpenTofu).
    ForgetThenCreate,
    /// Changed in place.
    Update,
    /// New.
    Create,
    /// Left behind, no longer managed.
    Forget,
    /// A data source read during the apply.
    Read,
    /// Only its address moves or it is only imported.
    Nothing,
}

impl Action {
    /// Whether something that exists dies: delete and every kind of replacement.
    pub fn is_destructive(self) -> bool {
        matches!(self, Action::Delete) || self.is_replacement()
    }

    /// Whether the object is made anew.
    pub fn is_replacement(self) -> bool {
        matches!(self, Action::DeleteThenCreate | Action::CreateThenDelete | Action::ForgetThenCreate)
    }

    /// Delete, replace, update, create, then the rest: the order in which people read changes.
    pub fn rank(self) -> u8 {
        match self {
            Action::Delete => 0,
            action if action.is_replacement() => 1,
            Action::Update => 2,
            Action::Create => 3,
            _ => 4,
        }
    }

    /// The word of the note: `delete`, `replace`, `update`, `create`, `forget`, `read`, `move`.
    pub fn word(self) -> &'static str {
        match self {
            Action::Delete => "delete",
            Action::DeleteThenCreate | Action::CreateThenDelete | Action::ForgetThenCreate => "replace",
            Action::Update => "update",
            Action::Create => "create",
            Action::Forget => "forget",
            Action::Read => "read",
            Action::Nothing => "move",
        }
    }
}

/// The address without `[0]` and `["a.b"]`.
pub fn without_keys(address: &str) -> String {
    let mut plain = String::new();
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for letter in address.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if depth > 0 => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth = depth.saturating_sub(1),
            letter if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}

/// One attribute that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeChange {
    /// `tags.Name`, `ingress[0].port`
    pub path: String,
    /// Before.
    pub before: Shown,
    /// After.
    pub after: Shown,
}

/// A value as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Not there.
    Absent,
    /// Its compact JSON text.
    Value(String),
    /// `(sensitive)`
    Sensitive,
    /// `(known after apply)`
    Unknown,
}

/// An output that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputChange {
    /// Its name.
    pub name: String,
    /// `Create`, `Update` or `Delete`.
    pub action: Action,
    /// Before.
    pub before: Shown,
    /// After.
    pub after: Shown,
    /// Any part of it is known only after the apply.
    pub unknown: bool,
}

/// How many resources of each kind, in the order in which people read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Destroyed for good.
    pub delete: usize,
    /// Made anew.
    pub replace: usize,
    /// Changed in place.
    pub update: usize,
    /// New.
    pub create: usize,
}

impl Plan {
    /// Resources by kind of change.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for change in &self.changes {
            match change.action {
                Action::Delete => counts.delete += 1,
                action if action.is_replacement() => counts.replace += 1,
                Action::Update => counts.update += 1,
                Action::Create => counts.create += 1,
                _ => {}
            }
        }
        counts
    }

    /// Whether applying it would change anything at all: a resource, an address, an import or an output.
    pub fn changes_something(&self) -> bool {
        !self.changes.is_empty() || !self.outputs.is_empty()
    }

    /// Whether anything that exists dies.
    pub fn is_destructive(&self) -> bool {
        self.changes.iter().any(|change| change.action.is_destructive())
    }
}

impl std::ops::Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            delete: self.delete + other.delete,
            replace: self.replace + other.replace,
            update: self.update + other.update,
            create: self.create + other.create,
        }
    }
}

impl std::fmt::Display for Counts {
    /// `1 delete · 1 replace · 2 update · 2 create`, without the zeros; `no resource changes` when all are zero.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> =
            [(self.delete, "delete"), (self.replace, "replace"), (self.update, "update"), (self.create, "create")]
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, word)| format!("{count} {word}"))
                .collect();
        if parts.is_empty() { f.write_str("no resource changes") } else { f.write_str(&parts.join(" · ")) }
    }
}
