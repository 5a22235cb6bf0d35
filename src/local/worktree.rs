//! What git says of a working tree beside its files: where it left its base, and which paths differ since. It changes nothing.

use std::path::Path;

use super::{LocalError, walk};

/// The branches that are tried when none is named.
const USUAL: [&str; 5] = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];

/// The commit at which the work left `base`.
pub(super) fn merge_base(top: &Path, base: Option<&str>) -> Result<String, LocalError> {
    let tried: Vec<&str> = base.map_or_else(|| USUAL.to_vec(), |base| vec![base]);
    for name in &tried {
        // `--end-of-options`: a name is never an option.
        let commit = format!("{name}^{{commit}}");
        let Ok(commit) = text(top, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]) else {
            continue;
        };
        return text(top, &["merge-base", "HEAD", &commit]).map_err(|_| {
            LocalError::Git(format!("`{name}` and the current branch share no commit; name another with `--base`."))
        });
    }
    Err(LocalError::Git(match base {
        Some(base) => format!("`{base}` names no commit here. Fetch it, or name another with `--base`."),
        None => format!(
            "none of {} names a commit here. Name what this change is compared with: `--base REF`.",
            tried.join(", ")
        ),
    }))
}

/// The commit that is checked out.
pub(super) fn head(top: &Path) -> Result<String, LocalError> {
    text(top, &["rev-parse", "HEAD"])
}

/// Paths that differ between a commit and the working tree, new files included, sorted.
pub(super) fn changed(top: &Path, commit: &str) -> Result<Vec<String>, LocalError> {
    let tracked =
        bytes(top, &["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", commit, "--"])?;
    let new = bytes(top, &["ls-files", "-z", "--others", "--exclude-standard"])?;
    let parts = tracked.split(|byte| *byte == 0).chain(new.split(|byte| *byte == 0));
    let mut paths: Vec<String> =
        parts.filter(|part| !part.is_empty()).map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// A file of a commit; `None` when it has none.
pub(super) fn file_at(top: &Path, commit: &str, path: &str) -> Option<Vec<u8>> {
    bytes(top, &["show", "--no-textconv", &format!("{commit}:{path}")]).ok()
}

/// Writes the files of a commit below `place`, through an index of their own, so that the user's stays as it is.
pub(super) fn check_out(top: &Path, commit: &str, place: &Path) -> Result<(), LocalError> {
    let io = |error| LocalError::Io("no directory can be made", error);
    std::fs::create_dir_all(place).map_err(io)?;
    let index = place.with_extension("index");
    let mut prefix = place.as_os_str().to_owned();
    prefix.push("/");
    let mut option = std::ffi::OsString::from("--prefix=");
    option.push(&prefix);
    for args in
        [vec!["read-tree".into(), commit.into()], vec!["checkout-index".into(), "-a".into(), "-f".into(), option]]
    {
        let status = walk::git(top).env("GIT_INDEX_FILE", &index).args(&args).output().map_err(io)?.status;
        if !status.success() {
            return Err(LocalError::Git(format!("git {} failed", args[0].to_string_lossy())));
        }
    }
    Ok(())
}

fn text(top: &Path, args: &[&str]) -> Result<String, LocalError> {
    bytes(top, args).map(|out| String::from_utf8_lossy(&out).trim().to_owned())
}

fn bytes(top: &Path, args: &[&str]) -> Result<Vec<u8>, LocalError> {
    let output = walk::git(top).args(args).output().map_err(|error| {
        LocalError::Git(format!("git cannot be started: {error}. Install it; `tidegate plan` needs it."))
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LocalError::Git(format!("git {} failed: {said}", args.first().copied().unwrap_or_default())))
}
