//! The demo's session, played by itself: each step waits for what a person would see, and prints how long it took. It
//! looks only at the forge, never into the server.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::{APPROVER, AUTHOR, REPO, Stage, open_pull, sample};
use crate::sandbox::Comment;

/// A step that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the forge is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What went wrong in a step.
type Step<T> = Result<T, String>;

/// Plays the session; success only if each step held.
#[expect(clippy::print_stdout, reason = "each step is a line on the terminal")]
pub(super) async fn play(stage: &Stage) -> ExitCode {
    let started = Instant::now();
    let ended = session(stage).await;
    match ended {
        Ok(()) => {
            println!("all steps held in {:.1} s", started.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn session(stage: &Stage) -> Step<()> {
    let first = first_pull(stage).await?;
    approve_and_apply(stage, first).await?;
    let second = second_pull(stage, first).await?;
    to_the_last_wave(stage, first).await?;
    merge(stage, first).await?;
    after_the_merge(stage, second).await
}

/// The note appears and the merge is blocked.
async fn first_pull(stage: &Stage) -> Step<u64> {
    let clock = Instant::now();
    let number = open_pull(stage, "new-range", "Move the network to 10.20.0.0/16", &sample::new_range(&stage.states))
        .map_err(|error| error.to_string())?;
    wait("both checks are pending", clock, || {
        check(stage, number, "tidegate/plan").and(check(stage, number, "tidegate/apply"))
    })
    .await?;
    wait("the note has the plan, the order and the reach", clock, || {
        let note = note(stage, number)?;
        let parts = [
            "1 delete · 2 replace",
            "`wave-1`",
            "(known after apply)",
            "**By resource:**",
            "planned again after `network`",
        ];
        parts.iter().all(|part| note.contains(part)).then_some(())
    })
    .await?;
    wait("the plan check is green", clock, || is(stage, number, "tidegate/plan", "success")).await?;
    let refused = stage.sandbox.merge(REPO, number, APPROVER);
    match refused {
        Err(_) => held("the merge is blocked"),
        Ok(_) => return Err("the merge was not blocked".to_owned()),
    }
    Ok(number)
}

/// The author cannot approve; somebody else does, and the first wave goes.
async fn approve_and_apply(stage: &Stage, number: u64) -> Step<()> {
    let clock = Instant::now();
    say(stage, number, AUTHOR, "approve wave-1")?;
    wait("the author's approval is refused", clock, || reply(stage, number, "four_eyes")).await?;
    let clock = Instant::now();
    say(stage, number, AUTHOR, "apply")?;
    wait("apply waits for an approval", clock, || reply(stage, number, "waits for an approval")).await?;
    let clock = Instant::now();
    say(stage, number, APPROVER, "approve wave-1")?;
    wait("the approval lets wave 1 go, with progress", clock, || reply(stage, number, "resources done")).await?;
    wait("wave 2 was planned again on real outputs and waits", clock, || reply(stage, number, "approve wave-2")).await
}

/// A second pull on the same root is told about the lock.
async fn second_pull(stage: &Stage, first: u64) -> Step<u64> {
    let clock = Instant::now();
    let number = open_pull(stage, "flow-log", "Log the flows of the network", &sample::flow_log())
        .map_err(|error| error.to_string())?;
    wait("a second pull is told about the lock", clock, || {
        note(stage, number).filter(|note| note.contains("locked by") && note.contains(&format!("#{first}"))).map(|_| ())
    })
    .await?;
    Ok(number)
}

async fn to_the_last_wave(stage: &Stage, number: u64) -> Step<()> {
    for wave in [2, 3] {
        let clock = Instant::now();
        let command = format!("approve wave-{wave}");
        wait(&format!("wave {wave} says what to type"), clock, || reply(stage, number, &command)).await?;
        say(stage, number, APPROVER, &command)?;
        let next = if wave == 2 { "approve wave-3" } else { "**Applied**" };
        wait(&format!("wave {wave} applied"), clock, || reply(stage, number, next)).await?;
    }
    wait("the apply check is green", Instant::now(), || is(stage, number, "tidegate/apply", "success")).await
}

async fn merge(stage: &Stage, number: u64) -> Step<()> {
    let clock = Instant::now();
    wait("the merge goes through", clock, || stage.sandbox.merge(REPO, number, AUTHOR).ok().map(|_| ())).await
}

/// The locks are free: the second pull is planned without a word, on top of the merge.
async fn after_the_merge(stage: &Stage, second: u64) -> Step<()> {
    let clock = Instant::now();
    wait("the second pull is planned by itself", clock, || {
        let note = note(stage, second)?;
        (!note.contains("locked by") && note.starts_with("### 1 create")).then_some(())
    })
    .await?;
    wait("and its plan check is green", clock, || is(stage, second, "tidegate/plan", "success")).await
}

#[expect(clippy::print_stdout, reason = "each step is a line on the terminal")]
async fn wait<T>(what: &str, since: Instant, mut seen: impl FnMut() -> Option<T>) -> Step<T> {
    while since.elapsed() < PATIENCE {
        if let Some(value) = seen() {
            println!("{:>7} ms  {what}", since.elapsed().as_millis());
            return Ok(value);
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(format!("{what}: not within {} s", PATIENCE.as_secs()))
}

#[expect(clippy::print_stdout, reason = "each step is a line on the terminal")]
fn held(what: &str) {
    println!("{:>7} ms  {what}", 0);
}

fn say(stage: &Stage, number: u64, login: &str, text: &str) -> Step<()> {
    stage.sandbox.comment(REPO, number, login, text).map(|_| ()).map_err(|refusal| format!("{refusal:?}"))
}

fn ours(stage: &Stage, number: u64) -> Vec<Comment> {
    let comments = stage.sandbox.comments(REPO, number).unwrap_or_default();
    comments.into_iter().filter(|comment| comment.author.ends_with("[bot]")).collect()
}

/// The first of our comments is the note; all others are replies and applies.
fn note(stage: &Stage, number: u64) -> Option<String> {
    ours(stage, number).into_iter().map(|comment| comment.body).find(|body| body.trim_end().ends_with("note -->"))
}

fn reply(stage: &Stage, number: u64, part: &str) -> Option<()> {
    ours(stage, number)
        .iter()
        .any(|comment| !comment.body.trim_end().ends_with("note -->") && comment.body.contains(part))
        .then_some(())
}

fn check(stage: &Stage, number: u64, name: &str) -> Option<String> {
    let head = stage.sandbox.pull(REPO, number).ok()?.head_sha;
    let runs = stage.sandbox.checks(REPO, &head).ok()?;
    let run = runs.into_iter().filter(|run| run.name == name).max_by_key(|run| run.id)?;
    Some(run.conclusion.unwrap_or(run.status))
}

fn is(stage: &Stage, number: u64, name: &str, state: &str) -> Option<()> {
    (check(stage, number, name)? == state).then_some(())
}
