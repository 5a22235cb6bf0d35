//! What we write: comments, checks, reactions, merges. Each body is judged by GitHub's description.

use serde_json::{Value, json};
use tidegate::domain::effect::{CheckName, CheckReport, CheckState, Reaction};
use tidegate::domain::ids::Sha;
use tidegate::ports::forge::{CommentDraft, Forge, ForgeError, Receipt, Tried};

use super::fake::{Fake, Reply};
use super::{APP_ID, app, pull, repo, with_token};

const MARKER: &str = "<!-- tidegate:note -->";
const BODY: &str = "1 create <!-- tidegate:note -->";
const LIST: &str = "GET /repos/acme/infra/issues/7/comments";
const CREATE: &str = "POST /repos/acme/infra/issues/7/comments";

fn draft(receipt: Option<&Receipt>, tried: Tried) -> CommentDraft<'_> {
    CommentDraft { body: BODY, marker: MARKER, receipt, tried }
}

/// What was asked but for the tokens and who we are.
fn asked(fake: &Fake) -> Vec<String> {
    let all = fake.whats().into_iter();
    all.filter(|what| !what.contains("/app") && !what.ends_with("/installation")).collect()
}

fn report(state: CheckState) -> CheckReport {
    let (title, summary) = ("2 to plan".to_owned(), "net, app".to_owned());
    CheckReport { head: Sha::from("abc"), name: CheckName::Plan, state, title, summary, url: None }
}

#[tokio::test]
async fn a_comment_with_a_receipt_is_edited_by_patch() {
    let fake = Fake::with_app().await;
    fake.on("PATCH /repos/acme/infra/issues/comments/11", Reply::json(200, &json!({"id": 11})));
    let receipt = Receipt("11".to_owned());
    let again = app(&fake.url).put_comment(&pull(), &draft(Some(&receipt), Tried::Never)).await.unwrap();
    assert_eq!(again, receipt);
    assert_eq!(asked(&fake), ["PATCH /repos/acme/infra/issues/comments/11"]);
    assert_eq!(fake.bodies("PATCH /repos/acme/infra/issues/comments/11"), [json!({ "body": BODY })]);
}

#[tokio::test]
async fn a_comment_that_somebody_deleted_is_made_anew() {
    let fake = Fake::with_app().await;
    fake.on(LIST, Reply::json(200, &json!([])));
    fake.on(CREATE, Reply::json(201, &json!({"id": 12})));
    let gone = Receipt("11".to_owned());
    let made = app(&fake.url).put_comment(&pull(), &draft(Some(&gone), Tried::Never)).await.unwrap();
    assert_eq!(made.0, "12");
    let list = format!("{LIST}?per_page=100");
    assert_eq!(asked(&fake), ["PATCH /repos/acme/infra/issues/comments/11", &list, CREATE]);
}

#[tokio::test]
async fn a_comment_that_is_listed_but_not_found_is_not_made_twice() {
    let ours = json!({"id": 11, "user": {"login": "tidegate[bot]", "type": "Bot"}, "body": BODY,
        "performed_via_github_app": {"id": APP_ID}});
    let fake = Fake::with_app().await;
    fake.on(LIST, Reply::json(200, &json!([ours])));
    let known = Receipt("11".to_owned());
    let refused = app(&fake.url).put_comment(&pull(), &draft(Some(&known), Tried::Never)).await;
    assert!(matches!(refused, Err(ForgeError::Unavailable(_))), "{refused:?}");
    assert!(!asked(&fake).contains(&CREATE.to_owned()));
}

#[tokio::test]
async fn a_create_that_may_have_worked_is_found_by_its_marker_and_only_among_ours() {
    let theirs = json!({"id": 20, "user": {"login": "ann", "type": "User"}, "body": format!("look: {MARKER}")});
    let ours = json!({"id": 21, "user": {"login": "tidegate[bot]", "type": "Bot"}, "body": BODY,
        "performed_via_github_app": {"id": APP_ID}});
    let fake = Fake::with_app().await;
    fake.on(LIST, Reply::json(200, &json!([theirs, ours])));
    fake.on("PATCH /repos/acme/infra/issues/comments/21", Reply::json(200, &json!({"id": 21})));
    let found = app(&fake.url).put_comment(&pull(), &draft(None, Tried::Perhaps)).await.unwrap();
    assert_eq!(found.0, "21");
    assert!(!asked(&fake).contains(&CREATE.to_owned()));

    let fake = Fake::with_app().await;
    fake.on(LIST, Reply::json(200, &json!([theirs])));
    fake.on(CREATE, Reply::json(201, &json!({"id": 22})));
    assert_eq!(app(&fake.url).put_comment(&pull(), &draft(None, Tried::Perhaps)).await.unwrap().0, "22");
}

