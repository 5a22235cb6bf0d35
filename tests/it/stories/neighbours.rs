//! Two open pulls on one estate: what one applies, the other knows before it applies.

use super::{APP, ESTATE, net, solo};
use crate::ctx::{Ctx, LIN, MIRA};

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_in_another_pull_is_planned_again_when_its_source_was_applied() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app"]).await;
    let more = format!("{APP}\nresource \"terraform_data\" \"more\" {{ input = \"more\" }}\n");
    let reader = ctx.open("reader", &[("app/main.tf", Some(&more))]);
    ctx.settle().await;
    assert!(ctx.note(reader).expect("a note").starts_with("### 1 create"), "{:?}", ctx.note(reader));
    ctx.comment(reader, LIN, "approve").await;

    let source = ctx.open("source", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    ctx.comment(source, LIN, "approve wave-1").await;
    ctx.comment(source, MIRA, "apply wave-1").await;
    assert!(ctx.state("net").contains("10.9.0.0/16"));
    assert!(ctx.note(reader).expect("a note").starts_with("### 1 update · 1 create"), "{:?}", ctx.note(reader));

    ctx.comment(reader, MIRA, "apply").await;
    let reply = ctx.last_reply(reader);
    assert!(reply.contains("changed after the approval") && reply.contains("`terraform_data.svc`"), "{reply}");
    assert_eq!(ctx.uses(reader).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_beside_it_keeps_its_plan_and_its_approval() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let beside = ctx.open("beside", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(beside, LIN, "approve").await;
    let other = ctx.open("other", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    ctx.comment(other, LIN, "approve wave-1").await;
    ctx.comment(other, MIRA, "apply wave-1").await;
    ctx.comment(beside, MIRA, "apply").await;
    assert!(ctx.state("solo").contains("\"2\""), "{:?}", ctx.replies(beside));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unlock_drops_an_apply_that_waits() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    ctx.comment(pull, MIRA, "unlock").await;
    ctx.comment(pull, LIN, "approve").await;
    assert!(!ctx.state("solo").contains("\"2\""), "nothing is applied without its lock");
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("solo").contains("\"2\""), "{:?}", ctx.replies(pull));
}
