//! The life of a pull: opened, edited, merged, closed. Never lets a protected branch take what its checks forbid.

use serde_json::{Value, json};

use crate::sandbox::git::Merged;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::shape::check::{newest, passes};
use crate::sandbox::shape::pull::Depth;
use crate::sandbox::world::{Happening, MergeRecord, Pull, PullState, Repo, State, now};

/// A pull to open.
#[derive(Clone, Copy, Debug)]
pub struct NewPull<'a> {
    /// The branch with the change.
    pub head: &'a str,
    /// The branch it goes to.
    pub base: &'a str,
    /// The title.
    pub title: &'a str,
    /// The description.
    pub body: Option<&'a str>,
    /// Open or draft.
    pub state: PullState,
}

/// How to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeMethod {
    /// A merge commit.
    Merge,
    /// One commit with all changes.
    Squash,
    /// Each commit anew on the base.
    Rebase,
}

/// Whether the base has commits that a strict rule wants the head to have first.
pub fn is_behind(repo: &Repo, pull: &Pull) -> bool {
    let strict = repo.protections.get(&pull.base).is_some_and(|rule| rule.strict);
    let tip = repo.branches.get(&pull.base);
    strict && tip.is_some_and(|tip| !repo.git.contains(&pull.head_sha, tip).unwrap_or(true))
}

/// What a merge that a strict rule forbids is answered.
fn out_of_date(repo: &Repo, pull: &Pull) -> Refusal {
    let checks = repo.protections.get(&pull.base).map_or(&[][..], |rule| rule.checks.as_slice());
    match checks {
        [] => Refusal::new(409, "Head branch is out of date. Review and try the merge again."),
        [one] => Refusal::new(405, format!("Required status check \"{one}\" is expected.")),
        more => Refusal::new(405, format!("{0} of {0} required status checks are expected.", more.len())),
    }
}

/// Why a protected branch does not take the pull yet, in words; empty when it does.
pub fn missing(repo: &Repo, pull: &Pull) -> Vec<String> {
    let Some(rule) = repo.protections.get(&pull.base) else { return Vec::new() };
    let mut wants: Vec<String> = Vec::new();
    for name in &rule.checks {
        let run = repo.runs.iter().rev().find(|run| run.sha == pull.head_sha && run.name == *name);
        let by_run = run.is_some_and(|run| run.status == "completed" && passes(run.conclusion.as_deref()));
        let statuses = newest(repo, &pull.head_sha);
        let by_status = statuses.iter().any(|status| status.context == *name && status.state == "success");
        if !by_run && !by_status {
            wants.push(format!("Required status check \"{name}\" is expected."));
        }
    }
    let verdicts = verdicts(pull);
    let approvals = verdicts.iter().filter(|(_, state)| *state == "APPROVED").count();
    if approvals < rule.reviews as usize {
        wants.push(format!("At least {} approving review is required by reviewers with write access.", rule.reviews));
    }
    if rule.reviews > 0 && verdicts.iter().any(|(_, state)| *state == "CHANGES_REQUESTED") {
        wants.push("Changes were requested.".into());
    }
    wants
}

fn verdicts(pull: &Pull) -> Vec<(&str, &str)> {
    let mut newest: Vec<(&str, &str)> = Vec::new();
    for review in pull.reviews.iter().rev() {
        let opinion = matches!(review.state.as_str(), "APPROVED" | "CHANGES_REQUESTED" | "DISMISSED");
        if opinion && newest.iter().all(|(login, _)| *login != review.author) {
            newest.push((&review.author, &review.state));
        }
    }
    newest
}

/// Whether a check or status that nobody requires failed or is pending.
fn unstable(repo: &Repo, sha: &str) -> bool {
    let mut seen: Vec<&str> = Vec::new();
    let mut bad = newest(repo, sha).iter().any(|status| status.state != "success");
    for run in repo.runs.iter().rev().filter(|run| run.sha == sha) {
        if !seen.contains(&run.name.as_str()) {
            seen.push(&run.name);
            bad |= run.status != "completed" || !passes(run.conclusion.as_deref());
        }
    }
    bad
}

