//! Provider packages as a lock file names them, and the hash that says what is in one. Pure: it reads no file and trusts no
//! name that could leave a folder.

use std::collections::BTreeSet;

use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Body};
use sha2::{Digest, Sha256};

/// What the file is called that settles providers.
pub const LOCK_FILE: &str = ".terraform.lock.hcl";

/// A provider that a lock file settles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    /// `registry.terraform.io/hashicorp/aws`
    pub source: String,
    /// `6.2.0`
    pub version: String,
    /// What it may be on which platform: `h1:…` of its content, `zh:…` of its archive.
    pub sums: BTreeSet<String>,
}

/// The providers of a lock file, by source. What cannot be read, or is no plain name, is left out: it is then fetched as if it
/// were not locked.
pub fn locked(lock_file: &str) -> Vec<Locked> {
    let Ok(body) = lock_file.parse::<Body>() else { return Vec::new() };
    let mut all: Vec<Locked> =
        body.blocks().filter(|block| block.ident.as_str() == "provider").filter_map(of_block).collect();
    all.sort_by(|a, b| a.source.cmp(&b.source));
    all.dedup_by(|a, b| a.source == b.source);
    all
}

fn of_block(block: &Block) -> Option<Locked> {
    let [label] = block.labels.as_slice() else { return None };
    let source = label.as_str().to_owned();
    let version = block.body.get_attribute("version")?.value.as_str()?.to_owned();
    if source.split('/').count() != 3 || !source.split('/').all(is_plain) || !is_plain(&version) {
        return None;
    }
    let hashes = block.body.get_attribute("hashes")?.value.as_array()?;
    let sums = hashes.iter().filter_map(Expression::as_str).filter(|sum| is_sum(sum));
    Some(Locked { source, version, sums: sums.map(str::to_owned).collect() })
}

/// Whether a part of an address is a plain name of a folder.
fn is_plain(part: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    !part.is_empty() && part.len() <= 200 && !part.starts_with('.') && part.chars().all(fits)
}

/// The sum of a package: over the SHA-256 and the path, with `/`, of each of its files.
pub fn sum(files: &[(String, [u8; 32])]) -> String {
    let mut files: Vec<&(String, [u8; 32])> = files.iter().collect();
    files.sort();
    let mut all = Sha256::new();
    for (path, file) in files {
        all.update(format!("{}  {path}\n", hex::encode(file)));
    }
    format!("h1:{}", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, all.finalize()))
}

fn is_sum(text: &str) -> bool {
    let archive = |sum: &str| sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    folder_of(text).is_some() || text.strip_prefix("zh:").is_some_and(archive)
}

impl Locked {
    /// The name of a folder or file that stands for just these sums.
    pub fn fingerprint(&self) -> String {
        let sums: Vec<&str> = self.sums.iter().map(String::as_str).collect();
        hex::encode(Sha256::digest(sums.join("\n")))
    }

    /// A lock file with this provider alone.
    pub fn lock_file(&self) -> String {
        let sums: String = self.sums.iter().map(|sum| format!("    {},\n", quoted(sum))).collect();
        let (source, version) = (quoted(&self.source), quoted(&self.version));
        format!("provider {source} {{\n  version = {version}\n  hashes = [\n{sums}  ]\n}}\n")
    }
}

/// A configuration that needs this one package and nothing else.
pub fn only(locked: &Locked) -> String {
    format!(
        "terraform {{\n  required_providers {{\n    it = {{ source = {}, version = {} }}\n  }}\n}}\n",
        quoted(&locked.source),
        quoted(&format!("= {}", locked.version))
    )
}

/// The lock file with these sums, each of a provider's source, which others of the same provider vouch for. `None` when it has them all.
pub fn with_sums(lock_file: &str, sums: &[(&str, &str)]) -> Option<String> {
    let mut body = lock_file.parse::<Body>().ok()?;
    let mut changed = false;
    for block in body.get_blocks_mut("provider") {
        let source = block.labels.first().map(|label| label.as_str().to_owned());
        let Some((_, sum)) = sums.iter().find(|(of, _)| Some(*of) == source.as_deref()) else { continue };
        let Some(mut hashes) = block.body.get_attribute_mut("hashes") else { continue };
        let Some(hashes) = hashes.value_mut().as_array_mut() else { continue };
        if !hashes.iter().any(|known| known.as_str() == Some(sum)) {
            hashes.push(*sum);
            changed = true;
        }
    }
    changed.then(|| body.to_string())
}

/// The name of a folder for the package with this sum; `None` for what is no such sum.
pub fn folder_of(sum: &str) -> Option<String> {
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, sum.strip_prefix("h1:")?).ok()?;
    (bytes.len() == 32).then(|| hex::encode(bytes))
}

