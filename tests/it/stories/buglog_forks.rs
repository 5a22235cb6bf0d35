//! Faults that others had with drafts, forks and the base branch: nothing of a fork runs without a word for its head, a draft holds
//! nothing, and another base makes another plan.

use serde_json::json;
use tidegate::sandbox::{NewPull, Origin, PullState};

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO, SAM};

fn fork() -> Origin {
    Origin::Fork(9001, "stranger".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_fork_runs_without_a_word_for_its_head() {
    for origin in [fork(), Origin::Fork(9002, "acme".to_owned()), Origin::Gone] {
        let ctx = Ctx::with(ESTATE).await;
        ctx.applied_before(&["solo"]).await;
        ctx.sandbox.set_origin(REPO, "theirs", origin.clone()).expect("a fork");
        let pull = ctx.open("theirs", &[("solo/main.tf", Some(&solo("2")))]);
        ctx.settle().await;
        assert!(ctx.note(pull).expect("a note").contains("the head comes from a fork"), "{:?}", ctx.note(pull));
        assert!(ctx.plan_check(pull).starts_with("failure"), "no check hangs: {}", ctx.plan_check(pull));
        assert!(ctx.apply_check(pull).starts_with("failure"), "{}", ctx.apply_check(pull));
        assert_eq!(ctx.jobs(pull).await, 0, "{origin:?}");
        ctx.comment(pull, SAM, "plan").await;
        assert_eq!(ctx.jobs(pull).await, 0, "who may only read lets nothing run");
        ctx.comment(pull, KIM, "plan -d solo").await;
        assert!(ctx.last_reply(pull).contains("type `plan` alone"), "{}", ctx.last_reply(pull));
        ctx.comment(pull, KIM, "apply").await;
        assert_eq!(ctx.jobs(pull).await, 0);
        ctx.comment(pull, KIM, "plan").await;
        assert!(ctx.note(pull).expect("a note").starts_with("### 1 update"), "{:?}", ctx.note(pull));
        ctx.push("theirs", &[("solo/main.tf", Some(&solo("3")))]);
        ctx.settle().await;
        assert_eq!(ctx.jobs(pull).await, 0, "a later push needs a word of its own");
        assert!(ctx.plan_check(pull).starts_with("failure"), "{}", ctx.plan_check(pull));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_for_a_forks_head_does_not_count_for_a_push_that_overtook_it() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    ctx.sandbox.set_origin(REPO, "theirs", fork()).expect("a fork");
    let pull = ctx.open("theirs", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.sandbox.hooks().pause();
    ctx.sandbox.comment(REPO, pull, KIM, "plan").expect("a comment");
    // Forges tell whole seconds.
    ctx.next_second().await;
    ctx.push("theirs", &[("solo/main.tf", Some(&solo("evil")))]);
    ctx.sandbox.hooks().resume();
    ctx.settle().await;
    assert_eq!(ctx.jobs(pull).await, 0, "{:?}", ctx.replies(pull));
    assert!(ctx.last_reply(pull).contains("moved to"), "{}", ctx.last_reply(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forks_branch_of_the_bases_name_is_read_through_the_pull() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    ctx.push("like-main", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.sandbox.set_origin(REPO, "like-main", fork()).expect("a fork");
    let pull = ctx.sandbox.open_pull(REPO, "like-main", "Change it", MIRA).expect("a pull");
    ctx.settle().await;
    ctx.comment(pull, LIN, "plan").await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, KIM, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_holds_no_lock_and_becomes_ready_without_a_second_plan() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "locks: plan\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["solo"]).await;
    ctx.push("one", &[("solo/main.tf", Some(&solo("2")))]);
    let new = NewPull { head: "one", base: "main", title: "Draft", body: None, state: PullState::Draft };
    let pull = ctx.sandbox.open_pull_with(REPO, MIRA, &new).expect("a pull");
    ctx.settle().await;
    assert!(ctx.note(pull).expect("a note").starts_with("### 1 update"));
    assert_eq!(ctx.locks().await, Vec::<String>::new());
    ctx.sandbox.set_draft(REPO, pull, MIRA, PullState::Open).expect("ready");
    ctx.settle().await;
    assert_eq!(ctx.jobs(pull).await, 1, "the plan still holds");
    assert_eq!(ctx.locks().await, [format!("solo #{pull}")], "it takes its lock");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    ctx.sandbox.set_draft(REPO, pull, MIRA, PullState::Draft).expect("a draft");
    ctx.settle().await;
    assert_eq!(ctx.locks().await, [format!("solo #{pull}")], "what an apply holds stays");
    ctx.sandbox.close(REPO, pull, MIRA).expect("closed");
    ctx.settle().await;
    assert_eq!(ctx.locks().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_becomes_ready_stands_in_line_behind_who_applied_meanwhile() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let first = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(first, LIN, "approve").await;
    ctx.comment(first, MIRA, "apply").await;
    ctx.push("second", &[("solo/more.tf", Some("resource \"terraform_data\" \"b\" { input = \"b\" }\n"))]);
    let new = NewPull { head: "second", base: "main", title: "Draft", body: None, state: PullState::Draft };
    let second = ctx.sandbox.open_pull_with(REPO, MIRA, &new).expect("a pull");
    ctx.settle().await;
    assert!(ctx.plan_check(second).starts_with("success"), "a draft waits for nobody: {}", ctx.plan_check(second));
    ctx.sandbox.set_draft(REPO, second, MIRA, PullState::Open).expect("ready");
    ctx.settle().await;
    assert_eq!(ctx.plan_check(second), format!("queued: solo waits for #{first}"));
    ctx.merge(first).expect("it merges");
    ctx.settle().await;
    let note = ctx.note(second).expect("a note");
    assert!(note.starts_with("### 1 create"), "planned on what the first left: {note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_base_with_the_same_head_is_another_plan() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let parent = ctx.open("a", &[("net/notes.tf", Some("# a word\n"))]);
    ctx.settle().await;
    let tip = ctx.sandbox.tip(REPO, "a").expect("a tip");
    ctx.sandbox.set_branch(REPO, "b", &tip, MIRA).expect("a branch");
    ctx.push("b", &[("solo/main.tf", Some(&solo("2")))]);
    let new = NewPull { head: "b", base: "a", title: "On top", body: None, state: PullState::Open };
    let child = ctx.sandbox.open_pull_with(REPO, MIRA, &new).expect("a pull");
    ctx.settle().await;
    assert!(ctx.note(child).expect("a note").contains("`a`"), "{:?}", ctx.note(child));
    ctx.merge(parent).expect("it merges");
    ctx.sandbox.edit_pull(REPO, child, MIRA, &json!({"base": "main"})).expect("another base");
    ctx.sandbox.delete_branch(REPO, "a", MIRA).expect("deleted");
    ctx.settle().await;
    let note = ctx.note(child).expect("a note");
    assert!(note.starts_with("### 1 update") && note.contains("`main`"), "{note}");
    ctx.comment(child, MIRA, "plan").await;
    assert_eq!(ctx.plan_check(child), "success: 1 root planned: 1 update");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_to_another_branch_is_planned_on_that_branch() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    ctx.push("release/1", &[("net/main.tf", Some(&net("10.7.0.0/16")))]);
    let tip = ctx.sandbox.tip(REPO, "release/1").expect("a tip");
    ctx.sandbox.set_branch(REPO, "fix", &tip, MIRA).expect("a branch");
    ctx.push("fix", &[("solo/main.tf", Some(&solo("2")))]);
    let new = NewPull { head: "fix", base: "release/1", title: "Fix", body: None, state: PullState::Open };
    let pull = ctx.sandbox.open_pull_with(REPO, MIRA, &new).expect("a pull");
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 update") && !note.contains("| `net` |"), "{note}");
}
