//! The sandbox forge as its clients see it: octocrab as the App, git over HTTP, webhooks with their signatures, and
//! every body held against GitHub's own description.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::HeaderMap;
use octocrab::models::{AppId, InstallationId};
use octocrab::params::checks::{CheckRunConclusion, CheckRunStatus};
use serde_json::{Value, json};
use tidegate::sandbox::{Fault, Protection, PullState, Refusal, Role, Sandbox, SandboxConfig, Verdict, Visibility};

mod apps;
mod contract;
mod deliveries;
mod differences;
mod graphql;
mod tls;
mod worlds;

const REPO: &str = "acme/infra";

struct Stage {
    sandbox: Sandbox,
    received: Received,
    dir: tempfile::TempDir,
    http: reqwest::Client,
}

type Received = Arc<Mutex<Vec<(String, Value)>>>;

impl Stage {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::start(SandboxConfig::local(dir.path().join("forge"))).await.unwrap();
        for user in ["mira", "lin", "reader"] {
            sandbox.create_user(user);
        }
        let files = [("network/main.tf", "terraform {\n  backend \"s3\" {}\n}\n"), ("README.md", "# infra\n")];
        sandbox.create_repo("acme", "infra", &files).unwrap();
        sandbox.set_visibility(REPO, Visibility::Private).unwrap();
        sandbox.set_role(REPO, "mira", Role::Write).unwrap();
        sandbox.set_role(REPO, "lin", Role::Write).unwrap();
        let received = Received::default();
        let address = receiver(Arc::clone(&received)).await;
        sandbox.set_hook(&address, "s3cret");
        Self { sandbox, received, dir, http: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    /// A pull of mira's; gives its number and head.
    fn open(&self) -> (u64, String) {
        let change = [("network/main.tf", Some("terraform {\n  backend \"gcs\" {}\n}\n"))];
        let head = self.sandbox.commit(REPO, "feature/net", &change, "Move the state", "mira").unwrap();
        (self.sandbox.open_pull(REPO, "feature/net", "Move the state", "mira").unwrap(), head)
    }

    async fn raw(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Value) {
        let method = method.parse::<reqwest::Method>().unwrap();
        let mut request = self.http.request(method, format!("{}{path}", self.sandbox.url()));
        if !token.is_empty() {
            request = request.header("authorization", format!("token {token}"));
        }
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        (status, body)
    }

    /// A call whose answer must be as GitHub describes it.
    async fn call(&self, method: &str, path: &str, token: &str, body: Value) -> (u16, Value) {
        let (status, answer) = self.raw(method, path, token, &body).await;
        contract::response(method, path, status, &answer);
        (status, answer)
    }

    async fn events(&self) -> Vec<(String, Value)> {
        self.sandbox.deliveries_idle().await;
        std::mem::take(&mut *self.received.lock().unwrap())
    }

    fn app(&self) -> octocrab::Octocrab {
        let app = self.sandbox.app_credentials();
        octocrab::Octocrab::builder()
            .base_uri(self.sandbox.url())
            .unwrap()
            .app_from_rsa_pem(AppId(app.app_id), app.private_key)
            .unwrap()
            .build()
            .unwrap()
    }

    async fn installation_token(&self) -> String {
        let id = self.sandbox.app_credentials().installation_id;
        let (_, token) = self.app().installation_and_token(InstallationId(id)).await.unwrap();
        octocrab_secret(&token)
    }

    fn git(&self, args: &[&str]) -> (bool, String) {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.dir.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("no_proxy", "127.0.0.1")
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}

fn octocrab_secret(token: &secrecy::SecretString) -> String {
    secrecy::ExposeSecret::expose_secret(token).to_owned()
}

async fn receiver(received: Received) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let take = move |headers: HeaderMap, body: Bytes| {
        let received = Arc::clone(&received);
        async move {
            let text = |name: &str| headers[name].to_str().unwrap().to_owned();
            assert_eq!(text("x-hub-signature-256"), tidegate::sandbox::hooks::signature("s3cret", &body));
            assert_eq!(text("content-type"), "application/json");
            assert_eq!(text("x-github-delivery").len(), 36);
            let body: Value = serde_json::from_slice(&body).unwrap();
            received.lock().unwrap().push((text("x-github-event"), body));
        }
    };
    let router = axum::Router::new().route("/hook", axum::routing::post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn names(events: &[(String, Value)]) -> Vec<String> {
    let name = |(event, body): &(String, Value)| match body["action"].as_str() {
        Some(action) => format!("{event}.{action}"),
        None => event.clone(),
    };
    events.iter().map(name).collect()
}

fn status(refused: Result<impl std::fmt::Debug, Refusal>) -> u16 {
    refused.unwrap_err().status
}

#[tokio::test]
async fn octocrab_works_as_the_app() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let app = stage.app();
    let installation = app.apps().get_repository_installation("acme", "infra").await.unwrap();
    let crab = app.installation(installation.id).unwrap();

    let pull = crab.pulls("acme", "infra").get(number).await.unwrap();
    assert_eq!(pull.head.as_ref().sha, head);
    let files = crab.pulls("acme", "infra").list_files(number).await.unwrap();
    assert_eq!(files.items[0].filename, "network/main.tf");

    let checks = crab.checks("acme", "infra");
    let run = checks.create_check_run("tidegate/plan", &head).status(CheckRunStatus::InProgress).send().await.unwrap();
    let done = checks.update_check_run(run.id).conclusion(CheckRunConclusion::Success).send().await.unwrap();
    assert_eq!(done.conclusion.as_deref(), Some("success"));
    assert!(done.completed_at.is_some());
    let seen = stage.sandbox.checks(REPO, &head).unwrap();
    assert_eq!((seen[0].name.as_str(), seen[0].conclusion.as_deref()), ("tidegate/plan", Some("success")));

    let note = crab.issues("acme", "infra").create_comment(number, "first").await.unwrap();
    assert_eq!(note.user.login, "tidegate[bot]");
    crab.issues("acme", "infra").update_comment(note.id, "second").await.unwrap();
    assert_eq!(stage.sandbox.comments(REPO, number).unwrap()[0].body, "second");

    stage.sandbox.review(REPO, number, "lin", Verdict::Approve, "").unwrap();
    let reviews = crab.pulls("acme", "infra").list_reviews(number).send().await.unwrap();
    assert_eq!(reviews.items.len(), 1);
    assert_eq!(status(stage.sandbox.review(REPO, number, "mira", Verdict::Approve, "")), 422);

    let events = names(&stage.events().await);
    for wanted in ["ping", "pull_request.opened", "check_run.created", "check_run.completed", "issue_comment.edited"] {
        assert!(events.iter().any(|name| name == wanted), "{wanted} is missing in {events:?}");
    }
}

#[tokio::test]
async fn every_answer_is_as_github_describes_it() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let (app, mira) = (stage.installation_token().await, stage.sandbox.token_for("mira"));
    let base = format!("/repos/{REPO}");
    let pull = format!("{base}/pulls/{number}");

    let (_, first) = stage.call("GET", &pull, &mira, Value::Null).await;
    let (_, again) = stage.call("GET", &pull, &mira, Value::Null).await;
    assert_eq!((&first["mergeable"], &first["mergeable_state"]), (&Value::Null, &json!("unknown")));
    assert_eq!((&again["mergeable"], &again["mergeable_state"]), (&json!(true), &json!("clean")));

    let run = json!({"name": "tidegate/apply", "head_sha": head, "status": "in_progress", "output": {"title": "t", "summary": "s"}});
    let (_, made) = stage.call("POST", &format!("{base}/check-runs"), &app, run.clone()).await;
    let (refused, said) = stage.raw("POST", &format!("{base}/check-runs"), &mira, &run).await;
    assert_eq!((refused, &said["message"]), (403, &json!("You must authenticate via a GitHub App.")));
    let id = made["id"].as_u64().unwrap();
    stage
        .call("PATCH", &format!("{base}/check-runs/{id}"), &app, json!({"conclusion": "failure", "check_run_id": 1}))
        .await;
    let (_, now) = stage.call("GET", &pull, &mira, Value::Null).await;
    assert_eq!(now["mergeable_state"], "unstable");

    let status = json!({"state": "pending", "context": "tidegate/plan", "description": "plans", "target_url": ""});
    stage.call("POST", &format!("{base}/statuses/{head}"), &mira, status).await;
    let (_, comment) =
        stage.call("POST", &format!("{base}/issues/{number}/comments"), &app, json!({"body": "a note"})).await;
    let comment_path = format!("{base}/issues/comments/{}", comment["id"]);
    let (_, edited) = stage.call("PATCH", &comment_path, &app, json!({"body": "an edited note"})).await;
    assert_eq!(
        (&edited["body"], &edited["performed_via_github_app"]["slug"]),
        (&json!("an edited note"), &json!("tidegate"))
    );
    let reactions = format!("{comment_path}/reactions");
    assert_eq!(stage.call("POST", &reactions, &mira, json!({"content": "eyes"})).await.0, 201);
    assert_eq!(stage.call("POST", &reactions, &mira, json!({"content": "eyes"})).await.0, 200);
    assert_eq!(stage.call("POST", &reactions, &mira, json!({"content": "shrug"})).await.0, 422);
    let lin = stage.sandbox.token_for("lin");
    stage.call("POST", &format!("{pull}/reviews"), &lin, json!({"event": "APPROVE"})).await;
    let long = "x".repeat(65_537);
    let (code, said) =
        stage.raw("POST", &format!("{base}/issues/{number}/comments"), &app, &json!({"body": long})).await;
    assert_eq!((code, &said["errors"][0]["field"]), (422, &json!("data")));

    let reads = [
        "",
        "/pulls",
        "/pulls/1/files",
        "/pulls/1/commits",
        "/pulls/1/reviews",
        "/issues/1",
        "/issues/1/comments",
        "/issues/1/labels",
        "/commits/feature%2Fnet",
        &format!("/commits/{head}/check-runs"),
        &format!("/commits/{head}/status"),
        &format!("/commits/{head}/statuses"),
        &format!("/commits/{head}/pulls"),
        "/branches/main",
        "/rules/branches/main",
        "/contents/network/main.tf",
        "/contents/network",
        "/git/ref/heads/feature/net",
        "/compare/main...feature%2Fnet",
        "/collaborators/mira/permission",
        "/collaborators/reader/permission",
        "/pulls/99",
    ];
    for path in reads {
        let (code, _) = stage.call("GET", &format!("{base}{path}"), &app, Value::Null).await;
        assert_eq!(code, if path.ends_with("99") { 404 } else { 200 }, "{path}");
    }
    for path in ["/user", "/rate_limit"] {
        stage.call("GET", path, &mira, Value::Null).await;
    }
    stage.call("GET", "/installation/repositories", &app, Value::Null).await;
    let (code, _) = stage.call("DELETE", &comment_path, &app, Value::Null).await;
    assert_eq!(code, 204);
    assert_eq!(stage.call("GET", &comment_path, &app, Value::Null).await.0, 404);
    assert_eq!(stage.raw("GET", &format!("/api/v3{base}"), &app, &Value::Null).await.1["full_name"], REPO);
}

#[tokio::test]
async fn a_comment_is_folded_away_by_graphql() {
    let stage = Stage::new().await;
    let (number, _) = stage.open();
    let app = stage.installation_token().await;
    let path = format!("/repos/{REPO}/issues/{number}/comments");
    let (_, comment) = stage.call("POST", &path, &app, json!({"body": "a note"})).await;
    for (path, subject, errs) in [("/graphql", &comment["node_id"], false), ("/api/graphql", &json!("IC_none"), true)] {
        let query = "mutation($input: MinimizeCommentInput!) { minimizeComment(input: $input) { clientMutationId } }";
        let body = json!({"query": query, "variables": {"input": {"subjectId": subject, "classifier": "OUTDATED"}}});
        let (code, said) = stage.raw("POST", path, &app, &body).await;
        assert_eq!((code, said["errors"].is_array()), (200, errs), "{said}");
    }
    assert_eq!(stage.sandbox.comments(REPO, number).unwrap()[0].minimized.as_deref(), Some("outdated"));
}

#[tokio::test]
async fn webhooks_are_as_github_describes_them() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let (app, mira) = (stage.installation_token().await, stage.sandbox.token_for("mira"));
    let sandbox = &stage.sandbox;
    let note = sandbox.comment(REPO, number, "lin", "tidegate plan").unwrap();
    sandbox.edit_comment(REPO, note, "lin", "tidegate help").unwrap();
    sandbox.delete_comment(REPO, note, "lin").unwrap();
    let review = sandbox.review(REPO, number, "lin", Verdict::RequestChanges, "no").unwrap();
    sandbox.dismiss(REPO, number, review, "mira").unwrap();
    sandbox.set_draft(REPO, number, "mira", PullState::Draft).unwrap();
    sandbox.set_draft(REPO, number, "mira", PullState::Open).unwrap();
    let after = sandbox.commit(REPO, "feature/net", &[("x", Some("y"))], "More", "mira").unwrap();
    let run = json!({"name": "tidegate/plan", "head_sha": after, "conclusion": "success"});
    let (_, run) = stage.raw("POST", &format!("/repos/{REPO}/check-runs"), &app, &run).await;
    sandbox.rerequest_check(REPO, run["id"].as_u64().unwrap(), "mira").unwrap();
    let suite = format!("/repos/{REPO}/check-suites/{}/rerequest", run["check_suite"]["id"]);
    assert_eq!(stage.call("POST", &suite, &mira, Value::Null).await.0, 201);
    let pull = format!("/repos/{REPO}/pulls/{number}");
    stage.call("PATCH", &pull, &mira, json!({"title": "Another title"})).await;
    sandbox.close(REPO, number, "mira").unwrap();
    sandbox.reopen(REPO, number, "mira").unwrap();
    sandbox.merge(REPO, number, "lin").unwrap();

