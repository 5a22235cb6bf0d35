//! What a turn loads and what it commits: pull, locks, ledger, and with them events, effects and
//! jobs, all or nothing. It compares versions and knows no rule.

use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;

use super::{SqlStore, Write, beside, effects, events, jobs, rows, sql, take_places};
use crate::domain::ids::{PullKey, RepoKey, Timestamp};
use crate::domain::lock::LockTable;
use crate::domain::pull::Pull;
use crate::ports::store::{Commit, Loaded, StoreError};

pub(super) async fn load(store: &SqlStore, key: &PullKey) -> Result<Loaded, StoreError> {
    let row =
        sqlx::query(sql::LOAD_PULL).bind(key.to_string()).fetch_optional(&store.pool).await.map_err(rows::failed)?;
    let pull: Option<(Pull, i64)> = row.as_ref().map(versioned).transpose()?;
    let (locks, locks_version) = locks(store, &key.repo).await?;
    let (pull, version) = pull.map_or((None, 0), |(pull, version)| (Some(pull), version));
    Ok(Loaded { pull, version, locks, locks_version })
}

pub(super) async fn locks(store: &SqlStore, repo: &RepoKey) -> Result<(LockTable, i64), StoreError> {
    let row =
        sqlx::query(sql::LOAD_LOCKS).bind(repo.to_string()).fetch_optional(&store.pool).await.map_err(rows::failed)?;
    row.as_ref().map_or_else(|| Ok((LockTable::default(), 0)), versioned)
}

fn versioned<T: DeserializeOwned>(row: &AnyRow) -> Result<(T, i64), StoreError> {
    Ok((rows::read(row, "document")?, rows::get(row, "version")?))
}

pub(super) async fn pulls(store: &SqlStore) -> Result<Vec<Pull>, StoreError> {
    let found = sqlx::query(sql::PULLS).fetch_all(&store.pool).await.map_err(rows::failed)?;
    found.iter().map(|row| rows::read(row, "document")).collect()
}

pub(super) async fn open_pulls(store: &SqlStore, repo: &RepoKey) -> Result<Vec<Pull>, StoreError> {
    let found =
        sqlx::query(sql::OPEN_PULLS).bind(repo.to_string()).fetch_all(&store.pool).await.map_err(rows::failed)?;
    found.iter().map(|row| rows::read(row, "document")).collect()
}

pub(super) async fn ledger(store: &SqlStore, pull: &PullKey) -> Result<Vec<(Timestamp, String)>, StoreError> {
    let found = sqlx::query(sql::LEDGER).bind(pull.to_string()).fetch_all(&store.pool).await.map_err(rows::failed)?;
    found.iter().map(|row| Ok((Timestamp(rows::get(row, "written")?), rows::get(row, "line")?))).collect()
}

/// The rows that two turns can fight for come first (pull, then locks, then the event), the counter of places after
/// them: every write takes them in this order, so none waits for another in a circle.
pub(super) async fn commit(store: &SqlStore, commit: &Commit) -> Result<(), StoreError> {
    let mut write = store.write().await?;
    save_pull(&mut write, commit).await?;
    save_locks(&mut write, commit).await?;
    end_event(&mut write, commit).await?;
    for job in &commit.jobs {
        jobs::add(&mut write, &commit.pull.key, job, commit.at).await?;
    }
    add_ledger(&mut write, commit).await?;
    beside::save_interests(&mut write, commit).await?;
    events::add(&mut write, &commit.events, commit.at).await?;
    effects::put(&mut write, &commit.pull.key, &commit.effects, commit.at).await?;
    write.commit().await
}

async fn save_pull(write: &mut Write<'_>, commit: &Commit) -> Result<(), StoreError> {
    let key = commit.pull.key.to_string();
    let name = rows::clean(&commit.pull.repo);
    let document = rows::write(&commit.pull)?;
    let query = if commit.version == 0 {
        sqlx::query(sql::ADD_PULL).bind(key).bind(name)
    } else {
        sqlx::query(sql::SAVE_PULL).bind(key).bind(commit.version).bind(name)
    };
    let saved = query
        .bind(rows::FORMAT)
        .bind(document)
        .bind(commit.at.0)
        .bind(i64::from(commit.pull.seen.is_none() || commit.pull.is_open()))
        .bind(commit.pull.key.repo.to_string())
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    moved_unless_one(saved.rows_affected())
}

async fn save_locks(write: &mut Write<'_>, commit: &Commit) -> Result<(), StoreError> {
    let Some(locks) = &commit.locks else { return Ok(()) };
    let repo = commit.pull.key.repo.to_string();
    let query = if commit.locks_version == 0 {
        sqlx::query(sql::ADD_LOCKS).bind(repo)
    } else {
        sqlx::query(sql::SAVE_LOCKS).bind(repo).bind(commit.locks_version)
    };
    let saved = query
        .bind(rows::FORMAT)
        .bind(rows::write(locks)?)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    moved_unless_one(saved.rows_affected())
}

/// An event that somebody else's turn has done must not be done again by this one.
async fn end_event(write: &mut Write<'_>, commit: &Commit) -> Result<(), StoreError> {
    let Some(id) = commit.event else { return Ok(()) };
    let ended = sqlx::query(sql::END_EVENT)
        .bind(id)
        .bind(rows::DONE)
        .bind(None::<String>)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    moved_unless_one(ended.rows_affected())
}

async fn add_ledger(write: &mut Write<'_>, commit: &Commit) -> Result<(), StoreError> {
    if commit.ledger.is_empty() {
        return Ok(());
    }
    let mut id = take_places(write, commit.ledger.len()).await?;
    for line in &commit.ledger {
        sqlx::query(sql::ADD_LEDGER)
            .bind(id)
            .bind(commit.pull.key.to_string())
            .bind(commit.at.0)
            .bind(rows::clean(line))
            .execute(&mut *write.transaction)
            .await
            .map_err(rows::failed)?;
        id += 1;
    }
    Ok(())
}

fn moved_unless_one(rows: u64) -> Result<(), StoreError> {
    if rows == 1 { Ok(()) } else { Err(StoreError::Moved) }
}
