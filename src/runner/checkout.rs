//! The tree of the commit, unpacked into the job's own directory. Nothing of the archive lands outside, whatever it
//! says; links stay links and are never written through.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use tar::{Archive, EntryType};

use super::Job;
use super::failure::Broken;

/// Fetches and unpacks; returns the checkout's directory.
pub(super) async fn fetch(job: &Job) -> Result<PathBuf, Broken> {
    let archive = job.directory.join("source.tar");
    job.server.source(&archive).await?;
    let checkout = job.directory.join("source");
    let into = checkout.clone();
    let unpacked = tokio::task::spawn_blocking(move || unpack(&archive, &into)).await;
    unpacked.map_err(|error| Broken::new("The source could not be unpacked", error.to_string()))??;
    Ok(checkout)
}

/// The directory of the root; it must exist and lie inside the checkout.
pub(super) fn root(checkout: &Path, dir: &str) -> Result<PathBuf, Broken> {
    let missing = || {
        Broken::new(
            format!("`{dir}` is no directory of this commit"),
            "The root was moved or deleted; plan the pull request again.",
        )
    };
    let root = checkout.join(dir).canonicalize().map_err(|_| missing())?;
    if root.is_dir() && root.starts_with(checkout) { Ok(root) } else { Err(missing()) }
}

fn unpack(archive: &Path, into: &Path) -> Result<(), Broken> {
    std::fs::create_dir(into)?;
    let mut entries = Archive::new(BufReader::with_capacity(128 * 1024, File::open(archive)?));
    for entry in entries.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader | EntryType::XHeader) {
            continue;
        }
        let known = matches!(kind, EntryType::Regular | EntryType::Directory | EntryType::Symlink);
        if !known || !entry.unpack_in(into)? {
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            return Err(Broken::new(
                format!("The source holds `{name}`, which is no file, directory or link inside of it"),
                "Remove it from the repository.",
            ));
        }
    }
    std::fs::remove_file(archive)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar_of(build: impl FnOnce(&mut tar::Builder<File>)) -> (tempfile::TempDir, Result<(), Broken>) {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("a.tar");
        let mut builder = tar::Builder::new(File::create(&archive).unwrap());
        build(&mut builder);
        builder.into_inner().unwrap();
        let result = unpack(&archive, &dir.path().join("source"));
        (dir, result)
    }

    fn entry(kind: EntryType, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header
    }

    fn raw_name(header: &mut tar::Header, name: &str) {
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
    }

    #[test]
    fn files_and_links_arrive() {
        let (dir, result) = tar_of(|builder| {
            let mut file = entry(EntryType::Regular, 2);
            builder.append_data(&mut file, "a/b.tf", &b"hi"[..]).unwrap();
            builder.append_link(&mut entry(EntryType::Symlink, 0), "link", "a").unwrap();
        });
        assert!(result.is_ok());
        assert_eq!(std::fs::read(dir.path().join("source/link/b.tf")).unwrap(), b"hi");
        let checkout = dir.path().join("source").canonicalize().unwrap();
        assert_eq!(root(&checkout, "link").unwrap(), checkout.join("a"));
        assert!(root(&checkout, "nope").is_err());
        assert!(root(&checkout, "..").is_err());
    }

    #[test]
    fn nothing_lands_outside() {
        let (dir, result) = tar_of(|builder| {
            let mut file = entry(EntryType::Regular, 2);
            raw_name(&mut file, "../evil");
            builder.append(&file, &b"hi"[..]).unwrap();
        });
        assert!(result.is_err());
        assert!(!dir.path().join("evil").exists());
        let (dir, result) = tar_of(|builder| {
            builder.append_link(&mut entry(EntryType::Symlink, 0), "out", "..").unwrap();
            let mut file = entry(EntryType::Regular, 2);
            raw_name(&mut file, "out/evil");
            builder.append(&file, &b"hi"[..]).unwrap();
        });
        assert!(result.is_err());
        assert!(!dir.path().join("evil").exists());
    }
}
