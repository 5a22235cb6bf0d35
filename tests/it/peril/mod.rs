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
mod source;
mod store;

/// Something that happens once, at the first boundary of this name.
type Strike = (&'static str, Box<dyn FnOnce() + Send>);

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
    strikes: Arc<Mutex<Vec<Strike>>>,
}

/// One life of a server.
pub struct Life {
    trouble: Trouble,
    passed: Mutex<Vec<String>>,
    dead: watch::Sender<bool>,
    /// After how many further boundaries it dies, when that was ordered.
    left: Mutex<Option<usize>>,
    once: Mutex<HashSet<(i64, i64)>>,
    strikes: Arc<Mutex<Vec<Strike>>>,
}

impl Peril {
    pub fn new(trouble: Trouble) -> Arc<Self> {
        Arc::new(Self { trouble, lives: Mutex::default(), strikes: Arc::default() })
    }

    /// Orders something for the first boundary of this name, over all lives.
    pub fn at(&self, boundary: &'static str, strike: impl FnOnce() + Send + 'static) {
        self.strikes.lock().unwrap_or_else(PoisonError::into_inner).push((boundary, Box::new(strike)));
    }

    /// What `Ctx::decorated` takes.
    pub fn decorate(self: &Arc<Self>) -> Decorate {
        let peril = Arc::clone(self);
        Arc::new(move |adapters| around(&peril.begin(), adapters))
    }

    fn begin(&self) -> Arc<Life> {
        let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match self.trouble {
            Trouble::DiesAt(at) if lives.is_empty() => Some(at),
            _ => None,
        };
        let life = Arc::new(Life {
            trouble: self.trouble,
            passed: Mutex::default(),
            dead: watch::channel(false).0,
            left: Mutex::default(),
            once: Mutex::default(),
            strikes: Arc::clone(&self.strikes),
        });
        life.dies_in(left);
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
        self.strike(&what);
        let dies = {
            let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
            if !*self.dead.borrow() {
                passed.push(what);
            }
            self.counts_down()
        };
        if dies {
            self.dead.send_replace(true);
        }
        self.lives().await;
    }

    /// What was ordered for here.
    fn strike(&self, what: &str) {
        let mut strikes = self.strikes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = strikes.iter().position(|(name, _)| *name == what) {
            strikes.swap_remove(at).1();
        }
    }

    /// Orders its death after so many further boundaries; `None` takes the order back.
    pub fn dies_in(&self, boundaries: Option<usize>) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = boundaries;
    }

    fn counts_down(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.map(|left| left.saturating_sub(1));
        *left == Some(0)
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
        source: Arc::new(source::Source { life: Arc::clone(life), inner: adapters.source }),
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