    let events = stage.events().await;
    for (event, body) in &events {
        contract::webhook(event, body["action"].as_str(), body);
    }
    let synchronize = events.iter().find(|(_, body)| body["action"] == "synchronize").unwrap();
    assert_eq!((&synchronize.1["before"], &synchronize.1["after"]), (&json!(head), &json!(after)));
    let names = names(&events);
    let tail = ["pull_request.edited", "pull_request.closed", "pull_request.reopened", "pull_request.closed", "push"];
    assert_eq!(names[names.len() - tail.len()..], tail);
    let dismissed = events.iter().find(|(_, body)| body["action"] == "dismissed").unwrap();
    assert_eq!(dismissed.1["review"]["state"], "dismissed");
}

// The git program blocks its thread, so the server needs another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn git_clones_and_pushes_over_http() {
    let stage = Stage::new().await;
    let (number, before) = stage.open();
    stage.events().await;
    let bare = stage.sandbox.clone_url(REPO);
    assert!(!stage.git(&["clone", "-q", &bare, "denied"]).0, "a private repository needs a credential");
    let with = |user: &str| bare.replacen("http://", &format!("http://x:{}@", stage.sandbox.token_for(user)), 1);
    assert!(!stage.git(&["clone", "-q", &with("reader"), "denied"]).0, "no role, no clone");
    let app = bare.replacen("http://", &format!("http://x-access-token:{}@", stage.installation_token().await), 1);
    let (fine, said) = stage.git(&["clone", "-q", "--filter=blob:none", &app, "by-app"]);
    assert!(fine, "{said}");
    let (fine, said) = stage.git(&["-C", "by-app", "fetch", "-q", "origin", &before, "refs/pull/1/head"]);
    assert!(fine, "{said}");

    let (fine, said) = stage.git(&["clone", "-q", "-b", "feature/net", &with("mira"), "work"]);
    assert!(fine, "{said}");
    std::fs::write(stage.dir.path().join("work/new.tf"), "# new\n").unwrap();
    stage.git(&["-C", "work", "add", "."]);
    let name = ["-c", "user.name=mira", "-c", "user.email=mira@users.sandbox.invalid"];
    let (fine, said) = stage.git(&[&["-C", "work"][..], &name, &["commit", "-qm", "New"]].concat());
    assert!(fine, "{said}");
    let (fine, said) = stage.git(&["-C", "work", "push", "-q"]);
    assert!(fine, "{said}");
    let after = stage.git(&["-C", "work", "rev-parse", "HEAD"]).1.trim().to_owned();
    assert_eq!(stage.sandbox.pull(REPO, number).unwrap().head_sha, after);
    let events = stage.events().await;
    assert_eq!(names(&events), ["push", "pull_request.synchronize"]);
    assert_eq!((&events[1].1["before"], &events[1].1["after"]), (&json!(before), &json!(after)));
    assert_eq!(events[1].1["sender"]["login"], "mira");
    let (fine, said) = stage.git(&["-C", "work", "push", "origin", "HEAD:refs/pull/1/head"]);
    assert!(!fine && said.contains("hidden ref"), "{said}");
    let (fine, said) = stage.git(&["ls-remote", &app, "refs/pull/1/head"]);
    assert!(fine && said.starts_with(&after), "{said}");
}

