//! Webhooks: GitHub's real examples, whole and with every field nulled in turn, and deliveries that are forged.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use serde_json::{Value, json};
use sha2::Sha256;
use tidegate::domain::approval::Verdict;
use tidegate::domain::event::{AuthorKind, CommentKind, What};
use tidegate::domain::pull::PullState;
use tidegate::forge::github::{EVENTS, GitHub};
use tidegate::ports::forge::{Delivery, HookError, Hooks};

use super::fake::{Fake, Reply};
use super::{APP_ID, SECRET, app, with_token};

fn signature(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length will do");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

fn headers(event: &str, body: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("X-GitHub-Event", event.parse().expect("a plain word"));
    headers.insert("X-GitHub-Delivery", "d-1".parse().expect("a plain word"));
    headers.insert("X-Hub-Signature-256", signature(body).parse().expect("hex"));
    headers.insert("Content-Type", "application/json".parse().expect("a plain word"));
    headers
}

fn deliver(github: &GitHub, event: &str, payload: &Value) -> Delivery {
    let body = payload.to_string().into_bytes();
    github.verify(&headers(event, &body), &body).expect("it is signed and it is JSON")
}

/// Every example with its event.
fn examples() -> Vec<(String, Value)> {
    let events: Vec<Value> =
        serde_json::from_str(include_str!("../../../fixtures/github/webhooks.json")).expect("JSON");
    let mut found = Vec::new();
    for event in events {
        let name = event["name"].as_str().expect("a name").to_owned();
        for example in event["examples"].as_array().expect("examples") {
            found.push((name.clone(), example.clone()));
        }
    }
    found
}

fn example(event: &str, action: &str) -> Value {
    let fits = |(name, payload): &(String, Value)| name == event && payload["action"].as_str().unwrap_or("") == action;
    examples().into_iter().find(fits).expect("there is such an example").1
}

fn kind(delivery: &Delivery) -> &'static str {
    match delivery.incoming.as_slice() {
        [] => "ignored",
        [one] => match &one.what {
            What::Pull { seen: Some(_), .. } => "pull",
            What::Pull { seen: None, .. } => "pull, unseen",
            What::Comment { .. } => "comment",
            What::Review { .. } => "review",
            What::Recheck { .. } => "recheck",
            What::Push { .. } => "push",
        },
        _ => "several",
    }
}

#[tokio::test]
async fn each_example_becomes_what_its_event_and_action_say() {
    let github = app("http://127.0.0.1:1");
    let mut counts: BTreeMap<(String, String, &str), usize> = BTreeMap::new();
    for (event, payload) in examples() {
        let delivery = deliver(&github, &event, &payload);
        assert_eq!((delivery.id.as_str(), &delivery.event), ("d-1", &event));
        assert_eq!(delivery.ignored.is_some(), delivery.incoming.is_empty(), "{delivery:?}");
        let action = payload["action"].as_str().unwrap_or_default().to_owned();
        *counts.entry((event, action, kind(&delivery))).or_default() += 1;
    }
    let read: Vec<_> = counts.iter().filter(|((_, _, kind), _)| *kind != "ignored").collect();
    let read: Vec<(&str, &str, &str, usize)> =
        read.iter().map(|((event, action, kind), n)| (event.as_str(), action.as_str(), *kind, **n)).collect();
    let wanted = [
        ("check_suite", "rerequested", "recheck", 2),
        ("pull_request", "closed", "pull", 2),
        ("pull_request", "converted_to_draft", "pull", 3),
        ("pull_request", "opened", "pull", 4),
        ("pull_request", "ready_for_review", "pull", 3),
        ("pull_request", "reopened", "pull", 2),
        ("pull_request", "synchronize", "pull", 1),
        ("pull_request_review", "dismissed", "review", 1),
        ("pull_request_review", "submitted", "review", 3),
        ("push", "", "push", 2),
    ];
    assert_eq!(read, wanted);
    let ignored: usize = counts.iter().filter(|((_, _, kind), _)| *kind == "ignored").map(|(_, n)| n).sum();
    // Of the comments none is on a pull; the others are events and actions that change nothing.
    assert_eq!(ignored, examples().len() - wanted.iter().map(|(_, _, _, n)| n).sum::<usize>());
}

