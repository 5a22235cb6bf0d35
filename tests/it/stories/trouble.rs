//! Trouble with the tool itself: a lock that somebody else holds, a tool that hangs, is killed, or says more than anybody reads. Each
//! ends with words that say what happened and what to do, and with nothing changed that was not meant to.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::backend::Backend;
use crate::ctx::{Ctx, LIN, MIRA, REPO, Way};

/// A `terraform` in front of the real one: `script` runs first, with `$real` as the real one's path.
fn in_front(script: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = std::env::var("PATH").expect("a path");
    let real = std::env::split_paths(&path).map(|dir| dir.join("terraform")).find(|file| file.is_file());
    let real = real.expect("terraform").display().to_string();
    let file = folder.path().join("terraform");
    std::fs::write(&file, format!("#!/bin/sh\nreal={real}\n{script}\nexec \"$real\" \"$@\"\n")).expect("a script");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{path}", folder.path().display());
    (folder, path)
}

async fn world(variables: &[(&str, &str)]) -> Ctx {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Ctx::in_environment(&[("README.md", "x\n")], Way::App, variables).await
}

fn local(name: &str, body: &str) -> String {
    format!("terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n}}\n{body}")
}

const ONE: &str = "resource \"terraform_data\" \"a\" { input = \"one\" }\n";

