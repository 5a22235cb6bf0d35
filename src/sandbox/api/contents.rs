//! What is in the repository: branches, refs, commits, contents, comparisons and protection. Writes go through `act`.

use base64::Engine;
use serde_json::{Value, json};

use super::Desk;
use crate::sandbox::auth::Who;
use crate::sandbox::http::Reply;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::Role;

pub(super) fn serve(desk: &mut Desk<'_>, rest: &[&str]) -> Answer<Reply> {
    match (desk.call.method.as_str(), rest) {
        ("GET", ["commits"]) => history(desk),
        ("GET", ["commits", sha, "pulls"]) => pulls_of(desk, sha),
        ("GET", ["commits", name @ ..]) => commit(desk, &name.join("/")),
        ("GET", ["branches", name @ .., "protection"]) if !name.is_empty() => protection(desk, &name.join("/")),
        ("GET", ["branches"]) => {
            let repo = desk.state.repo(&desk.repo)?;
            let url = desk.call.base.repo(repo);
            let one = |(name, sha): (&String, &String)| {
                let commit = json!({"sha": sha, "url": format!("{url}/commits/{sha}")});
                json!({"name": name, "commit": commit, "protected": repo.protections.contains_key(name)})
            };
            Ok(desk.call.page(repo.branches.iter().map(one).collect(), None))
        }
        ("GET", ["branches", name @ ..]) => branch(desk, &name.join("/")),
        ("GET", ["rules", "branches", name @ ..]) => rules(desk, &name.join("/")),
        ("GET", ["contents", path @ ..]) => contents(desk, &path.join("/")),
        ("PUT", ["contents", path @ ..]) => put_contents(desk, &path.join("/")),
        ("GET", ["compare", range @ ..]) => compare(desk, &range.join("/")),
        _ => Err(Refusal::not_found()),
    }
}

fn history(desk: &Desk<'_>) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let from = desk.call.query.get("sha").map_or("main", String::as_str);
    let tip = repo.git.resolve(from).ok_or_else(Refusal::not_found)?;
    let commits = repo.git.history(&tip, 250)?;
    let shown = commits.iter().map(|commit| shape::commit::whole(desk.state, &desk.call.base, repo, commit)).collect();
    Ok(desk.call.page(shown, None))
}

fn pulls_of(desk: &Desk<'_>, sha: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let of_sha =
        repo.pulls.values().filter(|pull| pull.head_sha == sha || pull.merged.as_ref().is_some_and(|m| m.sha == sha));
    let shown = of_sha.map(|pull| shape::pull::row(desk.state, &desk.call.base, repo, pull)).collect();
    Ok(desk.call.page(shown, None))
}

fn commit(desk: &Desk<'_>, name: &str) -> Answer<Reply> {
    let (base, repo) = (&desk.call.base, desk.state.repo(&desk.repo)?);
    let missing = || Refusal::new(422, format!("No commit found for SHA: {name}"));
    let sha = repo.git.resolve(name).ok_or_else(missing)?;
    let found = repo.git.show(&sha)?;
    let mut shown = shape::commit::whole(desk.state, base, repo, &found);
    let files = found.parents.first().map_or_else(|| Ok(Vec::new()), |from| repo.git.changed(from, &sha))?;
    let (plus, minus) = files.iter().fold((0, 0), |(a, d), file| (a + file.additions, d + file.deletions));
    shown["stats"] = json!({"additions": plus, "deletions": minus, "total": plus + minus});
    shown["files"] = files.iter().map(|file| shape::commit::file(base, repo, &sha, file)).collect();
    Ok(Reply::json(200, &shown))
}

fn checks_of(desk: &Desk<'_>, name: &str) -> Answer<Value> {
    let repo = desk.state.repo(&desk.repo)?;
    let rule = repo.protections.get(name).cloned().unwrap_or_default();
    let each: Vec<Value> = rule.checks.iter().map(|check| json!({"context": check, "app_id": null})).collect();
    Ok(json!({"strict": rule.strict, "contexts": rule.checks, "checks": each, "enforcement_level": "everyone"}))
}

