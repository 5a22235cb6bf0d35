//! Something around the adapters of a server under test: it counts the boundaries that are passed, ends the server dead at
//! one of them, or does every effect twice. A dead server's calls never return; the test then drops its runtime.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate::app::Connection;
use tidegate::domain::effect::Act;
use tidegate::serve::{Adapters, Decorate};
use tokio::sync::watch;

mod executor;
mod forge;
mod store;

/// What goes wrong in the first life of a server; later lives are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing: boundaries are only counted.
    Nothing,
    /// It dies at the boundary of this number, from 1.
    DiesAt(usize),
    /// Each effect is done, and then its being done is not recorded the first time.
    EffectsTwice,
}

/// The peril of a world, over all the lives of its server.
pub struct Peril {
    trouble: Trouble,
    lives: Mutex<Vec<Arc<Life>>>,
}

/// One life of a server.
pub struct Life {
    trouble: Trouble,
    passed: Mutex<Vec<String>>,
    dead: watch::Sender<bool>,
    once: Mutex<HashSet<(i64, i64)>>,
}

impl Peril {
    pub fn new(trouble: Trouble) -> Arc<Self> {
        Arc::new(Self { trouble, lives: Mutex::default() })
    }

    /// What `Ctx::decorated` takes.
    pub fn decorate(self: &Arc<Self>) -> Decorate {
        let peril = Arc::clone(self);
        Arc::new(move |adapters| around(&peril.begin(), adapters))
    }

    fn begin(&self) -> Arc<Life> {
        let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        let trouble = match self.trouble {
            Trouble::DiesAt(_) if !lives.is_empty() => Trouble::Nothing,
            trouble => trouble,
        };
        let life =
            Arc::new(Life { trouble, passed: Mutex::default(), dead: watch::channel(false).0, once: Mutex::default() });
        lives.push(Arc::clone(&life));
        life
    }

    /// The life that goes on now.
    pub fn life(&self) -> Arc<Life> {
        Arc::clone(self.lives.lock().unwrap_or_else(PoisonError::into_inner).last().expect("a server was started"))
    }

    /// All boundaries that were passed, in order, over all lives.
    pub fn passed(&self) -> Vec<String> {
        let lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        lives.iter().flat_map(|life| life.passed()).collect()
    }
}

impl Life {
    /// Passes a boundary, or never comes back.
    async fn boundary(&self, what: String) {
        let dies = {
            let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
            if !*self.dead.borrow() {
                passed.push(what);
            }
            self.trouble == Trouble::DiesAt(passed.len())
        };
        if dies {
            self.dead.send_replace(true);
        }
        self.lives().await;
    }

    /// A dead server does nothing any more.
    async fn lives(&self) {
        if *self.dead.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// Resolves when the server died.
    pub async fn died(&self) {
        let mut dead = self.dead.subscribe();
        if dead.wait_for(|dead| *dead).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn passed(&self) -> Vec<String> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the record of this effect is to be lost: the first time, when effects are done twice.
    fn forgets(&self, effect: (i64, i64)) -> bool {
        self.trouble == Trouble::EffectsTwice && self.once.lock().unwrap_or_else(PoisonError::into_inner).insert(effect)
    }
}

fn around(life: &Arc<Life>, adapters: Adapters) -> Adapters {
    let forges: BTreeMap<String, Connection> = adapters
        .forges
        .into_iter()
        .map(|(name, connection)| {
            let forge = Arc::new(forge::Forge { life: Arc::clone(life), inner: connection.forge.clone() });
            (name, Connection { forge, ..connection })
        })
        .collect();
    Adapters {
        forges,
        store: Arc::new(store::Store { life: Arc::clone(life), inner: adapters.store }),
        source: adapters.source,
        executor: Arc::new(executor::Executor { life: Arc::clone(life), inner: adapters.executor }),
    }
}

/// The kind of an effect.
fn kind(act: &Act) -> String {
    match act {
        Act::Check(report) => format!("check {} {:?}", report.name.as_str(), report.state),
        Act::Comment { marker, .. } if marker.contains(" note ") => "note".to_owned(),
        Act::Comment { .. } => "reply".to_owned(),
        Act::React { reaction, .. } => format!("react {reaction:?}"),
        Act::Inspect { .. } => "inspect".to_owned(),
        Act::StartJob { .. } => "start".to_owned(),
        Act::CancelJob { .. } => "cancel".to_owned(),
        Act::Merge { .. } => "merge".to_owned(),
    }
}
