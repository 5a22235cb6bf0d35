//! Puts the adapters together into a running server. The only place that knows them all beside `main`; it contains no flow
//! and no rule.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::forges::Forges;
use crate::app::setup::{self, Setup, SetupError};
use crate::app::{App, Connection, Limits, engine, vault::Vault};
use crate::domain::managed::Managed;
use crate::domain::outside::CrossRepo;
use crate::domain::page::Pages;
use crate::executor::local::{LocalExecutor, LocalSettings};
use crate::forge::github::{GitHub, GitHubConfig, GitHubPlace, Registrar};
use crate::ports::clock::Clock;
use crate::ports::executor::Executor;
use crate::ports::kept::Kept;
use crate::ports::source::Source;
use crate::ports::store::Store;
use crate::source::GitSource;
use crate::store::SqlStore;
use crate::web;

pub mod forget;
pub mod from_settings;
pub mod recover;

/// What a server is made of.
pub struct Parts {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The public address; by default where it listens.
    pub url: Option<String>,
    /// Mirrors, job folders, the default database.
    pub data_dir: PathBuf,
    /// The database; by default SQLite in the data folder.
    pub store: Option<String>,
    /// The installation's key.
    pub key: [u8; 32],
    /// Forges by name.
    pub forges: Vec<(String, GitHubConfig)>,
    /// The program that runs as `PROGRAM job`: ourselves.
    pub program: PathBuf,
    /// Jobs at once.
    pub parallelism: usize,
    /// The environment that jobs get, beside what every process needs.
    pub job_environment: BTreeMap<String, String>,
    /// Figures.
    pub limits: Limits,
    /// Which pulls are planned, and which programs may command.
    pub managed: Managed,
    /// The largest webhook that is read, bytes.
    pub webhook_bytes: usize,
    /// What a pull may say of other repositories.
    pub cross_repo: CrossRepo,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What stands between the flows and the adapters; nothing by default.
    pub decorate: Option<Decorate>,
}

/// The adapters of a server, before the flows get them.
pub struct Adapters {
    /// Forges by name.
    pub forges: BTreeMap<String, Connection>,
    /// The database.
    pub store: Arc<dyn Store>,
    /// Mirrors of repositories.
    pub source: Arc<dyn Source>,
    /// What runs jobs.
    pub executor: Arc<dyn Executor>,
}

