//! What people hold and give back by comment: dropping plans, cancelling what is queued, locks. It never stops an apply.

use super::Answer;
use crate::domain::decide::Turn;
use crate::domain::effect::Act;
use crate::domain::ids::{Login, RootKey, StateKey};
use crate::domain::lock::{Cause, Holder, Lock, Release};
use crate::domain::reply;
use crate::domain::rollout::{ApplyStage, PlanRun};

impl Turn<'_> {
    pub(super) fn discard(&mut self, roots: &[String], by: &Login) -> Answer {
        if let Some(root) = self.applying_root() {
            return Answer::Refused(reply::applying(&root));
        }
        let named = match self.select_or_all(roots) {
            Ok(named) => named,
            Err(refusal) => return Answer::Refused(refusal),
        };
        for root in &named {
            if let Some(run) = self.run_mut(root)
                && !run.is_applied()
            {
                run.plan = PlanRun::Dropped { by: by.clone() };
                run.replans_after.clear();
            }
        }
        if let Some(rollout) = &mut self.pull.rollout {
            rollout.reach = None;
            rollout.apply = None;
        }
        self.give_back(&named);
        Answer::Done
    }

    /// Queued runs are dropped and plans stopped; a running apply is never stopped, and the reply says why.
    pub(super) fn cancel(&mut self, by: &Login) -> Answer {
        let applying = self.applying_root();
        let mut stopped = 0;
        let mut jobs = Vec::new();
        if let Some(rollout) = &mut self.pull.rollout {
            for run in rollout.runs.values_mut() {
                match &run.plan {
                    PlanRun::Running { job, .. } => jobs.push(job.clone()),
                    PlanRun::Queued | PlanRun::Blocked(_) => {}
                    _ => continue,
                }
                run.plan = PlanRun::Dropped { by: by.clone() };
                stopped += 1;
            }
            if let Some(apply) = rollout.apply.as_ref()
                && matches!(apply.stage, ApplyStage::Waiting(_) | ApplyStage::Refused(_))
            {
                rollout.apply = None;
                stopped += 1;
            }
        }
        for job in jobs {
            self.act(format!("cancel:{job}"), Act::CancelJob { job });
        }
        match (applying, stopped) {
            (Some(root), _) => Answer::Refused(reply::cannot_cancel_apply(&root)),
            (None, 0) => Answer::Said("Nothing is queued, planning or waiting here.".to_owned()),
            (None, _) => Answer::Done,
        }
    }

    pub(super) fn lock(&mut self, roots: &[String], reason: &str, by: &Login) -> Answer {
        let named = match self.select_or_all(roots) {
            Ok(named) => named,
            Err(refusal) => return Answer::Refused(refusal),
        };
        let holder =
            Holder { pull: self.number(), by: by.clone(), since: self.now(), cause: Cause::Asked(reason.to_owned()) };
        match self.locks.take(&self.states(&named), &holder) {
            Ok(locks) => {
                self.locks = locks;
                self.ledger.push(format!("{by} locks {}", list(&named)));
                Answer::Done
            }
            Err(blocked) => Answer::Refused(reply::locked(&blocked, self.number())),
        }
    }

    pub(super) fn unlock(&mut self, roots: &[String], by: &Login) -> Answer {
        if let Some(root) = self.applying_root() {
            return Answer::Refused(reply::unlock_while_applying(&root));
        }
        let named: Vec<RootKey> =
            roots.iter().map(|root| RootKey::from(root.trim_end_matches('/').to_owned())).collect();
        // A lock bears the name that its root had when it was taken; the state tells when the root was renamed since.
        let states: Vec<StateKey> = self.states(&named).into_iter().map(|(state, _)| state).collect();
        let meant =
            |state: &StateKey, lock: &Lock| roots.is_empty() || named.contains(&lock.root) || states.contains(state);
        let names: Vec<RootKey> = self
            .locks
            .locks
            .iter()
            .filter(|(state, lock)| meant(state, lock))
            .map(|(_, lock)| lock.root.clone())
            .collect();
        let others: Vec<(RootKey, u64)> = self
            .locks
            .locks
            .iter()
            .filter(|(state, lock)| meant(state, lock))
            .filter_map(|(_, lock)| Some((lock.root.clone(), lock.holder.as_ref()?.pull)))
            .filter(|(_, pull)| *pull != self.number())
            .collect();
        let which = if roots.is_empty() { Release::All } else { Release::Roots(&names) };
        let (locks, freed) = self.locks.release(self.number(), &which);
        self.locks = locks;
        if freed.roots.is_empty() {
            let others = if roots.is_empty() { Vec::new() } else { others };
            return Answer::Said(reply::nothing_to_unlock(&named, &others));
        }
        self.ledger.push(format!("{by} unlocks {}", list(&freed.roots)));
        self.end_waiting_apply();
        Answer::Said(reply::unlocked(&freed.roots))
    }

    /// An apply that waits without its locks has to be asked for again.
    pub(super) fn end_waiting_apply(&mut self) {
        if let Some(rollout) = &mut self.pull.rollout
            && rollout.apply.as_ref().is_some_and(|apply| {
                matches!(apply.stage, ApplyStage::Planning | ApplyStage::Waiting(_) | ApplyStage::Refused(_))
            })
        {
            rollout.apply = None;
        }
    }
}

fn list(roots: &[RootKey]) -> String {
    roots.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