/// The sum that such a folder's name stands for.
pub fn sum_of(folder: &str) -> Option<String> {
    let bytes = hex::decode(folder).ok().filter(|bytes| bytes.len() == 32)?;
    Some(format!("h1:{}", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes)))
}

/// The settings of the tool's command line for a job that finds these providers in a folder and all others where it always does:
/// the user's own settings, which must not say where providers come from, and without the tool's own cache.
pub fn command_line(own: &str, mirror: &str, sources: &[&str]) -> Option<String> {
    let mut body = own.parse::<Body>().ok()?;
    if body.get_blocks("provider_installation").next().is_some() {
        return None;
    }
    // It breaks when two write to it at once.
    body.remove_attribute("plugin_cache_dir");
    let names = sources.iter().map(|source| quoted(source)).collect::<Vec<_>>().join(", ");
    let own = body.to_string();
    let own = if own.is_empty() || own.ends_with('\n') { own } else { format!("{own}\n") };
    Some(format!(
        "{own}provider_installation {{\n  filesystem_mirror {{\n    path    = {}\n    include = [{names}]\n  }}\n  \
         direct {{\n    exclude = [{names}]\n  }}\n}}\n",
        quoted(mirror)
    ))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace("${", "$${").replace("%{", "%%{"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "h1:E0GjA+RheUXW4CgG6t39NA1eeQQpzlivD8m1nMyQZh0=";

    #[test]
    fn a_lock_file_names_its_packages() {
        let text = format!(
            "# kept by the tool\n\nprovider \"registry.example.test/acme/test\" {{\n  version     = \"0.1.0\"\n  \
             constraints = \"~> 0.1\"\n  hashes = [\n    \"{SUM}\",\n    \"zh:00\",\n    \"zh:{}\",\n    \"h1:short\",\n  ]\n}}\n",
            "0a".repeat(32)
        );
        let all = locked(&text);
        let expected = Locked {
            source: "registry.example.test/acme/test".into(),
            version: "0.1.0".into(),
            sums: [SUM.to_owned(), format!("zh:{}", "0a".repeat(32))].into(),
        };
        assert_eq!(all, [expected]);
        assert_eq!(locked(&all[0].lock_file()), all);
        assert_ne!(Locked { sums: [SUM.to_owned()].into(), ..all[0].clone() }.fingerprint(), all[0].fingerprint());
        let source = "registry.example.test/acme/test";
        assert_eq!(with_sums(&text, &[(source, SUM), ("registry.example.test/acme/other", "h1:x")]), None);
        let more = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let amended = with_sums(&text, &[(source, more)]).expect("a change");
        assert!(locked(&amended)[0].sums.len() == 3 && amended.starts_with("# kept by the tool"), "{amended}");
        assert!(locked("provider {").is_empty());
    }

    #[test]
    fn no_name_leaves_its_folder() {
        for (source, version) in [
            ("../../etc", "1.0.0"),
            ("a/b/..", "1.0.0"),
            ("a/b", "1.0.0"),
            ("a/b/c/d", "1.0.0"),
            ("/b/c", "1.0.0"),
            ("a/b/c", "../1"),
            ("a/b/c", ""),
            ("a/b\\n/c", "1.0.0"),
        ] {
            let text = format!("provider \"{source}\" {{\n  version = \"{version}\"\n  hashes = []\n}}\n");
            assert!(locked(&text).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_sum_is_the_tools_own() {
        // Measured: `terraform init` of a package of this one file.
        let script = Sha256::digest(b"#!/bin/sh\nexit 1\n").into();
        assert_eq!(sum(&[("terraform-provider-test_v0.1.0".into(), script)]), SUM);
        let (a, b) = (("a".to_owned(), [1; 32]), ("b".to_owned(), [2; 32]));
        assert_eq!(sum(&[a.clone(), b.clone()]), sum(&[b, a]));
        let folder = folder_of(SUM).expect("a name");
        assert_eq!((folder.len(), sum_of(&folder).as_deref()), (64, Some(SUM)));
        assert_eq!(sum_of(".lock"), None);
        assert_eq!(folder_of("h1:../../.."), None);
    }

    #[test]
    fn the_users_own_settings_stay_and_their_word_on_providers_counts() {
        let made = command_line("plugin_cache_dir = \"/c\"\ndisable_checkpoint = true", "/m", &["a/b/c", "a/b/d"]);
        let made = made.expect("settings");
        assert!(made.starts_with("disable_checkpoint = true\nprovider_installation {\n"), "{made}");
        assert!(made.contains("include = [\"a/b/c\", \"a/b/d\"]") && made.contains("exclude = [\"a/b/c\", \"a/b/d\"]"));
        assert!(made.parse::<Body>().is_ok(), "{made}");
        assert_eq!(command_line("provider_installation {\n  direct {}\n}\n", "/m", &[]), None);
        assert_eq!(command_line("{ \"json\": true }", "/m", &[]), None);
    }
}
