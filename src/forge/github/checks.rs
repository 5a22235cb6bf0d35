//! Our two checks of a head: check runs for an App, commit statuses for a token, which may not write check runs.
//! A repeat is harmless: GitHub shows the newest check of a name.

use http::Method;
use serde_json::{Value, json};

use super::GitHub;
use super::request::{Ask, Whose, repo_path, segment};
use super::wire::Made;
use crate::domain::effect::{CheckReport, CheckState};
use crate::ports::forge::{ForgeError, Receipt, RepoRef};

/// What GitHub allows in a check run's summary. It counts characters; bytes are never fewer.
const SUMMARY_LIMIT: usize = 65_535;

/// What GitHub allows in a status's description, in characters.
const DESCRIPTION_LIMIT: usize = 140;

/// The receipt of a status: there is no id to find, a newer status of the same context takes its place.
const STATUS: &str = "status";

const CUT: &str = "\n\n… (cut)";

impl GitHub {
    pub(super) async fn write_check(
        &self,
        repo: &RepoRef,
        report: &CheckReport,
        receipt: Option<&Receipt>,
    ) -> Result<Receipt, ForgeError> {
        if !self.access.is_app() {
            return self.post_status(repo, report).await;
        }
        let known = receipt.and_then(|receipt| receipt.0.parse::<u64>().ok());
        if let Some(id) = known
            && self.patch_check_run(repo, report, id).await?
        {
            return Ok(Receipt(id.to_string()));
        }
        let ask = Ask::post(format!("{}/check-runs", repo_path(&repo.name)?), new_check_run(report));
        let made: Made = self.ask(Whose::Repo(&repo.name), &ask).await?.read_created(&ask)?;
        Ok(Receipt(made.id.to_string()))
    }

    /// Whether the run was there and ours to update.
    async fn patch_check_run(&self, repo: &RepoRef, report: &CheckReport, id: u64) -> Result<bool, ForgeError> {
        let ask = Ask::patch(format!("{}/check-runs/{id}", repo_path(&repo.name)?), check_run(report));
        match self.ask(Whose::Repo(&repo.name), &ask).await {
            Ok(_) => Ok(true),
            Err(ForgeError::NotFound(_)) => Ok(false),
            // The settings name another App since: its run stays as it is, ours is new.
            Err(ForgeError::Denied(said)) if said.contains("Invalid app_id") => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn post_status(&self, repo: &RepoRef, report: &CheckReport) -> Result<Receipt, ForgeError> {
        let path = format!("{}/statuses/{}", repo_path(&repo.name)?, segment(report.head.as_str()));
        let ask = Ask { method: Method::POST, path, body: Some(status(report)) };
        self.ask(Whose::Repo(&repo.name), &ask).await?.read_created::<Value>(&ask)?;
        Ok(Receipt(STATUS.to_owned()))
    }
}

fn new_check_run(report: &CheckReport) -> Value {
    let mut body = check_run(report);
    body["name"] = json!(report.name.as_str());
    body["head_sha"] = json!(report.head.as_str());
    body
}

fn check_run(report: &CheckReport) -> Value {
    let title = if report.title.trim().is_empty() { report.name.as_str() } else { &report.title };
    let summary = if report.summary.is_empty() { title } else { &report.summary };
    let mut body = json!({ "output": { "title": title, "summary": fitting(summary) } });
    let (status, conclusion) = match report.state {
        CheckState::Pending => ("queued", None),
        CheckState::Running => ("in_progress", None),
        CheckState::Success => ("completed", Some("success")),
        CheckState::Failure => ("completed", Some("failure")),
        // Not `neutral`, which a required check takes for success: another pull of the same head must not merge by it.
        CheckState::Superseded => ("completed", Some("cancelled")),
    };
    body["status"] = json!(status);
    if let Some(conclusion) = conclusion {
        body["conclusion"] = json!(conclusion);
    }
    if let Some(url) = &report.url {
        body["details_url"] = json!(url);
    }
    body
}

fn status(report: &CheckReport) -> Value {
    let state = match report.state {
        CheckState::Pending | CheckState::Running => "pending",
        CheckState::Success => "success",
        CheckState::Failure => "failure",
        // Statuses know no such word; the head is replaced, so nobody waits for it.
        CheckState::Superseded => "error",
    };
    let description: String = report.title.chars().take(DESCRIPTION_LIMIT).collect();
    let mut body = json!({ "state": state, "context": report.name.as_str(), "description": description });
    if let Some(url) = &report.url {
        body["target_url"] = json!(url);
    }
    body
}

fn fitting(summary: &str) -> String {
    if summary.len() <= SUMMARY_LIMIT {
        return summary.to_owned();
    }
    let mut end = SUMMARY_LIMIT - CUT.len();
    while !summary.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}", &summary[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::effect::CheckName;
    use crate::domain::ids::Sha;

    fn report(state: CheckState) -> CheckReport {
        let (title, url) = ("2 roots".to_owned(), Some("https://t/r".to_owned()));
        CheckReport { head: Sha::from("aa"), name: CheckName::Plan, state, title, summary: String::new(), url }
    }

    #[test]
    fn each_state_has_its_words_in_both_forms() {
        for (state, run, conclusion, context) in [
            (CheckState::Pending, "queued", None, "pending"),
            (CheckState::Running, "in_progress", None, "pending"),
            (CheckState::Success, "completed", Some("success"), "success"),
            (CheckState::Failure, "completed", Some("failure"), "failure"),
            (CheckState::Superseded, "completed", Some("cancelled"), "error"),
        ] {
            let body = new_check_run(&report(state));
            assert_eq!(body["status"], run);
            assert_eq!(body.get("conclusion").and_then(Value::as_str), conclusion);
            assert_eq!(body["details_url"], "https://t/r");
            assert_eq!(body["output"]["summary"], "2 roots");
            assert_eq!(status(&report(state))["state"], context);
        }
    }

    #[test]
    fn a_long_summary_is_cut_between_characters() {
        let long = "é".repeat(SUMMARY_LIMIT);
        let cut = fitting(&long);
        assert!(cut.len() <= SUMMARY_LIMIT && cut.ends_with(CUT));
        assert_eq!(fitting("short"), "short");
        let mut wordy = report(CheckState::Pending);
        wordy.title = "ü".repeat(200);
        assert_eq!(status(&wordy)["description"].as_str().map(|text| text.chars().count()), Some(DESCRIPTION_LIMIT));
    }
}
