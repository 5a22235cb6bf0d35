//! The command line: `serve`, `demo`, `job`, and `graph`, `explain` and `plan` without a server. It reads arguments and the environment, puts things together, and says what
//! went wrong; everything else is in the library.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use secrecy::{ExposeSecret, SecretString};

use tidegate::app::setup::Setup;
use tidegate::demo::alone::{self, Alone, Encryption, Hook};
use tidegate::sandbox::Identity;
use tidegate::{config, demo, doctor, domain, local, runner, serve, shield, telemetry};

/// Plans, gates and applies Terraform and OpenTofu from pull requests.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server.
    Serve {
        /// The settings; `TIDEGATE_…` variables win over it.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Run everything on this machine, with a small forge of our own and a sample repository.
    Demo {
        /// Play the session by itself, and exit 0 only if each step held.
        #[arg(long)]
        check: bool,
        /// Where the sandbox forge listens.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4140")]
        forge: SocketAddr,
        /// Where the server listens.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4141")]
        listen: SocketAddr,
        /// Keep its data here instead of in a temporary folder.
        #[arg(long, value_name = "FOLDER")]
        data: Option<PathBuf>,
    },
    /// Run the small forge alone, for other clients of GitHub's API: people with tokens, an App, a sample repository.
    Sandbox(SandboxArguments),
    /// Show roots, edges, waves and what could not be read. Runs nothing and needs no server.
    Graph {
        /// Exactly this directory; by default the repository around the current one.
        dir: Option<PathBuf>,
        /// How to write it.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Say which roots a change of a path would reach, and why. Runs nothing and needs no server.
    Explain {
        /// A file or a directory of the repository around the current directory.
        path: PathBuf,
    },
    /// Plan what the working tree changes, in a copy, and print the note. Takes no lock and applies nothing.
    Plan {
        /// What to compare with; by default the default branch.
        #[arg(long, value_name = "REF")]
        base: Option<String>,
    },
    /// Print the state that the job of an apply left because its backend did not take it; without a job, list what waits.
    ErroredState {
        /// The job, as the comment of the apply names it.
        job: Option<String>,
        /// The server's settings.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Say what keeps pulls from being planned: settings, folders, tools, the forge, its webhook. Changes nothing; exits 1 when something fails.
    Doctor {
        /// The settings of the server.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Forget the App that was made at `/setup/github`, so that the next start of the server can make another.
    ForgetApp {
        /// The settings of the server.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Run one job; started by an executor with `TIDEGATE_JOB_URL` and `TIDEGATE_JOB_TOKEN`.
    #[command(hide = true)]
    Job,
}

#[derive(clap::Args)]
struct SandboxArguments {
    /// Where it listens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4140")]
    listen: SocketAddr,
    /// Keep its data here instead of in a temporary folder.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Speak HTTPS only, with a certificate that is made in the data folder.
    #[arg(long)]
    tls: bool,
    /// Speak HTTPS only, with this certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls")]
    tls_certificate: Option<PathBuf>,
    /// The key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Where its webhooks go.
    #[arg(long, value_name = "URL")]
    hook: Option<String>,
    /// What signs them.
    #[arg(long, value_name = "SECRET", requires = "hook")]
    hook_secret: Option<String>,
}

impl From<SandboxArguments> for Alone {
    fn from(arguments: SandboxArguments) -> Self {
        let encryption = match (arguments.tls_certificate, arguments.tls_key, arguments.tls) {
            (Some(certificate), Some(key), _) => Encryption::Given(Identity { certificate, key }),
            (_, _, true) => Encryption::Made,
            _ => Encryption::Plain,
        };
        let hook = arguments.hook.map(|url| Hook { url, secret: arguments.hook_secret });
        Self { listen: arguments.listen, data: arguments.data, encryption, hook }
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Dot,
    Mermaid,
}

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("the async runtime cannot start")),
    };
    let result = runtime.block_on(run(Cli::parse().command));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    match result {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

#[expect(clippy::print_stderr, reason = "the command line says what went wrong")]
fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("tidegate: {error:#}");
    ExitCode::FAILURE
}

async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Serve { config } => serve_settings(config).await,
        Command::Demo { check, forge, listen, data } => {
            telemetry::start(telemetry::Form::Readable, &log_filter("warn"));
            let options = if check { demo::Options::check(data) } else { demo::Options::session(forge, listen, data) };
            demo::run(options).await
        }
        Command::Sandbox(arguments) => {
            telemetry::start(telemetry::Form::Readable, &log_filter("warn"));
            alone::run(arguments.into()).await
        }
        Command::Graph { dir, format } => {
            let format = match format {
                Format::Text => local::Format::Text,
                Format::Json => local::Format::Json,
                Format::Dot => local::Format::Dot,
                Format::Mermaid => local::Format::Mermaid,
            };
            say(&local::graph(&std::env::current_dir()?, dir.as_deref(), format)?)
        }
        Command::Explain { path } => say(&local::explain(&std::env::current_dir()?, &path)?),
        Command::Plan { base } => plan_here(base.as_deref()).await,
        Command::ErroredState { job, config } => errored_state(config.as_deref(), job.as_deref()).await,
        Command::Doctor { config } => {
            let environment: BTreeMap<String, String> = std::env::vars().collect();
            let lines = doctor::examine(
                config.as_deref(),
                config::load(config.as_deref(), &environment, cores()),
                &environment,
            )
            .await;
            say(&doctor::text(&lines))?;
            Ok(if doctor::is_well(&lines) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::ForgetApp { config } => {
            let environment: BTreeMap<String, String> = std::env::vars().collect();
            say(&serve::forget::app(settings(config.as_deref(), &environment)?).await?)
        }
        Command::Job => {
            telemetry::start(telemetry::Form::Readable, &log_filter("info"));
            shield::raise();
            let environment: BTreeMap<String, String> = std::env::vars().collect();
            let variable = |name: &str| environment.get(name).cloned().with_context(|| format!("{name} is not set"));
            let (url, token) = (variable("TIDEGATE_JOB_URL")?, SecretString::from(variable("TIDEGATE_JOB_TOKEN")?));
            runner::run(&url, token, environment).await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Writes to standard output; whoever reads it may close it early.
fn say(text: &str) -> Result<ExitCode> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

async fn plan_here(base: Option<&str>) -> Result<ExitCode> {
    // Values that are no text cannot be passed on.
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let here = std::env::current_dir()?;
    let wish = local::plan::Wish { here: &here, base, environment: environment.collect() };
    let tell = &mut |what: &str| {
        let _ = writeln!(std::io::stderr(), "tidegate: {what}");
    };
    let answer = local::plan::plan(&wish, tell).await?;
    say(&answer.note)?;
    Ok(if answer.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

fn log_filter(default: &str) -> String {
    std::env::var("TIDEGATE_LOG").unwrap_or_else(|_| default.to_owned())
}

fn settings(path: Option<&Path>, environment: &BTreeMap<String, String>) -> Result<config::Settings> {
    config::load(path, environment, cores()).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the settings cannot be used:\n{}", lines.join("\n"))
    })
}

async fn errored_state(path: Option<&Path>, job: Option<&str>) -> Result<ExitCode> {
    let settings = settings(path, &std::env::vars().collect())?;
    let Some(job) = job else {
        return say(&serve::recover::waiting(&settings).await?);
    };
    if std::io::stdout().is_terminal() {
        anyhow::bail!("a state holds secrets and is not shown: write it to a file, `> errored.tfstate`");
    }
    let state = serve::recover::errored_state(&settings, job).await?;
    std::io::stdout().write_all(&state)?;
    Ok(ExitCode::SUCCESS)
}

async fn serve_settings(path: Option<PathBuf>) -> Result<ExitCode> {
    telemetry::start(telemetry::Form::Readable, &log_filter("info"));
    shield::raise();
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let settings = settings(path.as_deref(), &environment)?;
    let place = serve::from_settings::place(&settings.github);
    let parts = serve::from_settings::parts(settings, std::env::current_exe()?, &environment)?;
    let running = serve::start_at(parts, Some(place)).await?;
    tracing::info!(url = running.url, address = %running.address, "serving");
    if let Some(setup) = &running.setup {
        tell_token(setup);
    }
    interrupted().await?;
    running.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// On the terminal, whatever the log's filter is: whoever reads it runs this server.
#[expect(clippy::print_stderr, reason = "the token must be seen once, and stand in no log line that is sent elsewhere")]
fn tell_token(setup: &Setup) {
    if let Some(token) = setup.token() {
        eprintln!(
            "\nNo forge is set up yet. Open  {}\nand give it this token; it works once, until this server stops:\n\n    {}\n",
            domain::setup::page(setup.url()),
            token.expose_secret()
        );
    }
}

async fn interrupted() -> Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
