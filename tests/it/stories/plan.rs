//! From a push to a note: which roots, in which order, with which checks, on which commit.

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO, SAM, Way};

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_one_root_is_planned_and_waits() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 update\n"), "{note}");
    assert!(note.contains("| 1 | `solo` | 1 update |"), "{note}");
    assert!(!note.contains("`net`"), "{note}");
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    assert!(ctx.apply_check(pull).starts_with("queued: 0 of 1 applied; wave-1 waits"), "{}", ctx.apply_check(pull));
    assert!(ctx.merge(pull).is_err(), "the merge is blocked");
    assert_eq!(ctx.locks().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_touches_no_root_is_green_on_every_head_and_gets_no_comment() {
    let ctx = Ctx::with(ESTATE).await;
    let pull = ctx.open("docs", &[("README.md", Some("# other\n"))]);
    ctx.settle().await;
    for _ in 0..2 {
        assert_eq!(ctx.plan_check(pull), "success: No Terraform roots touched");
        assert_eq!(ctx.apply_check(pull), "success: No Terraform roots touched");
        assert_eq!(ctx.note(pull), None);
        ctx.push("docs", &[("docs/more.md", Some("more\n"))]);
        ctx.settle().await;
    }
    ctx.merge(pull).expect("nothing blocks it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_others_read_brings_them_in_later_waves() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app"]).await;
    let pull = ctx.open("range", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 replace"), "{note}");
    assert!(note.contains("| 1 | `net` | 1 replace |"), "{note}");
    assert!(note.contains("| 2 | `app` |"), "{note}");
    assert!(note.contains("-> (known after apply)"), "the reader is planned on what the source will be: {note}");
    assert!(note.contains("`terraform_data.svc` in `app`, through output `vpc_id` of `net`"), "{note}");
    assert!(note.contains("`cidr`") || note.contains("triggers_replace"), "the reason of the replacement: {note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_planned_is_the_merge_so_that_no_plan_reverts_the_base() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let first = ctx.open("first", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    let second = ctx.open("second", &[("net/notes.tf", Some("# a word\n"))]);
    let third = ctx.open("third", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.settle().await;
    let kept = ctx.note(third).expect("a note");
    ctx.sandbox.review(REPO, first, LIN, tidegate::sandbox::Verdict::Approve, "").expect("a review");
    ctx.comment(first, LIN, "approve wave-1").await;
    ctx.comment(first, MIRA, "apply").await;
    ctx.comment(first, LIN, "approve wave-2").await;
    assert!(ctx.apply_check(first).starts_with("success"), "{}", ctx.apply_check(first));
    ctx.merge(first).expect("it merges");
    ctx.settle().await;
    let note = ctx.note(second).expect("a note");
    assert!(note.starts_with("### No changes"), "no revert of the other pull: {note}");
    let after = ctx.note(third).expect("a note");
    let table = |note: &str| note.lines().find(|line| line.contains("| `solo` |")).map(str::to_owned);
    assert_eq!(table(&after), table(&kept), "what the base's move does not touch keeps its plan and digest");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_plans_the_new_head_and_closes_the_checks_of_the_old_one() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    let first = ctx.sandbox.pull(REPO, pull).expect("a pull").head_sha;
    ctx.settle().await;
    ctx.push("one", &[("solo/main.tf", Some(&solo("1"))), ("net/main.tf", Some(&net("10.1.0.0/16")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("`net`") && !note.contains("| `solo` |"), "{note}");
    assert!(ctx.plan_check(pull).starts_with("success"), "{}", ctx.plan_check(pull));
    assert!(
        ctx.check_of(&first, "tidegate/apply").starts_with("cancelled: superseded by"),
        "{}",
        ctx.check_of(&first, "tidegate/apply")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_fails_comes_first_in_the_note_and_is_not_applied() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let broken = super::APP.replace("vpc_id }", "vpc_idd }");
    let pull = ctx.open("typo", &[("app/main.tf", Some(&broken)), ("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 root failed"), "{note}");
    assert!(note.contains("app/main.tf:8") && note.contains("Unsupported attribute"), "{note}");
    assert!(ctx.plan_check(pull).starts_with("failure: 1 root failed to plan"), "{}", ctx.plan_check(pull));
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).contains("`app` has no plan"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, LIN, "approve wave-1").await;
    ctx.comment(pull, MIRA, "apply -d app").await;
    assert!(ctx.last_reply(pull).contains("`app` has no plan"), "{}", ctx.last_reply(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_with_the_base_is_said_with_its_paths() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.push("topic", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.push("main", &[("solo/main.tf", Some(&solo("3")))]);
    let pull = ctx.sandbox.open_pull(REPO, "topic", "Change it", MIRA).expect("a pull");
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("Not planned: it conflicts with `main`") && note.contains("`solo/main.tf`"), "{note}");
    assert!(ctx.plan_check(pull).starts_with("failure"), "{}", ctx.plan_check(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_is_said_with_every_problem() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "gaet: always\nlocks: sometimes\n"));
    let ctx = Ctx::with(&files).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2"))), (".tidegate.yaml", Some("gate: never\n"))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("`.tidegate.yaml` has 2 errors"), "{note}");
    assert!(note.contains("line 1") && note.contains("gate") && note.contains("line 2"), "{note}");
    // What mends it comes with the base, and nobody has to type anything.
    ctx.push("main", &[(".tidegate.yaml", Some("gate: never\n"))]);
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 create", "{:?}", ctx.note(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_removed_is_said_and_nothing_is_destroyed() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("gone", &[("solo/main.tf", None)]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("The root `solo` is removed by this change"), "{note}");
    assert_eq!(ctx.serial("solo"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_root_keeps_its_state_and_plans_no_change() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("rename", &[("solo/main.tf", None), ("solo2/main.tf", Some(super::SOLO))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### No changes"), "{note}");
    assert!(!note.contains("is removed"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_was_never_applied_lets_its_reader_wait() {
    let ctx = Ctx::with(&[("README.md", "# estate\n")]).await;
    let pull = ctx.open("new", &[("net/main.tf", Some(super::NET)), ("app/main.tf", Some(super::APP))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("waits for `net`, which was never applied"), "{note}");
    assert!(ctx.plan_check(pull).starts_with("success"), "{}", ctx.plan_check(pull));
    ctx.comment(pull, LIN, "approve wave-1").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).contains("approve wave-2"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, LIN, "approve wave-2").await;
    assert!(ctx.apply_check(pull).starts_with("success: 2 roots applied"), "{}", ctx.apply_check(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_token_writes_statuses() {
    let ctx = Ctx::signed_in(ESTATE, Way::Token).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    assert!(ctx.apply_check(pull).starts_with("pending: "), "{}", ctx.apply_check(pull));
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, KIM, "apply").await;
    assert!(ctx.apply_check(pull).starts_with("success: 1 root applied"), "{}", ctx.apply_check(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_read_changes_nothing() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    for command in ["plan", "apply", "approve", "unlock", "lock", "discard", "cancel"] {
        let before = ctx.replies(pull).len();
        ctx.comment(pull, SAM, command).await;
        assert_eq!(ctx.replies(pull).len(), before + 1, "{command}");
        assert!(ctx.last_reply(pull).contains("write access"), "{command}: {}", ctx.last_reply(pull));
    }
    for command in ["status", "help", "explain solo/main.tf"] {
        ctx.comment(pull, SAM, command).await;
        assert!(!ctx.last_reply(pull).starts_with("Not done"), "{command}: {}", ctx.last_reply(pull));
    }
}
