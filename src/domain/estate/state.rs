//! Where a state lies, from the arguments of a backend or of a read, and when two such places are the same.

use std::collections::BTreeMap;

use super::path::{self, Crossing};
use super::value::{GAP, Value};
use crate::domain::ids::StateKey;
use crate::domain::secret;

mod retired;

/// Arguments by name, evaluated as far as they are known.
pub(super) type Args = BTreeMap<String, Value>;

/// A place of a state: its kind, what contains it, and where within.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// `s3`, …; `cloud` counts as `remote`.
    pub family: String,
    /// Bucket, account, organization; `None` for what is not known.
    pub container: Vec<Option<String>>,
    /// Key, path or name with the workspace in it; unknown parts are `*`.
    pub location: String,
}

/// What one place says of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// Everything is known on both sides, and equal.
    Certain,
    /// What is known is equal.
    Probable,
    /// They differ.
    No,
}

/// Which workspace a place is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workspace<'a> {
    /// This one; `*` is unknown.
    Of(&'a str),
    /// Any but the default: a pattern with `*` for its name.
    Any,
}

impl Place {
    /// The key, when all of it is known.
    pub fn key(&self) -> Option<StateKey> {
        let container: Option<Vec<&str>> = self.container.iter().map(Option::as_deref).collect();
        let container = container.filter(|_| !self.location.contains('*'))?;
        let container: Vec<&str> = container.into_iter().filter(|part| !part.is_empty()).collect();
        let slash = if container.is_empty() { "" } else { "/" };
        let whole = format!("{}:{}{slash}{}", self.family, container.join("/"), self.location);
        Some(StateKey::new(secret::named(&whole)))
    }

    /// Whether a read of `self` finds the state that `owner` writes.
    pub fn matches(&self, owner: &Place) -> Match {
        if self.family != owner.family || self.container.len() != owner.container.len() {
            return Match::No;
        }
        let mut certain = true;
        for (ours, theirs) in self.container.iter().zip(&owner.container) {
            match (ours, theirs) {
                (Some(ours), Some(theirs)) if ours == theirs => {}
                (Some(_), Some(_)) => return Match::No,
                _ => certain = false,
            }
        }
        let (ours, theirs) = (&self.location, &owner.location);
        let fits = match (ours.contains('*'), theirs.contains('*')) {
            (false, false) => ours == theirs,
            (true, false) => path::fits(ours, theirs, Crossing::Segment),
            (false, true) => path::fits(theirs, ours, Crossing::Segment),
            (true, true) => ours == theirs || could_meet(ours, theirs),
        };
        certain &= !ours.contains('*');
        match (fits, certain) {
            (true, true) if owner.location != "*" => Match::Certain,
            (true, _) if self.says_something() && owner.says_something() => Match::Probable,
            _ => Match::No,
        }
    }

    /// Whether the location holds more than words that every state has.
    pub fn says_something(&self) -> bool {
        let rest = ["terraform", "tfstate", "default", "env:", "state", "json"]
            .iter()
            .fold(self.location.clone(), |text, word| text.replace(word, ""));
        rest.chars().any(char::is_alphanumeric)
    }
}

/// Two patterns may name one text when they have as many segments, and each pair fits one way or the other.
fn could_meet(a: &str, b: &str) -> bool {
    a.split('/').count() == b.split('/').count()
        && a.split('/').zip(b.split('/')).all(|(a, b)| {
            let plain = |text: &str| text.replace('*', "");
            path::fits(a, &plain(b), Crossing::Segment) || path::fits(b, &plain(a), Crossing::Segment) || a == b
        })
}

