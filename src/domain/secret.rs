//! Secrets by value: collected from a plan's marks and the environment, and masked in every text that leaves. It never
//! prints one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

mod forms;
mod marks;

/// What stands where a secret stood.
pub const MASK: &str = "(sensitive)";

/// Shorter values are words of every text: masking them would hide everything and protect nothing.
const SHORTEST: usize = 4;

/// Lines of a secret of many lines are masked alone from this length on, because logs leave line by line.
const SHORTEST_LINE: usize = 8;

/// The values to mask.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeSet<String>,
    /// Built at the first use and thrown away when a value comes in.
    search: OnceLock<Option<AhoCorasick>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} values)", self.values.len())
    }
}

impl Secrets {
    /// Every clear value under a sensitive mark of `show -json` (changes, outputs, state, variables).
    pub fn of_plan(json: &[u8]) -> Self {
        match serde_json::from_slice(json) {
            Ok(plan) => Self::of_value(&plan),
            Err(_) => Self::default(),
        }
    }

    /// The same of a plan that is parsed already.
    pub(crate) fn of_value(plan: &Value) -> Self {
        let mut secrets = Self::default();
        marks::each_marked(plan, &mut |value| secrets.add(value));
        secrets
    }

    /// Adds a value (environment variables that the settings pass, tokens); values under 4 characters are not masked.
    pub fn add(&mut self, value: &str) {
        if is_too_common(value) {
            return;
        }
        if self.values.insert(value.to_owned()) {
            self.search = OnceLock::new();
        }
        if value.contains('\n') {
            let lines = value.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
            self.values.extend(lines.map(str::to_owned));
        }
    }

    /// Takes the values of others as well.
    pub fn extend(&mut self, others: &Secrets) {
        if !others.values.is_empty() {
            self.values.extend(others.values.iter().cloned());
            self.search = OnceLock::new();
        }
    }

    /// Whether the whole text is one of the values.
    pub fn is_secret(&self, text: &str) -> bool {
        self.values.contains(text)
    }

    /// The text with each value, also base64, URL-encoded and JSON-escaped, replaced by `(sensitive)`.
    pub fn mask(&self, text: &str) -> String {
        let Some(search) = self.search.get_or_init(|| build(&self.values)) else {
            return text.to_owned();
        };
        let mut masked = String::with_capacity(text.len());
        let mut from = 0;
        for found in search.find_iter(text) {
            masked.push_str(&text[from..found.start()]);
            masked.push_str(MASK);
            from = found.end();
        }
        masked.push_str(&text[from..]);
        masked
    }
}

/// Booleans written as text are in every plan; so are the shortest words.
fn is_too_common(value: &str) -> bool {
    value.chars().count() < SHORTEST || matches!(value, "true" | "false" | "null") || value.trim().is_empty()
}

fn build(values: &BTreeSet<String>) -> Option<AhoCorasick> {
    if values.is_empty() {
        return None;
    }
    let forms: BTreeSet<String> = values.iter().flat_map(|value| forms::of(value)).collect();
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use serde_json::json;

    fn of(values: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        values.iter().for_each(|value| secrets.add(value));
        secrets
    }

    #[test]
    fn every_form_of_a_value_is_masked() {
        let secret = "p\"ä s/w+0<rd";
        let secrets = of(&[secret]);
        let base64 = base64::engine::general_purpose::STANDARD;
        let url_safe = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        for text in [
            secret.to_owned(),
            base64.encode(secret),
            url_safe.encode(secret),
            serde_json::to_string(secret).unwrap().trim_matches('"').to_owned(),
            "p\\\"ä s/w+0\\u003crd".to_owned(),
            "p%22%C3%A4%20s%2Fw%2B0%3Crd".to_owned(),
            "p%22%c3%a4%20s%2fw%2b0%3crd".to_owned(),
            "p%22%C3%A4+s%2Fw%2B0%3Crd".to_owned(),
        ] {
            assert_eq!(secrets.mask(&format!("a {text} b")), "a (sensitive) b", "{text}");
        }
        for before in ["x", "xy", "xyz"] {
            let text = base64.encode(format!("{before}{secret}tail"));
            assert!(secrets.mask(&text).contains(MASK), "{before}");
        }
    }

    #[test]
    fn the_longest_value_wins_and_the_common_stay() {
        let secrets = of(&["hunter", "hunter-two", "abc", "true", "    "]);
        assert_eq!(secrets.mask("hunter-two hunter abc true"), "(sensitive) (sensitive) abc true");
        assert_eq!(Secrets::default().mask("as it is"), "as it is");
        assert!(!format!("{secrets:?}").contains("hunter"));
    }

    #[test]
    fn lines_of_a_long_secret_are_masked_alone() {
        let secrets = of(&["-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----\n"]);
        assert_eq!(secrets.mask("log: MIIEpAIBAAKCAQEA"), "log: (sensitive)");
    }

    #[test]
    fn a_value_added_after_a_mask_is_masked() {
        let mut secrets = of(&["first-one"]);
        assert_eq!(secrets.mask("second-one"), "second-one");
        secrets.add("second-one");
        assert_eq!(secrets.mask("second-one"), MASK);
    }

    #[test]
    fn every_mark_of_a_plan_is_collected() {
        let plan = json!({
            "format_version": "1.2",
            "variables": { "pw": { "value": "secret-variable" }, "open": { "value": "plain-variable" } },
            "configuration": { "root_module": {
                "variables": { "pw": { "sensitive": true, "default": "secret-default" }, "open": {} },
                "module_calls": { "m": {
                    "expressions": { "key": { "constant_value": "secret-argument" } },
                    "module": { "variables": { "key": { "sensitive": true } } }
                } }
            } },
            "resource_changes": [ { "address": "a.b", "change": {
                "actions": ["update"],
                "before": { "pw": "secret-before", "list": ["plain-item", "secret-item"] },
                "after": { "pw": "secret-after", "deep": { "x": ["secret-deep"] } },
                "before_sensitive": { "pw": true, "list": [false, true] },
                "after_sensitive": { "pw": true, "deep": true }
            } } ],
            "output_changes": { "o": { "before": "secret-output", "after": null, "before_sensitive": true } },
            "prior_state": { "values": {
                "outputs": { "p": { "sensitive": true, "value": "secret-prior" } },
                "root_module": { "child_modules": [ { "resources": [
                    { "values": { "token": "secret-state" }, "sensitive_values": { "token": true } }
                ] } ] }
            } },
            "planned_values": { "outputs": { "q": { "sensitive": true, "value": { "n": "secret-planned" } } } }
        });
        let secrets = Secrets::of_plan(plan.to_string().as_bytes());
        for name in "variable default argument before item after deep output prior state planned".split(' ') {
            assert!(secrets.is_secret(&format!("secret-{name}")), "{name}");
        }
        assert_eq!(secrets.mask("plain-variable plain-item"), "plain-variable plain-item");
    }
}
