//! The private directory of a job: nobody else's to read, gone at the end.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::domain::ids::JobId;

/// Makes it, under `TIDEGATE_JOB_DIR` or the system's directory for temporary files, with mode 0700.
pub(super) fn directory(environment: &BTreeMap<String, String>, id: &JobId) -> io::Result<TempDir> {
    let parent = environment.get("TIDEGATE_JOB_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    std::fs::create_dir_all(&parent)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let prefix: String = id.as_str().chars().map(plain).take(80).collect();
    tempfile::Builder::new()
        .prefix(&format!("tidegate-{prefix}-"))
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(parent.canonicalize()?)
}
