//! The flows: intake, turn, perform, job reports, sweep. Short, and without a rule of the product: what to do is decided in
//! `domain`, how the outside is reached in the adapters.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

use crate::domain::decide::Server;
use crate::domain::ids::{JobId, PullKey, RepoKey};
use crate::domain::managed::Managed;
use crate::domain::outside::CrossRepo;
use crate::domain::page::Pages;
use crate::ports::clock::Clock;
use crate::ports::executor::Executor;
use crate::ports::forge::{Forge, Hooks, PullRef, RepoRef};
use crate::ports::registration::Connected;
use crate::ports::source::Source;
use crate::ports::store::Store;

pub mod engine;
pub mod forges;
pub mod index;
pub mod intake;
pub mod load;
mod mask;
pub mod perform;
pub mod reports;
pub mod setup;
pub mod sweep;
pub mod turn;
pub mod vault;

/// The adapters and what never changes while the server runs.
pub struct App {
    /// Forges by their name in the settings.
    pub forges: forges::Forges,
    /// The database.
    pub store: Arc<dyn Store>,
    /// Mirrors of repositories.
    pub source: Arc<dyn Source>,
    /// What runs jobs.
    pub executor: Arc<dyn Executor>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Encryption of what is kept.
    pub vault: vault::Vault,
    /// Addresses of pages.
    pub pages: Pages,
    /// Figures from the settings.
    pub limits: Limits,
    /// Which pulls are planned, and which programs may command.
    pub managed: Managed,
    /// Where jobs reach this server, without a slash at the end.
    pub job_url: String,
    /// Rings when there may be something to do.
    pub bell: Notify,
    /// Rings when the reads of a repository may have moved.
    pub index_bell: Notify,
    /// What a pull may say of other repositories.
    pub cross_repo: CrossRepo,
    /// What the engine is at, for whoever waits for rest.
    pub activity: watch::Sender<engine::Activity>,
    /// What other roots know to be secret, by job, while the job runs.
    pub known: moka::future::Cache<JobId, Arc<crate::domain::secret::Secrets>>,
    /// What the plan of a job that ended knows to be secret, for some minutes: each job of a repository needs it from all the others.
    pub told: moka::future::Cache<JobId, Arc<crate::domain::secret::Secrets>>,
    /// Team members, kept for a minute.
    pub teams: moka::future::Cache<(String, String), Vec<crate::domain::ids::Login>>,
}

/// A forge that we are connected to.
#[derive(Clone)]
pub struct Connection {
    /// Its calls.
    pub forge: Arc<dyn Forge>,
    /// Its webhooks.
    pub hooks: Arc<dyn Hooks>,
    /// Our own login there.
    pub login: String,
}

impl From<Connected> for Connection {
    fn from(connected: Connected) -> Self {
        Self { forge: connected.forge, hooks: connected.hooks, login: connected.login }
    }
}

/// Figures from the settings.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The least time between two edits of one comment, milliseconds.
    pub edit_gap_ms: i64,
    /// Plan jobs of one rollout at once.
    pub parallelism: usize,
    /// A job that is silent for so long is lost, milliseconds.
    pub heartbeat_timeout_ms: i64,
    /// Time between two sweeps, milliseconds.
    pub sweep_ms: i64,
}

/// Something that a flow needs is not there; the caller tries again later.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The database.
    #[error("the store failed")]
    Store(#[from] crate::ports::store::StoreError),
    /// The forge.
    #[error("the forge failed")]
    Forge(#[from] crate::ports::forge::ForgeError),
    /// git.
    #[error("the source failed")]
    Source(#[from] crate::ports::source::SourceError),
    /// The executor.
    #[error("the executor failed")]
    Executor(#[from] crate::ports::executor::ExecutorError),
    /// No forge of that name is in the settings.
    #[error("no forge `{0}` is in the settings")]
    UnknownForge(String),
}

impl App {
    /// The forge of a repository.
    pub fn connection(&self, repo: &RepoKey) -> Result<Connection, FlowError> {
        self.forges.get(&repo.forge).ok_or_else(|| FlowError::UnknownForge(repo.forge.clone()))
    }

    /// A pull as calls of the forge need it.
    pub fn pull_ref(&self, pull: &PullKey, repo: &str) -> PullRef {
        PullRef { repo: RepoRef { key: pull.repo.clone(), name: repo.to_owned() }, number: pull.number }
    }

    /// What `decide` knows of the server.
    pub fn server(&self, connection: &Connection) -> Server {
        Server {
            login: connection.login.clone(),
            pages: self.pages.clone(),
            comment_limit: connection.forge.comment_limit(),
            edit_gap_ms: self.limits.edit_gap_ms,
            parallelism: self.limits.parallelism,
            managed: self.managed.clone(),
            cross_repo: self.cross_repo,
        }
    }

    /// Rings the bell: there may be something to do.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// The address of a job on this server.
    pub fn url_of_job(&self, job: &JobId) -> String {
        format!("{}/jobs/{job}", self.job_url)
    }
}
