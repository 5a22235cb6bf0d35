//! What a pull no longer needs is given back: the locks of roots that change nothing, or that a newer head has left. It never gives
//! back what an apply worked on, nor what a person asked for.

use super::Turn;
use crate::domain::ids::{RootKey, StateKey};
use crate::domain::lock::{Cause, Release};
use crate::domain::note::markdown::code;
use crate::domain::rollout::{ApplyRun, ApplyStage, PlanRun, Rollout, Stage};

impl Turn<'_> {
    /// A root that plans no change, or needs no plan because nothing that it reads changes, is not held.
    pub(super) fn let_go_of_unchanged(&mut self) {
        let Some(rollout) = &self.pull.rollout else { return };
        let asked = rollout.apply.as_ref().is_some_and(|apply| apply.stage != ApplyStage::Done);
        let unchanged: Vec<RootKey> = rollout
            .runs
            .values()
            .filter(|run| !run.is_applied() && run.replans_after.is_empty())
            .filter(|run| !run.lacks_plan() && !run.changes_something())
            .filter(|run| {
                let cause = self.own_cause(&run.state);
                cause == Some(&Cause::Plan) || cause == Some(&Cause::Apply) && !asked && self.is_spare(&run.state)
            })
            .map(|run| run.root.clone())
            .collect();
        self.give_back(&unchanged);
    }

    /// A draft, or a head that was refused, took no lock and stood in no line. Its plans stay what they are, but where another pull is in
    /// the way: those are made again when their turn comes.
    pub(super) fn take_up_again(&mut self) {
        let Some(rollout) = &self.pull.rollout else { return };
        let planned: Vec<(RootKey, StateKey)> = rollout
            .runs
            .values()
            .filter(|run| run.changes_something() && run.apply == ApplyRun::None)
            .map(|run| (run.root.clone(), run.state.clone()))
            .collect();
        for (root, state) in planned {
            if self.locks.blocked(self.number(), std::slice::from_ref(&state)).is_empty() {
                self.hold_for_plan(&root);
            } else if let Some(run) = self.run_mut(&root) {
                run.plan = PlanRun::Queued;
            }
        }
        if let Some(rollout) = self.pull.rollout.as_mut().filter(|rollout| !rollout.is_planned()) {
            rollout.reach = None;
        }
    }

    /// Locks of roots that this head does not reach any more are freed, and the note says so.
    pub(super) fn let_go_of_left(&mut self) {
        let Some(rollout) = &self.pull.rollout else { return };
        let here = |state: &StateKey| rollout.runs.values().any(|run| run.state == *state);
        let left: Vec<(StateKey, RootKey)> = self
            .locks
            .locks
            .iter()
            .filter(|(state, _)| !here(state) && self.own_cause(state).is_some_and(is_ours_to_free))
            .map(|(state, lock)| (state.clone(), lock.root.clone()))
            .collect();
        let (free, kept): (Vec<_>, Vec<_>) = left.into_iter().partition(|(state, _)| self.is_spare(state));
        let mut keep: Vec<StateKey> = rollout.runs.values().map(|run| run.state.clone()).collect();
        keep.extend(
            self.locks
                .locks
                .keys()
                .filter(|state| !free.iter().any(|(gone, _)| gone == *state))
                .filter(|state| self.own_cause(state).is_some())
                .cloned(),
        );
        let (locks, _) = self.locks.release(self.number(), &Release::AllBut(&keep));
        self.locks = locks;
        let Some(rollout) = &mut self.pull.rollout else { return };
        rollout.notices.extend(free.iter().map(|(_, root)| {
            format!(
                "The root {} is not changed by this head any more: it is not applied, and its lock is free.",
                code(&root.to_string())
            )
        }));
        rollout.notices.extend(kept.iter().map(|(_, root)| {
            format!(
                "The root {} is not changed by this head any more, but an apply of this pull changed its state: it stays locked until the pull ends, and the state differs from the code until it is applied again.",
                code(&root.to_string())
            )
        }));
    }

    /// Leaves each line that keeps others waiting for nothing: of a root that is not to be planned any more, and, when its turn has come,
    /// of one that has its plan (under `locks: plan` that takes the lock) or that cannot be planned before its source.
    /// A refused head stands in no line at all.
    pub(super) fn leave_lines(&mut self) {
        let Some(rollout) = &self.pull.rollout else { return };
        let number = self.number();
        // Nothing is planned for a branch that is left alone, and a draft is planned whoever holds what.
        let none =
            matches!(rollout.stage, Stage::Unmanaged(_)) || self.pull.seen.as_ref().is_some_and(|seen| seen.draft);
        let (mut done, mut over) = (Vec::new(), Vec::new());
        for (state, lock) in self.locks.locks.iter().filter(|(_, lock)| lock.queue.contains(&number)) {
            let turn = lock.holder.is_none() && lock.queue.first() == Some(&number);
            let run = rollout.runs.values().find(|run| run.state == *state);
            match run.map(|run| &run.plan) {
                _ if none => over.push(state.clone()),
                Some(PlanRun::Dropped { .. } | PlanRun::Unread | PlanRun::Failed { .. }) => over.push(state.clone()),
                Some(PlanRun::Done(_) | PlanRun::Running { .. }) if turn => {
                    done.extend(run.map(|run| run.root.clone()));
                }
                Some(PlanRun::AwaitsSource(_)) if turn => over.push(state.clone()),
                Some(PlanRun::Queued)
                    if turn && run.is_some_and(|run| !super::basis::is_settled(rollout, &run.root)) =>
                {
                    over.push(state.clone());
                }
                _ => {}
            }
        }
        for root in done {
            self.hold_for_plan(&root);
        }
        let (locks, _) = self.locks.served(number, &over);
        self.locks = locks;
    }

    /// A head that is refused, because of a conflict or of its settings, can neither be planned nor applied: until it is mended it keeps
    /// nobody waiting.
    pub(super) fn let_go_of_refused(&mut self) {
        if !self
            .pull
            .rollout
            .as_ref()
            .is_some_and(|rollout| matches!(rollout.stage, Stage::Refused(_) | Stage::Unmanaged(_)))
        {
            return;
        }
        let stays = |state: &StateKey| {
            self.own_cause(state).is_some_and(|cause| !is_ours_to_free(cause)) || !self.is_spare(state)
        };
        let kept: Vec<StateKey> = self.locks.locks.keys().filter(|state| stays(state)).cloned().collect();
        let (locks, _) = self.locks.release(self.number(), &Release::AllBut(&kept));
        self.locks = locks;
    }

    /// Drops the locks of these roots, but for those that an apply worked on or a person asked for.
    pub(super) fn give_back(&mut self, roots: &[RootKey]) {
        let Some(rollout) = &self.pull.rollout else { return };
        let spare: Vec<RootKey> = roots
            .iter()
            .filter_map(|root| rollout.runs.get(root))
            .filter(|run| self.own_cause(&run.state).is_some_and(is_ours_to_free) && self.is_spare(&run.state))
            // The lock bears the name that the root had when it was taken.
            .filter_map(|run| Some(self.locks.locks.get(&run.state)?.root.clone()))
            .collect();
        if !spare.is_empty() {
            let (locks, _) = self.locks.release(self.number(), &Release::Roots(&spare));
            self.locks = locks;
        }
    }

    /// Why this pull holds a state, if it does.
    fn own_cause(&self, state: &StateKey) -> Option<&Cause> {
        let holder = self.locks.locks.get(state)?.holder.as_ref()?;
        (holder.pull == self.number()).then_some(&holder.cause)
    }

    /// Whether no apply of this pull worked or works on the state.
    fn is_spare(&self, state: &StateKey) -> bool {
        let works = |rollout: &Rollout| {
            rollout.runs.values().any(|run| run.state == *state && matches!(run.apply, ApplyRun::Running { .. }))
        };
        !self.pull.touched.contains(state) && !self.pull.rollout.iter().chain(&self.pull.retired).any(works)
    }
}

fn is_ours_to_free(cause: &Cause) -> bool {
    matches!(cause, Cause::Plan | Cause::Apply)
}
