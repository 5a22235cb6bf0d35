//! Who has to do with which state: open pulls, and roots of other repositories. It keeps and finds; who is told what is decided
//! elsewhere.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::{SqlStore, Write, rows, sql};
use crate::domain::ids::{PullKey, RepoKey, Sha, StateKey, Timestamp};
use crate::domain::neighbour::{Interest, Role};
use crate::domain::outside::{ForeignRead, OutsideRead};
use crate::ports::forge::RepoRef;
use crate::ports::store::{BranchRead, Commit, StoreError};

/// States of one query.
const AT_ONCE: usize = 200;

pub(super) async fn save_interests(write: &mut Write<'_>, commit: &Commit) -> Result<(), StoreError> {
    let Some(interests) = &commit.interests else { return Ok(()) };
    let pull = commit.pull.key.to_string();
    sqlx::query(sql::CLEAR_INTERESTS).bind(&pull).execute(&mut *write.transaction).await.map_err(rows::failed)?;
    for interest in interests {
        let role = match interest.role {
            Role::Owns => "owns",
            Role::Reads(_) => "reads",
        };
        sqlx::query(sql::ADD_INTEREST)
            .bind(&pull)
            .bind(rows::clean(interest.state.as_str()))
            .bind(rows::clean(&interest.root.to_string()))
            .bind(role)
            .bind(rows::FORMAT)
            .bind(rows::write(interest)?)
            .execute(&mut *write.transaction)
            .await
            .map_err(rows::failed)?;
    }
    Ok(())
}

pub(super) async fn interested(
    store: &SqlStore,
    states: &[StateKey],
    but: &PullKey,
) -> Result<Vec<(PullKey, Interest)>, StoreError> {
    let mut all = Vec::new();
    for some in states.chunks(AT_ONCE) {
        for row in of_states(store, sql::interested(some.len()), &but.to_string(), some).await? {
            all.push((rows::pull(&row)?, rows::read(&row, "document")?));
        }
    }
    Ok(all)
}

pub(super) async fn foreign_reads(
    store: &SqlStore,
    states: &[StateKey],
    but: &RepoKey,
) -> Result<Vec<ForeignRead>, StoreError> {
    let mut all = Vec::new();
    for some in states.chunks(AT_ONCE) {
        for row in of_states(store, sql::foreign_reads(some.len()), &but.to_string(), some).await? {
            let name = rows::get(&row, "name")?;
            all.push(ForeignRead { repo: rows::repo(&row)?, name, read: rows::read(&row, "document")? });
        }
    }
    Ok(all)
}

async fn of_states(store: &SqlStore, text: String, but: &str, states: &[StateKey]) -> Result<Vec<AnyRow>, StoreError> {
    let mut query = sqlx::query(AssertSqlSafe(text)).bind(but.to_owned());
    for state in states {
        query = query.bind(rows::clean(state.as_str()));
    }
    query.fetch_all(&store.pool).await.map_err(rows::failed)
}

pub(super) async fn put_reads(
    store: &SqlStore,
    read: &BranchRead,
    known: Timestamp,
    reads: &[OutsideRead],
) -> Result<(), StoreError> {
    let repo = read.repo.key.to_string();
    let mut write = store.write().await?;
    sqlx::query(sql::PUT_BRANCH_READ)
        .bind(&repo)
        .bind(rows::clean(&read.repo.name))
        .bind(read.branch.as_deref().map(rows::clean))
        .bind(read.tip.as_ref().map(Sha::to_string))
        .bind(read.at.0)
        .bind(known.0)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    sqlx::query(sql::CLEAR_READS).bind(&repo).execute(&mut *write.transaction).await.map_err(rows::failed)?;
    for (place, read) in (0_i64..).zip(reads) {
        sqlx::query(sql::ADD_READ)
            .bind(&repo)
            .bind(place)
            .bind(rows::clean(read.state.as_str()))
            .bind(rows::FORMAT)
            .bind(rows::write(read)?)
            .execute(&mut *write.transaction)
            .await
            .map_err(rows::failed)?;
    }
    write.commit().await
}

pub(super) async fn branches_read(store: &SqlStore) -> Result<Vec<BranchRead>, StoreError> {
    let found = sqlx::query(sql::BRANCHES_READ).fetch_all(&store.pool).await.map_err(rows::failed)?;
    found
        .iter()
        .map(|row| {
            let text = |column: &str| row.try_get::<Option<String>, _>(column).map_err(rows::failed);
            Ok(BranchRead {
                repo: RepoRef { key: rows::repo(row)?, name: rows::get(row, "name")? },
                branch: text("branch")?,
                tip: text("tip")?.map(Sha::new),
                at: Timestamp(rows::get(row, "looked")?),
            })
        })
        .collect()
}

pub(super) async fn reads_moved(store: &SqlStore, repo: &RepoRef, pushed: Option<&str>) -> Result<(), StoreError> {
    let mut write = store.write().await?;
    sqlx::query(sql::READS_MOVED)
        .bind(repo.key.to_string())
        .bind(rows::clean(&repo.name))
        .bind(rows::clean(pushed.unwrap_or_default()))
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    write.commit().await
}

pub(super) async fn forget_reads(store: &SqlStore, repo: &RepoKey) -> Result<(), StoreError> {
    let mut write = store.write().await?;
    for text in [sql::CLEAR_READS, sql::FORGET_BRANCH_READ] {
        sqlx::query(text).bind(repo.to_string()).execute(&mut *write.transaction).await.map_err(rows::failed)?;
    }
    write.commit().await
}
