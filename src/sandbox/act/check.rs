//! Check runs and statuses. Never invents a conclusion that nobody sent.

use serde_json::{Value, json};

use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::{BOT, CheckRun, State, Status, now};

const STATUSES: [&str; 6] = ["queued", "in_progress", "completed", "waiting", "requested", "pending"];
const CONCLUSIONS: [&str; 8] =
    ["success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required", "stale"];

/// The most statuses of one name that a commit takes.
const MOST_STATUSES: usize = 1_000;

fn text(body: &Value, key: &str) -> Option<String> {
    body[key].as_str().map(str::to_owned)
}

fn fill(run: &mut CheckRun, body: &Value) -> Answer<()> {
    let invalid =
        |field: &str| Refusal::field("CheckRun", "invalid", field, &format!("{field} is not included in the list"));
    if let Some(status) = text(body, "status") {
        if !STATUSES.contains(&status.as_str()) {
            return Err(invalid("status"));
        }
        if status != "completed" {
            run.conclusion = None;
            run.completed_at = None;
        }
        run.status = status;
    }
    if let Some(conclusion) = text(body, "conclusion") {
        if !CONCLUSIONS.contains(&conclusion.as_str()) {
            return Err(invalid("conclusion"));
        }
        run.conclusion = Some(conclusion);
        run.status = "completed".into();
        run.completed_at = Some(text(body, "completed_at").unwrap_or_else(now));
    }
    if run.status == "completed" && run.conclusion.is_none() {
        return Err(invalid("conclusion"));
    }
    if let Some(name) = text(body, "name") {
        run.name = name;
    }
    run.details_url = text(body, "details_url").or(run.details_url.take());
    run.external_id = text(body, "external_id").or(run.external_id.take());
    run.started_at = text(body, "started_at").or(run.started_at.take()).or_else(|| Some(now()));
    if let Some(output) = body.get("output").filter(|output| output.is_object()) {
        let old = std::mem::take(&mut run.output);
        let [title, summary, long] = old;
        run.output =
            [text(output, "title").or(title), text(output, "summary").or(summary), text(output, "text").or(long)];
        if run.output.iter().flatten().any(|part| part.chars().count() > 65_535) {
            return Err(Refusal::new(
                422,
                "Invalid request.\n\nOnly 65535 characters are allowed; more were supplied.",
            ));
        }
        if let Some(more) = output["annotations"].as_array() {
            if more.len() > 50 {
                return Err(Refusal::new(
                    422,
                    "Invalid request.\n\nNo more than 50 items are allowed; more were supplied.",
                ));
            }
            run.annotations.extend(more.iter().cloned());
        }
    }
    Ok(())
}

impl State {
    /// Creates a check run, and the commit's suite with the first one.
    pub fn create_run(&mut self, repo: &str, body: &Value) -> Answer<u64> {
        let missing = |field: &str| Refusal::new(422, format!("Invalid request.\n\n\"{field}\" wasn't supplied."));
        let name = text(body, "name").ok_or_else(|| missing("name"))?;
        let sha = text(body, "head_sha").ok_or_else(|| missing("head_sha"))?;
        let (id, suite_id) = (self.id(), self.id());
        let found = self.repo_mut(repo)?;
        if sha.len() != 40 || found.git.resolve(&sha).is_none() {
            return Err(Refusal::new(422, format!("No commit found for SHA: {sha}")));
        }
        let suite = *found.suites.entry(sha.clone()).or_insert(suite_id);
        let mut run = CheckRun {
            id,
            suite,
            name,
            sha,
            status: "queued".into(),
            conclusion: None,
            details_url: None,
            external_id: None,
            started_at: None,
            completed_at: None,
            output: [None, None, None],
            annotations: Vec::new(),
        };
        fill(&mut run, body)?;
        found.runs.push(run);
        self.run_event(repo, id, "created", BOT)?;
        self.run_done(repo, id)?;
        Ok(id)
    }

    /// Changes a check run.
    pub fn update_run(&mut self, repo: &str, id: u64, body: &Value) -> Answer<()> {
        let runs = &mut self.repo_mut(repo)?.runs;
        let run = runs.iter_mut().find(|run| run.id == id).ok_or_else(Refusal::not_found)?;
        let mut new = run.clone();
        fill(&mut new, body)?;
        let was = std::mem::replace(run, new);
        self.touch();
        if was.status == "completed" { Ok(()) } else { self.run_done(repo, id) }
    }

    fn run_done(&mut self, repo: &str, id: u64) -> Answer<()> {
        let done = self.repo(repo)?.runs.iter().any(|run| run.id == id && run.status == "completed");
        if done { self.run_event(repo, id, "completed", BOT) } else { Ok(()) }
    }

    fn run_event(&mut self, repo: &str, id: u64, action: &str, sender: &str) -> Answer<()> {
        let base = self.base();
        let found = self.repo(repo)?;
        let run = found.runs.iter().find(|run| run.id == id).ok_or_else(Refusal::not_found)?;
        let mut shown = shape::check::run(self, &base, found, run);
        shown["check_suite"] = shape::check::suite(self, &base, found, &run.sha, run.suite);
        self.emit(repo, "check_run", action, sender, json!({"check_run": shown}));
        Ok(())
    }

    /// Asks the App to run a check again.
    pub fn rerequest_run(&mut self, repo: &str, id: u64, sender: &str) -> Answer<()> {
        self.run_event(repo, id, "rerequested", sender)
    }

    /// Asks the App to run all checks of a commit again.
    pub fn rerequest_suite(&mut self, repo: &str, id: u64, sender: &str) -> Answer<()> {
        let base = self.base();
        let found = self.repo(repo)?;
        let (sha, _) = found.suites.iter().find(|(_, suite)| **suite == id).ok_or_else(Refusal::not_found)?;
        let shown = shape::check::suite(self, &base, found, sha, id);
        self.emit(repo, "check_suite", "rerequested", sender, json!({"check_suite": shown}));
        Ok(())
    }

    /// Appends a status.
    pub fn add_status(&mut self, repo: &str, sha: &str, creator: &str, body: &Value) -> Answer<u64> {
        let state = text(body, "state").unwrap_or_default();
        if !["error", "failure", "pending", "success"].contains(&state.as_str()) {
            return Err(Refusal::field("Status", "custom", "state", "state is not included in the list"));
        }
        let id = self.id();
        let creator = self.account(creator)?.login.clone();
        let found = self.repo_mut(repo)?;
        let Some(sha) = found.git.resolve(sha).filter(|found| found == sha) else {
            return Err(Refusal::new(422, format!("No commit found for SHA: {sha}")));
        };
        let description = text(body, "description");
        if description.as_ref().is_some_and(|text| text.chars().count() > 140) {
            return Err(Refusal::field(
                "Status",
                "custom",
                "description",
                "description is too long (maximum is 140 characters)",
            ));
        }
        let same =
            |one: &&Status| one.sha == sha && one.context == text(body, "context").unwrap_or_else(|| "default".into());
        if found.statuses.iter().filter(same).count() >= MOST_STATUSES {
            let message = "This SHA and context has reached the maximum number of statuses.";
            return Err(Refusal::field("Status", "custom", "context", message));
        }
        let target_url = text(body, "target_url").filter(|url| !url.is_empty());
        let context = text(body, "context").unwrap_or_else(|| "default".into());
        found.statuses.push(Status { id, sha, state, context, description, target_url, creator, at: now() });
        self.touch();
        Ok(id)
    }
}
