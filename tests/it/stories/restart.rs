//! The server dies and comes back: nothing is lost, nothing runs twice.

use super::{ESTATE, solo};
use crate::ctx::{Ctx, LIN, MIRA};

const SLOW: &str = r#"terraform {
  backend "local" { path = "$S/slow.tfstate" }
}
resource "terraform_data" "a" {
  provisioner "local-exec" { command = "touch $S/begun; while ! test -e $S/allow; do sleep 0.05; done" }
}
resource "terraform_data" "b" { depends_on = [terraform_data.a] }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_goes_on_without_the_server_and_its_result_is_taken_up() {
    let mut ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("slow", &[("slow/main.tf", Some(SLOW))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.comment(crate::ctx::REPO, pull, MIRA, "apply").expect("a comment");
    let begun = ctx.states().join("begun");
    ctx.until("the apply", |_| begun.exists().then_some(())).await;
    ctx.kill();
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.start().await;
    ctx.settle().await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
    assert_eq!(ctx.replies(pull).len(), 1, "{:?}", ctx.replies(pull));
    assert_eq!(ctx.state("slow").matches("\"type\": \"terraform_data\"").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_while_the_server_was_down_is_found() {
    let mut ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    ctx.kill();
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.sandbox.deliveries_idle().await;
    ctx.start().await;
    ctx.until("the note", |ctx| ctx.note(pull).filter(|note| note.starts_with("### 1 update"))).await;
    ctx.settle().await;
    ctx.kill();
    ctx.sandbox.comment(crate::ctx::REPO, pull, LIN, "approve").expect("a comment");
    ctx.sandbox.comment(crate::ctx::REPO, pull, MIRA, "apply").expect("a comment");
    ctx.sandbox.deliveries_idle().await;
    ctx.start().await;
    ctx.until("the apply", |ctx| (ctx.apply_check(pull) == "success: 1 root applied").then_some(())).await;
    ctx.settle().await;
    assert_eq!(ctx.uses(pull).await, 1, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_at_any_moment_of_a_plan_ends_with_one_note() {
    for moment in 0..6 {
        let mut ctx = Ctx::with(ESTATE).await;
        ctx.applied_before(&["solo"]).await;
        let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
        let mut rounds = ctx.app().activity.subscribe();
        for _ in 0..moment * 3 {
            if tokio::time::timeout(std::time::Duration::from_millis(500), rounds.changed()).await.is_err() {
                break;
            }
        }
        drop(rounds);
        ctx.restart().await;
        ctx.until("the note", |ctx| ctx.note(pull).filter(|note| note.starts_with("### 1 update"))).await;
        ctx.settle().await;
        assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update", "moment {moment}");
    }
}
