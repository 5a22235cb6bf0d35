//! Stories of a forge whose trouble passes: what people read in the end is what they read where nothing went wrong.
//! Which call fails how often is ordered beforehand; nothing here waits for a clock.

use serde_json::{Value, json};
use tidegate::sandbox::faults::Fault;

use super::{ESTATE, SOLO, solo};
use crate::ctx::{Ctx, LIN, MIRA, REPO};

/// What people see of a pull that was planned, approved and applied.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    note: Vec<String>,
    checks: [String; 2],
    replies: Vec<Vec<String>>,
    locks: Vec<String>,
    uses: usize,
    serial: u64,
}

impl Seen {
    async fn of(ctx: &Ctx, pull: u64) -> Self {
        Self {
            note: words(&ctx.note(pull).expect("a note")),
            checks: [ctx.plan_check(pull), ctx.apply_check(pull)],
            replies: ctx.replies(pull).iter().map(|reply| words(reply)).collect(),
            locks: ctx.locks().await,
            uses: ctx.uses(pull).await,
            serial: ctx.serial("solo"),
        }
    }
}

/// The words without those that differ from world to world: commits, digests, addresses, times.
fn words(text: &str) -> Vec<String> {
    let plain = |word: &&str| !word.contains(|letter: char| letter.is_ascii_digit()) && !word.contains("://");
    text.split_whitespace().filter(plain).map(str::to_owned).collect()
}

async fn world() -> Ctx {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    ctx
}

async fn session(ctx: &Ctx) -> u64 {
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    pull
}

fn said(status: u16, message: &str) -> Fault {
    Fault::Answer(status, json!({ "message": message }))
}

