//! Pulls: how they look, who reviewed and wrote them, and merging one. It never decides whether to merge.

use std::collections::BTreeMap;

use serde_json::json;

use super::GitHub;
use super::paging::Shape;
use super::request::{Ask, Whose, repo_path, segment};
use super::wire::{self, Pull, PullCommit, PullReview};
use crate::domain::approval::{Review, Verdict};
use crate::domain::ids::{Login, Sha};
use crate::domain::pull::{PullState, Seen};
use crate::ports::forge::{ForgeError, PullRef, RepoRef};

/// GitHub lists no more commits of a pull than this; there may be others.
const LISTED_COMMITS: usize = 250;

/// The committer of what is committed on GitHub's pages: nobody.
const WEB_FLOW: &str = "web-flow";

impl GitHub {
    pub(super) async fn get_pull(&self, pull: &PullRef) -> Result<Seen, ForgeError> {
        let path = pull_path(pull)?;
        let found: Pull = self.ask(Whose::Repo(&pull.repo.name), &Ask::get(&path)).await?.read()?;
        found
            .seen(pull.repo.key.id, &pull.repo.name)
            .ok_or_else(|| ForgeError::Unreadable(format!("GET {path}: the answer lacks head, base, state or time")))
    }

    pub(super) async fn list_open_pulls(&self, repo: &RepoRef) -> Result<Vec<(u64, Seen)>, ForgeError> {
        let path = format!("{}/pulls?state=open", repo_path(&repo.name)?);
        let pulls: Vec<Pull> = self.list(Whose::Repo(&repo.name), &path, Shape::Array).await?;
        Ok(pulls.iter().filter_map(|pull| Some((pull.number?, pull.seen(repo.key.id, &repo.name)?))).collect())
    }

    pub(super) async fn newest_reviews(&self, pull: &PullRef) -> Result<Vec<Review>, ForgeError> {
        let path = format!("{}/reviews", pull_path(pull)?);
        let reviews: Vec<PullReview> = self.list(Whose::Repo(&pull.repo.name), &path, Shape::Array).await?;
        Ok(newest(reviews.iter().filter_map(PullReview::seen)))
    }

    pub(super) async fn list_committers(&self, pull: &PullRef) -> Result<Vec<Login>, ForgeError> {
        let whose = Whose::Repo(&pull.repo.name);
        let path = format!("{}/commits", pull_path(pull)?);
        let mut commits: Vec<PullCommit> = self.list(whose, &path, Shape::Array).await?;
        if commits.len() >= LISTED_COMMITS {
            // A long pull must not hide who wrote its newest commits: the comparison lists them all.
            let seen = self.get_pull(pull).await?;
            let range = format!("{}...{}", segment(seen.base.as_str()), segment(seen.head.as_str()));
            let path = format!("{}/compare/{range}", repo_path(&pull.repo.name)?);
            commits.extend(self.list::<PullCommit>(whose, &path, Shape::Under("commits")).await?);
        }
        Ok(people(&commits))
    }

    pub(super) async fn merge_pull(&self, pull: &PullRef, head: &Sha) -> Result<(), ForgeError> {
        let whose = Whose::Repo(&pull.repo.name);
        let repo: wire::Repo = self.ask(whose, &Ask::get(repo_path(&pull.repo.name)?)).await?.read()?;
        let mut body = json!({ "sha": head.as_str() });
        if let Some(method) = repo.merge_method() {
            body["merge_method"] = json!(method);
        }
        match self.ask(whose, &Ask::put(format!("{}/merge", pull_path(pull)?), body)).await {
            Ok(_) => Ok(()),
            Err(ForgeError::Conflict(said)) => match self.get_pull(pull).await?.state {
                PullState::Merged => Ok(()),
                PullState::Open | PullState::Closed => Err(ForgeError::Conflict(said)),
            },
            Err(error) => Err(error),
        }
    }
}

fn pull_path(pull: &PullRef) -> Result<String, ForgeError> {
    Ok(format!("{}/pulls/{}", repo_path(&pull.repo.name)?, pull.number))
}

/// Each reviewer's newest verdict, oldest first. A comment changes no verdict.
fn newest(reviews: impl Iterator<Item = Review>) -> Vec<Review> {
    let mut by_person: BTreeMap<String, Review> = BTreeMap::new();
    for review in reviews.filter(|review| review.verdict != Verdict::Commented) {
        let person = review.by.as_str().to_lowercase();
        let newer = by_person.get(&person).is_none_or(|kept| (kept.at, kept.id) <= (review.at, review.id));
        if newer {
            by_person.insert(person, review);
        }
    }
    let mut found: Vec<Review> = by_person.into_values().collect();
    found.sort_by_key(|review| (review.at, review.id));
    found
}

fn people(commits: &[PullCommit]) -> Vec<Login> {
    let both = commits.iter().flat_map(|commit| [commit.author.as_ref(), commit.committer.as_ref()]);
    let mut found: Vec<Login> = both.filter_map(wire::login).filter(|login| login.as_str() != WEB_FLOW).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::Timestamp;

    fn review(id: u64, by: &str, verdict: Verdict, at: i64) -> Review {
        Review { id, by: Login::from(by), verdict, head: Sha::from("aa"), at: Timestamp(at) }
    }

    #[test]
    fn the_newest_verdict_of_each_person_stands() {
        let given = vec![
            review(1, "ann", Verdict::Approved, 10),
            review(2, "Ann", Verdict::ChangesRequested, 20),
            review(3, "ann", Verdict::Commented, 30),
            review(4, "bob", Verdict::ChangesRequested, 15),
            review(5, "bob", Verdict::Dismissed, 25),
            review(6, "cy", Verdict::Commented, 5),
        ];
        let found: Vec<(u64, Verdict)> = newest(given.into_iter()).iter().map(|r| (r.id, r.verdict)).collect();
        assert_eq!(found, [(2, Verdict::ChangesRequested), (5, Verdict::Dismissed)]);
    }
}
