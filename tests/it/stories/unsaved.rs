//! A state that its backend does not take: kept, said, and nothing more is done on it until a person settles it.

use std::process::{Command, Output};

use tidegate::domain::ids::JobId;
use tidegate::domain::rollout::ApplyRun;

use crate::backend::Backend;
use crate::ctx::{Ctx, KIM, LIN, MIRA, SAM};

const TWO: &str = "resource \"terraform_data\" \"a\" { input = \"one\" }\nresource \"terraform_data\" \"b\" {}\n";

fn root(backend: &Backend, body: &str) -> String {
    format!("{}{body}", backend.block("net"))
}

/// `tidegate errored-state`, where the server runs.
fn errored_state(ctx: &Ctx, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("errored-state").args(arguments).env_clear();
    command.env("TIDEGATE_DATA_DIR", ctx.data_dir()).env("TIDEGATE_KEYS_ENCRYPTION", hex::encode([7; 32]));
    command.env("TIDEGATE_GITHUB_TOKEN", "none").env("TIDEGATE_GITHUB_WEBHOOK_SECRET", "none");
    command.output().expect("the program")
}

/// The job of the pull's apply that failed.
async fn failed_job(ctx: &Ctx, pull: u64) -> JobId {
    let pulls = ctx.app().store.pulls().await.expect("pulls");
    let known = pulls.into_iter().find(|known| known.key.number == pull).and_then(|known| known.rollout);
    let runs = known.expect("a rollout").runs.into_values();
    let job = runs.into_iter().find_map(|run| match run.apply {
        ApplyRun::Failed { job, .. } => Some(job),
        _ => None,
    });
    job.expect("a failed apply")
}

