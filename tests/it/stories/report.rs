//! The report of a rollout for programs, through a whole session, against the published schema.

use super::{ESTATE, net};
use crate::ctx::{Ctx, LIN, MIRA};

async fn report(ctx: &Ctx, pull: u64) -> serde_json::Value {
    let note = ctx.note(pull).expect("a note");
    let from = note.find("](http").expect("a link") + 2;
    let url = note[from..].split(')').next().expect("an end");
    let (page, key) = url.split_once('?').expect("a key");
    let refused = reqwest::get(format!("{page}/report.json")).await.expect("an answer");
    assert_eq!(refused.status(), 404, "without its key");
    let answer = reqwest::get(format!("{page}/report.json?{key}")).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let value: serde_json::Value = answer.json().await.expect("JSON");
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../docs/report.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a valid schema");
    let wrong: Vec<String> =
        schema.iter_errors(&value).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{value:#}");
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_says_what_the_note_says() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("one", &[("net/main.tf", Some(&net("10.1.0.0/16")))]);
    ctx.settle().await;
    let value = report(&ctx, pull).await;
    assert_eq!(value["version"], 1);
    assert_eq!(value["counts"]["replace"], 1);
    assert_eq!(value["waves"][0]["state"], "waiting");
    assert_eq!(value["waves"][0]["gate"], "always");
    assert_eq!(value["waves"][1]["state"], "after");
    assert_eq!(value["waves"][1]["replans_after"], serde_json::json!(["net"]));
    assert_eq!(value["holes"], serde_json::json!([]));
    let app = value["roots"].as_array().unwrap().iter().find(|root| root["dir"] == "app").expect("app");
    assert_eq!(app["reads"][0]["source"], "net");
    assert_eq!(value["blast"]["roots"], serde_json::json!(["app", "net"]));
    let digest = value["waves"][0]["digest"].as_str().expect("a digest");
    assert!(ctx.note(pull).expect("a note").contains(&digest[4..16]), "{digest}");
    ctx.comment(pull, LIN, "approve wave-1").await;
    ctx.comment(pull, MIRA, "apply wave-1").await;
    let value = report(&ctx, pull).await;
    assert_eq!(value["waves"][0]["state"], "applied", "{value:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_names_what_could_not_be_read_and_who_reads_from_outside() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net"]).await;
    std::fs::copy(ctx.states().join("net.tfstate"), ctx.states().join("far.tfstate")).expect("a state");
    let read = "data \"terraform_remote_state\" \"far\" {\n  backend = \"local\"\n  config  = { path = \"$S/far.tfstate\" }\n}\n";
    let broken = "terraform {\n  backend \"local\" { path = \"$S/odd.tfstate\" }\n}\nresource \"terraform_data\" {\n";
    let files = [("odd/main.tf", Some(broken)), ("solo/far.tf", Some(read))];
    let pull = ctx.open("one", &files);
    ctx.settle().await;
    let value = report(&ctx, pull).await;
    let holes = value["holes"].as_array().expect("holes");
    assert!(holes.iter().any(|hole| hole["path"] == "odd/main.tf"), "{value:#}");
    assert!(ctx.note(pull).expect("a note").contains("`odd/main.tf"), "the note says the same");
    let solo = value["roots"].as_array().unwrap().iter().find(|root| root["dir"] == "solo").expect("solo");
    assert_eq!(
        solo["external"][0]["state"].as_str().map(|state| state.ends_with("/far.tfstate")),
        Some(true),
        "{solo:#}"
    );
    assert_eq!(value["neighbours"], serde_json::json!([]));
}
