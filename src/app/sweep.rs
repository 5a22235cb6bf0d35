//! Finds what no webhook and no report told: jobs that died, pulls that moved, comments that were never delivered, pulls
//! that closed. It derives the same events; the turn does the rest.

use super::{App, Connection, FlowError, index, intake, reports};
use crate::domain::event::{Event, Incoming, Outcome, What};
use crate::domain::ids::PullKey;
use crate::domain::pull::{Pull, PullState, Seen};
use crate::ports::executor::{Launch, Observed};
use crate::ports::forge::RepoRef;
use crate::ports::store::{Job, JobState};

/// A waiting job that nobody runs is handed to the executor again after this, milliseconds.
const START_AGAIN_MS: i64 = 30_000;
/// How long a process that ended may still take to have its result taken in, milliseconds.
const RESULT_GRACE_MS: i64 = 2_000;

/// When jobs should be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// A job ended, and its result may still be on its way.
    Soon,
    /// Nothing is known to change.
    Later,
}

/// Hands jobs to the executor that were waiting in an earlier server: with it the line of the waiting is gone.
pub async fn waiting_jobs(app: &App) -> Result<(), FlowError> {
    for job in app.store.open_jobs().await? {
        if job.state == JobState::Waiting && app.executor.observe(&job.spec.id).await? == Observed::Absent {
            start_again(app, &job).await?;
        }
    }
    Ok(())
}

/// Looks at every job whose result is not in.
pub async fn jobs(app: &App) -> Result<Again, FlowError> {
    let mut again = Again::Later;
    for job in app.store.open_jobs().await? {
        if job_state(app, &job).await? == Again::Soon {
            again = Again::Soon;
        }
    }
    Ok(again)
}

/// Starts a job that nobody runs, unless nobody waits for it any more.
async fn start_again(app: &App, job: &Job) -> Result<(), FlowError> {
    let id = &job.spec.id;
    let pull = app.store.load(&job.pull).await?.pull;
    if !pull.is_some_and(|pull| reports::waits_for(&pull, id)) {
        reports::end(app, job, Outcome::Canceled).await?;
        return Ok(());
    }
    let token = app.vault.job_token(id).into();
    app.executor.start(&Launch { id: id.clone(), url: app.url_of_job(id), token }).await?;
    app.store.touch_job(id, app.clock.now()).await?;
    Ok(())
}

async fn job_state(app: &App, job: &Job) -> Result<Again, FlowError> {
    let silent_ms = app.clock.now().since_ms(job.heartbeat);
    match (job.state, app.executor.observe(&job.spec.id).await?) {
        (JobState::Ended, _) | (_, Observed::Alive) if silent_ms < app.limits.heartbeat_timeout_ms => {}
        (JobState::Waiting, Observed::Absent) if silent_ms < START_AGAIN_MS => {}
        (JobState::Waiting, Observed::Absent) => start_again(app, job).await?,
        (_, Observed::Ended(why)) if silent_ms >= RESULT_GRACE_MS => {
            let why = why.unwrap_or_else(|| "Its process ended without a result.".to_owned());
            reports::end(app, job, Outcome::Lost(why)).await?;
        }
        (_, Observed::Ended(_)) => return Ok(Again::Soon),
        (_, _) if silent_ms >= app.limits.heartbeat_timeout_ms => {
            let minutes = app.limits.heartbeat_timeout_ms / 60_000;
            let why = format!("It gave no sign of life for {minutes} minutes.");
            reports::end(app, job, Outcome::Lost(why)).await?;
        }
        _ => {}
    }
    Ok(Again::Later)
}

