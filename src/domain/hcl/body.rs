//! One top-level block into facts, the same for both syntaxes. It knows the block types of Terraform and OpenTofu and skips the others.

use super::expr::{Expr, Reference};
use super::{
    Backend, FileCall, FileFacts, FileHole, ModuleCall, Move, Named, Output, Provider, ReadKind, Resource, StateRead,
    UnitBlock, Variable, WorkspaceBlock,
};
use serde_json::Value as Json;

/// A top-level block, nested blocks already objects.
pub(super) struct Top<'a> {
    pub kind: &'a str,
    pub labels: Vec<String>,
    pub entries: Vec<Named>,
    pub line: usize,
}

/// Adds what the block declares.
pub(super) fn take(top: Top<'_>, facts: &mut FileFacts) {
    for (_, value) in &top.entries {
        files_of(value, top.line, facts);
    }
    let label = |at: usize| top.labels.get(at).cloned().unwrap_or_default();
    match top.kind {
        "terraform" if get(&top.entries, "source").is_some() => facts.units.push(unit(top)),
        "include" | "dependency" | "dependencies" | "remote_state" | "generate" => facts.units.push(unit(top)),
        "terragrunt" => old_unit(top, facts),
        "terraform" => settings(top, facts),
        "provider" => facts.providers.push(Provider {
            name: label(0),
            alias: get(&top.entries, "alias").and_then(Expr::as_text).map(str::to_owned),
            configured: top.entries.iter().any(|(name, _)| name != "alias" && name != "version"),
            references: references(&top.entries),
            line: top.line,
        }),
        "variable" => facts.variables.push(Variable {
            name: label(0),
            default: get(&top.entries, "default").cloned(),
            shape: get(&top.entries, "type").filter(|shape| has_options(shape)).cloned(),
            sensitive: is_sensitive(&top.entries),
            references: pick(&top.entries, "validation"),
        }),
        "locals" => facts.locals.extend(top.entries),
        "module" => facts.modules.push(call(label(0), top)),
        "resource" | "data" | "ephemeral" if top.labels.len() < 2 => facts
            .holes
            .push(FileHole { line: top.line, what: format!("This `{}` block has no type and name.", top.kind) }),
        "resource" | "data" | "ephemeral" => resource(top, facts),
        "output" => facts.outputs.push(Output {
            name: label(0),
            value: get(&top.entries, "value").cloned(),
            sensitive: is_sensitive(&top.entries),
            references: references(&top.entries),
        }),
        "moved" | "import" | "removed" => facts.moves.push(Move {
            kind: top.kind.to_owned(),
            address: get(&top.entries, "to").or(get(&top.entries, "from")).and_then(Expr::as_reference),
            references: references_but(&top.entries, &["to", "from", "provider"]),
        }),
        _ => {}
    }
}

fn unit(top: Top<'_>) -> UnitBlock {
    let label = top.labels.into_iter().next().unwrap_or_default();
    UnitBlock { kind: top.kind.to_owned(), label, args: top.entries, line: top.line }
}

fn has_options(shape: &Expr) -> bool {
    let mut found = false;
    shape.visit(&mut |part| found |= matches!(part, Expr::Call(call) if call.name == "optional"));
    found
}

/// What Terragrunt's object in a var file holds.
fn old_unit(top: Top<'_>, facts: &mut FileFacts) {
    for (kind, inner) in top.entries {
        let Expr::Object(inner) = inner else { continue };
        let named = |(key, value): (Expr, Expr)| key.as_text().map(|key| (key.to_owned(), value.clone()));
        let args: Vec<Named> = inner.into_iter().filter_map(named).collect();
        let is_meant = match kind.as_str() {
            "terraform" => get(&args, "source").is_some(),
            kind => matches!(kind, "include" | "dependencies" | "remote_state"),
        };
        if is_meant {
            facts.units.push(UnitBlock { kind, label: String::new(), args, line: top.line });
        }
    }
}

fn is_sensitive(entries: &[Named]) -> bool {
    matches!(get(entries, "sensitive"), Some(Expr::Literal(Json::Bool(true))))
}

fn settings(top: Top<'_>, facts: &mut FileFacts) {
    for (name, value) in top.entries {
        match (name.as_str(), value) {
            ("required_version", value) => facts.required_versions.extend(value.as_text().map(str::to_owned)),
            ("backend", value) => {
                for (kind, args) in objects(value).into_iter().flatten() {
                    let kind = kind.as_text().unwrap_or_default().to_owned();
                    for args in objects(args) {
                        facts.backends.push(Backend { kind: kind.clone(), args: named(args), line: top.line });
                    }
                }
            }
            ("cloud", value) => {
                for args in objects(value) {
                    facts.backends.push(Backend { kind: "cloud".to_owned(), args: named(args), line: top.line });
                }
            }
            _ => {}
        }
    }
}

