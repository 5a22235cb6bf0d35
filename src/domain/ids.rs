//! The names of things: ids are types, so that a root is never passed where a repo is meant.
//! Nothing here knows what the ids stand for.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}

text_id!(
    /// A commit or tree id of git, 40 hex digits.
    Sha
);
text_id!(
    /// A user's login on the forge; compared without case by [`Login::same`].
    Login
);
text_id!(
    /// One job: one phase of one run. Also the key that makes starting it twice harmless.
    JobId
);
text_id!(
    /// One rollout, `<repo id>-<pull>-<n>`: what one head of a pull does.
    RolloutId
);
text_id!(
    /// A state's identity across renames of directories, e.g. `s3:bucket/key#default`; locks are held per state.
    StateKey
);

impl Sha {
    /// The first seven digits, as people read them.
    pub fn short(&self) -> &str {
        self.0.get(..7).unwrap_or(&self.0)
    }
}

impl Login {
    /// Logins are the same whatever their case.
    pub fn same(&self, other: &Login) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

/// A repository: the forge's stable id, which survives renames, and the name as last seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RepoKey {
    /// The name of the forge in the server's settings, `github` by default.
    pub forge: String,
    /// The forge's own numeric id.
    pub id: u64,
}

impl fmt::Display for RepoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.forge, self.id)
    }
}

/// A pull request of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PullKey {
    /// Whose pull.
    pub repo: RepoKey,
    /// Its number on the forge.
    pub number: u64,
}

impl fmt::Display for PullKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.repo, self.number)
    }
}

impl std::str::FromStr for PullKey {
    type Err = String;

    /// Reads what `Display` writes: `forge:id#number`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || format!("`{text}` is no pull key (forge:id#number)");
        let (repo, number) = text.rsplit_once('#').ok_or_else(bad)?;
        let (forge, id) = repo.rsplit_once(':').ok_or_else(bad)?;
        Ok(Self {
            repo: RepoKey { forge: forge.to_owned(), id: id.parse().map_err(|_| bad())? },
            number: number.parse().map_err(|_| bad())?,
        })
    }
}

/// A root: a directory with a Terraform root module, and one workspace.
///
/// Written `dir` for the workspace `default`, else `dir:workspace`; the repository's top is `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct RootKey {
    dir: String,
    workspace: String,
}

impl RootKey {
    /// The root of `dir` in the workspace `default`.
    pub fn new(dir: impl Into<String>) -> Self {
        Self::in_workspace(dir, "default")
    }

    /// The root of `dir` in `workspace`. An empty directory is the top, `.`.
    pub fn in_workspace(dir: impl Into<String>, workspace: impl Into<String>) -> Self {
        let dir = dir.into();
        let dir = if dir.is_empty() { ".".to_owned() } else { dir };
        Self { dir, workspace: workspace.into() }
    }

    /// The directory, `.` for the top of the repository.
    pub fn dir(&self) -> &str {
        &self.dir
    }

    /// The workspace, `default` unless the configuration names others.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }
}

impl fmt::Display for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.workspace == "default" { f.write_str(&self.dir) } else { write!(f, "{}:{}", self.dir, self.workspace) }
    }
}

impl From<RootKey> for String {
    fn from(root: RootKey) -> Self {
        root.to_string()
    }
}

impl From<String> for RootKey {
    fn from(text: String) -> Self {
        match text.rsplit_once(':') {
            Some((dir, workspace)) if !workspace.is_empty() => Self::in_workspace(dir, workspace),
            _ => Self::new(text),
        }
    }
}

/// A plan's digest or a wave's set digest: `tg1:` and 64 hex digits. People see and type the first 12.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Wraps 64 hex digits, made by [`crate::domain::digest`].
    pub fn from_hex(hex: &str) -> Self {
        Self(format!("tg1:{hex}"))
    }

    /// The whole text, `tg1:<64 hex>`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The twelve digits that people see and type.
    pub fn short(&self) -> &str {
        let hex = self.0.strip_prefix("tg1:").unwrap_or(&self.0);
        hex.get(..12).unwrap_or(hex)
    }

    /// Whether `typed` (at least 12 digits, with or without `tg1:`) names this digest.
    pub fn is_named_by(&self, typed: &str) -> bool {
        let typed = typed.strip_prefix("tg1:").unwrap_or(typed).to_ascii_lowercase();
        let hex = self.0.strip_prefix("tg1:").unwrap_or(&self.0);
        typed.len() >= 12 && hex.starts_with(&typed)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

/// Milliseconds since 1970, UTC. Always passed in; only the clock makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This many milliseconds later.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this, never negative.
    pub fn since_ms(self, earlier: Timestamp) -> i64 {
        (self.0 - earlier.0).max(0)
    }

    /// `09:12`, in UTC.
    pub fn hour_minute(self) -> String {
        let minutes = self.0.div_euclid(60_000);
        format!("{:02}:{:02}", minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_what_they_write() {
        let key: PullKey = "github:12#7".parse().expect("a key");
        assert_eq!(key.to_string(), "github:12#7");
        assert!("github:12".parse::<PullKey>().is_err());
        for text in ["a/b", "a/b:blue", "."] {
            assert_eq!(RootKey::from(text.to_owned()).to_string(), text);
        }
    }

    #[test]
    fn a_digest_is_named_by_its_first_twelve_digits_and_by_no_fewer() {
        let digest = Digest::from_hex("4be01c77d2aa00");
        assert!(digest.is_named_by("4BE01C77D2AA"));
        assert!(digest.is_named_by("tg1:4be01c77d2aa00"));
        assert!(!digest.is_named_by("4be01c77d2a"));
        assert!(!digest.is_named_by("4be01c77d2ab"));
    }
}
