//! Jobs, their logs and their binaries. A job is claimed by one process and ends once; what its
//! binaries hold is ciphertext to this module.

use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use super::{SqlStore, Write, events, rows, sql};
use crate::domain::event::Event;
use crate::domain::ids::{JobId, PullKey, Timestamp};
use crate::domain::job::JobSpec;
use crate::ports::store::{Blob, Job, JobState, LogLine, StoreError};

/// Log lines in one insert: 1,501 placeholders, far below what either engine takes.
const LOG_ROWS: usize = 500;

pub(super) async fn add(
    write: &mut Write<'_>,
    pull: &PullKey,
    spec: &JobSpec,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(sql::ADD_JOB)
        .bind(spec.id.as_str().to_owned())
        .bind(pull.to_string())
        .bind(rows::FORMAT)
        .bind(rows::write(spec)?)
        .bind(at.0)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    Ok(())
}

pub(super) async fn job(store: &SqlStore, id: &JobId) -> Result<Option<Job>, StoreError> {
    let row =
        sqlx::query(sql::JOB).bind(id.as_str().to_owned()).fetch_optional(&store.pool).await.map_err(rows::failed)?;
    row.as_ref().map(read).transpose()
}

pub(super) async fn open(store: &SqlStore) -> Result<Vec<Job>, StoreError> {
    let found = sqlx::query(sql::OPEN_JOBS).fetch_all(&store.pool).await.map_err(rows::failed)?;
    found.iter().map(read).collect()
}

pub(super) async fn count_open(store: &SqlStore) -> Result<usize, StoreError> {
    let row = sqlx::query(sql::COUNT_OPEN_JOBS).fetch_one(&store.pool).await.map_err(rows::failed)?;
    Ok(usize::try_from(rows::get::<i64>(&row, "jobs")?).unwrap_or_default())
}

fn read(row: &AnyRow) -> Result<Job, StoreError> {
    let state: String = rows::get(row, "state")?;
    let state = match state.as_str() {
        "waiting" => JobState::Waiting,
        "running" => JobState::Running,
        "ended" => JobState::Ended,
        other => return Err(StoreError::Broken(format!("a job has the state `{other}`"))),
    };
    Ok(Job {
        spec: rows::read(row, "spec")?,
        pull: rows::pull(row)?,
        repo: rows::get(row, "name")?,
        state,
        claimed_by: rows::get(row, "claimed_by")?,
        heartbeat: Timestamp(rows::get(row, "heartbeat")?),
    })
}

pub(super) async fn claim(store: &SqlStore, id: &JobId, nonce: &str, at: Timestamp) -> Result<bool, StoreError> {
    let mut write = store.write().await?;
    let claimed = sqlx::query(sql::CLAIM_JOB)
        .bind(id.as_str().to_owned())
        .bind(rows::clean(nonce))
        .bind(at.0)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    write.commit().await?;
    Ok(claimed.rows_affected() == 1)
}

pub(super) async fn touch(store: &SqlStore, id: &JobId, at: Timestamp) -> Result<(), StoreError> {
    let mut write = store.write().await?;
    sqlx::query(sql::TOUCH_JOB)
        .bind(id.as_str().to_owned())
        .bind(at.0)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    write.commit().await
}

pub(super) async fn end(
    store: &SqlStore,
    id: &JobId,
    event: &(PullKey, Event),
    at: Timestamp,
) -> Result<bool, StoreError> {
    let mut write = store.write().await?;
    let ended = sqlx::query(sql::END_JOB)
        .bind(id.as_str().to_owned())
        .bind(at.0)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    if ended.rows_affected() == 0 {
        return Ok(false);
    }
    events::add(&mut write, std::slice::from_ref(event), at).await?;
    write.commit().await?;
    Ok(true)
}

pub(super) async fn append_log(store: &SqlStore, id: &JobId, lines: &[LogLine]) -> Result<(), StoreError> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut write = store.write().await?;
    for part in lines.chunks(LOG_ROWS) {
        let mut query = sqlx::query(AssertSqlSafe(sql::append_log(part.len()))).bind(id.as_str().to_owned());
        for line in part {
            query = query.bind(line.seq).bind(rows::clean(&line.step)).bind(rows::clean(&line.line));
        }
        query.execute(&mut *write.transaction).await.map_err(rows::failed)?;
    }
    write.commit().await
}

pub(super) async fn log(store: &SqlStore, id: &JobId, after: i64) -> Result<Vec<LogLine>, StoreError> {
    let found = sqlx::query(sql::LOG)
        .bind(id.as_str().to_owned())
        .bind(after)
        .fetch_all(&store.pool)
        .await
        .map_err(rows::failed)?;
    found
        .iter()
        .map(|row| {
            Ok(LogLine { seq: rows::get(row, "seq")?, step: rows::get(row, "step")?, line: rows::get(row, "line")? })
        })
        .collect()
}

pub(super) async fn put_blob(store: &SqlStore, id: &JobId, blob: &Blob) -> Result<(), StoreError> {
    let mut write = store.write().await?;
    sqlx::query(sql::PUT_BLOB)
        .bind(id.as_str().to_owned())
        .bind(blob.kind.clone())
        .bind(blob.bytes.clone())
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    write.commit().await
}

pub(super) async fn blob(store: &SqlStore, id: &JobId, kind: &str) -> Result<Option<Blob>, StoreError> {
    let row = sqlx::query(sql::BLOB)
        .bind(id.as_str().to_owned())
        .bind(kind.to_owned())
        .fetch_optional(&store.pool)
        .await
        .map_err(rows::failed)?;
    row.map(|row| Ok(Blob { kind: kind.to_owned(), bytes: rows::get(&row, "bytes")? })).transpose()
}
