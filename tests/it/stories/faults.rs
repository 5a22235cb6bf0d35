//! A forge in trouble: limits, errors, answers that never come, webhooks that are lost. People see one note, one reply, and
//! the apply that they asked for, once.

use tidegate::app::sweep;
use tidegate::sandbox::Role;
use tidegate::sandbox::faults::Fault;

use super::{ESTATE, SOLO, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};

/// Where comments are created, checks are made and pulls are read.
const COMMENTS: &str = "/repos/*/issues/*/comments";
const CHECKS: &str = "/repos/*/check-runs";
const PULLS: &str = "/repos/*/pulls/*";

fn limited(status: u16) -> Fault {
    Fault::Status(status, vec![("retry-after".to_owned(), "1".to_owned())])
}

fn status(status: u16) -> Fault {
    Fault::Status(status, Vec::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_written_once_whatever_the_forge_answers() {
    let table: &[(&str, &str, &str, Vec<Fault>)] = &[
        ("403 with a time to wait", "POST", COMMENTS, vec![limited(403)]),
        ("429", "POST", CHECKS, vec![limited(429)]),
        ("broken thrice", "POST", COMMENTS, vec![status(500), status(502), status(503)]),
        ("made, then an error", "POST", COMMENTS, vec![Fault::AfterEffect(502)]),
        ("made, then reset", "POST", COMMENTS, vec![Fault::Reset]),
        ("a check made, then reset", "POST", CHECKS, vec![Fault::Reset]),
        ("edited, then reset", "PATCH", "/repos/*/issues/comments/*", vec![Fault::Reset]),
        ("not yet there", "GET", PULLS, vec![status(404), status(404)]),
    ];
    for (name, method, path, faults) in table {
        let ctx = Ctx::with(ESTATE).await;
        ctx.applied_before(&["solo"]).await;
        for fault in faults {
            ctx.sandbox.faults().next(method, path, fault.clone());
        }
        let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
        ctx.settle().await;
        ctx.comment(pull, LIN, "approve").await;
        ctx.comment(pull, MIRA, "apply").await;
        assert!(ctx.note(pull).is_some(), "{name}");
        assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update", "{name}");
        assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{name}");
        assert_eq!(ctx.replies(pull).len(), 1, "{name}: {:?}", ctx.replies(pull));
        assert_eq!(ctx.uses(pull).await, 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_die_are_made_again() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.sandbox.expire_tokens();
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.expire_tokens();
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missed_command_on_the_last_page_is_found() {
    let ctx = Ctx::with(&[("solo/main.tf", SOLO), (".tidegate.yaml", "gate: never\n")]).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.sandbox.hooks().drop_next(131);
    for _ in 0..130 {
        ctx.sandbox.comment(REPO, pull, KIM, "words").expect("a comment");
    }
    ctx.sandbox.comment(REPO, pull, MIRA, "apply").expect("a comment");
    sweep::forges(ctx.app()).await.expect("a sweep");
    ctx.settle().await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
    sweep::forges(ctx.app()).await.expect("a sweep");
    ctx.settle().await;
    assert_eq!((ctx.uses(pull).await, ctx.replies(pull).len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_nobody_told_of_within_the_second_is_found() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    // The push and what its branch says are both lost.
    ctx.sandbox.hooks().drop_next(2);
    ctx.push("one", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.settle().await;
    sweep::forges(ctx.app()).await.expect("a sweep");
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    assert!(ctx.note(pull).expect("a note").contains("\"3\""), "{:?}", ctx.note(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_say_apply_at_once() {
    let ctx = Ctx::with(&[("solo/main.tf", SOLO), (".tidegate.yaml", "gate: never\n")]).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.sandbox.hooks().pause();
    for by in [MIRA, KIM] {
        ctx.sandbox.comment(REPO, pull, by, "apply").expect("a comment");
    }
    ctx.sandbox.hooks().resume();
    ctx.settle().await;
    assert_eq!(ctx.uses(pull).await, 1);
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_repository_starves_no_other() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    ctx.sandbox.create_repo("acme", "other", &[("README.md", "x\n")]).expect("a repository");
    ctx.sandbox.set_role("acme/other", MIRA, Role::Write).expect("a role");
    let far = Fault::Status(429, vec![("retry-after".to_owned(), "3600".to_owned())]);
    ctx.sandbox.faults().next("POST", "/repos/acme/infra/check-runs", far);
    ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.until("the limit", |ctx| (ctx.sandbox.faults().waiting() == 0).then_some(())).await;
    ctx.sandbox.commit("acme/other", "two", &[("README.md", Some("y\n"))], "Change it", MIRA).expect("a commit");
    let pull = ctx.sandbox.open_pull("acme/other", "two", "Change it", MIRA).expect("a pull");
    let head = ctx.sandbox.pull("acme/other", pull).expect("a pull").head_sha;
    ctx.until("the other's check", |ctx| {
        let runs = ctx.sandbox.checks("acme/other", &head).ok()?;
        runs.iter().any(|run| run.conclusion.as_deref() == Some("success")).then_some(())
    })
    .await;
}
