//! Comments, reactions and reviews. Never lets an author approve their own pull.

use serde_json::{Value, json};

use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::shape::talk::CONTENTS;
use crate::sandbox::world::{Comment, Reaction, Repo, Review, State, now};

/// The most characters a comment may have.
pub const COMMENT_LIMIT: usize = 65_536;

/// A reviewer's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Fine as it is.
    Approve,
    /// Not like this.
    RequestChanges,
    /// Only words.
    Comment,
    /// Not sent yet.
    Pending,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Approve => "APPROVED",
            Self::RequestChanges => "CHANGES_REQUESTED",
            Self::Comment => "COMMENTED",
            Self::Pending => "PENDING",
        }
    }
}

fn check_body(body: &str) -> Answer<()> {
    if body.trim().is_empty() {
        return Err(Refusal::field("IssueComment", "missing_field", "body", "Body can't be blank"));
    }
    if body.chars().count() > COMMENT_LIMIT {
        let text = "Body is too long (maximum is 65536 characters)";
        return Err(Refusal::field("IssueComment", "unprocessable", "data", text));
    }
    Ok(())
}

impl Repo {
    /// A comment by id.
    pub fn comment(&self, id: u64) -> Answer<&Comment> {
        self.comments.iter().find(|comment| comment.id == id).ok_or_else(Refusal::not_found)
    }
    fn comment_mut(&mut self, id: u64) -> Answer<&mut Comment> {
        self.comments.iter_mut().find(|comment| comment.id == id).ok_or_else(Refusal::not_found)
    }
}

impl State {
    fn comment_event(&mut self, repo: &str, comment: &Comment, action: &str, sender: &str, more: Value) -> Answer<()> {
        let base = self.base();
        let found = self.repo(repo)?;
        let mut payload = json!({
            "issue": shape::pull::issue(self, &base, found, found.pull(comment.number)?),
            "comment": shape::talk::comment(self, &base, found, comment),
        });
        if let (Value::Object(map), Value::Object(more)) = (&mut payload, more) {
            map.extend(more);
        }
        self.emit(repo, "issue_comment", action, sender, payload);
        Ok(())
    }

    /// Writes a comment.
    pub fn comment(&mut self, repo: &str, number: u64, author: &str, body: &str) -> Answer<u64> {
        check_body(body)?;
        let login = self.account(author)?.login.clone();
        self.repo(repo)?.pull(number)?;
        let comment = Comment {
            id: self.id(),
            number,
            author: login,
            body: body.to_owned(),
            created_at: now(),
            updated_at: now(),
            reactions: Vec::new(),
            minimized: None,
        };
        let found = self.repo_mut(repo)?;
        found.comments.push(comment.clone());
        found.pull_mut(number)?.updated_at = now();
        self.comment_event(repo, &comment, "created", author, json!({}))?;
        Ok(comment.id)
    }

    /// Replaces a comment's text.
    pub fn edit_comment(&mut self, repo: &str, id: u64, sender: &str, body: &str) -> Answer<()> {
        check_body(body)?;
        let comment = self.repo_mut(repo)?.comment_mut(id)?;
        let from = std::mem::replace(&mut comment.body, body.to_owned());
        comment.updated_at = now();
        let comment = comment.clone();
        self.comment_event(repo, &comment, "edited", sender, json!({"changes": {"body": {"from": from}}}))
    }

    /// Removes a comment.
    pub fn delete_comment(&mut self, repo: &str, id: u64, sender: &str) -> Answer<()> {
        let found = self.repo_mut(repo)?;
        let at = found.comments.iter().position(|comment| comment.id == id).ok_or_else(Refusal::not_found)?;
        let comment = found.comments.remove(at);
        self.comment_event(repo, &comment, "deleted", sender, json!({}))
    }

    /// Folds a comment away, found by its node id.
    pub fn minimize(&mut self, node: &str, classifier: &str) -> Answer<()> {
        self.touch();
        let comments = self.repos.values_mut().flat_map(|repo| repo.comments.iter_mut());
        let mut found = comments.filter(|comment| shape::node("IC", comment.id) == node);
        let comment = found.next().ok_or_else(Refusal::not_found)?;
        comment.minimized = Some(classifier.to_lowercase());
        Ok(())
    }