fn branch(desk: &Desk<'_>, name: &str) -> Answer<Reply> {
    let (base, repo) = (&desk.call.base, desk.state.repo(&desk.repo)?);
    let tip = repo.branches.get(name).ok_or_else(|| Refusal::new(404, "Branch not found"))?;
    let url = format!("{}/branches/{name}", base.repo(repo));
    let protected = repo.protections.contains_key(name);
    let commit = shape::commit::whole(desk.state, base, repo, &repo.git.show(tip)?);
    Ok(Reply::json(
        200,
        &json!({
            "name": name, "commit": commit, "protected": protected, "protection_url": format!("{url}/protection"),
            "_links": {"self": url, "html": format!("{}/tree/{name}", base.page(repo))},
            "protection": {"enabled": protected, "required_status_checks": checks_of(desk, name)?},
        }),
    ))
}

fn protection(desk: &Desk<'_>, name: &str) -> Answer<Reply> {
    // A person who may not administer is told that there is nothing; an App, that it may not.
    if matches!(desk.who, Who::Person(_)) && desk.require(Role::Admin).is_err() {
        return Err(Refusal::not_found());
    }
    desk.require_someone(Role::Admin)?;
    let repo = desk.state.repo(&desk.repo)?;
    if !repo.branches.contains_key(name) {
        return Err(Refusal::new(404, "Branch not found"));
    }
    let Some(rule) = repo.protections.get(name) else { return Err(Refusal::new(404, "Branch not protected")) };
    let url = format!("{}/branches/{name}/protection", desk.call.base.repo(repo));
    let mut shown = json!({"url": url, "required_status_checks": checks_of(desk, name)?});
    shown["enforce_admins"] = json!({"url": format!("{url}/enforce_admins"), "enabled": true});
    if rule.reviews > 0 {
        shown["required_pull_request_reviews"] = json!({
            "url": format!("{url}/required_pull_request_reviews"), "dismiss_stale_reviews": false,
            "require_code_owner_reviews": false, "required_approving_review_count": rule.reviews,
        });
    }
    Ok(Reply::json(200, &shown))
}

fn rules(desk: &Desk<'_>, name: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let mut shown = Vec::new();
    if let Some(rule) = repo.protections.get(name) {
        let source =
            json!({"ruleset_source_type": "Repository", "ruleset_source": repo.full_name(), "ruleset_id": repo.id});
        let mut add = |kind: &str, parameters: Value| {
            let mut one = source.clone();
            one["type"] = json!(kind);
            one["parameters"] = parameters;
            shown.push(one);
        };
        if !rule.checks.is_empty() || rule.strict {
            let checks: Vec<Value> = rule.checks.iter().map(|name| json!({"context": name})).collect();
            add(
                "required_status_checks",
                json!({"required_status_checks": checks, "strict_required_status_checks_policy": rule.strict}),
            );
        }
        if rule.reviews > 0 {
            add(
                "pull_request",
                json!({
                    "required_approving_review_count": rule.reviews, "dismiss_stale_reviews_on_push": false,
                    "require_code_owner_review": false, "require_last_push_approval": false,
                    "required_review_thread_resolution": false,
                }),
            );
        }
    }
    Ok(desk.call.page(shown, None))
}

fn contents(desk: &Desk<'_>, path: &str) -> Answer<Reply> {
    let (base, repo) = (&desk.call.base, desk.state.repo(&desk.repo)?);
    let name = desk.call.query.get("ref").map_or("main", String::as_str);
    let path = path.trim_matches('/');
    let missing = || Refusal::new(404, format!("No commit found for the ref {name}"));
    let sha = repo.git.resolve(name).ok_or_else(missing)?;
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let found = repo.git.list(&sha, parent)?.into_iter().find(|entry| entry.path == path);
    match found {
        Some(entry) if entry.kind != "dir" => {
            let bytes = repo.git.read(&sha, path).ok_or_else(Refusal::not_found)?;
            if desk.call.header("accept").is_some_and(|kind| kind.contains("raw")) {
                return Ok(Reply::text("application/vnd.github.raw; charset=utf-8", bytes));
            }
            Ok(Reply::json(200, &shape::commit::content(base, repo, name, &entry, Some(&bytes))))
        }
        None if !path.is_empty() => Err(Refusal::not_found()),
        _ => {
            let rows = repo.git.list(&sha, path)?;
            let shown: Vec<Value> =
                rows.iter().map(|row| shape::commit::content(base, repo, name, row, None)).collect();
            Ok(Reply::json(200, &Value::Array(shown)))
        }
    }
}

