//! The saved plan in the job's directory, and the providers that it was made with: a plan holds its lock file, and an apply works
//! under that one, whatever the commit has. It changes nothing but the job's own checkout.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Job;
use super::failure::Broken;
use super::packages::LOCK_FILE;
use crate::domain::job::Phase;

/// The largest lock file that is taken over.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Where the plan lies.
pub(super) fn file(job: &Job) -> PathBuf {
    job.directory.join("plan.tfplan")
}

/// Fetches the plan that an apply is for. A plan job has none.
pub(super) async fn fetch(job: &Job) -> Result<Option<PathBuf>, Broken> {
    match job.spec.phase {
        Phase::Plan => Ok(None),
        Phase::Apply => {
            let file = file(job);
            job.server.plan(&file).await?;
            Ok(Some(file))
        }
    }
}

/// Puts the plan's lock file in the place of the commit's: a commit without one would else be initialised with the newest
/// providers of today, which the plan was not made with.
pub(super) fn take_over(plan: &Option<PathBuf>, root: &Path) -> Result<(), Broken> {
    let Some(lock) = plan.as_deref().and_then(lock_file) else { return Ok(()) };
    let file = root.join(LOCK_FILE);
    // The checkout is ours, and a link in it is never written through.
    if file.symlink_metadata().is_ok() {
        std::fs::remove_file(&file)?;
    }
    Ok(std::fs::write(&file, lock)?)
}

/// The lock file in a plan, if it settles any provider. An encrypted plan shows none.
fn lock_file(plan: &Path) -> Option<String> {
    let mut archive = zip::ZipArchive::new(File::open(plan).ok()?).ok()?;
    let mut text = String::new();
    archive.by_name(LOCK_FILE).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    (!crate::domain::packages::locked(&text).is_empty()).then_some(text)
}
