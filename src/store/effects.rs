//! The outbox: one row per slot, in lanes. A newer content of a slot takes the older's place; what
//! was performed leaves a receipt that is never lost. It performs nothing.

use sqlx::any::AnyRow;

use super::{SqlStore, Write, rows, sql, take_places};
use crate::domain::effect::{Effect, Lane};
use crate::domain::ids::{PullKey, Timestamp};
use crate::ports::store::{Next, Pending, StoreError};

/// A slot's row as a commit finds it.
struct Slot {
    id: i64,
    act: String,
    state: String,
    not_before: i64,
    failed: bool,
}

/// Writes the effects of a turn, in their order, as part of its write.
pub(super) async fn put(
    write: &mut Write<'_>,
    pull: &PullKey,
    effects: &[Effect],
    at: Timestamp,
) -> Result<(), StoreError> {
    for effect in effects {
        let act = rows::write(&effect.act)?;
        match slot(write, pull, &rows::clean(&effect.slot)).await? {
            None => add(write, pull, effect, &act, at).await?,
            Some(slot) => replace(write, &slot, effect, &act, at).await?,
        }
    }
    Ok(())
}

async fn slot(write: &mut Write<'_>, pull: &PullKey, slot: &str) -> Result<Option<Slot>, StoreError> {
    let row = sqlx::query(sql::EFFECT_OF_SLOT)
        .bind(pull.to_string())
        .bind(slot.to_owned())
        .fetch_optional(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    row.map(|row| {
        Ok(Slot {
            id: rows::get(&row, "id")?,
            act: rows::get(&row, "act")?,
            state: rows::get(&row, "state")?,
            not_before: rows::get(&row, "not_before")?,
            failed: rows::get::<Option<String>>(&row, "last_error")?.is_some(),
        })
    })
    .transpose()
}

async fn add(
    write: &mut Write<'_>,
    pull: &PullKey,
    effect: &Effect,
    act: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let place = take_places(write, 1).await?;
    sqlx::query(sql::ADD_EFFECT)
        .bind(place)
        .bind(pull.to_string())
        .bind(rows::clean(&effect.slot))
        .bind(lane(effect))
        .bind(rows::FORMAT)
        .bind(act.to_owned())
        .bind(effect.not_before.map_or(0, |time| time.0))
        .bind(at.0)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    Ok(())
}

async fn replace(
    write: &mut Write<'_>,
    slot: &Slot,
    effect: &Effect,
    act: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let wanted = effect.not_before.map_or(0, |time| time.0);
    let open = slot.state == "open";
    if slot.act == act && (open || slot.state == rows::DONE) {
        return Ok(());
    }
    let text = if open { sql::REPLACE_EFFECT } else { sql::REOPEN_EFFECT };
    let not_before = match (open, slot.failed) {
        (false, _) => wanted,
        // A wait after a failure is the forge's, and new content does not shorten it.
        (true, true) => wanted.max(slot.not_before),
        // A wait that gathers edits does not grow with each of them, or a busy pull would never be told.
        (true, false) => wanted.min(slot.not_before),
    };
    let mut query = sqlx::query(text)
        .bind(slot.id)
        .bind(lane(effect))
        .bind(rows::FORMAT)
        .bind(act.to_owned())
        .bind(not_before)
        .bind(at.0);
    if !open {
        query = query.bind(take_places(write, 1).await?);
    }
    query.execute(&mut *write.transaction).await.map_err(rows::failed)?;
    Ok(())
}

fn lane(effect: &Effect) -> &'static str {
    match effect.act.lane() {
        Lane::Forge => "forge",
        Lane::Source => "source",
        Lane::Jobs => "jobs",
    }
}

pub(super) async fn due(store: &SqlStore, now: Timestamp) -> Result<Vec<Pending>, StoreError> {
    let found = sqlx::query(sql::DUE_EFFECTS).bind(now.0).fetch_all(&store.pool).await.map_err(rows::failed)?;
    let mut due = Vec::with_capacity(found.len());
    for row in &found {
        match pending(row) {
            Ok(effect) => due.push(effect),
            // It waits for the program that can read it, and holds up its own lane only.
            Err(StoreError::Broken(why)) => tracing::error!(why, "an effect of the outbox cannot be read"),
            Err(other) => return Err(other),
        }
    }
    Ok(due)
}

fn pending(row: &AnyRow) -> Result<Pending, StoreError> {
    let not_before: i64 = rows::get(row, "not_before")?;
    let effect = Effect {
        slot: rows::get(row, "slot")?,
        not_before: (not_before > 0).then_some(Timestamp(not_before)),
        act: rows::read(row, "act")?,
    };
    Ok(Pending {
        id: rows::get(row, "id")?,
        pull: rows::pull(row)?,
        repo: rows::get(row, "name")?,
        effect,
        generation: rows::get(row, "generation")?,
        receipt: rows::get(row, "receipt")?,
        attempts: rows::get(row, "attempts")?,
    })
}

pub(super) async fn begin(store: &SqlStore, pending: &Pending) -> Result<(), StoreError> {
    let mut write = store.write().await?;
    let begun = sqlx::query(sql::BEGIN_EFFECT)
        .bind(pending.id)
        .bind(pending.generation)
        .execute(&mut *write.transaction)
        .await
        .map_err(rows::failed)?;
    if begun.rows_affected() == 0 {
        return Err(StoreError::Moved);
    }
    write.commit().await
}

pub(super) async fn finish(store: &SqlStore, pending: &Pending, next: &Next, at: Timestamp) -> Result<(), StoreError> {
    let text = match next {
        Next::Done(_) => sql::FINISH_EFFECT,
        Next::Retry { .. } => sql::RETRY_EFFECT,
        Next::GaveUp(_) => sql::GIVE_UP_EFFECT,
    };
    let query = sqlx::query(text).bind(pending.id).bind(pending.generation);
    let query = match next {
        Next::Done(receipt) => query.bind(receipt.as_deref().map(rows::clean)),
        Next::Retry { at, why } => query.bind(at.0).bind(rows::clean(why)),
        Next::GaveUp(why) => query.bind(rows::clean(why)),
    };
    let mut write = store.write().await?;
    query.bind(at.0).execute(&mut *write.transaction).await.map_err(rows::failed)?;
    write.commit().await
}
