//! Who wants the job to stop: the server, a signal, or nobody. It only remembers; what a stop means is decided where
//! the tool runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What is wanted of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    /// Go on.
    GoOn,
    /// One interrupt.
    Interrupt,
    /// Nobody waits for this job any more; only a plan listens to that.
    Gone,
}

/// The wish, shared. It only ever grows.
#[derive(Clone)]
pub(super) struct Stop {
    wish: Arc<watch::Sender<Wish>>,
    /// Whether it is time that has run out.
    late: Arc<AtomicBool>,
}

impl Stop {
    /// Listens to the process's signals. A hang-up is ignored: it would cost the tool its state.
    pub(super) fn listen() -> Self {
        let stop = Self { wish: Arc::new(watch::Sender::new(Wish::GoOn)), late: Arc::default() };
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            if let Ok(mut signals) = signal(kind) {
                let stop = stop.clone();
                tokio::spawn(async move {
                    while signals.recv().await.is_some() {
                        stop.interrupt();
                    }
                });
            }
        }
        if let Ok(mut hangups) = signal(SignalKind::hangup()) {
            tokio::spawn(async move { while hangups.recv().await.is_some() {} });
        }
        stop
    }

    /// One interrupt is wanted; asking again changes nothing.
    pub(super) fn interrupt(&self) {
        self.raise(Wish::Interrupt);
    }

    /// The plan takes too long: one interrupt is wanted.
    pub(super) fn too_late(&self) {
        self.late.store(true, Ordering::SeqCst);
        self.interrupt();
    }

    /// Whether a stop is wanted because of the time alone.
    pub(super) fn is_too_late(&self) -> bool {
        self.late.load(Ordering::SeqCst)
    }

    /// Nobody waits for this plan any more.
    pub(super) fn gone(&self) {
        self.raise(Wish::Gone);
    }

    /// Whether nobody waits for it.
    pub(super) fn is_gone(&self) -> bool {
        *self.wish.borrow() == Wish::Gone
    }

    /// Whether any stop is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        *self.wish.borrow() != Wish::GoOn
    }

    /// Resolves once any stop is wanted.
    pub(super) async fn wanted(&self) {
        // The sender lives in `self`, so this cannot end early.
        let _ = self.wish.subscribe().wait_for(|wish| *wish != Wish::GoOn).await;
    }

    fn raise(&self, to: Wish) {
        self.wish.send_if_modified(|wish| {
            let higher = to > *wish;
            *wish = (*wish).max(to);
            higher
        });
    }
}
