//! The loop: takes due events through turns and performs due effects, one of a pull (and lane) at a time and many pulls
//! at once. It sleeps until the bell, the next due time, the end of a job, or the next sweep.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::index::Index;
use super::sweep::Again;
use super::{App, perform, sweep, turn};
use crate::domain::effect::Lane;
use crate::domain::ids::{PullKey, Timestamp};
use crate::ports::store::StoreError;

/// How many turns and effects run at once.
const AT_ONCE: usize = 64;
/// Without a bell the queue is looked at this often, milliseconds.
const LOOK_AGAIN_MS: u64 = 2_000;
/// After a failure of the store the loop waits this long, milliseconds.
const STORE_PAUSE_MS: u64 = 500;
/// How often jobs are looked at when none is known to have ended.
const LOOK_AT_JOBS: Duration = Duration::from_secs(5);
/// How often when one ended without its result.
const LOOK_FOR_A_RESULT: Duration = Duration::from_millis(250);

/// What the engine is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Counts the rounds of the loop.
    pub round: u64,
    /// Whether anything runs or is due.
    pub rest: Rest,
    /// Jobs whose result is not in.
    pub jobs: usize,
}

/// Whether anything is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// Something runs or is due, now or later.
    #[default]
    No,
    /// Nothing.
    Complete,
}

/// A pull's events, or one of its lanes: only one of each runs at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Strand {
    Events(PullKey),
    Effects(PullKey, Lane),
}

/// Runs until `stop`; what is under way then is finished or left for the next start.
pub async fn run(app: Arc<App>, stop: CancellationToken) {
    let mut beside = JoinSet::new();
    beside.spawn(sweep_for_ever(Arc::clone(&app), stop.clone()));
    beside.spawn(watch_jobs(Arc::clone(&app), stop.clone()));
    beside.spawn(index_for_ever(Arc::clone(&app), stop.clone()));
    let mut running: JoinSet<Strand> = JoinSet::new();
    let mut busy: HashSet<Strand> = HashSet::new();
    let mut round = 0;
    while !stop.is_cancelled() {
        round += 1;
        let next = match start_due(&app, &mut running, &mut busy).await {
            Ok(next) => next,
            Err(error) => {
                tracing::error!(why = %turn::chain(&error), "the store fails; trying again");
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(STORE_PAUSE_MS)) => continue,
                    () = stop.cancelled() => break,
                }
            }
        };
        let rest = if running.is_empty() && next.is_none() { Rest::Complete } else { Rest::No };
        report(&app, round, rest).await;
        tokio::select! {
            () = stop.cancelled() => break,
            () = app.bell.notified() => {}
            Some(ended) = running.join_next(), if !running.is_empty() => settle(&mut busy, ended),
            () = until(&app, next) => {}
        }
        while let Some(ended) = running.try_join_next() {
            settle(&mut busy, ended);
        }
    }
    running.shutdown().await;
    beside.shutdown().await;
}

fn settle(busy: &mut HashSet<Strand>, ended: Result<Strand, tokio::task::JoinError>) {
    match ended {
        Ok(strand) => {
            busy.remove(&strand);
        }
        Err(error) => {
            // A panic is a bug of ours. The strand is unknown, so all are freed: what runs is idempotent.
            tracing::error!(%error, "a turn panicked");
            busy.clear();
        }
    }
}

/// Starts what is due and not running; returns when the next thing will be due.
async fn start_due(
    app: &Arc<App>,
    running: &mut JoinSet<Strand>,
    busy: &mut HashSet<Strand>,
) -> Result<Option<Timestamp>, StoreError> {
    let now = app.clock.now();
    for queued in app.store.due_events(now).await? {
        let strand = Strand::Events(queued.pull.clone());
        if running.len() >= AT_ONCE || !busy.insert(strand.clone()) {
            continue;
        }
        let app = Arc::clone(app);
        running.spawn(async move {
            if let Err(error) = turn::take(&app, &queued).await {
                tracing::error!(pull = %queued.pull, why = %turn::chain(&error), "a turn could not be stored");
                tokio::time::sleep(Duration::from_millis(STORE_PAUSE_MS)).await;
            }
            strand
        });
    }
    for pending in app.store.due_effects(now).await? {
        let strand = Strand::Effects(pending.pull.clone(), pending.effect.act.lane());
        if running.len() >= AT_ONCE || !busy.insert(strand.clone()) {
            continue;
        }
        let app = Arc::clone(app);
        running.spawn(async move {
            if let Err(error) = perform::perform(&app, &pending).await {
                tracing::error!(pull = %pending.pull, why = %turn::chain(&error), "an effect could not be stored");
                tokio::time::sleep(Duration::from_millis(STORE_PAUSE_MS)).await;
            }
            strand
        });
    }
    app.store.next_due(now).await
}

async fn report(app: &App, round: u64, rest: Rest) {
    let jobs = app.store.count_open_jobs().await.unwrap_or(0);
    app.activity.send_replace(Activity { round, rest, jobs });
}

/// Until the next due time, and never long: another server may have written to the same database.
async fn until(app: &App, next: Option<Timestamp>) {
    let wait = next.map_or(LOOK_AGAIN_MS, |at| u64::try_from(at.since_ms(app.clock.now())).unwrap_or_default());
    tokio::time::sleep(Duration::from_millis(wait.clamp(1, LOOK_AGAIN_MS))).await;
}

/// Looks at jobs whenever one ended, and soon again while a result may still be on its way.
async fn watch_jobs(app: Arc<App>, stop: CancellationToken) {
    let waiting = sweep::waiting_jobs(&app).await;
    let mut again = waiting.map(|()| Again::Later);
    loop {
        let pause = match again {
            Ok(Again::Later) => LOOK_AT_JOBS,
            Ok(Again::Soon) => LOOK_FOR_A_RESULT,
            Err(error) => {
                tracing::warn!(why = %turn::chain(&error), "jobs cannot be looked at now");
                LOOK_AT_JOBS
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.executor.ended() => {}
            () = tokio::time::sleep(pause) => {}
        }
        again = sweep::jobs(&app).await;
    }
}

async fn sweep_for_ever(app: Arc<App>, stop: CancellationToken) {
    let pause = Duration::from_millis(u64::try_from(app.limits.sweep_ms).unwrap_or(60_000).max(100));
    loop {
        for result in [sweep::forges(&app).await, sweep::locks(&app).await] {
            if let Err(error) = result {
                tracing::warn!(why = %turn::chain(&error), "the sweep failed; it comes again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Keeps the reads of repositories fresh, beside everything else: nothing waits for it.
async fn index_for_ever(app: Arc<App>, stop: CancellationToken) {
    let pause = Duration::from_millis(u64::try_from(app.limits.sweep_ms).unwrap_or(60_000).max(100));
    let mut index = Index::default();
    loop {
        if let Err(error) = index.refresh(&app).await {
            tracing::warn!(why = %turn::chain(&error), "the index of reads cannot be kept now");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.index_bell.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
