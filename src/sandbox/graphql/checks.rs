//! Commits of the graph, and what was reported on them. Never decides whether a merge may go on.

use serde_json::{Value, json};

use super::actor::git_actor;
use super::graph::{Out, Thing, leaf, nothing, page};
use super::{Arguments, Fault, Resolved, Run};
use crate::sandbox::refusal::Refusal;
use crate::sandbox::shape;
use crate::sandbox::shape::check::{newest, passes};
use crate::sandbox::world::{CheckRun, Repo};

/// The newest run of each name, newest first.
fn runs<'a>(repo: &'a Repo, sha: &str) -> Vec<&'a CheckRun> {
    let mut kept: Vec<&CheckRun> = Vec::new();
    for run in repo.runs.iter().rev().filter(|run| run.sha == sha) {
        if kept.iter().all(|other| other.name != run.name) {
            kept.push(run);
        }
    }
    kept
}

/// The rollup of a commit; none when nothing was reported.
pub(super) fn rollup_of(repo: &Repo, sha: &str) -> Option<Thing> {
    let any = !runs(repo, sha).is_empty() || !newest(repo, sha).is_empty();
    any.then(|| Thing::Rollup(repo.full_name(), sha.to_owned()))
}

/// A field of a commit.
pub(super) fn commit(run: &Run<'_>, name: &str, sha: &str, field: &str, arguments: &Arguments) -> Resolved {
    let repo = run.state.repo(name)?;
    let found = repo.git.show(sha)?;
    let (headline, rest) = found.message.split_once('\n').unwrap_or((&found.message, ""));
    match field {
        "id" => leaf(format!("C_kwSB{sha}")),
        "oid" => leaf(sha),
        "abbreviatedOid" => leaf(sha.get(..7).unwrap_or(sha)),
        "message" => leaf(found.message.as_str()),
        "messageHeadline" => leaf(headline),
        "messageBody" => leaf(rest.trim()),
        "authoredDate" => leaf(found.author[2].as_str()),
        "committedDate" | "pushedDate" => leaf(found.committer[2].as_str()),
        "url" | "commitUrl" => leaf(format!("{}/commit/{sha}", run.base.page(repo))),
        "author" => Ok(Out::One(git_actor(run, &found.author))),
        "committer" => Ok(Out::One(git_actor(run, &found.committer))),
        "authors" => page("GitActorConnection", vec![git_actor(run, &found.author)], arguments),
        "parents" => {
            let parents = found.parents.iter().map(|parent| Thing::Commit(name.to_owned(), parent.clone()));
            page("CommitConnection", parents.collect(), arguments)
        }
        "statusCheckRollup" => Ok(Out::perhaps(rollup_of(repo, sha))),
        "checkSuites" => match repo.suites.get(sha) {
            Some(id) => page("CheckSuiteConnection", vec![suite(run, repo, *id)], arguments),
            None => nothing("CheckSuiteConnection"),
        },
        "status" => {
            let combined = shape::check::combined(run.state, &run.base, repo, sha);
            let any = combined["total_count"] != 0;
            let word = combined["state"].as_str().unwrap_or_default().to_uppercase();
            Ok(Out::perhaps(any.then(|| Thing::known("Status", json!({"state": word})))))
        }
        "repository" => Ok(Out::One(Thing::Repo(name.to_owned()))),
        _ => Err(Fault::Undefined),
    }
}

/// A field of a rollup.
pub(super) fn rollup(run: &Run<'_>, name: &str, sha: &str, field: &str, arguments: &Arguments) -> Resolved {
    let repo = run.state.repo(name)?;
    match field {
        "id" => leaf(format!("SCR_kwSB{sha}")),
        "state" => {
            let runs = runs(repo, sha);
            let statuses = newest(repo, sha);
            let failed = runs.iter().any(|run| run.status == "completed" && !passes(run.conclusion.as_deref()))
                || statuses.iter().any(|status| status.state == "failure");
            let pending = runs.iter().any(|run| run.status != "completed")
                || statuses.iter().any(|status| status.state == "pending");
            leaf(match (statuses.iter().any(|status| status.state == "error"), failed, pending) {
                (true, _, _) => "ERROR",
                (_, true, _) => "FAILURE",
                (_, _, true) => "PENDING",
                _ => "SUCCESS",
            })
        }
        "contexts" => {
            let runs = runs(repo, sha).into_iter().map(|one| Thing::CheckRun(name.to_owned(), one.id));
            let statuses = newest(repo, sha).into_iter().map(|one| Thing::Status(name.to_owned(), one.id));
            page("StatusCheckRollupContextConnection", runs.chain(statuses).collect(), arguments)
        }
        "commit" => Ok(Out::One(Thing::Commit(name.to_owned(), sha.to_owned()))),
        _ => Err(Fault::Undefined),
    }
}

