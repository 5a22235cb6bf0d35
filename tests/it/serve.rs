//! The real program, as an operator runs it: settings from a file and the environment, and `kill -9` in the middle of an apply.

use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;
use tidegate::sandbox::{Role, Sandbox, SandboxConfig, Verdict};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const REPO: &str = "acme/infra";

/// A server process, and where it listens.
struct Process {
    child: Child,
    url: String,
}

async fn start(folder: &Path, listen: &str, sandbox: &Sandbox) -> Process {
    let settings = folder.join("tidegate.toml");
    let text = format!(
        "listen = \"{listen}\"\ndata_dir = \"{}\"\n[github]\nurl = \"{url}\"\nweb_url = \"{url}\"\napp_id = {}\n[executor]\nparallelism = 2\n",
        folder.join("data").display(),
        sandbox.app_credentials().app_id,
        url = sandbox.url(),
    );
    std::fs::write(&settings, text).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["serve", "--config", &settings.display().to_string()])
        .env("TIDEGATE_GITHUB_PRIVATE_KEY", sandbox.app_credentials().private_key)
        .env("TIDEGATE_GITHUB_WEBHOOK_SECRET", sandbox.app_credentials().webhook_secret)
        .env("TIDEGATE_LOG", "info")
        .env("NO_COLOR", "1")
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let address = loop {
        let Some(line) = lines.next_line().await.unwrap() else {
            panic!("the server ended before it served: {said:?}")
        };
        if let Some((_, rest)) = line.split_once("address=") {
            break rest.split_whitespace().next().unwrap().to_owned();
        }
        said.push(line);
    };
    // Whoever holds the other end of a pipe must read it, or the server stops at a full one.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let url = format!("http://{address}");
    sandbox.set_hook(&format!("{url}/webhooks/github"), sandbox.app_credentials().webhook_secret);
    Process { child, url }
}

async fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let wait = async {
        while !seen() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(std::time::Duration::from_secs(90), wait).await.is_ok(), "{what} did not come");
}

fn says(sandbox: &Sandbox, pull: u64, part: &str) -> bool {
    sandbox
        .comments(REPO, pull)
        .unwrap()
        .iter()
        .any(|comment| comment.author == "tidegate[bot]" && comment.body.contains(part))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_takes_up_the_apply_that_went_on_without_it() {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let sandbox = Sandbox::start(SandboxConfig::local(path.join("forge"))).await.unwrap();
    for login in ["mira", "lin"] {
        sandbox.create_user(login);
    }
    sandbox.create_repo("acme", "infra", &[("README.md", "x\n")]).unwrap();
    sandbox.set_role(REPO, "mira", Role::Write).unwrap();
    sandbox.set_role(REPO, "lin", Role::Write).unwrap();
    let server = start(&path, "127.0.0.1:0", &sandbox).await;
    let root = format!(
        "terraform {{\n  backend \"local\" {{ path = \"{0}/s.tfstate\" }}\n}}\nresource \"terraform_data\" \"a\" {{\n  provisioner \"local-exec\" {{ command = \"touch {0}/begun; while ! test -e {0}/allow; do sleep 0.05; done\" }}\n}}\n",
        path.display()
    );
    sandbox.commit(REPO, "slow", &[("slow/main.tf", Some(&root))], "Slow", "mira").unwrap();
    let pull = sandbox.open_pull(REPO, "slow", "Slow", "mira").unwrap();
    until("the note", || says(&sandbox, pull, "1 of 1 root planned")).await;
    sandbox.review(REPO, pull, "lin", Verdict::Comment, "approve").unwrap();
    sandbox.comment(REPO, pull, "mira", "apply").unwrap();
    until("the apply", || path.join("begun").exists()).await;

    let Process { mut child, url } = server;
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    std::fs::write(path.join("allow"), "").unwrap();
    let again = start(&path, url.trim_start_matches("http://"), &sandbox).await;
    until("the result", || says(&sandbox, pull, "**Applied** 1 of 1 wave")).await;
    let health = reqwest::get(format!("{}/healthz", again.url)).await.unwrap();
    assert_eq!(health.status(), 200);
}

#[tokio::test]
async fn wrong_settings_do_not_start_and_are_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("tidegate.toml");
    std::fs::write(&settings, "lisen = \"127.0.0.1:1\"\n[github]\napp_id = \"seven\"\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["serve", "--config", &settings.display().to_string()])
        .env_remove("TIDEGATE_GITHUB_TOKEN")
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    for part in ["tidegate.toml:1", "listen", "tidegate.toml:3", "webhook_secret"] {
        assert!(said.contains(part), "{part} is not in:\n{said}");
    }
}
