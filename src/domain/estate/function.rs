//! The functions that are evaluated, over values. Any other function, and any argument that is not known enough, gives unknown.

use std::collections::BTreeMap;

use super::value::{GAP, Value};

mod list;
mod text;

/// Calls a function other than `try`, whose arguments may fail.
pub(super) fn call(name: &str, args: &[Value]) -> Value {
    match (name, args) {
        ("format", [pattern, rest @ ..]) => format(pattern, rest),
        ("join", [separator, lists @ ..]) => join(separator, lists),
        ("coalesce", args) => coalesce(args),
        ("lookup", [map, key, rest @ ..]) => lookup(map, key, rest.first()),
        ("merge", maps) => merge(maps),
        ("concat", lists) => concat(lists),
        ("tostring", [value @ (Value::Null | Value::Text(_))])
        | ("tolist" | "tomap" | "sensitive" | "nonsensitive" | "tonumber" | "tobool", [value]) => value.clone(),
        ("tostring", [value]) => value.as_known().map_or(Value::Unknown, Value::Text),
        ("toset", [value]) => set(value),
        ("element", [Value::List(items), Value::Number(at)]) => match at.parse::<usize>() {
            Ok(at) if !items.is_empty() => items[at % items.len()].clone(),
            _ => Value::Unknown,
        },
        ("keys", [Value::Object(entries)]) => Value::List(entries.keys().map(Value::text).collect()),
        ("values", [Value::Object(entries)]) => Value::List(entries.values().cloned().collect()),
        ("length", [Value::List(items)]) => Value::Number(items.len().to_string()),
        ("length", [Value::Object(entries)]) => Value::Number(entries.len().to_string()),
        ("contains", [Value::List(items), wanted]) if wanted.is_known() && items.iter().all(Value::is_known) => {
            Value::Bool(items.iter().any(|item| item.as_known() == wanted.as_known()))
        }
        _ => text::call(name, args).or_else(|| list::call(name, args)).unwrap_or(Value::Unknown),
    }
}

fn format(pattern: &Value, args: &[Value]) -> Value {
    let Some(pattern) = pattern.as_known() else { return Value::Unknown };
    let mut args = args.iter();
    let mut text = String::new();
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        match rest.next() {
            Some('%') => text.push('%'),
            Some('s' | 'v' | 'd') => match args.next().and_then(Value::as_partial) {
                Some(part) => text.push_str(&part),
                None => return Value::Unknown,
            },
            Some('q') => match args.next().and_then(Value::as_known) {
                Some(part) => text.push_str(&serde_json::Value::from(part).to_string()),
                None => return Value::Unknown,
            },
            Some('0') => match zeros(&mut rest, args.next()) {
                Some(part) => text.push_str(&part),
                None => return Value::Unknown,
            },
            _ => return Value::Unknown,
        }
    }
    Value::Text(text)
}

/// `%02d`: what is left of the verb, and its number.
fn zeros(rest: &mut std::str::Chars<'_>, arg: Option<&Value>) -> Option<String> {
    let width = rest.next()?.to_digit(10)? as usize;
    let number: i64 = arg.filter(|_| rest.next() == Some('d'))?.as_known()?.parse().ok()?;
    Some(format!("{number:0width$}"))
}

fn join(separator: &Value, lists: &[Value]) -> Value {
    let Some(separator) = separator.as_known() else { return Value::Unknown };
    let mut parts = Vec::new();
    for list in lists {
        let Value::List(items) = list else { return Value::Unknown };
        for item in items {
            let Some(part) = item.as_partial() else { return Value::Unknown };
            parts.push(part);
        }
    }
    Value::Text(parts.join(&separator))
}

fn coalesce(args: &[Value]) -> Value {
    for arg in args {
        match arg {
            Value::Null => {}
            Value::Text(text) if text.is_empty() => {}
            // A text of gaps alone may turn out empty.
            Value::Text(text) if text.chars().all(|letter| letter == GAP) => return Value::Unknown,
            Value::Missing => return Value::Unknown,
            found => return found.clone(),
        }
    }
    Value::Missing
}

fn lookup(map: &Value, key: &Value, default: Option<&Value>) -> Value {
    match (map, key.as_known()) {
        (Value::Object(entries), Some(key)) => entries.get(&key).or(default).cloned().unwrap_or(Value::Missing),
        _ => Value::Unknown,
    }
}

fn merge(maps: &[Value]) -> Value {
    let mut all = BTreeMap::new();
    for map in maps {
        match map {
            Value::Object(entries) => all.extend(entries.clone()),
            Value::Null => {}
            _ => return Value::Unknown,
        }
    }
    Value::Object(all)
}

fn concat(lists: &[Value]) -> Value {
    let mut all = Vec::new();
    for list in lists {
        let Value::List(items) = list else { return Value::Unknown };
        all.extend(items.clone());
    }
    Value::List(all)
}

/// A set is an object whose keys are its values: that is how `for_each` sees it.
fn set(value: &Value) -> Value {
    let Value::List(items) = value else { return Value::Unknown };
    let keys: Option<Vec<String>> = items.iter().map(Value::as_known).collect();
    keys.map_or(Value::Unknown, |keys| {
        Value::Object(keys.into_iter().map(|key| (key.clone(), Value::Text(key))).collect())
    })
}