/// Whether the base of the pull that is asked about wants this check.
fn is_required(repo: &Repo, check: &str, arguments: &Arguments) -> bool {
    let number = arguments.get("pullRequestNumber").and_then(Value::as_u64);
    let id = arguments.get("pullRequestId").and_then(Value::as_str);
    let mut pulls = repo.pulls.values();
    let pull = pulls.find(|pull| Some(pull.number) == number || id == Some(shape::node("PR", pull.id).as_str()));
    let rule = pull.and_then(|pull| repo.protections.get(&pull.base));
    rule.is_some_and(|rule| rule.checks.iter().any(|wanted| wanted == check))
}

fn suite(run: &Run<'_>, repo: &Repo, id: u64) -> Thing {
    let sha = repo.suites.iter().find(|(_, suite)| **suite == id).map_or("", |(sha, _)| sha.as_str());
    let shown = shape::check::suite(run.state, &run.base, repo, sha, id);
    let upper = |key: &str| shown[key].as_str().map(str::to_uppercase);
    let values =
        json!({"id": shown["node_id"], "databaseId": id, "status": upper("status"), "conclusion": upper("conclusion")});
    let app = Thing::known(
        "App",
        json!({"slug": crate::sandbox::world::SLUG, "name": run.state.apps.name, "id": shape::node("A", crate::sandbox::world::APP_ID)}),
    );
    Thing::Known(
        "CheckSuite",
        values.as_object().cloned().unwrap_or_default(),
        vec![("app", Some(app)), ("workflowRun", None)],
    )
}

/// A field of a check run.
pub(super) fn run(run: &Run<'_>, name: &str, id: u64, field: &str, arguments: &Arguments) -> Resolved {
    let repo = run.state.repo(name)?;
    let one = repo.runs.iter().find(|one| one.id == id).ok_or_else(Refusal::not_found)?;
    let rest = shape::check::run(run.state, &run.base, repo, one);
    match field {
        "id" => leaf(rest["node_id"].clone()),
        "databaseId" => leaf(one.id),
        "name" => leaf(one.name.as_str()),
        "status" => leaf(one.status.to_uppercase()),
        "conclusion" => leaf(json!(one.conclusion.as_ref().map(|word| word.to_uppercase()))),
        "startedAt" => leaf(json!(one.started_at)),
        "completedAt" => leaf(json!(one.completed_at)),
        "detailsUrl" => leaf(rest["details_url"].clone()),
        "url" | "permalink" => leaf(rest["html_url"].clone()),
        "title" | "summary" | "text" => leaf(rest["output"][field].clone()),
        "externalId" => leaf(json!(one.external_id)),
        "isRequired" => leaf(is_required(repo, &one.name, arguments)),
        "checkSuite" => Ok(Out::One(suite(run, repo, one.suite))),
        "repository" => Ok(Out::One(Thing::Repo(name.to_owned()))),
        _ => Err(Fault::Undefined),
    }
}

/// A field of a status.
pub(super) fn status(run: &Run<'_>, name: &str, id: u64, field: &str, arguments: &Arguments) -> Resolved {
    let repo = run.state.repo(name)?;
    let one = repo.statuses.iter().find(|one| one.id == id).ok_or_else(Refusal::not_found)?;
    match field {
        "id" => leaf(shape::node("SC", one.id)),
        "context" => leaf(one.context.as_str()),
        "state" => leaf(one.state.to_uppercase()),
        "description" => leaf(json!(one.description)),
        "targetUrl" => leaf(json!(one.target_url)),
        "createdAt" => leaf(one.at.as_str()),
        "avatarUrl" => leaf(shape::login(run.state, &run.base, &one.creator)["avatar_url"].clone()),
        "creator" => Ok(Out::One(Thing::Actor(one.creator.clone()))),
        "isRequired" => leaf(is_required(repo, &one.context, arguments)),
        "commit" => Ok(Out::One(Thing::Commit(name.to_owned(), one.sha.clone()))),
        _ => Err(Fault::Undefined),
    }
}