impl State {
    /// Sends `pull_request` about a pull.
    pub fn pull_event(&mut self, repo: &str, number: u64, action: &str, sender: &str, more: Value) -> Answer<()> {
        let base = self.base();
        let found = self.repo(repo)?;
        // A snapshot: what git says of the merge is not known yet when an event goes out.
        let depth = Depth { mergeable: None, mergeable_state: "unknown" };
        let pull = shape::pull::whole(self, &base, found, found.pull(number)?, &depth)?;
        let mut payload = json!({"number": number, "pull_request": pull});
        if let (Value::Object(map), Value::Object(more)) = (&mut payload, more) {
            map.extend(more);
        }
        self.emit(repo, "pull_request", action, sender, payload);
        Ok(())
    }

    /// Opens a pull.
    pub fn open_pull(&mut self, repo: &str, author: &str, new: &NewPull<'_>) -> Answer<u64> {
        let login = self.account(author)?.login.clone();
        let found = self.repo(repo)?;
        let head = new.head.rsplit_once(':').map_or(new.head, |(_, branch)| branch);
        let invalid = |field: &str| Refusal::field("PullRequest", "invalid", field, &format!("{field} is invalid"));
        let head_sha = found.branches.get(head).ok_or_else(|| invalid("head"))?.clone();
        let base_sha = found.branches.get(new.base).ok_or_else(|| invalid("base"))?.clone();
        if new.title.trim().is_empty() {
            return Err(Refusal::field("PullRequest", "missing_field", "title", "title can't be blank"));
        }
        let custom = |text: String| Refusal::field("PullRequest", "custom", "head", &text);
        if found.pulls.values().any(|pull| pull.is_open() && pull.head == head && pull.base == new.base) {
            return Err(custom(format!("A pull request already exists for {}:{head}.", found.owner)));
        }
        if found.git.contains(&base_sha, &head_sha)? {
            return Err(custom(format!("No commits between {} and {head}", new.base)));
        }
        let number = found.pulls.keys().next_back().copied().unwrap_or(0) + 1;
        found.git.point(&format!("refs/pull/{number}/head"), &head_sha)?;
        let pull = Pull {
            id: self.id(),
            issue_id: self.id(),
            number,
            title: new.title.to_owned(),
            body: new.body.filter(|body| !body.is_empty()).map(str::to_owned),
            author: login,
            base: new.base.to_owned(),
            base_sha,
            head: head.to_owned(),
            head_sha,
            state: if new.state == PullState::Draft { PullState::Draft } else { PullState::Open },
            merged: None,
            created_at: now(),
            updated_at: now(),
            closed_at: None,
            labels: Vec::new(),
            reviews: Vec::new(),
            happenings: Vec::new(),
            mergeable: None,
            test_merge: None,
        };
        self.repo_mut(repo)?.pulls.insert(number, pull);
        self.pull_event(repo, number, "opened", author, json!({}))?;
        Ok(number)
    }

    /// What git and the rules say now. The first asker after a push gets "unknown", as on GitHub.
    pub fn depth(&mut self, repo: &str, number: u64) -> Answer<Depth> {
        let found = self.repo(repo)?;
        let pull = found.pull(number)?;
        let tip = found.branches.get(&pull.base).cloned();
        let (Some(tip), true) = (tip, pull.is_open()) else {
            return Ok(Depth { mergeable: None, mergeable_state: "unknown" });
        };
        let head = pull.head_sha.clone();
        if let Some((base, of, clean)) = &pull.mergeable
            && *base == tip
            && *of == head
        {
            let state = word(found, pull);
            return Ok(Depth { mergeable: Some(*clean), mergeable_state: state });
        }
        let place = format!("refs/pull/{number}/merge");
        let test = match found.git.try_merge(&tip, &head)? {
            Merged::Tree(tree) => {
                let by = self.signature(&pull.author);
                let message = format!("Merge {head} into {tip}");
                let sha = found.git.commit_tree(&tree, &[&tip, &head], &message, &by)?;
                found.git.point(&place, &sha)?;
                Some(sha)
            }
            Merged::Conflict => {
                found.git.unpoint(&place)?;
                None
            }
        };
        let pull = self.repo_mut(repo)?.pull_mut(number)?;
        pull.mergeable = Some((tip, head, test.is_some()));
        pull.test_merge = test;
        Ok(Depth { mergeable: None, mergeable_state: "unknown" })
    }

