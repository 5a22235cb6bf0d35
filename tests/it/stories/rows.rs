//! Rows of the spec's tables that only show in a session: what must be named, who may let a wave go, what is said where nothing counts.

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};

/// A root whose resource goes when `kept` is false.
const KEPT: &str = "resource \"terraform_data\" \"a\" { input = \"1\" }\n";
const GONE: &str = "";

fn doomed(name: &str, body: &str) -> String {
    format!("terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n}}\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_dies_in_two_roots_is_named_with_its_root() {
    let (a, b) = (doomed("a", KEPT), doomed("b", KEPT));
    let ctx =
        Ctx::with(&[("a/main.tf", &a), ("b/main.tf", &b), (".tidegate.yaml", "confirm_destructive: true\n")]).await;
    ctx.applied_before(&["a", "b"]).await;
    let pull = ctx.open("both", &[("a/main.tf", Some(&doomed("a", GONE))), ("b/main.tf", Some(&doomed("b", GONE)))]);
    ctx.settle().await;
    for typed in ["approve", "approve wave-1\nconfirm terraform_data.a", "approve\nconfirm a terraform_data.a"] {
        ctx.comment(pull, LIN, typed).await;
        let reply = ctx.last_reply(pull);
        assert!(reply.starts_with("Not approved: `confirm_destructive` is on"), "{typed}: {reply}");
        assert!(reply.contains("confirm b terraform_data.a"), "{typed}: {reply}");
    }
    // An apply that waits says exactly what to type, and that is enough.
    ctx.comment(pull, MIRA, "apply").await;
    let reply = ctx.last_reply(pull);
    let (_, rest) = reply.split_once("```\n").expect("what to type");
    let (typed, _) = rest.split_once("\n```").expect("its end");
    assert!(typed.contains("\nconfirm a terraform_data.a\nconfirm b terraform_data.a"), "{typed}");
    ctx.comment(pull, LIN, typed).await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_approves_what_is_known_and_nothing_that_is_planned_again() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "approval: pr-review\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["net", "app"]).await;
    let pull = ctx.open("one", &[("net/main.tf", Some(&net("10.1.0.0/16")))]);
    ctx.settle().await;
    ctx.next_second().await;
    ctx.sandbox.review(REPO, pull, LIN, tidegate::sandbox::Verdict::Approve, "").expect("a review");
    ctx.settle().await;
    let before = ctx.serial("app");
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("net").contains("10.1.0.0/16") && ctx.serial("app") == before, "{:?}", ctx.replies(pull));
    assert!(ctx.last_reply(pull).starts_with("**wave-2 waits for an approval**"), "{}", ctx.last_reply(pull));
    ctx.next_second().await;
    ctx.sandbox.review(REPO, pull, KIM, tidegate::sandbox::Verdict::Approve, "").expect("a review");
    ctx.settle().await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_sealed_records_count_a_comment_is_refused_and_says_so() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "approval: sealed\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert!(ctx.note(pull).expect("a note").contains("waits for a sealed record"), "{:?}", ctx.note(pull));
    ctx.comment(pull, LIN, "approve").await;
    assert!(ctx.last_reply(pull).starts_with("Not approved: `approval` is `sealed`"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.serial("solo"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_where_each_wave_stands_and_what_to_type() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app"]).await;
    let pull = ctx.open("one", &[("net/main.tf", Some(&net("10.1.0.0/16")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    let from = note.find("](http").expect("a link") + 2;
    let url = note[from..].split(')').next().expect("an end").to_owned();
    let page = async || reqwest::get(&url).await.expect("an answer").text().await.expect("a page");
    let before = page().await;
    let digest = note.split("approve exactly `").nth(1).and_then(|rest| rest.split('`').next()).expect("a digest");
    for part in [">waiting<", ">not started<", "after wave-1", &format!("approve wave-1 {digest}"), "so far"] {
        assert!(before.contains(part), "{part}\n{before}");
    }
    ctx.comment(pull, LIN, "approve wave-1").await;
    ctx.comment(pull, MIRA, "apply wave-1").await;
    let after = page().await;
    for part in [">applied<", ">waiting<", "apply "] {
        assert!(after.contains(part), "{part}\n{after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_follows_only_what_hangs_on_the_path() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("one", &[("net/main.tf", Some(&net("10.1.0.0/16"))), ("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    for (typed, says, never) in [
        ("explain solo/main.tf", "- `solo`: `solo/main.tf` changed", "`app`"),
        ("explain solo/", "- `solo`: `solo/main.tf` changed", "`app`"),
        ("explain net", "and by what they read:\n\n- `app`: it reads the state of `net`", "`solo`"),
    ] {
        ctx.comment(pull, MIRA, typed).await;
        let reply = ctx.last_reply(pull);
        assert!(reply.contains(says) && !reply.contains(never), "{typed}: {reply}");
    }
}
