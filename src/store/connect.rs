//! Opening the database: which engine, its pool, its pragmas and its migrations. It knows no table.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sqlx::AnyPool;
use sqlx::Executor;
use sqlx::SqlSafeStr;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::rows;
use crate::ports::store::StoreError;

/// The two engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// One file, or memory.
    Sqlite,
    /// A server.
    Postgres,
}

/// For every connection. `NORMAL` in WAL mode syncs at checkpoints, not at every commit: what was committed survives the
/// end of the process in any way (the pages are the kernel's by then), and only a power cut can lose the newest commits,
/// never tear the file. Lost deliveries are found again by the sweep. A commit measured 0.02 ms so, and
/// 3.7 ms with `FULL`. Who cannot accept the loss at a power cut runs PostgreSQL.
const PRAGMAS: &[&str] = &[
    "PRAGMA busy_timeout = 10000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
];

/// Opens the pool and brings the schema up to date.
pub(super) async fn connect(url: &str) -> Result<(AnyPool, Engine), StoreError> {
    let (pool, engine) = reach(url).await?;
    migrator().run(&pool).await.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    Ok((pool, engine))
}

/// The file of a SQLite database.
pub(super) fn file_of(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:").filter(|_| !url.contains(":memory:"))?;
    let path = path.strip_prefix("//").unwrap_or(path);
    Some(PathBuf::from(path.split('?').next().unwrap_or(path)))
}

/// Opens the pool.
pub(super) async fn reach(url: &str) -> Result<(AnyPool, Engine), StoreError> {
    sqlx::any::install_default_drivers();
    let engine = if url.starts_with("sqlite:") { Engine::Sqlite } else { Engine::Postgres };
    let options = AnyConnectOptions::from_str(url).map_err(rows::failed)?;
    let pool = pool_options(url, engine).connect_with(options).await.map_err(rows::failed)?;
    Ok((pool, engine))
}

fn pool_options(url: &str, engine: Engine) -> AnyPoolOptions {
    let options = AnyPoolOptions::new().acquire_timeout(Duration::from_secs(10));
    match engine {
        Engine::Postgres => options.max_connections(10),
        Engine::Sqlite => {
            let options = options.after_connect(|connection, _| {
                Box::pin(async move {
                    for pragma in PRAGMAS {
                        connection.execute(*pragma).await?;
                    }
                    Ok(())
                })
            });
            if url.contains(":memory:") || url.contains("mode=memory") {
                // The data lives as long as the one connection does.
                options.max_connections(1).min_connections(1).idle_timeout(None).max_lifetime(None)
            } else {
                options.max_connections(6)
            }
        }
    }
}

/// The schema; a migration that was released is never edited, only followed by another.
fn migrator() -> Migrator {
    let start = include_str!("../../migrations/0001_start.sql").into_sql_str();
    let kept = include_str!("../../migrations/0002_kept.sql").into_sql_str();
    let neighbours = include_str!("../../migrations/0003_neighbours.sql").into_sql_str();
    Migrator::with_migrations(vec![
        Migration::new(1, "start".into(), MigrationType::Simple, start, false),
        Migration::new(2, "kept".into(), MigrationType::Simple, kept, false),
        Migration::new(3, "neighbours".into(), MigrationType::Simple, neighbours, false),
    ])
}
