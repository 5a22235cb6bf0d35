//! A job is killed at each of its steps, and nothing of it is left to say so. A plan is tried once more, an apply never; people are told
//! what happened and what to do, nothing is applied twice, and no directory of a dead job stays.
//!
//! The steps of the tool are reached by a `terraform` of ours before the real one, which kills the job that started it; those of the
//! server's side by the boundary that the job's call passes. Nothing waits for a clock.

use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::ctx::{Ctx, LIN, MIRA};
use crate::peril::{Peril, Trouble};
use crate::shim::{self, Shim};

/// Where a job dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// When its call passes this boundary of the server.
    Server(&'static str),
    /// Before or after a command of the tool: `before-plan`.
    Tool(&'static str),
    /// Within the apply of a resource: the job alone, or the tool with it.
    Resource(&'static str),
}

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Often {
    Once,
    Always,
}

/// One resource, whose apply leaves a line, and may kill the job or, with it, the tool.
const ROOT: &str = r#"terraform {
  backend "local" { path = "$S/solo.tfstate" }
}
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = <<-EOT
      echo applied >> $S/applied.log
      if [ -e $S/within-apply ]; then rm $S/within-apply; kill -s KILL -- -$JOB; fi
      if [ -e $S/with-its-tool ]; then rm $S/with-its-tool; kill -s KILL -- -$JOB -$TOOL; fi
    EOT
  }
}
"#;

async fn world() -> (Ctx, Arc<Peril>, Shim) {
    let (peril, shim) = (Peril::new(Trouble::Nothing), Shim::new());
    let ctx = Ctx::decorated_in(&[("README.md", "x\n")], shim.environment(), peril.decorate()).await;
    (ctx, peril, shim)
}

fn order(ctx: &Ctx, peril: &Peril, step: Step, often: Often) {
    match step {
        Step::Tool(name) => {
            let word = if often == Often::Once { "once" } else { "always" };
            shim::order(ctx, name, word);
        }
        Step::Resource(name) => std::fs::write(ctx.states().join(name), "").expect("an order"),
        Step::Server(name) => {
            for _ in 0..if often == Often::Once { 1 } else { 2 } {
                let jobs = ctx.data_dir().join("jobs");
                peril.at(name, move || kill_the_job(&jobs));
            }
        }
    }
}

/// There is one, and its pid file was written before it could say anything.
fn kill_the_job(dir: &Path) {
    let files = std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|it| it == "pid")).expect("a running job");
    let text = std::fs::read_to_string(file).expect("a pid file");
    let pid = text.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a pid");
    killpg(Pid::from_raw(pid), Signal::SIGKILL).expect("it is there");
}

/// Nothing of a dead job stays.
fn no_leftovers(ctx: &Ctx, what: &str) {
    let left: Vec<_> = std::fs::read_dir(ctx.data_dir().join("jobs/work")).expect("a folder").collect();
    assert!(left.is_empty(), "{what}: {left:?}");
}

fn applied(ctx: &Ctx) -> usize {
    std::fs::read_to_string(ctx.states().join("applied.log")).unwrap_or_default().lines().count()
}

const STEPS_OF_A_PLAN: [Step; 9] = [
    Step::Server("after claim"),
    Step::Server("checkout"),
    Step::Tool("before-init"),
    Step::Tool("after-init"),
    Step::Tool("before-plan"),
    Step::Tool("after-plan"),
    Step::Tool("after-show"),
    Step::Server("before blob plan"),
    Step::Server("after blob plan"),
];

