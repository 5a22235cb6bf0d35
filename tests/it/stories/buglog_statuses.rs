//! Faults that others had with statuses and merging: green only when there is nothing left to do, and never pending for ever.

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, LIN, MIRA, REPO};

#[tokio::test(flavor = "multi_thread")]
async fn what_touches_no_root_is_green_on_every_head() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "roots: { ignore: [\"sandbox/**\"] }\n"));
    files.push(("sandbox/try/main.tf", super::SOLO));
    let many: Vec<(String, String)> = (0..2000).map(|n| (format!("docs/{n}.md"), format!("{n}\n"))).collect();
    let many: Vec<(&str, Option<&str>)> =
        many.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let ctx = Ctx::with(&files).await;
    let ignored = [("sandbox/try/main.tf", Some("# other\n"))];
    for (branch, change) in [("many", many.as_slice()), ("ignored", ignored.as_slice()), ("empty", &[])] {
        let pull = ctx.open(branch, change);
        ctx.settle().await;
        for push in 0..2 {
            assert_eq!(ctx.plan_check(pull), "success: No Terraform roots touched", "{branch}, push {push}");
            assert_eq!(ctx.apply_check(pull), "success: No Terraform roots touched", "{branch}, push {push}");
            ctx.push(branch, &[("words.md", Some(branch))]);
            ctx.settle().await;
        }
        assert_eq!(ctx.note(pull), None, "{branch}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_applied_is_counted_and_merges_nothing() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "apply: { merge: auto }\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("both", &[("solo/main.tf", Some(&solo("2"))), ("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve wave-1").await;
    ctx.comment(pull, MIRA, "apply -d solo").await;
    assert!(ctx.apply_check(pull).starts_with("queued: 1 of 3 applied"), "{}", ctx.apply_check(pull));
    ctx.comment(pull, MIRA, "apply wave-1").await;
    assert!(ctx.apply_check(pull).starts_with("queued: 2 of 3 applied"), "{}", ctx.apply_check(pull));
    let merged = |ctx: &Ctx| ctx.sandbox.pull(REPO, pull).expect("a pull").merged.is_some();
    assert!(!merged(&ctx), "two of three are not all");
    ctx.comment(pull, MIRA, "apply").await;
    ctx.comment(pull, LIN, "approve wave-2").await;
    assert!(merged(&ctx), "{} {:?}", ctx.apply_check(pull), ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_merges_by_itself_that_applied_nothing_or_failed() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "apply: { merge: auto }\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let docs = ctx.open("docs", &[("README.md", Some("words\n"))]);
    let same = ctx.open("same", &[("solo/words.tf", Some("# words\n"))]);
    let bad = "resource \"terraform_data\" \"b\" {\n  provisioner \"local-exec\" { command = \"false\" }\n}\n";
    let fails = ctx.open("fails", &[("net/more.tf", Some(bad))]);
    ctx.settle().await;
    ctx.comment(docs, MIRA, "apply").await;
    ctx.comment(same, MIRA, "apply").await;
    ctx.comment(fails, LIN, "approve").await;
    ctx.comment(fails, MIRA, "apply").await;
    for pull in [docs, same, fails] {
        assert!(ctx.sandbox.pull(REPO, pull).expect("a pull").merged.is_none(), "#{pull}");
    }
    assert_eq!(ctx.apply_check(same), "success: Nothing to apply");
    assert!(ctx.apply_check(fails).starts_with("failure: The apply failed"), "{}", ctx.apply_check(fails));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_failed_lets_others_go_and_is_not_applied_itself() {
    let bad = "terraform {\n  backend \"local\" { path = \"$S/bad.tfstate\" }\n}\nlocals { one = 1 }\nresource \"terraform_data\" \"b\" {\n  lifecycle {\n    precondition {\n      condition     = local.one > 2\n      error_message = \"never\"\n    }\n  }\n}\n";
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("both", &[("solo/main.tf", Some(&solo("2"))), ("bad/main.tf", Some(bad))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).contains("`bad` has no plan"), "{}", ctx.last_reply(pull));
    let jobs = ctx.jobs(pull).await;
    ctx.push("both", &[("bad/main.tf", Some(&bad.replace("local.one > 2", "local.one < 2")))]);
    ctx.settle().await;
    assert_eq!((jobs, ctx.plan_check(pull)), (2, "success: 2 roots planned: 1 update · 1 create".to_owned()));
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_applied_is_told_apart_from_what_is_left_when_it_is_planned_again() {
    let root = |name: &str, command: &str| {
        format!(
            "terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n}}\nresource \"terraform_data\" \"a\" {{\n  provisioner \"local-exec\" {{ command = \"{command}\" }}\n}}\n"
        )
    };
    let files: Vec<(String, String)> = (1..=4)
        .map(|n| (format!("r{n}/main.tf"), root(&format!("r{n}"), if n == 2 { "test -e $S/allow" } else { "true" })))
        .collect();
    let changes: Vec<(&str, Option<&str>)> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("four", &changes);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply -d r1 -d r2").await;
    assert_eq!(ctx.apply_check(pull), "failure: The apply failed: 1 of 4 applied");
    assert_eq!((ctx.serial("r3"), ctx.serial("r4")), (0, 0), "only what was named");
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.comment(pull, MIRA, "plan -d r2").await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("| `r2` | 1 replace |"), "tainted: {note}");
    assert!(ctx.apply_check(pull).starts_with("queued: 1 of 4 applied"), "{}", ctx.apply_check(pull));
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 4 roots applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_check_in_the_branchs_protection_does_not_stand_in_the_way() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "apply: { requires: [mergeable] }\n"));
    let ctx = Ctx::with(&files).await;
    ctx.sandbox.protect(REPO, "main", &["tidegate/apply", "ci"]).expect("protection");
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    // The forge computes the answer when it is first asked.
    ctx.comment(pull, MIRA, "status").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
    assert!(ctx.merge(pull).expect_err("another check is missing").contains("ci"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pull_applies_its_own_plan() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let first = ctx.open("first", &[("solo/main.tf", Some(&solo("2")))]);
    let second = ctx.open("second", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.settle().await;
    ctx.comment(first, LIN, "approve").await;
    ctx.comment(second, LIN, "approve").await;
    ctx.comment(second, MIRA, "apply").await;
    let serial = ctx.serial("solo");
    assert!(ctx.state("solo").contains("\"3\"") && !ctx.state("solo").contains("\"2\""));
    ctx.comment(first, MIRA, "apply").await;
    assert!(ctx.last_reply(first).contains(&format!("locked by #{second}")), "{}", ctx.last_reply(first));
    assert_eq!(ctx.serial("solo"), serial);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_plan_whose_bytes_changed_is_refused_and_never_made_again_by_the_apply() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.spoil_kept_plans().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.serial("solo"), 1, "{:?}", ctx.replies(pull));
    assert!(ctx.apply_check(pull).starts_with("failure"), "{}", ctx.apply_check(pull));
    assert!(ctx.last_reply(pull).contains("plan -d solo"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, MIRA, "plan -d solo").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ended_cannot_put_another_plan_in_the_place_of_its_own() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    for what in ["plan", "plan.json"] {
        assert_eq!(ctx.put_for_ended_job(what).await, 409, "{what}");
    }
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}
