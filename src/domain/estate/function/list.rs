//! Functions over lists and objects.

use std::collections::BTreeMap;

use super::super::value::Value;

/// More items than this are not made by one call.
const MOST: usize = 1_000;

/// Calls one of them; `None` when the name, or the kind of its arguments, is none of theirs.
pub(super) fn call(name: &str, args: &[Value]) -> Option<Value> {
    Some(match (name, args) {
        ("reverse", [Value::List(items)]) => Value::List(items.iter().rev().cloned().collect()),
        ("compact", [Value::List(items)]) if items.iter().all(Value::is_known) => {
            let empty = |item: &&Value| !matches!(item, Value::Null) && item.as_known().as_deref() != Some("");
            Value::List(items.iter().filter(empty).cloned().collect())
        }
        ("distinct", [Value::List(items)]) if items.iter().all(Value::is_known) => {
            let mut kept: Vec<Value> = Vec::new();
            for item in items {
                if !kept.contains(item) {
                    kept.push(item.clone());
                }
            }
            Value::List(kept)
        }
        ("flatten", [Value::List(items)]) => {
            let mut flat = Vec::new();
            flatten(items, &mut flat)?;
            Value::List(flat)
        }
        ("one", [Value::List(items)]) => match items.as_slice() {
            [] => Value::Null,
            [only] => only.clone(),
            _ => Value::Missing,
        },
        ("slice", [Value::List(items), from, to]) => {
            let (from, to): (usize, usize) = (from.as_known()?.parse().ok()?, to.as_known()?.parse().ok()?);
            items.get(from..to).map_or(Value::Missing, |items| Value::List(items.to_vec()))
        }
        ("index", [Value::List(items), wanted]) if wanted.is_known() && items.iter().all(Value::is_known) => {
            let at = items.iter().position(|item| item.as_known() == wanted.as_known());
            at.map_or(Value::Missing, |at| Value::Number(at.to_string()))
        }
        ("zipmap", [Value::List(keys), Value::List(values)]) if keys.len() == values.len() => {
            let keys: Option<Vec<String>> = keys.iter().map(Value::as_known).collect();
            Value::Object(keys?.into_iter().zip(values.iter().cloned()).collect())
        }
        ("setproduct", lists) => product(lists)?,
        ("range", [count]) => {
            let count: usize = count.as_known()?.parse().ok().filter(|count| *count <= MOST)?;
            Value::List((0..count).map(|at| Value::Number(at.to_string())).collect())
        }
        ("tuple" | "list", items) => Value::List(items.to_vec()),
        ("map", pairs) if pairs.len() % 2 == 0 => {
            let mut object = BTreeMap::new();
            for pair in pairs.chunks(2) {
                object.insert(pair[0].as_known()?, pair[1].clone());
            }
            Value::Object(object)
        }
        _ => return None,
    })
}

/// `None` while something in it is unknown: it may be a list.
fn flatten(items: &[Value], flat: &mut Vec<Value>) -> Option<()> {
    for item in items {
        match item {
            Value::List(inner) => flatten(inner, flat)?,
            Value::Unknown | Value::Missing => return None,
            other => flat.push(other.clone()),
        }
    }
    Some(())
}

fn product(lists: &[Value]) -> Option<Value> {
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for list in lists {
        let items: Vec<Value> = match list {
            Value::List(items) => items.clone(),
            // A set is an object whose keys are its values.
            Value::Object(entries) => entries.values().cloned().collect(),
            _ => return None,
        };
        let longer = |row: &Vec<Value>| -> Vec<Vec<Value>> {
            items.iter().map(|item| row.iter().chain([item]).cloned().collect()).collect()
        };
        rows = rows.iter().flat_map(longer).collect();
        if rows.len() > MOST {
            return None;
        }
    }
    Some(Value::List(rows.into_iter().map(Value::List).collect()))
}
