//! JSON of a pull, as a pull, as an issue and as a row of a list. Never decides whether it can merge.

use serde_json::{Value, json};

use super::{Base, account, login, node, repo};
use crate::sandbox::refusal::Answer;
use crate::sandbox::world::{Origin, Pull, PullState, Repo, Role, State};

/// What only the whole pull knows, not the row of a list.
#[derive(Clone, Debug)]
pub struct Depth {
    /// Whether git can merge it; unknown at first.
    pub mergeable: Option<bool>,
    /// GitHub's word.
    pub mergeable_state: &'static str,
}

fn association(repo: &Repo, login: &str) -> &'static str {
    if repo.owner.eq_ignore_ascii_case(login) {
        "OWNER"
    } else if repo.role(login) >= Role::Write {
        "COLLABORATOR"
    } else {
        "NONE"
    }
}

/// How someone stands to a repository.
pub fn author_association(repo: &Repo, login: &str) -> Value {
    json!(association(repo, login))
}

fn side(state: &State, base: &Base, of: &Repo, branch: &str, sha: &str) -> Value {
    json!({
        "label": format!("{}:{branch}", of.owner),
        "ref": branch,
        "sha": sha,
        "user": login(state, base, &of.owner),
        "repo": repo(state, base, of, Role::Read),
    })
}

/// The head's side: a fork is another repository, or none when it was deleted.
fn head(state: &State, base: &Base, of: &Repo, pull: &Pull) -> Value {
    let mut head = side(state, base, of, &pull.head, &pull.head_sha);
    match of.forks.get(&pull.head) {
        None => {}
        Some(Origin::Gone) => {
            head["label"] = json!(format!("unknown:{}", pull.head));
            head["repo"] = Value::Null;
            head["user"] = Value::Null;
        }
        Some(Origin::Fork(id, owner)) => {
            head["label"] = json!(format!("{owner}:{}", pull.head));
            head["repo"]["id"] = json!(id);
            head["repo"]["full_name"] = json!(format!("{owner}/{}", of.name));
            head["repo"]["fork"] = json!(true);
            head["repo"]["owner"]["login"] = json!(owner);
        }
    }
    head
}

fn state_word(pull: &Pull) -> &'static str {
    if pull.is_open() { "open" } else { "closed" }
}

fn labels(base: &Base, repo: &Repo, pull: &Pull) -> Value {
    let one = |(at, name): (usize, &String)| {
        json!({
            "id": pull.id * 100 + at as u64, "node_id": node("LA", pull.id * 100 + at as u64), "name": name,
            "url": format!("{}/labels/{name}", base.repo(repo)), "color": "ededed", "default": false, "description": null,
        })
    };
    pull.labels.iter().enumerate().map(one).collect()
}

/// A pull as lists show it.
pub fn row(state: &State, base: &Base, repo: &Repo, pull: &Pull) -> Value {
    let (api, page) = (base.repo(repo), format!("{}/pull/{}", base.page(repo), pull.number));
    let (url, issue) = (format!("{api}/pulls/{}", pull.number), format!("{api}/issues/{}", pull.number));
    let statuses = format!("{api}/statuses/{}", pull.head_sha);
    let links = json!({
        "url": url,
        "id": pull.id,
        "node_id": node("PR", pull.id),
        "html_url": page,
        "diff_url": format!("{page}.diff"),
        "patch_url": format!("{page}.patch"),
        "issue_url": issue,
        "commits_url": format!("{url}/commits"),
        "review_comments_url": format!("{url}/comments"),
        "review_comment_url": format!("{api}/pulls/comments{{/number}}"),
        "comments_url": format!("{issue}/comments"),
        "statuses_url": statuses,
        "_links": {
            "self": {"href": url}, "html": {"href": page}, "issue": {"href": issue},
            "comments": {"href": format!("{issue}/comments")},
            "review_comments": {"href": format!("{url}/comments")},
            "review_comment": {"href": format!("{api}/pulls/comments{{/number}}")},
            "commits": {"href": format!("{url}/commits")}, "statuses": {"href": statuses},
        },
    });
    join(links, facts(state, base, repo, pull))
}

/// One object of two.
fn join(mut one: Value, other: Value) -> Value {
    if let (Value::Object(map), Value::Object(more)) = (&mut one, other) {
        map.extend(more);
    }
    one
}

