//! A value as it may be shown: marks, secrets and unknown parts replaced, long text cut. Nothing leaves it in clear that
//! is marked or equal to a secret.

use serde_json::Value;

use crate::domain::plan::Shown;
use crate::domain::secret::{MASK, Secrets};

/// What stands for a part that is known only after the apply.
const UNKNOWN: &str = "(known after apply)";

/// The most characters of one value: more is read in the log, and the state stays small.
const LONGEST: usize = 400;

/// The value with what its marks say about it.
pub(super) fn of(value: &Value, unknown: &Value, sensitive: &Value, secrets: &Secrets) -> Shown {
    if unknown == true && sensitive != true {
        return Shown::Unknown;
    }
    if sensitive == true {
        return if value.is_null() && unknown != true { Shown::Absent } else { Shown::Sensitive };
    }
    match value {
        Value::Null if !has_true(unknown) => Shown::Absent,
        Value::String(text) if secrets.is_secret(text) => Shown::Sensitive,
        _ => {
            let replaced = replaced(value, unknown, sensitive, secrets);
            let text = secrets.mask(&replaced.to_string());
            // Our own words are no strings of the user's.
            let words = [MASK, UNKNOWN];
            let text = words.iter().fold(text, |text, word| text.replace(&format!("\"{word}\""), word));
            Shown::Value(cut(text))
        }
    }
}

/// Whether any part of a tree of marks is set.
pub(super) fn has_true(mark: &Value) -> bool {
    match mark {
        Value::Bool(set) => *set,
        Value::Array(list) => list.iter().any(has_true),
        Value::Object(map) => map.values().any(has_true),
        _ => false,
    }
}

/// The part of a tree of marks that belongs to a key: a mark on the whole is a mark on each part.
pub(super) fn part<'a>(mark: &'a Value, key: &str) -> &'a Value {
    if mark.is_boolean() { mark } else { &mark[key] }
}

/// The same for an item of a list.
pub(super) fn item(mark: &Value, index: usize) -> &Value {
    if mark.is_boolean() { mark } else { &mark[index] }
}

fn replaced(value: &Value, unknown: &Value, sensitive: &Value, secrets: &Secrets) -> Value {
    if sensitive == true && (!value.is_null() || has_true(unknown)) {
        return Value::from(MASK);
    }
    if unknown == true {
        return Value::from(UNKNOWN);
    }
    match value {
        // Before it is quoted: a text that holds JSON would be escaped once more, and the secret in it not be found.
        Value::String(text) if !text.is_empty() => Value::from(secrets.mask(text)),
        Value::Number(number) if secrets.is_secret(&number.to_string()) => Value::from(MASK),
        Value::Object(map) => {
            let later = unknown.as_object().into_iter().flatten();
            let later = later.filter(|(key, mark)| !map.contains_key(*key) && has_true(mark));
            let keys = map.keys().chain(later.map(|(key, _)| key));
            let of = |key: &String| replaced(&value[key], part(unknown, key), part(sensitive, key), secrets);
            Value::Object(keys.map(|key| (key.clone(), of(key))).collect())
        }
        Value::Array(list) => {
            let length = list.len().max(unknown.as_array().map_or(0, Vec::len));
            let of = |index| replaced(&value[index], item(unknown, index), item(sensitive, index), secrets);
            Value::Array((0..length).map(of).collect())
        }
        Value::Null if has_true(unknown) => Value::from(UNKNOWN),
        _ => value.clone(),
    }
}

fn cut(text: String) -> String {
    let length = text.chars().count();
    if length <= LONGEST {
        return text;
    }
    let note = format!("… ({length} characters)");
    let kept: String = text.chars().take(LONGEST - note.chars().count()).collect();
    kept + &note
}
