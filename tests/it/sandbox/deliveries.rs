//! Webhooks as GitHub sends them: headers, both signatures, forms, receivers whose certificate nobody knows, and what a test may order.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use tidegate::demo::alone::{self, Alone, Encryption, Hook};
use tidegate::sandbox::hooks::{Content, Receiver, Trust, old_signature, signature};

use super::{REPO, Stage};

type Raw = Arc<Mutex<Vec<(HeaderMap, Vec<u8>)>>>;

async fn listening() -> (String, Raw) {
    let raw = Raw::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let kept = Arc::clone(&raw);
    let take = move |headers: HeaderMap, body: Bytes| {
        kept.lock().unwrap().push((headers, body.to_vec()));
        async {}
    };
    let router = axum::Router::new().route("/hook", axum::routing::post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, raw)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_carries_the_same_and_both_signatures_hold() {
    let stage = Stage::new().await;
    let (url, raw) = listening().await;
    for (content, secret) in [(Content::Json, Some("s")), (Content::Form, Some("s")), (Content::Json, None)] {
        let secret = secret.map(str::to_owned);
        stage.sandbox.set_receiver(Receiver {
            url: url.clone(),
            secret: secret.clone(),
            content,
            trust: Trust::Certified,
        });
        stage.sandbox.deliveries_idle().await;
        let (headers, body) = raw.lock().unwrap().pop().unwrap();
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(text("x-github-event").as_deref(), Some("ping"));
        assert_eq!(text("x-github-delivery").unwrap().len(), 36);
        assert!(text("user-agent").unwrap().starts_with("GitHub-Hookshot/"));
        for name in
            ["x-github-hook-id", "x-github-hook-installation-target-id", "x-github-hook-installation-target-type"]
        {
            assert!(text(name).is_some(), "1 {name}");
        }
        assert_eq!(text("x-hub-signature-256"), secret.as_ref().map(|secret| signature(secret, &body)));
        assert_eq!(text("x-hub-signature"), secret.as_ref().map(|secret| old_signature(secret, &body)));
        let payload: Value = if content == Content::Form {
            assert_eq!(text("content-type").as_deref(), Some("application/x-www-form-urlencoded"));
            let (_, json) = url::form_urlencoded::parse(&body).find(|(key, _)| key == "payload").unwrap();
            serde_json::from_str(&json).unwrap()
        } else {
            serde_json::from_slice(&body).unwrap()
        };
        assert_eq!(payload["hook_id"], 7003);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_doubled_turned_around_and_sent_again() {
    let stage = Stage::new().await;
    let (number, _) = stage.open();
    let guid = |at: usize| stage.sandbox.hooks().delivered()[at].guid.clone();
    stage.events().await;
    let known = stage.sandbox.hooks().delivered().len();
    stage.sandbox.hooks().pause();
    for text in ["one", "two"] {
        stage.sandbox.comment(REPO, number, "lin", text).unwrap();
    }
    stage.sandbox.hooks().reverse();
    stage.sandbox.hooks().resume();
    let events = stage.events().await;
    let bodies: Vec<&str> = events.iter().filter_map(|(_, body)| body["comment"]["body"].as_str()).collect();
    assert_eq!(bodies, ["two", "one"]);
    stage.sandbox.hooks().redeliver(stage.sandbox.hooks().delivered()[known].id).unwrap();
    stage.events().await;
    assert_eq!(guid(known + 2), guid(known), "2 the same GUID");
    assert_ne!(guid(known), guid(known + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_says_less_than_the_api_and_the_bot_hears_itself() {
    let stage = Stage::new().await;
    let (number, _) = stage.open();
    let app = stage.installation_token().await;
    stage.raw("POST", &format!("/repos/{REPO}/issues/{number}/comments"), &app, &json!({"body": "note"})).await;
    stage.sandbox.merge(REPO, number, "lin").unwrap();
    let events = stage.events().await;
    let find = |action: &str| &events.iter().find(|(_, body)| body["action"] == action).unwrap().1;
    let opened = &find("opened")["pull_request"];
    assert_eq!((&opened["mergeable"], &opened["mergeable_state"]), (&Value::Null, &json!("unknown")), "4");
    assert_eq!(find("created")["sender"]["login"], "tidegate[bot]", "23");
    assert_eq!(find("closed")["pull_request"]["merged"], true, "28");
    assert_eq!(super::names(&events).last().unwrap(), "push", "28 base moves after it");
}

/// A sandbox over TLS that is its own receiver: its certificate is known to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_nobody_vouches_for_is_reached_only_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = |hook| Alone {
        listen,
        data: None,
        encryption: Encryption::Made,
        plain: Some(listen),
        hook,
        seed: None,
        rate_limit: None,
    };
    let receiver = alone::start(&options(None), &dir.path().join("receiver")).await.unwrap();
    for (trust, answered) in [(Trust::Certified, 0), (Trust::Any, 404)] {
        let url = format!("{}/repos/hook", receiver.sandbox.url());
        let hook = Hook { url, secret: None, content: Content::Json, trust };
        let sender = alone::start(&options(Some(hook)), &dir.path().join("sender")).await.unwrap();
        sender.sandbox.deliveries_idle().await;
        assert_eq!(sender.sandbox.hooks().delivered()[0].answered, Some(answered), "{trust:?}");
    }
    // Both of its ports answer, each with its own address in the links.
    let (url, http) =
        (receiver.facts["plain_url"].as_str().unwrap(), reqwest::Client::builder().no_proxy().build().unwrap());
    let token = receiver.facts["tokens"]["mira"].as_str().unwrap();
    let repo: Value =
        http.get(format!("{url}/repos/acme/infra")).bearer_auth(token).send().await.unwrap().json().await.unwrap();
    assert_eq!(repo["url"], format!("{url}/repos/acme/infra"));
    assert!(receiver.facts["url"].as_str().unwrap().starts_with("https://localhost:"));
}
