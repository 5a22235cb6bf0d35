//! The store on disk: `HOST/NAMESPACE/TYPE/VERSION/PLATFORM/SUM/{package,accepted}`. A package gets there whole, by one rename, and
//! is never written to again; beside it stands for which sums of a lock file the tool accepted it. It fetches nothing itself.

use std::collections::BTreeSet;
use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::domain::packages::{Locked, folder_of, sum, sum_of};

/// All packages of one provider, version and platform.
#[derive(Clone)]
pub(super) struct Shelf {
    folder: PathBuf,
}

/// A package of the store that fits a lock file.
pub(super) struct Package {
    /// Which.
    pub(super) locked: Locked,
    /// The sum of its content.
    pub(super) sum: String,
    /// Its folder.
    pub(super) place: PathBuf,
}

/// What became of the wish to fetch.
pub(super) enum Turn {
    /// Ours, at once; it ends with this value, or with the process.
    Ours(#[expect(dead_code, reason = "held, not read")] File),
    /// Ours after another had it.
    After(#[expect(dead_code, reason = "held, not read")] File),
    /// Somebody else's.
    Theirs,
}

impl Shelf {
    /// The one for this provider.
    pub(super) fn of(store: &Path, locked: &Locked) -> Self {
        Self { folder: store.join(&locked.source).join(&locked.version).join(platform()) }
    }

    /// The package that a lock file accepts: it names the sum of the content, or the tool accepted the archive for just its sums.
    /// That the registry signed one of them is too little: it may be another platform's.
    pub(super) fn find(&self, locked: &Locked) -> Option<Package> {
        let entries = std::fs::read_dir(&self.folder).ok()?;
        entries.flatten().find_map(|entry| {
            let sum = sum_of(entry.file_name().to_str()?)?;
            let accepted = locked.sums.contains(&sum) || accepted(&entry.path(), locked).is_file();
            let place = entry.path().join("package");
            (accepted && place.is_dir()).then(|| Package { locked: locked.clone(), sum, place })
        })
    }

    /// Tries to be the one that fetches.
    pub(super) fn try_turn(&self, file: &mut Option<File>) -> io::Result<Option<File>> {
        if file.is_none() {
            std::fs::create_dir_all(&self.folder)?;
            *file = Some(File::options().create(true).truncate(false).write(true).open(self.folder.join(".lock"))?);
        }
        match file.as_ref().map(File::try_lock) {
            Some(Err(TryLockError::WouldBlock)) | None => Ok(None),
            Some(Err(TryLockError::Error(error))) => Err(error),
            Some(Ok(())) => Ok(file.take()),
        }
    }

    /// Takes in what the tool fetched from the registry and accepted for this lock file, with the sums that it wrote down for it.
    pub(super) fn take(&self, fetched: &Path, locked: &Locked, said: &BTreeSet<String>) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.folder)?;
        copied(fetched, &new.path().join("package"))?;
        // Of the copy, which is what everybody gets.
        let found = content(&new.path().join("package"))?;
        let Some(name) = folder_of(&found).filter(|_| said.contains(&found)) else {
            return Err(io::Error::other("what was fetched is not what the tool wrote down"));
        };
        std::fs::create_dir(new.path().join(ACCEPTED))?;
        std::fs::set_permissions(new.path(), Permissions::from_mode(0o755))?;
        let (new, place) = (new.keep(), self.folder.join(name));
        std::fs::rename(&new, &place).or_else(|error| {
            discard(&new);
            let there = matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists);
            if there { Ok(()) } else { Err(error) }
        })?;
        File::create(accepted(&place, locked)).map(drop)
    }
}

/// The folder of what stands for the sums of lock files.
const ACCEPTED: &str = "accepted";

fn accepted(place: &Path, locked: &Locked) -> PathBuf {
    place.join(ACCEPTED).join(locked.fingerprint())
}

impl Package {
    /// Throws the package out unless its content is what its sum says.
    pub(super) fn check(&self) {
        if content(&self.place).is_ok_and(|found| found == self.sum) {
            return;
        }
        let Some(folder) = self.place.parent() else { return };
        let aside = folder.with_extension(format!("bad-{}", std::process::id()));
        // Out of the way first: nobody is to find half of it.
        if std::fs::rename(folder, &aside).is_ok() {
            discard(&aside);
        }
    }
}

