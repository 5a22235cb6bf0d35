//! Small trees in memory for the tests of the estate and of reach. Nothing here is part of the product.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Estate, read_by_links, survey};
use crate::domain::config::{RepoConfig, RootSettings};
use crate::domain::hcl;
use crate::domain::ids::RootKey;
use crate::domain::tree::{Entry, EntryKind, Listing};

/// A listing and its estate. A content that starts with `->` is a link's target.
pub(in crate::domain) fn estate(files: &[(&str, &str)], config: &RepoConfig) -> (Listing, Estate) {
    let mut listing = Listing::default();
    let (mut facts, mut links) = (BTreeMap::new(), BTreeMap::new());
    for (path, content) in files {
        let blob = format!("{path}={content}");
        let target = content.strip_prefix("->");
        if let Some(target) = target {
            links.insert(blob.clone(), target.to_owned());
        } else if hcl::is_wanted(path) {
            facts.insert(blob.clone(), Arc::new(hcl::parse(path, content.as_bytes())));
        }
        let kind = if target.is_some() { EntryKind::Link } else { EntryKind::File };
        listing.entries.insert((*path).to_owned(), Entry { kind, blob, size: content.len() as u64 });
    }
    for (path, link) in read_by_links(&listing, &links) {
        let content = files.iter().find(|(known, _)| **known == path).map_or("", |(_, content)| content);
        facts.insert(format!("{path}={content}"), Arc::new(hcl::parse(&link, content.as_bytes())));
    }
    let estate = survey(&listing, &facts, &links, config);
    (listing, estate)
}

/// `reader -> source`, with `?` behind a probable one.
pub(in crate::domain) fn edges(estate: &Estate) -> Vec<String> {
    let mut edges: Vec<String> = estate
        .edges
        .iter()
        .map(|edge| format!("{} -> {}{}", edge.reader, edge.source, if edge.certain { "" } else { "?" }))
        .collect();
    edges.dedup();
    edges
}

/// The keys of the roots that these paths reach, by wave.
pub(in crate::domain) fn waves(estate: &Estate, changed: &[&str], config: &RepoConfig) -> Vec<Vec<String>> {
    let changed: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
    let reached = estate.reached(&changed, config).expect("no cycle");
    reached.waves.iter().map(|wave| wave.iter().map(RootKey::to_string).collect()).collect()
}

/// An S3 backend with this key.
pub(in crate::domain) fn s3(key: &str) -> String {
    format!("terraform {{\n  backend \"s3\" {{\n    bucket = \"b\"\n    key = \"{key}\"\n  }}\n}}\n")
}

/// A read of that S3 key, labelled `net`.
pub(in crate::domain) fn read(key: &str) -> String {
    format!(
        "data \"terraform_remote_state\" \"net\" {{\n  backend = \"s3\"\n  config = {{ bucket = \"b\", key = \"{key}\" }}\n}}\n"
    )
}

/// A configuration with `waves.after` and canaries.
pub(in crate::domain) fn ordered(after: &[(&str, &[&str])], canary: &[&str]) -> RepoConfig {
    let mut config = RepoConfig::default();
    config.waves.canary = canary.iter().map(|dir| (*dir).to_owned()).collect();
    for (later, earlier) in after {
        config.waves.after.insert((*later).to_owned(), earlier.iter().map(|dir| (*dir).to_owned()).collect());
    }
    config
}

/// A configuration whose top settings are these.
pub(in crate::domain) fn with(top: RootSettings) -> RepoConfig {
    RepoConfig { top, ..RepoConfig::default() }
}
