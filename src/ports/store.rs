//! What is kept: pulls, locks, the queue of events, the outbox of effects, jobs with their logs,
//! encrypted plan files, and the ledger. Only the turn commits; a commit fails when anything it was decided on moved.

use async_trait::async_trait;

use crate::domain::effect::Effect;
use crate::domain::event::Event;
use crate::domain::ids::{JobId, PullKey, RepoKey, Sha, StateKey, Timestamp};
use crate::domain::job::JobSpec;
use crate::domain::lock::LockTable;
use crate::domain::neighbour::Interest;
use crate::domain::outside::{ForeignRead, OutsideRead};
use crate::domain::pull::Pull;
use crate::ports::forge::RepoRef;

/// Why the store could not.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody committed meanwhile: load and decide again.
    #[error("the state moved meanwhile")]
    Moved,
    /// The database is away or full: later again.
    #[error("the database is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A row cannot be read.
    #[error("a stored row is broken: {0}")]
    Broken(String),
}

/// What a turn loaded, with the versions that its commit checks.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The pull; `None` when it was never seen.
    pub pull: Option<Pull>,
    /// The pull's version, 0 when it was never seen.
    pub version: i64,
    /// The locks of its repository.
    pub locks: LockTable,
    /// Their version.
    pub locks_version: i64,
}

/// Everything that one turn writes, in one transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The new pull.
    pub pull: Pull,
    /// The version that it was decided on.
    pub version: i64,
    /// The new lock table, when it changed.
    pub locks: Option<LockTable>,
    /// The version of the locks that were loaded; checked only when `locks` is set.
    pub locks_version: i64,
    /// The event that is done by this, by queue id.
    pub event: Option<i64>,
    /// Effects to do, by slot: a newer effect of a slot takes the place of one not yet done.
    pub effects: Vec<Effect>,
    /// Events for this or other pulls.
    pub events: Vec<(PullKey, Event)>,
    /// Lines of the ledger.
    pub ledger: Vec<String>,
    /// What others may know of the pull's plans, in place of what they knew, when it changed.
    pub interests: Option<Vec<Interest>>,
    /// Jobs to register, with a token's hash each added by the store's caller.
    pub jobs: Vec<JobSpec>,
    /// Now.
    pub at: Timestamp,
}

/// An event whose turn has come.
#[derive(Clone, Debug)]
pub struct Queued {
    /// Its queue id.
    pub id: i64,
    /// Whose.
    pub pull: PullKey,
    /// What.
    pub event: Event,
    /// How often it was tried.
    pub attempts: i64,
}

/// An effect to perform.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The row.
    pub id: i64,
    /// Whose.
    pub pull: PullKey,
    /// `owner/name` of the pull's repository.
    pub repo: String,
    /// What.
    pub effect: Effect,
    /// Counts the contents of the slot; done is recorded for this one only.
    pub generation: i64,
    /// What the last performing of this slot left.
    pub receipt: Option<String>,
    /// How often this content was tried without a known success.
    pub attempts: i64,
}

/// What happens next to an event or effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is done; for effects with what it leaves.
    Done(Option<String>),
    /// Try again then; for the reason given.
    Retry {
        /// Not before.
        at: Timestamp,
        /// Why, for the page and the log.
        why: String,
    },
    /// It can never work; kept with the reason.
    GaveUp(String),
}

/// A job as it is kept.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it does.
    pub spec: JobSpec,
    /// Whose.
    pub pull: PullKey,
    /// `owner/name`.
    pub repo: String,
    /// Where it stands.
    pub state: JobState,
    /// The process that claimed it.
    pub claimed_by: Option<String>,
    /// The last sign of life, or when it was made.
    pub heartbeat: Timestamp,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Made, not claimed.
    Waiting,
    /// A process claimed it.
    Running,
    /// Its result is in.
    Ended,
}

/// A webhook as it is kept.
#[derive(Clone, Debug)]
pub struct Received {
    /// Which forge.
    pub forge: String,
    /// The delivery id.
    pub id: String,
    /// Its event name.
    pub name: String,
    /// Why it was ignored, if it was.
    pub ignored: Option<String>,
    /// The events that it makes, in order.
    pub events: Vec<(PullKey, Event)>,
    /// When.
    pub at: Timestamp,
}

/// Whether a delivery is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Stored with its events.
    New,
    /// Its id was there; nothing was stored.
    Duplicate,
}

/// From what the reads of a repository are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRead {
    /// Whose.
    pub repo: RepoRef,
    /// The default branch, once it was read.
    pub branch: Option<String>,
    /// Its tip then.
    pub tip: Option<Sha>,
    /// When it was looked at; 0 and less ask for another look.
    pub at: Timestamp,
}

/// A line of a job's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Counts within the job.
    pub seq: i64,
    /// The step.
    pub step: String,
    /// The text.
    pub line: String,
}

/// A kept binary, already encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Which: `plan`, `errored-state`.
    pub kind: String,
    /// The ciphertext.
    pub bytes: Vec<u8>,
}

