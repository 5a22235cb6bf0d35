//! Commits and trees of a repository, from a bare mirror. Trees are read straight from the object
//! store; nothing is ever checked out here.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::forge::{GitAccess, RepoRef};
use crate::domain::config::RepoConfig;
use crate::domain::estate::Estate;
use crate::domain::ids::Sha;
use crate::domain::tree::Listing;

/// Why source could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The commit or branch is gone (a force-push, a deleted branch): superseded, no error to show.
    #[error("`{0}` is gone")]
    Gone(String),
    /// git could not reach the forge, or the disk is full: later again.
    #[error("{0}")]
    Unavailable(String),
    /// git said something that we cannot handle.
    #[error("git failed: {0}")]
    Broken(String),
}

/// What base and head make together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The tree of the merge.
    Tree(Sha),
    /// They conflict in these paths.
    Conflict(Vec<String>),
}

/// Which commits of a pull to have.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The pull, whose ref holds the head even of a fork.
    pub pull: u64,
    /// Its head.
    pub head: Sha,
    /// The branch to merge into.
    pub base_ref: String,
}

/// Reads repositories.
#[async_trait]
pub trait Source: Send + Sync {
    /// Fetches the head and the base's tip, incrementally, and returns the base's tip.
    /// Does not ask the network for a head and a base tip that `Wanted` and `known_base` say are already there.
    async fn fetch(
        &self,
        repo: &RepoRef,
        access: &GitAccess,
        wanted: &Wanted,
        known_base: Option<&Sha>,
    ) -> Result<Sha, SourceError>;
    /// The default branch as the forge names it now, with its tip, fetched; [`SourceError::Gone`] for a repository without a commit.
    async fn default_branch(&self, repo: &RepoRef, access: &GitAccess) -> Result<(String, Sha), SourceError>;
    /// The merge of base and head, as a tree.
    async fn merge(&self, repo: &RepoRef, base: &Sha, head: &Sha) -> Result<Merged, SourceError>;
    /// Whether `head` contains `base`.
    async fn contains(&self, repo: &RepoRef, base: &Sha, head: &Sha) -> Result<bool, SourceError>;
    /// All paths of a commit or tree.
    async fn listing(&self, repo: &RepoRef, treeish: &Sha) -> Result<Arc<Listing>, SourceError>;
    /// A file of a commit or tree.
    async fn read(&self, repo: &RepoRef, treeish: &Sha, path: &str) -> Result<Option<Vec<u8>>, SourceError>;
    /// Several files of a commit or tree at once, without those that are not there.
    async fn read_all(
        &self,
        repo: &RepoRef,
        treeish: &Sha,
        paths: &[String],
    ) -> Result<BTreeMap<String, Vec<u8>>, SourceError>;
    /// The estate of a tree; facts of files are cached by blob, so that a push that edits one file parses one file.
    async fn estate(&self, repo: &RepoRef, treeish: &Sha, config: &RepoConfig) -> Result<Arc<Estate>, SourceError>;
    /// A tar of the tree, for a job.
    async fn archive(&self, repo: &RepoRef, treeish: &Sha) -> Result<Bytes, SourceError>;
}
