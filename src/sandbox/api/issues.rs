//! `/repos/…/issues`: comments, reactions, labels. A pull is an issue here, and nothing else is.

use serde_json::{Value, json};

use super::Desk;
use crate::sandbox::act::talk::Fresh;
use crate::sandbox::http::Reply;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::Role;

pub(super) fn serve(desk: &mut Desk<'_>, rest: &[&str]) -> Answer<Reply> {
    if let ["comments", id, rest @ ..] = rest {
        let id = id.parse().map_err(|_| Refusal::not_found())?;
        desk.state.repo(&desk.repo)?.comment(id)?;
        return match rest {
            [] => comment(desk, id),
            ["reactions"] => reactions(desk, id),
            ["reactions", reaction] if desk.call.method == "DELETE" => {
                let login = desk.require_someone(Role::Read)?;
                let reaction = reaction.parse().map_err(|_| Refusal::not_found())?;
                desk.state.unreact(&desk.repo, id, &login, reaction).map(|()| Reply::empty(204))
            }
            _ => Err(Refusal::not_found()),
        };
    }
    if rest.is_empty() && desk.call.method == "GET" {
        return list(desk);
    }
    let [number, rest @ ..] = rest else { return Err(Refusal::not_found()) };
    let number: u64 = number.parse().map_err(|_| Refusal::not_found())?;
    desk.state.repo(&desk.repo)?.pull(number)?;
    match (desk.call.method.as_str(), rest) {
        ("GET", []) => {
            let repo = desk.state.repo(&desk.repo)?;
            Ok(Reply::json(200, &shape::pull::issue(desk.state, &desk.call.base, repo, repo.pull(number)?)))
        }
        ("GET" | "POST", ["comments"]) => comments(desk, number),
        ("GET" | "POST", ["labels"]) => labels(desk, number),
        _ => Err(Refusal::not_found()),
    }
}

/// Every pull is an issue; there are no others.
fn list(desk: &Desk<'_>) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let want = desk.call.query.get("state").map_or("open", String::as_str);
    let of_state = repo.pulls.values().rev().filter(|pull| want == "all" || pull.is_open() == (want == "open"));
    let shown = of_state.map(|pull| shape::pull::issue(desk.state, &desk.call.base, repo, pull)).collect();
    Ok(desk.call.page(shown, None))
}

fn shown(desk: &Desk<'_>, id: u64) -> Answer<Value> {
    let repo = desk.state.repo(&desk.repo)?;
    Ok(shape::talk::comment(desk.state, &desk.call.base, repo, repo.comment(id)?))
}

fn body_text(desk: &Desk<'_>) -> Answer<String> {
    let body = desk.call.texts(&["body"])?;
    Ok(body["body"].as_str().unwrap_or_default().to_owned())
}

fn comments(desk: &mut Desk<'_>, number: u64) -> Answer<Reply> {
    if desk.call.method == "POST" {
        let login = desk.require_someone(Role::Read)?;
        let text = body_text(desk)?;
        let id = desk.state.comment(&desk.repo, number, &login, &text)?;
        return Ok(Reply::json(201, &shown(desk, id)?));
    }
    let repo = desk.state.repo(&desk.repo)?;
    let since = desk.call.query.get("since");
    let all = repo.comments.iter().filter(|comment| comment.number == number);
    let kept = all.filter(|comment| since.is_none_or(|since| comment.updated_at.as_str() >= since.as_str()));
    let shown = kept.map(|comment| shape::talk::comment(desk.state, &desk.call.base, repo, comment)).collect();
    Ok(desk.call.page(shown, None))
}

fn comment(desk: &mut Desk<'_>, id: u64) -> Answer<Reply> {
    if desk.call.method == "GET" {
        return Ok(Reply::json(200, &shown(desk, id)?));
    }
    let login = desk.require_someone(Role::Read)?;
    if desk.state.repo(&desk.repo)?.comment(id)?.author != login {
        desk.require(Role::Write)?;
    }
    match desk.call.method.as_str() {
        // Some clients send POST where PATCH is documented.
        "PATCH" | "POST" => {
            let text = body_text(desk)?;
            desk.state.edit_comment(&desk.repo, id, &login, &text)?;
            Ok(Reply::json(200, &shown(desk, id)?))
        }
        "DELETE" => desk.state.delete_comment(&desk.repo, id, &login).map(|()| Reply::empty(204)),
        _ => Err(Refusal::not_found()),
    }
}

fn reactions(desk: &mut Desk<'_>, id: u64) -> Answer<Reply> {
    if desk.call.method == "POST" {
        let login = desk.require_someone(Role::Read)?;
        let body = desk.call.texts(&["content"])?;
        let (reaction, fresh) = desk.state.react(&desk.repo, id, &login, body["content"].as_str().unwrap_or(""))?;
        let status = if fresh == Fresh::New { 201 } else { 200 };
        return Ok(Reply::json(status, &shape::talk::reaction(desk.state, &desk.call.base, &reaction)));
    }
    let all = &desk.state.repo(&desk.repo)?.comment(id)?.reactions;
    let want = desk.call.query.get("content");
    let kept = all.iter().filter(|reaction| want.is_none_or(|want| reaction.content == *want));
    let shown = kept.map(|reaction| shape::talk::reaction(desk.state, &desk.call.base, reaction)).collect();
    Ok(desk.call.page(shown, None))
}

fn labels(desk: &mut Desk<'_>, number: u64) -> Answer<Reply> {
    if desk.call.method == "POST" {
        desk.require_someone(Role::Write)?;
        let body = desk.call.json()?;
        let list = if body.is_array() { &body } else { &body["labels"] };
        let names: Vec<String> =
            list.as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        let pull = desk.state.repo_mut(&desk.repo)?.pull_mut(number)?;
        for name in names {
            if !pull.labels.contains(&name) {
                pull.labels.push(name);
            }
        }
        desk.state.touch();
    }
    let repo = desk.state.repo(&desk.repo)?;
    let issue = shape::pull::issue(desk.state, &desk.call.base, repo, repo.pull(number)?);
    Ok(Reply::json(200, issue.get("labels").unwrap_or(&json!([]))))
}
