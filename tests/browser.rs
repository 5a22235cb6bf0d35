//! The pull page in a real browser: before the approval, while it applies, after the merge. Writes screenshots to
//! `target/screenshots`. Needs Chromium on the path; `scripts/test-all` installs it and runs this.

#[path = "it/ctx.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod ctx;
#[path = "browser/setup.rs"]
mod setup;
#[path = "browser/tab.rs"]
mod tab;

use std::path::{Path, PathBuf};
use std::process::Command;

use ctx::{Ctx, LIN, MIRA, REPO};
use tidegate::demo::sample;

/// How a browser runs without a screen, and asks nobody anything.
pub const QUIET: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

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
    let run = run.expect("a rollout");
    let seen = look(&run, "run", 1100);
    assert!(seen.contains("wave-3") && seen.contains("Ledger"), "the run page lacks its parts");
    tokio::task::block_in_place(|| {
        let mut tab = tab::Tab::open();
        tab.go(&run);
        tab.look("run-applied");
    });
}

/// The page of a run in its other states: planned and waiting, applying, failed, with names and errors of any length.
#[tokio::test(flavor = "multi_thread")]
async fn a_runs_page_is_readable_in_every_state() {
    const LONG: &str = "terraform {\n  backend \"local\" { path = \"$S/long.tfstate\" }\n}\nresource \"terraform_data\" \"a_resource_whose_name_goes_on_and_on_and_on_until_it_is_wider_than_a_phone\" {\n  for_each = toset([\"one-key-that-has-no-space-in-it-anywhere-and-is-long-as-well\", \"b\"])\n  provisioner \"local-exec\" { command = \"test ${each.key} = b && while ! test -e $S/allow; do sleep 0.05; done; echo an-error-without-a-single-space-that-is-wider-than-any-screen-of-a-phone-could-be >&2; exit 3\" }\n}\n";
    const BROKEN: &str = "terraform {\n  backend \"local\" { path = \"$S/broken.tfstate\" }\n}\noutput \"x\" { value = nothing.at.all }\n";
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("long", &[("environments/production/europe-west-1/networking/firewall/main.tf", Some(LONG))]);
    let other = ctx.open("broken", &[("broken/main.tf", Some(BROKEN))]);
    ctx.settle().await;
    let pages = |pulls: Vec<tidegate::domain::pull::Pull>| -> Vec<String> {
        let id = |number| {
            let pull = pulls.iter().find(|known| known.key.number == number)?;
            Some(ctx.app().pages.rollout(&pull.rollout.as_ref()?.id))
        };
        [pull, other].into_iter().filter_map(id).collect()
    };
    let pages = pages(ctx.app().store.pulls().await.expect("pulls"));
    let mut tab = tokio::task::block_in_place(tab::Tab::open);
    for (page, name) in pages.iter().zip(["run-planned", "run-plan-failed"]) {
        tokio::task::block_in_place(|| {
            tab.go(page);
            tab.look(name);
        });
    }
    ctx.comment(pull, LIN, "approve").await;
    ctx.sandbox.comment(REPO, pull, MIRA, "apply").expect("a comment");
    ctx.until("progress", |ctx| ctx.replies(pull).iter().any(|reply| reply.contains("in flight")).then_some(())).await;
    tokio::task::block_in_place(|| {
        tab.go(&pages[0]);
        tab.look("run-applying");
    });
    std::fs::write(ctx.states().join("allow"), "").expect("a file");
    ctx.settle().await;
    tokio::task::block_in_place(|| {
        tab.go(&pages[0]);
        tab.reads("failed");
        tab.look("run-apply-failed");
    });
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
        .args(QUIET)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .output()
        .expect("chromium is on the path");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
