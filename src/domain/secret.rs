//! Secrets by value: collected from a plan's marks and the environment, and masked in every text that leaves. It never
//! prints one.

/// The values to mask.
#[derive(Clone, Default)]
pub struct Secrets {}

impl Secrets {
    /// Every clear value under a sensitive mark of `show -json` (changes, outputs, state, variables).
    pub fn of_plan(json: &[u8]) -> Self {
        let _ = json;
        unimplemented!()
    }

    /// Adds a value (environment variables that the settings pass, tokens); values under 4 characters are not masked.
    pub fn add(&mut self, value: &str) {
        let _ = value;
        unimplemented!()
    }

    /// The text with each value, also base64, URL-encoded and JSON-escaped, replaced by `(sensitive)`.
    pub fn mask(&self, text: &str) -> String {
        let _ = text;
        unimplemented!()
    }
}
