//! Versions that are not installed: fetched from their release site into the tools directory, once for all jobs of the machine, and only
//! when the list of checksums is signed by a key that is trusted here. Anything short of that installs nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use super::Job;
use super::failure::Broken;
use super::program::{Program, name};
use crate::domain::config::ToolKind;
use crate::domain::tool::Version;

mod site;
mod trust;

use site::{Ask, Refused, Site};

/// More than any release has.
const LARGEST_ARCHIVE: u64 = 1 << 30;
const LARGEST_PROGRAM: u64 = 2 << 30;
/// Between two looks at a lock that another job holds.
const LOOK: Duration = Duration::from_millis(200);

/// The sites of both tools, as far as downloads are allowed.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases {
    terraform: Option<Site>,
    tofu: Option<Site>,
}

impl Releases {
    /// Those of the job's environment.
    pub(super) fn of(environment: &BTreeMap<String, String>) -> Self {
        let of = |kind| Site::of(kind, environment);
        Self { terraform: of(ToolKind::Terraform), tofu: of(ToolKind::Tofu) }
    }

    fn site(&self, kind: ToolKind) -> Option<&Site> {
        match kind {
            ToolKind::Terraform => self.terraform.as_ref(),
            ToolKind::Tofu => self.tofu.as_ref(),
        }
    }
}

/// Whether this version could be fetched at all.
pub(super) fn is_allowed(job: &Job, kind: ToolKind) -> bool {
    job.tools.is_some() && job.releases.site(kind).is_some()
}

/// Fetches a version into the tools directory, or finds it there when another job has just done so.
pub(super) async fn fetch(job: &Job, kind: ToolKind, version: &Version) -> Result<Program, Broken> {
    let (Some(tools), Some(site)) = (&job.tools, job.releases.site(kind)) else {
        return Err(Broken::new("Downloads of tools are off", "`tools.download` is off."));
    };
    let wanted = Wanted { kind, version, site, folder: tools.join(name(kind)) };
    tokio::select! {
        fetched = wanted.fetch(job) => fetched,
        () = job.stop.wanted() => Err(Broken::Stopped),
    }
}

/// A version that is wanted.
struct Wanted<'a> {
    kind: ToolKind,
    version: &'a Version,
    site: &'a Site,
    /// `<tools>/<tool>`
    folder: PathBuf,
}

