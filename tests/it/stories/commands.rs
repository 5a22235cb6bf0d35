//! Each verb as people type it: what it does, what it leaves alone, and what it says when there is nothing to do.

use super::{ESTATE, SOLO, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};

const MORE: &str = "resource \"terraform_data\" \"b\" { input = \"b\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn unapprove_takes_back_only_ones_own() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, KIM, "unapprove").await;
    assert!(ctx.last_reply(pull).contains("`kim` has approved nothing here"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, LIN, "unapprove").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.serial("solo"), 1, "{:?}", ctx.replies(pull));
    ctx.comment(pull, KIM, "approve").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn discard_drops_what_is_named_and_plan_brings_it_back() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("both", &[("solo/main.tf", Some(&solo("2"))), ("net/more.tf", Some(MORE))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, KIM, "discard -d solo").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).contains("`solo` has no plan"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, KIM, "discard -d nope").await;
    assert!(ctx.last_reply(pull).contains("`nope` is no root that this pull reaches"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, MIRA, "plan -d solo").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "the same digest: {:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_what_waits_and_never_an_apply_that_runs() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull =
        ctx.open("one", &[("solo/main.tf", Some(&solo("2"))), ("slow/main.tf", Some(super::buglog_heads::SLOW))]);
    ctx.settle().await;
    ctx.comment(pull, KIM, "cancel").await;
    assert_eq!(ctx.last_reply(pull), "Nothing is queued, planning or waiting here.");
    ctx.comment(pull, MIRA, "apply").await;
    ctx.comment(pull, KIM, "cancel").await;
    ctx.comment(pull, LIN, "approve").await;
    assert_eq!((ctx.serial("solo"), ctx.serial("slow")), (1, 0), "a canceled apply does not resume");
    ctx.sandbox.comment(REPO, pull, MIRA, "apply -d slow").expect("a comment");
    let begun = ctx.states().join("begun");
    ctx.until("the apply", |_| begun.exists().then_some(())).await;
    ctx.sandbox.comment(REPO, pull, KIM, "cancel").expect("a comment");
    ctx.until("the refusal", |ctx| {
        ctx.replies(pull).iter().any(|reply| reply.starts_with("Not canceled: `slow`")).then_some(())
    })
    .await;
    for command in ["unlock", "discard", "plan", "plan -d slow"] {
        let before = ctx.replies(pull).len();
        ctx.sandbox.comment(REPO, pull, KIM, command).expect("a comment");
        ctx.until(command, |ctx| (ctx.replies(pull).len() > before).then_some(())).await;
        assert!(ctx.last_reply(pull).contains("is being applied"), "{command}: {}", ctx.last_reply(pull));
    }
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.settle().await;
    assert_eq!(ctx.serial("solo"), 1);
    assert!(ctx.serial("slow") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_holds_without_a_plan_and_unlock_lets_the_next_go() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "solo"]).await;
    let first = ctx.open("first", &[("solo/words.tf", Some("# words\n"))]);
    ctx.settle().await;
    ctx.comment(first, KIM, "lock -d solo \"until the audit\"").await;
    assert_eq!(ctx.locks().await, [format!("solo #{first}")], "{:?}", ctx.replies(first));
    let second = ctx.open("second", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert_eq!(ctx.plan_check(second), format!("queued: solo waits for #{first}"));
    ctx.comment(second, MIRA, "lock -d solo").await;
    assert!(ctx.last_reply(second).contains(&format!("locked by #{first}")), "{}", ctx.last_reply(second));
    // What a person asked for outlives a push and a plan that changes nothing.
    ctx.push("first", &[("net/more.tf", Some(MORE)), ("solo/words.tf", None)]);
    ctx.settle().await;
    ctx.comment(first, MIRA, "plan").await;
    assert_eq!(ctx.locks().await, [format!("solo #{first}")]);
    ctx.comment(first, KIM, "unlock -d solo").await;
    assert_eq!(ctx.last_reply(first), "Unlocked `solo`.");
    assert_eq!(ctx.plan_check(second), "success: 1 root planned: 1 update");
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_says_why_and_why_not() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("range", &[("net/main.tf", Some(&net("10.9.0.0/16"))), ("README.md", Some("words\n"))]);
    ctx.settle().await;
    for (typed, says) in [
        ("explain net/main.tf", "- `net`: `net/main.tf` changed, in its directory"),
        ("explain ./net/main.tf", "- `app`: it reads the state of `net`"),
        ("explain app", "- `app`: it reads the state of `net`"),
        ("explain README.md", "`README.md` brings no root into this pull"),
        ("explain \"no such/file\"", "`no such/file` brings no root into this pull"),
        ("tidegate explain", "`explain` takes one path"),
    ] {
        ctx.comment(pull, MIRA, typed).await;
        assert!(ctx.last_reply(pull).contains(says), "{typed}: {}", ctx.last_reply(pull));
    }
}

const KEYED: &str = r#"terraform {
  backend "local" { path = "$S/keyed.tfstate" }
}
variable "who" { default = "nobody" }
resource "terraform_data" "note" {
  for_each = { "x y" = 1, "a\"b" = 2 }
  input    = var.who
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_the_tool_exactly_and_are_applied_as_planned() {
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("keyed", &[("keyed/main.tf", Some(KEYED))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "plan -d keyed -- -target=terraform_data.note[\"x y\"]").await;
    assert!(ctx.last_reply(pull).contains(r#"-target='terraform_data.note["x y"]'"#), "{}", ctx.last_reply(pull));
    ctx.comment(pull, MIRA, r#"plan -d keyed -- -target='terraform_data.note["x y"]' -var 'who=it is $HOME; `id`'"#)
        .await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 create"), "{note}");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    let state = ctx.state("keyed");
    assert!(state.contains("it is $HOME; `id`") && !state.contains("a\\\"b"), "{state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_does_not_count_for_other_arguments() {
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("solo", &[("solo/main.tf", Some(SOLO))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    // The same changes, asked for in another way.
    ctx.comment(pull, MIRA, "plan -- -refresh=false").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.serial("solo"), 0, "{:?}", ctx.replies(pull));
    ctx.comment(pull, MIRA, "plan -d solo").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "the first way again: {:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_selects_more_than_it_names() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("both", &[("solo/main.tf", Some(&solo("2"))), ("net/more.tf", Some(MORE))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    let net = ctx.serial("net");
    for typed in ["apply -d nope", "apply -d solo,net", "tidegate apply solo", "apply -d sol", "apply -d ./"] {
        ctx.comment(pull, MIRA, typed).await;
        assert_eq!((ctx.serial("solo"), ctx.serial("net")), (1, net), "{typed}: {}", ctx.last_reply(pull));
    }
    for typed in ["apply --project solo", "plan -d net/"] {
        ctx.comment(pull, MIRA, typed).await;
    }
    assert_eq!((ctx.serial("solo") > 1, ctx.serial("net")), (true, net), "{:?}", ctx.replies(pull));
}
