//! Answers that are none: a page where JSON belongs, another shape, a list without an end, and silence.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::forge::github::GitHubAuth;
use tidegate::ports::forge::{CommentDraft, Forge, ForgeError, PullRef, Tried};
use tidegate::sandbox::{Fault, Sandbox, SandboxConfig};

use super::fake::{Fake, Reply};
use super::{app, config, pull, repo};

const PAGE: &str = "<html><body>Sign in to the company's network: ghs_notforlogs</body></html>";

#[tokio::test]
async fn what_cannot_be_read_is_told_from_what_is_away_and_never_quoted() {
    let replies = || {
        [
            Reply::text(200, PAGE),
            Reply::json(200, &json!("ghs_notforlogs")),
            Reply::json(200, &Value::Null),
            Reply::text(200, ""),
        ]
    };
    for (at, reply) in replies().into_iter().enumerate() {
        let fake = Fake::with_app().await;
        for path in ["pulls/7", "pulls/7/reviews", "pulls/7/commits", "collaborators/ann/permission", "pulls"] {
            fake.on(&format!("GET /repos/acme/infra/{path}"), reply.clone());
        }
        fake.on("GET /repos/acme/infra", reply.clone());
        let github = app(&fake.url);
        let login = tidegate::domain::ids::Login::from("ann");
        for (what, error) in [
            ("pull", github.pull(&pull()).await.err()),
            ("reviews", github.reviews(&pull()).await.err()),
            ("committers", github.committers(&pull()).await.err()),
            ("permission", github.permission(&repo(), &login).await.err()),
            ("pulls", github.open_pulls(&repo()).await.err()),
            ("repo", github.repo("acme/infra").await.err()),
        ] {
            let error = error.unwrap_or_else(|| panic!("{at} {what} was read"));
            assert!(matches!(error, ForgeError::Unreadable(_)), "{at} {what}: {error:?}");
            assert!(!error.to_string().contains("ghs_"), "{at} {what}: {error}");
        }
    }
}

#[tokio::test]
async fn a_page_of_a_proxy_is_no_comment_and_with_its_status_it_is_away() {
    for (status, wanted) in [(200, "Unreadable"), (201, "Unreadable"), (502, "Unavailable"), (503, "Unavailable")] {
        let fake = Fake::with_app().await;
        fake.on("POST /repos/acme/infra/issues/7/comments", Reply::text(status, PAGE));
        let draft = CommentDraft { body: "b", marker: "m", receipt: None, tried: Tried::Never };
        let error = app(&fake.url).put_comment(&pull(), &draft).await.unwrap_err();
        assert!(format!("{error:?}").starts_with(wanted), "{status}: {error:?}");
    }
}

#[tokio::test]
async fn a_forge_that_takes_a_call_and_never_answers_is_away() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::start(SandboxConfig::local(dir.path())).await.unwrap();
    sandbox.create_user("mira");
    sandbox.create_repo("acme", "infra", &[("a", "b\n")]).unwrap();
    sandbox.commit("acme/infra", "one", &[("a", Some("c\n"))], "One", "mira").unwrap();
    let number = sandbox.open_pull("acme/infra", "one", "One", "mira").unwrap();
    let key = sandbox.app_credentials();
    let auth = GitHubAuth::App { id: key.app_id, private_key_pem: key.private_key.into() };
    let github = tidegate::forge::github::GitHub::new(config(sandbox.url(), auth)).unwrap();
    let known = github.repo("acme/infra").await.unwrap();
    let pull = PullRef { repo: known, number };
    let github = github.with_longest_call(Duration::from_millis(300));
    sandbox.faults().next("GET", "/repos/*/pulls/*", Fault::Silence);
    let error = github.pull(&pull).await.unwrap_err();
    assert!(matches!(&error, ForgeError::Unavailable(why) if why.contains("no answer within 300ms")), "{error:?}");
    // The silence was of one call: the next finds the forge well, however slow this machine is.
    assert_eq!(github.with_longest_call(Duration::from_secs(60)).pull(&pull).await.unwrap().title, "One");
}