/// Puts something around adapters: a world that fails, dies or counts stands here, and the flows cannot tell.
pub type Decorate = Arc<dyn Fn(Adapters) -> Adapters + Send + Sync>;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not ours.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The data folder cannot be used.
    #[error("cannot use the data folder {path}: {source}")]
    DataDir {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The database cannot be opened.
    #[error("cannot open the database")]
    Store(#[from] crate::ports::store::StoreError),
    /// The App that `/setup/github` made cannot be used.
    #[error("the App that was made at /setup/github")]
    Setup(#[from] SetupError),
    /// A forge's settings cannot work.
    #[error("forge `{name}`: {why}")]
    Forge {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
}

/// A running server.
pub struct Running {
    /// Its public address.
    pub url: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its parts.
    pub app: Arc<App>,
    /// The set-up of its App in the browser, unless the settings say who it is.
    pub setup: Option<Arc<Setup>>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

/// Starts a server.
pub async fn start(parts: Parts) -> Result<Running, StartError> {
    start_at(parts, None).await
}

/// Starts a server. When the parts have no forge, it works as the App that was made at this place, and waits until there is one.
pub async fn start_at(parts: Parts, place: Option<GitHubPlace>) -> Result<Running, StartError> {
    // The one TLS provider of the process; a second call finds it installed, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let folder = |source| StartError::DataDir { path: parts.data_dir.clone(), source };
    std::fs::create_dir_all(&parts.data_dir).map_err(folder)?;
    let data_dir = parts.data_dir.canonicalize().map_err(folder)?;
    let listener =
        TcpListener::bind(parts.listen).await.map_err(|source| StartError::Listen { listen: parts.listen, source })?;
    let address = listener.local_addr().map_err(|source| StartError::Listen { listen: parts.listen, source })?;
    let url = parts.url.clone().unwrap_or_else(|| format!("http://{address}"));
    let store_url =
        parts.store.clone().unwrap_or_else(|| format!("sqlite://{}/tidegate.db?mode=rwc", data_dir.display()));
    let vault = Vault::new(parts.key);
    let mut environment = parts.job_environment;
    environment.insert("TIDEGATE_JOB_TOOLS".to_owned(), data_dir.join("tools").display().to_string());
    environment.insert("TIDEGATE_JOB_PROVIDERS".to_owned(), data_dir.join("providers").display().to_string());
    let executor = LocalSettings {
        program: parts.program,
        args: vec!["job".into()],
        jobs_dir: data_dir.join("jobs"),
        environment,
        parallelism: parts.parallelism,
    };
    let database = Arc::new(SqlStore::open(&store_url).await?);
    let adapters = Adapters {
        forges: connect(parts.forges).await?,
        store: database.clone(),
        source: Arc::new(GitSource::new(data_dir.join("mirrors"))),
        executor: Arc::new(LocalExecutor::new(executor).map_err(folder)?),
    };
    let Adapters { forges, store, source, executor } = match &parts.decorate {
        Some(decorate) => decorate(adapters),
        None => adapters,
    };
    let app = Arc::new(App {
        forges: Forges::new(forges),
        store,
        source,
        executor,
        clock: parts.clock,
        pages: Pages::new(&url, &vault.page_key()),
        vault,
        limits: parts.limits,
        managed: parts.managed,
        job_url: format!("http://{}", reachable(address)),
        bell: Notify::new(),
        index_bell: Notify::new(),
        cross_repo: parts.cross_repo,
        activity: watch::channel(engine::Activity::default()).0,
        known: moka::future::Cache::builder().max_capacity(1_000).time_to_live(Duration::from_secs(600)).build(),
        told: moka::future::Cache::builder().max_capacity(10_000).time_to_live(Duration::from_secs(600)).build(),
        teams: moka::future::Cache::builder().max_capacity(10_000).time_to_live(Duration::from_secs(60)).build(),
    });
    let setup = match place {
        Some(place) => set_up(&app, database, place).await?,
        None => None,
    };
    let stop = CancellationToken::new();
    let routes = web::router(Arc::clone(&app), parts.webhook_bytes, setup.clone());
    let serving = stop.clone();
    let server = tokio::spawn(async move {
        let served = axum::serve(listener, routes).with_graceful_shutdown(serving.cancelled_owned()).await;
        if let Err(error) = served {
            tracing::error!(%error, "the server ended");
        }
    });
    let engine = tokio::spawn(work(Arc::clone(&app), stop.clone()));
    Ok(Running { url, address, app, setup, stop, tasks: vec![server, engine] })
}

/// Without a forge every event would be put aside as impossible, so nothing is begun before there is one.
async fn work(app: Arc<App>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = app.forges.some() => engine::run(app, stop).await,
    }
}

/// The set-up in the browser, where the settings leave it to that.
async fn set_up(app: &Arc<App>, database: Arc<SqlStore>, place: GitHubPlace) -> Result<Option<Arc<Setup>>, StartError> {
    let forge = place.forge.clone();
    if !app.forges.is_empty() {
        if database.kept(&setup::keys::name_of(&forge)).await?.is_some() {
            tracing::warn!(
                "the settings say who this server is on {forge}; the App that /setup/github made is kept and not used (`tidegate forget-app` forgets it)"
            );
        }
        return Ok(None);
    }
    let setup = Arc::new(Setup::open(Arc::clone(app), database, Arc::new(Registrar::new(place))).await?);
    setup.connect().await.map_err(|error| StartError::Forge { name: forge, why: error.to_string() })?;
    Ok(Some(setup))
}

/// Where a child process on this machine reaches the listener.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
}

async fn connect(forges: Vec<(String, GitHubConfig)>) -> Result<BTreeMap<String, Connection>, StartError> {
    let mut connections = BTreeMap::new();
    for (name, config) in forges {
        let failed = |why: String| StartError::Forge { name: name.clone(), why };
        let github = Arc::new(GitHub::new(config).map_err(|error| failed(error.to_string()))?);
        github.connect().await.map_err(|error| failed(error.to_string()))?;
        let login = github.login().await.map_err(|error| failed(error.to_string()))?;
        connections.insert(name, Connection { forge: github.clone(), hooks: github, login });
    }
    Ok(connections)
}

impl Running {
    /// Stops: no new work, and what runs for the server ends. Jobs go on by themselves and report to the next server.
    pub async fn stop(self) {
        self.stop.cancel();
        for task in self.tasks {
            // An open connection must not hold up the end.
            let _ = tokio::time::timeout(Duration::from_secs(5), task).await;
        }
    }
}
