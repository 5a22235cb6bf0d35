//! The forge with boundaries before and after each write. Reads pass, as long as the server lives.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate::domain::approval::{Permission, Review};
use tidegate::domain::effect::{CheckReport, Reaction};
use tidegate::domain::event::Incoming;
use tidegate::domain::ids::{Login, Sha};
use tidegate::domain::pull::Seen;
use tidegate::ports::forge::{self, CommentDraft, ForgeError, GitAccess, PullRef, Receipt, RepoRef};

use super::Life;

pub struct Forge {
    pub life: Arc<Life>,
    pub inner: Arc<dyn forge::Forge>,
}

impl Forge {
    async fn write<T>(&self, what: String, work: impl Future<Output = T> + Send) -> T {
        self.life.boundary(format!("before {what}")).await;
        let done = work.await;
        self.life.boundary(format!("after {what}")).await;
        done
    }
}

#[async_trait]
impl forge::Forge for Forge {
    async fn pull(&self, pull: &PullRef) -> Result<Seen, ForgeError> {
        self.inner.pull(pull).await
    }
    async fn open_pulls(&self, repo: &RepoRef) -> Result<Vec<(u64, Seen)>, ForgeError> {
        self.inner.open_pulls(repo).await
    }
    async fn repos(&self) -> Result<Vec<RepoRef>, ForgeError> {
        self.inner.repos().await
    }
    async fn repo(&self, name: &str) -> Result<RepoRef, ForgeError> {
        self.inner.repo(name).await
    }
    async fn permission(&self, repo: &RepoRef, login: &Login) -> Result<Permission, ForgeError> {
        self.inner.permission(repo, login).await
    }
    async fn reviews(&self, pull: &PullRef) -> Result<Vec<Review>, ForgeError> {
        self.inner.reviews(pull).await
    }
    async fn committers(&self, pull: &PullRef) -> Result<Vec<Login>, ForgeError> {
        self.inner.committers(pull).await
    }
    async fn team(&self, org: &str, slug: &str) -> Result<Vec<Login>, ForgeError> {
        self.inner.team(org, slug).await
    }
    async fn comments(&self, pull: &PullRef) -> Result<Vec<Incoming>, ForgeError> {
        self.inner.comments(pull).await
    }
    async fn put_check(
        &self,
        repo: &RepoRef,
        report: &CheckReport,
        receipt: Option<&Receipt>,
    ) -> Result<Receipt, ForgeError> {
        let what = format!("check {} {:?}", report.name.as_str(), report.state);
        self.write(what, self.inner.put_check(repo, report, receipt)).await
    }
    async fn put_comment(&self, pull: &PullRef, comment: &CommentDraft<'_>) -> Result<Receipt, ForgeError> {
        let what = if comment.marker.contains(" note ") { "note" } else { "reply" };
        self.write(what.to_owned(), self.inner.put_comment(pull, comment)).await
    }
    async fn react(&self, pull: &PullRef, comment: u64, reaction: Reaction) -> Result<(), ForgeError> {
        self.write(format!("react {reaction:?}"), self.inner.react(pull, comment, reaction)).await
    }
    async fn merge(&self, pull: &PullRef, head: &Sha) -> Result<(), ForgeError> {
        self.write("merge".to_owned(), self.inner.merge(pull, head)).await
    }
    async fn git_access(&self, repo: &RepoRef) -> Result<GitAccess, ForgeError> {
        self.life.lives().await;
        self.inner.git_access(repo).await
    }
    fn comment_limit(&self) -> usize {
        self.inner.comment_limit()
    }
}
