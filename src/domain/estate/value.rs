//! A value as far as it is known without running anything. What is not known is marked and never guessed.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// Stands in a text for a part that is not known.
pub(super) const GAP: char = '\0';

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number, as text.
    Number(String),
    /// A text; with [`GAP`]s it is known only in part.
    Text(String),
    /// A list, set or tuple.
    List(Vec<Value>),
    /// A map or object.
    Object(BTreeMap<String, Value>),
    /// What the tool would refuse: an attribute that is not there.
    Missing,
    /// Not known.
    Unknown,
}

impl Value {
    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(text.into())
    }

    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => Value::Number(number.to_string()),
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(Value::from_json).collect()),
            Json::Object(object) => {
                Value::Object(object.iter().map(|(key, value)| (key.clone(), Value::from_json(value))).collect())
            }
        }
    }

    /// Its text with a [`GAP`] for each unknown part; `None` for what is no text.
    pub fn as_partial(&self) -> Option<String> {
        match self {
            Value::Text(text) | Value::Number(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Unknown => Some(GAP.to_string()),
            _ => None,
        }
    }

    /// Its text, when all of it is known.
    pub fn as_known(&self) -> Option<String> {
        self.as_partial().filter(|text| !text.contains(GAP))
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Whether every part of it is known.
    pub fn is_known(&self) -> bool {
        match self {
            Value::Unknown | Value::Missing => false,
            Value::Text(text) => !text.contains(GAP),
            Value::List(items) => items.iter().all(Value::is_known),
            Value::Object(entries) => entries.values().all(Value::is_known),
            _ => true,
        }
    }

    /// How much it holds, for limits.
    pub fn size(&self) -> usize {
        match self {
            Value::Text(text) | Value::Number(text) => 1 + text.len() / 8,
            Value::List(items) => 1 + items.iter().map(Value::size).sum::<usize>(),
            Value::Object(entries) => 1 + entries.values().map(Value::size).sum::<usize>(),
            _ => 1,
        }
    }

    /// `.key` or `[key]`.
    pub fn get(&self, key: &str) -> Value {
        match self {
            Value::Object(entries) => entries.get(key).cloned().unwrap_or(Value::Missing),
            Value::List(items) => match key.parse::<usize>() {
                Ok(at) => items.get(at).cloned().unwrap_or(Value::Missing),
                Err(_) => Value::Missing,
            },
            Value::Unknown => Value::Unknown,
            _ => Value::Missing,
        }
    }

    /// Key and value of what a `for_each` or `for` runs over; `None` while it is unknown.
    pub fn entries(&self) -> Option<Vec<(Value, Value)>> {
        match self {
            Value::List(items) => {
                Some(items.iter().enumerate().map(|(at, item)| (Value::Number(at.to_string()), item.clone())).collect())
            }
            Value::Object(entries) => {
                Some(entries.iter().map(|(key, value)| (Value::text(key), value.clone())).collect())
            }
            _ => None,
        }
    }
}
