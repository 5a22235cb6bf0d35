//! Moves of branches: a commit through the API or a push through git, and what follows for the pulls.
//! Never writes to a pull's own refs on behalf of a pusher.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Files;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::{Happening, State, now};

const ZERO: &str = "0000000000000000000000000000000000000000";

impl State {
    /// Commits files to a branch, which is made from `main` when it is missing.
    pub fn commit(
        &mut self,
        repo: &str,
        branch: &str,
        files: &Files<'_>,
        message: &str,
        author: &str,
    ) -> Answer<String> {
        let by = self.signature(author);
        let found = self.repo(repo)?;
        let parent = found.branches.get(branch).or_else(|| found.branches.get("main")).cloned();
        let sha = found.git.commit(branch, parent.as_deref(), files, message, &by)?;
        self.sync(repo, author)?;
        Ok(sha)
    }

    /// Looks where the branches are now and does what follows: `push`, `synchronize`, closing and merging.
    pub fn sync(&mut self, repo: &str, pusher: &str) -> Answer<()> {
        let found = self.repo_mut(repo)?;
        let new = found.git.branches()?;
        let old: BTreeMap<String, String> = std::mem::replace(&mut found.branches, new.clone());
        let gone =
            old.iter().filter(|(name, _)| !new.contains_key(*name)).map(|(name, _)| (name.clone(), ZERO.to_owned()));
        let moved = new.iter().filter(|(name, sha)| old.get(*name) != Some(sha)).map(|(n, s)| (n.clone(), s.clone()));
        for (branch, after) in gone.chain(moved).collect::<Vec<_>>() {
            let before = old.get(&branch).cloned().unwrap_or_else(|| ZERO.to_owned());
            self.push_event(repo, &branch, &before, &after, pusher)?;
            if after == ZERO {
                self.close_of_branch(repo, &branch, pusher)?;
            } else {
                self.follow_head(repo, &branch, &before, &after, pusher)?;
                self.follow_base(repo, &branch, &after, pusher)?;
            }
        }
        Ok(())
    }

    fn push_event(&mut self, repo: &str, branch: &str, before: &str, after: &str, pusher: &str) -> Answer<()> {
        let base = self.base();
        let found = self.repo(repo)?;
        let git = &found.git;
        let (created, deleted) = (before == ZERO, after == ZERO);
        let forced = !created && !deleted && !git.contains(after, before)?;
        let commits = match (created, deleted) {
            (false, false) => git.between(before, after)?,
            (true, false) => git.history(after, 1)?,
            _ => Vec::new(),
        };
        let mut shown: Vec<Value> = Vec::new();
        for commit in commits.iter().rev().take(20).rev() {
            let files = commit.parents.first().map_or_else(|| Ok(Vec::new()), |from| git.changed(from, &commit.sha))?;
            shown.push(shape::commit::pushed(self, &base, found, commit, &files));
        }
        let email = self.signature(pusher).email;
        let payload = json!({
            "ref": format!("refs/heads/{branch}"), "before": before, "after": after, "created": created,
            "deleted": deleted, "forced": forced, "base_ref": null,
            "compare": format!("{}/compare/{before}...{after}", base.page(found)),
            "head_commit": shown.last(), "commits": shown, "pusher": {"name": pusher, "email": email},
        });
        self.emit(repo, "push", "", pusher, payload);
        Ok(())
    }

    fn follow_head(&mut self, repo: &str, branch: &str, before: &str, after: &str, pusher: &str) -> Answer<()> {
        let place = self.last_id;
        let found = self.repo_mut(repo)?;
        let tips = found.branches.clone();
        let mut moved = Vec::new();
        for pull in found.pulls.values_mut().filter(|pull| pull.is_open() && pull.head == branch) {
            pull.head_sha = after.to_owned();
            if let Some(tip) = tips.get(&pull.base) {
                pull.base_sha.clone_from(tip);
            }
            pull.updated_at = now();
            pull.mergeable = None;
            let text = format!("pushed {}", after.get(..7).unwrap_or(after));
            pull.happenings.push(Happening { after: place, at: now(), login: pusher.to_owned(), text });
            moved.push(pull.number);
        }
        for number in moved {
            let git = &self.repo(repo)?.git;
            git.point(&format!("refs/pull/{number}/head"), after)?;
            self.pull_event(repo, number, "synchronize", pusher, json!({"before": before, "after": after}))?;
        }
        Ok(())
    }

    fn follow_base(&mut self, repo: &str, branch: &str, tip: &str, pusher: &str) -> Answer<()> {
        let found = self.repo(repo)?;
        let of_base: Vec<(u64, String)> = found
            .pulls
            .values()
            .filter(|pull| pull.is_open() && pull.base == branch)
            .map(|pull| (pull.number, pull.head_sha.clone()))
            .collect();
        for (number, head) in of_base {
            if self.repo(repo)?.git.contains(tip, &head)? {
                self.mark_merged(repo, number, tip, pusher)?;
            }
        }
        Ok(())
    }

    fn close_of_branch(&mut self, repo: &str, branch: &str, pusher: &str) -> Answer<()> {
        let pulls = self.repo(repo)?.pulls.values();
        let numbers: Vec<u64> = pulls.filter(|pull| pull.is_open() && pull.head == branch).map(|p| p.number).collect();
        for number in numbers {
            self.close(repo, number, pusher)?;
        }
        Ok(())
    }

    /// Makes or moves a branch by name.
    pub fn set_branch(&mut self, repo: &str, branch: &str, sha: &str, pusher: &str) -> Answer<()> {
        let found = self.repo(repo)?;
        let sha = found.git.resolve(sha).ok_or_else(|| Refusal::new(422, "Object does not exist"))?;
        found.git.point(&format!("refs/heads/{branch}"), &sha)?;
        self.sync(repo, pusher)
    }

    /// Deletes a branch, which closes its pull.
    pub fn delete_branch(&mut self, repo: &str, branch: &str, pusher: &str) -> Answer<()> {
        let found = self.repo(repo)?;
        if !found.branches.contains_key(branch) {
            return Err(Refusal::new(422, "Reference does not exist"));
        }
        found.git.unpoint(&format!("refs/heads/{branch}"))?;
        self.sync(repo, pusher)
    }
}
