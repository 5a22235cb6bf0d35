//! Locks: who holds, who waits, and that everybody is planned by itself when the turn comes.

use super::{ESTATE, solo};
use crate::ctx::{Ctx, LIN, MIRA, REPO};

const MORE: &str = "resource \"terraform_data\" \"b\" { input = \"b\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_second_pull_waits_for_the_first_and_is_planned_by_itself() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let first = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(first, LIN, "approve").await;
    ctx.comment(first, MIRA, "apply").await;
    let second = ctx.open("second", &[("solo/more.tf", Some(MORE))]);
    ctx.settle().await;
    let note = ctx.note(second).expect("a note");
    assert!(note.contains(&format!("`solo` is locked by #{first}")), "{note}");
    assert_eq!(ctx.plan_check(second), format!("queued: solo waits for #{first}"));
    ctx.merge(first).expect("it merges");
    ctx.settle().await;
    let note = ctx.note(second).expect("a note");
    assert!(note.starts_with("### 1 create"), "{note}");
    assert!(ctx.plan_check(second).starts_with("success"), "{}", ctx.plan_check(second));
}

#[tokio::test(flavor = "multi_thread")]
async fn under_locks_plan_the_first_plan_takes_the_lock_and_a_close_frees_it() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "locks: plan\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["solo"]).await;
    let first = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert_eq!(ctx.locks().await, [format!("solo #{first}")]);
    let second = ctx.open("second", &[("solo/more.tf", Some(MORE))]);
    let third = ctx.open("third", &[("solo/other.tf", Some("resource \"terraform_data\" \"c\" {}\n"))]);
    ctx.settle().await;
    assert!(ctx.plan_check(third).contains("waits for #"), "{}", ctx.plan_check(third));
    ctx.sandbox.close(REPO, first, MIRA).expect("closed");
    ctx.settle().await;
    assert_eq!(ctx.locks().await, [format!("solo #{second}")], "the next in line");
    assert!(ctx.plan_check(second).starts_with("success"), "{}", ctx.plan_check(second));
    assert!(ctx.plan_check(third).contains(&format!("waits for #{second}")), "{}", ctx.plan_check(third));
}

#[tokio::test(flavor = "multi_thread")]
async fn unlock_says_what_it_freed_and_works_again_and_on_closed_pulls() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    ctx.comment(pull, MIRA, "unlock -d net").await;
    assert_eq!(ctx.locks().await, [format!("solo #{pull}")], "only what is named");
    ctx.comment(pull, MIRA, "unlock -d solo").await;
    assert_eq!(ctx.last_reply(pull), "Unlocked `solo`.");
    ctx.comment(pull, MIRA, "unlock -d solo").await;
    assert_eq!(ctx.last_reply(pull), "Nothing to unlock: this pull holds no lock of `solo`.");
    ctx.sandbox.close(REPO, pull, MIRA).expect("closed");
    ctx.comment(pull, MIRA, "unlock").await;
    assert_eq!(ctx.last_reply(pull), "Nothing to unlock: this pull holds no lock.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_takes_no_lock_and_a_root_without_changes_is_not_held() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "locks: plan\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["solo"]).await;
    let same = ctx.open("same", &[("solo/words.tf", Some("# words\n"))]);
    ctx.settle().await;
    assert!(ctx.note(same).expect("a note").starts_with("### No changes"));
    assert_eq!(ctx.locks().await, Vec::<String>::new());
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert_eq!(ctx.locks().await, [format!("solo #{pull}")]);
    ctx.sandbox.set_draft(REPO, pull, MIRA, tidegate::sandbox::PullState::Draft).expect("a draft");
    ctx.settle().await;
    assert_eq!(ctx.locks().await, Vec::<String>::new());
}