#[tokio::test]
async fn a_protected_branch_waits_for_its_checks() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let (app, lin) = (stage.installation_token().await, stage.sandbox.token_for("lin"));
    let rule = Protection { checks: vec!["tidegate/apply".into()], reviews: 1, ..Protection::default() };
    stage.sandbox.set_protection(REPO, "main", rule).unwrap();
    let pull = format!("/repos/{REPO}/pulls/{number}");
    let merge = format!("{pull}/merge");
    stage.call("GET", &pull, &lin, Value::Null).await;
    assert_eq!(stage.call("GET", &pull, &lin, Value::Null).await.1["mergeable_state"], "blocked");
    assert_eq!(stage.call("PUT", &merge, &lin, json!({})).await.0, 405);
    let run = json!({"name": "tidegate/apply", "head_sha": head, "conclusion": "success"});
    stage.call("POST", &format!("/repos/{REPO}/check-runs"), &app, run).await;
    assert_eq!(stage.call("PUT", &merge, &lin, json!({})).await.0, 405, "the review is missing");
    stage.sandbox.review(REPO, number, "lin", Verdict::Approve, "").unwrap();
    assert_eq!(stage.call("PUT", &merge, &lin, json!({"sha": "0".repeat(40)})).await.0, 409);
    assert_eq!(stage.call("GET", &merge, &lin, Value::Null).await.0, 404);
    let (code, merged) = stage.call("PUT", &merge, &lin, json!({"sha": head})).await;
    assert_eq!((code, &merged["merged"]), (200, &json!(true)));
    assert_eq!(stage.call("GET", &merge, &lin, Value::Null).await.0, 204);
    assert_eq!(stage.sandbox.tip(REPO, "main").unwrap(), merged["sha"].as_str().unwrap());
}

