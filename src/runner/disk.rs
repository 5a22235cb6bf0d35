//! Room on the disk. A tool that finds none may say nothing of it and end well with half a file, so it is looked at here; and before an
//! apply begins, the room that its last words may need is kept for them.

use std::fs::File;
use std::path::Path;

use super::failure::Broken;
use crate::domain::job::Failure;

/// Less than this, and writing fails or is about to.
const FULL: u128 = 256 << 10;

/// Keeps room for a file that is about to be written, where the file system can do that.
#[cfg(target_os = "linux")]
pub(super) fn reserve(file: &File, bytes: u64) -> Result<(), Broken> {
    use nix::errno::Errno;
    use nix::fcntl::{FallocateFlags, fallocate};
    let Some(bytes) = i64::try_from(bytes).ok().filter(|bytes| *bytes > 0) else { return Ok(()) };
    match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, bytes) {
        Err(Errno::ENOSPC | Errno::EDQUOT) => Err(Broken::new(
            "Out of disk: nothing was applied",
            format!(
                "An apply needs {} MiB in the job's work directory, for the state if its backend does not take it. Give it more room, \
                 then plan and apply again.",
                bytes >> 20
            ),
        )),
        // A file system that cannot do it has to do without.
        _ => Ok(()),
    }
}

/// Keeps room for a file that is about to be written, where the file system can do that.
#[cfg(not(target_os = "linux"))]
pub(super) fn reserve(_: &File, _: u64) -> Result<(), Broken> {
    Ok(())
}

/// The failure, told as one of the disk when there is no room left in this directory: what the tool says of it is anything from nothing
/// to a broken plan file.
pub(super) fn explained(mut failure: Failure, directory: &Path) -> Failure {
    if is_full(directory) && !failure.summary.starts_with("Out of disk") {
        failure.summary = format!("Out of disk: {}", failure.summary);
        let way_out = "The job's work directory has no room left. Give it more, then plan again.";
        failure.detail = format!("{way_out}\n{}", failure.detail);
    }
    failure
}

fn is_full(directory: &Path) -> bool {
    // The widths of both differ between systems.
    let room =
        |found: nix::sys::statvfs::Statvfs| u128::from(found.blocks_available()) * u128::from(found.fragment_size());
    nix::sys::statvfs::statvfs(directory).is_ok_and(|found| room(found) < FULL)
}
