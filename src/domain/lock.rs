//! The lock table of one repository: which pull holds which state, and who waits in which order.
//! Transitions are pure; the store commits a table only if nobody changed it meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ids::{Login, RootKey, StateKey, Timestamp};

/// All locks of a repository, per state and not per path, so that a renamed root keeps its lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockTable {
    /// State to its lock. A state that nobody holds or waits for has no entry.
    pub locks: BTreeMap<StateKey, Lock>,
    /// States that an apply left outside of their backend.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unsaved: BTreeMap<StateKey, Unsaved>,
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
        let mut blocked: Vec<Blocked> = Vec::new();
        for state in states {
            let Some(lock) = self.locks.get(state) else { continue };
            let ahead = lock.ahead_of(pull);
            let in_the_way = match &lock.holder {
                Some(holder) => holder.pull != pull,
                None => !ahead.is_empty(),
            };
            if in_the_way && !blocked.iter().any(|seen| seen.state == *state) {
                let (root, holder) = (lock.root.clone(), lock.holder.clone());
                blocked.push(Blocked { state: state.clone(), root, holder, ahead });
            }
        }
        blocked
    }

    /// Takes all the states or none. Those that `pull` holds already keep their first holder record, but an apply or
    /// a person's `lock` takes over the cause of a plan. Leaves the line of what it takes.
    pub fn take(&self, wanted: &[(StateKey, RootKey)], holder: &Holder) -> Result<LockTable, Vec<Blocked>> {
        let states: Vec<StateKey> = wanted.iter().map(|(state, _)| state.clone()).collect();
        let blocked = self.blocked(holder.pull, &states);
        if !blocked.is_empty() {
            return Err(blocked);
        }
        let mut table = self.clone();
        for (state, root) in wanted {
            let free = || Lock { root: root.clone(), holder: None, queue: Vec::new() };
            let lock = table.locks.entry(state.clone()).or_insert_with(free);
            lock.queue.retain(|waiting| *waiting != holder.pull);
            match &mut lock.holder {
                Some(held) if held.cause == Cause::Plan => held.cause = holder.cause.clone(),
                Some(_) => {}
                None => {
                    lock.root = root.clone();
                    lock.holder = Some(holder.clone());
                }
            }
        }
        Ok(table)
    }

    /// Stands in line (once) for each of these states that another pull holds or waits for: at the end, but never
    /// behind a pull that it precedes in another line. Two pulls that stood in two lines in opposite orders would
    /// wait for each other for ever.
    #[must_use]
    pub fn join(&self, pull: u64, wanted: &[(StateKey, RootKey)]) -> LockTable {
        let mut table = self.clone();
        for (state, _) in wanted {
            let behind = table.behind(pull);
            let Some(lock) = table.locks.get_mut(state) else { continue };
            let ours = lock.holder.as_ref().is_some_and(|holder| holder.pull == pull);
            if ours || lock.queue.contains(&pull) {
                continue;
            }
            let place = lock.queue.iter().position(|other| behind.contains(other)).unwrap_or(lock.queue.len());
            lock.queue.insert(place, pull);
        }
        table
    }

    /// `pull` had its turn without keeping these states (it plans, under `locks: apply`): it leaves their lines, and the next is woken.
    pub fn served(&self, pull: u64, states: &[StateKey]) -> (LockTable, Freed) {
        self.change(|state, lock| {
            if states.contains(state) {
                lock.queue.retain(|waiting| *waiting != pull);
            }
        })
    }

    /// Frees what `which` names of what `pull` holds. Again: frees nothing more.
    pub fn release(&self, pull: u64, which: &Release<'_>) -> (LockTable, Freed) {
        self.change(|state, lock| {
            if lock.holder.as_ref().is_some_and(|held| held.pull == pull && which.frees(state, &lock.root, held)) {
                lock.holder = None;
            }
            if which.leaves_line(state) {
                lock.queue.retain(|waiting| *waiting != pull);
            }
        })
    }

    /// Changes every lock, drops those that nobody holds or waits for, and says what became free and whose turn has come.
    fn change(&self, change: impl Fn(&StateKey, &mut Lock)) -> (LockTable, Freed) {
        let mut table = LockTable { locks: BTreeMap::new(), unsaved: self.unsaved.clone() };
        let mut freed = Freed::default();
        for (state, before) in &self.locks {
            let mut lock = before.clone();
            change(state, &mut lock);
            if before.holder.is_some() && lock.holder.is_none() {
                freed.roots.push(lock.root.clone());
            }
            // The first of a free line was woken when it became the first.
            let turn = |lock: &Lock| if lock.holder.is_none() { lock.queue.first().copied() } else { None };
            if let Some(next) = turn(&lock)
                && turn(before) != Some(next)
                && !freed.wake.contains(&next)
            {
                freed.wake.push(next);
            }
            if lock.holder.is_some() || !lock.queue.is_empty() {
                table.locks.insert(state.clone(), lock);
            }
        }
        freed.roots.sort();
        freed.roots.dedup();
        (table, freed)
    }

    /// Every pull that stands behind `pull` in some line, or behind one of those in another.
    fn behind(&self, pull: u64) -> BTreeSet<u64> {
        let mut behind = BTreeSet::new();
        let mut look = vec![pull];
        while let Some(front) = look.pop() {
            for lock in self.locks.values() {
                let Some(place) = lock.queue.iter().position(|waiting| *waiting == front) else { continue };
                look.extend(lock.queue[place + 1..].iter().filter(|other| behind.insert(**other)));
            }
        }
        behind
    }
}

impl Lock {
    /// The pulls before `pull` in the line; all of it when `pull` does not stand there.
    fn ahead_of(&self, pull: u64) -> Vec<u64> {
        self.queue.iter().copied().take_while(|waiting| *waiting != pull).collect()
    }
}

impl Release<'_> {
    fn frees(&self, state: &StateKey, root: &RootKey, held: &Holder) -> bool {
        match self {
            Release::All => true,
            Release::Roots(roots) => roots.contains(root),
            Release::Plans => held.cause == Cause::Plan,
            Release::AllBut(kept) => !kept.contains(state),
        }
    }

    /// Whoever no longer wants a state must not keep others waiting behind it.
    fn leaves_line(&self, state: &StateKey) -> bool {
        match self {
            Release::All => true,
            Release::Roots(_) | Release::Plans => false,
            Release::AllBut(kept) => !kept.contains(state),
        }
    }
}

mod unsaved;
pub use unsaved::Unsaved;

#[cfg(test)]
mod tests;