/// The place that a backend of this kind keeps a state at; `None` for a kind that is not known.
pub(super) fn place(kind: &str, args: &Args, workspace: Workspace<'_>, dir: &str) -> Option<Place> {
    let args = Arguments { args, partial: is_partial(kind, args) };
    let default = workspace == Workspace::Of("default");
    let ws = match workspace {
        Workspace::Of(name) => name,
        Workspace::Any => "*",
    };
    let (family, container, location) = match kind {
        "local" => {
            let location = if default {
                args.or("path", "terraform.tfstate")
            } else {
                format!("{}/{ws}/terraform.tfstate", args.or("workspace_dir", "terraform.tfstate.d"))
            };
            // `path.cwd` and `abspath`: where the repository lies is unknown, and it is one and the same.
            let below = location.strip_prefix("*/").filter(|path| path::is_in(path, dir));
            let location = match below {
                Some(path) => path::join(".", path),
                None if location.starts_with('*') => "*".to_owned(),
                None => path::join(dir, &location),
            };
            ("local", Vec::new(), location)
        }
        "s3" => {
            let prefix = args.defaulted("workspace_key_prefix", "env:");
            let key = trimmed(&args.need("key"));
            let location = if default { key } else { trimmed(&format!("{prefix}/{ws}/{key}")) };
            ("s3", vec![args.known("bucket"), endpoint(&args)], location)
        }
        // The name from before workspaces.
        "gcs" if default && args.args.contains_key("path") && !args.args.contains_key("prefix") => {
            ("gcs", vec![args.known("bucket")], trimmed(&args.need("path")))
        }
        "gcs" => {
            let prefix = trimmed(&args.or("prefix", ""));
            ("gcs", vec![args.known("bucket")], trimmed(&format!("{prefix}/{ws}.tfstate")))
        }
        "azurerm" => {
            let suffix = if default { String::new() } else { format!("env:{ws}") };
            let container = vec![args.known("storage_account_name"), args.known("container_name")];
            ("azurerm", container, format!("{}{suffix}", args.need("key")))
        }
        "http" => ("http", Vec::new(), without_userinfo(&args.need("address"))),
        "pg" => {
            let server = args.known("conn_str").map(|text| server_of(&text));
            ("pg", vec![server], format!("{}/{ws}", args.defaulted("schema_name", "terraform_remote_state")))
        }
        "remote" | "cloud" => return Some(remote(&args, ws)),
        "consul" => {
            let suffix = if default { String::new() } else { format!("-env:{ws}") };
            ("consul", vec![args.optional("address")], format!("{}{suffix}", args.need("path")))
        }
        "kubernetes" => {
            let cluster = args.optional("config_context").zip(args.optional("host")).map(|(a, b)| format!("{a}{b}"));
            let container =
                vec![cluster, Some(args.defaulted("namespace", "default")).filter(|name| !name.contains('*'))];
            ("kubernetes", container, format!("tfstate-{ws}-{}", args.need("secret_suffix")))
        }
        "cos" | "oss" => {
            let prefix = trimmed(&args.defaulted("prefix", "env:"));
            let key = args.or("key", "terraform.tfstate");
            let location = if default { format!("{prefix}/{key}") } else { format!("{prefix}/{ws}/{key}") };
            (kind, vec![args.known("bucket")], trimmed(&location))
        }
        "oci" => {
            let key = args.or("key", "terraform.tfstate");
            let prefix = args.defaulted("workspace_key_prefix", "env:");
            let location = if default { key } else { format!("{prefix}/{ws}/{key}") };
            ("oci", vec![args.known("namespace"), args.known("bucket")], trimmed(&location))
        }
        _ => return retired::place(kind, &args, ws),
    };
    Some(Place { family: family.to_owned(), container, location })
}

/// Where S3 is not Amazon's; two ways to write one thing.
fn endpoint(args: &Arguments<'_>) -> Option<String> {
    let new = args.args.get("endpoints").map(|endpoints| endpoints.get("s3"));
    match new {
        None | Some(Value::Missing | Value::Null) => args.optional("endpoint"),
        Some(value) => value.as_known(),
    }
}

