//! Source from bare git mirrors, by the git program. Nothing is checked out, nothing of a repository
//! is run, and no credential is ever written down.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use moka::future::Cache;
use sha2::{Digest, Sha256};

use crate::domain::config::RepoConfig;
use crate::domain::estate::Estate;
use crate::domain::ids::{RepoKey, Sha};
use crate::domain::tree::Listing;
use crate::ports::forge::{GitAccess, RepoRef};
use crate::ports::source::{Merged, Source, SourceError, Wanted};

mod facts;
mod git;
mod mirror;
mod objects;

use facts::Facts;
use mirror::Mirror;

/// Paths kept in listings, over all repositories: some 100 MB at most.
const LISTED_PATHS: u64 = 500_000;
/// Files whose facts are kept.
const FILES: u64 = 200_000;
/// Estates kept.
const ESTATES: u64 = 64;
/// Bytes of the trees kept for the next job of the same rollout, and for how long after the last one.
const ARCHIVES: u64 = 64 * 1024 * 1024;
const ARCHIVES_FOR: Duration = Duration::from_secs(60);

type ListingKey = (RepoKey, Sha);
type EstateKey = (RepoKey, Sha, [u8; 32]);

/// [`Source`] over mirrors in a directory. One process per directory.
#[derive(Debug)]
pub struct GitSource {
    dir: PathBuf,
    mirrors: Mutex<HashMap<RepoKey, Arc<Mirror>>>,
    listings: Cache<ListingKey, Arc<Listing>>,
    estates: Cache<EstateKey, Arc<Estate>>,
    archives: Cache<ListingKey, Bytes>,
    facts: Facts,
}

impl GitSource {
    /// Mirrors are made under `dir` when they are first fetched.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let weigh =
            |_: &ListingKey, listing: &Arc<Listing>| u32::try_from(listing.entries.len() + 1).unwrap_or(u32::MAX);
        Self {
            dir: dir.into(),
            mirrors: Mutex::default(),
            listings: Cache::builder().max_capacity(LISTED_PATHS).weigher(weigh).build(),
            estates: Cache::new(ESTATES),
            archives: Cache::builder()
                .max_capacity(ARCHIVES)
                .weigher(|_: &ListingKey, tar: &Bytes| u32::try_from(tar.len()).unwrap_or(u32::MAX))
                .time_to_idle(ARCHIVES_FOR)
                .build(),
            facts: Facts::new(FILES),
        }
    }

    fn mirror(&self, repo: &RepoRef) -> Arc<Mirror> {
        let mut mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
        mirrors.entry(repo.key.clone()).or_insert_with(|| Arc::new(Mirror::new(&self.dir, &repo.key))).clone()
    }
}

#[async_trait]
impl Source for GitSource {
    async fn fetch(
        &self,
        repo: &RepoRef,
        access: &GitAccess,
        wanted: &Wanted,
        known_base: Option<&Sha>,
    ) -> Result<Sha, SourceError> {
        self.mirror(repo).fetch(access, wanted, known_base).await
    }

    async fn default_branch(&self, repo: &RepoRef, access: &GitAccess) -> Result<(String, Sha), SourceError> {
        self.mirror(repo).default_branch(access).await
    }

    async fn merge(&self, repo: &RepoRef, base: &Sha, head: &Sha) -> Result<Merged, SourceError> {
        objects::merge(&self.mirror(repo), base, head).await
    }

    async fn contains(&self, repo: &RepoRef, base: &Sha, head: &Sha) -> Result<bool, SourceError> {
        objects::contains(&self.mirror(repo), base, head).await
    }

    async fn listing(&self, repo: &RepoRef, treeish: &Sha) -> Result<Arc<Listing>, SourceError> {
        let mirror = self.mirror(repo);
        let read = async { objects::listing(&mirror, treeish).await.map(Arc::new) };
        self.listings.try_get_with((repo.key.clone(), treeish.clone()), read).await.map_err(|error| again(&error))
    }

    async fn read(&self, repo: &RepoRef, treeish: &Sha, path: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let listing = self.listing(repo, treeish).await?;
        objects::file(&self.mirror(repo), &listing, path).await
    }

    async fn read_all(
        &self,
        repo: &RepoRef,
        treeish: &Sha,
        paths: &[String],
    ) -> Result<BTreeMap<String, Vec<u8>>, SourceError> {
        let listing = self.listing(repo, treeish).await?;
        objects::files(&self.mirror(repo), &listing, paths).await
    }

    async fn estate(&self, repo: &RepoRef, treeish: &Sha, config: &RepoConfig) -> Result<Arc<Estate>, SourceError> {
        let text = serde_json::to_vec(config).map_err(|error| SourceError::Broken(error.to_string()))?;
        let key = (repo.key.clone(), treeish.clone(), Sha256::digest(&text).into());
        let make = async {
            let listing = self.listing(repo, treeish).await?;
            self.facts.estate(&self.mirror(repo), listing, config).await.map(Arc::new)
        };
        self.estates.try_get_with(key, make).await.map_err(|error| again(&error))
    }

    async fn archive(&self, repo: &RepoRef, treeish: &Sha) -> Result<Bytes, SourceError> {
        let mirror = self.mirror(repo);
        let key = (repo.key.clone(), treeish.clone());
        self.archives.try_get_with(key, objects::archive(&mirror, treeish)).await.map_err(|error| again(&error))
    }
}

/// An error that several callers waited for, once for each.
fn again(error: &SourceError) -> SourceError {
    match error {
        SourceError::Gone(what) => SourceError::Gone(what.clone()),
        SourceError::Unavailable(why) => SourceError::Unavailable(why.clone()),
        SourceError::Broken(why) => SourceError::Broken(why.clone()),
    }
}
