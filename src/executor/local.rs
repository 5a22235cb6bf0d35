//! Jobs as child processes of this machine. A job outlives the server: nothing here kills one, and a later server finds
//! it again by its pid file. It asks a job to stop once, and never harder.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use secrecy::ExposeSecret;
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use crate::domain::ids::JobId;
use crate::domain::secret::shapeless;
use crate::ports::executor::{Executor, ExecutorError, Launch, Observed};

mod room;
mod trace;

use room::{Rooms, Swept};
use trace::Trace;

/// What a job may always see of the server's environment.
const PASSED: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LANG"];
/// How often a job that an earlier server started is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often a tool that outlived its job is looked at.
const LOOK_AT_A_TOOL: Duration = Duration::from_millis(250);
/// How many ends are remembered.
const MOST_ENDS: usize = 10_000;

/// How to start jobs.
#[derive(Clone, Debug)]
pub struct LocalSettings {
    /// Our own program.
    pub program: PathBuf,
    /// The arguments that make it a job.
    pub args: Vec<OsString>,
    /// Where pid files and logs lie; made when missing.
    pub jobs_dir: PathBuf,
    /// What jobs get beside `PATH`, `HOME`, `TMPDIR` and `LANG`. `TIDEGATE_JOB_DIR` in it names where they make their private
    /// directories; by default that is in `jobs_dir`.
    pub environment: BTreeMap<String, String>,
    /// How many jobs run at once, at least 1.
    pub parallelism: usize,
}

/// Runs jobs as child processes.
#[derive(Clone)]
pub struct LocalExecutor {
    inner: Arc<Inner>,
}

struct Inner {
    settings: LocalSettings,
    rooms: Rooms,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Launch>,
    alive: BTreeMap<JobId, Trace>,
    /// Jobs of which the end was seen, with what is known of it beyond their own report.
    over: BTreeMap<JobId, Option<String>>,
    asked_to_stop: BTreeSet<JobId>,
}

impl LocalExecutor {
    /// Takes over what an earlier server left running. Must be called inside a tokio runtime.
    pub fn new(settings: LocalSettings) -> io::Result<Self> {
        std::fs::create_dir_all(&settings.jobs_dir)?;
        let rooms = Rooms::new(&settings.jobs_dir, &settings.environment)?;
        let inner = Inner { settings, rooms, state: Mutex::default(), ended: Notify::new() };
        let executor = Self { inner: Arc::new(inner) };
        executor.adopt()?;
        Ok(executor)
    }

