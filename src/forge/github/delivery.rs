//! Webhooks: the signature over the raw body, then as much of the JSON as we read. Past the signature nothing fails:
//! what we do not know is kept with the reason why it was ignored.

use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;

use super::GitHub;
use super::identity::Identity;
use super::wire::{App, IssueComment, Pull, PullReview, Repo};
use crate::domain::event::{CommentKind, Incoming, What};
use crate::domain::ids::Sha;
use crate::ports::forge::{Delivery, HookError, Hooks};

/// The events that are read, and so the ones that the App's manifest asks for.
pub const EVENTS: [&str; 6] =
    ["check_run", "check_suite", "issue_comment", "pull_request", "pull_request_review", "push"];

const SIGNATURE: &str = "x-hub-signature-256";
const EVENT: &str = "x-github-event";
const ID: &str = "x-github-delivery";

/// The names of our checks begin like this.
const OUR_CHECKS: &str = "tidegate/";

/// Every event in one: GitHub's events share the names of what they carry.
#[derive(Deserialize)]
struct Envelope {
    action: Option<String>,
    repository: Option<Repo>,
    number: Option<u64>,
    pull_request: Option<Value>,
    issue: Option<Issue>,
    comment: Option<IssueComment>,
    review: Option<PullReview>,
    check_run: Option<CheckRun>,
    check_suite: Option<CheckSuite>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    after: Option<String>,
    deleted: Option<bool>,
}

#[derive(Deserialize)]
struct Issue {
    number: Option<u64>,
    pull_request: Option<Value>,
}

#[derive(Deserialize)]
struct CheckRun {
    name: Option<String>,
    head_sha: Option<String>,
    app: Option<App>,
    pull_requests: Option<Vec<Listed>>,
}

#[derive(Deserialize)]
struct CheckSuite {
    head_sha: Option<String>,
    app: Option<App>,
    pull_requests: Option<Vec<Listed>>,
}

/// A pull as a check lists it.
#[derive(Deserialize)]
struct Listed {
    number: Option<u64>,
    base: Option<ListedBase>,
}

#[derive(Deserialize)]
struct ListedBase {
    repo: Option<Repo>,
}

impl Hooks for GitHub {
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Delivery, HookError> {
        let signature = header(headers, SIGNATURE, "X-Hub-Signature-256")?;
        let event = header(headers, EVENT, "X-GitHub-Event")?;
        let id = header(headers, ID, "X-GitHub-Delivery")?;
        check(self.webhook_secret.expose_secret().as_bytes(), signature, body)?;
        let payload = payload(headers, body)?;
        let (incoming, ignored) = match read(&self.identity, event, payload) {
            Ok(incoming) => (vec![incoming], None),
            Err(why) => (Vec::new(), Some(why)),
        };
        Ok(Delivery { id: id.to_owned(), event: event.to_owned(), incoming, ignored })
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str, shown: &'static str) -> Result<&'a str, HookError> {
    let value = headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    value.filter(|value| !value.is_empty()).ok_or(HookError::Missing(shown))
}

fn check(secret: &[u8], signature: &str, body: &[u8]) -> Result<(), HookError> {
    let hex = signature.strip_prefix("sha256=").ok_or(HookError::Forged)?;
    let given = hex::decode(hex).map_err(|_| HookError::Forged)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| HookError::Forged)?;
    mac.update(body);
    // Compares in constant time.
    mac.verify_slice(&given).map_err(|_| HookError::Forged)
}

/// The JSON, which a hook can also be set to send as a form.
fn payload(headers: &HeaderMap, body: &[u8]) -> Result<Value, HookError> {
    let kind = headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let malformed = |error: serde_json::Error| HookError::Malformed(error.to_string());
    if !kind.to_ascii_lowercase().starts_with("application/x-www-form-urlencoded") {
        return serde_json::from_slice(body).map_err(malformed);
    }
    let field = url::form_urlencoded::parse(body).find(|(name, _)| name == "payload");
    let (_, json) = field.ok_or_else(|| HookError::Malformed("the form has no field `payload`".to_owned()))?;
    serde_json::from_str(&json).map_err(malformed)
}

/// What a delivery says, or why it says nothing to us.
fn read(identity: &Identity, event: &str, payload: Value) -> Result<Incoming, String> {
    if !EVENTS.contains(&event) {
        return Err(format!("the event `{event}` is not read"));
    }
    let envelope: Envelope = serde_json::from_value(payload).map_err(|error| format!("an unknown shape: {error}"))?;
    let repository = envelope.repository.as_ref().ok_or("it names no repository")?;
    let (repo_id, repo) = (repository.id, repository.full_name.clone().ok_or("its repository has no name")?);
    let what = match event {
        "pull_request" => pull(&envelope, repo_id, &repo),
        "issue_comment" => comment(&envelope, identity),
        "pull_request_review" => review(&envelope),
        "check_run" => check_run(&envelope, identity, repo_id),
        "check_suite" => check_suite(&envelope, identity, repo_id),
        _ => push(&envelope),
    }?;
    Ok(Incoming { repo_id, repo, what })
}

/// The action, when it is one of those that mean something to us.
fn action<'a>(envelope: &'a Envelope, known: &[&str]) -> Result<&'a str, String> {
    match envelope.action.as_deref() {
        Some(action) if known.contains(&action) => Ok(action),
        Some(action) => Err(format!("the action `{action}` changes nothing for us")),
        None => Err("it has no action".to_owned()),
    }
}

