//! The planned outputs of other roots put into this job's private checkout for one plan, and taken out again. It never touches
//! anything but the root's own directory, and follows no link out of it.

use std::io;
use std::path::{Path, PathBuf};

use super::Job;
use super::failure::Broken;
use super::tool::Workplace;
use crate::domain::job::FellBack;
use crate::domain::linked::{self, Source};
use crate::domain::secret::Secrets;

/// The checkout as it is for a linked plan.
pub(super) struct Linked {
    /// What each changed file was.
    before: Vec<(PathBuf, Before)>,
    /// Sources that are read as they are applied.
    pub(super) left: Vec<FellBack>,
    sources: Vec<Source>,
}

enum Before {
    Absent,
    File(Vec<u8>),
    Symlink(PathBuf),
}

impl Linked {
    /// Whether the plan differs from one on the applied state.
    pub(super) fn is_in_place(&self) -> bool {
        !self.before.is_empty()
    }

    /// Takes everything out again: from now on each source is read as it is applied, for this reason.
    pub(super) fn take_out(&mut self, why: &str) -> Result<(), Broken> {
        for (path, before) in std::mem::take(&mut self.before).into_iter().rev() {
            remove(&path)?;
            match before {
                Before::Absent => {}
                Before::File(bytes) => std::fs::write(&path, bytes)?,
                Before::Symlink(target) => std::os::unix::fs::symlink(target, &path)?,
            }
        }
        for source in &self.sources {
            if !self.left.iter().any(|left| left.source == source.root) {
                self.left.push(FellBack { source: source.root.clone(), why: why.to_owned() });
            }
        }
        Ok(())
    }
}

/// Fetches the planned outputs and points the root's files at them. Secrets among them are learned first.
pub(super) async fn put_in(job: &Job, place: &Workplace, secrets: &mut Secrets) -> Result<Linked, Broken> {
    let mut linked = Linked { before: Vec::new(), left: Vec::new(), sources: Vec::new() };
    if job.spec.linked.is_empty() {
        return Ok(linked);
    }
    linked.sources = job.server.linked().await?;
    linked.sources.iter().flat_map(|source| &source.secrets).for_each(|secret| secrets.add(secret));
    for link in &job.spec.linked {
        if !linked.sources.iter().any(|source| source.root == link.root && source.block == link.block) {
            let why = "its plan is not kept any more".to_owned();
            linked.left.push(FellBack { source: link.root.clone(), why });
        }
    }
    let rewritten = linked::rewrite(&files_of(&place.root)?, &linked.sources);
    linked.left.extend(rewritten.left);
    for (name, bytes) in rewritten.files {
        let path = place.root.join(name);
        linked.before.push((path.clone(), before(&path)?));
        // A new file takes the place of a link, so that what it points to stays as it is.
        remove(&path)?;
        std::fs::write(&path, bytes)?;
    }
    Ok(linked)
}

fn before(path: &Path) -> io::Result<Before> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Before::Absent),
        Err(error) => Err(error),
        Ok(meta) if meta.is_symlink() => Ok(Before::Symlink(std::fs::read_link(path)?)),
        Ok(_) => Ok(Before::File(std::fs::read(path)?)),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Names and bytes of the configuration files of a directory, by name.
fn files_of(root: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if crate::domain::hcl::is_configuration(&name) && entry.path().is_file() {
            files.push((name, std::fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}
