//! JSON with its numbers as they were written: two numbers that a float cannot tell apart must not share a digest.
//! It never rounds, and it keeps the keys of objects sorted.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A JSON value whose numbers are text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::domain) enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a whole document.
    pub(in crate::domain) fn parse(json: &[u8]) -> Result<Self, String> {
        let raw: &RawValue = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        of_raw(raw).map_err(|error| error.to_string())
    }

    /// The field of an object.
    pub(in crate::domain) fn get(&self, field: &str) -> Option<&Json> {
        let entries = self.entries();
        let index = entries.binary_search_by(|(key, _)| key.as_str().cmp(field)).ok()?;
        Some(&entries[index].1)
    }

    /// The items of a list, nothing of anything else.
    pub(in crate::domain) fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }

    /// The fields of an object by key, nothing of anything else.
    pub(in crate::domain) fn entries(&self) -> &[(String, Json)] {
        match self {
            Json::Object(entries) => entries,
            _ => &[],
        }
    }
}

/// Goes down level by level: the first byte of a raw value tells what it is.
fn of_raw(raw: &RawValue) -> Result<Json, serde_json::Error> {
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            let read = fields.into_iter().map(|(key, value)| Ok((key, of_raw(value)?)));
            Json::Object(read.collect::<Result<_, serde_json::Error>>()?)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            Json::List(items.into_iter().map(of_raw).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Json::Text(serde_json::from_str(text)?),
        Some(b't') => Json::Bool(true),
        Some(b'f') => Json::Bool(false),
        Some(b'n') => Json::Null,
        _ => Json::Number(text.to_owned()),
    })
}
