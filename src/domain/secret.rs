//! Secrets by value: collected from a plan's marks and the environment, and masked in every text that leaves. It never
//! prints one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;

use serde_json::Value;

mod address;
mod declared;
mod forms;
mod marks;
mod search;
mod shape;

use search::Search;

pub use declared::Declared;

/// What stands where a secret stood.
pub const MASK: &str = "(sensitive)";

/// Shorter values are words of every text: masking them would hide everything and protect nothing.
const SHORTEST: usize = 4;

/// Lines of a secret of many lines are masked alone from this length on, because logs leave line by line.
const SHORTEST_LINE: usize = 8;

/// A number of fewer digits turns up by chance: in ports, counts and times.
const SHORTEST_NUMBER: usize = 6;

/// A value of another root is masked from this length on: what is a secret there may be a plain word here.
const SHORTEST_ABROAD: usize = 8;

/// Words that stand in every text of the tool. One that is a secret is masked where a mark says so, and nowhere else.
const COMMON: [&str; 24] = [
    "true",
    "false",
    "null",
    "none",
    "default",
    "data",
    "module",
    "resource",
    "variable",
    "output",
    "terraform",
    "tofu",
    "create",
    "update",
    "delete",
    "replace",
    "error",
    "warning",
    "plan",
    "apply",
    "input",
    "value",
    "name",
    "main",
];

/// The text without what is a credential by its place or shape, where no value is known: an answer of a forge, the last words of
/// a program.
pub fn shapeless(text: &str) -> String {
    shape::mask(&address::mask(text)).into_owned()
}

/// The name of a state without the credentials that its address may hold; names that differ stay different.
pub fn named(address: &str) -> String {
    address::named(address)
}

/// The values to mask.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeSet<String>,
    /// Built at the first use and thrown away when a value comes in.
    search: OnceLock<Option<Search>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} values)", self.values.len())
    }
}

impl Secrets {
    /// Every clear value under a sensitive mark of `show -json` (changes, outputs, state, variables).
    pub fn of_plan(json: &[u8]) -> Self {
        let mut secrets = Self::default();
        secrets.add_plan(json, &Declared::default());
        secrets
    }

    /// Adds a value (environment variables that the settings pass, tokens); values under 4 characters are not masked.
    pub fn add(&mut self, value: &str) {
        if is_too_common(value) {
            return;
        }
        self.search = OnceLock::new();
        self.values.insert(value.to_owned());
        // A file's last line break is part of the value, and rarely of the text that quotes it.
        let bare = value.trim();
        if !is_too_common(bare) {
            self.values.insert(bare.to_owned());
        }
        if value.contains('\n') {
            let lines = value.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
            self.values.extend(lines.map(str::to_owned));
        }
    }

    /// Adds every text and every long number in a value.
    pub fn add_all(&mut self, value: &Value) {
        marks::each_text(value, &mut |text| self.add(text));
    }

    /// Adds those of a plan: what it marks, and what it reads from states whose owners call it sensitive.
    pub fn add_plan(&mut self, json: &[u8], declared: &Declared) {
        let Ok(plan) = serde_json::from_slice(json) else { return };
        marks::each_marked(&plan, &mut |value| self.add(value));
        marks::each_read(&plan, &|name| declared.has_output(name), &mut |value| self.add(value));
    }

    /// Adds those of another.
    pub fn extend(&mut self, other: &Self) {
        self.search = OnceLock::new();
        self.values.extend(other.values.iter().cloned());
    }

    /// Adds those of another root.
    pub fn extend_from_abroad(&mut self, other: &Self) {
        self.search = OnceLock::new();
        let long = other.values.iter().filter(|value| value.chars().count() >= SHORTEST_ABROAD);
        self.values.extend(long.cloned());
    }

    /// The values in clear, to be sealed and never kept otherwise.
    pub fn to_bytes(&self) -> Vec<u8> {
        Value::from_iter(self.values.iter().map(String::as_str)).to_string().into_bytes()
    }