#[tokio::test]
async fn comments_on_pulls_are_read_and_our_own_are_known() {
    let fake = Fake::start().await;
    fake.on("GET /user", Reply::json(200, &json!({"login": "Codertocat"})));
    let ours = with_token(&fake.url);
    ours.connect().await.unwrap();
    let theirs = app("http://127.0.0.1:1");
    let mut payload = example("issue_comment", "created");
    assert!(deliver(&theirs, "issue_comment", &payload).ignored.unwrap().contains("no pull"));

    payload["issue"]["pull_request"] = json!({"url": "https://api.github.com/x"});
    payload["comment"]["user"] = json!({"login": "Codertocat", "type": "User"});
    for (github, author) in [(&ours, AuthorKind::Ourselves), (&theirs, AuthorKind::Person)] {
        let What::Comment { number, comment } = deliver(github, "issue_comment", &payload).incoming.remove(0).what
        else {
            panic!("a comment");
        };
        assert_eq!((number, comment.author), (payload["issue"]["number"].as_u64().unwrap(), author));
        assert_eq!(
            (comment.body.as_str(), comment.kind),
            (payload["comment"]["body"].as_str().unwrap(), CommentKind::Created)
        );
    }
    payload["comment"]["performed_via_github_app"] = json!({ "id": APP_ID });
    payload["action"] = json!("edited");
    let What::Comment { comment, .. } = deliver(&theirs, "issue_comment", &payload).incoming.remove(0).what else {
        panic!("a comment");
    };
    assert_eq!((comment.author, comment.kind), (AuthorKind::Ourselves, CommentKind::Edited));
    for action in ["deleted", "pinned", "unpinned", "never heard of"] {
        payload["action"] = json!(action);
        assert!(deliver(&theirs, "issue_comment", &payload).ignored.unwrap().contains(action));
    }
}

#[tokio::test]
async fn a_snapshot_has_what_the_delivery_says() {
    let github = app("http://127.0.0.1:1");
    let mut payload = example("pull_request", "closed");
    payload["pull_request"]["merged"] = json!(true);
    payload["pull_request"]["head"]["repo"] = Value::Null;
    let delivery = deliver(&github, "pull_request", &payload);
    let incoming = &delivery.incoming[0];
    assert_eq!(Some(incoming.repo.as_str()), payload["repository"]["full_name"].as_str());
    let What::Pull { number, seen: Some(seen) } = &incoming.what else { panic!("a pull") };
    assert_eq!(Some(*number), payload["number"].as_u64());
    assert_eq!((seen.state, seen.fork), (PullState::Merged, true));
    assert_eq!(Some(seen.head.as_str()), payload["pull_request"]["head"]["sha"].as_str());

    let dismissed = deliver(&github, "pull_request_review", &example("pull_request_review", "dismissed"));
    let What::Review { review, .. } = &dismissed.incoming[0].what else { panic!("a review") };
    assert_eq!(review.verdict, Verdict::Dismissed);
}

/// Pointers to every value but the top.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, part)| (key.replace('~', "~0").replace('/', "~1"), part)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(index, part)| (index.to_string(), part)).collect(),
        _ => return,
    };
    for (key, part) in parts {
        let place = format!("{at}/{key}");
        places(part, &place, found);
        found.push(place);
    }
}

/// Drops the links, three quarters of a payload, which nobody reads.
fn without_links(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !key.ends_with("url") && key != "_links");
            map.values_mut().for_each(without_links);
        }
        Value::Array(list) => list.iter_mut().for_each(without_links),
        _ => {}
    }
}

/// Leaves out what repeats in every account and repository of a payload, to keep the test short.
fn matters(place: &str) -> bool {
    let repeats = ["/repo/", "/owner/", "/sender/"].iter().any(|part| place.contains(part));
    let read = ["/id", "/full_name", "/login"].iter().any(|end| place.ends_with(end));
    place.matches('/').count() <= 4 && (read || !repeats)
}

