//! One unit of work: load, decide, commit. A commit that finds the state moved is decided again on what is there now, which is
//! safe because deciding is pure.

use super::{App, FlowError, load};
use crate::domain::decide::decide;
use crate::ports::forge::ForgeError;
use crate::ports::source::SourceError;
use crate::ports::store::{Commit, Next, Queued, StoreError};

/// How often a turn is decided again before its event waits.
const ROUNDS: usize = 8;
/// How often an event is tried before it is put aside with the reason.
const TRIES: i64 = 40;
/// How often what waits for a forge that is away is tried: with at most a minute between, for a day.
pub(super) const TRIES_OF_A_DAY: i64 = 1_500;

/// Takes an event through its turn. What cannot be had now is tried later, in order; what can never work is put aside, with the reason.
pub async fn take(app: &App, queued: &Queued) -> Result<(), StoreError> {
    for _ in 0..ROUNDS {
        match once(app, queued).await {
            Ok(()) => {
                app.ring();
                return Ok(());
            }
            Err(FlowError::Store(StoreError::Moved)) => {}
            Err(FlowError::Store(error @ StoreError::Unavailable(_))) => return Err(error),
            Err(error) => return put_off(app, queued, &error).await,
        }
    }
    app.store.finish_event(queued.id, &later(app, 200, "the state kept moving")).await
}

async fn once(app: &App, queued: &Queued) -> Result<(), FlowError> {
    let loaded = app.store.load(&queued.pull).await?;
    let (pull, facts) = load::facts(app, queued, &loaded).await?;
    let decision = decide(&pull, &facts, &queued.event);
    let commit = Commit {
        pull: decision.pull,
        version: loaded.version,
        locks: decision.locks,
        locks_version: loaded.locks_version,
        event: Some(queued.id),
        effects: decision.effects,
        events: decision.events,
        ledger: decision.ledger,
        jobs: decision.jobs,
        interests: decision.interests,
        at: facts.now,
    };
    app.store.commit(&commit).await?;
    Ok(())
}

async fn put_off(app: &App, queued: &Queued, error: &FlowError) -> Result<(), StoreError> {
    let why = chain(error);
    let next = match patience(error, queued.attempts) {
        Some(wait_ms) => later(app, wait_ms, &why),
        None => Next::GaveUp(why.clone()),
    };
    match &next {
        Next::GaveUp(why) => tracing::error!(pull = %queued.pull, event = queued.id, %why, "event put aside"),
        _ => tracing::warn!(pull = %queued.pull, event = queued.id, %why, "event put off"),
    }
    app.store.finish_event(queued.id, &next).await
}

/// How long an event waits after this error; none when it is put aside.
fn patience(error: &FlowError, attempts: i64) -> Option<i64> {
    let tries = match error {
        FlowError::Forge(ForgeError::RateLimited { wait_ms }) => return Some(*wait_ms),
        FlowError::UnknownForge(_) => 0,
        FlowError::Forge(ForgeError::Denied(_)) => 3,
        FlowError::Forge(ForgeError::NotFound(_)) => 8,
        error if is_away(error) => TRIES_OF_A_DAY,
        _ => TRIES,
    };
    (attempts < tries).then(|| backoff_ms(attempts))
}

/// Whether the forge is away, which ends without us: what it would have been told is kept for it.
pub(super) fn is_away(error: &FlowError) -> bool {
    matches!(
        error,
        FlowError::Forge(ForgeError::Unavailable(_) | ForgeError::Suspended(_))
            | FlowError::Source(SourceError::Unavailable(_))
    )
}

fn later(app: &App, wait_ms: i64, why: &str) -> Next {
    Next::Retry { at: app.clock.now().plus_ms(wait_ms), why: why.to_owned() }
}

/// 250 ms, doubled each time, at most a minute.
pub(super) fn backoff_ms(attempts: i64) -> i64 {
    250i64.saturating_mul(1 << attempts.clamp(0, 8)).min(60_000)
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forge(error: ForgeError) -> FlowError {
        FlowError::Forge(error)
    }

    /// Milliseconds that an event is kept for.
    fn kept(error: &FlowError) -> i64 {
        (0..5_000).map_while(|attempt| patience(error, attempt)).sum()
    }

    #[test]
    fn an_event_outlives_a_forge_that_is_away_for_an_hour() {
        let hour = 3_600_000;
        for error in [ForgeError::Unavailable(String::new()), ForgeError::Suspended(String::new())] {
            let error = forge(error);
            assert!(kept(&error) > 20 * hour, "{error}");
            assert!((0..2_000).filter_map(|attempt| patience(&error, attempt)).all(|wait| wait <= 60_000), "{error}");
        }
        for error in [ForgeError::Denied(String::new()), ForgeError::NotFound(String::new())] {
            let error = forge(error);
            assert!(kept(&error) < hour, "{error}");
        }
    }
}
