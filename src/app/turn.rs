//! One unit of work: load, decide, commit. A commit that finds the state moved is decided again on what is there now, which is
//! safe because deciding is pure.

use std::ops::ControlFlow;

use super::{App, FlowError, load};
use crate::domain::decide::decide;
use crate::domain::patience::{Trouble, Work, patience};
use crate::ports::forge::ForgeError;
use crate::ports::source::SourceError;
use crate::ports::store::{Commit, Next, Queued, StoreError};

/// How often a turn is decided again before its event waits.
const ROUNDS: usize = 8;
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
    let next = match patience(Work::Event, trouble(error), queued.attempts) {
        ControlFlow::Continue(wait_ms) => later(app, wait_ms, &why),
        ControlFlow::Break(()) => Next::GaveUp(why.clone()),
    };
    match &next {
        Next::GaveUp(why) => tracing::error!(pull = %queued.pull, event = queued.id, %why, "event put aside"),
        _ => tracing::warn!(pull = %queued.pull, event = queued.id, %why, "event put off"),
    }
    app.store.finish_event(queued.id, &next).await
}

/// What kind of failure an error is.
pub(super) fn trouble(error: &FlowError) -> Trouble {
    match error {
        FlowError::Forge(error) => match error {
            ForgeError::RateLimited { wait_ms } => Trouble::Limited { wait_ms: *wait_ms },
            ForgeError::Unavailable(_) | ForgeError::Suspended(_) => Trouble::Away,
            ForgeError::Unreadable(_) => Trouble::Unreadable,
            ForgeError::NotFound(_) => Trouble::Missing,
            ForgeError::Denied(_) => Trouble::Denied,
            ForgeError::Conflict(_) | ForgeError::Invalid(_) | ForgeError::TooLong(_) => Trouble::Rejected,
        },
        FlowError::Source(SourceError::Unavailable(_)) => Trouble::Away,
        FlowError::UnknownForge(_) => Trouble::Unknown,
        FlowError::Store(_) | FlowError::Source(_) | FlowError::Executor(_) => Trouble::Other,
    }
}

fn later(app: &App, wait_ms: i64, why: &str) -> Next {
    Next::Retry { at: app.clock.now().plus_ms(wait_ms), why: why.to_owned() }
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
