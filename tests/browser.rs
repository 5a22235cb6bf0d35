//! The pull page in a real browser: before the approval, while it applies, after the merge. Writes screenshots to
//! `target/screenshots`. Needs Chromium on the path; `scripts/test-all` installs it and runs this.

#[path = "it/ctx.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod ctx;

use std::path::{Path, PathBuf};
use std::process::Command;

use ctx::{Ctx, LIN, MIRA, REPO};
use tidegate::demo::sample;

/// Each command of the sample waits for this file instead of a second.
const GATE: &str = "while ! test -e $S/allow; do sleep 0.05; done";

#[tokio::test(flavor = "multi_thread")]
async fn the_session_as_a_person_sees_it() {
    let states = Path::new("$S");
    let files = sample::repository(states);
    let slow: Vec<(&str, String)> =
        files.iter().map(|(path, text)| (path.as_str(), text.replace("sleep 1", "true"))).collect();
    let borrowed: Vec<(&str, &str)> = slow.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let ctx = Ctx::with(&borrowed).await;
    ctx.applied_before(sample::ROOTS).await;
    let change = sample::new_range(states);
    let change: Vec<(&str, Option<String>)> = change
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_ref().map(|text| text.replace("sleep 1", GATE))))
        .collect();
    let change: Vec<(&str, Option<&str>)> = change.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    ctx.push("new-range", &change);
    let pull = ctx.sandbox.open_pull(REPO, "new-range", "Move the network to 10.20.0.0/16", MIRA).expect("a pull");
    ctx.settle().await;
    let page = format!("{}/{REPO}/pull/{pull}", ctx.sandbox.url());
    let seen = look(&page, "pull-before", 1500);
    for part in ["Blast radius:", "By resource:", "Merging is blocked", "<details", "1 delete · 2 replace"] {
        assert!(seen.contains(part), "{part} is not on the page");
    }
    ctx.comment(pull, LIN, "approve wave-1").await;
    ctx.sandbox.comment(REPO, pull, MIRA, "apply").expect("a comment");
    ctx.until("progress", |ctx| ctx.replies(pull).iter().any(|reply| reply.contains("in flight")).then_some(())).await;
    let seen = look(&page, "pull-applying", 2000);
    assert!(seen.contains("Applying wave 1 of") && seen.contains("resources done"), "the progress is not on the page");
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.settle().await;
    for wave in ["wave-2", "wave-3"] {
        ctx.comment(pull, LIN, &format!("approve {wave}")).await;
    }
    ctx.merge(pull).expect("it merges");
    ctx.settle().await;
    let seen = look(&page, "pull-merged", 2700);
    assert!(
        seen.contains("Merged") && seen.contains("Nothing is locked by this pull any more"),
        "the end is not on the page"
    );
    let run = ctx.app().store.pulls().await.expect("pulls")[0]
        .rollout
        .as_ref()
        .map(|rollout| ctx.app().pages.rollout(&rollout.id));
    let seen = look(&run.expect("a rollout"), "run", 1100);
    assert!(seen.contains("wave-3") && seen.contains("Ledger"), "the run page lacks its parts");
}

/// Renders the page; gives its DOM and leaves a picture.
fn look(url: &str, name: &str, height: u32) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
    std::fs::create_dir_all(&folder).expect("a folder");
    let picture = folder.join(format!("{name}.png"));
    let _ = std::fs::remove_file(&picture);
    chromium(&[
        &format!("--screenshot={}", picture.display()),
        &format!("--window-size=1200,{height}"),
        "--hide-scrollbars",
        url,
    ]);
    assert!(picture.is_file(), "no picture of {url}");
    chromium(&["--dump-dom", url])
}

fn chromium(arguments: &[&str]) -> String {
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .output()
        .expect("chromium is on the path");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