#[tokio::test]
async fn faults_and_lost_webhooks_come_as_ordered() {
    let stage = Stage::new().await;
    let (number, _) = stage.open();
    stage.events().await;
    let path = format!("/repos/{REPO}/issues/{number}/comments");
    let mira = stage.sandbox.token_for("mira");
    stage.sandbox.faults().next("POST", "/repos/*/comments", Fault::AfterEffect(502));
    stage.sandbox.faults().next(
        "POST",
        "/repos/*/comments",
        Fault::Status(429, vec![("retry-after".into(), "7".into())]),
    );
    assert_eq!(stage.raw("POST", &path, &mira, &json!({"body": "one"})).await.0, 502);
    assert_eq!(stage.raw("POST", &path, &mira, &json!({"body": "two"})).await.0, 429);
    assert_eq!(stage.sandbox.comments(REPO, number).unwrap().len(), 1, "the first was written, the second not");
    assert_eq!(names(&stage.events().await), ["issue_comment.created"]);

    stage.sandbox.hooks().drop_next(1);
    stage.sandbox.comment(REPO, number, "lin", "lost").unwrap();
    stage.sandbox.hooks().duplicate_next(1);
    stage.sandbox.comment(REPO, number, "lin", "twice").unwrap();
    let bodies: Vec<_> = stage.events().await.iter().map(|(_, body)| body["comment"]["body"].clone()).collect();
    assert_eq!(bodies, ["twice", "twice"]);
    let lost = stage.sandbox.hooks().delivered().iter().find(|one| one.answered.is_none()).unwrap().id;
    stage.sandbox.hooks().redeliver(lost).unwrap();
    assert_eq!(stage.events().await[0].1["comment"]["body"], "lost");

    stage.sandbox.hooks().pause();
    stage.sandbox.comment(REPO, number, "lin", "held").unwrap();
    assert!(stage.events().await.is_empty());
    stage.sandbox.hooks().resume();
    assert_eq!(stage.events().await.len(), 1);
}

