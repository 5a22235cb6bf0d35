//! Faults that others had with locks: who loses one is told and planned later, and a lock is given back by what ends the need for it,
//! never by anything else.

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};

const MORE: &str = "resource \"terraform_data\" \"b\" { input = \"b\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_one_root_plans_the_others_and_the_check_says_so() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let first = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(first, LIN, "approve").await;
    ctx.comment(first, MIRA, "apply").await;
    let second = ctx.open("second", &[("solo/more.tf", Some(MORE)), ("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    let note = ctx.note(second).expect("a note");
    assert!(
        note.contains("| `net` | 1 replace |") && note.contains(&format!("`solo` is locked by #{first}")),
        "{note}"
    );
    assert_eq!(ctx.plan_check(second), format!("queued: solo waits for #{first}"));
    // `unlock` of what another pull holds says what to do, and frees nothing.
    for _ in 0..2 {
        ctx.comment(second, KIM, "unlock -d solo").await;
        let reply = ctx.last_reply(second);
        assert!(
            reply.contains(&format!("`solo` is locked by #{first}; `unlock -d solo` on #{first} frees it")),
            "{reply}"
        );
        assert!(ctx.locks().await.contains(&format!("solo #{first}")));
    }
    ctx.comment(second, KIM, "unlock -d nowhere").await;
    assert_eq!(ctx.last_reply(second), "Nothing to unlock: this pull holds no lock of `nowhere`.");
    ctx.sandbox.close(REPO, first, MIRA).expect("closed");
    ctx.settle().await;
    let note = ctx.note(second).expect("a note");
    assert!(note.contains("| `solo` |") && ctx.plan_check(second).starts_with("success"), "{note}");
    assert_eq!(ctx.locks().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_that_nobody_told_frees_the_locks_within_a_sweep() {
    for how in ["lost", "branch deleted", "in mid-plan"] {
        let mut files = ESTATE.to_vec();
        files.push((".tidegate.yaml", "locks: plan\n"));
        let mut ctx = Ctx::with(&files).await;
        ctx.applied_before(&["solo"]).await;
        let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
        if how != "in mid-plan" {
            ctx.settle().await;
            assert_eq!(ctx.locks().await, [format!("solo #{pull}")], "{how}");
        }
        match how {
            "lost" => {
                ctx.kill();
                ctx.sandbox.close(REPO, pull, MIRA).expect("closed");
                ctx.sandbox.deliveries_idle().await;
                ctx.start().await;
                ctx.until("the end", |ctx| ctx.note(pull).filter(|note| note.contains("**Closed.**"))).await;
            }
            "branch deleted" => ctx.sandbox.delete_branch(REPO, "one", MIRA).expect("deleted"),
            _ => ctx.sandbox.close(REPO, pull, MIRA).expect("closed"),
        }
        ctx.settle().await;
        assert_eq!(ctx.locks().await, Vec::<String>::new(), "{how}");
        for check in [ctx.plan_check(pull), ctx.apply_check(pull)] {
            assert!(check.starts_with("cancelled") || check == "none", "{how}: {check}");
        }
        ctx.comment(pull, KIM, "unlock").await;
        assert!(ctx.last_reply(pull).starts_with("Nothing to unlock"), "{how}: {}", ctx.last_reply(pull));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_is_opened_again_starts_clean() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    ctx.sandbox.close(REPO, pull, MIRA).expect("closed");
    ctx.settle().await;
    assert_eq!(ctx.locks().await, Vec::<String>::new());
    ctx.sandbox.reopen(REPO, pull, MIRA).expect("open again");
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    ctx.comment(pull, LIN, "approve").await;
    assert_eq!(ctx.serial("solo"), 1, "the apply of before is not resumed");
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_whose_lock_was_given_back_does_not_go_on() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let first = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(first, MIRA, "apply").await;
    assert_eq!(ctx.locks().await, [format!("solo #{first}")]);
    ctx.comment(first, KIM, "unlock").await;
    assert_eq!(ctx.locks().await, Vec::<String>::new());
    ctx.comment(first, LIN, "approve").await;
    assert_eq!(ctx.serial("solo"), 1, "{:?}", ctx.replies(first));
    assert_eq!(ctx.locks().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn discard_gives_back_what_was_only_planned_and_keeps_what_was_applied() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "locks: plan\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("both", &[("solo/main.tf", Some(&solo("2"))), ("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve wave-1").await;
    ctx.comment(pull, MIRA, "apply -d solo").await;
    assert!(ctx.state("solo").contains("\"2\""), "{:?}", ctx.replies(pull));
    ctx.comment(pull, MIRA, "discard").await;
    assert_eq!(ctx.locks().await, [format!("solo #{pull}")], "{:?}", ctx.replies(pull));
}
