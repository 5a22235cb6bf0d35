//! One run of the git program: what environment it gets, how long it may take, what it said. It
//! knows no command; credentials reach git through the environment and nothing else.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::domain::secret::shapeless;
use crate::ports::source::SourceError;

/// What git needs to reach a forge and a proxy; everything else of our environment stays with us.
const PASSED: &[&str] = &[
    "PATH",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "TMPDIR",
];

/// How long a git that was told to end may clean up its lock files.
const GRACE: Duration = Duration::from_secs(5);

/// A git command line in the making.
#[derive(Debug)]
pub(super) struct Git {
    repo: PathBuf,
    home: PathBuf,
    args: Vec<String>,
    authorization: Option<SecretString>,
    input: Vec<u8>,
    limit: Duration,
}

/// What a run gave.
#[derive(Debug)]
pub(super) struct Ran {
    /// How it ended.
    pub(super) status: ExitStatus,
    /// Its output.
    pub(super) out: Vec<u8>,
    /// Its complaints.
    pub(super) err: String,
}

impl Git {
    /// In this bare repository, which is also all of a home that git gets.
    pub(super) fn new(repo: &Path, args: &[&str]) -> Self {
        Self {
            repo: repo.to_owned(),
            home: repo.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            authorization: None,
            input: Vec::new(),
            limit: Duration::from_secs(120),
        }
    }

    /// With the value of an `Authorization` header.
    pub(super) fn authorized(mut self, value: Option<&SecretString>) -> Self {
        self.authorization = value.cloned();
        self
    }

    /// With this on its standard input.
    pub(super) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = bytes;
        self
    }

    /// For at most this long.
    pub(super) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it, whatever its exit.
    pub(super) async fn run(self) -> Result<Ran, SourceError> {
        let mut child = self.command().spawn().map_err(|error| unavailable("git cannot be started", &error))?;
        match tokio::time::timeout(self.limit, talk(&mut child, &self.input)).await {
            Ok(ran) => ran.map_err(|error| unavailable("git cannot be read", &error)),
            Err(_) => {
                end(&mut child).await;
                let verb = self.args.first().map_or("", String::as_str);
                let limit = self.limit.as_secs();
                Err(SourceError::Unavailable(format!("`git {verb}` took longer than {limit} s")))
            }
        }
    }

    /// Runs it; any exit but 0 is an error of git's own words.
    pub(super) async fn output(self) -> Result<Vec<u8>, SourceError> {
        let ran = self.run().await?;
        if ran.status.success() { Ok(ran.out) } else { Err(SourceError::Broken(last_words(&ran.err))) }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear();
        for name in PASSED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", &self.home)
            .env("LC_ALL", "C")
            .env("GIT_DIR", &self.repo)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", "http:https:file")
            .envs(self.settings())
            .args(&self.args)
            .current_dir(self.repo.parent().unwrap_or(Path::new("/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command
    }

    /// Settings by environment, where no process list and no file shows them.
    fn settings(&self) -> Vec<(String, String)> {
        let mut settings = vec![
            // A pack appears whole or not at all; loose objects of a fetch that was cut off would look like a whole commit.
            ("fetch.unpackLimit", "1".to_owned()),
            // Trees that we merged hang on no ref, and a plan may be applied weeks later: nothing is ever pruned.
            ("gc.auto", "0".to_owned()),
            ("maintenance.auto", "false".to_owned()),
            ("credential.helper", String::new()),
        ];
        if let Some(value) = &self.authorization {
            settings.push(("http.extraHeader", format!("Authorization: {}", value.expose_secret())));
            // git would send the header to wherever it is redirected.
            settings.push(("http.followRedirects", "false".to_owned()));
        }
        let count = ("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
        let pairs = settings.into_iter().enumerate().flat_map(|(at, (key, value))| {
            [(format!("GIT_CONFIG_KEY_{at}"), key.to_owned()), (format!("GIT_CONFIG_VALUE_{at}"), value)]
        });
        std::iter::once(count).chain(pairs).collect()
    }
}

/// Writes and reads at once, so that neither pipe can fill up and block the other.
async fn talk(child: &mut Child, input: &[u8]) -> std::io::Result<Ran> {
    let (mut to, mut from, mut errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(to) = to.as_mut() {
            // A git that ends early closes the pipe; its exit says why.
            let _ = to.write_all(input).await;
        }
        drop(to);
    };
    let read = async {
        let mut out = Vec::new();
        match from.as_mut() {
            Some(from) => from.read_to_end(&mut out).await.map(|_| out),
            None => Ok(out),
        }
    };
    let complain = async {
        let mut err = Vec::new();
        match errors.as_mut() {
            Some(errors) => errors.read_to_end(&mut err).await.map(|_| err),
            None => Ok(err),
        }
    };
    let ((), out, err) = tokio::join!(write, read, complain);
    Ok(Ran { status: child.wait().await?, out: out?, err: String::from_utf8_lossy(&err?).into_owned() })
}

/// Asks the whole group to end, then makes it end.
async fn end(child: &mut Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let Some(group) = group else { return };
    let _ = killpg(group, Signal::SIGTERM);
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        let _ = killpg(group, Signal::SIGKILL);
        let _ = child.wait().await;
    }
}

/// The last lines of what git said, for people.
pub(super) fn last_words(err: &str) -> String {
    let lines: Vec<&str> = err.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // It names addresses and, when it traces, what it sent.
    shapeless(&lines[lines.len().saturating_sub(3)..].join("; "))
}

fn unavailable(what: &str, error: &std::io::Error) -> SourceError {
    SourceError::Unavailable(format!("{what}: {error}"))
}