    /// Unfolds a comment, found by its node id.
    pub fn unminimize(&mut self, node: &str) -> Answer<()> {
        self.touch();
        let mut comments = self.repos.values_mut().flat_map(|repo| repo.comments.iter_mut());
        let found = comments.find(|comment| shape::node("IC", comment.id) == node);
        found.ok_or_else(Refusal::not_found)?.minimized = None;
        Ok(())
    }

    /// Adds a reaction; tells whether it was new.
    pub fn react(&mut self, repo: &str, id: u64, login: &str, content: &str) -> Answer<(Reaction, Fresh)> {
        if !CONTENTS.contains(&content) {
            return Err(Refusal::field("Reaction", "invalid", "content", "content is not a reaction"));
        }
        let fresh = self.id();
        self.touch();
        let comment = self.repo_mut(repo)?.comment_mut(id)?;
        if let Some(old) = comment.reactions.iter().find(|old| old.login == login && old.content == content) {
            return Ok((old.clone(), Fresh::Old));
        }
        let new = Reaction { id: fresh, login: login.to_owned(), content: content.to_owned(), at: now() };
        comment.reactions.push(new.clone());
        Ok((new, Fresh::New))
    }

    /// Takes one's own reaction back.
    pub fn unreact(&mut self, repo: &str, comment: u64, login: &str, id: u64) -> Answer<()> {
        let reactions = &mut self.repo_mut(repo)?.comment_mut(comment)?.reactions;
        let at = reactions.iter().position(|one| one.id == id && one.login == login);
        reactions.remove(at.ok_or_else(Refusal::not_found)?);
        self.touch();
        Ok(())
    }

    /// Writes a review of the head.
    pub fn review(&mut self, repo: &str, number: u64, author: &str, verdict: Verdict, body: &str) -> Answer<u64> {
        let login = self.account(author)?.login.clone();
        let pull = self.repo(repo)?.pull(number)?;
        if pull.author == login && verdict == Verdict::Approve {
            return Err(Refusal::unprocessable("Can not approve your own pull request"));
        }
        if pull.author == login && verdict == Verdict::RequestChanges {
            return Err(Refusal::unprocessable("Can not request changes on your own pull request"));
        }
        if body.trim().is_empty() && matches!(verdict, Verdict::Comment | Verdict::RequestChanges) {
            return Err(Refusal::unprocessable("Body can't be blank"));
        }
        let sha = pull.head_sha.clone();
        let id = self.id();
        let review = Review { id, author: login, state: verdict.word().into(), body: body.to_owned(), sha, at: now() };
        self.repo_mut(repo)?.pull_mut(number)?.reviews.push(review);
        if verdict != Verdict::Pending {
            self.review_event(repo, number, id, "submitted", author)?;
        }
        Ok(id)
    }

    /// Takes a verdict's weight away.
    pub fn dismiss(&mut self, repo: &str, number: u64, id: u64, sender: &str) -> Answer<()> {
        let reviews = &mut self.repo_mut(repo)?.pull_mut(number)?.reviews;
        let review = reviews.iter_mut().find(|review| review.id == id).ok_or_else(Refusal::not_found)?;
        review.state = "DISMISSED".into();
        self.review_event(repo, number, id, "dismissed", sender)
    }

    fn review_event(&mut self, repo: &str, number: u64, id: u64, action: &str, sender: &str) -> Answer<()> {
        let base = self.base();
        let found = self.repo(repo)?;
        let pull = found.pull(number)?;
        let review = pull.reviews.iter().find(|review| review.id == id).ok_or_else(Refusal::not_found)?;
        let mut shown = shape::talk::review(self, &base, found, pull, review);
        // REST shouts, webhooks do not.
        shown["state"] = json!(review.state.to_lowercase());
        let payload = json!({"review": shown, "pull_request": shape::pull::row(self, &base, found, pull)});
        self.emit(repo, "pull_request_review", action, sender, payload);
        Ok(())
    }
}

/// Whether a reaction was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// It is new.
    New,
    /// It was there.
    Old,
}