/// The database.
#[async_trait]
pub trait Store: Send + Sync {
    /// Stores a delivery and its events in one transaction, once per id.
    async fn accept(&self, received: &Received) -> Result<Accepted, StoreError>;
    /// Queues events that come from no webhook (job reports, timers, sweep).
    async fn enqueue(&self, events: &[(PullKey, Event)], at: Timestamp) -> Result<(), StoreError>;
    /// The oldest due event of each pull that has one, oldest first. Within a pull strictly in order: while its
    /// oldest event is not due, none of the pull is.
    async fn due_events(&self, now: Timestamp) -> Result<Vec<Queued>, StoreError>;
    /// The first effect not done of each (pull, lane) that is due; within a lane strictly in order of creation.
    async fn due_effects(&self, now: Timestamp) -> Result<Vec<Pending>, StoreError>;
    /// When the next event or effect that is not yet due will be.
    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError>;
    /// Marks an event.
    async fn finish_event(&self, id: i64, next: &Next) -> Result<(), StoreError>;
    /// Marks an effect's generation; a newer generation of the slot stays due, and keeps the receipt.
    async fn finish_effect(&self, pending: &Pending, next: &Next, at: Timestamp) -> Result<(), StoreError>;
    /// Says that this effect is about to be performed: after a crash it counts as tried.
    async fn begin_effect(&self, pending: &Pending) -> Result<(), StoreError>;
    /// What a turn needs.
    async fn load(&self, pull: &PullKey) -> Result<Loaded, StoreError>;
    /// Writes a turn, or [`StoreError::Moved`].
    async fn commit(&self, commit: &Commit) -> Result<(), StoreError>;
    /// What open pulls other than this one have to do with any of these states, by pull.
    async fn interested(&self, states: &[StateKey], but: &PullKey) -> Result<Vec<(PullKey, Interest)>, StoreError>;
    /// The pulls of a repository that are open as far as we know, newest first.
    async fn open_pulls(&self, repo: &RepoKey) -> Result<Vec<Pull>, StoreError>;
    /// Keeps what a branch reads of other repositories' states, in place of what was kept for its repository. A push that was heard of
    /// since the look began, when [`BranchRead::at`] was `known`, still asks for another.
    async fn put_reads(&self, read: &BranchRead, known: Timestamp, reads: &[OutsideRead]) -> Result<(), StoreError>;
    /// What is known of the reads of each repository.
    async fn branches_read(&self) -> Result<Vec<BranchRead>, StoreError>;
    /// A repository was heard of: its reads are looked at when they never were, and again when the pushed branch is its default one.
    async fn reads_moved(&self, repo: &RepoRef, pushed: Option<&str>) -> Result<(), StoreError>;
    /// Forgets the reads of a repository that is gone.
    async fn forget_reads(&self, repo: &RepoKey) -> Result<(), StoreError>;
    /// Reads of any of these states by roots of other repositories than this one.
    async fn foreign_reads(&self, states: &[StateKey], but: &RepoKey) -> Result<Vec<ForeignRead>, StoreError>;
    /// Every pull that is kept, newest first, for pages and the sweep.
    async fn pulls(&self) -> Result<Vec<Pull>, StoreError>;
    /// The locks of a repository.
    async fn locks(&self, repo: &RepoKey) -> Result<LockTable, StoreError>;
    /// A job.
    async fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError>;
    /// Jobs whose result is not in.
    async fn open_jobs(&self) -> Result<Vec<Job>, StoreError>;
    /// How many they are, which is asked all the time.
    async fn count_open_jobs(&self) -> Result<usize, StoreError> {
        Ok(self.open_jobs().await?.len())
    }
    /// Lets `nonce` claim a waiting job; the same nonce again is fine; another is refused with `false`.
    async fn claim_job(&self, id: &JobId, nonce: &str, at: Timestamp) -> Result<bool, StoreError>;
    /// A sign of life.
    async fn touch_job(&self, id: &JobId, at: Timestamp) -> Result<(), StoreError>;
    /// Ends the job and queues the event that says so, in one transaction; `false` and nothing queued when it had ended.
    async fn end_job(&self, id: &JobId, event: &(PullKey, Event), at: Timestamp) -> Result<bool, StoreError>;
    /// Appends log lines; a sequence number that is there is skipped.
    async fn append_log(&self, id: &JobId, lines: &[LogLine]) -> Result<(), StoreError>;
    /// Log lines after `seq`.
    async fn log(&self, id: &JobId, after: i64) -> Result<Vec<LogLine>, StoreError>;
    /// Keeps a binary of a job; the same again is fine.
    async fn put_blob(&self, id: &JobId, blob: &Blob) -> Result<(), StoreError>;
    /// A binary of a job.
    async fn blob(&self, id: &JobId, kind: &str) -> Result<Option<Blob>, StoreError>;
    /// The ledger's lines of a pull, oldest first.
    async fn ledger(&self, pull: &PullKey) -> Result<Vec<(Timestamp, String)>, StoreError>;
}