async fn a_plan_dies(step: Step, often: Often) {
    let what = format!("{step:?} {often:?}");
    let (ctx, peril, _shim) = world().await;
    order(&ctx, &peril, step, often);
    let pull = ctx.open("solo", &[("solo/main.tf", Some(ROOT))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert_eq!(ctx.jobs(pull).await, 2, "{what}: {note}");
    no_leftovers(&ctx, &what);
    if often == Often::Once {
        assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 create", "{what}: {note}");
        return;
    }
    assert_eq!(ctx.plan_check(pull), "failure: 1 root failed to plan", "{what}: {note}");
    for words in ["The job was lost", "signal: 9", "It was tried once more by itself", "plan -d solo"] {
        assert!(note.contains(words), "{what} lacks {words}: {note}");
    }
    if let Step::Tool(name) = step {
        shim::take_back(&ctx, name);
    }
    ctx.comment(pull, MIRA, "plan -d solo").await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 create", "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_dies_is_tried_once_more() {
    for steps in STEPS_OF_A_PLAN.chunks(3) {
        join_all(steps.iter().map(|step| a_plan_dies(*step, Often::Once))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_dies_twice_has_failed_and_says_how_to_go_on() {
    join_all([Step::Server("checkout"), Step::Tool("before-plan")].map(|step| a_plan_dies(step, Often::Always))).await;
}

/// Where an apply dies, how often its root was applied then, and what the next plan finds.
const STEPS_OF_AN_APPLY: [(Step, usize, &str); 8] = [
    (Step::Server("after claim"), 0, "1 create"),
    (Step::Server("checkout"), 0, "1 create"),
    (Step::Tool("before-init"), 0, "1 create"),
    (Step::Tool("after-show"), 0, "1 create"),
    (Step::Tool("before-apply"), 0, "1 create"),
    (Step::Resource("within-apply"), 1, "no resource changes"),
    (Step::Resource("with-its-tool"), 1, "1 create"),
    (Step::Tool("after-apply"), 1, "no resource changes"),
];

async fn an_apply_dies((step, times, next): (Step, usize, &str)) {
    let what = format!("{step:?}");
    let (ctx, peril, _shim) = world().await;
    let pull = ctx.open("solo", &[("solo/main.tf", Some(ROOT))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    order(&ctx, &peril, step, Often::Once);
    ctx.comment(pull, MIRA, "apply").await;
    let reply = ctx.last_reply(pull);
    assert_eq!(ctx.jobs(pull).await, 2, "{what}: an apply is not tried again: {reply}");
    assert_eq!(applied(&ctx), times, "{what}: {reply}");
    assert!(reply.starts_with("**Wave 1 failed** · `solo`"), "{what}: {reply}");
    let words = ["The job was lost", "signal: 9", "not tried again by itself", "force-unlock", "plan -d solo"];
    for words in words {
        assert!(reply.contains(words), "{what} lacks {words}: {reply}");
    }
    assert!(ctx.apply_check(pull).starts_with("failure"), "{what}: {}", ctx.apply_check(pull));
    assert_eq!(ctx.locks().await, ["solo #1"], "{what}");
    no_leftovers(&ctx, &what);
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(applied(&ctx), times, "{what}: a spent plan is not applied");
    ctx.comment(pull, MIRA, "plan -d solo").await;
    assert_eq!(ctx.plan_check(pull), format!("success: 1 root planned: {next}"), "{what}: {:?}", ctx.note(pull));
    if next == "1 create" {
        // The same plan has the same digest; where it was applied in part an approval of its own is asked for.
        ctx.comment(pull, LIN, "approve").await;
        ctx.comment(pull, MIRA, "apply").await;
        assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{what}: {:?}", ctx.replies(pull));
        assert_eq!(applied(&ctx), times + 1, "{what}");
    }
    no_leftovers(&ctx, &what);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_dies_is_never_tried_again() {
    for steps in STEPS_OF_AN_APPLY.chunks(4) {
        join_all(steps.iter().map(|step| an_apply_dies(*step))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_died_while_no_server_ran_is_found_and_its_directory_swept() {
    let (mut ctx, peril, _shim) = world().await;
    let gone = ctx.states().join("gone");
    let (jobs, mark) = (ctx.data_dir().join("jobs"), gone.clone());
    peril.at("before blob plan", move || {
        kill_the_job(&jobs);
        std::fs::write(mark, "").expect("a mark");
    });
    let pull = ctx.open("solo", &[("solo/main.tf", Some(ROOT))]);
    ctx.until("the death of the job", |_| gone.exists().then_some(())).await;
    ctx.kill();
    // As a job leaves it whose end nobody saw: in its plan lies what a plan may hold.
    let left = ctx.data_dir().join("jobs/work/github-1-1-1-1.job/tidegate-x");
    std::fs::create_dir_all(&left).expect("a folder");
    std::fs::write(left.join("plan.tfplan"), "secret").expect("a plan");
    ctx.start().await;
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 create", "{:?}", ctx.note(pull));
    no_leftovers(&ctx, "after a start");
}