/// An object, or every object of a list: JSON allows both where the native syntax has blocks.
fn objects(value: Expr) -> Vec<Vec<(Expr, Expr)>> {
    match value {
        Expr::Object(entries) => vec![entries],
        Expr::List(items) => items.into_iter().flat_map(objects).collect(),
        _ => Vec::new(),
    }
}

fn named(entries: Vec<(Expr, Expr)>) -> Vec<Named> {
    entries.into_iter().filter_map(|(key, value)| Some((key.as_text()?.to_owned(), value))).collect()
}

fn call(name: String, top: Top<'_>) -> ModuleCall {
    let mut call = ModuleCall {
        name,
        source: None,
        args: Vec::new(),
        count: None,
        for_each: None,
        depends_on: pick(&top.entries, "depends_on"),
        providers: Vec::new(),
        line: top.line,
    };
    for (name, value) in top.entries {
        match name.as_str() {
            "source" => call.source = Some(value),
            "count" => call.count = Some(value),
            "for_each" => call.for_each = Some(value),
            "providers" => call.providers = providers(value),
            "version" | "depends_on" => {}
            _ => call.args.push((name, value)),
        }
    }
    call
}

fn providers(value: Expr) -> Vec<(String, String)> {
    let name =
        |expr: &Expr| expr.as_text().map(str::to_owned).or_else(|| expr.as_reference().map(|path| path.join(".")));
    let Expr::Object(entries) = value else { return Vec::new() };
    entries.iter().filter_map(|(key, value)| Some((name(key)?, name(value)?))).collect()
}

fn resource(top: Top<'_>, facts: &mut FileFacts) {
    let (kind, name) = (top.labels[0].clone(), top.labels[1].clone());
    let address = if top.kind == "resource" { format!("{kind}.{name}") } else { format!("{}.{kind}.{name}", top.kind) };
    let provider = get(&top.entries, "provider");
    facts.resources.push(Resource {
        address,
        references: references_but(&top.entries, &["provider"]),
        provider: provider
            .and_then(|expr| expr.as_reference().map(|path| path.join(".")).or(expr.as_text().map(str::to_owned))),
    });
    let kind = match (top.kind, kind.as_str()) {
        ("data", "terraform_remote_state") => ReadKind::RemoteState,
        ("data", "tfe_outputs") => ReadKind::TfeOutputs,
        ("resource", "tfe_workspace") => {
            let part = |name| get(&top.entries, name).cloned();
            let block = WorkspaceBlock { count: part("count"), for_each: part("for_each"), args: top.entries };
            facts.workspaces.push(block);
            return;
        }
        _ => return,
    };
    facts.reads.push(StateRead {
        name,
        kind,
        count: get(&top.entries, "count").cloned(),
        for_each: get(&top.entries, "for_each").cloned(),
        args: top.entries.into_iter().filter(|(name, _)| name != "count" && name != "for_each").collect(),
        line: top.line,
    });
}

/// Notes every call in the expression that reads a file.
pub(super) fn files_of(expr: &Expr, line: usize, facts: &mut FileFacts) {
    expr.visit(&mut |part| {
        let Expr::Call(call) = part else { return };
        let path = match (call.name.trim_start_matches("core::"), call.args.as_slice()) {
            ("fileset", [dir, pattern]) => {
                Expr::Template(vec![dir.clone(), Expr::Literal(Json::String("/".to_owned())), pattern.clone()])
            }
            (name, [path, ..]) if name.starts_with("file") && name != "fileexists" || name == "templatefile" => {
                path.clone()
            }
            ("fileexists", [path]) => path.clone(),
            _ => return,
        };
        facts.files.push(FileCall { function: call.name.clone(), path, line });
    });
}

/// The entry of that name.
fn get<'a>(entries: &'a [Named], name: &str) -> Option<&'a Expr> {
    entries.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn pick(entries: &[Named], name: &str) -> Vec<Reference> {
    entries.iter().filter(|(key, _)| key == name).flat_map(|(_, value)| value.references()).collect()
}

fn references(entries: &[Named]) -> Vec<Reference> {
    references_but(entries, &[])
}

fn references_but(entries: &[Named], not: &[&str]) -> Vec<Reference> {
    let kept = entries.iter().filter(|(name, _)| !not.contains(&name.as_str()));
    let mut all: Vec<Reference> = kept.flat_map(|(_, value)| value.references()).collect();
    all.retain(|path| path.len() > 1 && !matches!(path[0].as_str(), "each" | "self" | "count" | "path" | "terraform"));
    all.sort();
    all.dedup();
    all
}