#[tokio::test]
async fn no_field_that_is_null_or_odd_is_an_error() {
    let github = app("http://127.0.0.1:1");
    let mut tried = 0;
    let mut seen = std::collections::BTreeSet::new();
    for (event, mut payload) in examples() {
        if event == "issue_comment" {
            payload["issue"]["pull_request"] = json!({});
        }
        // One of each event and action that is read: the others have the same shape.
        if kind(&deliver(&github, &event, &payload)) == "ignored"
            || !seen.insert((event.clone(), payload["action"].to_string()))
        {
            continue;
        }
        without_links(&mut payload);
        let mut all = Vec::new();
        places(&payload, "", &mut all);
        for place in all.iter().filter(|place| matters(place)) {
            let depth = place.matches('/').count();
            let odds = if depth <= 2 { vec![Value::Null, json!("odd"), json!([-1])] } else { vec![Value::Null] };
            for odd in odds {
                let kept = std::mem::replace(payload.pointer_mut(place).unwrap(), odd);
                let delivery = deliver(&github, &event, &payload);
                assert_eq!(delivery.ignored.is_some(), delivery.incoming.is_empty(), "{event} {place}");
                *payload.pointer_mut(place).unwrap() = kept;
                tried += 1;
            }
        }
    }
    for odd in [json!(null), json!([]), json!("text"), json!({}), json!({"action": 1})] {
        for event in EVENTS {
            assert!(deliver(&github, event, &odd).ignored.is_some(), "{event} {odd}");
        }
    }
    assert!(tried > 1_000, "{tried}");
}

#[tokio::test]
async fn forged_and_incomplete_deliveries_are_refused() {
    let github = app("http://127.0.0.1:1");
    let body = example("pull_request", "opened").to_string().into_bytes();
    let good = headers("pull_request", &body);
    assert!(github.verify(&good, &body).is_ok());
    for name in ["X-GitHub-Event", "X-GitHub-Delivery", "X-Hub-Signature-256"] {
        let mut headers = good.clone();
        headers.remove(name);
        assert_eq!(github.verify(&headers, &body).unwrap_err(), HookError::Missing(name));
    }
    let mut longer = body.clone();
    longer.push(b' ');
    assert_eq!(github.verify(&good, &longer).unwrap_err(), HookError::Forged);
    for wrong in ["sha256=00", "sha1=00", "00", "sha256=no hex"] {
        let mut headers = good.clone();
        headers.insert("X-Hub-Signature-256", wrong.parse().unwrap());
        assert_eq!(github.verify(&headers, &body).unwrap_err(), HookError::Forged, "{wrong}");
    }
    let text = b"no json";
    assert!(matches!(github.verify(&headers("push", text), text), Err(HookError::Malformed(_))));
}

#[tokio::test]
async fn a_form_is_read_like_json() {
    let github = app("http://127.0.0.1:1");
    let payload = example("pull_request", "opened");
    let form =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload.to_string()).finish();
    let mut headers = headers("pull_request", form.as_bytes());
    headers.insert("Content-Type", "application/x-www-form-urlencoded".parse().unwrap());
    let delivery = github.verify(&headers, form.as_bytes()).unwrap();
    assert_eq!(delivery.incoming, deliver(&github, "pull_request", &payload).incoming);

    let empty = b"other=1";
    let mut headers = self::headers("pull_request", empty);
    headers.insert("Content-Type", "application/x-www-form-urlencoded".parse().unwrap());
    assert!(matches!(github.verify(&headers, empty), Err(HookError::Malformed(_))));
}

#[test]
fn the_manifest_asks_for_the_events_that_are_read_and_for_no_more() {
    let manifest: Value = serde_json::from_str(include_str!("../../../app-manifest.json")).unwrap();
    assert_eq!(manifest["default_events"], json!(EVENTS));
    let permissions = json!({"checks": "write", "contents": "read", "issues": "write", "members": "read",
        "metadata": "read", "pull_requests": "write"});
    assert_eq!(manifest["default_permissions"], permissions);
}