fn facts(state: &State, base: &Base, repo: &Repo, pull: &Pull) -> Value {
    json!({
        "number": pull.number,
        "state": state_word(pull),
        "locked": false,
        "active_lock_reason": null,
        "title": pull.title,
        "user": login(state, base, &pull.author),
        "body": pull.body,
        "labels": labels(base, repo, pull),
        "milestone": null,
        "created_at": pull.created_at,
        "updated_at": pull.updated_at,
        "closed_at": pull.closed_at,
        "merged_at": pull.merged.as_ref().map(|merge| &merge.at),
        "merge_commit_sha": pull.merged.as_ref().map(|merge| &merge.sha).or(pull.test_merge.as_ref()),
        "assignee": null,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "head": head(state, base, repo, pull),
        "base": side(state, base, repo, &pull.base, &pull.base_sha),
        "author_association": association(repo, &pull.author),
        "auto_merge": null,
        "draft": pull.state == PullState::Draft,
    })
}

/// The whole pull.
pub fn whole(state: &State, base: &Base, repo: &Repo, pull: &Pull, depth: &Depth) -> Answer<Value> {
    let from = repo.git.merge_base(&pull.base_sha, &pull.head_sha).unwrap_or_else(|| pull.base_sha.clone());
    let files = repo.git.changed(&from, &pull.head_sha)?;
    let more = json!({
        "merged": pull.merged.is_some(),
        "mergeable": depth.mergeable,
        "rebaseable": depth.mergeable,
        "mergeable_state": depth.mergeable_state,
        "merged_by": pull.merged.as_ref().map(|merge| login(state, base, &merge.by)),
        "comments": repo.comments.iter().filter(|comment| comment.number == pull.number).count(),
        "review_comments": 0,
        "maintainer_can_modify": false,
        "commits": repo.git.between(&from, &pull.head_sha)?.len(),
        "additions": files.iter().map(|file| file.additions).sum::<u64>(),
        "deletions": files.iter().map(|file| file.deletions).sum::<u64>(),
        "changed_files": files.len(),
    });
    Ok(join(row(state, base, repo, pull), more))
}

/// The pull as an issue.
pub fn issue(state: &State, base: &Base, repo: &Repo, pull: &Pull) -> Value {
    let (api, page) = (base.repo(repo), format!("{}/pull/{}", base.page(repo), pull.number));
    let url = format!("{api}/issues/{}", pull.number);
    let links = json!({
        "url": url,
        "repository_url": api,
        "labels_url": format!("{url}/labels{{/name}}"),
        "comments_url": format!("{url}/comments"),
        "events_url": format!("{url}/events"),
        "html_url": page,
    });
    let facts = json!({
        "id": pull.issue_id,
        "node_id": node("I", pull.issue_id),
        "number": pull.number,
        "title": pull.title,
        "user": login(state, base, &pull.author),
        "labels": labels(base, repo, pull),
        "state": state_word(pull),
        "locked": false,
        "assignee": null,
        "assignees": [],
        "milestone": null,
        "comments": repo.comments.iter().filter(|comment| comment.number == pull.number).count(),
        "created_at": pull.created_at,
        "updated_at": pull.updated_at,
        "closed_at": pull.closed_at,
        "author_association": association(repo, &pull.author),
        "active_lock_reason": null,
        "draft": pull.state == PullState::Draft,
        "pull_request": {
            "url": format!("{api}/pulls/{}", pull.number), "html_url": page, "diff_url": format!("{page}.diff"),
            "patch_url": format!("{page}.patch"), "merged_at": pull.merged.as_ref().map(|merge| &merge.at),
        },
        "body": pull.body,
        "closed_by": null,
        "reactions": super::talk::rollup(&format!("{url}/reactions"), &[]),
        "timeline_url": format!("{url}/timeline"),
        "performed_via_github_app": null,
        "state_reason": null,
    });
    join(links, facts)
}

/// The short form that a check run carries.
pub fn mention(base: &Base, repo: &Repo, pull: &Pull) -> Value {
    let api = base.repo(repo);
    let place = json!({"id": repo.id, "url": api, "name": repo.name});
    json!({
        "id": pull.id, "number": pull.number, "url": format!("{api}/pulls/{}", pull.number),
        "head": {"ref": pull.head, "sha": pull.head_sha, "repo": place},
        "base": {"ref": pull.base, "sha": pull.base_sha, "repo": place},
    })
}

/// The person behind a pull commit, or null.
pub fn commit_user(state: &State, base: &Base, email: &str) -> Value {
    state.by_email(email).map_or(Value::Null, |found| account(base, found))
}
