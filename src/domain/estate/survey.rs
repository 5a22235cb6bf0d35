//! stub
use super::Estate;
use crate::domain::config::RepoConfig;
use crate::domain::hcl::FileFacts;
use crate::domain::tree::Listing;
use std::collections::BTreeMap;
use std::sync::Arc;
/// Finds roots, states and edges. `facts` maps a blob id to the facts of the wanted files of the listing; `links`
/// maps a symlink's blob id to its target.
pub fn survey(
    listing: &Listing,
    facts: &BTreeMap<String, Arc<FileFacts>>,
    links: &BTreeMap<String, String>,
    config: &RepoConfig,
) -> Estate {
    let _ = (listing, facts, links, config);
    unimplemented!()
}
