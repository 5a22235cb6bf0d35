//! The source with a place for strikes where a job fetches its tree. It reads only, so it has no boundary at which the server could
//! leave something half done.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tidegate::domain::config::RepoConfig;
use tidegate::domain::estate::Estate;
use tidegate::domain::ids::Sha;
use tidegate::domain::tree::Listing;
use tidegate::ports::forge::{GitAccess, RepoRef};
use tidegate::ports::source::{self, Merged, SourceError, Wanted};

use super::Life;

pub struct Source {
    pub life: Arc<Life>,
    pub inner: Arc<dyn source::Source>,
}

#[async_trait]
impl source::Source for Source {
    async fn fetch(
        &self,
        repo: &RepoRef,
        access: &GitAccess,
        wanted: &Wanted,
        known_base: Option<&Sha>,
    ) -> Result<Sha, SourceError> {
        self.inner.fetch(repo, access, wanted, known_base).await
    }
    async fn default_branch(&self, repo: &RepoRef, access: &GitAccess) -> Result<(String, Sha), SourceError> {
        self.inner.default_branch(repo, access).await
    }
    async fn merge(&self, repo: &RepoRef, base: &Sha, head: &Sha) -> Result<Merged, SourceError> {
        self.inner.merge(repo, base, head).await
    }
    async fn contains(&self, repo: &RepoRef, base: &Sha, head: &Sha) -> Result<bool, SourceError> {
        self.inner.contains(repo, base, head).await
    }
    async fn listing(&self, repo: &RepoRef, treeish: &Sha) -> Result<Arc<Listing>, SourceError> {
        self.inner.listing(repo, treeish).await
    }
    async fn read(&self, repo: &RepoRef, treeish: &Sha, path: &str) -> Result<Option<Vec<u8>>, SourceError> {
        self.inner.read(repo, treeish, path).await
    }
    async fn read_all(
        &self,
        repo: &RepoRef,
        treeish: &Sha,
        paths: &[String],
    ) -> Result<BTreeMap<String, Vec<u8>>, SourceError> {
        self.inner.read_all(repo, treeish, paths).await
    }
    async fn estate(&self, repo: &RepoRef, treeish: &Sha, config: &RepoConfig) -> Result<Arc<Estate>, SourceError> {
        self.inner.estate(repo, treeish, config).await
    }
    async fn archive(&self, repo: &RepoRef, treeish: &Sha) -> Result<Bytes, SourceError> {
        self.life.strike("checkout");
        self.inner.archive(repo, treeish).await
    }
}
