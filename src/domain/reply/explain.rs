//! Why a path brings roots into a pull: the reply to `explain`. It reads the rollout and looks nothing up.

use std::collections::{BTreeMap, BTreeSet};

use super::{named, not_seen};
use crate::domain::estate::Reason;
use crate::domain::ids::RootKey;
use crate::domain::inspect::is_within;
use crate::domain::note::markdown::code;
use crate::domain::rollout::{Rollout, Stage};

/// `explain PATH`: file, rule, roots, and who comes after those.
pub fn explain(rollout: Option<&Rollout>, path: &str) -> String {
    let Some(rollout) = rollout else { return not_seen() };
    match &rollout.stage {
        Stage::Ready => {}
        Stage::Inspecting => return not_seen(),
        Stage::Refused(refusal) | Stage::Unmanaged(refusal) => {
            return format!("Not done. {}: {}", refusal.title, refusal.text);
        }
    }
    let path = path.trim_start_matches("./");
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    let shown = code(path);
    let mut lines: Vec<String> = Vec::new();
    let mut here: Vec<&RootKey> = Vec::new();
    for run in rollout.runs.values() {
        let is_root = path == run.root.dir() || path == run.root.to_string();
        let why: Vec<String> =
            run.reasons.iter().filter(|reason| is_root || names_path(reason, path)).map(reason_in_words).collect();
        if !why.is_empty() {
            lines.push(format!("- {}: {}", named(&run.root), why.join("; ")));
            here.push(&run.root);
        }
    }
    if lines.is_empty() {
        return format!(
            "{shown} brings no root into this pull: it did not change here, or no root has, calls or reads it."
        );
    }
    let mut text = format!("{shown} is why these roots are here:\n\n{}", lines.join("\n"));
    let downstream = after(rollout, here);
    if !downstream.is_empty() {
        text.push_str("\n\nand by what they read:\n\n");
        text.push_str(&downstream.join("\n"));
    }
    text
}

/// Whether a reason speaks of this file, or of something in this directory.
fn names_path(reason: &Reason, path: &str) -> bool {
    match reason {
        Reason::Module { dir, .. } if dir == path => true,
        Reason::Changed(changed) | Reason::File(changed) | Reason::Module { path: changed, .. } => {
            is_within(changed, path)
        }
        Reason::Reads(_) | Reason::After(_) | Reason::Asked => false,
    }
}

/// Who is here because of these roots, through any number of steps, in the order of the names.
fn after(rollout: &Rollout, here: Vec<&RootKey>) -> Vec<String> {
    let mut known: BTreeSet<&RootKey> = here.iter().copied().collect();
    let mut found: BTreeMap<&RootKey, Vec<String>> = BTreeMap::new();
    let mut open = here;
    while let Some(source) = open.pop() {
        let hangs = |reason: &&Reason| matches!(reason, Reason::Reads(on) | Reason::After(on) if on == source);
        for run in rollout.runs.values() {
            let Some(reason) = run.reasons.iter().find(hangs) else { continue };
            if known.insert(&run.root) {
                open.push(&run.root);
                found.insert(&run.root, Vec::new());
            }
            if let Some(why) = found.get_mut(&run.root) {
                why.push(reason_in_words(reason));
            }
        }
    }
    found.iter().map(|(root, why)| format!("- {}: {}", named(root), why.join("; "))).collect()
}

/// Why a root is reached.
pub fn reason_in_words(reason: &Reason) -> String {
    match reason {
        Reason::Changed(path) => format!("{} changed, in its directory", code(path)),
        Reason::Module { dir, path } => format!("{} changed, in the module {} that it calls", code(path), code(dir)),
        Reason::File(path) => format!("it reads {}, which changed", code(path)),
        Reason::Reads(root) => format!("it reads the state of {}", named(root)),
        Reason::After(root) => format!("`waves.after` puts it after {}", named(root)),
        Reason::Asked => "somebody named it".to_owned(),
    }
}
