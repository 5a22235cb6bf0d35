//! Which pulls are ours and who may command us: branches that the settings leave alone, and programs that they name.

use serde_json::json;
use tidegate::sandbox::{NewPull, PullState, Verdict};

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, LIN, MIRA, REPO};

fn on_another_branch(ctx: &Ctx, base: &str) -> u64 {
    ctx.push(base, &[("net/main.tf", Some(&net("10.7.0.0/16")))]);
    let tip = ctx.sandbox.tip(REPO, base).expect("a tip");
    ctx.sandbox.set_branch(REPO, "fix", &tip, MIRA).expect("a branch");
    ctx.push("fix", &[("solo/main.tf", Some(&solo("2")))]);
    let new = NewPull { head: "fix", base, title: "Fix", body: None, state: PullState::Open };
    ctx.sandbox.open_pull_with(REPO, MIRA, &new).expect("a pull")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_into_a_branch_that_is_not_named_is_left_alone() {
    const SAYS: &str = "success: Not managed: this pull merges into wip";
    let mut ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "solo"]).await;
    ctx.managed.branches = vec!["main".to_owned(), "release/*".to_owned()];
    ctx.restart().await;
    let pull = on_another_branch(&ctx, "wip");
    ctx.settle().await;
    assert_eq!((ctx.plan_check(pull).as_str(), ctx.apply_check(pull).as_str()), (SAYS, SAYS));
    assert!(ctx.note(pull).is_none() && ctx.jobs(pull).await == 0, "nothing is said or planned");
    // On every head.
    ctx.push("fix", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.settle().await;
    assert_eq!(ctx.apply_check(pull), SAYS);
    for command in ["plan", "apply", "approve", "lock", "explain solo"] {
        ctx.comment(pull, LIN, command).await;
        assert!(
            ctx.last_reply(pull).contains("`pulls.branches` names `main`, `release/*`"),
            "{}",
            ctx.last_reply(pull)
        );
    }
    assert!(ctx.locks().await.is_empty() && ctx.jobs(pull).await == 0);
    // Another base is another question, in both directions.
    ctx.sandbox.edit_pull(REPO, pull, MIRA, &json!({"base": "main"})).expect("another base");
    ctx.settle().await;
    assert!(ctx.plan_check(pull).contains("planned: "), "{}", ctx.plan_check(pull));
    ctx.sandbox.edit_pull(REPO, pull, MIRA, &json!({"base": "wip"})).expect("another base");
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), SAYS);
    let note = ctx.note(pull).expect("the note that it had");
    assert!(note.starts_with("### Not managed: this pull merges into `wip`") && !note.contains("1 update"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_named_later_is_planned_when_somebody_asks() {
    let mut ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "solo"]).await;
    ctx.managed.branches = vec!["main".to_owned()];
    ctx.restart().await;
    let pull = on_another_branch(&ctx, "release/1");
    ctx.settle().await;
    assert!(ctx.plan_check(pull).contains("Not managed"), "{}", ctx.plan_check(pull));
    ctx.managed.branches.push("release/*".to_owned());
    ctx.restart().await;
    ctx.comment(pull, MIRA, "plan").await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    // And a plan that is there is not applied once the settings leave its branch alone.
    ctx.comment(pull, LIN, "approve").await;
    ctx.managed.branches.pop();
    ctx.restart().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).starts_with("Not managed"), "{}", ctx.last_reply(pull));
    assert_eq!(ctx.serial("solo"), 1);
}

/// A comment that is there, as a program's.
async fn says(ctx: &Ctx, pull: u64, login: &str, words: &str) {
    let mut body = ctx.delivered("issue_comment", "created");
    ctx.sandbox.hooks().drop_next(1);
    let id = ctx.sandbox.comment(REPO, pull, MIRA, words).expect("a comment");
    body["comment"]["body"] = json!(words);
    body["comment"]["id"] = json!(id);
    body["comment"]["user"] = json!({"login": login, "id": 5, "type": "Bot"});
    let status = ctx.webhook("issue_comment", &format!("bot-{id}"), &body).await;
    assert!((200..300).contains(&status), "{status}");
    ctx.settle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_commands_when_it_is_named_and_never_approves() {
    let mut ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    ctx.managed.bots = vec!["Renovate[bot]".into()];
    ctx.restart().await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "nice work").await;
    says(&ctx, pull, "renovate[bot]", "approve").await;
    assert!(ctx.last_reply(pull).contains("approvals are given by people"), "{}", ctx.last_reply(pull));
    says(&ctx, pull, "dependabot[bot]", "plan").await;
    says(&ctx, pull, "tidegate[bot]", "plan").await;
    assert_eq!(ctx.jobs(pull).await, 1);
    ctx.comment(pull, LIN, "approve").await;
    let before = ctx.replies(pull).len();
    says(&ctx, pull, "dependabot[bot]", "apply").await;
    assert_eq!((ctx.replies(pull).len(), ctx.serial("solo")), (before, 1), "{:?}", ctx.replies(pull));
    says(&ctx, pull, "renovate[bot]", "apply").await;
    assert!(ctx.serial("solo") > 1, "{:?}", ctx.replies(pull));
}

/// The text of a review is a comment as well, and its author may be a program too.
#[tokio::test(flavor = "multi_thread")]
async fn a_review_by_a_program_commands_nothing() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.review(REPO, pull, LIN, Verdict::Comment, "looks fine").expect("a review");
    ctx.settle().await;
    let seen = ctx.delivered("pull_request_review", "submitted");
    for (id, login) in [(80_001, "renovate[bot]"), (80_002, "tidegate[bot]")] {
        let mut body = seen.clone();
        body["review"]["id"] = json!(id);
        body["review"]["body"] = json!("apply");
        body["review"]["user"] = json!({"login": login, "id": 5, "type": "Bot"});
        let status = ctx.webhook("pull_request_review", &format!("review-{id}"), &body).await;
        assert!((200..300).contains(&status), "{status}");
    }
    ctx.settle().await;
    assert_eq!((ctx.serial("solo"), ctx.replies(pull)), (1, Vec::new()));
}
