//! Every way in which a set-up breaks off: strangers, wrong and old answers, a forge that fails, a server that dies, two tabs.

use std::sync::atomic::Ordering;

use tidegate::sandbox::Fault;

use super::{Stage, client, seen};

const HOUR_MS: i64 = 3_600_000;
const CONVERSIONS: &str = "/app-manifests/*/conversions";

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_gets_nowhere() {
    let stage = Stage::new().await;
    let token = stage.token().unwrap();
    for wrong in
        ["", "x", &token[1..], &format!("{token}0"), &token.to_uppercase().replace(|c: char| c.is_ascii_digit(), "0")]
    {
        let refused = stage.post(&stage.page(), "", &[("token", wrong)]).await;
        refused.says(403, &["not the token", "role=\"alert\""]);
        assert_eq!(refused.cookie, "");
    }
    let form = [("kind", "own")];
    for cookie in ["", "tidegate_setup=", "tidegate_setup=00", "other=1"] {
        stage.post(&format!("{}/create", stage.page()), cookie, &form).await.says(403, &["no session here"]);
        stage.get(&format!("{}?code=x&state=y", stage.page()), cookie).await.says(403, &["no session here"]);
    }
    let cookie = stage.enter().await;
    stage
        .post(&stage.page(), "", &[("token", &token)])
        .await
        .says(403, &["The token was used", "Start the server again"]);
    stage.get(&stage.page(), "").await.says(200, &["printed a token"]);
    let entered = stage.post(&stage.page(), &cookie, &[("token", &token)]).await;
    assert_eq!(entered.status, 403, "not even with the session");
    // The cookie is for this site's own pages and for no script.
    let mut again = Stage::new().await;
    let token = again.token().unwrap();
    let cookie = again.post(&again.page(), "", &[("token", &format!(" {token}\n"))]).await.cookie;
    assert!(["HttpOnly", "SameSite=Lax", "Max-Age=86400"].iter().all(|part| cookie.contains(part)), "{cookie}");
    // Another start has another token, and the session goes on.
    let session = cookie.split(';').next().unwrap().to_owned();
    again.kill();
    again.start().await.unwrap();
    assert_ne!(again.token(), Some(token));
    again.get(&again.page(), &session).await.says(200, &["Who shall own the App?"]);
    again.clock.0.store(24 * HOUR_MS, Ordering::Relaxed);
    again.get(&again.page(), &session).await.says(200, &["printed a token"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_takes_no_app_and_touches_no_code() {
    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    let (bare, state) = back.split_once("&state=").unwrap();
    for wrong in [String::new(), state.replacen('1', "2", 1), format!("{state}0"), "1.00".to_owned()] {
        stage.get(&format!("{bare}&state={wrong}"), &cookie).await.says(400, &["no set-up that this browser began"]);
    }
    stage.get(bare, &cookie).await.says(400, &["no set-up that this browser began"]);
    stage.get(&back, "").await.says(403, &["no session here"]);
    stage.get(&format!("{}?code=&state={state}", stage.page()), &cookie).await.says(400, &["does not know this code"]);
    stage
        .get(&format!("{}?code=nonsense&state={state}", stage.page()), &cookie)
        .await
        .says(400, &["does not know this code"]);
    assert_eq!(stage.get(&back, &cookie).await.status, 303, "the code was never used");
    assert_eq!(stage.get(&back, &cookie).await.status, 303, "loading it again is no mistake");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_old_is_begun_again() {
    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    stage.clock.0.store(HOUR_MS, Ordering::Relaxed);
    stage.get(&back, &cookie).await.says(400, &["more than an hour ago", "Who shall own the App?"]);
    let back = stage.made(&cookie).await;
    stage.sandbox.age_codes();
    stage.get(&back, &cookie).await.says(400, &["older than an hour", "delete it"]);
    let back = stage.made(&cookie).await;
    assert_eq!(stage.get(&back, &cookie).await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forge_that_fails_in_the_middle_loses_at_most_a_code() {
    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    let code = back.split("code=").nth(1).unwrap().split('&').next().unwrap();
    stage.sandbox.faults().next("POST", CONVERSIONS, Fault::Status(500, vec![]));
    let failed = stage.get(&back, &cookie).await;
    failed.says(502, &["Load this page again", "500", "/app-manifests/…/conversions"]);
    assert!(!failed.text.contains(code), "a code that is still good is on the page");
    assert_eq!(stage.get(&back, &cookie).await.status, 303);

    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    stage.sandbox.faults().next("POST", CONVERSIONS, Fault::Reset);
    assert_eq!(stage.get(&back, &cookie).await.status, 502, "nobody knows whether it was used");
    stage.get(&back, &cookie).await.says(400, &["it was used", "begin again"]);
    let back = stage.made(&cookie).await;
    assert_eq!(stage.get(&back, &cookie).await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forge_that_is_away_right_after_is_asked_again() {
    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    stage.sandbox.faults().next("GET", "/app", Fault::Status(500, vec![]));
    assert_eq!(stage.get(&back, &cookie).await.status, 303, "the App is kept");
    stage.sandbox.faults().next("GET", "/app", Fault::Status(503, vec![]));
    stage.get(&stage.page(), &cookie).await.says(200, &["The forge does not answer", "503", "content=\"5\""]);
    stage.get(&stage.page(), &cookie).await.says(200, &["Install it on repositories"]);
    assert_eq!(stage.sandbox.faults().waiting(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_before_it_has_the_app_gets_it_afterwards() {
    let mut stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    stage.kill();
    stage.start().await.unwrap();
    assert_eq!(stage.get(&back, &cookie).await.status, 303);
    stage.install().await;
    stage.get(&stage.page(), &cookie).await.says(200, &["Tidegate is set up"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_tabs_one_wins_and_the_other_is_told() {
    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let (one, two) = (stage.made(&cookie).await, stage.made(&cookie).await);
    let (first, second) = tokio::join!(stage.get(&one, &cookie), stage.get(&two, &cookie));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 409]);
    let told = if first.status == 409 { first } else { second };
    told.says(409, &["not used: delete it on the forge"]);

    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    let (first, second) = tokio::join!(stage.get(&back, &cookie), stage.get(&back, &cookie));
    assert_eq!([first.status, second.status], [303, 303], "one code, loaded twice");
    // What is done stays done.
    let form = [("kind", "own")];
    stage.post(&format!("{}/create", stage.page()), &cookie, &form).await.says(409, &["never replaced", "forget-app"]);
    stage.post(&stage.page(), "", &[("token", "x")]).await.says(409, &["never replaced"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said_until_a_webhook_was_taken() {
    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    stage.get(&back, &cookie).await;
    // Somebody changed the secret on the forge.
    stage.sandbox.hooks().set(&format!("http://{}/webhooks/github", stage.address), "another");
    stage.install().await;
    let page = stage.get(&stage.page(), &cookie).await;
    page.says(200, &["Waiting for the first webhook", "was refused", "does not fit the webhook secret", "got 401"]);
    // Nothing listens where the forge sends.
    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    stage.get(&back, &cookie).await;
    stage.sandbox.hooks().set("http://127.0.0.1:9/webhooks/github", &stage.sandbox.made_secret().unwrap());
    stage.install().await;
    stage.get(&stage.page(), &cookie).await.says(200, &["got no answer", "firewall"]);
    // Whoever has no session sees neither.
    let plain = stage.get(&stage.page(), "").await;
    plain.says(200, &["tidegate doctor"]);
    assert!(!plain.text.contains("acme"));
    let hook = seen(client().post(format!("http://{}/webhooks/nothing", stage.address)).body("{}")).await;
    assert_eq!(hook.status, 404);
}
