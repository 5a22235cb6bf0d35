//! The store with boundaries around each write. Signs of life and log lines are no boundaries: how many come is chance.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate::domain::event::{Event, Outcome};
use tidegate::domain::ids::{JobId, PullKey, RepoKey, StateKey, Timestamp};
use tidegate::domain::lock::LockTable;
use tidegate::domain::neighbour::Interest;
use tidegate::domain::outside::{ForeignRead, OutsideRead};
use tidegate::domain::pull::Pull;
use tidegate::ports::forge::RepoRef;
use tidegate::ports::store::{
    self, Accepted, Blob, BranchRead, Commit, Job, Loaded, LogLine, Next, Pending, Queued, Received, StoreError,
};

use super::{Life, kind};

pub struct Store {
    pub life: Arc<Life>,
    pub inner: Arc<dyn store::Store>,
}

impl Store {
    async fn write<T>(&self, what: String, work: impl Future<Output = T> + Send) -> T {
        self.life.boundary(format!("before {what}")).await;
        let done = work.await;
        self.life.boundary(format!("after {what}")).await;
        done
    }
}

#[async_trait]
impl store::Store for Store {
    async fn accept(&self, received: &Received) -> Result<Accepted, StoreError> {
        self.write(format!("accept {}", received.name), self.inner.accept(received)).await
    }
    async fn enqueue(&self, events: &[(PullKey, Event)], at: Timestamp) -> Result<(), StoreError> {
        let what: Vec<String> = events.iter().map(|(_, event)| event_kind(event)).collect();
        // Progress comes in batches that depend on timing; it is enough to die in the first of each step.
        self.write(format!("enqueue {}", what.join("+")), self.inner.enqueue(events, at)).await
    }
    async fn due_events(&self, now: Timestamp) -> Result<Vec<Queued>, StoreError> {
        self.life.lives().await;
        self.inner.due_events(now).await
    }
    async fn due_effects(&self, now: Timestamp) -> Result<Vec<Pending>, StoreError> {
        self.life.lives().await;
        self.inner.due_effects(now).await
    }
    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_due(now).await
    }
    async fn finish_event(&self, id: i64, next: &Next) -> Result<(), StoreError> {
        self.write("finish event".to_owned(), self.inner.finish_event(id, next)).await
    }
    async fn finish_effect(&self, pending: &Pending, next: &Next, at: Timestamp) -> Result<(), StoreError> {
        if self.life.forgets((pending.id, pending.generation)) {
            let cause = std::io::Error::other("the record is lost");
            return Err(StoreError::Unavailable(Box::new(cause)));
        }
        let what = format!("finish {}", kind(&pending.effect.act));
        self.write(what, self.inner.finish_effect(pending, next, at)).await
    }
    async fn begin_effect(&self, pending: &Pending) -> Result<(), StoreError> {
        self.life.lives().await;
        self.inner.begin_effect(pending).await
    }
    async fn load(&self, pull: &PullKey) -> Result<Loaded, StoreError> {
        self.inner.load(pull).await
    }
    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        self.write(commit_kind(commit), self.inner.commit(commit)).await
    }
    async fn interested(&self, states: &[StateKey], but: &PullKey) -> Result<Vec<(PullKey, Interest)>, StoreError> {
        self.inner.interested(states, but).await
    }
    async fn open_pulls(&self, repo: &RepoKey) -> Result<Vec<Pull>, StoreError> {
        self.inner.open_pulls(repo).await
    }
    async fn put_reads(&self, read: &BranchRead, known: Timestamp, reads: &[OutsideRead]) -> Result<(), StoreError> {
        self.write("put reads".to_owned(), self.inner.put_reads(read, known, reads)).await
    }
    async fn branches_read(&self) -> Result<Vec<BranchRead>, StoreError> {
        self.inner.branches_read().await
    }
    async fn reads_moved(&self, repo: &RepoRef, pushed: Option<&str>) -> Result<(), StoreError> {
        self.write("reads moved".to_owned(), self.inner.reads_moved(repo, pushed)).await
    }
    async fn forget_reads(&self, repo: &RepoKey) -> Result<(), StoreError> {
        self.write("forget reads".to_owned(), self.inner.forget_reads(repo)).await
    }
    async fn foreign_reads(&self, states: &[StateKey], but: &RepoKey) -> Result<Vec<ForeignRead>, StoreError> {
        self.inner.foreign_reads(states, but).await
    }
    async fn pulls(&self) -> Result<Vec<Pull>, StoreError> {
        self.inner.pulls().await
    }
    async fn locks(&self, repo: &RepoKey) -> Result<LockTable, StoreError> {
        self.inner.locks(repo).await
    }
    async fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.inner.job(id).await
    }
    async fn open_jobs(&self) -> Result<Vec<Job>, StoreError> {
        self.inner.open_jobs().await
    }
    async fn claim_job(&self, id: &JobId, nonce: &str, at: Timestamp) -> Result<bool, StoreError> {
        self.write("claim".to_owned(), self.inner.claim_job(id, nonce, at)).await
    }
    async fn touch_job(&self, id: &JobId, at: Timestamp) -> Result<(), StoreError> {
        self.life.lives().await;
        self.inner.touch_job(id, at).await
    }
    async fn end_job(&self, id: &JobId, event: &(PullKey, Event), at: Timestamp) -> Result<bool, StoreError> {
        self.write(format!("end of job {}", event_kind(&event.1)), self.inner.end_job(id, event, at)).await
    }
    async fn append_log(&self, id: &JobId, lines: &[LogLine]) -> Result<(), StoreError> {
        self.life.lives().await;
        self.inner.append_log(id, lines).await
    }
    async fn log(&self, id: &JobId, after: i64) -> Result<Vec<LogLine>, StoreError> {
        self.inner.log(id, after).await
    }
    async fn put_blob(&self, id: &JobId, blob: &Blob) -> Result<(), StoreError> {
        self.write(format!("blob {}", blob.kind), self.inner.put_blob(id, blob)).await
    }
    async fn blob(&self, id: &JobId, kind: &str) -> Result<Option<Blob>, StoreError> {
        self.inner.blob(id, kind).await
    }
    async fn ledger(&self, pull: &PullKey) -> Result<Vec<(Timestamp, String)>, StoreError> {
        self.inner.ledger(pull).await
    }
}

fn event_kind(event: &Event) -> String {
    match event {
        Event::Progress { steps, .. } => {
            let last = steps.last().map(|step| step.name.clone()).unwrap_or_default();
            format!("progress {last}")
        }
        Event::JobEnded { outcome, .. } => match **outcome {
            Outcome::Planned(_) => "planned",
            Outcome::Applied(_) => "applied",
            Outcome::Stale(_) => "stale",
            Outcome::Failed { .. } => "failed",
            Outcome::Canceled => "canceled",
            Outcome::Lost(_) => "lost",
        }
        .to_owned(),
        other => {
            let text = format!("{other:?}");
            text.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
        }
    }
}

/// What a commit brings, without how many of each.
fn commit_kind(commit: &Commit) -> String {
    let mut parts: Vec<String> = commit.effects.iter().map(|effect| kind(&effect.act)).collect();
    parts.sort();
    parts.dedup();
    parts.extend((!commit.jobs.is_empty()).then(|| "jobs".to_owned()));
    parts.extend(commit.locks.is_some().then(|| "locks".to_owned()));
    parts.extend((!commit.ledger.is_empty()).then(|| "ledger".to_owned()));
    format!("commit of {}", parts.join(", "))
}