/// Somebody applies in a checkout of their own, until `$S/allow` is there.
fn somebody_applies(ctx: &Ctx, folder: &Path) -> Child {
    let slow = "resource \"terraform_data\" \"b\" {\n  provisioner \"local-exec\" { command = \"touch $S/begun; while ! test -e $S/allow; do sleep 0.05; done\" }\n}\n";
    std::fs::write(folder.join("main.tf"), ctx.fill(&local("here", slow))).expect("a file");
    crate::ctx::terraform(folder, &["init", "-input=false"]);
    let mut command = Command::new("terraform");
    command.args(["apply", "-auto-approve", "-input=false", "-no-color"]).current_dir(folder);
    command.stdout(Stdio::null()).env_remove("TF_CLI_CONFIG_FILE").env("CHECKPOINT_DISABLE", "1");
    command.spawn().expect("terraform")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_somebody_holds_is_waited_for_and_then_they_are_named() {
    let backend = Backend::start().await;
    let ctx = world(&[("TIDEGATE_JOB_LOCK_TIMEOUT", "1")]).await;
    let far = format!("{}{ONE}", backend.block("far"));
    let pull = ctx.open("both", &[("here/main.tf", Some(&local("here", ONE))), ("far/main.tf", Some(&far))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut somebody = somebody_applies(&ctx, folder.path());
    let begun = ctx.states().join("begun");
    ctx.until("their apply", |_| begun.exists().then_some(())).await;
    backend.lock("far", "{\"ID\":\"held-by-sam\",\"Who\":\"sam@laptop\",\"Operation\":\"OperationTypeApply\"}");
    ctx.next_second().await;
    ctx.comment(pull, MIRA, "apply").await;
    let reply = ctx.last_reply(pull);
    assert!(reply.starts_with("**Wave 1 failed** · `far` and `here` · 2 not applied"), "{reply}");
    let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    for part in [
        format!("`here` failed in **apply**: The state is locked by {user}@"),
        "> They run `apply` with version 1.".to_owned(),
        "Nothing was changed here, and Tidegate frees no lock that it did not take. Wait until that run ends, then type `plan -d here` and apply.".to_owned(),
        "`far` failed in **apply**: The state is locked, and its backend does not say by whom".to_owned(),
        "`terraform force-unlock held-by-sam` in `far` frees it.".to_owned(),
    ] {
        assert!(reply.contains(&part), "{part}\n{reply}");
    }
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    assert!(somebody.wait().expect("an end").success());
    assert!(ctx.state("here").contains("terraform_data") && !ctx.state("here").contains("\"one\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_hangs_is_ended_by_its_time_or_by_a_word() {
    let hang = "test \"$1\" = plan && { mkfifo \"$HANG.$$\"; read -r line < \"$HANG.$$\"; }";
    let (_folder, path) = in_front(hang);
    let fifos = tempfile::tempdir().expect("a folder");
    let fifo = fifos.path().join("fifo").display().to_string();
    let ctx = world(&[("PATH", path.as_str()), ("HANG", fifo.as_str()), ("TIDEGATE_JOB_PLAN_TIMEOUT", "1")]).await;
    let pull = ctx.open("one", &[("one/main.tf", Some(&local("one", ONE)))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("`one` failed in **plan**: The plan took longer than 1 s"), "{note}");
    assert!(
        note.contains("`executor.plan_timeout` is 1 s. The tool was interrupted in `plan`; nothing was changed."),
        "{note}"
    );
    assert_eq!(ctx.plan_check(pull), "failure: 1 root failed to plan");
    drop(ctx);

    let ctx = world(&[("PATH", path.as_str()), ("HANG", fifo.as_str())]).await;
    let pull = ctx.open("one", &[("one/main.tf", Some(&local("one", ONE)))]);
    let started = || std::fs::read_dir(fifos.path()).expect("a folder").count();
    let before = started();
    ctx.until("the plan", |_| (started() > before).then_some(())).await;
    ctx.sandbox.comment(REPO, pull, MIRA, "cancel").expect("a comment");
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("dropped by `@mira`"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_killed_says_so_and_that_the_state_may_lack_something() {
    let (_folder, path) = in_front("test \"$1\" = apply && test -e \"$KILL\" && kill -9 $$");
    let folder = tempfile::tempdir().expect("a folder");
    let kill = folder.path().join("kill");
    let ctx = world(&[("PATH", path.as_str()), ("KILL", &kill.display().to_string())]).await;
    let pull = ctx.open("one", &[("one/main.tf", Some(&local("one", ONE)))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    std::fs::write(&kill, "").expect("a file");
    ctx.comment(pull, MIRA, "apply").await;
    let reply = ctx.last_reply(pull);
    assert!(reply.contains("`terraform apply\\` was killed (signal 9), as happens when memory runs out"), "{reply}");
    assert!(reply.contains("What it had begun may exist without standing in the state"), "{reply}");
    std::fs::remove_file(&kill).expect("a file");
    ctx.comment(pull, MIRA, "plan -d one").await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_lines_than_anybody_reads_leave_a_small_note_and_a_log_with_an_end() {
    let line = "{\\\"@level\\\":\\\"info\\\",\\\"@message\\\":\\\"a line of many\\\",\\\"type\\\":\\\"log\\\"}";
    let many = format!("test \"$1\" = plan && yes \"{line}\" | head -n 30000");
    let (_folder, path) = in_front(&many);
    let ctx = world(&[("PATH", path.as_str())]).await;
    let pull = ctx.open("one", &[("one/main.tf", Some(&local("one", ONE)))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 create") && note.len() < 3_000, "{note}");
    let (page, log) = page_and_log(&note).await;
    assert!(page.len() < 20_000, "{}", page.len());
    let lines = log.lines().filter(|line| *line == "a line of many").count();
    assert!((19_900..=20_000).contains(&lines), "{lines}");
    assert!(log.contains("… 100"), "the rest is counted: {}", &log[log.len() - 300..]);
}

/// The page that a note links, and the first log that the page links.
async fn page_and_log(note: &str) -> (String, String) {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let get = async |url: String| client.get(url).send().await.expect("an answer").text().await.expect("a text");
    let at = note.find("http://").expect("a link");
    let link = note[at..].split(')').next().unwrap_or_default().to_owned();
    let page = get(link.clone()).await;
    let log = page.split('"').find(|part| part.starts_with("/r/") && part.contains("/log/")).expect("a log");
    let host = link.split("/r/").next().unwrap_or_default();
    let log = get(format!("{host}{}", log.replace("&amp;", "&"))).await;
    (page, log)
}

#[tokio::test(flavor = "multi_thread")]
async fn escapes_zeros_and_bytes_that_are_no_text_do_no_harm() {
    let ctx = world(&[]).await;
    let body = "resource \"terraform_data\" \"a\" {\n  input = \"\\u001b[31mred\\u001b[0m zero\\u0000end \\u202egnirts\"\n  provisioner \"local-exec\" { command = \"printf 'a\\\\000b\\\\377c \\\\033[31mred\\\\033[0m\\\\n'; test -e $S/allow\" }\n}\noutput \"o\" { value = terraform_data.a.input }\n";
    let pull = ctx.open("odd", &[("odd/main.tf", Some(&local("odd", body)))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 create"), "{note}");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    let failed = ctx.last_reply(pull);
    assert!(failed.starts_with("**Wave 1 failed** · `odd` · 1 failed"), "{failed}");
    let (page, log) = page_and_log(&ctx.note(pull).expect("a note")).await;
    let texts = [note, failed, page, log];
    for text in &texts {
        let odd = text.chars().find(|c| c.is_control() && *c != '\n' || ('\u{202a}'..='\u{202e}').contains(c));
        assert_eq!(odd, None, "{text:?}");
    }
    assert!(texts[3].contains("red"), "{}", texts[3]);
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.comment(pull, MIRA, "plan -d odd").await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_file_of_the_other_tool_is_said_with_the_way_out() {
    let ctx = world(&[]).await;
    let lock = "provider \"registry.opentofu.org/acme/x\" {\n  version = \"1.2.3\"\n  hashes = [\"h1:E0GjA+RheUXW4CgG6t39NA1eeQQpzlivD8m1nMyQZh0=\"]\n}\n";
    let files = [("one/main.tf", Some(local("one", ONE))), ("one/.terraform.lock.hcl", Some(lock.to_owned()))];
    let files: Vec<(&str, Option<&str>)> = files.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    let pull = ctx.open("one", &files);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    for part in [
        "### 1 create",
        "> The lock file of `one` was written by OpenTofu (it names providers of `registry.opentofu.org`), and Terraform planned.",
        "To stay with OpenTofu, set `tool: tofu` for it in `.tidegate.yaml`.",
    ] {
        assert!(note.contains(part), "{part}\n{note}");
    }
}
