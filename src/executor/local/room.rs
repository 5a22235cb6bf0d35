//! The private directories of jobs, seen from outside: who still works in one, and what a dead job left there. It never takes a
//! directory away from a tool that runs, nor the only copy of a state.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::trace;
use crate::domain::ids::JobId;

/// The variable that names where jobs make their directories.
pub(super) const VARIABLE: &str = "TIDEGATE_JOB_DIR";
/// The state that a tool could not save to its backend.
const ERRORED: &str = "errored.tfstate";

/// All of them; each job has one of its own.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    dir: PathBuf,
}

/// What became of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Swept {
    /// It is gone.
    Gone,
    /// It stays, because it holds a state that lies nowhere else.
    Kept(PathBuf),
}

impl Rooms {
    /// Under the directory that the settings name for jobs, or beside the pid files. Nobody else's to read.
    pub(super) fn new(jobs_dir: &Path, environment: &BTreeMap<String, String>) -> io::Result<Self> {
        let dir = match environment.get(VARIABLE) {
            // Several servers may share it, and each takes away only what is its own.
            Some(named) => {
                let owner = Sha256::digest(jobs_dir.canonicalize()?.as_os_str().as_encoded_bytes());
                Path::new(named).join(format!("tidegate-{}", hex::encode(&owner[..6])))
            }
            None => jobs_dir.join("work"),
        };
        std::fs::create_dir_all(&dir)?;
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700))?;
        Ok(Self { dir: dir.canonicalize()? })
    }

    /// Where this job makes its own.
    pub(super) fn of(&self, id: &JobId) -> PathBuf {
        trace::file(&self.dir, id, "job")
    }

    /// Whether a tool that a job started there still runs: it is let go on when its job dies, so that it saves its state.
    pub(super) fn is_used(&self, id: &JobId) -> bool {
        is_used(&self.of(id))
    }

    /// Takes away what a dead job left: its plan lies there in clear.
    pub(super) fn sweep(&self, id: &JobId) -> Swept {
        sweep(&self.of(id))
    }

    /// The same for all but these jobs, when a server starts.
    pub(super) fn sweep_but(&self, alive: &[&JobId]) -> io::Result<()> {
        let alive: Vec<PathBuf> = alive.iter().map(|id| self.of(id)).collect();
        for entry in std::fs::read_dir(&self.dir)? {
            let room = entry?.path();
            if !alive.contains(&room) && !is_used(&room) {
                sweep(&room);
            }
        }
        Ok(())
    }
}

fn sweep(room: &Path) -> Swept {
    if holds_a_state(room) {
        return Swept::Kept(room.to_owned());
    }
    match std::fs::remove_dir_all(room) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(room = %room.display(), %error, "what a job left behind cannot be removed");
        }
        _ => {}
    }
    Swept::Gone
}

/// Whether a state that could not be saved lies somewhere below. A directory that cannot be read may hold one.
fn holds_a_state(dir: &Path) -> bool {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    entries.filter_map(Result::ok).any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => entry.file_name() != ".terraform" && holds_a_state(&entry.path()),
        _ => entry.file_name() == ERRORED,
    })
}

/// Whether the leader of a process group works below: a tool is one, and what it starts is not. Without `/proc` nobody can tell.
fn is_used(room: &Path) -> bool {
    if !room.exists() {
        return false;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    processes.filter_map(Result::ok).any(|process| {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { return false };
        let below = std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(room));
        below && trace::leads_a_group(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_job_left_goes_but_for_a_state() {
        let dir = tempfile::tempdir().unwrap();
        let rooms = Rooms::new(dir.path(), &BTreeMap::new()).unwrap();
        let (one, two, three) = (JobId::new("one"), JobId::new("two"), JobId::new("three"));
        for id in [&one, &two, &three] {
            std::fs::create_dir_all(rooms.of(id).join("x/source/envs/dev")).unwrap();
            std::fs::write(rooms.of(id).join("x/plan.tfplan"), "secret").unwrap();
        }
        std::fs::write(rooms.of(&two).join("x/source/envs/dev").join(ERRORED), "{}").unwrap();
        assert_eq!(rooms.sweep(&one), Swept::Gone);
        assert_eq!(rooms.sweep(&one), Swept::Gone, "again is harmless");
        assert_eq!(rooms.sweep(&two), Swept::Kept(rooms.of(&two)));
        rooms.sweep_but(&[&three]).unwrap();
        assert_eq!([&one, &two, &three].map(|id| rooms.of(id).exists()), [false, true, true]);
        rooms.sweep_but(&[]).unwrap();
        assert!(!rooms.of(&three).exists());
    }

    #[test]
    fn each_server_has_its_own_in_a_named_directory() {
        let named = tempfile::tempdir().unwrap();
        let environment = BTreeMap::from([(VARIABLE.to_owned(), named.path().display().to_string())]);
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dirs = [&one, &two].map(|jobs| Rooms::new(jobs.path(), &environment).unwrap().dir);
        assert_ne!(dirs[0], dirs[1]);
        assert!(dirs.iter().all(|dir| dir.starts_with(named.path().canonicalize().unwrap())));
    }
}
