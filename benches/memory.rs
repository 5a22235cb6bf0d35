//! Memory of the server's own process: idle (aim: under 40 MB), with 1,000 open pulls, and started again beside those. Run by hand:
//! `cargo bench --bench memory` (`TIDEGATE_BENCH_PULLS` for fewer).
//!
//! The first plan is made by the real tool; for the others, what it said is said again, because their time is not what is measured.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tidegate::sandbox::{Role, Sandbox, SandboxConfig};

const REPO: &str = "acme/infra";
const AUTHOR: &str = "mira";
/// Roots of the repository, and what stands in each.
const ROOTS: u64 = 200;
const RESOURCES: usize = 10;

/// Says what the real tool said the first time, whatever it is asked to plan.
const TOOL: &str = r#"#!/bin/sh
said="CACHE/$1"
if [ "$1" = init ]; then exit 0; fi
for word in "$@"; do case "$word" in -out=*) out=${word#-out=};; esac; done
if [ -e "$said" ]; then
  if [ -n "$out" ]; then cp CACHE/plan-file "$out"; fi
  exec cat "$said"
fi
if [ "$1" = plan ]; then REAL init -input=false >/dev/null; fi
REAL "$@" > "$said.new"
code=$?
if [ -n "$out" ]; then cp "$out" CACHE/plan-file; fi
mv "$said.new" "$said"
cat "$said"
exit $code
"#;

#[expect(clippy::print_stdout, reason = "it prints its figures")]
fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    print!("{}", runtime.block_on(measure()));
}

async fn measure() -> String {
    let pulls: u64 = std::env::var("TIDEGATE_BENCH_PULLS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(SandboxConfig::local(folder.path().join("forge"))).await.expect("a sandbox");
    sandbox.create_user(AUTHOR);
    let files: Vec<(String, String)> =
        (0..ROOTS).map(|at| (format!("root-{at}/main.tf"), root(&folder, at, 0))).collect();
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    sandbox.create_repo("acme", "infra", &borrowed).expect("a repository");
    sandbox.set_role(REPO, AUTHOR, Role::Admin).expect("a role");
    let path = tool(folder.path());
    let mut text = String::new();

    let server = Server::start(&folder, &sandbox, &path);
    server.rests().await;
    told(&mut text, "idle (aim: under 40 MB)", &server);
    open(&sandbox, &folder, 1).await;
    for number in 2..=pulls {
        change(&sandbox, &folder, number);
    }
    planned(&sandbox, pulls).await;
    server.rests().await;
    told(&mut text, &format!("{pulls} open pulls, all planned since it started"), &server);
    drop(server);
    let server = Server::start(&folder, &sandbox, &path);
    server.rests().await;
    told(&mut text, &format!("started again beside {pulls} open pulls, after its first sweep"), &server);
    text
}

fn told(text: &mut String, what: &str, server: &Server) {
    let (now, most) = (server.status("VmRSS"), server.status("VmHWM"));
    let _ = writeln!(text, "{what}: {} MB, at most {} MB", now / 1024, most / 1024);
}

fn root(folder: &TempDir, at: u64, value: u64) -> String {
    let state = folder.path().join(format!("root-{at}.tfstate"));
    let mut text = format!("terraform {{\n  backend \"local\" {{ path = \"{}\" }}\n}}\n", state.display());
    for resource in 0..RESOURCES {
        let _ = writeln!(text, "resource \"terraform_data\" \"r{resource}\" {{ input = \"{value}\" }}");
    }
    text
}

/// Opens a pull that changes one root.
fn change(sandbox: &Sandbox, folder: &TempDir, number: u64) {
    let (at, branch) = (number % ROOTS, format!("branch-{number}"));
    let (path, text) = (format!("root-{at}/main.tf"), root(folder, at, number));
    sandbox.commit(REPO, &branch, &[(&path, Some(&text))], "Change it", AUTHOR).expect("a commit");
    sandbox.open_pull(REPO, &branch, "Change it", AUTHOR).expect("a pull");
}

async fn open(sandbox: &Sandbox, folder: &TempDir, number: u64) {
    change(sandbox, folder, number);
    planned(sandbox, number).await;
}

/// Waits until every pull up to this one has its plan.
async fn planned(sandbox: &Sandbox, pulls: u64) {
    for number in 1..=pulls {
        loop {
            let head = sandbox.pull(REPO, number).expect("a pull").head_sha;
            let runs = sandbox.checks(REPO, &head).expect("checks");
            let shown = runs.iter().find(|run| run.name == "tidegate/plan").and_then(|run| run.conclusion.clone());
            match shown.as_deref() {
                Some("success") => break,
                Some(other) => panic!("#{number} is {other}"),
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

/// A `PATH` on which our tool is found first.
fn tool(folder: &Path) -> String {
    let path = std::env::var("PATH").expect("a path");
    let real: Option<PathBuf> =
        std::env::split_paths(&path).map(|dir| dir.join("terraform")).find(|program| program.is_file());
    let (dir, cache) = (folder.join("tool"), folder.join("said"));
    std::fs::create_dir_all(&dir).expect("a folder");
    std::fs::create_dir_all(&cache).expect("a folder");
    let text = TOOL
        .replace("CACHE", &cache.display().to_string())
        .replace("REAL", &real.expect("terraform").display().to_string());
    std::fs::write(dir.join("terraform"), text).expect("a program");
    std::fs::set_permissions(dir.join("terraform"), std::fs::Permissions::from_mode(0o755)).expect("a program");
    format!("{}:{path}", dir.display())
}

/// A server process.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn start(folder: &TempDir, sandbox: &Sandbox, path: &str) -> Self {
        let settings = folder.path().join("tidegate.toml");
        let app = sandbox.app_credentials();
        let listen = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("an address");
        let text = format!(
            "listen = \"{listen}\"\ndata_dir = \"{}\"\n[github]\nurl = \"{url}\"\nweb_url = \"{url}\"\napp_id = {}\n[executor]\nparallelism = 4\n",
            folder.path().join("data").display(),
            app.app_id,
            url = sandbox.url(),
        );
        std::fs::write(&settings, text).expect("settings");
        sandbox.set_hook(&format!("http://{listen}/webhooks/github"), app.webhook_secret);
        let child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["serve", "--config", &settings.display().to_string()])
            .env("TIDEGATE_GITHUB_PRIVATE_KEY", app.private_key)
            .env("TIDEGATE_GITHUB_WEBHOOK_SECRET", app.webhook_secret)
            .env("TIDEGATE_LOG", "error")
            .env("PATH", path)
            .stdout(Stdio::null())
            .spawn()
            .expect("a server");
        Self(child)
    }

    /// Waits until it used no time of the processor for some seconds.
    async fn rests(&self) {
        let mut quiet = 0;
        let mut before = self.ticks();
        while quiet < 3 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.ticks();
            quiet = if now <= before + 1 { quiet + 1 } else { 0 };
            before = now;
        }
    }

    /// Its time on the processor so far, in the kernel's ticks.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("it runs");
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        rest.split_whitespace().skip(11).take(2).filter_map(|text| text.parse::<u64>().ok()).sum()
    }

    /// A line of its status, in kB.
    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}