/// A place that the settings name, as `KIND:LOCATION`; `{name}` is the directory's own name. What contains it is unknown.
pub(super) fn named(text: &str, dir: &str) -> Option<Place> {
    let (kind, location) = text.split_once(':')?;
    let name = dir.rsplit('/').next().unwrap_or(dir);
    let place = place(kind, &Args::new(), Workspace::Of("default"), dir)?;
    let container = vec![None; place.container.len()];
    Some(Place { family: place.family, container, location: location.replace("{name}", name) })
}

fn remote(args: &Arguments<'_>, ws: &str) -> Place {
    let workspaces = args.args.get("workspaces").cloned().unwrap_or(Value::Missing);
    // A reader in the 0.11 block form, or in JSON, may have a list around it.
    let workspaces = if let Value::List(items) = &workspaces {
        items.first().cloned().unwrap_or(Value::Missing)
    } else {
        workspaces
    };
    let part = |name: &str| match workspaces.get(name) {
        Value::Missing | Value::Null => None,
        value => Some(value.as_partial().map_or_else(|| "*".to_owned(), |text| starred(&text))),
    };
    let location = match (part("name"), part("prefix")) {
        (Some(name), _) => name,
        (None, Some(prefix)) => format!("{prefix}{}", if ws == "default" { "*" } else { ws }),
        // With tags, the workspace's own name is the state's.
        (None, None) => {
            if ws == "default" {
                "*".to_owned()
            } else {
                ws.to_owned()
            }
        }
    };
    let host = args.defaulted("hostname", "app.terraform.io");
    let container = vec![Some(host).filter(|host| !host.contains('*')), args.known("organization")];
    Place { family: "remote".to_owned(), container, location }
}

/// Whether something that the kind needs is not said, so that flags must say it, and may say more.
fn is_partial(kind: &str, args: &Args) -> bool {
    let needed: &[&str] = match kind {
        "s3" => &["bucket", "key"],
        "gcs" | "cos" | "oss" => &["bucket"],
        "azurerm" => &["storage_account_name", "container_name", "key"],
        "http" => &["address"],
        "remote" | "cloud" => &["workspaces"],
        "consul" => &["path"],
        "kubernetes" => &["secret_suffix"],
        "oci" => &["bucket", "namespace"],
        _ => &[],
    };
    needed.iter().any(|name| !args.contains_key(*name))
}

struct Arguments<'a> {
    args: &'a Args,
    partial: bool,
}

impl Arguments<'_> {
    fn partial(&self, name: &str) -> Option<String> {
        match self.args.get(name) {
            None | Some(Value::Null) => None,
            Some(value) => Some(value.as_partial().map_or_else(|| "*".to_owned(), |text| starred(&text))),
        }
    }

    fn need(&self, name: &str) -> String {
        self.partial(name).unwrap_or_else(|| "*".to_owned())
    }

    /// Its default, unless flags may set it.
    fn or(&self, name: &str, default: &str) -> String {
        self.partial(name).unwrap_or_else(|| if self.partial { "*".to_owned() } else { default.to_owned() })
    }

    /// Its default, which flags seldom set.
    fn defaulted(&self, name: &str, default: &str) -> String {
        self.partial(name).unwrap_or_else(|| default.to_owned())
    }

    fn known(&self, name: &str) -> Option<String> {
        self.partial(name).filter(|text| !text.contains('*'))
    }

    /// Empty when it is not there.
    fn optional(&self, name: &str) -> Option<String> {
        match self.partial(name) {
            None => Some(String::new()),
            Some(text) => Some(text).filter(|text| !text.contains('*')),
        }
    }
}

/// Gaps as stars, several side by side as one.
pub(super) fn starred(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            GAP if out.ends_with('*') => {}
            GAP => out.push('*'),
            letter => out.push(letter),
        }
    }
    out
}

fn trimmed(text: &str) -> String {
    text.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

fn without_userinfo(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}/{path}")
        }
        None => address.to_owned(),
    }
}

