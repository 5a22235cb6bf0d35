//! The lock table of one repository: which pull holds which state, and who waits in which order.
//! Transitions are pure; the store commits a table only if nobody changed it meanwhile.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ids::{Login, RootKey, StateKey, Timestamp};

/// All locks of a repository, per state and not per path, so that a renamed root keeps its lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockTable {
    /// State to its lock. A state that nobody holds or waits for has no entry.
    pub locks: BTreeMap<StateKey, Lock>,
}

/// One held state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The root's name when it was taken, for people.
    pub root: RootKey,
    /// Who holds it; `None` while it is the turn of the first in the queue.
    pub holder: Option<Holder>,
    /// Pulls that wait, first come first.
    pub queue: Vec<u64>,
}

/// The pull that holds a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its number.
    pub pull: u64,
    /// The person whose action took it.
    pub by: Login,
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub cause: Cause,
}

/// Why a lock is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A plan, under `locks: plan`.
    Plan,
    /// An apply.
    Apply,
    /// The `lock` command, with its reason.
    Asked(String),
}

/// Who is in the way of a pull that wants states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The state.
    pub state: StateKey,
    /// The root, by the holder's name for it.
    pub root: RootKey,
    /// Its holder; `None` when it is free but others are ahead in the line.
    pub holder: Option<Holder>,
    /// Pulls ahead in the line.
    pub ahead: Vec<u64>,
}

/// Which locks a release frees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release<'a> {
    /// All that the pull holds, and its places in every line.
    All,
    /// Only those of these roots.
    Roots(&'a [RootKey]),
    /// Only those taken by a plan (a pull that went back to draft).
    Plans,
    /// All but these states: what a new head no longer changes.
    AllBut(&'a [StateKey]),
}

/// What a release did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// The roots that were freed, sorted.
    pub roots: Vec<RootKey>,
    /// Pulls whose turn has come, each once, in the order of the line.
    pub wake: Vec<u64>,
}

impl LockTable {
    /// What keeps `pull` from these states: another holder, or others ahead in the line of a free one. Empty: nothing.
    pub fn blocked(&self, pull: u64, states: &[StateKey]) -> Vec<Blocked> {
        let _ = (pull, states);
        unimplemented!()
    }

    /// Takes all the states or none. Those that `pull` holds already keep their first holder record, but an apply
    /// takes over the cause of a plan. Leaves the line of what it takes.
    pub fn take(&self, wanted: &[(StateKey, RootKey)], holder: &Holder) -> Result<LockTable, Vec<Blocked>> {
        let _ = (wanted, holder);
        unimplemented!()
    }

    /// Stands in line (at the end, once) for each of these states that another pull holds or waits for.
    #[must_use]
    pub fn join(&self, pull: u64, wanted: &[(StateKey, RootKey)]) -> LockTable {
        let _ = (pull, wanted);
        unimplemented!()
    }

    /// `pull` had its turn without keeping these states (it plans, under `locks: apply`): it leaves their lines, and the next is woken.
    pub fn served(&self, pull: u64, states: &[StateKey]) -> (LockTable, Freed) {
        let _ = (pull, states);
        unimplemented!()
    }

    /// Frees what `which` names of what `pull` holds. Again: frees nothing more.
    pub fn release(&self, pull: u64, which: &Release<'_>) -> (LockTable, Freed) {
        let _ = (pull, which);
        unimplemented!()
    }
}