/// What a person does with it: the steps of the comment, in a checkout of `main` with the root in it.
fn push(ctx: &Ctx, main: &str, state: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("main.tf"), ctx.fill(main)).expect("a file");
    std::fs::write(folder.path().join("errored.tfstate"), state).expect("a file");
    crate::ctx::terraform(folder.path(), &["init", "-input=false", "-no-color"]);
    crate::ctx::terraform(folder.path(), &["state", "push", "errored.tfstate"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_its_backend_does_not_take_is_kept_and_stops_everybody_until_it_is_settled() {
    let backend = Backend::start().await;
    let mut ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let main = root(&backend, TWO);
    let pull = ctx.open("net", &[("net/main.tf", Some(&main))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    let other = ctx.open("other", &[("net/main.tf", Some(&root(&backend, &TWO.replace("one", "two"))))]);
    ctx.settle().await;
    assert!(ctx.note(other).expect("a note").starts_with("### 2 create"), "{:?}", ctx.note(other));
    backend.refuse_writes();
    ctx.comment(pull, MIRA, "apply").await;

    let reply = ctx.last_reply(pull);
    let job = failed_job(&ctx, pull).await;
    assert!(reply.starts_with("**Wave 1 failed** · `net` · 2 done"), "{reply}");
    for part in [
        "`net` failed in **apply**: Failed to save state".to_owned(),
        "> The backend of `net` did not take its state: what this apply made stands only in `errored.tfstate`"
            .to_owned(),
        format!("> 1. Where the server runs, with its settings: `tidegate errored-state {job} > errored.tfstate`"),
        "`terraform state push errored.tfstate`".to_owned(),
        "> 3. Here: `settle -d net`, which plans what is left".to_owned(),
    ] {
        assert!(reply.contains(&part), "{part}\n{reply}");
    }
    assert!(!reply.contains("plan -d net"), "{reply}");
    let held = "Not planned: the state of `net` is not saved. The backend did not take it at the apply of #1";
    assert!(ctx.note(other).expect("a note").contains(held), "{:?}", ctx.note(other));
    assert_eq!(ctx.plan_check(other), "queued: The state of net is not saved");

    // Nothing goes on by itself, by another command, or after the server's end; nor does the end of the lock help.
    ctx.restart().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(
        ctx.last_reply(pull).starts_with("Not applied: the state of `net` is not saved"),
        "{:?}",
        ctx.replies(pull)
    );
    ctx.comment(pull, MIRA, "plan -d net").await;
    assert!(ctx.note(pull).expect("a note").contains(held), "{:?}", ctx.note(pull));
    ctx.comment(pull, MIRA, "unlock").await;
    ctx.comment(other, MIRA, "plan").await;
    assert!(ctx.note(other).expect("a note").contains(held), "{:?}", ctx.note(other));
    ctx.comment(other, LIN, "status").await;
    assert!(ctx.last_reply(other).contains("the state of `net` is not saved"), "{:?}", ctx.replies(other));

    // It is sealed in the database; the operator gets it, and nobody without the key.
    let list = String::from_utf8(errored_state(&ctx, &[]).stdout).expect("text");
    assert!(list.starts_with(&format!("{job}  net  acme/infra#1  ")), "{list}");
    let state = errored_state(&ctx, &[job.as_str()]);
    assert!(state.status.success(), "{}", String::from_utf8_lossy(&state.stderr));
    assert!(String::from_utf8_lossy(&state.stdout).contains("\"one\""), "{:?}", state.stdout);
    let none = errored_state(&ctx, &["no-such-job"]);
    assert!(!none.status.success());
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(said, "tidegate: not there: a job of this id\n");

    backend.take_writes();
    push(&ctx, &main, &state.stdout);
    assert!(backend.state("net").contains("\"one\""), "{}", backend.state("net"));
    for (by, text, answer) in [
        (SAM, "settle -d net", "this needs write access"),
        (MIRA, "settle", "`settle` names each root by `-d ROOT`"),
        (
            MIRA,
            "settle -d nett",
            "Nothing to settle for `nett`: the one state that waits to be saved is that of `net`.",
        ),
        (KIM, "settle -d net", "Settled `net`. It is planned again on the state that is there now."),
        (KIM, "settle -d net", "Nothing to settle for `net`: no state of this repository waits to be saved."),
    ] {
        ctx.comment(pull, by, text).await;
        assert!(ctx.last_reply(pull).contains(answer), "{text}: {}", ctx.last_reply(pull));
    }
    assert!(ctx.note(pull).expect("a note").starts_with("### No changes"), "{:?}", ctx.note(pull));
    assert!(ctx.note(other).expect("a note").starts_with("### 1 update"), "{:?}", ctx.note(other));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_nobody_could_take_is_not_lost_with_the_server() {
    let backend = Backend::start().await;
    let mut ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let slow = "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"touch $S/begun; while ! test -e $S/allow; do sleep 0.05; done\" }\n}\n";
    let pull = ctx.open("net", &[("net/main.tf", Some(&root(&backend, slow)))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.comment(crate::ctx::REPO, pull, MIRA, "apply").expect("a comment");
    let begun = ctx.states().join("begun");
    ctx.until("the apply", |_| begun.exists().then_some(())).await;
    backend.refuse_writes();
    ctx.kill();
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.start().await;
    ctx.settle().await;
    let job = failed_job(&ctx, pull).await;
    assert!(ctx.last_reply(pull).contains(&format!("tidegate errored-state {job}")), "{:?}", ctx.replies(pull));
    let state = errored_state(&ctx, &[job.as_str()]);
    assert!(String::from_utf8_lossy(&state.stdout).contains("terraform_data"), "{state:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_comes_after_its_job_was_given_up_stops_the_root_as_well() {
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let fails = "terraform {\n  backend \"local\" { path = \"$S/net.tfstate\" }\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"false\" }\n}\n";
    let pull = ctx.open("net", &[("net/main.tf", Some(fails))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    let job = failed_job(&ctx, pull).await;
    assert!(!ctx.last_reply(pull).contains("errored-state"), "{:?}", ctx.replies(pull));
    assert_eq!(ctx.put_for_job(&job, "errored-state").await, 204);
    ctx.settle().await;
    assert!(ctx.last_reply(pull).contains(&format!("tidegate errored-state {job}")), "{:?}", ctx.replies(pull));
    ctx.comment(pull, MIRA, "plan -d net").await;
    assert!(ctx.note(pull).expect("a note").contains("Not planned: the state of `net` is not saved"));
    // A plan leaves no state: whoever sends one for it is refused, and stops nothing.
    let planned = ctx.open("two", &[("two/main.tf", Some(&fails.replace("net", "two")))]);
    ctx.settle().await;
    assert_eq!(ctx.put_for_ended_job("errored-state").await, 409);
    assert!(ctx.note(planned).expect("a note").starts_with("### 1 create"), "{:?}", ctx.note(planned));
}
