//! Comments: ours, found again by receipt or marker, and those of people. Never creates one where an earlier
//! create may have worked without looking first, and never edits what somebody else wrote.

use serde_json::json;

use super::GitHub;
use super::paging::Shape;
use super::request::{Ask, Whose, repo_path};
use super::wire::{IssueComment, Made};
use crate::domain::effect::Reaction;
use crate::domain::event::{AuthorKind, Incoming, What};
use crate::ports::forge::{CommentDraft, ForgeError, PullRef, Receipt, Tried};

impl GitHub {
    pub(super) async fn write_comment(&self, pull: &PullRef, draft: &CommentDraft<'_>) -> Result<Receipt, ForgeError> {
        let known = draft.receipt.and_then(|receipt| receipt.0.parse::<u64>().ok());
        if let Some(id) = known
            && self.edit_comment(pull, id, draft.body).await?
        {
            return Ok(Receipt(id.to_string()));
        }
        // A 404 for a comment of ours may pass: only a list without it says that it is gone.
        if (known.is_some() || draft.tried == Tried::Perhaps)
            && let Some(id) = self.find_comment(pull, draft.marker).await?
        {
            return match self.edit_comment(pull, id, draft.body).await? {
                true => Ok(Receipt(id.to_string())),
                false => Err(ForgeError::Unavailable(format!("comment {id} is listed and cannot be edited"))),
            };
        }
        let ask = Ask::post(comments_path(pull)?, json!({ "body": draft.body }));
        let made: Made = self.ask(Whose::Repo(&pull.repo.name), &ask).await?.read_created(&ask)?;
        Ok(Receipt(made.id.to_string()))
    }

    /// Whether the comment was still there. octocrab's own call would send POST.
    async fn edit_comment(&self, pull: &PullRef, id: u64, body: &str) -> Result<bool, ForgeError> {
        let path = format!("{}/issues/comments/{id}", repo_path(&pull.repo.name)?);
        match self.ask(Whose::Repo(&pull.repo.name), &Ask::patch(path, json!({ "body": body }))).await {
            Ok(_) => Ok(true),
            Err(ForgeError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Our own comment that contains `marker`: anybody can paste a marker.
    async fn find_comment(&self, pull: &PullRef, marker: &str) -> Result<Option<u64>, ForgeError> {
        self.login().await?;
        let ours = |comment: &IssueComment| {
            self.identity.author(comment.user.as_ref(), comment.performed_via_github_app.as_ref())
                == AuthorKind::Ourselves
                && comment.body.as_deref().is_some_and(|body| body.contains(marker))
        };
        Ok(self.raw_comments(pull).await?.iter().find(|comment| ours(comment)).and_then(|comment| comment.id))
    }

    pub(super) async fn list_comments(&self, pull: &PullRef) -> Result<Vec<Incoming>, ForgeError> {
        self.login().await?;
        let comments = self.raw_comments(pull).await?;
        let seen = comments.iter().filter_map(|comment| comment.seen(&self.identity, comment.kind()));
        let incoming = seen.map(|comment| Incoming {
            repo_id: pull.repo.key.id,
            repo: pull.repo.name.clone(),
            what: What::Comment { number: pull.number, comment },
        });
        Ok(incoming.collect())
    }

    async fn raw_comments(&self, pull: &PullRef) -> Result<Vec<IssueComment>, ForgeError> {
        self.list(Whose::Repo(&pull.repo.name), &comments_path(pull)?, Shape::Array).await
    }

    pub(super) async fn add_reaction(
        &self,
        pull: &PullRef,
        comment: u64,
        reaction: Reaction,
    ) -> Result<(), ForgeError> {
        let content = match reaction {
            Reaction::Eyes => "eyes",
            Reaction::ThumbsUp => "+1",
            Reaction::Confused => "confused",
        };
        let path = format!("{}/issues/comments/{comment}/reactions", repo_path(&pull.repo.name)?);
        self.ask(Whose::Repo(&pull.repo.name), &Ask::post(path, json!({ "content": content }))).await.map(drop)
    }
}

fn comments_path(pull: &PullRef) -> Result<String, ForgeError> {
    Ok(format!("{}/issues/{}/comments", repo_path(&pull.repo.name)?, pull.number))
}
