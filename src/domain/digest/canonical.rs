//! The bytes that a digest is taken over: each field with its kind and length in front, so that no two different
//! plans have the same bytes. It never hashes.

use super::exact::Json;

/// A canonical form that grows field by field.
pub(super) struct Canonical {
    bytes: Vec<u8>,
}

impl Canonical {
    /// An empty form whose first field says what it is and in which version.
    pub(super) fn new(version: &str) -> Self {
        let mut form = Self { bytes: Vec::new() };
        form.text(version);
        form
    }

    /// What was put in so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A text.
    pub(super) fn text(&mut self, text: &str) {
        self.field(b's', text.as_bytes());
    }

    /// A form of its own.
    pub(super) fn blob(&mut self, bytes: &[u8]) {
        self.field(b'b', bytes);
    }

    /// How many fields follow.
    pub(super) fn count(&mut self, count: usize) {
        self.header(b'c', count);
    }

    /// A value, or that there is none.
    pub(super) fn value(&mut self, value: Option<&Json>) {
        match value {
            None => self.bytes.push(b'-'),
            Some(Json::Null) => self.bytes.push(b'0'),
            Some(Json::Bool(true)) => self.bytes.push(b't'),
            Some(Json::Bool(false)) => self.bytes.push(b'f'),
            Some(Json::Number(text)) => self.field(b'n', text.as_bytes()),
            Some(Json::Text(text)) => self.text(text),
            Some(Json::List(items)) => {
                self.header(b'l', items.len());
                items.iter().for_each(|item| self.value(Some(item)));
            }
            Some(Json::Object(entries)) => {
                self.header(b'o', entries.len());
                for (key, value) in entries {
                    self.text(key);
                    self.value(Some(value));
                }
            }
        }
    }

    fn field(&mut self, kind: u8, bytes: &[u8]) {
        self.header(kind, bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    fn header(&mut self, kind: u8, length: usize) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
    }
}