/// Copies files and folders. Anything else is an error.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copied(&entry.path(), &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), &target)?;
            let executable = entry.metadata()?.permissions().mode() & 0o111;
            std::fs::set_permissions(&target, Permissions::from_mode(0o444 | executable))?;
        } else {
            return Err(io::Error::other(format!("`{}` is neither file nor folder", entry.path().display())));
        }
    }
    Ok(())
}

fn discard(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(%error, folder = %folder.display(), "a part of the provider store could not be removed");
    }
}

/// The sum of a package's content.
fn content(package: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    sums(package, "", &mut files)?;
    Ok(sum(&files))
}

fn sums(folder: &Path, prefix: &str, files: &mut Vec<(String, [u8; 32])>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| io::Error::other("a name that is no text"))?;
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            sums(&entry.path(), &format!("{path}/"), files)?;
        } else {
            let mut all = Writes(Sha256::new());
            io::copy(&mut File::open(entry.path())?, &mut all)?;
            files.push((path, all.0.finalize().into()));
        }
    }
    Ok(())
}

struct Writes(Sha256);

impl io::Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `linux_amd64`, as the tools call this machine.
pub(super) fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    format!("{system}_{machine}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(dir: &Path, text: &str) -> (PathBuf, String) {
        let package = dir.join(text);
        std::fs::create_dir_all(package.join("docs")).unwrap();
        std::fs::write(package.join("terraform-provider-test"), text).unwrap();
        std::fs::write(package.join("docs/README"), "x").unwrap();
        let sum = content(&package).unwrap();
        (package, sum)
    }

    fn locked(sums: &[&str]) -> Locked {
        let sums = sums.iter().map(|sum| (*sum).to_owned()).collect();
        Locked { source: "a.test/b/c".into(), version: "1.0.0".into(), sums }
    }

    #[test]
    fn a_package_is_given_only_to_whom_knows_it() {
        let dir = tempfile::tempdir().unwrap();
        let (package, sum) = fetched(dir.path(), "one");
        let shelf = Shelf::of(dir.path(), &locked(&[]));
        for sums in [["zh:11", "zh:12"], ["zh:11", "zh:12"], ["zh:11", "zh:13"]] {
            shelf.take(&package, &locked(&sums), &[sum.clone()].into()).unwrap();
        }
        for (names, given) in [
            (vec![sum.as_str()], true),
            (vec![sum.as_str(), "zh:99"], true),
            (vec!["zh:12", "zh:11"], true),
            (vec!["zh:11", "zh:13"], true),
            // Signed with the rest it may be, but perhaps not the archive of this platform.
            (vec!["zh:11"], false),
            (vec!["zh:11", "zh:14"], false),
            (vec![], false),
        ] {
            let found = shelf.find(&locked(&names));
            assert_eq!(found.as_ref().map(|package| package.sum == sum), given.then_some(true), "{names:?}");
        }
        let left: Vec<_> = std::fs::read_dir(&shelf.folder).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing half done stays");
    }

    #[test]
    fn what_is_not_what_its_sum_says_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (one, sum) = fetched(dir.path(), "one");
        let (two, _) = fetched(dir.path(), "two");
        let shelf = Shelf::of(dir.path(), &locked(&[]));
        assert!(shelf.take(&two, &locked(&["zh:11"]), &[sum.clone()].into()).is_err());
        std::os::unix::fs::symlink("/etc", two.join("link")).unwrap();
        assert!(shelf.take(&two, &locked(&["zh:11"]), &[content(&one).unwrap()].into()).is_err());
        assert!(shelf.find(&locked(&["zh:11"])).is_none());

        shelf.take(&one, &locked(&["zh:11"]), &[sum.clone()].into()).unwrap();
        let package = shelf.find(&locked(&[&sum])).expect("kept");
        package.check();
        assert!(shelf.find(&locked(&[&sum])).is_some());
        std::fs::remove_file(package.place.join("docs/README")).unwrap();
        package.check();
        assert!(shelf.find(&locked(&[&sum])).is_none(), "a damaged one goes");
    }

    #[test]
    fn one_fetches_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::of(dir.path(), &locked(&[]));
        let (mut first, mut second) = (None, None);
        let turn = shelf.try_turn(&mut first).unwrap();
        assert!(turn.is_some());
        assert!(shelf.try_turn(&mut second).unwrap().is_none());
        drop(turn);
        assert!(shelf.try_turn(&mut second).unwrap().is_some());
    }
}