/// Compares every forge with what we know.
pub async fn forges(app: &App) -> Result<(), FlowError> {
    let pulls = app.store.pulls().await?;
    for (name, connection) in app.forges.all().iter() {
        let mut repos = connection.forge.repos().await?;
        for pull in pulls.iter().filter(|pull| pull.key.repo.forge == *name && pull.is_open()) {
            let repo = RepoRef { key: pull.key.repo.clone(), name: pull.repo.clone() };
            if !repos.iter().any(|known| known.key == repo.key) {
                repos.push(repo);
            }
        }
        for repo in repos {
            index::heard(app, &repo, None).await?;
            if let Err(error) = repo_state(app, connection, &repo, &pulls).await {
                tracing::warn!(repo = repo.name, why = %super::turn::chain(&error), "a repository cannot be swept now");
            }
        }
    }
    Ok(())
}

async fn repo_state(app: &App, connection: &Connection, repo: &RepoRef, pulls: &[Pull]) -> Result<(), FlowError> {
    let open = connection.forge.open_pulls(repo).await?;
    let mut events: Vec<(PullKey, Event)> = Vec::new();
    for (number, seen) in &open {
        let key = PullKey { repo: repo.key.clone(), number: *number };
        let known = pulls.iter().find(|pull| pull.key == key);
        if known.and_then(|pull| pull.seen.as_ref()).is_none_or(|known| has_moved(known, seen)) {
            events.push((key, Event::Look(repo.name.clone())));
        }
        if let Some(pull) = known {
            events.extend(missed_comments(app, connection, repo, pull).await?);
        }
    }
    let left = pulls.iter().filter(|pull| pull.key.repo == repo.key && pull.is_open());
    events.extend(
        left.filter(|pull| !open.iter().any(|(number, _)| *number == pull.key.number))
            .map(|pull| (pull.key.clone(), Event::Look(repo.name.clone()))),
    );
    if !events.is_empty() {
        app.store.enqueue(&events, app.clock.now()).await?;
        app.ring();
    }
    Ok(())
}

/// Whether a look may show something new. Anything that people do moves the time: a review as well, of which the list of
/// pulls says nothing. Forges tell whole seconds, so what differs within one has moved too.
fn has_moved(known: &Seen, seen: &Seen) -> bool {
    known.updated < seen.updated
        || known.updated == seen.updated
            && (known.head != seen.head
                || known.base_ref != seen.base_ref
                || known.draft != seen.draft
                || known.state != seen.state)
}

/// Comments since we know the pull that were never delivered.
async fn missed_comments(
    app: &App,
    connection: &Connection,
    repo: &RepoRef,
    pull: &Pull,
) -> Result<Vec<(PullKey, Event)>, FlowError> {
    let comments = connection.forge.comments(&app.pull_ref(&pull.key, &repo.name)).await?;
    let mut events = Vec::new();
    for incoming in comments.iter().filter(|incoming| is_missed(incoming, pull)) {
        events.extend(intake::events_of(app, &repo.key.forge, incoming).await?);
    }
    Ok(events)
}

fn is_missed(incoming: &Incoming, pull: &Pull) -> bool {
    match &incoming.what {
        // Forges tell whole seconds; a comment of the second in which we heard of the pull counts as later.
        What::Comment { comment, .. } => comment.at.0 / 1000 >= pull.first_seen.0 / 1000 && !pull.has_read(comment.id),
        _ => false,
    }
}

/// Locks whose pull is not open any more; a look at it frees them.
pub async fn locks(app: &App) -> Result<(), FlowError> {
    let closed = app
        .store
        .pulls()
        .await?
        .into_iter()
        .filter(|pull| pull.seen.as_ref().is_some_and(|seen| seen.state != PullState::Open));
    for pull in closed {
        let table = app.store.locks(&pull.key.repo).await?;
        let holds = table.locks.values().any(|lock| {
            lock.holder.as_ref().is_some_and(|holder| holder.pull == pull.key.number)
                || lock.queue.contains(&pull.key.number)
        });
        if holds {
            app.store.enqueue(&[(pull.key.clone(), Event::Look(pull.repo.clone()))], app.clock.now()).await?;
            app.ring();
        }
    }
    Ok(())
}
