//! The attributes of a resource that differ, as paths into its value. It compares values and never shows a sensitive one.

use serde_json::Value;

use super::shown;
use crate::domain::plan::{AttributeChange, Shown};
use crate::domain::secret::Secrets;

/// The attributes that differ between `before` and `after`, in the order of the plan.
pub(super) fn of(change: &Value, secrets: &Secrets) -> Vec<AttributeChange> {
    let sides = Sides {
        before: &change["before"],
        after: &change["after"],
        unknown: &change["after_unknown"],
        marked_before: &change["before_sensitive"],
        marked_after: &change["after_sensitive"],
    };
    let mut walk = Walk { secrets, path: Vec::new(), found: Vec::new() };
    walk.fields(&sides);
    walk.found
}

/// A path as people write it: `a.b[0]["odd key"]`.
pub(super) fn path_of(path: &[Value], secrets: &Secrets) -> String {
    path.iter().fold(String::new(), |text, step| match step {
        // The key of a map can be anything, even a secret; the name of an attribute is never one.
        Value::String(key) if is_name(key) && text.is_empty() => key.clone(),
        Value::String(key) if is_name(key) && !secrets.is_secret(key) => text + "." + &secrets.mask(key),
        Value::String(_) => text + "[" + &secrets.mask(&step.to_string()) + "]",
        _ => text + "[" + &step.to_string() + "]",
    })
}

fn is_name(key: &str) -> bool {
    let first = key.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    first && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
}

/// One place in a resource, seen from before and after.
struct Sides<'a> {
    before: &'a Value,
    after: &'a Value,
    unknown: &'a Value,
    marked_before: &'a Value,
    marked_after: &'a Value,
}

impl<'a> Sides<'a> {
    fn field(&self, key: &str) -> Sides<'a> {
        Sides {
            before: &self.before[key],
            after: &self.after[key],
            unknown: shown::part(self.unknown, key),
            marked_before: shown::part(self.marked_before, key),
            marked_after: shown::part(self.marked_after, key),
        }
    }

    fn item(&self, index: usize) -> Sides<'a> {
        Sides {
            before: &self.before[index],
            after: &self.after[index],
            unknown: shown::item(self.unknown, index),
            marked_before: shown::item(self.marked_before, index),
            marked_after: shown::item(self.marked_after, index),
        }
    }

    fn differ(&self) -> bool {
        shown::has_true(self.unknown) || self.before != self.after
    }

    fn is_marked(&self) -> bool {
        self.marked_before == true || self.marked_after == true
    }

    fn keys(&self) -> Vec<&'a String> {
        let mut keys: Vec<&String> = Vec::new();
        for side in [self.before, self.after, self.unknown] {
            let mut of_side: Vec<&String> = side.as_object().into_iter().flat_map(serde_json::Map::keys).collect();
            of_side.retain(|key| !keys.contains(key));
            keys.extend(of_side);
        }
        keys
    }

    /// Lists of objects are compared item by item; a list of plain values reads better whole.
    fn are_lists_of_objects(&self) -> bool {
        let objects = |side: &Value| side.as_array().is_some_and(|list| list.iter().any(Value::is_object));
        self.before.is_array() && self.after.is_array() && (objects(self.before) || objects(self.after))
    }
}

struct Walk<'s> {
    secrets: &'s Secrets,
    path: Vec<Value>,
    found: Vec<AttributeChange>,
}

impl Walk<'_> {
    fn fields(&mut self, sides: &Sides<'_>) {
        for key in sides.keys() {
            self.step(Value::from(key.as_str()), &sides.field(key));
        }
    }

    fn step(&mut self, step: Value, sides: &Sides<'_>) {
        if !sides.differ() {
            return;
        }
        self.path.push(step);
        if sides.is_marked() || sides.unknown == true {
            self.leaf(sides);
        } else if sides.before.is_object() && sides.after.is_object() {
            self.fields(sides);
        } else if sides.are_lists_of_objects() {
            let length = sides.before.as_array().map_or(0, Vec::len).max(sides.after.as_array().map_or(0, Vec::len));
            for index in 0..length {
                self.step(Value::from(index), &sides.item(index));
            }
        } else {
            self.leaf(sides);
        }
        self.path.pop();
    }

    fn leaf(&mut self, sides: &Sides<'_>) {
        // A value that is marked on one side is secret on the other as well: the mark may come or go with this change.
        let whole = Value::Bool(true);
        let (before, after) =
            if sides.is_marked() { (&whole, &whole) } else { (sides.marked_before, sides.marked_after) };
        let before = shown::of(sides.before, &Value::Null, before, self.secrets);
        let after = shown::of(sides.after, sides.unknown, after, self.secrets);
        if before == Shown::Absent && after == Shown::Absent {
            return;
        }
        self.found.push(AttributeChange { path: path_of(&self.path, self.secrets), before, after });
    }
}
