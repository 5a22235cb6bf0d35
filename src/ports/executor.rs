//! What runs jobs: a child process on one machine, a Kubernetes Job on a cluster. It starts, stops
//! and observes; it never decides and never sees a plan.

use async_trait::async_trait;
use secrecy::SecretString;

use crate::domain::ids::JobId;

/// What a job gets to start with.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its id; starting the same id again is harmless.
    pub id: JobId,
    /// The URL of this job on the server.
    pub url: String,
    /// The token that opens this one job.
    pub token: SecretString,
}

/// How a job looks from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Not started, or unknown here.
    Absent,
    /// It runs.
    Alive,
    /// It ended; why, when the executor knows something that the job could not say itself.
    Ended(Option<String>),
}

/// Why a job could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// Later again.
    #[error("the executor cannot start the job now: {0}")]
    Unavailable(String),
}

/// Runs jobs.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Starts the job unless it was started already.
    async fn start(&self, launch: &Launch) -> Result<(), ExecutorError>;
    /// Asks the job to stop, by one interrupt. Nothing happens when it is not there.
    async fn cancel(&self, job: &JobId) -> Result<(), ExecutorError>;
    /// Whether it runs.
    async fn observe(&self, job: &JobId) -> Result<Observed, ExecutorError>;
    /// Resolves when some job ended since the last call; the caller then observes the jobs that it waits for.
    async fn ended(&self);
}
