//! `/repos/…/git`: blobs, trees, commits and refs, as git has them. Writes branches only.

use base64::Engine;
use serde_json::{Value, json};

use super::Desk;
use crate::sandbox::http::Reply;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::{Repo, Role};

pub(super) fn serve(desk: &mut Desk<'_>, rest: &[&str]) -> Answer<Reply> {
    match (desk.call.method.as_str(), rest) {
        ("GET", ["blobs", sha]) => blob(desk, sha),
        ("GET", ["trees", name @ ..]) => tree(desk, &name.join("/")),
        ("GET", ["commits", sha]) => commit(desk, sha),
        ("GET", ["refs"]) => matching(desk, ""),
        // One ref by its whole name, as older clients ask; all below it otherwise.
        ("GET", ["ref" | "refs", name @ ..]) => reference(desk, 200, &name.join("/")),
        ("GET", ["matching-refs", name @ ..]) => matching(desk, &name.join("/")),
        ("POST", ["refs"]) => create(desk),
        ("PATCH", ["refs", "heads", name @ ..]) => {
            let login = desk.require_someone(Role::Write)?;
            let (name, body) = (name.join("/"), desk.call.texts(&["sha"])?);
            let sha = body["sha"].as_str().unwrap_or("");
            let repo = desk.state.repo(&desk.repo)?;
            let old = repo.branches.get(&name).ok_or_else(|| Refusal::new(422, "Reference does not exist"))?;
            if body["force"].as_bool() != Some(true)
                && repo.git.resolve(sha).is_some()
                && !repo.git.contains(sha, old)?
            {
                return Err(Refusal::new(422, "Update is not a fast forward"));
            }
            desk.state.set_branch(&desk.repo, &name, sha, &login)?;
            reference(desk, 200, &format!("heads/{name}"))
        }
        ("DELETE", ["refs", "heads", name @ ..]) => {
            let login = desk.require_someone(Role::Write)?;
            desk.state.delete_branch(&desk.repo, &name.join("/"), &login).map(|()| Reply::empty(204))
        }
        _ => Err(Refusal::not_found()),
    }
}

fn create(desk: &mut Desk<'_>) -> Answer<Reply> {
    let login = desk.require_someone(Role::Write)?;
    let body = desk.call.texts(&["ref", "sha"])?;
    let name = body["ref"].as_str().and_then(|name| name.strip_prefix("refs/heads/")).unwrap_or("").to_owned();
    if name.is_empty() {
        return Err(Refusal::new(422, "Reference name must start with 'refs/'."));
    }
    if desk.state.repo(&desk.repo)?.branches.contains_key(&name) {
        return Err(Refusal::new(422, "Reference already exists"));
    }
    desk.state.set_branch(&desk.repo, &name, body["sha"].as_str().unwrap_or(""), &login)?;
    reference(desk, 201, &format!("heads/{name}"))
}

/// Objects are asked for by their whole id.
fn object(repo: &Repo, sha: &str, kind: &str) -> Answer<Vec<u8>> {
    if sha.len() != 40 || !sha.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Refusal::not_found());
    }
    let found = repo.git.output(&["cat-file", kind, sha], b"")?;
    if found.status.success() { Ok(found.stdout) } else { Err(Refusal::not_found()) }
}

fn blob(desk: &Desk<'_>, sha: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let bytes = object(repo, sha, "blob")?;
    if desk.call.header("accept").is_some_and(|kind| kind.contains("raw")) {
        return Ok(Reply::text("application/vnd.github.raw; charset=utf-8", bytes));
    }
    let text = base64::engine::general_purpose::STANDARD.encode(&bytes);
    Ok(Reply::json(
        200,
        &json!({
            "sha": sha, "node_id": format!("B_kwSB{sha}"), "size": bytes.len(),
            "url": format!("{}/git/blobs/{sha}", desk.call.base.repo(repo)),
            "content": shape::commit::lines(&text), "encoding": "base64",
        }),
    ))
}

fn tree(desk: &Desk<'_>, name: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let name = if name.is_empty() || name.starts_with('-') { return Err(Refusal::not_found()) } else { name };
    let found = repo.git.output(&["rev-parse", "-q", "--verify", &format!("{name}^{{tree}}")], b"")?;
    if !found.status.success() {
        return Err(Refusal::not_found());
    }
    let sha = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let mut args = vec!["ls-tree", "-z", "-l"];
    if desk.call.query.get("recursive").is_some_and(|value| !value.is_empty()) {
        args.extend(["-r", "-t"]);
    }
    args.push(&sha);
    let listing = String::from_utf8_lossy(&repo.git.run(&args, b"")?).into_owned();
    let api = desk.call.base.repo(repo);
    let row = |line: &str| -> Option<Value> {
        let (meta, path) = line.split_once('\t')?;
        let [mode, kind, sha, size] = meta.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let folder = if kind == "tree" { "trees" } else { "blobs" };
        let mut row = json!({
            "path": path, "mode": mode, "type": kind, "sha": sha, "url": format!("{api}/git/{folder}/{sha}"),
        });
        if let Ok(size) = size.parse::<u64>() {
            row["size"] = json!(size);
        }
        Some(row)
    };
    let rows: Vec<Value> = listing.split('\0').filter_map(row).collect();
    let url = format!("{api}/git/trees/{sha}");
    Ok(Reply::json(200, &json!({"sha": sha, "url": url, "tree": rows, "truncated": false})))
}

fn commit(desk: &Desk<'_>, sha: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    object(repo, sha, "commit")?;
    let whole = shape::commit::whole(desk.state, &desk.call.base, repo, &repo.git.show(sha)?);
    let mut shown = whole["commit"].clone();
    if let Value::Object(map) = &mut shown {
        map.remove("comment_count");
    }
    for key in ["sha", "node_id", "parents", "html_url"] {
        shown[key] = whole[key].clone();
    }
    Ok(Reply::json(200, &shown))
}

fn reference(desk: &Desk<'_>, status: u16, name: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let found = repo.git.refs(&format!("refs/{name}"))?;
    let (full, sha) =
        found.into_iter().find(|(full, _)| *full == format!("refs/{name}")).ok_or_else(Refusal::not_found)?;
    Ok(Reply::json(status, &shape::commit::reference(&desk.call.base, repo, &full, &sha)))
}

fn matching(desk: &Desk<'_>, start: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let start = format!("refs/{start}");
    let refs = repo.git.refs("refs")?;
    let fitting = refs.iter().filter(|(full, _)| full.starts_with(&start));
    let shown = fitting.map(|(full, sha)| shape::commit::reference(&desk.call.base, repo, full, sha)).collect();
    Ok(desk.call.page(shown, None))
}
