//! Two open pulls on one estate: what one applies, the other knows before it applies.

use super::{APP, ESTATE, NET, SOLO, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA};

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

/// `app` with a second resource.
fn more(app: &str) -> String {
    format!("{app}\nresource \"terraform_data\" \"more\" {{ input = \"more\" }}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pulls_that_change_one_resource_are_told_about_each_other_before_either_applies() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let first = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let alone = ctx.note(first).expect("a note");
    assert!(!alone.contains("other open pull"), "{alone}");
    let edits = ctx.edits(first);

    let second = ctx.open("second", &[("solo/main.tf", Some(&solo("3")))]);
    let beside = ctx.open("beside", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    for (pull, other) in [(first, second), (second, first)] {
        let note = ctx.note(pull).expect("a note");
        assert!(note.contains("**Another open pull changes the same resource:** whoever applies first"), "{note}");
        let line = format!("- #{other} by `@{MIRA}` updates `terraform_data.a` in `solo`, as this pull does");
        assert!(note.contains(&line), "{line} in {note}");
    }
    assert_eq!(ctx.edits(first), edits + 1, "the first is told once");
    assert!(!ctx.note(beside).expect("a note").contains("other open pull"));

    let gone = solo("3").replace("resource \"terraform_data\" \"a\" { input = \"3\" }", "");
    ctx.push("second", &[("solo/main.tf", Some(&gone))]);
    ctx.settle().await;
    let note = ctx.note(first).expect("a note");
    let line = format!("- #{second} by `@{MIRA}` deletes `terraform_data.a` in `solo`, which this pull updates");
    assert!(note.contains(&line), "{note}");

    ctx.sandbox.close(crate::ctx::REPO, second, MIRA).expect("closed");
    ctx.settle().await;
    assert_eq!(ctx.note(first).expect("a note"), alone, "as if it had never been");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_moves_is_met_by_its_old_address() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let moved =
        SOLO.replace("\"a\" {", "\"b\" {") + "\nmoved {\n  from = terraform_data.a\n  to   = terraform_data.b\n}\n";
    let mover = ctx.open("mover", &[("solo/main.tf", Some(&moved))]);
    let editor = ctx.open("editor", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let note = ctx.note(editor).expect("a note");
    assert!(note.contains("moves or imports `terraform_data.a` in `solo`, which this pull updates"), "{note}");
    let note = ctx.note(mover).expect("a note");
    assert!(note.contains("updates `terraform_data.b` in `solo`, which this pull moves or imports"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_made_again_says_because_of_whom_and_readers_of_other_outputs_keep_theirs() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app"]).await;
    // `cidr` and the id change with the address range; nothing reads a fixed output.
    let fixed = format!("{NET}output \"name\" {{ value = \"net\" }}\n");
    let by_name = APP.replace("outputs.vpc_id", "outputs.name").replace("app.tfstate", "named.tfstate");
    ctx.push("main", &[("net/main.tf", Some(&fixed)), ("named/main.tf", Some(&by_name))]);
    ctx.applied_before(&["net", "named"]).await;
    let reader = ctx.open("reader", &[("app/main.tf", Some(&more(APP)))]);
    let named = ctx.open("named", &[("named/main.tf", Some(&more(&by_name)))]);
    ctx.settle().await;
    ctx.comment(named, LIN, "approve").await;
    let (before, jobs) = (ctx.note(named).expect("a note"), ctx.jobs(named).await);

    let source = ctx.open("source", &[("net/main.tf", Some(&fixed.replace("10.0.0.0/16", "10.9.0.0/16")))]);
    ctx.settle().await;
    ctx.comment(source, LIN, "approve wave-1").await;
    ctx.comment(source, KIM, "apply wave-1").await;

    let note = ctx.note(reader).expect("a note");
    let (start, end) = (
        format!("**Planned again:** `app`, because #{source} by `@{KIM}` applied `net` at "),
        " UTC and changed output `vpc_id`.",
    );
    assert!(note.contains(&start) && note.contains(end), "{note}");
    assert_eq!(ctx.note(named).expect("a note"), before, "a reader of an output that stays hears nothing");
    assert_eq!(ctx.jobs(named).await, jobs, "and is not planned again");
    ctx.comment(named, MIRA, "apply").await;
    assert!(ctx.state("named").contains("\"more\""), "{:?}", ctx.replies(named));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_merge_the_note_says_whose_it_was() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let first = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    let both = format!("{SOLO}resource \"terraform_data\" \"b\" {{ input = \"b\" }}\n");
    let second = ctx.open("second", &[("solo/main.tf", Some(&both))]);
    ctx.settle().await;
    ctx.comment(first, LIN, "approve").await;
    ctx.comment(first, MIRA, "apply").await;
    let note = ctx.note(second).expect("a note");
    assert!(note.contains(&format!("locked by #{first}")), "{note}");
    ctx.merge(first).expect("it merges");
    ctx.settle().await;
    let note = ctx.note(second).expect("a note");
    let told = format!("**Planned again:** `solo`, because #{first} by `@{MIRA}` merged and moved `main` to `");
    assert!(note.contains(&told), "{note}");
    assert!(note.starts_with("### 1 create"), "nothing of the merge is taken back: {note}");
}
