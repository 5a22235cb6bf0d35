//! Approve and apply: the table of section 5 as people meet it, wave after wave, and never without an approval of exactly
//! these plans.

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};

#[tokio::test(flavor = "multi_thread")]
async fn approve_then_apply_then_merge() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("solo").contains("\"2\""));
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied");
    assert!(ctx.last_reply(pull).starts_with("**Applied**"), "{}", ctx.last_reply(pull));
    assert_eq!(ctx.locks().await, ["solo #1"]);
    ctx.merge(pull).expect("it merges");
    ctx.settle().await;
    assert_eq!(ctx.locks().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_applied_without_an_approval_and_it_resumes_by_itself() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(!ctx.state("solo").contains("\"2\""));
    assert!(ctx.last_reply(pull).contains("approve wave-1"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, LIN, "approve wave-1").await;
    assert!(ctx.state("solo").contains("\"2\""), "the wave that waited goes on by itself");
    assert_eq!(ctx.uses(pull).await, 1, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_author_cannot_approve() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "approve").await;
    assert!(ctx.last_reply(pull).contains("four_eyes"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, MIRA, "apply").await;
    assert!(!ctx.state("solo").contains("\"2\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_changes_the_plan_voids_the_approval_and_says_what_moved() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.push("one", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    let reply = ctx.last_reply(pull);
    assert!(reply.contains("changed after the approval") && reply.contains("lin approved"), "{reply}");
    assert!(!ctx.state("solo").contains("\"3\"") && !ctx.state("solo").contains("\"2\""));
    ctx.comment(pull, LIN, "approve wave-1").await;
    assert!(ctx.state("solo").contains("\"3\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_leaves_the_plan_as_it_is_keeps_the_approval() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.push("one", &[("README.md", Some("# words\n"))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("solo").contains("\"2\""), "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_wave_is_planned_on_real_outputs_and_asks_again() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app"]).await;
    let pull = ctx.open("range", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    let reply = ctx.last_reply(pull);
    assert!(reply.contains("approve wave-2"), "the first approval does not cover wave 2: {reply}");
    assert!(ctx.state("net").contains("10.9.0.0/16"));
    assert_eq!(ctx.serial("app"), 1);
    ctx.comment(pull, LIN, "approve wave-2").await;
    assert_eq!(ctx.uses(pull).await, 2);
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied");
    assert_eq!(ctx.locks().await, ["app #1", "net #1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_digest_must_be_the_current_one() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve wave-1 000000000000").await;
    assert!(ctx.last_reply(pull).contains("is not what is planned now"), "{}", ctx.last_reply(pull));
    let note = ctx.note(pull).expect("a note");
    let digest = note
        .lines()
        .find(|line| line.contains("| `solo` |"))
        .and_then(|line| line.split('|').nth(4))
        .map(|cell| cell.trim().trim_matches('`').to_owned());
    let digest = digest.expect("a digest in the table");
    ctx.comment(pull, LIN, &format!("approve wave-1 {digest}")).await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("solo").contains("\"2\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_dies_is_named_when_the_settings_ask_for_it() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "confirm_destructive: true\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["net", "app"]).await;
    let pull = ctx.open("range", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve wave-1").await;
    let reply = ctx.last_reply(pull);
    assert!(
        reply.contains("`confirm_destructive` is on") && reply.contains("confirm net terraform_data.vpc"),
        "{reply}"
    );
    ctx.comment(pull, LIN, "approve wave-1\nconfirm net terraform_data.vpc").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("net").contains("10.9.0.0/16"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policies_never_and_on_destructive() {
    for (policy, range, goes) in [
        ("never", true, true),
        ("on-destructive", true, false),
        ("on-destructive", false, true),
        ("always", false, false),
    ] {
        let config = format!("gate: {policy}\n");
        let mut files = ESTATE.to_vec();
        files.push((".tidegate.yaml", &config));
        let ctx = Ctx::with(&files).await;
        ctx.applied_before(&["net", "solo"]).await;
        let (path, text, name) =
            if range { ("net/main.tf", net("10.9.0.0/16"), "net") } else { ("solo/main.tf", solo("2"), "solo") };
        let before = ctx.serial(name);
        let pull = ctx.open("it", &[(path, Some(&text)), ("app/main.tf", None)]);
        ctx.settle().await;
        ctx.comment(pull, MIRA, "apply").await;
        assert_eq!(ctx.serial(name) > before, goes, "{policy}, destructive: {range}: {:?}", ctx.replies(pull));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_of_the_head_approves_when_the_settings_say_so() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "approval: pr-review\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.serial("solo"), 1);
    ctx.sandbox.review(REPO, pull, KIM, tidegate::sandbox::Verdict::RequestChanges, "no").expect("a review");
    ctx.settle().await;
    assert_eq!(ctx.serial("solo"), 1);
    // Forges tell whole seconds, and a review counts only from when the plan was shown.
    ctx.next_second().await;
    ctx.sandbox.review(REPO, pull, LIN, tidegate::sandbox::Verdict::Approve, "").expect("a review");
    ctx.settle().await;
    assert!(ctx.state("solo").contains("\"2\""), "the review lets the waiting wave go: {:?}", ctx.replies(pull));
}

const SLOW: &str = r#"terraform {
  backend "local" { path = "$S/slow.tfstate" }
}
resource "terraform_data" "a" { input = "1" }
resource "terraform_data" "b" {
  depends_on = [terraform_data.a]
  provisioner "local-exec" { command = "test -e $S/allow" }
}
resource "terraform_data" "c" { depends_on = [terraform_data.b] }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_apply_says_what_is_done_failed_and_left_and_can_be_planned_again() {
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("slow", &[("slow/main.tf", Some(SLOW))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    let reply = ctx.last_reply(pull);
    assert!(reply.starts_with("**Wave 1 failed** · `slow` · 1 done · 1 failed · 1 not applied"), "{reply}");
    assert!(reply.contains("`terraform_data.c` not applied; it will be in the next plan"), "{reply}");
    assert!(reply.contains("plan -d slow"), "{reply}");
    assert!(ctx.apply_check(pull).starts_with("failure"), "{}", ctx.apply_check(pull));
    assert_eq!(ctx.locks().await, ["slow #1"]);
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).contains("its plan is spent"), "{}", ctx.last_reply(pull));
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.comment(pull, MIRA, "plan -d slow").await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_plan_with_the_same_digest_applies_and_another_is_refused() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    // Somebody touches the state without changing anything: the saved plan is stale, the plan is the same.
    let path = ctx.states().join("solo.tfstate");
    let bumped = ctx.state("solo").replacen("\"serial\": 1", "\"serial\": 5", 1);
    std::fs::write(&path, bumped).expect("a state");
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("solo").contains("\"2\""), "{:?}", ctx.replies(pull));

    let other = ctx.open("two", &[("solo/more.tf", Some("resource \"terraform_data\" \"b\" { input = \"b\" }\n"))]);
    ctx.settle().await;
    assert!(ctx.note(other).expect("a note").contains("locked by"), "{:?}", ctx.note(other));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_merges_by_itself_when_the_settings_say_so() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "apply: { merge: auto }\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    ctx.settle().await;
    assert!(ctx.sandbox.pull(REPO, pull).expect("a pull").merged.is_some(), "{:?}", ctx.replies(pull));
    assert_eq!(ctx.locks().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_comment_delivered_five_times_runs_once() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.hooks().duplicate_next(4);
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.uses(pull).await, 1);
    assert_eq!(ctx.replies(pull).len(), 1, "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_planned_but_not_applied() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.sandbox.set_draft(REPO, pull, MIRA, tidegate::sandbox::PullState::Draft).expect("a draft");
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).contains("is a draft"), "{}", ctx.last_reply(pull));
    ctx.sandbox.set_draft(REPO, pull, MIRA, tidegate::sandbox::PullState::Open).expect("ready");
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("solo").contains("\"2\""), "{:?}", ctx.replies(pull));
}
