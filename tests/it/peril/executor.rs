//! The executor with boundaries before and after what it does. It never changes an answer.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate::domain::ids::JobId;
use tidegate::ports::executor::{self, ExecutorError, Launch, Observed};

use super::Life;

pub struct Executor {
    pub life: Arc<Life>,
    pub inner: Arc<dyn executor::Executor>,
}

#[async_trait]
impl executor::Executor for Executor {
    async fn start(&self, launch: &Launch) -> Result<(), ExecutorError> {
        self.life.boundary("before start".to_owned()).await;
        let done = self.inner.start(launch).await;
        self.life.boundary("after start".to_owned()).await;
        done
    }
    async fn cancel(&self, job: &JobId) -> Result<(), ExecutorError> {
        self.life.boundary("before cancel".to_owned()).await;
        let done = self.inner.cancel(job).await;
        self.life.boundary("after cancel".to_owned()).await;
        done
    }
    async fn observe(&self, job: &JobId) -> Result<Observed, ExecutorError> {
        self.inner.observe(job).await
    }
    async fn ended(&self) {
        self.inner.ended().await;
    }
}