    fn adopt(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.inner.settings.jobs_dir)? {
            let Some((id, trace)) = Trace::read(&entry?.path()) else { continue };
            if trace.is_alive() || self.inner.rooms.is_used(&id) {
                self.state().alive.insert(id.clone(), trace.clone());
                let executor = self.clone();
                tokio::spawn(async move {
                    while trace.is_alive() {
                        tokio::time::sleep(LOOK).await;
                    }
                    executor.leave(&id, None).await;
                });
            }
        }
        let state = self.state();
        self.inner.rooms.sweep_but(&state.alive.keys().collect::<Vec<_>>())
    }

    /// Starts as many waiting jobs as there is room for.
    fn fill(&self) {
        loop {
            let mut state = self.state();
            if state.alive.len() >= self.inner.settings.parallelism.max(1) {
                return;
            }
            let Some(launch) = state.waiting.pop_front() else { return };
            match self.spawn(&launch) {
                Ok((child, trace)) => {
                    state.alive.insert(launch.id.clone(), trace);
                    tokio::spawn(self.clone().reap(launch.id, child));
                }
                Err(error) => {
                    drop(state);
                    tracing::error!(job = %launch.id, %error, "a job could not be started");
                    self.over(&launch.id, Some(format!("The job could not be started: {error}.")));
                }
            }
        }
    }

    fn spawn(&self, launch: &Launch) -> io::Result<(Child, Trace)> {
        let settings = &self.inner.settings;
        let log = File::create(self.log_file(&launch.id))?;
        let child = Command::new(&settings.program)
            .args(&settings.args)
            .env_clear()
            .envs(PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))))
            .envs(&settings.environment)
            .env(room::VARIABLE, self.inner.rooms.of(&launch.id))
            .env("TIDEGATE_JOB_URL", &launch.url)
            .env("TIDEGATE_JOB_TOKEN", launch.token.expose_secret())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .kill_on_drop(false)
            .spawn()?;
        let trace = Trace::of(child.id().unwrap_or_default());
        if let Err(error) = trace.write(&settings.jobs_dir, &launch.id) {
            // Without it a later server takes the job for dead, but this one still sees it.
            tracing::warn!(job = %launch.id, %error, "the pid file of a job could not be written");
        }
        Ok((child, trace))
    }

    async fn reap(self, id: JobId, mut child: Child) {
        match child.wait().await {
            Ok(status) if status.success() => {
                // Its result was taken. The trace of any other end stays, for a server that has not yet heard of it.
                Trace::remove(&self.inner.settings.jobs_dir, &id);
                self.over(&id, None);
            }
            Ok(status) => {
                let why = format!("The job's process ended with {status}{}.", self.last_words(&id));
                self.leave(&id, Some(why)).await;
            }
            Err(error) => self.leave(&id, Some(format!("The job's process was lost: {error}."))).await,
        }
    }

    /// A job that died has ended when its tool has: what is planned before that would not see what the tool still does.
    async fn leave(&self, id: &JobId, why: Option<String>) {
        let mut why = why.into_iter().collect::<Vec<_>>();
        if self.inner.rooms.is_used(id) {
            tracing::warn!(job = %id, "a job died and its tool goes on; its end is waited for");
            while self.inner.rooms.is_used(id) {
                tokio::time::sleep(LOOK_AT_A_TOOL).await;
            }
            why.push("Its tool went on to an end that nobody heard of.".to_owned());
        }
        if let Swept::Kept(room) = self.inner.rooms.sweep(id) {
            why.push(format!("A state that could not be saved lies below `{}` where it ran.", room.display()));
        }
        self.over(id, (!why.is_empty()).then(|| why.join(" ")));
    }

    fn over(&self, id: &JobId, why: Option<String>) {
        {
            let mut state = self.state();
            state.alive.remove(id);
            state.asked_to_stop.remove(id);
            if state.over.len() >= MOST_ENDS {
                state.over.pop_first();
            }
            if why.is_none() {
                // A log that says nothing new; a failure's is kept for whoever looks into it.
                let _ = std::fs::remove_file(self.log_file(id));
            }
            state.over.insert(id.clone(), why);
            // Empty when the job ended well, unless it keeps something there on purpose.
            let _ = std::fs::remove_dir(self.inner.rooms.of(id));
        }
        self.inner.ended.notify_one();
        self.fill();
    }

    fn log_file(&self, id: &JobId) -> PathBuf {
        trace::file(&self.inner.settings.jobs_dir, id, "log")
    }

    /// The end of what a failed job printed.
    fn last_words(&self, id: &JobId) -> String {
        let log = std::fs::read(self.log_file(id)).unwrap_or_default();
        let text = String::from_utf8_lossy(&log[log.len().saturating_sub(2_000)..]).into_owned();
        let last: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        if last.is_empty() { String::new() } else { format!(": {}", shapeless(&last.join(" | "))) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[async_trait]
impl Executor for LocalExecutor {
    async fn start(&self, launch: &Launch) -> Result<(), ExecutorError> {
        if !is_a_file_name(&self.log_file(&launch.id)) {
            return Err(ExecutorError::Unavailable(format!("`{}` is no job id", launch.id)));
        }
        {
            let mut state = self.state();
            let known = state.alive.contains_key(&launch.id)
                || state.over.contains_key(&launch.id)
                || state.waiting.iter().any(|waiting| waiting.id == launch.id);
            if known {
                return Ok(());
            }
            state.waiting.push_back(launch.clone());
        }
        self.fill();
        Ok(())
    }

    async fn cancel(&self, job: &JobId) -> Result<(), ExecutorError> {
        let mut state = self.state();
        if let Some(at) = state.waiting.iter().position(|launch| launch.id == *job) {
            state.waiting.remove(at);
            state.over.insert(job.clone(), Some("Canceled before it started.".to_owned()));
            drop(state);
            self.inner.ended.notify_one();
            return Ok(());
        }
        let Some(trace) = state.alive.get(job).filter(|trace| trace.is_alive()).cloned() else { return Ok(()) };
        if state.asked_to_stop.insert(job.clone())
            && let Ok(pid) = i32::try_from(trace.pid)
        {
            // It may have ended this very moment: then there is nobody to ask.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        Ok(())
    }

    async fn observe(&self, job: &JobId) -> Result<Observed, ExecutorError> {
        let state = self.state();
        if state.alive.contains_key(job) || state.waiting.iter().any(|launch| launch.id == *job) {
            return Ok(Observed::Alive);
        }
        if let Some(why) = state.over.get(job) {
            return Ok(Observed::Ended(why.clone()));
        }
        // A pid file whose process is gone: it ended while no server looked.
        let left = Trace::read(&trace::file(&self.inner.settings.jobs_dir, job, "pid")).is_some();
        Ok(if left { Observed::Ended(None) } else { Observed::Absent })
    }

    async fn ended(&self) {
        self.inner.ended.notified().await;
    }
}

fn is_a_file_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.len() <= 200)
}
