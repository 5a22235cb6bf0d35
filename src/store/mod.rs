//! The store on SQL: SQLite and PostgreSQL with one text for both. It keeps and orders, and decides
//! nothing; every write is one transaction.

use async_trait::async_trait;

use sqlx::{Any, AnyPool, AssertSqlSafe, Executor, SqlSafeStr, Transaction};
use tokio::sync::{Mutex, MutexGuard};

use crate::domain::event::Event;
use crate::domain::ids::{JobId, PullKey, RepoKey, StateKey, Timestamp};
use crate::domain::lock::LockTable;
use crate::domain::neighbour::Interest;
use crate::domain::outside::{ForeignRead, OutsideRead};
use crate::domain::pull::Pull;
use crate::ports::forge::RepoRef;
use crate::ports::store::{
    Accepted, Blob, BranchRead, Commit, Job, Loaded, LogLine, Next, Pending, Queued, Received, Store, StoreError,
};

mod beside;
mod connect;
mod effects;
mod events;
mod jobs;
mod kept;
mod rows;
mod sql;
mod turn;

use connect::Engine;

/// The database behind [`Store`].
#[derive(Debug)]
pub struct SqlStore {
    pool: AnyPool,
    engine: Engine,
    /// SQLite has one writer: waiting here in order is fair and wakes at once, its busy handler polls.
    writer: Mutex<()>,
}

/// A write transaction; rolled back when dropped.
struct Write<'a> {
    transaction: Transaction<'static, Any>,
    _turn: Option<MutexGuard<'a, ()>>,
}

impl Write<'_> {
    /// Makes it last.
    async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await.map_err(rows::failed)
    }
}

impl SqlStore {
    /// Opens `sqlite:///path/file.db?mode=rwc`, `sqlite::memory:` or `postgres://…` and brings the schema up to date.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let url = &creating(url);
        let (pool, engine) = connect::connect(url).await?;
        Ok(Self { pool, engine, writer: Mutex::new(()) })
    }

    /// Opens it without a change: no file is made, and the schema stays as it is. `None` where there is no file yet.
    pub async fn open_as_it_is(url: &str) -> Result<Option<Self>, StoreError> {
        if connect::file_of(url).is_some_and(|file| !file.exists()) {
            return Ok(None);
        }
        let (pool, engine) = connect::reach(url).await?;
        Ok(Some(Self { pool, engine, writer: Mutex::new(()) }))
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query(sql::PING).fetch_one(&self.pool).await.map_err(rows::failed)?;
        Ok(())
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Prepares every SQL text that the store can run, so that one that does not fit the schema shows here and not in a turn.
    pub async fn check_statements(&self) -> Result<usize, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(rows::failed)?;
        let logs = [sql::append_log(1), sql::append_log(3), sql::interested(3), sql::foreign_reads(3)];
        for text in sql::ALL {
            connection.prepare(text.into_sql_str()).await.map_err(rows::failed)?;
        }
        for text in logs {
            connection.prepare(AssertSqlSafe(text).into_sql_str()).await.map_err(rows::failed)?;
        }
        Ok(sql::ALL.len() + 4)
    }

    /// Deletes deliveries, events and effects that ended before this, except effects whose receipt a later one needs.
    /// Returns how many rows went.
    pub async fn sweep_done(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut write = self.write().await?;
        let mut gone = 0;
        for text in [sql::SWEEP_EVENTS, sql::SWEEP_EFFECTS, sql::SWEEP_DELIVERIES] {
            let done = sqlx::query(text).bind(before.0).execute(&mut *write.transaction).await.map_err(rows::failed)?;
            gone += done.rows_affected();
        }
        write.commit().await?;
        Ok(gone)
    }

    /// Begins a write. On SQLite it takes the write lock at once: a read that becomes a write later cannot wait for it.
    async fn write(&self) -> Result<Write<'_>, StoreError> {
        let (transaction, turn) = match self.engine {
            Engine::Sqlite => {
                let turn = self.writer.lock().await;
                (self.pool.begin_with("BEGIN IMMEDIATE").await, Some(turn))
            }
            Engine::Postgres => (self.pool.begin().await, None),
        };
        Ok(Write { transaction: transaction.map_err(rows::failed)?, _turn: turn })
    }
}

/// Takes `count` places in line and returns the first.
async fn take_places(write: &mut Write<'_>, count: usize) -> Result<i64, StoreError> {
    let count = i64::try_from(count).map_err(|error| StoreError::Broken(error.to_string()))?;
    let row =
        sqlx::query(sql::TAKE_PLACES).bind(count).fetch_one(&mut *write.transaction).await.map_err(rows::failed)?;
    Ok(rows::get::<i64>(&row, "value")? - count + 1)
}

