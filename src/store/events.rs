//! The queue of events: accepted once per delivery, handed out strictly in order within a pull. It
//! never looks inside an event.

use super::{SqlStore, Write, rows, sql, take_places};
use crate::domain::event::Event;
use crate::domain::ids::{PullKey, Timestamp};
use crate::ports::store::{Accepted, Next, Queued, Received, StoreError};

pub(super) async fn accept(store: &SqlStore, received: &Received) -> Result<Accepted, StoreError> {
    let mut write = store.write().await?;
    let added = sqlx::query(sql::ADD_DELIVERY)
        .bind(rows::clean(&received.forge))
        .bind(rows::clean(&received.id))
        .bind(rows::clean(&received.name))
        .bind(received.ignored.as_deref().map(rows::clean))
        .bind(received.at.0)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    if added.rows_affected() == 0 {
        return Ok(Accepted::Duplicate);
    }
    add(&mut write, &received.events, received.at).await?;
    write.commit().await?;
    Ok(Accepted::New)
}

pub(super) async fn enqueue(store: &SqlStore, events: &[(PullKey, Event)], at: Timestamp) -> Result<(), StoreError> {
    let mut write = store.write().await?;
    add(&mut write, events, at).await?;
    write.commit().await
}

/// Puts events at the end of the line, as part of a write.
pub(super) async fn add(write: &mut Write<'_>, events: &[(PullKey, Event)], at: Timestamp) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let mut id = take_places(write, events.len()).await?;
    for (pull, event) in events {
        sqlx::query(sql::ADD_EVENT)
            .bind(id)
            .bind(pull.to_string())
            .bind(rows::FORMAT)
            .bind(rows::write(event)?)
            .bind(at.0)
            .execute(&mut *write.transaction)
            .await
            .map_err(rows::failed)?;
        id += 1;
    }
    Ok(())
}

pub(super) async fn due(store: &SqlStore, now: Timestamp) -> Result<Vec<Queued>, StoreError> {
    let found = sqlx::query(sql::DUE_EVENTS).bind(now.0).fetch_all(&store.pool).await.map_err(rows::failed)?;
    let mut due = Vec::with_capacity(found.len());
    for row in &found {
        match queued(row) {
            Ok(event) => due.push(event),
            // A newer program may have written it: it waits for that one and holds up its own pull only.
            Err(StoreError::Broken(why)) => tracing::error!(why, "an event of the queue cannot be read"),
            Err(other) => return Err(other),
        }
    }
    Ok(due)
}

fn queued(row: &sqlx::any::AnyRow) -> Result<Queued, StoreError> {
    Ok(Queued {
        id: rows::get(row, "id")?,
        pull: rows::pull(row)?,
        event: rows::read(row, "event")?,
        attempts: rows::get(row, "attempts")?,
    })
}

pub(super) async fn finish(store: &SqlStore, id: i64, next: &Next) -> Result<(), StoreError> {
    let query = match next {
        Next::Done(_) => sqlx::query(sql::END_EVENT).bind(id).bind(rows::DONE).bind(None::<String>),
        Next::GaveUp(why) => sqlx::query(sql::END_EVENT).bind(id).bind(rows::GAVE_UP).bind(Some(rows::clean(why))),
        Next::Retry { at, why } => sqlx::query(sql::RETRY_EVENT).bind(id).bind(at.0).bind(rows::clean(why)),
    };
    let mut write = store.write().await?;
    query.execute(&mut *write.transaction).await.map_err(rows::failed)?;
    write.commit().await
}
