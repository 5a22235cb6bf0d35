//! Terraform's JSON syntax into the same facts as the native syntax. Strings are templates, except where Terraform
//! reads an address. Lines are not known.

use serde_json::{Map, Value as Json};

use super::body::{self, Top};
use super::expr::{Expr, from_hcl, from_template};
use super::{FileFacts, FileHole, Named};

/// Reads a whole file: configuration, or a var file whose strings are no templates.
pub(super) fn read(path: &str, text: &str, facts: &mut FileFacts) {
    let value: Json = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            facts.holes.push(FileHole { line: error.line(), what: format!("The file is no JSON: {error}.") });
            return;
        }
    };
    let tops = match value {
        Json::Object(top) => vec![top],
        Json::Array(tops) => {
            tops.into_iter().filter_map(|top| if let Json::Object(top) = top { Some(top) } else { None }).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in tops.iter().flatten().filter(|(name, _)| *name != "//") {
        if super::is_configuration(path) {
            blocks(name, value, facts);
        } else {
            facts.values.push((name.clone(), Expr::Literal(value.clone())));
        }
    }
}

fn blocks(kind: &str, value: &Json, facts: &mut FileFacts) {
    let labels = match kind {
        "resource" | "data" | "ephemeral" => 2,
        "provider" | "variable" | "module" | "output" | "check" => 1,
        _ => 0,
    };
    labelled(kind, labels, &[], value, facts);
}

fn labelled(kind: &str, missing: usize, labels: &[String], value: &Json, facts: &mut FileFacts) {
    match value {
        Json::Array(items) => items.iter().for_each(|item| labelled(kind, missing, labels, item, facts)),
        Json::Object(object) if missing > 0 => {
            for (label, inner) in object.iter().filter(|(label, _)| *label != "//") {
                let labels: Vec<String> = labels.iter().cloned().chain([label.clone()]).collect();
                labelled(kind, missing - 1, &labels, inner, facts);
            }
        }
        Json::Object(object) => {
            body::take(Top { kind, labels: labels.to_vec(), entries: entries(kind, object), line: 0 }, facts);
        }
        _ => {}
    }
}

fn entries(kind: &str, object: &Map<String, Json>) -> Vec<Named> {
    object
        .iter()
        .filter(|(name, _)| *name != "//")
        .map(|(name, value)| {
            let literal = kind == "variable" && name == "default";
            (name.clone(), if literal { Expr::Literal(value.clone()) } else { expr(name, value) })
        })
        .collect()
}

fn expr(name: &str, value: &Json) -> Expr {
    match value {
        Json::String(text) if is_address(name) => address(text),
        Json::String(text) => template(text),
        Json::Array(items) => Expr::List(items.iter().map(|item| expr(name, item)).collect()),
        Json::Object(object) => Expr::Object(
            object
                .iter()
                .filter(|(key, _)| *key != "//")
                .map(|(key, value)| {
                    let inner = if is_address(name) { name } else { key };
                    (template(key), expr(inner, value))
                })
                .collect(),
        ),
        other => Expr::Literal(other.clone()),
    }
}

/// Arguments whose strings are addresses.
fn is_address(name: &str) -> bool {
    matches!(name, "depends_on" | "provider" | "providers" | "replace_triggered_by" | "to" | "from")
}

fn address(text: &str) -> Expr {
    match hcl_edit::parser::parse_expr(text) {
        Ok(parsed) if !text.contains("${") => from_hcl(&parsed),
        _ => template(text),
    }
}

fn template(text: &str) -> Expr {
    if !text.contains("${") && !text.contains("%{") {
        return Expr::Literal(Json::String(text.to_owned()));
    }
    hcl_edit::parser::parse_template(text)
        .map_or_else(|_| Expr::Unsupported(Vec::new()), |parsed| from_template(&parsed))
}
