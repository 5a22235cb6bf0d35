//! Which paths a directory holds: those that git would keep, or all of them where there is no git. It opens no file and follows no
//! link.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folders that hold nothing of the author's.
const NOT_OURS: [&str; 3] = [".git", ".terraform", ".terragrunt-cache"];

/// Paths below `dir`, relative to it, and directories that could not be read.
pub(super) struct Found {
    pub paths: BTreeSet<PathBuf>,
    pub unreadable: Vec<PathBuf>,
}

/// All paths of a directory.
pub(super) fn paths(dir: &Path) -> Found {
    // A folder that git ignores as a whole has nothing in git's eyes; it was named, so it is read.
    match kept_by_git(dir) {
        Some(paths) if !paths.is_empty() => Found { paths, unreadable: Vec::new() },
        _ => everything(dir),
    }
}

/// A git that cannot be made to run anything by what a repository configures.
pub(super) fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args([
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.quotePath=false",
    ]);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF"] {
        git.env_remove(name);
    }
    git.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C").stdin(Stdio::null());
    git
}

/// The top of the work tree around a directory.
pub(super) fn top(dir: &Path) -> Option<PathBuf> {
    let output =
        git(dir).args(["rev-parse", "--show-toplevel"]).output().ok().filter(|output| output.status.success())?;
    let text = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
    (!text.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(text)))
}

fn kept_by_git(dir: &Path) -> Option<BTreeSet<PathBuf>> {
    let output = git(dir)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let paths = output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    let paths = paths.map(|path| PathBuf::from(OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path))));
    Some(paths.filter(|path| is_ours(path)).collect())
}

fn is_ours(path: &Path) -> bool {
    !path.iter().any(|part| NOT_OURS.iter().any(|name| part == *name))
}

fn everything(top: &Path) -> Found {
    let mut found = Found { paths: BTreeSet::new(), unreadable: Vec::new() };
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = std::fs::read_dir(top.join(&dir)) else {
            found.unreadable.push(dir);
            continue;
        };
        for entry in entries.flatten() {
            let path = dir.join(entry.file_name());
            if !is_ours(&path) {
                continue;
            }
            // The entry's own type: a link to a directory is a link, so no loop can form.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                _ => {
                    found.paths.insert(path);
                }
            }
        }
    }
    found
}
