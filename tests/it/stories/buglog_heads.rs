//! Faults that others had while heads move: what is applied is what the current head plans, and a head that is gone leaves nothing behind.

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};

/// Applies until it is allowed to end; `$S/begun` says that it began.
pub(super) const SLOW: &str = r#"terraform {
  backend "local" { path = "$S/slow.tfstate" }
}
resource "terraform_data" "a" {
  provisioner "local-exec" { command = "touch $S/begun; while ! test -e $S/allow; do sleep 0.05; done" }
}
"#;

async fn begun(ctx: &Ctx) {
    let begun = ctx.states().join("begun");
    ctx.until("the apply", |_| begun.exists().then_some(())).await;
}

fn allow(ctx: &Ctx) {
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_left_the_pull_is_not_applied_and_not_held() {
    for policy in ["locks: plan\n", "locks: apply\n"] {
        let mut files = ESTATE.to_vec();
        files.push((".tidegate.yaml", policy));
        let ctx = Ctx::with(&files).await;
        ctx.applied_before(&["net", "solo"]).await;
        let change = [("net/main.tf", Some(net("10.9.0.0/16"))), ("solo/main.tf", Some(solo("2")))];
        let borrowed: Vec<(&str, Option<&str>)> = change.iter().map(|(path, text)| (*path, text.as_deref())).collect();
        let pull = ctx.open("both", &borrowed);
        ctx.settle().await;
        ctx.comment(pull, MIRA, "apply").await;
        assert_eq!(ctx.locks().await.iter().filter(|lock| lock.starts_with("solo")).count(), 1, "{policy}");
        // Force-push to a head that changes net only.
        ctx.push("next", &borrowed[..1]);
        let only = ctx.sandbox.tip(REPO, "next").expect("a tip");
        ctx.sandbox.set_branch(REPO, "both", &only, MIRA).expect("a force-push");
        ctx.settle().await;
        let note = ctx.note(pull).expect("a note");
        assert!(note.contains("`solo` is not changed by this head any more"), "{policy}: {note}");
        assert!(!ctx.locks().await.iter().any(|lock| lock.starts_with("solo")), "{:?}", ctx.locks().await);
        ctx.comment(pull, LIN, "approve wave-1").await;
        ctx.comment(pull, MIRA, "apply wave-1").await;
        assert!(ctx.state("net").contains("10.9.0.0/16"), "{policy}: {:?}", ctx.replies(pull));
        assert_eq!(ctx.serial("solo"), 1, "{policy}");
        // What was applied and then taken out of the pull stays locked, and that is said.
        ctx.push("words", &[("README.md", Some("words\n"))]);
        let words = ctx.sandbox.tip(REPO, "words").expect("a tip");
        ctx.sandbox.set_branch(REPO, "both", &words, MIRA).expect("a force-push");
        ctx.settle().await;
        assert!(
            ctx.note(pull).expect("a note").contains("but an apply of this pull changed its state"),
            "{:?}",
            ctx.note(pull)
        );
        assert!(ctx.locks().await.contains(&format!("net #{pull}")), "{:?}", ctx.locks().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_changes_nothing_any_more_is_green_and_applies_nothing() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.push("one", &[("solo/main.tf", Some(super::SOLO)), ("README.md", Some("words\n"))]);
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: No Terraform roots touched");
    assert_eq!(ctx.apply_check(pull), "success: No Terraform roots touched");
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).starts_with("Nothing to apply"), "{}", ctx.last_reply(pull));
    assert_eq!(ctx.serial("solo"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_pushes_at_once_end_with_one_note_of_the_last() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    let first = ctx.sandbox.pull(REPO, pull).expect("a pull").head_sha;
    let main = ctx.sandbox.tip(REPO, "main").expect("a tip");
    ctx.sandbox.set_branch(REPO, "other", &main, MIRA).expect("a branch");
    ctx.push("other", &[("solo/main.tf", Some(&solo("4")))]);
    let second = ctx.push("one", &[("solo/main.tf", Some(&solo("3")))]);
    let last = ctx.sandbox.tip(REPO, "other").expect("a tip");
    ctx.sandbox.set_branch(REPO, "one", &last, MIRA).expect("a force-push");
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("\"4\"") && note.contains(&last[..7]), "{note}");
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    for old in [&first, &second] {
        for check in ["tidegate/plan", "tidegate/apply"] {
            let said = ctx.check_of(old, check);
            assert!(said == "none" || said.starts_with("cancelled: superseded"), "{check} of {old}: {said}");
        }
    }
    assert_eq!(ctx.locks().await, Vec::<String>::new());
    assert_eq!(ctx.replies(pull), Vec::<String>::new());
    // Back to an earlier head: its checks live again.
    ctx.sandbox.set_branch(REPO, "one", &first, MIRA).expect("a force-push");
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    assert!(ctx.apply_check(pull).starts_with("queued: 0 of 1 applied"), "{}", ctx.apply_check(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_while_the_head_is_planned_is_refused_and_the_check_waits() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let old = ctx.note(pull).expect("a note");
    let digest = old
        .lines()
        .find(|line| line.contains("| `solo` |"))
        .and_then(|line| line.split('|').nth(4))
        .map(|cell| cell.trim().trim_matches('`').to_owned());
    let digest = digest.expect("a digest");
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.hooks().pause();
    ctx.push("one", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.sandbox.comment(REPO, pull, MIRA, "apply").expect("a comment");
    ctx.sandbox.comment(REPO, pull, LIN, &format!("approve wave-1 {digest}")).expect("a comment");
    ctx.sandbox.hooks().resume();
    ctx.settle().await;
    let replies = ctx.replies(pull);
    assert!(replies.iter().any(|reply| reply.contains("is still running")), "{replies:?}");
    assert_eq!(ctx.serial("solo"), 1);
    assert!(ctx.apply_check(pull).starts_with("queued"), "{}", ctx.apply_check(pull));
    ctx.comment(pull, LIN, &format!("approve wave-1 {digest}")).await;
    assert!(ctx.last_reply(pull).contains("is not what is planned now"), "{}", ctx.last_reply(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_in_mid_apply_counts_for_the_old_head_only() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "apply: { merge: auto }\n"));
    let ctx = Ctx::with(&files).await;
    let reader = super::APP.replace("$S/net.tfstate", "$S/slow.tfstate").replace("outputs.vpc_id", "outputs.id");
    let slow = format!("{SLOW}output \"id\" {{ value = terraform_data.a.id }}\n");
    let pull = ctx.open("slow", &[("slow/main.tf", Some(&slow)), ("app/main.tf", Some(&reader))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.comment(REPO, pull, MIRA, "apply -d slow").expect("a comment");
    begun(&ctx).await;
    ctx.push("slow", &[("slow/more.tf", Some("resource \"terraform_data\" \"b\" { input = \"b\" }\n"))]);
    let head = ctx.sandbox.pull(REPO, pull).expect("a pull").head_sha;
    ctx.until("the new head", |ctx| (ctx.check_of(&head, "tidegate/plan") != "none").then_some(())).await;
    ctx.sandbox.comment(REPO, pull, KIM, "plan").expect("a comment");
    ctx.until("the refusal", |ctx| {
        ctx.replies(pull).iter().any(|reply| reply.contains("is being applied")).then_some(())
    })
    .await;
    allow(&ctx);
    ctx.settle().await;
    let replies = ctx.replies(pull);
    let applied = replies.iter().find(|reply| reply.contains("This applies")).expect("the comment of the apply");
    assert!(!applied.contains("**Applying"), "it ended: {applied}");
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("| `slow` | 1 create |"), "the head is planned on what the apply left: {note}");
    assert!(ctx.apply_check(pull).starts_with("queued: 0 of"), "{}", ctx.apply_check(pull));
    assert!(ctx.sandbox.pull(REPO, pull).expect("a pull").merged.is_none(), "nothing merged");
    assert_eq!(ctx.locks().await.iter().filter(|lock| lock.starts_with("slow")).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_in_mid_apply_keeps_the_lock_until_it_ends_and_its_comment_ends_too() {
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("slow", &[("slow/main.tf", Some(SLOW))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.comment(REPO, pull, MIRA, "apply").expect("a comment");
    begun(&ctx).await;
    ctx.sandbox.close(REPO, pull, MIRA).expect("closed");
    ctx.until("the end of the pull", |ctx| ctx.note(pull).filter(|note| note.contains("**Closed."))).await;
    assert_eq!(ctx.locks().await, [format!("slow #{pull}")]);
    allow(&ctx);
    ctx.settle().await;
    assert_eq!(ctx.locks().await, Vec::<String>::new());
    assert!(ctx.last_reply(pull).starts_with("**Applied**"), "{}", ctx.last_reply(pull));
    assert!(!ctx.apply_check(pull).starts_with("in_progress") && !ctx.apply_check(pull).starts_with("queued"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_on_a_base_that_moved_starts_nothing_before_it_is_planned_again() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).contains("waits for an approval"), "{}", ctx.last_reply(pull));
    // The approval is written when the base has moved on, into a conflict with the pull.
    ctx.sandbox.hooks().pause();
    ctx.push("main", &[("solo/main.tf", Some(&solo("9")))]);
    ctx.sandbox.comment(REPO, pull, LIN, "approve").expect("a comment");
    ctx.sandbox.hooks().resume();
    ctx.settle().await;
    assert_eq!(ctx.serial("solo"), 1, "{:?}", ctx.replies(pull));
    assert!(ctx.note(pull).expect("a note").contains("it conflicts with `main`"), "{:?}", ctx.note(pull));
    ctx.comment(pull, KIM, "approve").await;
    assert_eq!(ctx.serial("solo"), 1, "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_what_the_moved_base_leaves_alone_goes_on_by_itself() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    ctx.sandbox.hooks().drop_next(1);
    ctx.push("main", &[("README.md", Some("# other words\n"))]);
    ctx.comment(pull, LIN, "approve").await;
    assert!(ctx.state("solo").contains("\"2\""), "{:?}", ctx.replies(pull));
    assert_eq!(ctx.jobs(pull).await, 2, "one plan, one apply");
}
