//! Versions and constraints as Terraform and OpenTofu write them (`1.5.7`, `~> 1.5`, `>= 1.4, < 2`). It chooses nothing
//! and knows no installed program.

use std::cmp::Ordering;
use std::fmt;

/// A version: numbers, and for a pre-release what follows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    /// `rc1` of `1.6.0-rc1`; empty for a release.
    pre: String,
}

impl Version {
    /// Reads `1.5.7`, `v1.5.7`, `1.5`, `1.6.0-rc1`; build metadata after `+` says nothing.
    pub fn parse(text: &str) -> Option<Self> {
        parts(text).map(|(version, _)| version)
    }
}

/// A version and how many numbers were written, which `~>` asks.
fn parts(text: &str) -> Option<(Version, usize)> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let text = text.split_once('+').map_or(text, |(version, _)| version);
    let (numbers, pre) = text.split_once('-').map_or((text, ""), |(numbers, pre)| (numbers, pre));
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    if !pre.bytes().all(is_word) || (pre.is_empty() && text.ends_with('-')) {
        return None;
    }
    let mut found = [0; 3];
    let mut count = 0;
    for part in numbers.split('.') {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *found.get_mut(count)? = digits.then(|| part.parse().ok()).flatten()?;
        count += 1;
    }
    Some((Version { numbers: found, pre: pre.to_owned() }, count))
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let pre = match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            // A release comes after its own candidates.
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => by_identifiers(&self.pre, &other.pre),
        };
        self.numbers.cmp(&other.numbers).then(pre)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Pre-releases by their parts: numbers by value and before words, words by letters.
fn by_identifiers(a: &str, b: &str) -> Ordering {
    let key = |part: &str| (part.parse::<u64>().map_or((1, 0), |number| (0, number)), part.to_owned());
    a.split('.').map(key).cmp(b.split('.').map(key))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if self.pre.is_empty() { Ok(()) } else { write!(f, "-{}", self.pre) }
    }
}

/// Conditions that a version must all meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    conditions: Vec<(Operator, Version)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exactly,
    Not,
    Above,
    AtLeast,
    Below,
    AtMost,
    /// `~>` with so many numbers written: only the last of them may grow.
    Within(usize),
}

/// Longer ones first, so that `>=` is not read as `>`.
const OPERATORS: [(&str, Operator); 7] = [
    ("~>", Operator::Within(0)),
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("!=", Operator::Not),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("=", Operator::Exactly),
];

impl Constraint {
    /// Reads conditions separated by commas; a bare version is exactly that version.
    pub fn parse(text: &str) -> Option<Self> {
        let conditions = text.split(',').map(condition).collect::<Option<Vec<_>>>()?;
        Some(Self { conditions })
    }

    /// The one version that it names, when it names one.
    pub fn exactly(&self) -> Option<&Version> {
        match self.conditions.as_slice() {
            [(Operator::Exactly, version)] => Some(version),
            _ => None,
        }
    }

    /// Whether a version meets them all. A pre-release is met only where it is named, as the tools themselves have it.
    pub fn fits(&self, version: &Version) -> bool {
        let named = |wanted: &Version| wanted.numbers == version.numbers && !wanted.pre.is_empty();
        let allowed = version.pre.is_empty() || self.conditions.iter().any(|(_, wanted)| named(wanted));
        allowed && self.conditions.iter().all(|(operator, wanted)| meets(*operator, wanted, version))
    }
}

fn condition(text: &str) -> Option<(Operator, Version)> {
    let text = text.trim();
    let found = OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)));
    let (operator, version) = found.unwrap_or((Operator::Exactly, text));
    let (version, count) = parts(version)?;
    let operator = if matches!(operator, Operator::Within(_)) { Operator::Within(count) } else { operator };
    Some((operator, version))
}

fn meets(operator: Operator, wanted: &Version, version: &Version) -> bool {
    match operator {
        Operator::Exactly => version == wanted,
        Operator::Not => version != wanted,
        Operator::Above => version > wanted,
        Operator::AtLeast => version >= wanted,
        Operator::Below => version < wanted,
        Operator::AtMost => version <= wanted,
        Operator::Within(count) => {
            let fixed = count.saturating_sub(1);
            version >= wanted && version.numbers[..fixed] == wanted.numbers[..fixed]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_mean_what_they_mean_to_the_tools() {
        for (constraint, fitting, others) in [
            ("1.5.7", "1.5.7 v1.5.7", "1.5.8 1.5.7-rc1 1.5"),
            ("= 1.5", "1.5.0", "1.5.1"),
            ("!= 1.5.7", "1.5.6 2.0.0", "1.5.7"),
            ("~> 1.5", "1.5.0 1.9.3", "1.4.9 2.0.0 1.6.0-rc1"),
            ("~> 1.5.2", "1.5.2 1.5.9", "1.5.1 1.6.0"),
            ("~> 1", "1.0.0 2.3.4", "0.9.0"),
            (">= 1.4, < 2", "1.4.0 1.99.0", "1.3.9 2.0.0 2.1.0"),
            (">1.4,<=1.6.1", "1.4.1 1.6.1", "1.4.0 1.6.2"),
            (">= 1.6.0-rc1", "1.6.0-rc1 1.6.0-rc2 1.6.0 1.7.0", "1.6.0-beta2 1.7.0-rc1"),
            ("1.12.6+build", "1.12.6", "1.12.7"),
        ] {
            let read = Constraint::parse(constraint).unwrap();
            for (list, expected) in [(fitting, true), (others, false)] {
                for version in list.split(' ') {
                    let parsed = Version::parse(version).unwrap();
                    assert_eq!(read.fits(&parsed), expected, "{version} in {constraint}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_version_is_not_guessed() {
        for text in
            ["", "latest", "1.x", "1.2.3.4", "1..2", "1.2-", "one", ">= ", "1.2,", "=> 1.2", "99999999999999999999"]
        {
            assert_eq!(Constraint::parse(text), None, "{text}");
        }
    }

    #[test]
    fn versions_have_an_order() {
        let written =
            ["0.9.9", "1.5.0-alpha", "1.5.0-beta.2", "1.5.0-beta.10", "1.5.0-rc1", "1.5.0", "1.5.10", "1.12.0"];
        let versions: Vec<Version> = written.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(versions.is_sorted(), "{versions:?}");
        assert!(versions.iter().zip(written).all(|(version, text)| version.to_string() == text));
    }
}
