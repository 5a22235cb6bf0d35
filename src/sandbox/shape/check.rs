//! JSON of check runs, suites and statuses. Never decides whether a merge may go on.

use serde_json::{Value, json};

use super::{Base, app, login, node, repo};
use crate::sandbox::world::{CheckRun, Repo, Role, State, Status};

fn pulls(base: &Base, repo: &Repo, sha: &str) -> Vec<Value> {
    // What comes from a fork is named nowhere here.
    let of_head = repo
        .pulls
        .values()
        .filter(|pull| pull.is_open() && pull.head_sha == sha && !repo.forks.contains_key(&pull.head));
    of_head.map(|pull| super::pull::mention(base, repo, pull)).collect()
}

/// A check run.
pub fn run(state: &State, base: &Base, repo: &Repo, run: &CheckRun) -> Value {
    let url = format!("{}/check-runs/{}", base.repo(repo), run.id);
    let page = format!("{}/runs/{}", base.page(repo), run.id);
    let [title, summary, text] = &run.output;
    json!({
        "id": run.id,
        "name": run.name,
        "node_id": node("CR", run.id),
        "head_sha": run.sha,
        "external_id": run.external_id.as_deref().unwrap_or(""),
        "url": url,
        "html_url": page,
        "details_url": run.details_url.as_deref().unwrap_or(&page),
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": run.started_at,
        "completed_at": run.completed_at,
        "output": {
            "title": title, "summary": summary, "text": text, "annotations_count": run.annotations.len(),
            "annotations_url": format!("{url}/annotations"),
        },
        "check_suite": {"id": run.suite},
        "app": app(state, base),
        "pull_requests": pulls(base, repo, &run.sha),
    })
}

/// The suite of a commit.
pub fn suite(state: &State, base: &Base, of: &Repo, sha: &str, id: u64) -> Value {
    let runs: Vec<&CheckRun> = of.runs.iter().filter(|run| run.suite == id).collect();
    let done = !runs.is_empty() && runs.iter().all(|run| run.status == "completed");
    let failed = runs.iter().any(|run| !passes(run.conclusion.as_deref()));
    let commit = of.git.show(sha).ok();
    let branch = of.branches.iter().find(|(_, tip)| tip.as_str() == sha).map(|(name, _)| name);
    json!({
        "id": id,
        "node_id": node("CS", id),
        "head_branch": branch,
        "head_sha": sha,
        "status": if done { "completed" } else { "queued" },
        "conclusion": if !done { Value::Null } else if failed { json!("failure") } else { json!("success") },
        "url": format!("{}/check-suites/{id}", base.repo(of)),
        "before": null,
        "after": sha,
        "pull_requests": pulls(base, of, sha),
        "app": app(state, base),
        "repository": repo(state, base, of, Role::Read),
        "created_at": of.created_at,
        "updated_at": of.created_at,
        "latest_check_runs_count": runs.len(),
        "check_runs_url": format!("{}/check-suites/{id}/check-runs", base.repo(of)),
        "head_commit": commit.map(|commit| super::commit::brief(&commit)),
    })
}

/// Whether a conclusion lets a required check pass.
pub fn passes(conclusion: Option<&str>) -> bool {
    matches!(conclusion, Some("success" | "neutral" | "skipped"))
}

/// A status.
pub fn status(state: &State, base: &Base, repo: &Repo, status: &Status) -> Value {
    let creator = login(state, base, &status.creator);
    json!({
        "url": format!("{}/statuses/{}", base.repo(repo), status.sha),
        "avatar_url": creator["avatar_url"],
        "id": status.id,
        "node_id": node("SC", status.id),
        "state": status.state,
        "description": status.description,
        "target_url": status.target_url,
        "context": status.context,
        "created_at": status.at,
        "updated_at": status.at,
        "creator": creator,
    })
}

/// The newest status of each context, newest first.
pub fn newest<'a>(repo: &'a Repo, sha: &str) -> Vec<&'a Status> {
    let mut kept: Vec<&Status> = Vec::new();
    for status in repo.statuses.iter().rev().filter(|status| status.sha == sha) {
        if kept.iter().all(|other| other.context != status.context) {
            kept.push(status);
        }
    }
    kept
}

/// The combined status of a commit.
pub fn combined(state: &State, base: &Base, of: &Repo, sha: &str) -> Value {
    let kept = newest(of, sha);
    let any = |words: &[&str]| kept.iter().any(|status| words.contains(&status.state.as_str()));
    let word = if any(&["error", "failure"]) {
        "failure"
    } else if kept.is_empty() || any(&["pending"]) {
        "pending"
    } else {
        "success"
    };
    let statuses: Vec<Value> = kept
        .iter()
        .map(|one| {
            let mut value = status(state, base, of, one);
            if let Value::Object(map) = &mut value {
                map.remove("creator");
            }
            value
        })
        .collect();
    json!({
        "state": word, "statuses": statuses, "sha": sha, "total_count": kept.len(),
        "repository": repo(state, base, of, Role::Read),
        "commit_url": format!("{}/commits/{sha}", base.repo(of)),
        "url": format!("{}/commits/{sha}/status", base.repo(of)),
    })
}