    /// Changes title, description or base.
    pub fn edit_pull(&mut self, repo: &str, number: u64, sender: &str, change: &Value) -> Answer<()> {
        let branches = self.repo(repo)?.branches.clone();
        let pull = self.repo_mut(repo)?.pull_mut(number)?;
        let mut changes = json!({});
        if let Some(title) = change["title"].as_str().filter(|title| *title != pull.title) {
            changes["title"] = json!({"from": pull.title});
            title.clone_into(&mut pull.title);
        }
        if let Some(body) = change["body"].as_str().filter(|body| pull.body.as_deref() != Some(*body)) {
            changes["body"] = json!({"from": pull.body.clone().unwrap_or_default()});
            pull.body = Some(body.to_owned()).filter(|body| !body.is_empty());
        }
        if let Some(base) = change["base"].as_str().filter(|base| *base != pull.base) {
            let tip = branches
                .get(base)
                .ok_or_else(|| Refusal::field("PullRequest", "invalid", "base", "base is invalid"))?;
            changes["base"] = json!({"ref": {"from": pull.base}, "sha": {"from": pull.base_sha}});
            base.clone_into(&mut pull.base);
            pull.base_sha.clone_from(tip);
        }
        if changes.as_object().is_some_and(serde_json::Map::is_empty) {
            return Ok(());
        }
        pull.updated_at = now();
        self.pull_event(repo, number, "edited", sender, json!({"changes": changes}))
    }

    /// Draft to ready or back.
    pub fn set_draft(&mut self, repo: &str, number: u64, sender: &str, to: PullState) -> Answer<()> {
        let after = self.last_id;
        let pull = self.repo_mut(repo)?.pull_mut(number)?;
        if !pull.is_open() || pull.state == to || to == PullState::Closed {
            return Ok(());
        }
        pull.state = to;
        let (action, text) = match to {
            PullState::Draft => ("converted_to_draft", "made this a draft"),
            _ => ("ready_for_review", "marked this as ready for review"),
        };
        pull.happenings.push(Happening { after, at: now(), login: sender.to_owned(), text: text.into() });
        self.pull_event(repo, number, action, sender, json!({}))
    }

    /// Closes without merging; again is harmless.
    pub fn close(&mut self, repo: &str, number: u64, sender: &str) -> Answer<()> {
        let after = self.last_id;
        let pull = self.repo_mut(repo)?.pull_mut(number)?;
        if !pull.is_open() {
            return Ok(());
        }
        pull.state = PullState::Closed;
        pull.closed_at = Some(now());
        pull.updated_at = now();
        pull.happenings.push(Happening { after, at: now(), login: sender.to_owned(), text: "closed this".into() });
        self.pull_event(repo, number, "closed", sender, json!({}))
    }

    /// Opens a closed pull again.
    pub fn reopen(&mut self, repo: &str, number: u64, sender: &str) -> Answer<()> {
        let after = self.last_id;
        let branches = self.repo(repo)?.branches.clone();
        let pull = self.repo_mut(repo)?.pull_mut(number)?;
        if pull.is_open() {
            return Ok(());
        }
        let (Some(head), Some(base), None) = (branches.get(&pull.head), branches.get(&pull.base), &pull.merged) else {
            return Err(Refusal::field("PullRequest", "invalid", "state", "state cannot be changed."));
        };
        pull.head_sha.clone_from(head);
        pull.base_sha.clone_from(base);
        pull.state = PullState::Open;
        pull.closed_at = None;
        pull.mergeable = None;
        pull.happenings.push(Happening { after, at: now(), login: sender.to_owned(), text: "reopened this".into() });
        let head = head.clone();
        self.repo(repo)?.git.point(&format!("refs/pull/{number}/head"), &head)?;
        self.pull_event(repo, number, "reopened", sender, json!({}))
    }