#[tokio::test]
async fn what_a_token_may_not_see_is_not_there() {
    let stage = Stage::new().await;
    let (number, _) = stage.open();
    let (reader, app) = (stage.sandbox.token_for("reader"), stage.installation_token().await);
    let pull = format!("/repos/{REPO}/pulls/{number}");
    assert_eq!(stage.call("GET", &pull, &reader, Value::Null).await.0, 404);
    assert_eq!(stage.raw("GET", &pull, "", &Value::Null).await.0, 404);
    assert_eq!(stage.raw("GET", &pull, "ghp_unknown", &Value::Null).await.0, 401);
    stage.sandbox.set_visibility(REPO, Visibility::Public).unwrap();
    assert_eq!(stage.call("GET", &pull, &reader, Value::Null).await.0, 200);
    assert_eq!(stage.call("PUT", &format!("{pull}/merge"), &reader, json!({})).await.0, 403);
    assert_eq!(stage.call("GET", "/user", &app, Value::Null).await.0, 403);
    assert_eq!(stage.raw("GET", "/app", "aa.bb.cc", &Value::Null).await.0, 401);
    stage.sandbox.expire_tokens();
    assert_eq!(stage.raw("GET", &pull, &app, &Value::Null).await.0, 401);
}

#[tokio::test]
async fn the_pages_work_by_forms() {
    let stage = Stage::new().await;
    let (number, _) = stage.open();
    stage.sandbox.protect(REPO, "main", &["tidegate/apply"]).unwrap();
    stage.sandbox.comment(REPO, number, "lin", "> [!CAUTION]\n> dies\n\n<script>no()</script>").unwrap();
    let page = format!("{}/{REPO}/pull/{number}", stage.sandbox.url());
    let look =
        || async { stage.http.get(&page).header("cookie", "viewer=lin").send().await.unwrap().text().await.unwrap() };
    let html = look().await;
    assert!(html.contains("markdown-alert-caution") && !html.contains("no()"), "{html}");
    assert!(html.contains("disabled title=\"Required status check"), "{html}");
    let deed = |deed: &str, form: &'static str| {
        let request = stage.http.post(format!("{page}/{deed}")).header("cookie", "viewer=lin");
        request.header("content-type", "application/x-www-form-urlencoded").body(form).send()
    };
    assert_eq!(deed("merge", "").await.unwrap().status(), 405);
    deed("comment", "body=tidegate+plan%0D%0Anow").await.unwrap();
    deed("approve", "").await.unwrap();
    let html = look().await;
    assert!(html.contains("approved these changes") && html.contains("tidegate plan"), "{html}");
    assert_eq!(stage.sandbox.comments(REPO, number).unwrap()[1].body, "tidegate plan\nnow");
    let hidden = stage.http.get(&page).header("cookie", "viewer=reader").send().await.unwrap();
    assert_eq!(hidden.status(), 404);
}
