//! One run of the tool: its own process group, its output in files that are followed while it runs. Files and not pipes,
//! so that the tool survives the death of this process and saves its state. At most one interrupt is ever sent.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::Job;
use super::disk;
use super::failure::Broken;

const LOOK: Duration = Duration::from_millis(40);
const GRACE_OF_A_PLAN: Duration = Duration::from_secs(5);
/// How much of an output is read at once.
const PART: u64 = 1 << 20;
/// The most of one line that is held: a whole state may stand in one.
const LONGEST_LINE: usize = 256 << 20;
/// The most of standard error that is read: the reason stands at its end.
const MOST_ERRORS: u64 = 1 << 20;

/// What to run.
pub(super) struct Call<'a> {
    /// The program.
    pub(super) program: &'a Path,
    /// Its arguments, exact; no shell is involved.
    pub(super) args: Vec<String>,
    /// Where.
    pub(super) directory: &'a Path,
    /// Names the output's files.
    pub(super) name: &'static str,
    /// What a wanted stop may do.
    pub(super) stop: Stopping,
    /// How much it must be able to say whatever becomes of the disk, in bytes.
    pub(super) room: u64,
}

/// What a wanted stop may do to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopping {
    /// One interrupt, and a kill when that does not help: nothing can be lost.
    Kill,
    /// One interrupt, then patience without end.
    Patience,
}

/// How it ended.
pub(super) struct Exit {
    status: ExitStatus,
    /// Whether an interrupt was sent.
    pub(super) interrupted: bool,
    /// All of its standard output.
    pub(super) out: PathBuf,
    err: PathBuf,
}

impl Exit {
    /// Whether the exit code was 0.
    pub(super) fn ok(&self) -> bool {
        self.status.success()
    }

    /// `exit code 1` or `signal 9`, as the end of a sentence.
    pub(super) fn how(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            _ if self.was_killed() => "was killed (signal 9), as happens when memory runs out".to_owned(),
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended".to_owned(),
        }
    }

    /// Whether it was killed, itself or under a shell that says so by its exit code.
    pub(super) fn was_killed(&self) -> bool {
        self.status.signal() == Some(9) || self.status.code() == Some(128 + 9)
    }

    /// The end of its standard error.
    pub(super) fn errors(&self) -> String {
        let tail = || {
            let mut file = File::open(&self.err)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(MOST_ERRORS)))?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            Ok::<_, std::io::Error>(String::from_utf8_lossy(&text).into_owned())
        };
        tail().unwrap_or_default()
    }
}

/// Runs it to its end; `on_line` sees each line of standard output as it comes.
pub(super) async fn run(job: &Job, call: &Call<'_>, on_line: &mut (dyn FnMut(&str) + Send)) -> Result<Exit, Broken> {
    run_with(job, call, &job.environment, on_line).await
}

/// The same with another environment than the job's.
pub(super) async fn run_with(
    job: &Job,
    call: &Call<'_>,
    environment: &BTreeMap<String, String>,
    on_line: &mut (dyn FnMut(&str) + Send),
) -> Result<Exit, Broken> {
    let out = job.directory.join(format!("{}.out", call.name));
    let err = job.directory.join(format!("{}.err", call.name));
    let said = File::create(&out)?;
    disk::reserve(&said, call.room)?;
    let mut lines = Lines { file: File::open(&out)?, rest: Vec::new() };
    let child = Command::new(call.program)
        .args(&call.args)
        .current_dir(call.directory)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(said)
        .stderr(File::create(&err)?)
        .process_group(0)
        .spawn();
    let child = child.map_err(|error| {
        Broken::new(
            format!("`{}` cannot be started", call.program.display()),
            format!("{error}. Check the job's image."),
        )
    })?;
    let (status, interrupted) = watch(job, call.stop, child, &mut || lines.read(on_line)).await?;
    // The exit code counts, also when its words cannot be read.
    let _ = lines.read(on_line);
    lines.end(on_line);
    Ok(Exit { status, interrupted, out, err })
}

async fn watch(
    job: &Job,
    stop: Stopping,
    mut child: Child,
    look: &mut (dyn FnMut() -> Result<(), Broken> + Send),
) -> Result<(ExitStatus, bool), Broken> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let mut interrupted = false;
    let mut deadline = None;
    loop {
        let kill_at = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = child.wait() => return Ok((status?, interrupted)),
            () = job.stop.wanted(), if !interrupted => {
                interrupted = true;
                // To the tool alone: its plugins would take one as well, and end under it.
                let _ = pid.map(|pid| kill(pid, Signal::SIGINT));
                deadline = (stop == Stopping::Kill).then(|| tokio::time::Instant::now() + GRACE_OF_A_PLAN);
            }
            () = kill_at => {
                let _ = pid.map(|pid| killpg(pid, Signal::SIGKILL));
                deadline = None;
            }
            // An unreadable output must not end the watch over a running apply.
            () = tokio::time::sleep(LOOK) => drop(look()),
        }
    }
}

/// The lines of a file that grows.
struct Lines {
    file: File,
    rest: Vec<u8>,
}

impl Lines {
    fn read(&mut self, on_line: &mut (dyn FnMut(&str) + Send)) -> Result<(), Broken> {
        // In parts: a tool may have written more in a moment than fits into memory.
        while self.read_part(on_line)? == PART {}
        Ok(())
    }

    fn read_part(&mut self, on_line: &mut (dyn FnMut(&str) + Send)) -> Result<u64, Broken> {
        let from = self.rest.len();
        let read = self.file.by_ref().take(PART).read_to_end(&mut self.rest)? as u64;
        if let Some(last) = self.rest[from..].iter().rposition(|&byte| byte == b'\n') {
            let rest = self.rest.split_off(from + last + 1);
            let whole = std::mem::replace(&mut self.rest, rest);
            String::from_utf8_lossy(&whole).lines().for_each(on_line);
        }
        // The rest of an endless line is dropped; its beginning has everything that anybody reads.
        self.rest.truncate(LONGEST_LINE);
        Ok(read)
    }

    fn end(&mut self, on_line: &mut (dyn FnMut(&str) + Send)) {
        if !self.rest.is_empty() {
            on_line(&String::from_utf8_lossy(&self.rest));
            self.rest.clear();
        }
    }
}