/// A SQLite file is made when it is missing, unless the URL says otherwise.
fn creating(url: &str) -> String {
    let file = url.starts_with("sqlite:") && !url.contains(":memory:") && !url.contains("mode=");
    match (file, url.contains('?')) {
        (false, _) => url.to_owned(),
        (true, false) => format!("{url}?mode=rwc"),
        (true, true) => format!("{url}&mode=rwc"),
    }
}

#[async_trait]
impl Store for SqlStore {
    async fn accept(&self, received: &Received) -> Result<Accepted, StoreError> {
        events::accept(self, received).await
    }

    async fn enqueue(&self, events: &[(PullKey, Event)], at: Timestamp) -> Result<(), StoreError> {
        events::enqueue(self, events, at).await
    }

    async fn due_events(&self, now: Timestamp) -> Result<Vec<Queued>, StoreError> {
        events::due(self, now).await
    }

    async fn due_effects(&self, now: Timestamp) -> Result<Vec<Pending>, StoreError> {
        effects::due(self, now).await
    }

    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let row = sqlx::query(sql::NEXT_DUE).bind(now.0).fetch_one(&self.pool).await.map_err(rows::failed)?;
        Ok(rows::get::<Option<i64>>(&row, "due")?.map(Timestamp))
    }

    async fn finish_event(&self, id: i64, next: &Next) -> Result<(), StoreError> {
        events::finish(self, id, next).await
    }

    async fn finish_effect(&self, pending: &Pending, next: &Next, at: Timestamp) -> Result<(), StoreError> {
        effects::finish(self, pending, next, at).await
    }

    /// [`StoreError::Moved`] when newer content took its place or somebody finished it: it must not be performed.
    async fn begin_effect(&self, pending: &Pending) -> Result<(), StoreError> {
        effects::begin(self, pending).await
    }

    async fn load(&self, pull: &PullKey) -> Result<Loaded, StoreError> {
        turn::load(self, pull).await
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        turn::commit(self, commit).await
    }

    async fn interested(&self, states: &[StateKey], but: &PullKey) -> Result<Vec<(PullKey, Interest)>, StoreError> {
        beside::interested(self, states, but).await
    }

    async fn open_pulls(&self, repo: &RepoKey) -> Result<Vec<Pull>, StoreError> {
        turn::open_pulls(self, repo).await
    }

    async fn put_reads(&self, read: &BranchRead, known: Timestamp, reads: &[OutsideRead]) -> Result<(), StoreError> {
        beside::put_reads(self, read, known, reads).await
    }

    async fn branches_read(&self) -> Result<Vec<BranchRead>, StoreError> {
        beside::branches_read(self).await
    }

    async fn reads_moved(&self, repo: &RepoRef, pushed: Option<&str>) -> Result<(), StoreError> {
        beside::reads_moved(self, repo, pushed).await
    }

    async fn forget_reads(&self, repo: &RepoKey) -> Result<(), StoreError> {
        beside::forget_reads(self, repo).await
    }

    async fn foreign_reads(&self, states: &[StateKey], but: &RepoKey) -> Result<Vec<ForeignRead>, StoreError> {
        beside::foreign_reads(self, states, but).await
    }

    async fn pulls(&self) -> Result<Vec<Pull>, StoreError> {
        turn::pulls(self).await
    }

    async fn locks(&self, repo: &RepoKey) -> Result<LockTable, StoreError> {
        Ok(turn::locks(self, repo).await?.0)
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        jobs::job(self, id).await
    }

    async fn open_jobs(&self) -> Result<Vec<Job>, StoreError> {
        jobs::open(self).await
    }

    async fn count_open_jobs(&self) -> Result<usize, StoreError> {
        jobs::count_open(self).await
    }

    async fn claim_job(&self, id: &JobId, nonce: &str, at: Timestamp) -> Result<bool, StoreError> {
        jobs::claim(self, id, nonce, at).await
    }

    async fn touch_job(&self, id: &JobId, at: Timestamp) -> Result<(), StoreError> {
        jobs::touch(self, id, at).await
    }

    async fn end_job(&self, id: &JobId, event: &(PullKey, Event), at: Timestamp) -> Result<bool, StoreError> {
        jobs::end(self, id, event, at).await
    }

    async fn append_log(&self, id: &JobId, lines: &[LogLine]) -> Result<(), StoreError> {
        jobs::append_log(self, id, lines).await
    }

    async fn log(&self, id: &JobId, after: i64) -> Result<Vec<LogLine>, StoreError> {
        jobs::log(self, id, after).await
    }

    async fn put_blob(&self, id: &JobId, blob: &Blob) -> Result<(), StoreError> {
        jobs::put_blob(self, id, blob).await
    }

    async fn blob(&self, id: &JobId, kind: &str) -> Result<Option<Blob>, StoreError> {
        jobs::blob(self, id, kind).await
    }

    async fn ledger(&self, pull: &PullKey) -> Result<Vec<(Timestamp, String)>, StoreError> {
        turn::ledger(self, pull).await
    }
}
