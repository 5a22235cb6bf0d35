//! An App that is made from a manifest, as its client and GitHub's own description see it.

use serde_json::{Value, json};
use tidegate::domain::setup;

use super::{Stage, contract, names};

async fn make(stage: &Stage, owner: &str) -> (u16, String) {
    let manifest = setup::manifest("http://127.0.0.1:1", Some("acme")).to_string();
    let form = [("manifest", manifest.as_str()), ("state", "s t"), ("name", "Tidegate acme")];
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let request = client.post(format!("{}{owner}/settings/apps/confirm", stage.sandbox.url())).body(body);
    let answer = request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
    let location = answer.headers().get("location").map(|to| to.to_str().unwrap().to_owned()).unwrap_or_default();
    (answer.status().as_u16(), location)
}

#[tokio::test]
async fn a_code_is_worth_an_app_once_and_as_github_describes_it() {
    let stage = Stage::new().await;
    stage.sandbox.forget_app();
    assert!(stage.app().apps().get_repository_installation("acme", "infra").await.is_err(), "nobody made it");
    let (status, location) = make(&stage, "/organizations/acme").await;
    assert_eq!(status, 303);
    let (address, query) = location.split_once("?code=").unwrap();
    assert_eq!(address, "http://127.0.0.1:1/setup/github");
    let (code, state) = query.split_once("&state=").unwrap();
    assert_eq!(state, "s+t");
    let path = format!("/app-manifests/{code}/conversions");
    let (status, app) = stage.call("POST", &path, "", Value::Null).await;
    assert_eq!((status, &app["owner"]["login"], &app["name"]), (201, &json!("acme"), &json!("Tidegate acme")));
    assert_eq!(app["id"], stage.sandbox.app_credentials().app_id);
    assert_eq!(stage.call("POST", &path, "", Value::Null).await.0, 404, "it works once");

    let (_, location) = make(&stage, "").await;
    stage.sandbox.age_codes();
    let code = location.split("code=").nth(1).unwrap().split('&').next().unwrap();
    assert_eq!(stage.call("POST", &format!("/app-manifests/{code}/conversions"), "", Value::Null).await.0, 404);
    assert_eq!(make(&stage, "/organizations/nobody").await.0, 404);
}

#[tokio::test]
async fn an_installation_is_there_when_somebody_installed_it() {
    let stage = Stage::new().await;
    stage.sandbox.forget_app();
    make(&stage, "/organizations/acme").await;
    let app = stage.app();
    let installed = || async { app.apps().installations().send().await.unwrap().items.len() };
    assert_eq!(installed().await, 0);
    assert!(app.apps().get_repository_installation("acme", "infra").await.is_err());
    stage.sandbox.deliveries_idle().await;
    // The stage's own ping may have come before the App was forgotten.
    stage.received.lock().unwrap().clear();
    // The webhooks of a made App have the secret of its manifest; this stage listens with its own.
    stage.sandbox.hooks().set(&super::receiver(stage.received.clone()).await, "s3cret");
    let page = format!("{}/apps/tidegate/installations/new", stage.sandbox.url());
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = client.post(page).send().await.unwrap();
    assert_eq!(
        answer.headers()["location"],
        "http://127.0.0.1:1/setup/github?installation_id=7002&setup_action=install"
    );
    assert_eq!(installed().await, 1);
    let events = stage.events().await;
    assert_eq!(names(&events), ["installation.created"]);
    contract::webhook("installation", Some("created"), &events[0].1);
}