    /// Reads what [`Secrets::to_bytes`] wrote; anything else holds none.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut secrets = Self::default();
        secrets.add_all(&serde_json::from_slice(bytes).unwrap_or_default());
        secrets
    }

    /// Whether the whole text is one of the values.
    pub fn is_secret(&self, text: &str) -> bool {
        self.values.contains(text)
    }

    /// The text with each value, also base64, hex, URL-encoded and JSON-escaped, replaced by `(sensitive)`.
    pub fn mask(&self, text: &str) -> String {
        match self.search.get_or_init(|| Search::of(&self.values)) {
            Some(search) => shapeless(&search.mask(text)),
            None => shapeless(text),
        }
    }
}

/// Booleans written as text are in every plan; so are the shortest words.
fn is_too_common(value: &str) -> bool {
    let number = value.bytes().all(|byte| byte.is_ascii_digit());
    let shortest = if number { SHORTEST_NUMBER } else { SHORTEST };
    value.chars().count() < shortest || COMMON.contains(&value) || value.trim().is_empty()
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
            hex::encode(secret),
            hex::encode_upper(secret),
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
    fn values_that_share_letters_leave_no_rest() {
        let secrets = of(&["user:hunter", "hunter2secret"]);
        assert_eq!(secrets.mask("is user:hunter2secret."), "is (sensitive).");
        assert_eq!(of(&["aaaa", "bbbb"]).mask("aaaabbbb aaaaaa"), "(sensitive)(sensitive) (sensitive)");
    }

    #[test]
    fn a_value_that_was_wrapped_is_one_value() {
        let secrets = of(&["correct horse battery staple"]);
        for text in ["correct horse\nbattery staple", "correct\n\u{2502} horse battery\n\u{2502}   staple"] {
            assert_eq!(secrets.mask(&format!("is {text}.")), "is (sensitive).");
        }
        assert_eq!(secrets.mask("correct\nhorse"), "correct\nhorse");
    }

    #[test]
    fn lines_of_encoded_text_show_no_part_of_a_long_secret() {
        let secret = "A key of many letters, long enough to be broken into several lines of base64: 0123456789 and on, \
                      and so forth, until it ends here.";
        let secrets = of(&[secret]);
        for before in ["", "x", "xy", "PASSWORD=", "{\"auth\": \""] {
            let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{before}{secret}\n"));
            for width in [60, 64, 76] {
                for line in encoded.as_bytes().chunks(width).map(String::from_utf8_lossy) {
                    let shown = secrets.mask(&line);
                    let rest = shown.replace(MASK, "");
                    assert!(rest.len() < 23 || line.len() < 23, "{before} {width}: {shown}");
                }
            }
        }
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
    fn words_of_every_text_and_short_numbers_are_masked_only_where_marked() {
        let mut secrets = of(&["default", "5432", "48151623"]);
        secrets.add_all(&json!({ "pin": 12_345_678, "port": 443, "flag": true }));
        let text = "default 5432 48151623 12345678 443 true";
        assert_eq!(secrets.mask(text), "default 5432 (sensitive) (sensitive) 443 true");
    }

    #[test]
    fn values_travel_and_short_ones_stay_at_home() {
        let secrets = of(&["a \"quoted\" one", "shorty"]);
        let read = Secrets::from_bytes(&secrets.to_bytes());
        assert!(read.is_secret("shorty") && read.is_secret("a \"quoted\" one"));
        let mut abroad = Secrets::default();
        abroad.extend_from_abroad(&read);
        assert!(!abroad.is_secret("shorty") && abroad.is_secret("a \"quoted\" one"));
        assert_eq!(of(&["hunter2\n"]).mask("is hunter2!"), "is (sensitive)!");
    }

    #[test]
    fn a_mark_on_one_side_marks_the_other() {
        let change = json!({ "before": { "a": "was-plain-1" }, "after": { "a": "is-secret-1" }, "after_sensitive": { "a": true } });
        let plan = json!({ "format_version": "1.2", "resource_changes": [{ "address": "x.y", "change": change }] });
        assert!(Secrets::of_plan(plan.to_string().as_bytes()).is_secret("was-plain-1"));
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