#[tokio::test]
async fn an_app_writes_check_runs_and_updates_them_by_patch() {
    let fake = Fake::with_app().await;
    let (create, update) = ("POST /repos/acme/infra/check-runs", "PATCH /repos/acme/infra/check-runs/31");
    fake.on(create, Reply::json(201, &json!({"id": 31})));
    fake.on(update, Reply::json(200, &json!({"id": 31})));
    let github = app(&fake.url);
    let receipt = github.put_check(&repo(), &report(CheckState::Pending), None).await.unwrap();
    assert_eq!(receipt.0, "31");
    let states = [CheckState::Running, CheckState::Success, CheckState::Failure, CheckState::Superseded];
    for state in states {
        assert_eq!(github.put_check(&repo(), &report(state), Some(&receipt)).await.unwrap(), receipt);
    }
    let first = json!({"name": "tidegate/plan", "head_sha": "abc", "status": "queued",
        "output": {"title": "2 to plan", "summary": "net, app"}});
    assert_eq!(fake.bodies(create), [first]);
    let conclusions: Vec<Value> = fake.bodies(update).iter().map(|body| body["conclusion"].clone()).collect();
    assert_eq!(conclusions, [Value::Null, json!("success"), json!("failure"), json!("cancelled")]);
}

#[tokio::test]
async fn a_check_run_that_is_gone_or_not_ours_is_made_anew() {
    for (status, said) in [(404, "Not Found"), (403, "Invalid app_id `1` - check run can only be modified by …")] {
        let fake = Fake::with_app().await;
        fake.on("PATCH /repos/acme/infra/check-runs/31", Reply::json(status, &json!({ "message": said })));
        fake.on("POST /repos/acme/infra/check-runs", Reply::json(201, &json!({"id": 32})));
        let gone = Receipt("31".to_owned());
        let made = app(&fake.url).put_check(&repo(), &report(CheckState::Success), Some(&gone)).await.unwrap();
        assert_eq!(made.0, "32", "{status}");
    }
}

#[tokio::test]
async fn a_token_writes_statuses() {
    let fake = Fake::start().await;
    fake.on("POST /repos/acme/infra/statuses/abc", Reply::json(201, &json!({"state": "pending"})));
    let github = with_token(&fake.url);
    let receipt = github.put_check(&repo(), &report(CheckState::Running), None).await.unwrap();
    assert_eq!(receipt.0, "status");
    github.put_check(&repo(), &report(CheckState::Success), Some(&receipt)).await.unwrap();
    let bodies = fake.bodies("POST /repos/acme/infra/statuses/abc");
    assert_eq!(bodies[0], json!({"state": "pending", "context": "tidegate/plan", "description": "2 to plan"}));
    assert_eq!(bodies[1]["state"], "success");
}

#[tokio::test]
async fn reactions_are_github_s_own_words() {
    let fake = Fake::with_app().await;
    let what = "POST /repos/acme/infra/issues/comments/41/reactions";
    fake.on(what, Reply::json(201, &json!({"id": 1})));
    fake.on(what, Reply::json(200, &json!({"id": 1})));
    let github = app(&fake.url);
    for reaction in [Reaction::Eyes, Reaction::ThumbsUp, Reaction::Confused] {
        github.react(&pull(), 41, reaction).await.unwrap();
    }
    let contents: Vec<Value> = fake.bodies(what).iter().map(|body| body["content"].clone()).collect();
    assert_eq!(contents, ["eyes", "+1", "confused"]);
}

#[tokio::test]
async fn a_merge_names_the_head_and_an_allowed_method() {
    let fake = Fake::with_app().await;
    let settings = json!({"id": 1, "allow_merge_commit": false, "allow_squash_merge": true});
    fake.on("GET /repos/acme/infra", Reply::json(200, &settings));
    fake.on("PUT /repos/acme/infra/pulls/7/merge", Reply::json(200, &json!({"merged": true})));
    app(&fake.url).merge(&pull(), &Sha::from("abc")).await.unwrap();
    let body = json!({"sha": "abc", "merge_method": "squash"});
    assert_eq!(fake.bodies("PUT /repos/acme/infra/pulls/7/merge"), [body]);
}

#[tokio::test]
async fn a_refused_merge_is_fine_only_when_the_pull_is_merged() {
    for (status, merged) in [(405, true), (405, false), (409, false)] {
        let fake = Fake::with_app().await;
        fake.on("GET /repos/acme/infra", Reply::json(200, &json!({"id": 1})));
        fake.on("PUT /repos/acme/infra/pulls/7/merge", Reply::json(status, &json!({"message": "not mergeable"})));
        let side = json!({"ref": "main", "sha": "b", "repo": {"id": 1}});
        let state = if merged { "closed" } else { "open" };
        let now = json!({"number": 7, "state": state, "merged": merged, "head": side, "base": side,
            "updated_at": "2026-11-30T12:00:00Z"});
        fake.on("GET /repos/acme/infra/pulls/7", Reply::json(200, &now));
        match app(&fake.url).merge(&pull(), &Sha::from("abc")).await {
            Ok(()) => assert!(merged),
            Err(ForgeError::Conflict(said)) => assert!(!merged && said.contains("not mergeable"), "{said}"),
            Err(other) => panic!("{other:?}"),
        }
    }
}
