//! `tidegate demo`: server, database, executor and sandbox forge in one process on loopback, with a sample repository that was
//! applied once and a pull that changes it. It is the product as it is; only the forge is a small one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use secrecy::SecretString;

use crate::app::Limits;
use crate::forge::github::{GitHubAuth, GitHubConfig};
use crate::ports::clock::SystemClock;
use crate::runner::find_program;
use crate::sandbox::{Role, Sandbox, SandboxConfig, Wire};
use crate::serve::{self, Parts, Running};

pub mod alone;
mod check;
pub mod sample;

/// The sample repository.
pub const REPO: &str = "acme/infra";
/// Who opens the pulls: write access.
pub const AUTHOR: &str = "mira";
/// Who approves: owns the repository.
pub const APPROVER: &str = "lin";
/// Who may only read.
pub const READER: &str = "sam";

/// How to run the demo.
#[derive(Clone, Debug)]
pub struct Options {
    forge: SocketAddr,
    listen: SocketAddr,
    data: Option<PathBuf>,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// For a person, until interrupted.
    Session,
    /// By itself.
    Check,
}

impl Options {
    /// For a person, at these addresses.
    pub fn session(forge: SocketAddr, listen: SocketAddr, data: Option<PathBuf>) -> Self {
        Self { forge, listen, data, mode: Mode::Session }
    }

    /// By itself, on free ports.
    pub fn check(data: Option<PathBuf>) -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { forge: free, listen: free, data, mode: Mode::Check }
    }
}

/// A demo that runs.
pub struct Stage {
    /// The forge.
    pub sandbox: Sandbox,
    /// The server.
    pub server: Running,
    /// Where the states are.
    pub states: PathBuf,
}

/// Runs the demo: until interrupted, or through its session.
pub async fn run(options: Options) -> Result<ExitCode> {
    let temporary = match &options.data {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary folder can be made")?),
    };
    let data = match (&options.data, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().to_owned(),
        (None, None) => bail!("no folder for the demo's data"),
    };
    std::fs::create_dir_all(&data).with_context(|| format!("the folder {} cannot be made", data.display()))?;
    let data = data.canonicalize()?;
    let stage = set_up(&options, &data).await?;
    let code = match options.mode {
        Mode::Check => check::play(&stage).await,
        Mode::Session => session(&stage).await?,
    };
    stage.server.stop().await;
    Ok(code)
}

/// Starts everything and applies the sample once.
async fn set_up(options: &Options, data: &Path) -> Result<Stage> {
    let tool = tool().context("neither `terraform` nor `tofu` is on the path; install one of them")?;
    let states = data.join("states");
    std::fs::create_dir_all(&states)?;
    let sandbox =
        Sandbox::start(SandboxConfig { data_dir: data.join("forge"), listen: options.forge, wire: Wire::Plain })
            .await
            .with_context(|| format!("the sandbox forge cannot listen on {}", options.forge))?;
    let files = sample::repository(&states);
    seed(&sandbox, &files)?;
    sandbox.protect(REPO, "main", &["tidegate/plan", "tidegate/apply"]).map_err(refused)?;
    apply_once(&tool, &files, data).await?;
    let server = serve::start(parts(&sandbox, options.listen, data)?).await?;
    sandbox.set_hook(&format!("{}/webhooks/github", server.url), sandbox.app_credentials().webhook_secret);
    Ok(Stage { sandbox, server, states })
}

/// The people and their repository.
fn seed(sandbox: &Sandbox, files: &[(String, String)]) -> Result<()> {
    for login in [AUTHOR, APPROVER, READER] {
        sandbox.create_user(login);
    }
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
    let (owner, name) = REPO.split_once('/').context("the repository's name")?;
    sandbox.create_repo(owner, name, &borrowed).map_err(refused)?;
    for (login, role) in [(AUTHOR, Role::Write), (APPROVER, Role::Admin), (READER, Role::Read)] {
        sandbox.set_role(REPO, login, role).map_err(refused)?;
    }
    Ok(())
}

