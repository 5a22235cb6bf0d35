//! Planning a reader on the planned outputs of its source: the outputs as configuration of their own, and the reader's files with
//! their references pointed at it. Not one byte outside of those references changes. It touches no file and runs no tool.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::digest::Json;
use super::hcl::{self, ReadKind};
use super::ids::RootKey;
use super::job::{FellBack, Link};

mod json;
mod literal;
mod native;

/// The file that holds the outputs, in the reader's directory. Both tools read it.
pub const FILE: &str = "tidegate_linked.tf";

/// The planned outputs of a source, for one block that reads them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The block's name: `net` of `data.terraform_remote_state.net`.
    pub block: String,
    /// Whose outputs.
    pub root: RootKey,
    /// Name and expression of each output that will be in the state.
    pub outputs: Vec<(String, String)>,
    /// Clear values of the sensitive ones.
    pub secrets: Vec<String>,
}

/// A root's files for a linked plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Files to put in place, by name; empty when nothing is linked.
    pub files: Vec<(String, Vec<u8>)>,
    /// The sources that are read as they are applied, with the reason.
    pub left: Vec<FellBack>,
}

/// The outputs that the plan of a link's source gives it, from `show -json` of that plan.
pub fn source(link: &Link, plan_json: &[u8]) -> Result<Source, String> {
    let plan = Json::parse(plan_json)?;
    let changes = plan.get("output_changes").map_or(&[][..], Json::entries);
    let planned = plan.get("planned_values").and_then(|values| values.get("outputs"));
    let mut source =
        Source { block: link.block.clone(), root: link.root.clone(), outputs: Vec::new(), secrets: Vec::new() };
    for (name, change) in changes {
        let (after, unknown) = (change.get("after").unwrap_or(&Json::Null), change.get("after_unknown"));
        if change.get("after_sensitive").is_some_and(is_marked) {
            literal::leaves(after, &mut source.secrets);
        }
        if let Some(before) = change.get("before").filter(|_| change.get("before_sensitive").is_some_and(is_marked)) {
            literal::leaves(before, &mut source.secrets);
        }
        // An output whose value is null, or that goes, will not be in the state.
        if *after == Json::Null && !unknown.is_some_and(is_marked) {
            continue;
        }
        let kind = planned.and_then(|outputs| outputs.get(name)).and_then(|output| output.get("type"));
        source.outputs.push((name.clone(), literal::expression(after, unknown, kind)));
    }
    Ok(source)
}

fn is_marked(mark: &Json) -> bool {
    match mark {
        Json::Bool(set) => *set,
        Json::List(items) => items.iter().any(is_marked),
        Json::Object(entries) => entries.iter().any(|(_, mark)| is_marked(mark)),
        Json::Null | Json::Number(_) | Json::Text(_) => false,
    }
}

/// Points the references of a root's own files at the planned outputs. `files` are the names and bytes of the files of
/// its directory.
pub fn rewrite(files: &[(String, Vec<u8>)], sources: &[Source]) -> Rewritten {
    let files: Vec<&(String, Vec<u8>)> = files.iter().filter(|(name, _)| hcl::is_configuration(name)).collect();
    let nothing = |why: &str| Rewritten {
        files: Vec::new(),
        left: sources.iter().map(|source| FellBack { source: source.root.clone(), why: why.to_owned() }).collect(),
    };
    if files.iter().any(|(name, _)| name.starts_with("tidegate_linked.")) {
        return nothing(&format!("the root has a file {FILE} of its own"));
    }
    let mut left = Vec::new();
    let mut linked: Vec<&Source> = Vec::new();
    for source in sources {
        match obstacle(&files, &source.block) {
            Some(why) => left.push(FellBack { source: source.root.clone(), why }),
            None => linked.push(source),
        }
    }
    if linked.is_empty() {
        return Rewritten { files: Vec::new(), left };
    }
    let names: BTreeSet<&str> = linked.iter().map(|source| source.block.as_str()).collect();
    let mut changed = Vec::new();
    for (name, bytes) in files {
        match rewritten(name, bytes, &names) {
            Ok(Some(new)) => changed.push((name.clone(), new)),
            Ok(None) => {}
            Err(why) => return nothing(&format!("{name} cannot be rewritten: {why}")),
        }
    }
    changed.push((FILE.to_owned(), declaration(&linked).into_bytes()));
    Rewritten { files: changed, left }
}

/// Why a block cannot be linked.
fn obstacle(files: &[&(String, Vec<u8>)], block: &str) -> Option<String> {
    let mut found = false;
    for (name, bytes) in files {
        for read in hcl::parse(name, bytes).reads.iter().filter(|read| read.name == block) {
            if read.kind != ReadKind::RemoteState {
                return Some("it is no terraform_remote_state".to_owned());
            }
            if read.count.is_some() || read.for_each.is_some() {
                return Some("its block has count or for_each".to_owned());
            }
            if read.args.iter().any(|(name, _)| name == "defaults") {
                return Some("its block has defaults".to_owned());
            }
            found = true;
        }
    }
    (!found).then(|| "its block is not in the root's own directory".to_owned())
}

/// A file's new bytes; `None` when it refers to none of the blocks.
fn rewritten(name: &str, bytes: &[u8], blocks: &BTreeSet<&str>) -> Result<Option<Vec<u8>>, String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err("it is no text".to_owned());
    };
    let new = if name.ends_with(".json") { json::rewrite(text, blocks) } else { native::rewrite(text, blocks) };
    Ok(new?.map(String::into_bytes))
}

/// The text with each span replaced; spans do not overlap.
fn splice(text: &str, spans: &[native::Hit]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for hit in spans {
        out.push_str(&text[from..hit.span.start]);
        out.push_str(&local(&hit.block));
        from = hit.span.end;
    }
    out.push_str(&text[from..]);
    out
}

fn local(block: &str) -> String {
    format!("local.tidegate_linked_{block}")
}

fn declaration(linked: &[&Source]) -> String {
    let mut text = String::from("locals {\n");
    let mut seen = BTreeSet::new();
    for source in linked.iter().filter(|source| seen.insert(&source.block)) {
        text = format!("{text}  tidegate_linked_{} = {{\n    outputs = {{\n", source.block);
        for (name, expression) in &source.outputs {
            text = format!("{text}      {} = {expression}\n", literal::quoted(name));
        }
        text.push_str("    }\n  }\n");
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests;