/// Host, port and database of a connection string; never the password.
fn server_of(conn: &str) -> String {
    if let Some((_, rest)) = conn.split_once("://") {
        let rest = rest.split('?').next().unwrap_or(rest);
        let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:5432") };
        return format!("{host}/{base}");
    }
    let part = |name: &str, default: &str| {
        let found = conn.split_whitespace().find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or(default).to_owned()
    };
    format!("{}:{}/{}", part("host", "localhost"), part("port", "5432"), part("dbname", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(kind: &str, args: &[(&str, &str)], workspace: &str) -> Place {
        let args = args.iter().map(|(name, value)| ((*name).to_owned(), Value::text(*value))).collect();
        place(kind, &args, Workspace::Of(workspace), "live/app").expect("a known kind")
    }

    #[test]
    fn each_backend_has_its_key() {
        for (kind, args, workspace, key) in [
            ("local", vec![], "default", "local:live/app/terraform.tfstate"),
            ("local", vec![("path", "../net/x.tfstate")], "default", "local:live/net/x.tfstate"),
            ("local", vec![("path", "/srv/x.tfstate")], "default", "local:/srv/x.tfstate"),
            ("local", vec![("path", "x.tfstate")], "blue", "local:live/app/terraform.tfstate.d/blue/terraform.tfstate"),
            ("s3", vec![("bucket", "b"), ("key", "a/n.tfstate")], "default", "s3:b/a/n.tfstate"),
            ("s3", vec![("bucket", "b"), ("key", "n")], "blue", "s3:b/env:/blue/n"),
            ("s3", vec![("bucket", "b"), ("key", "n"), ("workspace_key_prefix", "p/q")], "blue", "s3:b/p/q/blue/n"),
            ("gcs", vec![("bucket", "b"), ("prefix", "/p/")], "default", "gcs:b/p/default.tfstate"),
            (
                "azurerm",
                vec![("storage_account_name", "s"), ("container_name", "c"), ("key", "k")],
                "w",
                "azurerm:s/c/kenv:w",
            ),
            ("http", vec![("address", "https://u:p@h/state/net")], "default", "http:https://h/state/net"),
            ("pg", vec![("conn_str", "postgres://u:p@h/db?sslmode=off")], "w", "pg:h:5432/db/terraform_remote_state/w"),
            ("consul", vec![("path", "p")], "w", "consul:p-env:w"),
        ] {
            let place = at(kind, &args, workspace);
            assert_eq!(place.key().map(|key| key.to_string()).as_deref(), Some(key), "{place:?}");
        }
        for (kind, args) in
            [("s3", vec![("bucket", "b")]), ("gcs", vec![]), ("http", vec![]), ("remote", vec![("organization", "o")])]
        {
            assert_eq!(at(kind, &args, "default").key(), None, "{kind}");
        }
        assert!(place("magic", &Args::new(), Workspace::Any, ".").is_none());
    }

    #[test]
    fn a_match_is_certain_only_when_all_is_known() {
        let owner = at("s3", &[("bucket", "b"), ("key", "blue/net.tfstate")], "default");
        let read = |bucket: Option<&str>, location: &str| Place {
            family: "s3".to_owned(),
            container: vec![bucket.map(str::to_owned), Some(String::new())],
            location: location.to_owned(),
        };
        assert_eq!(read(Some("b"), "blue/net.tfstate").matches(&owner), Match::Certain);
        assert_eq!(read(None, "blue/net.tfstate").matches(&owner), Match::Probable);
        assert_eq!(read(Some("b"), "*/net.tfstate").matches(&owner), Match::Probable);
        assert_eq!(read(Some("c"), "blue/net.tfstate").matches(&owner), Match::No);
        assert_eq!(read(None, "*").matches(&owner), Match::No);
        assert_eq!(
            read(None, "*net.tfstate").matches(&at("s3", &[("bucket", "b"), ("key", "x/old-net.tfstate")], "default")),
            Match::No
        );
    }
}