impl Wanted<'_> {
    async fn fetch(&self, job: &Job) -> Result<Program, Broken> {
        // Before anything is asked of the network: without a key nothing of it could be used.
        let key = self.site.key().map_err(|why| self.failed(&why))?;
        std::fs::create_dir_all(&self.folder)?;
        let _one_at_a_time = self.lock().await?;
        let program =
            Program { kind: self.kind, path: self.folder.join(self.version.to_string()).join(name(self.kind)) };
        if program.path.is_file() {
            return Ok(program);
        }
        self.sweep();
        job.reporter
            .log("checkout", &format!("{} is not installed: it is downloaded from {}", self.what(), self.site.shown()));
        let work = tempfile::Builder::new().prefix(&self.prefix()).tempdir_in(&self.folder)?;
        let archive = self.download(&key, work.path()).await?;
        self.install(work, &archive).await?;
        job.reporter.log("checkout", &format!("{} is installed; its checksum is signed by {}", self.what(), key.id()));
        Ok(program)
    }

    /// Waits until no other job fetches this version. The lock ends with its process, however that ends.
    async fn lock(&self) -> Result<Flock<File>, Broken> {
        let path = self.folder.join(format!(".{}.lock", self.version));
        loop {
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// What a job that was killed in the middle of it left; the lock is ours, so nobody works there.
    fn sweep(&self) {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&self.prefix()) {
                // At worst it stays there for the next.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    fn prefix(&self) -> String {
        format!(".{}-download-", self.version)
    }

    /// The archive, whose checksum stands in a list that the key signed.
    async fn download(&self, key: &trust::Key, into: &Path) -> Result<PathBuf, Broken> {
        let ask = Ask::new(self.site).map_err(|refused| self.refused(&refused))?;
        let names = self.site.names(self.version);
        let sums = ask.small(self.version, &names.sums).await.map_err(|refused| self.refused(&refused))?;
        let signature = ask.small(self.version, &names.signature).await.map_err(|refused| self.refused(&refused))?;
        key.check(&sums, &signature).map_err(|why| self.distrusted(&format!("{}: {why}", names.signature)))?;
        let expected = site::sum_of(&sums, &names.archive).ok_or_else(|| {
            self.failed(&format!("The release has no {}: there is none for this system", names.archive))
        })?;
        let file = into.join("archive.zip");
        let mut out = tokio::fs::File::create(&file).await?;
        let mut hash = Sha256::new();
        let mut length = 0;
        let mut answer = ask.large(self.version, &names.archive).await.map_err(|refused| self.refused(&refused))?;
        while let Some(part) = answer.next().await.map_err(|refused| self.refused(&refused))? {
            length += part.len() as u64;
            if length > LARGEST_ARCHIVE {
                return Err(self.failed(&format!("{} is larger than any release", names.archive)));
            }
            hash.update(&part);
            out.write_all(&part).await?;
        }
        out.flush().await?;
        let found = hex::encode(hash.finalize());
        if found != expected {
            return Err(self.distrusted(&format!("{} has the checksum {found}, {expected} is signed", names.archive)));
        }
        Ok(file)
    }

    /// Unpacks beside the place where it goes, and moves it there in one step.
    async fn install(&self, work: TempDir, archive: &Path) -> Result<(), Broken> {
        let (from, tool, whole) = (archive.to_owned(), name(self.kind), work.path().join("whole"));
        let into = whole.clone();
        let unpacked = tokio::task::spawn_blocking(move || unpack(&from, tool, &into)).await;
        unpacked.map_err(|error| Broken::new("A download could not be unpacked", error.to_string()))?.map_err(
            |why| match why {
                Unpack::Io(error) => Broken::from(error),
                Unpack::Odd(why) => self.failed(&why),
            },
        )?;
        std::fs::rename(&whole, self.folder.join(self.version.to_string()))?;
        Ok(())
    }

    fn what(&self) -> String {
        format!("{} {}", name(self.kind), self.version)
    }

    fn refused(&self, refused: &Refused) -> Broken {
        self.failed(&match refused {
            Refused::Missing(url) => format!("{url} is not there"),
            Refused::Failed(url, why) => format!("{url}: {why}"),
        })
    }

    fn failed(&self, why: &str) -> Broken {
        let place = self.folder.join(self.version.to_string()).join(name(self.kind));
        Broken::new(
            format!("{} is not installed and could not be downloaded", self.what()),
            format!("{why}. Install it where jobs run as `{}`, or ask for a version that is there.", place.display()),
        )
    }

    fn distrusted(&self, why: &str) -> Broken {
        Broken::new(
            format!("The download of {} is not what its vendor signed", self.what()),
            format!(
                "{why}. Nothing was installed. Look at what `{}` serves, or name the vendor's present key in `{}`.",
                self.site.shown(),
                self.site.key_setting()
            ),
        )
    }
}

enum Unpack {
    Io(std::io::Error),
    Odd(String),
}

impl From<std::io::Error> for Unpack {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// Takes the program out of the archive, and nothing else.
fn unpack(archive: &Path, tool: &str, into: &Path) -> Result<(), Unpack> {
    let odd = |error: zip::result::ZipError| Unpack::Odd(format!("The archive cannot be read: {error}"));
    let mut archive = zip::ZipArchive::new(File::open(archive)?).map_err(odd)?;
    let program = archive.by_name(tool).map_err(odd)?;
    std::fs::create_dir(into)?;
    let path = into.join(tool);
    let mut out = File::create(&path)?;
    let copied = std::io::copy(&mut program.take(LARGEST_PROGRAM), &mut out)?;
    if copied == LARGEST_PROGRAM {
        return Err(Unpack::Odd("The program is larger than any release".to_owned()));
    }
    out.set_permissions(std::fs::Permissions::from_mode(0o755))?;
    // A power cut must not leave half a program under a whole one's name.
    out.sync_all()?;
    Ok(())
}
