//! The pid file of a job: its process by number and start time, so that a number given to another process later is
//! never taken for the job, nor signalled.

use std::io;
use std::path::{Path, PathBuf};

use crate::domain::ids::JobId;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trace {
    /// Its number.
    pub(super) pid: u32,
    /// When it started, in the kernel's ticks; `None` when the system does not say.
    started: Option<u64>,
}

impl Trace {
    /// Of a process that runs.
    pub(super) fn of(pid: u32) -> Self {
        Self { pid, started: start_time(pid) }
    }

    /// Whether this very process still runs.
    pub(super) fn is_alive(&self) -> bool {
        self.started.is_some() && start_time(self.pid) == self.started
    }

    /// Keeps it under the job's id.
    pub(super) fn write(&self, dir: &Path, id: &JobId) -> io::Result<()> {
        let text = format!("{} {}\n{id}\n", self.pid, self.started.unwrap_or_default());
        let whole = file(dir, id, "pid");
        let part = whole.with_extension("pid-new");
        std::fs::write(&part, text)?;
        std::fs::rename(part, whole)
    }

    /// Reads a pid file; `None` for any other file.
    pub(super) fn read(path: &Path) -> Option<(JobId, Self)> {
        if path.extension()? != "pid" {
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        let (numbers, id) = text.trim_end().split_once('\n')?;
        let (pid, started) = numbers.split_once(' ')?;
        let started = started.parse().ok().filter(|&started| started != 0);
        Some((JobId::new(id), Self { pid: pid.parse().ok()?, started }))
    }

    /// Forgets the job's.
    pub(super) fn remove(dir: &Path, id: &JobId) {
        // What is left behind only names a dead process.
        let _ = std::fs::remove_file(file(dir, id, "pid"));
    }
}

/// A file of a job. The id becomes a plain name, one to one.
pub(super) fn file(dir: &Path, id: &JobId, extension: &str) -> PathBuf {
    let mut name = String::new();
    for c in id.as_str().chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
            name.push(c);
        } else {
            name.extend(c.to_string().bytes().map(|byte| format!("%{byte:02x}")));
        }
    }
    dir.join(format!("{name}.{extension}"))
}

/// Whether a process leads a process group.
pub(super) fn leads_a_group(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let mut fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
    let is_gone = matches!(fields.next(), None | Some("Z" | "X"));
    !is_gone && fields.nth(1).is_some_and(|group| group == pid.to_string())
}

/// When a process started; `None` when it is gone, dead but not yet reaped, or unknown.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from its end.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_number_and_start_time() {
        let me = Trace::of(std::process::id());
        assert!(me.is_alive());
        let other = Trace { started: me.started.map(|ticks| ticks + 1), ..me.clone() };
        assert!(!other.is_alive());
        let dir = tempfile::tempdir().unwrap();
        let id = JobId::new("../1:2/ä");
        me.write(dir.path(), &id).unwrap();
        let path = file(dir.path(), &id, "pid");
        assert_eq!(path.parent(), Some(dir.path()));
        assert_eq!(Trace::read(&path), Some((id.clone(), me)));
        Trace::remove(dir.path(), &id);
        assert_eq!(Trace::read(&path), None);
    }
}