    /// Merges, if git and the rules allow it. `expected` is the head that the caller saw.
    pub fn merge(
        &mut self,
        repo: &str,
        number: u64,
        by: &str,
        method: MergeMethod,
        expected: Option<&str>,
    ) -> Answer<String> {
        let author = self.signature(by);
        let found = self.repo(repo)?;
        let pull = found.pull(number)?;
        if expected.is_some_and(|sha| sha != pull.head_sha) {
            return Err(Refusal::new(409, "Head branch was modified. Review and try the merge again."));
        }
        let stuck = || Refusal::new(405, "Pull Request is not mergeable");
        match pull.state {
            PullState::Open => {}
            PullState::Draft => return Err(Refusal::new(405, "Pull Request is still a draft")),
            PullState::Closed => return Err(stuck()),
        }
        if let Some(reason) = missing(found, pull).first() {
            return Err(Refusal::new(405, reason.clone()));
        }
        if is_behind(found, pull) {
            return Err(out_of_date(found, pull));
        }
        let tip = found.branches.get(&pull.base).ok_or_else(stuck)?.clone();
        let Merged::Tree(tree) = found.git.try_merge(&tip, &pull.head_sha)? else { return Err(stuck()) };
        let sha = match method {
            MergeMethod::Merge => {
                let message =
                    format!("Merge pull request #{number} from {}/{}\n\n{}", found.owner, pull.head, pull.title);
                found.git.commit_tree(&tree, &[&tip, &pull.head_sha], &message, &author)?
            }
            MergeMethod::Squash => {
                found.git.commit_tree(&tree, &[&tip], &format!("{} (#{number})", pull.title), &author)?
            }
            MergeMethod::Rebase => {
                let rebased = found.git.rebased(&tip, &pull.head_sha, &author)?;
                rebased.ok_or_else(|| Refusal::new(405, "This branch can't be rebased"))?
            }
        };
        found.git.point(&format!("refs/heads/{}", pull.base), &sha)?;
        self.mark_merged(repo, number, &sha, by)?;
        self.sync(repo, by)?;
        Ok(sha)
    }

    /// Merges the base into the head's branch, as the button of a branch that is behind does.
    pub fn update_branch(&mut self, repo: &str, number: u64, by: &str, expected: Option<&str>) -> Answer<()> {
        let author = self.signature(by);
        let found = self.repo(repo)?;
        let pull = found.pull(number)?;
        if expected.is_some_and(|sha| sha != pull.head_sha) {
            return Err(Refusal::new(422, "expected head sha didn't match current head ref."));
        }
        let tip = found.branches.get(&pull.base).ok_or_else(Refusal::not_found)?;
        let Merged::Tree(tree) = found.git.try_merge(&pull.head_sha, tip)? else {
            return Err(Refusal::new(422, "merge conflict between base and head"));
        };
        if found.git.contains(&pull.head_sha, tip)? {
            return Err(Refusal::new(422, "There are no new commits on the base branch."));
        }
        let message = format!("Merge branch '{}' into {}", pull.base, pull.head);
        let sha = found.git.commit_tree(&tree, &[&pull.head_sha, tip], &message, &author)?;
        found.git.point(&format!("refs/heads/{}", pull.head), &sha)?;
        self.sync(repo, by)
    }

    /// Records that a pull's commits are in its base.
    pub fn mark_merged(&mut self, repo: &str, number: u64, sha: &str, by: &str) -> Answer<()> {
        let after = self.last_id;
        let pull = self.repo_mut(repo)?.pull_mut(number)?;
        pull.state = PullState::Closed;
        pull.merged = Some(MergeRecord { sha: sha.to_owned(), by: by.to_owned(), at: now() });
        pull.closed_at = Some(now());
        pull.updated_at = now();
        let text = format!("merged this as {}", sha.get(..7).unwrap_or(sha));
        pull.happenings.push(Happening { after, at: now(), login: by.to_owned(), text });
        self.pull_event(repo, number, "closed", by, json!({}))
    }
}

fn word(repo: &Repo, pull: &Pull) -> &'static str {
    if pull.state == PullState::Draft {
        "draft"
    } else if matches!(pull.mergeable, Some((_, _, false))) {
        "dirty"
    } else if !missing(repo, pull).is_empty() {
        "blocked"
    } else if is_behind(repo, pull) {
        "behind"
    } else if unstable(repo, &pull.head_sha) {
        "unstable"
    } else {
        "clean"
    }
}
