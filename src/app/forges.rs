//! The forges that we are connected to. One can come while the server runs, when its App is made in the browser; none ever goes.
//! It calls nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::Connection;
use crate::domain::setup::Refused;

/// Connections by the forge's name in the settings.
pub struct Forges {
    all: watch::Sender<Arc<BTreeMap<String, Connection>>>,
    refused: Mutex<BTreeMap<String, Refused>>,
}

impl Forges {
    /// These.
    pub fn new(all: BTreeMap<String, Connection>) -> Self {
        Self { all: watch::channel(Arc::new(all)).0, refused: Mutex::default() }
    }

    /// All that are there now.
    pub fn all(&self) -> Arc<BTreeMap<String, Connection>> {
        Arc::clone(&self.all.borrow())
    }

    /// The forge of that name.
    pub fn get(&self, name: &str) -> Option<Connection> {
        self.all.borrow().get(name).cloned()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.borrow().is_empty()
    }

    /// Adds a forge.
    pub fn add(&self, name: &str, connection: Connection) {
        self.all.send_modify(|all| {
            let mut more = BTreeMap::clone(all);
            more.insert(name.to_owned(), connection);
            *all = Arc::new(more);
        });
    }

    /// Resolves when there is at least one.
    pub async fn some(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.all.subscribe().wait_for(|all| !all.is_empty()).await;
    }

    /// Remembers the newest refused delivery of a forge that is there: anybody can send one, so only that.
    pub fn refuse(&self, name: &str, refused: Refused) {
        if self.all.borrow().contains_key(name) {
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), refused);
        }
    }

    /// The newest refused delivery of a forge since the server began.
    pub fn refused(&self, name: &str) -> Option<Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}
