//! `/repos/…/pulls`. Never decides what may be merged.

use serde_json::{Value, json};

use super::Desk;
use crate::sandbox::act::pull::{MergeMethod, NewPull};
use crate::sandbox::act::talk::Verdict;
use crate::sandbox::http::Reply;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::{PullState, Role};

pub(super) fn serve(desk: &mut Desk<'_>, rest: &[&str]) -> Answer<Reply> {
    match (desk.call.method.as_str(), rest) {
        ("GET", []) => list(desk),
        ("POST", []) => create(desk),
        (_, [number, rest @ ..]) => {
            let number = number.parse().map_err(|_| Refusal::not_found())?;
            desk.state.repo(&desk.repo)?.pull(number)?;
            one(desk, number, rest)
        }
        _ => Err(Refusal::not_found()),
    }
}

fn one(desk: &mut Desk<'_>, number: u64, rest: &[&str]) -> Answer<Reply> {
    match (desk.call.method.as_str(), rest) {
        ("GET", []) => match desk.call.header("accept").unwrap_or("") {
            kind if kind.contains("diff") => text(desk, number, "diff"),
            kind if kind.contains("patch") => text(desk, number, "patch"),
            _ => Ok(Reply::json(200, &whole(desk, number)?)),
        },
        ("PATCH", []) => edit(desk, number),
        ("GET", ["files"]) => files(desk, number),
        ("GET", ["commits"]) => commits(desk, number),
        ("GET", ["comments"]) => Ok(desk.call.page(Vec::new(), None)),
        ("GET", ["requested_reviewers"]) => Ok(Reply::json(200, &json!({"users": [], "teams": []}))),
        ("GET", ["merge"]) => {
            let merged = desk.state.repo(&desk.repo)?.pull(number)?.merged.is_some();
            Ok(Reply::empty(if merged { 204 } else { 404 }))
        }
        ("PUT", ["merge"]) => merge(desk, number),
        ("PUT", ["update-branch"]) => {
            let login = desk.require_someone(Role::Write)?;
            let body = desk.call.texts(&["expected_head_sha"])?;
            desk.state.update_branch(&desk.repo, number, &login, body["expected_head_sha"].as_str())?;
            let url = format!("{}/pulls/{number}", desk.call.base.repo(desk.state.repo(&desk.repo)?));
            Ok(Reply::json(202, &json!({"message": "Updating pull request branch.", "url": url})))
        }
        ("GET" | "POST", ["reviews"]) => reviews(desk, number),
        ("GET", ["reviews", id]) => review(desk, number, id.parse().unwrap_or(0)),
        ("PUT", ["reviews", id, "dismissals"]) => {
            let login = desk.require_someone(Role::Write)?;
            let id = id.parse().unwrap_or(0);
            desk.state.dismiss(&desk.repo, number, id, &login)?;
            review(desk, number, id)
        }
        _ => Err(Refusal::not_found()),
    }
}

fn whole(desk: &mut Desk<'_>, number: u64) -> Answer<Value> {
    let depth = desk.state.depth(&desk.repo, number)?;
    let repo = desk.state.repo(&desk.repo)?;
    shape::pull::whole(desk.state, &desk.call.base, repo, repo.pull(number)?, &depth)
}

fn list(desk: &Desk<'_>) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let query = &desk.call.query;
    let want = query.get("state").map_or("open", String::as_str);
    let head = query.get("head").map(|head| head.rsplit_once(':').map_or(head.as_str(), |(_, branch)| branch));
    let mut pulls: Vec<_> = repo
        .pulls
        .values()
        .filter(|pull| want == "all" || pull.is_open() == (want == "open"))
        .filter(|pull| head.is_none_or(|head| pull.head == head))
        .filter(|pull| query.get("base").is_none_or(|base| pull.base == *base))
        .collect();
    if query.get("direction").is_none_or(|direction| direction != "asc") {
        pulls.reverse();
    }
    let shown = pulls.into_iter().map(|pull| shape::pull::row(desk.state, &desk.call.base, repo, pull)).collect();
    Ok(desk.call.page(shown, None))
}

fn create(desk: &mut Desk<'_>) -> Answer<Reply> {
    let login = desk.require_someone(Role::Read)?;
    let body = desk.call.texts(&["head", "base", "title", "body"])?;
    let field = |key: &str| body[key].as_str().unwrap_or("");
    let state = if body["draft"].as_bool() == Some(true) { PullState::Draft } else { PullState::Open };
    let new =
        NewPull { head: field("head"), base: field("base"), title: field("title"), body: body["body"].as_str(), state };
    let number = desk.state.open_pull(&desk.repo, &login, &new)?;
    Ok(Reply::json(201, &whole(desk, number)?))
}

