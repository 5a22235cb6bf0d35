//! States that an apply left outside of their backend, in an `errored.tfstate`. Nothing plans or applies on one until a person says
//! that it is settled: what was made stands in no state, and would be made once more. No end of a lock or of a pull forgets it.

use serde::{Deserialize, Serialize};

use super::LockTable;
use crate::domain::ids::{JobId, RootKey, StateKey, Timestamp};

/// A state that its backend did not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsaved {
    /// The root's name when it was applied, for people.
    pub root: RootKey,
    /// The job that applied it; what it left is kept under this id.
    pub job: JobId,
    /// The pull that applied it.
    pub pull: u64,
    /// Since when.
    pub since: Timestamp,
}

impl LockTable {
    /// Remembers that a state is not saved. Said again, by the same or another job, the first stands.
    pub fn leave_unsaved(&mut self, state: &StateKey, unsaved: Unsaved) {
        self.unsaved.entry(state.clone()).or_insert(unsaved);
    }

    /// Forgets those that `settled` names; gives them.
    pub fn settle(&mut self, settled: impl Fn(&StateKey, &Unsaved) -> bool) -> Vec<(StateKey, Unsaved)> {
        let (gone, left) = std::mem::take(&mut self.unsaved).into_iter().partition(|(state, one)| settled(state, one));
        self.unsaved = left;
        let gone: std::collections::BTreeMap<StateKey, Unsaved> = gone;
        gone.into_iter().collect()
    }
}
