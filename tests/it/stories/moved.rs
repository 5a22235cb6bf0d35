//! A forge that changes under a pull's feet: another name, git that is down, pages of a proxy.

use tidegate::app::sweep;
use tidegate::sandbox::faults::Fault;

use super::{ESTATE, solo};
use crate::ctx::{Ctx, LIN, MIRA, REPO};

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_repository_is_found_by_a_sweep() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    ctx.sandbox.rename_repo(REPO, "acme/platform").expect("a new name");
    ctx.sandbox.hooks().drop_next(3);
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    sweep::forges(ctx.app()).await.expect("a sweep");
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
}

#[tokio::test(flavor = "multi_thread")]
async fn git_that_is_down_for_a_moment_delays_and_spoils_nothing() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    for _ in 0..3 {
        ctx.sandbox.faults().next("*", "/acme/infra.git/**", Fault::Status(503, Vec::new()));
    }
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert_eq!(ctx.sandbox.faults().waiting(), 0);
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!((ctx.apply_check(pull).as_str(), ctx.uses(pull).await), ("success: 1 root applied", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_proxy_are_waited_out() {
    let page = |status| Fault::Text(status, "<html>maintenance</html>".to_owned());
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    for (method, path, status) in [
        ("GET", "/repos/*/pulls/*", 200),
        ("POST", "/repos/*/check-runs", 201),
        ("POST", "/repos/*/issues/*/comments", 200),
        ("PATCH", "/repos/*/issues/comments/*", 200),
        ("GET", "/repos/*/collaborators/*/permission", 200),
    ] {
        ctx.sandbox.faults().next(method, path, page(status));
    }
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.note(pull).is_some());
    assert_eq!(
        (ctx.apply_check(pull).as_str(), ctx.uses(pull).await),
        ("success: 1 root applied", 1),
        "{:?}",
        ctx.replies(pull)
    );
    assert_eq!(ctx.replies(pull).len(), 1, "{:?}", ctx.replies(pull));
}