fn edit(desk: &mut Desk<'_>, number: u64) -> Answer<Reply> {
    let login = desk.require_someone(Role::Read)?;
    if desk.state.repo(&desk.repo)?.pull(number)?.author != login {
        desk.require(Role::Write)?;
    }
    let body = desk.call.texts(&["title", "body", "state", "base"])?;
    desk.state.edit_pull(&desk.repo, number, &login, &body)?;
    match body["state"].as_str() {
        Some("closed") => desk.state.close(&desk.repo, number, &login)?,
        Some("open") => desk.state.reopen(&desk.repo, number, &login)?,
        _ => {}
    }
    Ok(Reply::json(200, &whole(desk, number)?))
}

fn text(desk: &Desk<'_>, number: u64, kind: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let pull = repo.pull(number)?;
    let from = repo.git.merge_base(&pull.base_sha, &pull.head_sha).unwrap_or_else(|| pull.base_sha.clone());
    let text = if kind == "diff" {
        repo.git.diff_text(&from, &pull.head_sha)
    } else {
        repo.git.patch_text(&from, &pull.head_sha)
    };
    Ok(Reply::text(&format!("application/vnd.github.v3.{kind}; charset=utf-8"), text?))
}

fn files(desk: &Desk<'_>, number: u64) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let pull = repo.pull(number)?;
    let from = repo.git.merge_base(&pull.base_sha, &pull.head_sha).unwrap_or_else(|| pull.base_sha.clone());
    let changed = repo.git.changed(&from, &pull.head_sha)?;
    let shown = changed.iter().take(3000).map(|file| shape::commit::file(&desk.call.base, repo, &pull.head_sha, file));
    Ok(desk.call.page(shown.collect(), None))
}

fn commits(desk: &Desk<'_>, number: u64) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let pull = repo.pull(number)?;
    let between = repo.git.between(&pull.base_sha, &pull.head_sha)?;
    let shown = between.iter().take(250).map(|commit| shape::commit::whole(desk.state, &desk.call.base, repo, commit));
    Ok(desk.call.page(shown.collect(), None))
}

fn merge(desk: &mut Desk<'_>, number: u64) -> Answer<Reply> {
    let login = desk.require_someone(Role::Write)?;
    let body = desk.call.texts(&["merge_method", "sha", "commit_title", "commit_message"])?;
    let method = match body["merge_method"].as_str().unwrap_or("merge") {
        "merge" => MergeMethod::Merge,
        "squash" => MergeMethod::Squash,
        "rebase" => MergeMethod::Rebase,
        other => return Err(Refusal::wrong_type("merge_method", &json!(other), "one of merge, squash, rebase")),
    };
    let sha = desk.state.merge(&desk.repo, number, &login, method, body["sha"].as_str())?;
    Ok(Reply::json(200, &json!({"sha": sha, "merged": true, "message": "Pull Request successfully merged"})))
}

fn reviews(desk: &mut Desk<'_>, number: u64) -> Answer<Reply> {
    if desk.call.method == "POST" {
        let login = desk.require_someone(Role::Read)?;
        let body = desk.call.texts(&["event", "body", "commit_id"])?;
        let verdict = match body["event"].as_str() {
            Some("APPROVE") => Verdict::Approve,
            Some("REQUEST_CHANGES") => Verdict::RequestChanges,
            Some("COMMENT") => Verdict::Comment,
            None => Verdict::Pending,
            Some(_) => return Err(Refusal::unprocessable("event is not included in the list")),
        };
        let id = desk.state.review(&desk.repo, number, &login, verdict, body["body"].as_str().unwrap_or(""))?;
        return review(desk, number, id);
    }
    let repo = desk.state.repo(&desk.repo)?;
    let pull = repo.pull(number)?;
    let seen = pull.reviews.iter().filter(|review| review.state != "PENDING");
    let shown = seen.map(|review| shape::talk::review(desk.state, &desk.call.base, repo, pull, review)).collect();
    Ok(desk.call.page(shown, None))
}

fn review(desk: &Desk<'_>, number: u64, id: u64) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let pull = repo.pull(number)?;
    let review = pull.reviews.iter().find(|review| review.id == id).ok_or_else(Refusal::not_found)?;
    Ok(Reply::json(200, &shape::talk::review(desk.state, &desk.call.base, repo, pull, review)))
}
