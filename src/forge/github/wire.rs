//! The few fields that we read of GitHub's JSON, in answers and in webhooks alike. Whatever GitHub may leave out or
//! null is optional here; what it means then is said once, in this file.

use secrecy::SecretString;
use serde::Deserialize;

use crate::domain::approval::{Review, Verdict};
use crate::domain::event::{Comment, CommentKind};
use crate::domain::ids::{Login, RepoKey, Sha, Timestamp};
use crate::domain::pull::{PullState, Seen};
use crate::ports::forge::RepoRef;

use super::identity::Identity;

/// What GitHub shows in place of an account that is gone.
const GHOST: &str = "ghost";

#[derive(Clone, Debug, Deserialize)]
pub(super) struct User {
    pub login: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct App {
    pub id: Option<u64>,
    pub slug: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Repo {
    pub id: u64,
    pub full_name: Option<String>,
    pub clone_url: Option<String>,
    pub allow_merge_commit: Option<bool>,
    pub allow_squash_merge: Option<bool>,
    pub allow_rebase_merge: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Side {
    #[serde(rename = "ref")]
    pub branch: Option<String>,
    pub sha: Option<String>,
    pub repo: Option<Repo>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pull {
    pub number: Option<u64>,
    pub title: Option<String>,
    pub state: Option<String>,
    pub draft: Option<bool>,
    pub merged: Option<bool>,
    pub merged_at: Option<String>,
    pub mergeable: Option<bool>,
    pub head: Option<Side>,
    pub base: Option<Side>,
    pub user: Option<User>,
    pub updated_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct IssueComment {
    pub id: Option<u64>,
    pub body: Option<String>,
    pub user: Option<User>,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    pub performed_via_github_app: Option<App>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PullReview {
    pub id: Option<u64>,
    pub user: Option<User>,
    pub body: Option<String>,
    pub state: Option<String>,
    pub commit_id: Option<String>,
    pub submitted_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PullCommit {
    pub author: Option<User>,
    pub committer: Option<User>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Made {
    pub id: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Standing {
    pub permission: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Installation {
    pub id: u64,
    pub account: Option<User>,
    pub suspended_at: Option<String>,
}

#[derive(Clone, Deserialize)]
pub(super) struct Token {
    pub token: SecretString,
    pub expires_at: Option<String>,
}

/// Milliseconds since 1970 of GitHub's times.
pub(super) fn millis(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

impl User {
    fn named(&self) -> Option<Login> {
        self.login.as_deref().filter(|login| !login.is_empty()).map(Login::from)
    }
}

/// The login, if the account is still there.
pub(super) fn login(user: Option<&User>) -> Option<Login> {
    user.and_then(User::named)
}

impl Repo {
    /// As the rest of the product names it.
    pub fn named(&self, forge: &str) -> Option<RepoRef> {
        Some(RepoRef { key: RepoKey { forge: forge.to_owned(), id: self.id }, name: self.full_name.clone()? })
    }

    /// The first merge method that the repository allows; `None` leaves the choice to GitHub.
    pub fn merge_method(&self) -> Option<&'static str> {
        [(self.allow_merge_commit, "merge"), (self.allow_squash_merge, "squash"), (self.allow_rebase_merge, "rebase")]
            .into_iter()
            .find_map(|(allowed, method)| (allowed == Some(true)).then_some(method))
    }
}

impl Pull {
    /// The pull as the product sees it, or `None` when something is missing that cannot be guessed.
    /// `repo_id` is the repository it was opened in: a head that lives anywhere else makes it a fork.
    pub fn seen(&self, repo_id: u64, repo: &str) -> Option<Seen> {
        let (head, base) = (self.head.as_ref()?, self.base.as_ref()?);
        Some(Seen {
            repo: base.repo.as_ref().and_then(|repo| repo.full_name.clone()).unwrap_or_else(|| repo.to_owned()),
            head: sha(head)?,
            base_ref: base.branch.clone().filter(|branch| !branch.is_empty())?,
            base: sha(base)?,
            author: login(self.user.as_ref()).unwrap_or_else(|| Login::from(GHOST)),
            title: self.title.clone().unwrap_or_default(),
            state: self.state()?,
            draft: self.draft.unwrap_or(false),
            fork: head.repo.as_ref().is_none_or(|repo| repo.id != repo_id),
            mergeable: self.mergeable,
            updated: Timestamp(millis(self.updated_at.as_deref()?)?),
        })
    }

    fn state(&self) -> Option<PullState> {
        let merged = self.merged == Some(true) || self.merged_at.is_some();
        match self.state.as_deref()? {
            _ if merged => Some(PullState::Merged),
            "open" => Some(PullState::Open),
            "closed" => Some(PullState::Closed),
            _ => None,
        }
    }
}

fn sha(side: &Side) -> Option<Sha> {
    side.sha.as_deref().filter(|sha| !sha.is_empty()).map(Sha::from)
}

impl IssueComment {
    /// The comment as the product sees it; nothing without an id, a known author and a time.
    pub fn seen(&self, identity: &Identity, kind: CommentKind) -> Option<Comment> {
        Some(Comment {
            id: self.id?,
            by: login(self.user.as_ref())?,
            author: identity.author(self.user.as_ref(), self.performed_via_github_app.as_ref()),
            body: self.body.clone().unwrap_or_default(),
            at: Timestamp(millis(self.created_at.as_deref()?)?),
            kind,
        })
    }

    /// Whether its text may differ from what was first written.
    pub fn kind(&self) -> CommentKind {
        if self.created_at == self.updated_at { CommentKind::Created } else { CommentKind::Edited }
    }
}

impl PullReview {
    /// The review as the product sees it; nothing for a pending one or one of an account that is gone.
    pub fn seen(&self) -> Option<Review> {
        let verdict = match self.state.as_deref()?.to_ascii_uppercase().as_str() {
            "APPROVED" => Verdict::Approved,
            "CHANGES_REQUESTED" => Verdict::ChangesRequested,
            "COMMENTED" => Verdict::Commented,
            "DISMISSED" => Verdict::Dismissed,
            _ => return None,
        };
        Some(Review {
            id: self.id?,
            by: login(self.user.as_ref())?,
            verdict,
            // Without a commit it fits no head, so it approves nothing.
            head: Sha::new(self.commit_id.clone().unwrap_or_default()),
            at: Timestamp(millis(self.submitted_at.as_deref()?)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pull() -> Value {
        json!({
            "number": 7, "title": "t", "state": "open", "draft": false, "merged_at": null, "mergeable": null,
            "head": {"ref": "f", "sha": "aa", "repo": {"id": 1, "full_name": "o/r"}},
            "base": {"ref": "main", "sha": "bb", "repo": {"id": 1, "full_name": "o/r"}},
            "user": {"login": "u"}, "updated_at": "2026-11-30T12:00:00Z",
        })
    }

    fn seen(change: impl Fn(&mut Value)) -> Option<Seen> {
        let mut value = pull();
        change(&mut value);
        serde_json::from_value::<Pull>(value).unwrap().seen(1, "o/r")
    }

    #[test]
    fn a_fork_is_another_repository_or_one_that_is_gone() {
        assert!(!seen(|_| ()).unwrap().fork);
        assert!(seen(|pull| pull["head"]["repo"]["id"] = json!(2)).unwrap().fork);
        assert!(seen(|pull| pull["head"]["repo"] = Value::Null).unwrap().fork);
    }

    #[test]
    fn a_state_is_open_closed_or_merged() {
        assert_eq!(seen(|_| ()).unwrap().state, PullState::Open);
        assert_eq!(seen(|pull| pull["state"] = json!("closed")).unwrap().state, PullState::Closed);
        let merged = |pull: &mut Value| {
            pull["state"] = json!("closed");
            pull["merged_at"] = json!("2026-11-30T12:00:00Z");
        };
        assert_eq!(seen(merged).unwrap().state, PullState::Merged);
        assert_eq!(seen(|pull| pull["state"] = json!("odd")), None);
    }

    #[test]
    fn what_cannot_be_guessed_makes_no_snapshot() {
        for field in ["head", "base", "state", "updated_at"] {
            assert_eq!(seen(|pull| pull[field] = Value::Null), None, "{field}");
        }
        assert_eq!(seen(|pull| pull["user"] = Value::Null).unwrap().author.as_str(), "ghost");
    }

    #[test]
    fn the_first_allowed_merge_method_is_taken() {
        let method = |repo: Value| serde_json::from_value::<Repo>(repo).unwrap().merge_method();
        assert_eq!(method(json!({"id": 1})), None);
        assert_eq!(method(json!({"id": 1, "allow_merge_commit": true, "allow_squash_merge": true})), Some("merge"));
        assert_eq!(method(json!({"id": 1, "allow_merge_commit": false, "allow_squash_merge": true})), Some("squash"));
    }
}