fn parts(sandbox: &Sandbox, listen: SocketAddr, data: &Path) -> Result<Parts> {
    let app = sandbox.app_credentials();
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    Ok(Parts {
        listen,
        url: None,
        data_dir: data.join("server"),
        store: None,
        key: rand::random(),
        forges: vec![(
            "github".to_owned(),
            GitHubConfig {
                api_url: sandbox.url().to_owned(),
                web_url: None,
                auth: GitHubAuth::App { id: app.app_id, private_key_pem: SecretString::from(app.private_key) },
                webhook_secret: SecretString::from(app.webhook_secret),
                forge: "github".to_owned(),
            },
        )],
        program: std::env::current_exe()?,
        parallelism: cores * 2,
        job_environment: BTreeMap::new(),
        managed: crate::domain::managed::Managed::default(),
        cross_repo: crate::domain::outside::CrossRepo::Names,
        limits: Limits { edit_gap_ms: 300, parallelism: cores * 2, heartbeat_timeout_ms: 600_000, sweep_ms: 10_000 },
        webhook_bytes: 26 << 20,
        clock: Arc::new(SystemClock),
        decorate: None,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in `map_err`")]
fn refused(refusal: crate::sandbox::Refusal) -> anyhow::Error {
    anyhow::anyhow!("the sandbox refuses: {refusal:?}")
}

/// Terraform, or else OpenTofu, as found on the path.
fn tool() -> Option<PathBuf> {
    let path = std::env::var("PATH").ok()?;
    ["terraform", "tofu"].iter().find_map(|name| find_program(&path, name))
}

/// Brings the sample's states into being, as if it had been applied long ago.
async fn apply_once(tool: &Path, files: &[(String, String)], data: &Path) -> Result<()> {
    let checkout = data.join("first-apply");
    for (path, content) in files {
        let file = checkout.join(path);
        std::fs::create_dir_all(file.parent().context("a file of the sample")?)?;
        std::fs::write(file, content)?;
    }
    for root in sample::ROOTS {
        for arguments in
            [&["init", "-input=false", "-no-color"][..], &["apply", "-auto-approve", "-input=false", "-no-color"]]
        {
            let output = tokio::process::Command::new(tool)
                .args(arguments)
                .current_dir(checkout.join(root))
                .env_remove("TF_CLI_CONFIG_FILE")
                .env("CHECKPOINT_DISABLE", "1")
                .stdin(std::process::Stdio::null())
                .output()
                .await
                .with_context(|| format!("{} cannot be started", tool.display()))?;
            if !output.status.success() {
                bail!("the sample's root `{root}` cannot be applied:\n{}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }
    std::fs::remove_dir_all(&checkout)?;
    Ok(())
}

/// Opens a pull of the sample; gives its number.
pub fn open_pull(stage: &Stage, branch: &str, title: &str, changes: &[sample::Change]) -> Result<u64> {
    let borrowed: Vec<(&str, Option<&str>)> =
        changes.iter().map(|(path, content)| (path.as_str(), content.as_deref())).collect();
    stage.sandbox.commit(REPO, branch, &borrowed, title, AUTHOR).map_err(refused)?;
    stage.sandbox.open_pull(REPO, branch, title, AUTHOR).map_err(refused)
}

#[expect(clippy::print_stdout, reason = "the terminal says what to click next")]
async fn session(stage: &Stage) -> Result<ExitCode> {
    let number = open_pull(stage, "new-range", "Move the network to 10.20.0.0/16", &sample::new_range(&stage.states))?;
    let pull = format!("{}/{REPO}/pull/{number}", stage.sandbox.url());
    println!(
        "Tidegate is running, with a small forge of its own. Everything is gone when it stops.

  1. Open  {pull}
     The note appears by itself; the merge is blocked.
  2. Switch to `{APPROVER}` (top right) and comment   approve wave-1
  3. Comment                                  apply
     It applies wave by wave. The next wave is planned again on the real values and waits; the
     comment says what to type.
  4. Merge. The locks are free then.

Ctrl-C ends it."
    );
    tokio::signal::ctrl_c().await?;
    Ok(ExitCode::SUCCESS)
}
