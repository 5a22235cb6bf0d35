//! Where a job's providers come from: a store of packages that all jobs of a machine read. Only a fetch of its own fills it, from
//! the registry, which signs what it gives: nothing of a root but its lock file comes near. A root gets a package when its lock
//! file names the sum of its content, or the tool accepted it for just that lock file's sums; the tool checks it again each time. What is in doubt is fetched by the tool as if there were no store.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Job;
use super::process::{Call, Stopping, run};
use super::program::Program;
use crate::domain::packages::{self, Locked, locked};

mod settings;
mod store;

use store::{Package, Shelf, Turn, platform};

pub(super) use crate::domain::packages::LOCK_FILE;
/// How long a job waits for another that fetches the same package.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
const LOOK: Duration = Duration::from_millis(50);

/// What the store gives to a root.
pub(super) struct Offer {
    /// The environment in which the tool finds it.
    pub(super) environment: BTreeMap<String, String>,
    given: Vec<Package>,
    /// The lock file as the commit has it.
    lock_file: String,
}

impl Offer {
    /// `registry.terraform.io/hashicorp/aws 6.2.0, …`
    pub(super) fn names(&self) -> String {
        let names = self.given.iter().map(|given| format!("{} {}", given.locked.source, given.locked.version));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The tool would not take it: throws out what is damaged, and leaves the root as if there were no store.
    pub(super) fn take_back(self, root: &Path) -> io::Result<()> {
        self.given.iter().for_each(Package::check);
        std::fs::write(root.join(LOCK_FILE), self.lock_file)
    }
}

/// Whether commands in this root, after its `init`, may start a provider that is not built in.
pub(super) fn may_start_any(root: &Path) -> bool {
    match std::fs::read_to_string(root.join(LOCK_FILE)) {
        Ok(text) => text.contains("provider"),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// What the store gives to this root, fetched first where it can be. `None` leaves everything to the tool.
pub(super) async fn offer(job: &Job, program: &Program, root: &Path) -> Option<Offer> {
    let store = job.packages.as_deref()?;
    let path = root.join(LOCK_FILE);
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let lock_file = std::fs::read_to_string(&path).ok()?;
    let wanted = locked(&lock_file);
    let own = settings::own(&job.environment, root)?;
    // Asked before anything is fetched in vain.
    packages::command_line(&own, "", &[])?;
    let mut given = Vec::new();
    for locked in wanted.iter().filter(|locked| !locked.sums.is_empty()) {
        let shelf = Shelf::of(store, locked);
        let found = match shelf.find(locked) {
            Some(found) => Some(found),
            None => fetched(job, program, &shelf, locked).await,
        };
        given.extend(found);
    }
    if given.is_empty() {
        return None;
    }
    match show(job, &path, &lock_file, &own, &given) {
        Ok(environment) => Some(Offer { environment: environment?, given, lock_file }),
        Err(error) => {
            tracing::warn!(%error, "the provider store cannot be shown to a job");
            None
        }
    }
}

async fn fetched(job: &Job, program: &Program, shelf: &Shelf, locked: &Locked) -> Option<Package> {
    let turn = turn(job, shelf).await;
    let found = shelf.find(locked);
    match turn {
        _ if found.is_some() => found,
        Turn::Ours(_) => {
            if let Err(error) = fetch(job, program, shelf, locked).await {
                tracing::warn!(error, provider = locked.source, "a provider package does not come into the store");
            }
            shelf.find(locked)
        }
        // Whoever fetched got none, and all who waited are not to fail one after the other.
        Turn::After(_) | Turn::Theirs => None,
    }
}

async fn turn(job: &Job, shelf: &Shelf) -> Turn {
    let (until, mut file, mut waited) = (Instant::now() + PATIENCE, None, false);
    loop {
        match shelf.try_turn(&mut file) {
            Ok(Some(lock)) if waited => return Turn::After(lock),
            Ok(Some(lock)) => return Turn::Ours(lock),
            Ok(None) if Instant::now() < until && !job.stop.is_wanted() => {
                waited = true;
                tokio::time::sleep(LOOK).await;
            }
            _ => return Turn::Theirs,
        }
    }
}

/// Lets the tool fetch one package in a folder where nothing else is, and takes it into the store.
async fn fetch(job: &Job, program: &Program, shelf: &Shelf, locked: &Locked) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let folder = tempfile::tempdir_in(&job.directory).map_err(text)?;
    std::fs::write(folder.path().join("main.tf"), packages::only(locked)).map_err(text)?;
    // By which the tool judges the archive, which nobody sees later.
    std::fs::write(folder.path().join(LOCK_FILE), locked.lock_file()).map_err(text)?;
    let args = ["init", "-input=false", "-no-color"].map(str::to_owned).to_vec();
    let call =
        Call { program: &program.path, args, directory: folder.path(), name: "fetch", stop: Stopping::Kill, room: 0 };
    job.reporter.log("init", &format!("Fetching {} {} for the provider store", locked.source, locked.version));
    let exit = run(job, &call, &mut |_| {}).await.map_err(|broken| format!("{broken:?}"))?;
    if !exit.ok() {
        return Err(exit.errors());
    }
    let said = std::fs::read_to_string(folder.path().join(LOCK_FILE)).map_err(text)?;
    let said = packages::locked(&said).into_iter().find(|said| said.source == locked.source);
    let said = said.filter(|said| said.version == locked.version).ok_or("the tool fetched another version")?.sums;
    let package = folder.path().join(".terraform/providers").join(&locked.source).join(&locked.version);
    let (package, shelf, locked) = (package.join(platform()), shelf.clone(), locked.clone());
    let taken = tokio::task::spawn_blocking(move || shelf.take(&package, &locked, &said)).await;
    taken.map_err(|error| error.to_string())?.map_err(text)
}

/// Makes a mirror of just these packages, by links, and settings that name it; the lock file learns the sums by which the tool
/// checks them. `None` when the user says where providers come from.
fn show(
    job: &Job,
    path: &Path,
    lock_file: &str,
    own: &str,
    given: &[Package],
) -> io::Result<Option<BTreeMap<String, String>>> {
    let mirror = job.directory.join("providers");
    let sources: Vec<&str> = given.iter().map(|given| given.locked.source.as_str()).collect();
    let Some(text) = packages::command_line(own, &mirror.display().to_string(), &sources) else { return Ok(None) };
    for package in given {
        let version = mirror.join(&package.locked.source).join(&package.locked.version);
        std::fs::create_dir_all(&version)?;
        symlink(&package.place, version.join(platform()))?;
    }
    let settings: PathBuf = job.directory.join("providers.tfrc");
    std::fs::write(&settings, text)?;
    let sums: Vec<(&str, &str)> = given.iter().map(|one| (one.locked.source.as_str(), one.sum.as_str())).collect();
    if let Some(known) = packages::with_sums(lock_file, &sums) {
        std::fs::write(path, known)?;
    }
    let mut environment = job.environment.clone();
    environment.insert("TF_CLI_CONFIG_FILE".to_owned(), settings.display().to_string());
    Ok(Some(environment))
}
