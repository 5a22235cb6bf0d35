//! Pulls beside this one: who is told when it moves a state or plans something else, and what it does when it is told. It changes
//! no other pull; it only sends events, each at most once for one change.

use std::collections::{BTreeMap, BTreeSet};

use super::Turn;
use crate::domain::effect::Act;
use crate::domain::event::Event;
use crate::domain::ids::{JobId, PullKey, StateKey};
use crate::domain::neighbour::{self, Because, Interest, Mover, MovingPull, Role, meets};
use crate::domain::outside::CrossRepo;
use crate::domain::pull::{Merge, PullState};
use crate::domain::rollout::{ApplyRun, PlanRun, RootRun};

/// How many merges of other pulls are remembered.
const MERGES: usize = 20;

impl Turn<'_> {
    /// Tells the open pulls that own or read this state that it moved. Readers of outputs that stay as they are need not know. Without a
    /// mover a person put the state right, and anything in it may be new.
    pub(super) fn tell_moved(&mut self, state: &StateKey, mover: Option<&Mover>) {
        let outputs = mover.and_then(|mover| mover.outputs.as_deref());
        let mut roles: BTreeMap<&PullKey, Vec<&Role>> = BTreeMap::new();
        for (key, interest) in self.facts.interested.iter().filter(|(_, interest)| interest.state == *state) {
            roles.entry(key).or_default().push(&interest.role);
        }
        let is_concerned = |role: &&Role| match role {
            Role::Owns => true,
            Role::Reads(reads) => meets(reads.as_deref(), outputs),
        };
        let mut events = Vec::new();
        for (key, roles) in roles {
            let may_know = key.repo == self.pull.key.repo || self.facts.server.cross_repo != CrossRepo::Off;
            if !may_know || !roles.iter().any(is_concerned) {
                continue;
            }
            let mover = mover.map(|mover| self.as_seen_from(key, &roles, mover));
            events.push((key.clone(), Event::StateMoved { state: state.clone(), mover }));
        }
        self.events.extend(events);
    }

    /// What another pull may know of a mover: pulls of other repositories no name, unless the server's settings allow it.
    fn as_seen_from(&self, key: &PullKey, roles: &[&Role], mover: &Mover) -> Mover {
        if key.repo == self.pull.key.repo {
            return mover.clone();
        }
        match self.facts.server.cross_repo {
            CrossRepo::Off | CrossRepo::Counts => {
                Mover { pull: None, outputs: named_by(roles, mover), ..mover.clone() }
            }
            CrossRepo::Names => {
                let pull = mover.pull.clone().map(|pull| MovingPull { repo: Some(self.pull.repo.clone()), ..pull });
                Mover { pull, ..mover.clone() }
            }
        }
    }

    /// Another pull applied this state. What was planned on it, or on outputs of it that changed, is planned again, unless it is being
    /// applied itself; the same plan keeps its digest and its approval.
    pub(super) fn state_moved(&mut self, state: &StateKey, mover: Option<&Mover>) {
        let busy = self.is_applying();
        let Some(rollout) = &mut self.pull.rollout else { return };
        let changed = mover.and_then(|mover| mover.outputs.as_deref());
        let mut stopped: Vec<JobId> = Vec::new();
        let mut moved = false;
        for run in rollout.runs.values_mut() {
            let at_rest = matches!(run.apply, ApplyRun::None | ApplyRun::Failed { .. });
            let touched =
                run.state == *state || run.reads.contains(state) && meets(run.outputs_of(state).as_deref(), changed);
            if !at_rest || !touched {
                continue;
            }
            let had_plan = matches!(run.plan, PlanRun::Done(_) | PlanRun::Failed { .. }) || run.previous.is_some();
            match &run.plan {
                PlanRun::Done(_) | PlanRun::Failed { .. } | PlanRun::AwaitsSource(_) => {}
                // It may have read the state before or after: only a new one is sure.
                PlanRun::Running { job, .. } => stopped.push(job.clone()),
                PlanRun::Queued | PlanRun::Blocked(_) | PlanRun::Unread | PlanRun::Dropped { .. } => continue,
            }
            plan_again(run);
            run.again = mover.filter(|_| had_plan).map(|mover| Because::Applied(mover.clone()));
            moved = true;
        }
        // While jobs apply, the apply itself sees to what its waves read together.
        if moved && !busy {
            rollout.reach = None;
        }
        for job in stopped {
            self.act(format!("cancel:{job}"), Act::CancelJob { job });
        }
    }

    /// At the end of a turn: what others may know of this pull's plans. When its claims changed, a turn of its own tells them, after
    /// this one is committed, so that of two pulls that change at once the later one sees the other.
    pub(super) fn register_interests(&mut self) -> Option<Vec<Interest>> {
        let now = neighbour::interests(&self.pull);
        if now == self.pull.interests {
            return None;
        }
        let states = neighbour::reclaimed(&self.pull.interests, &now);
        if !states.is_empty() {
            self.events.push((self.pull.key.clone(), Event::Reclaimed(states)));
        }
        self.pull.interests.clone_from(&now);
        Some(now)
    }

    /// Tells whoever plans on these states as well, and looks at them itself.
    pub(super) fn reclaimed(&mut self, states: &[StateKey]) {
        self.look_beside();
        let others: BTreeSet<&PullKey> = self
            .facts
            .interested
            .iter()
            .filter(|(key, interest)| {
                key.repo == self.pull.key.repo && interest.role == Role::Owns && states.contains(&interest.state)
            })
            .map(|(key, _)| key)
            .collect();
        let events: Vec<(PullKey, Event)> =
            others.into_iter().map(|key| (key.clone(), Event::NeighbourMoved)).collect();
        self.events.extend(events);
    }

    /// Takes in what the other pulls of the repository plan to change.
    pub(super) fn look_beside(&mut self) {
        let here = self.facts.interested.iter().filter(|(key, _)| key.repo == self.pull.key.repo);
        let others: Vec<(u64, Interest)> = here.map(|(key, interest)| (key.number, interest.clone())).collect();
        self.pull.neighbours = neighbour::neighbours(&self.pull.interests, &others);
    }

    /// A merge is told to the pulls that share a state with this one: the base that they plan on moves because of it.
    pub(super) fn tell_merge(&mut self, state: PullState) {
        let Some(seen) = self.pull.seen.as_ref().filter(|_| state == PullState::Merged) else { return };
        let states: BTreeSet<StateKey> =
            self.pull.interests.iter().filter(|it| it.role == Role::Owns).map(|it| it.state.clone()).collect();
        if states.is_empty() {
            return;
        }
        let merge = Merge {
            pull: self.number(),
            by: seen.author.clone(),
            base_ref: seen.base_ref.clone(),
            states: states.iter().cloned().collect(),
        };
        let mut shared: BTreeMap<&PullKey, Merge> = BTreeMap::new();
        for (key, interest) in &self.facts.interested {
            if key.repo == self.pull.key.repo && interest.role == Role::Owns && states.contains(&interest.state) {
                shared.entry(key).or_insert_with(|| merge.clone());
            }
        }
        let events: Vec<(PullKey, Event)> =
            shared.into_iter().map(|(key, merge)| (key.clone(), Event::Merged(merge))).collect();
        self.events.extend(events);
    }

    /// Another pull merged. The base may have moved before or after we heard: either way the note says whose merge it was.
    pub(super) fn heard_merge(&mut self, merge: &Merge) {
        self.pull.merges.retain(|known| known.pull != merge.pull);
        self.pull.merges.push(merge.clone());
        let excess = self.pull.merges.len().saturating_sub(MERGES);
        self.pull.merges.drain(..excess);
        let Some(rollout) = &mut self.pull.rollout else { return };
        for run in rollout.runs.values_mut().filter(|run| merge.states.contains(&run.state)) {
            if let Some(Because::BaseMoved { branch, merged, .. }) = &mut run.again
                && merged.is_none()
                && *branch == merge.base_ref
            {
                *merged = Some(merge.clone());
            }
        }
    }
}

/// The changed outputs that the readers name themselves, and no other; `None`, which is any, when one of them names none.
fn named_by(roles: &[&Role], mover: &Mover) -> Option<Vec<String>> {
    let mut named: BTreeSet<&String> = BTreeSet::new();
    for role in roles {
        let Role::Reads(Some(outputs)) = role else { return None };
        named.extend(outputs);
    }
    Some(mover.outputs.as_ref()?.iter().filter(|output| named.contains(output)).cloned().collect())
}

fn plan_again(run: &mut RootRun) {
    if matches!(run.plan, PlanRun::Done(_)) {
        run.queue_again();
    } else {
        run.plan = PlanRun::Queued;
    }
}