fn times(fault: &Fault, count: usize) -> Vec<Fault> {
    vec![fault.clone(); count]
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_that_passes_leaves_no_trace() {
    let calm = world().await;
    let pull = session(&calm).await;
    let expected = Seen::of(&calm, pull).await;
    assert_eq!(expected.checks[1], "success: 1 root applied");
    let away = Fault::Status(503, Vec::new());
    let suspended = said(403, "This installation has been suspended");
    let table: &[(&str, &str, &str, Vec<Fault>)] = &[
        ("suspended", "POST", "/app/installations/*/access_tokens", times(&suspended, 5)),
        ("suspended in mid-call", "*", "/repos/*", times(&suspended, 5)),
        ("away for everybody", "*", "/repos/*", times(&away, 8)),
        (
            "too long",
            "POST",
            "/repos/*/issues/*/comments",
            vec![said(422, "Body is too long (maximum is 65536 characters)")],
        ),
        (
            "an edit of what is not there for a moment",
            "PATCH",
            "/repos/*/issues/comments/*",
            times(&said(404, "Not Found"), 2),
        ),
        ("moved for a moment", "POST", "/repos/*/issues/*/comments", times(&said(301, "Moved Permanently"), 2)),
        ("half an answer", "GET", "/repos/*/pulls/*", vec![Fault::Answer(200, json!({ "number": 1 }))]),
        (
            "an error in a 200",
            "POST",
            "/repos/*/check-runs",
            vec![Fault::Answer(200, json!({ "data": null, "errors": [] }))],
        ),
    ];
    for (name, method, path, faults) in table {
        let ctx = world().await;
        for fault in faults {
            ctx.sandbox.faults().next(method, path, fault.clone());
        }
        ctx.sandbox.expire_tokens();
        let pull = session(&ctx).await;
        assert_eq!(ctx.sandbox.faults().waiting(), 0, "{name}");
        assert_eq!(Seen::of(&ctx, pull).await, expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_delivered_comes_again_an_hour_later() {
    let ctx = world().await;
    let pull = session(&ctx).await;
    ctx.push("one", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.settle().await;
    let before = Seen::of(&ctx, pull).await;
    let told = ctx.sandbox.hooks().delivered();
    for delivery in told.iter().rev() {
        ctx.sandbox.hooks().redeliver(delivery.id).expect("a delivery");
    }
    ctx.settle().await;
    assert_eq!(Seen::of(&ctx, pull).await, before, "the same deliveries");
    // The hook of the repository tells the same under names of its own.
    for (number, delivery) in told.iter().rev().enumerate() {
        let body: Value = serde_json::from_str(&delivery.body).expect("JSON");
        let status = ctx.webhook(&delivery.event, &format!("again-{number}"), &body).await;
        assert!((200..300).contains(&status), "{}: {status}", delivery.event);
    }
    ctx.settle().await;
    assert_eq!(Seen::of(&ctx, pull).await, before, "under other names");
}

/// What the forge answers there now.
async fn answer(ctx: &Ctx, path: &str) -> Value {
    let asked = reqwest::Client::new()
        .get(format!("{}{path}", ctx.sandbox.url()))
        .bearer_auth(ctx.sandbox.token_for(LIN))
        .header("user-agent", "story");
    asked.send().await.expect("an answer").json().await.expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_waits_until_the_forge_says_whether_it_merges() {
    let ctx =
        Ctx::with(&[("solo/main.tf", SOLO), (".tidegate.yaml", "gate: never\napply: { requires: [mergeable] }\n")])
            .await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let path = format!("/repos/{REPO}/pulls/{pull}");
    let mut unsaid = answer(&ctx, &path).await;
    unsaid["mergeable"] = Value::Null;
    for _ in 0..3 {
        ctx.sandbox.faults().next("GET", &path, Fault::Answer(200, unsaid.clone()));
    }
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
    assert_eq!((ctx.replies(pull).len(), ctx.sandbox.faults().waiting()), (1, 0), "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_answer_after_a_push_does_not_win() {
    let ctx = world().await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let path = format!("/repos/{REPO}/pulls/{pull}");
    let old = answer(&ctx, &path).await;
    ctx.next_second().await;
    for _ in 0..2 {
        ctx.sandbox.faults().next("GET", &path, Fault::Answer(200, old.clone()));
    }
    ctx.push("one", &[("solo/main.tf", Some(&solo("3")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.note(pull).expect("a note").contains("\"3\""), "{:?}", ctx.note(pull));
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
    assert!(ctx.state("solo").contains("\"3\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_that_somebody_deleted_is_there_again_once() {
    let ctx = world().await;
    // Its answer is lost as well, so that nobody knows its number.
    ctx.sandbox.faults().next("POST", "/repos/*/issues/*/comments", Fault::Reset);
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    for value in ["3", "4"] {
        let ours = ctx.sandbox.comments(REPO, pull).expect("comments");
        let note = ours.iter().find(|comment| comment.body.trim_end().ends_with(" note -->")).expect("a note");
        ctx.sandbox.delete_comment(REPO, note.id, LIN).expect("deleted");
        ctx.push("one", &[("solo/main.tf", Some(&solo(value)))]);
        ctx.settle().await;
        assert!(ctx.note(pull).expect("one note").contains(&format!("\"{value}\"")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_was_forced_back_is_planned_on() {
    let ctx = world().await;
    let before = ctx.sandbox.tip(REPO, "main").expect("a tip");
    ctx.push("main", &[("solo/more.tf", Some("resource \"terraform_data\" \"more\" { input = \"m\" }\n"))]);
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update · 1 create");
    // The branch of the pull holds the commit that its base has lost: it brings it itself now.
    ctx.sandbox.set_branch(REPO, "main", &before, LIN).expect("forced");
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update · 1 create");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_deleted_lets_go_of_everything() {
    let ctx = Ctx::with(&[("solo/main.tf", SOLO), (".tidegate.yaml", "locks: plan\n")]).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert_eq!(ctx.locks().await, [format!("solo #{pull}")]);
    ctx.sandbox.delete_branch(REPO, "one", MIRA).expect("deleted");
    ctx.settle().await;
    assert_eq!(ctx.locks().await, Vec::<String>::new());
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.uses(pull).await, 0);
}
