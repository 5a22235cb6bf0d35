//! Faults that others had with comments and deliveries: what is no new comment of a person on an open pull runs nothing, and what is
//! delivered twice, late or without its optional fields does no harm.

use serde_json::{Value, json};

use super::{ESTATE, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};

/// Every path of a document whose value is not null already.
fn paths(value: &Value, at: &str, all: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        let path = format!("{at}/{key}");
        if !child.is_null() {
            all.push(path.clone());
        }
        paths(child, &path, all);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_without_a_field_is_taken_and_starts_nothing_twice() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "status").await;
    let replies = ctx.replies(pull).len();
    let mut number = 0;
    for (event, action) in [("pull_request", "opened"), ("issue_comment", "created"), ("push", "")] {
        let whole = ctx.delivered(event, action);
        let mut all = Vec::new();
        paths(&whole, "", &mut all);
        all.retain(|path| path.matches('/').count() <= 4);
        for path in all {
            let mut partial = whole.clone();
            if let Some(value) = partial.pointer_mut(&path) {
                *value = Value::Null;
            }
            number += 1;
            let status = ctx.webhook(event, &format!("partial-{number}"), &partial).await;
            assert!((200..300).contains(&status), "{event} without {path}: {status}");
        }
    }
    ctx.settle().await;
    assert_eq!(ctx.jobs(pull).await, 1, "one plan");
    assert_eq!(ctx.replies(pull).len(), replies, "{:?}", ctx.replies(pull));
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_any_shape_are_answered_well() {
    let ctx = Ctx::with(ESTATE).await;
    let odd = [json!(null), json!([]), json!("x"), json!({}), json!({"action": 7}), json!({"repository": "r"})];
    for (index, body) in odd.iter().enumerate() {
        for event in ["pull_request", "issue_comment", "push", "check_run", "commit_comment", "gollum", "merge_group"] {
            let status = ctx.webhook(event, &format!("odd-{event}-{index}"), body).await;
            assert!((200..300).contains(&status), "{event} {body}: {status}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_new_comment_on_a_pull_is_a_command() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "nice work").await;
    let seen = ctx.delivered("issue_comment", "created");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = seen.clone();
        body["comment"]["body"] = json!("apply");
        body["comment"]["id"] = json!(99_001);
        change(&mut body);
        body
    };
    let deliveries = [
        ("issue_comment", with(&|body| body["action"] = json!("deleted"))),
        // On an issue that is no pull.
        ("issue_comment", with(&|body| body["issue"]["pull_request"] = Value::Null)),
        ("commit_comment", with(&|_| ())),
        // Threads of a review are talk about lines.
        ("pull_request_review_comment", with(&|body| body["pull_request"] = json!({"number": 1}))),
        ("discussion_comment", with(&|_| ())),
        // Another program.
        (
            "issue_comment",
            with(&|body| {
                body["comment"]["user"] = json!({"login": "renovate[bot]", "id": 5, "type": "Bot"});
            }),
        ),
        // An account that is gone.
        ("issue_comment", with(&|body| body["comment"]["user"] = Value::Null)),
    ];
    for (index, (event, body)) in deliveries.iter().enumerate() {
        let status = ctx.webhook(event, &format!("no-command-{index}"), body).await;
        assert!((200..300).contains(&status), "{event}: {status}");
    }
    ctx.settle().await;
    assert_eq!(ctx.serial("solo"), 1, "{:?}", ctx.replies(pull));
    assert_eq!(ctx.replies(pull), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_to_a_command_runs_nothing_and_is_told_once() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    let words = ctx.comment(pull, MIRA, "shall we?").await;
    for _ in 0..2 {
        ctx.sandbox.edit_comment(REPO, words, MIRA, "apply").expect("an edit");
        ctx.settle().await;
    }
    assert_eq!(ctx.replies(pull), ["Not run: edits of a comment run nothing. Write the command in a new comment."]);
    // A command that had its answer keeps it.
    let status = ctx.comment(pull, MIRA, "status").await;
    ctx.sandbox.edit_comment(REPO, status, MIRA, "apply").expect("an edit");
    ctx.settle().await;
    assert!(ctx.replies(pull)[1].contains("1 of 1 root"), "{:?}", ctx.replies(pull));
    assert_eq!(ctx.replies(pull).len(), 3, "{:?}", ctx.replies(pull));
    assert_eq!(ctx.serial("solo"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_that_was_edited_before_it_was_found_runs_nothing() {
    let mut ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.kill();
    let words = ctx.sandbox.comment(REPO, pull, MIRA, "shall we?").expect("a comment");
    // Forges tell whole seconds: the edit has to fall into another one to be seen.
    ctx.next_second().await;
    ctx.sandbox.edit_comment(REPO, words, MIRA, "apply").expect("an edit");
    ctx.sandbox.deliveries_idle().await;
    ctx.start().await;
    ctx.until("the word about edits", |ctx| ctx.replies(pull).first().cloned()).await;
    ctx.settle().await;
    assert_eq!(ctx.serial("solo"), 1, "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_words_are_never_read() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    let mut body = ctx.delivered("issue_comment", "created");
    // Our note, delivered with a command as its first line.
    let note = ctx
        .sandbox
        .comments(REPO, pull)
        .expect("comments")
        .into_iter()
        .find(|comment| comment.author.starts_with("tidegate"));
    let note = note.expect("a note");
    body["comment"]["id"] = json!(note.id);
    body["comment"]["body"] = json!("apply\n\nthe rest");
    body["comment"]["user"] = json!({"login": note.author, "id": 1, "type": "Bot"});
    assert!((200..300).contains(&ctx.webhook("issue_comment", "own", &body).await));
    ctx.settle().await;
    assert_eq!(ctx.serial("solo"), 1, "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_under_two_delivery_ids_run_once() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    let body = ctx.delivered("issue_comment", "created");
    let again = (0..5).map(|index| (format!("hook-{index}"), body.clone()));
    let mut answers = Vec::new();
    for (id, body) in again {
        answers.push(ctx.webhook("issue_comment", &id, &body).await);
    }
    assert!(answers.iter().all(|status| *status == 202), "{answers:?}");
    ctx.settle().await;
    assert_eq!(ctx.uses(pull).await, 1);
    assert_eq!(ctx.replies(pull).len(), 1, "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_in_any_order_end_the_same() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    // `opened` is lost; a comment is the first that is heard of the pull.
    ctx.sandbox.hooks().drop_next(2);
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.comment(pull, KIM, "plan").await;
    assert!(ctx.note(pull).expect("a note").starts_with("### 1 update"), "{:?}", ctx.note(pull));
    // The delivery that opened it comes last of all, and after one that says it is closed.
    ctx.push("one", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.settle().await;
    let pushed = ctx.delivered("pull_request", "synchronize");
    ctx.sandbox.close(REPO, pull, MIRA).expect("closed");
    ctx.settle().await;
    assert!((200..300).contains(&ctx.webhook("pull_request", "late", &pushed).await));
    ctx.settle().await;
    assert!(ctx.note(pull).expect("a note").contains("**Closed.**"), "{:?}", ctx.note(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_who_apply_at_once_apply_once() {
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("slow", &[("slow/main.tf", Some(super::buglog_heads::SLOW))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.comment(REPO, pull, MIRA, "apply").expect("a comment");
    ctx.sandbox.comment(REPO, pull, KIM, "apply").expect("a comment");
    ctx.until("the second answer", |ctx| {
        ctx.replies(pull).iter().any(|reply| reply.starts_with("Already applying for")).then_some(())
    })
    .await;
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.settle().await;
    assert_eq!(ctx.uses(pull).await, 1);
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn label_title_and_assignee_plan_nothing_again() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.sandbox.edit_pull(REPO, pull, MIRA, &json!({"title": "Other words", "body": "apply"})).expect("edited");
    ctx.settle().await;
    for action in ["labeled", "assigned", "review_requested", "auto_merge_enabled", "locked", "some_day"] {
        let mut body = ctx.delivered("pull_request", "opened");
        body["action"] = json!(action);
        assert!((200..300).contains(&ctx.webhook("pull_request", action, &body).await), "{action}");
    }
    ctx.settle().await;
    assert_eq!(ctx.jobs(pull).await, 1);
}

/// Two hooks and a forge that sends again: one comment under one id and under five, all at once.
#[tokio::test(flavor = "multi_thread")]
async fn one_comment_delivered_ten_times_at_once_runs_once() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    let mut body = ctx.delivered("issue_comment", "created");
    ctx.sandbox.hooks().drop_next(1);
    let id = ctx.sandbox.comment(REPO, pull, MIRA, "apply").expect("a comment");
    body["comment"]["id"] = json!(id);
    body["comment"]["body"] = json!("apply");
    body["comment"]["user"]["login"] = json!(MIRA);
    let send = |delivery: String| {
        let (ctx, body) = (&ctx, &body);
        async move { ctx.webhook("issue_comment", &delivery, body).await }
    };
    let same = (0..5).map(|_| "same".to_owned());
    let all = futures::future::join_all(same.chain((0..5).map(|index| format!("other-{index}"))).map(send)).await;
    assert!(all.iter().all(|status| (200..300).contains(status)), "{all:?}");
    ctx.settle().await;
    assert_eq!((ctx.uses(pull).await, ctx.replies(pull).len()), (1, 1), "{:?}", ctx.replies(pull));
    // One plan and one apply.
    assert_eq!(ctx.jobs(pull).await, 2);
}
