//! `/repos/…/check-runs`, `check-suites`, `statuses`, and the same of a commit. Check runs are written by the App only.

use serde_json::{Value, json};

use super::Desk;
use crate::sandbox::auth::Who;
use crate::sandbox::http::Reply;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::{CheckRun, Role};

const CHECK_TEXTS: [&str; 6] = ["name", "head_sha", "status", "conclusion", "details_url", "external_id"];

pub(super) fn serve(desk: &mut Desk<'_>, rest: &[&str]) -> Answer<Reply> {
    match (desk.call.method.as_str(), rest) {
        ("POST", ["check-runs"]) => {
            app_only(desk)?;
            let body = desk.call.texts(&CHECK_TEXTS)?;
            let id = desk.state.create_run(&desk.repo, &body)?;
            Ok(Reply::json(201, &run(desk, id)?))
        }
        ("GET", ["check-runs", id]) => Ok(Reply::json(200, &run(desk, number(id)?)?)),
        ("PATCH", ["check-runs", id]) => {
            app_only(desk)?;
            let (id, body) = (number(id)?, desk.call.texts(&CHECK_TEXTS)?);
            desk.state.update_run(&desk.repo, id, &body)?;
            Ok(Reply::json(200, &run(desk, id)?))
        }
        ("POST", ["check-runs", id, "rerequest"]) => {
            let login = desk.require_someone(Role::Write)?;
            desk.state.rerequest_run(&desk.repo, number(id)?, &login).map(|()| Reply::json(201, &json!({})))
        }
        ("GET", ["check-runs", id, "annotations"]) => {
            let id = number(id)?;
            let repo = desk.state.repo(&desk.repo)?;
            let run = repo.runs.iter().find(|run| run.id == id).ok_or_else(Refusal::not_found)?;
            Ok(desk.call.page(run.annotations.clone(), None))
        }
        ("GET", ["check-suites", id, rest @ ..]) => suite(desk, number(id)?, rest),
        ("POST", ["check-suites", id, "rerequest"]) => {
            let login = desk.require_someone(Role::Write)?;
            desk.state.rerequest_suite(&desk.repo, number(id)?, &login).map(|()| Reply::json(201, &json!({})))
        }
        ("GET", ["statuses", sha]) => statuses(desk, sha),
        ("POST", ["statuses", sha]) => {
            let login = desk.require_someone(Role::Write)?;
            let body = desk.call.texts(&["state", "context", "description", "target_url"])?;
            let id = desk.state.add_status(&desk.repo, sha, &login, &body)?;
            let repo = desk.state.repo(&desk.repo)?;
            let status = repo.statuses.iter().find(|status| status.id == id).ok_or_else(Refusal::not_found)?;
            Ok(Reply::json(201, &shape::check::status(desk.state, &desk.call.base, repo, status)))
        }
        _ => Err(Refusal::not_found()),
    }
}

fn number(text: &str) -> Answer<u64> {
    text.parse().map_err(|_| Refusal::not_found())
}

fn app_only(desk: &Desk<'_>) -> Answer<()> {
    if !matches!(desk.who, Who::Installation(_)) {
        return Err(Refusal::new(403, "You must authenticate via a GitHub App."));
    }
    desk.require(Role::Write)
}

fn run(desk: &Desk<'_>, id: u64) -> Answer<Value> {
    let repo = desk.state.repo(&desk.repo)?;
    let run = repo.runs.iter().find(|run| run.id == id).ok_or_else(Refusal::not_found)?;
    Ok(shape::check::run(desk.state, &desk.call.base, repo, run))
}

fn suite(desk: &Desk<'_>, id: u64, rest: &[&str]) -> Answer<Reply> {
    let (state, base) = (&*desk.state, &desk.call.base);
    let repo = state.repo(&desk.repo)?;
    let (sha, _) = repo.suites.iter().find(|(_, suite)| **suite == id).ok_or_else(Refusal::not_found)?;
    match rest {
        [] => Ok(Reply::json(200, &shape::check::suite(state, base, repo, sha, id))),
        ["check-runs"] => {
            let runs = repo.runs.iter().rev().filter(|run| run.suite == id);
            Ok(desk.call.page(runs.map(|run| shape::check::run(state, base, repo, run)).collect(), Some("check_runs")))
        }
        _ => Err(Refusal::not_found()),
    }
}

fn statuses(desk: &Desk<'_>, name: &str) -> Answer<Reply> {
    let repo = desk.state.repo(&desk.repo)?;
    let sha = repo.git.resolve(name).ok_or_else(Refusal::not_found)?;
    let all = repo.statuses.iter().rev().filter(|status| status.sha == sha);
    Ok(desk.call.page(all.map(|one| shape::check::status(desk.state, &desk.call.base, repo, one)).collect(), None))
}

/// `commits/<ref, perhaps with slashes>/<what>`.
pub(super) fn of_commit(desk: &Desk<'_>, rest: &[&str]) -> Answer<Reply> {
    let [_, name @ .., what] = rest else { return Err(Refusal::not_found()) };
    let name = name.join("/");
    let (state, base) = (&*desk.state, &desk.call.base);
    let repo = state.repo(&desk.repo)?;
    let sha = repo.git.resolve(&name).ok_or_else(|| Refusal::new(422, format!("No commit found for SHA: {name}")))?;
    match *what {
        "statuses" => statuses(desk, &sha),
        "status" => Ok(Reply::json(200, &shape::check::combined(state, base, repo, &sha))),
        "check-suites" => {
            let suite = repo.suites.get(&sha).map(|id| shape::check::suite(state, base, repo, &sha, *id));
            Ok(desk.call.page(suite.into_iter().collect(), Some("check_suites")))
        }
        _ => {
            let query = &desk.call.query;
            let latest = query.get("filter").is_none_or(|filter| filter != "all");
            let mut kept: Vec<&CheckRun> = Vec::new();
            for run in repo.runs.iter().rev().filter(|run| run.sha == sha) {
                let named = query.get("check_name").is_none_or(|name| run.name == *name);
                let stated = query.get("status").is_none_or(|status| run.status == *status);
                let newest = !latest || kept.iter().all(|other| other.name != run.name);
                if named && stated && newest {
                    kept.push(run);
                }
            }
            let shown = kept.into_iter().map(|run| shape::check::run(state, base, repo, run)).collect();
            Ok(desk.call.page(shown, Some("check_runs")))
        }
    }
}
