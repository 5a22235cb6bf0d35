//! A planned value as an expression of the configuration language: known parts as they will be, unknown ones unknown, with the
//! types that the plan says. It rounds no number.

use std::collections::BTreeSet;

use super::Json;

/// Unknown while planning, of no certain type: no resource is needed for it, and every attribute and index of it is unknown too.
const UNKNOWN: &str = "jsondecode(timestamp())";

/// The expression of a value with its unknown parts and its type.
pub(super) fn expression(value: &Json, unknown: Option<&Json>, kind: Option<&Json>) -> String {
    if unknown == Some(&Json::Bool(true)) {
        return unknown_of(kind);
    }
    match value {
        Json::Null if has_parts(unknown) => parts_of_nothing(unknown, kind),
        Json::Null => "null".to_owned(),
        Json::Bool(set) => set.to_string(),
        Json::Number(number) => number.clone(),
        Json::Text(text) => quoted(text),
        Json::List(items) => list(items, unknown, kind),
        Json::Object(entries) => object(entries, unknown, kind),
    }
}

fn has_parts(unknown: Option<&Json>) -> bool {
    matches!(unknown, Some(Json::List(_) | Json::Object(_))) && unknown.is_some_and(super::is_marked)
}

/// The plan may leave a value out whose parts are all unknown.
fn parts_of_nothing(unknown: Option<&Json>, kind: Option<&Json>) -> String {
    match unknown {
        Some(Json::List(_)) => list(&[], unknown, kind),
        _ => object(&[], unknown, kind),
    }
}

/// An element of a typed list keeps its type, so that the list stays one.
fn unknown_of(kind: Option<&Json>) -> String {
    match kind {
        Some(Json::Text(kind)) if matches!(kind.as_str(), "string" | "number" | "bool") => {
            format!("to{kind}({UNKNOWN})")
        }
        _ => UNKNOWN.to_owned(),
    }
}

fn list(items: &[Json], unknown: Option<&Json>, kind: Option<&Json>) -> String {
    let marks = unknown.map_or(&[][..], Json::items);
    let (outer, inner) = split(kind);
    let of = |index: usize| {
        let kind = match (outer, inner) {
            (Some("tuple"), Some(Json::List(kinds))) => kinds.get(index),
            (Some("list" | "set"), inner) => inner,
            _ => None,
        };
        expression(items.get(index).unwrap_or(&Json::Null), marks.get(index), kind)
    };
    let all: Vec<String> = (0..items.len().max(marks.len())).map(of).collect();
    let text = format!("[{}]", all.join(", "));
    match outer {
        Some(outer @ ("list" | "set")) => format!("to{outer}({text})"),
        _ => text,
    }
}

fn object(entries: &[(String, Json)], unknown: Option<&Json>, kind: Option<&Json>) -> String {
    let (outer, inner) = split(kind);
    let marks = unknown.map_or(&[][..], Json::entries);
    let later = marks.iter().filter(|(_, mark)| super::is_marked(mark)).map(|(key, _)| key);
    let keys: BTreeSet<&String> = entries.iter().map(|(key, _)| key).chain(later).collect();
    let of = |key: &&String| {
        let value = entries.iter().find(|(name, _)| name == *key).map_or(&Json::Null, |(_, value)| value);
        let kind = match outer {
            Some("object") => inner.and_then(|kinds| kinds.get(key)),
            Some("map") => inner,
            _ => None,
        };
        let mark = unknown.and_then(|unknown| unknown.get(key));
        format!("{} = {}", quoted(key), expression(value, mark, kind))
    };
    let all: Vec<String> = keys.iter().map(of).collect();
    let text = if all.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", all.join(", ")) };
    if outer == Some("map") { format!("tomap({text})") } else { text }
}

/// `["list", "string"]` as its two parts.
fn split(kind: Option<&Json>) -> (Option<&str>, Option<&Json>) {
    match kind {
        Some(Json::List(parts)) => match parts.as_slice() {
            [Json::Text(outer), inner, ..] => (Some(outer), Some(inner)),
            _ => (None, None),
        },
        _ => (None, None),
    }
}

/// A text in quotes, in which nothing is a template.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '$' if chars.peek() == Some(&'{') => out.push_str("\\u0024"),
            '%' if chars.peek() == Some(&'{') => out.push_str("\\u0025"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str("\\u");
                out.extend((0..4).rev().filter_map(|at| char::from_digit((u32::from(c) >> (4 * at)) & 15, 16)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Every text and number in a value.
pub(super) fn leaves(value: &Json, into: &mut Vec<String>) {
    match value {
        Json::Null | Json::Bool(_) => {}
        Json::Number(text) | Json::Text(text) => into.push(text.clone()),
        Json::List(items) => items.iter().for_each(|item| leaves(item, into)),
        Json::Object(entries) => entries.iter().for_each(|(_, item)| leaves(item, into)),
    }
}