fn put_contents(desk: &mut Desk<'_>, path: &str) -> Answer<Reply> {
    let login = desk.require_someone(Role::Write)?;
    let body = desk.call.texts(&["message", "content", "branch", "sha"])?;
    let text: String = body["content"].as_str().unwrap_or("").chars().filter(|c| !c.is_whitespace()).collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .map_err(|_| Refusal::new(422, "content is not valid Base64"))?;
    let branch = body["branch"].as_str().unwrap_or("main").to_owned();
    let repo = desk.state.repo(&desk.repo)?;
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let rows = repo.git.list(&branch, parent).unwrap_or_default();
    let old = rows.iter().find(|entry| entry.path == path).map(|entry| entry.sha.clone());
    match (&old, body["sha"].as_str()) {
        (Some(_), None) => return Err(Refusal::new(422, "Invalid request.\n\n\"sha\" wasn't supplied.")),
        (Some(old), Some(given)) if old != given => {
            return Err(Refusal::new(409, format!("{path} does not match {given}")));
        }
        _ => {}
    }
    let message = body["message"].as_str().unwrap_or("Update");
    let sha = desk.state.commit(&desk.repo, &branch, &[(path, Some(&bytes))], message, &login)?;
    let (base, repo) = (&desk.call.base, desk.state.repo(&desk.repo)?);
    let entry =
        repo.git.list(&sha, parent)?.into_iter().find(|entry| entry.path == path).ok_or_else(Refusal::not_found)?;
    let commit = shape::commit::whole(desk.state, base, repo, &repo.git.show(&sha)?);
    let shown = json!({"content": shape::commit::content(base, repo, &branch, &entry, None), "commit": commit});
    Ok(Reply::json(if old.is_some() { 200 } else { 201 }, &shown))
}

fn compare(desk: &Desk<'_>, range: &str) -> Answer<Reply> {
    let (base, repo) = (&desk.call.base, desk.state.repo(&desk.repo)?);
    let (one, other) = range.split_once("...").ok_or_else(Refusal::not_found)?;
    let find = |name: &str| repo.git.resolve(name.rsplit(':').next().unwrap_or(name)).ok_or_else(Refusal::not_found);
    let (from, to) = (find(one)?, find(other)?);
    let middle = repo.git.merge_base(&from, &to).ok_or_else(|| Refusal::new(404, "No common ancestor"))?;
    let (ahead, behind) = (repo.git.between(&from, &to)?, repo.git.between(&to, &from)?);
    let status = match (ahead.is_empty(), behind.is_empty()) {
        (true, true) => "identical",
        (false, true) => "ahead",
        (true, false) => "behind",
        (false, false) => "diverged",
    };
    let commit = |sha: &str| repo.git.show(sha).map(|found| shape::commit::whole(desk.state, base, repo, &found));
    let files = repo.git.changed(&middle, &to)?;
    let page = format!("{}/compare/{one}...{other}", base.page(repo));
    let commits: Vec<Value> = ahead.iter().map(|found| shape::commit::whole(desk.state, base, repo, found)).collect();
    Ok(Reply::json(
        200,
        &json!({
            "url": format!("{}/compare/{one}...{other}", base.repo(repo)), "html_url": page, "permalink_url": page,
            "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"), "status": status,
            "base_commit": commit(&from)?, "merge_base_commit": commit(&middle)?,
            "ahead_by": ahead.len(), "behind_by": behind.len(), "total_commits": ahead.len(), "commits": commits,
            "files": files.iter().map(|file| shape::commit::file(base, repo, &to, file)).collect::<Vec<_>>(),
        }),
    ))
}