fn pull(envelope: &Envelope, repo_id: u64, repo: &str) -> Result<What, String> {
    let known = ["opened", "reopened", "synchronize", "closed", "edited", "ready_for_review", "converted_to_draft"];
    action(envelope, &known)?;
    // A snapshot that cannot be read is no reason to miss the event: a look at GitHub tells the rest.
    let shown = envelope.pull_request.clone().and_then(|value| serde_json::from_value::<Pull>(value).ok());
    let number = envelope.number.or_else(|| shown.as_ref()?.number).ok_or("it names no pull")?;
    Ok(What::Pull { number, seen: shown.and_then(|pull| pull.seen(repo_id, repo)) })
}

fn comment(envelope: &Envelope, identity: &Identity) -> Result<What, String> {
    let kind = match action(envelope, &["created", "edited"])? {
        "created" => CommentKind::Created,
        _ => CommentKind::Edited,
    };
    let issue = envelope.issue.as_ref().ok_or("it has no issue")?;
    if issue.pull_request.is_none() {
        return Err("a comment on an issue that is no pull".to_owned());
    }
    let number = issue.number.ok_or("it names no pull")?;
    let comment = envelope.comment.as_ref().and_then(|comment| comment.seen(identity, kind));
    Ok(What::Comment { number, comment: comment.ok_or("its comment lacks an id, an author or a time")? })
}

fn review(envelope: &Envelope) -> Result<What, String> {
    action(envelope, &["submitted", "dismissed"])?;
    let shown = envelope.pull_request.clone().and_then(|value| serde_json::from_value::<Pull>(value).ok());
    let number = shown.and_then(|pull| pull.number).ok_or("it names no pull")?;
    let given = envelope.review.as_ref().ok_or("it has no review")?;
    let review = given.seen().ok_or("its review lacks an id, an author, a time or a known state")?;
    Ok(What::Review { number, review, body: given.body.clone().unwrap_or_default() })
}

fn check_run(envelope: &Envelope, identity: &Identity, repo_id: u64) -> Result<What, String> {
    action(envelope, &["rerequested"])?;
    let run = envelope.check_run.as_ref().ok_or("it has no check run")?;
    let named = run.name.as_deref().is_some_and(|name| name.starts_with(OUR_CHECKS));
    if !named && !identity.is_our_app(run.app.as_ref()) {
        return Err("a check run that is not ours".to_owned());
    }
    recheck(run.head_sha.as_deref(), run.pull_requests.as_deref(), repo_id)
}

fn check_suite(envelope: &Envelope, identity: &Identity, repo_id: u64) -> Result<What, String> {
    action(envelope, &["rerequested"])?;
    let suite = envelope.check_suite.as_ref().ok_or("it has no check suite")?;
    if !identity.is_our_app(suite.app.as_ref()) {
        return Err("a check suite that is not ours".to_owned());
    }
    recheck(suite.head_sha.as_deref(), suite.pull_requests.as_deref(), repo_id)
}

/// The list also has pulls of the same head in other repositories of the network; theirs are not ours.
fn recheck(head: Option<&str>, pulls: Option<&[Listed]>, repo_id: u64) -> Result<What, String> {
    let head = head.filter(|head| !head.is_empty()).ok_or("it names no commit")?;
    let here = |pull: &&Listed| {
        let base = pull.base.as_ref().and_then(|base| base.repo.as_ref());
        base.is_none_or(|repo| repo.id == repo_id)
    };
    let pulls = pulls.unwrap_or_default().iter().filter(here).filter_map(|pull| pull.number).collect();
    Ok(What::Recheck { head: Sha::from(head), pulls })
}

fn push(envelope: &Envelope) -> Result<What, String> {
    let reference = envelope.reference.as_deref().ok_or("it names no ref")?;
    let branch = reference.strip_prefix("refs/heads/").ok_or_else(|| format!("`{reference}` is no branch"))?;
    let tip = envelope.after.as_deref().ok_or("it names no commit")?;
    // A deletion's new tip is all zeros.
    if envelope.deleted == Some(true) || tip.bytes().all(|byte| byte == b'0') {
        return Err(format!("the branch `{branch}` was deleted"));
    }
    Ok(What::Push { branch: branch.to_owned(), tip: Sha::from(tip) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_right_signature_over_the_raw_body_passes() {
        let (secret, body) = (b"It's a Secret to Everybody", b"Hello, World!");
        // The pair that GitHub's documentation gives.
        let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(check(secret, right, body), Ok(()));
        assert_eq!(check(secret, &right.to_uppercase().replace("SHA", "sha"), body), Ok(()));
        for wrong in [&right[..70], "sha256=", "sha1=00", &right[7..], "sha256=zz"] {
            assert_eq!(check(secret, wrong, body), Err(HookError::Forged), "{wrong}");
        }
        assert_eq!(check(secret, right, b"Hello, World"), Err(HookError::Forged));
        assert_eq!(check(b"another", right, body), Err(HookError::Forged));
    }

    #[test]
    fn a_check_is_ours_by_app_or_by_name() {
        let identity = Identity::new(Some(7));
        let run = |name: &str, app: u64| {
            let pulls = json!([{"number": 3, "base": {"repo": {"id": 1}}}, {"number": 9, "base": {"repo": {"id": 2}}}]);
            let run = json!({"name": name, "head_sha": "aa", "app": {"id": app}, "pull_requests": pulls});
            json!({"action": "rerequested", "repository": {"id": 1, "full_name": "o/r"}, "check_run": run})
        };
        let ours = What::Recheck { head: Sha::from("aa"), pulls: vec![3] };
        assert_eq!(read(&identity, "check_run", run("tidegate/plan", 8)).map(|it| it.what), Ok(ours.clone()));
        assert_eq!(read(&identity, "check_run", run("lint", 7)).map(|it| it.what), Ok(ours));
        assert!(read(&identity, "check_run", run("lint", 8)).is_err());
        assert!(read(&Identity::new(None), "check_run", run("lint", 8)).is_err());
    }
}
