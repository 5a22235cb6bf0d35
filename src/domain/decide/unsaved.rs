//! States that an apply could not save: who is told, what stands still, and how a person settles it. Nothing here decides that a state
//! is saved; only a person's word does.

use super::Turn;
use crate::domain::event::Comment;
use crate::domain::ids::{JobId, RootKey, StateKey};
use crate::domain::job::StateLeft;
use crate::domain::lock::Unsaved;
use crate::domain::reply;
use crate::domain::rollout::{ApplyRun, Blocker, Hold, PlanRun, RootRun};

impl Turn<'_> {
    /// A job uploaded the state that its backend did not take: before its end, or after it was given up for lost.
    pub(super) fn state_left(&mut self, job: &JobId, root: &RootKey) {
        let ours = |run: &&mut RootRun| match &run.apply {
            ApplyRun::Running { job: known, .. } | ApplyRun::Failed { job: known, .. } => known == job,
            _ => false,
        };
        let rollouts = self.pull.rollout.iter_mut().chain(self.pull.retired.iter_mut());
        let found = rollouts.flat_map(|rollout| rollout.runs.values_mut()).find(ours).map(|run| {
            if let ApplyRun::Failed { left, .. } = &mut run.apply {
                *left = StateLeft::Kept;
            }
            run.state.clone()
        });
        // The rollout may have gone since; the root is most likely still the same one.
        let Some(state) = found.or_else(|| self.run(root).map(|run| run.state.clone())) else {
            self.ledger.push(format!("the job {job} left a state of {root} that no run knows any more; it is kept"));
            return;
        };
        self.leave_unsaved(&state, root, job);
        self.tell_moved(&state, None);
    }

    /// Nothing plans or applies on this state from now on.
    pub(super) fn leave_unsaved(&mut self, state: &StateKey, root: &RootKey, job: &JobId) {
        if !self.locks.unsaved.contains_key(state) {
            self.ledger.push(format!("the state of {root} is not saved: the job {job} left it"));
        }
        let unsaved = Unsaved { root: root.clone(), job: job.clone(), pull: self.number(), since: self.now() };
        self.locks.leave_unsaved(state, unsaved);
    }

    /// Plans that were made on a state that is not saved, however they came about, are dropped: they lack what is there.
    pub(super) fn drop_plans_on_unsaved(&mut self) {
        let Some(rollout) = self.pull.rollout.as_mut().filter(|_| !self.locks.unsaved.is_empty()) else { return };
        let unsaved = |run: &&mut RootRun| run.apply == ApplyRun::None && self.locks.unsaved.contains_key(&run.state);
        for run in rollout.runs.values_mut().filter(unsaved) {
            if matches!(run.plan, PlanRun::Done(_)) {
                run.queue_again();
                rollout.reach = None;
            }
        }
    }

    /// What stands in the way of a plan on this state.
    pub(super) fn unsaved_in_the_way(&self, state: &StateKey) -> Option<Blocker> {
        let unsaved = self.locks.unsaved.get(state)?;
        Some(Blocker {
            pull: unsaved.pull,
            by: crate::domain::ids::Login::from(""),
            since: unsaved.since,
            ahead: Vec::new(),
            how: Hold::Unsaved(unsaved.job.clone()),
        })
    }

    /// The unsaved states of this pull's roots, by the names that they have here.
    pub(super) fn unsaved_here(&self) -> Vec<(RootKey, Unsaved)> {
        let runs = self.pull.rollout.iter().flat_map(|rollout| rollout.runs.values());
        runs.filter_map(|run| Some((run.root.clone(), self.locks.unsaved.get(&run.state)?.clone()))).collect()
    }

    /// `settle`: somebody pushed what was left, or knows that it is not needed. What this pull plans on it is planned anew, and so is
    /// what others do.
    pub(super) fn settle(&mut self, roots: &[String], comment: &Comment) -> Result<String, String> {
        let named: Vec<RootKey> =
            roots.iter().map(|root| RootKey::from(root.trim_end_matches('/').to_owned())).collect();
        let states: Vec<StateKey> = self.states(&named).into_iter().map(|(state, _)| state).collect();
        let settled = self.locks.settle(|state, one| named.contains(&one.root) || states.contains(state));
        if settled.is_empty() {
            let all: Vec<RootKey> = self.locks.unsaved.values().map(|one| one.root.clone()).collect();
            return Err(reply::nothing_to_settle(&named, &all));
        }
        let mut here = Vec::new();
        for (state, unsaved) in &settled {
            self.ledger.push(format!(
                "{} settles the state of {}, which the job {} left",
                comment.by, unsaved.root, unsaved.job
            ));
            self.tell_moved(state, None);
            let runs = self.pull.rollout.iter().flat_map(|rollout| rollout.runs.values());
            here.extend(runs.filter(|run| run.state == *state).map(|run| run.root.clone()));
        }
        if self.pull.is_open() && self.applying_root().is_none() {
            self.plan_roots(&here);
        } else {
            here.clear();
        }
        let names: Vec<RootKey> = settled.into_iter().map(|(_, unsaved)| unsaved.root).collect();
        Ok(reply::settled(&names, here.len()))
    }
}
