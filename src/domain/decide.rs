//! The one match over what can happen. An event changes what we know of a pull; then the pull is
//! *advanced*: everything that follows (jobs, waves, locks, checks, notes) is derived from the state, so
//! that a lost or repeated event does no harm. Pure: the same pull, facts and event give the same decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::approval::{Permission, Review};
use super::effect::{Act, Effect};
use super::estate::Estate;
use super::event::Event;
use super::ids::{Login, PullKey, RootKey, StateKey, Timestamp};
use super::job::JobSpec;
use super::lock::LockTable;
use super::managed::Managed;
use super::neighbour::Interest;
use super::outside::{CrossRepo, ForeignRead};
use super::page::Pages;
use super::pull::{Pull, Seen};

mod apply;
mod basis;
mod beside;
mod command;
mod finish;
mod gates;
mod held;
mod jobs;
mod observe;
mod plans;
mod publish;
mod unsaved;

pub use command::is_merge_unsaid;

/// Everything that a decision may know beside the pull and the event.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Now.
    pub now: Timestamp,
    /// The locks of the repository.
    pub locks: LockTable,
    /// The pull as the forge shows it right now, when it was asked.
    pub fresh: Option<Seen>,
    /// What the commenter may do.
    pub permission: Option<Permission>,
    /// What other open pulls have to do with the states that the event is about; of other repositories only where states are the
    /// same for all who name them.
    pub interested: Vec<(PullKey, Interest)>,
    /// The base branch's tip right now, when it was asked.
    pub base_tip: Option<super::ids::Sha>,
    /// Members of the teams that the configuration names, by `org/slug`.
    pub teams: BTreeMap<String, Vec<Login>>,
    /// Every reviewer's newest verdict, with what they may do, when the forge was asked.
    pub reviews: Option<Vec<(Review, Permission)>>,
    /// The estate of the rollout's tree, when it could be had.
    pub estate: Option<Arc<Estate>>,
    /// Reads of the rollout's states by roots of other repositories, when its plans may be complete.
    pub foreign: Vec<ForeignRead>,
    /// What never changes while the server runs.
    pub server: Server,
}

/// What never changes while the server runs.
#[derive(Clone, Debug)]
pub struct Server {
    /// Our own login on the forge.
    pub login: String,
    /// Addresses of our pages.
    pub pages: Pages,
    /// The most characters of a comment.
    pub comment_limit: usize,
    /// The least time between two edits of one comment, milliseconds.
    pub edit_gap_ms: i64,
    /// How many plan jobs of one rollout run at once, unless the repository says less.
    pub parallelism: usize,
    /// Which pulls are ours, and which programs may command us.
    pub managed: Managed,
    /// What a pull may say of other repositories.
    pub cross_repo: CrossRepo,
}

/// What a turn writes.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The pull as it is from now on.
    pub pull: Pull,
    /// The repository's locks, when they changed.
    pub locks: Option<LockTable>,
    /// Effects to perform.
    pub effects: Vec<Effect>,
    /// Events for this and other pulls.
    pub events: Vec<(PullKey, Event)>,
    /// Lines of the ledger.
    pub ledger: Vec<String>,
    /// Jobs to keep.
    pub jobs: Vec<JobSpec>,
    /// What others may know of the pull's plans, when that changed.
    pub interests: Option<Vec<Interest>>,
}

/// Decides what an event means for a pull.
pub fn decide(pull: &Pull, facts: &Facts, event: &Event) -> Decision {
    let mut turn = Turn::new(pull, facts);
    turn.hear(event);
    turn.advance();
    turn.publish();
    turn.end(&facts.locks)
}

/// A decision in the making.
struct Turn<'a> {
    pull: Pull,
    locks: LockTable,
    facts: &'a Facts,
    effects: Vec<Effect>,
    events: Vec<(PullKey, Event)>,
    ledger: Vec<String>,
    jobs: Vec<JobSpec>,
}

impl<'a> Turn<'a> {
    fn new(pull: &Pull, facts: &'a Facts) -> Self {
        Self {
            pull: pull.clone(),
            locks: facts.locks.clone(),
            facts,
            effects: Vec::new(),
            events: Vec::new(),
            ledger: Vec::new(),
            jobs: Vec::new(),
        }
    }

    /// The event as a change of what we know.
    fn hear(&mut self, event: &Event) {
        self.adopt_fresh();
        match event {
            Event::Seen(seen) => self.see(seen),
            Event::Look(_) | Event::LockFreed => {}
            Event::Comment(_, comment) => self.comment(comment),
            Event::Review(_, review) => self.review(review),
            Event::Recheck(head) => self.recheck(head),
            Event::BaseMoved { branch, tip } => self.base_moved(branch, tip),
            Event::Inspected(inspection) => self.inspected(inspection),
            Event::Refused { head, refusal, reading } => self.refused(head, refusal, reading.as_ref()),
            Event::Progress { job, steps, resources } => self.progress(job, steps, resources),
            Event::JobEnded { job, outcome } => self.job_ended(job, outcome),
            Event::StateLeft { job, root } => self.state_left(job, root),
            Event::StateMoved { state, mover } => self.state_moved(state, mover.as_ref()),
            Event::Reclaimed(states) => self.reclaimed(states),
            Event::NeighbourMoved => self.look_beside(),
            Event::Merged(merge) => self.heard_merge(merge),
        }
    }

    fn end(mut self, before: &LockTable) -> Decision {
        self.wake_waiting(before);
        let interests = self.register_interests();
        Decision {
            interests,
            locks: (self.locks != *before).then_some(self.locks),
            pull: self.pull,
            effects: self.effects,
            events: self.events,
            ledger: self.ledger,
            jobs: self.jobs,
        }
    }

    /// Whoever waits for a lock that changed is woken: the first in line has its turn, the others say whom they wait for now.
    fn wake_waiting(&mut self, before: &LockTable) {
        let moved = self.locks.locks.iter().filter(|(state, lock)| before.locks.get(*state) != Some(*lock));
        let waiting: BTreeSet<u64> =
            moved.flat_map(|(_, lock)| lock.queue.iter().copied()).filter(|pull| *pull != self.number()).collect();
        for number in waiting {
            let key = PullKey { repo: self.pull.key.repo.clone(), number };
            self.events.push((key, Event::LockFreed));
        }
    }

    fn number(&self) -> u64 {
        self.pull.key.number
    }

    fn now(&self) -> Timestamp {
        self.facts.now
    }

    fn act(&mut self, slot: impl Into<String>, act: Act) {
        self.effects.push(Effect { slot: slot.into(), not_before: None, act });
    }

    /// State and root of each of these runs, for the lock table.
    fn states(&self, roots: &[RootKey]) -> Vec<(StateKey, RootKey)> {
        let Some(rollout) = &self.pull.rollout else { return Vec::new() };
        roots
            .iter()
            .filter_map(|root| rollout.runs.get(root))
            .map(|run| (run.state.clone(), run.root.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
