//! The end of a pull: closed or merged. Plans stop, locks are freed at once, and a running apply keeps its lock until it ends.

use super::Turn;
use crate::domain::effect::{Act, CheckName, CheckReport, CheckState};
use crate::domain::ids::StateKey;
use crate::domain::lock::Release;
use crate::domain::pull::PullState;
use crate::domain::rollout::{ApplyRun, PlanRun, Rollout};

impl Turn<'_> {
    pub(super) fn finish(&mut self, state: PullState) {
        if let Some(rollout) = &mut self.pull.rollout {
            let mut cancel = Vec::new();
            for run in rollout.runs.values_mut() {
                if let PlanRun::Running { job, .. } = &run.plan {
                    cancel.push(job.clone());
                    run.plan = PlanRun::Dropped { by: "the end of the pull".into() };
                }
            }
            for job in cancel {
                self.act(format!("cancel:{job}"), Act::CancelJob { job });
            }
        }
        self.close_checks(state);
        self.tell_merge(state);
        self.free();
    }

    /// Frees what a closed pull holds, except what an apply still works on. Harmless when repeated.
    pub(super) fn free(&mut self) {
        let busy: Vec<StateKey> = self
            .pull
            .rollout
            .iter()
            .chain(&self.pull.retired)
            .flat_map(|rollout| rollout.runs.values())
            .filter(|run| matches!(run.apply, ApplyRun::Running { .. }))
            .map(|run| run.state.clone())
            .collect();
        if busy.is_empty() {
            self.pull.touched.clear();
        }
        let which = if busy.is_empty() { Release::All } else { Release::AllBut(&busy) };
        let (locks, freed) = self.locks.release(self.number(), &which);
        if !freed.roots.is_empty() {
            let roots: Vec<&str> = freed.roots.iter().map(crate::domain::ids::RootKey::dir).collect();
            self.ledger.push(format!("locks freed with the end of the pull: {}", roots.join(", ")));
        }
        self.locks = locks;
    }

    /// A draft gives back what its plans hold; what an apply holds stays.
    pub(super) fn back_to_draft(&mut self) {
        let (locks, _) = self.locks.release(self.number(), &Release::Plans);
        self.locks = locks;
    }

    /// No check of ours is left pending on the last head.
    fn close_checks(&mut self, state: PullState) {
        let Some(rollout) = self.pull.rollout.clone() else { return };
        if state == PullState::Merged && is_settled(&rollout) {
            return;
        }
        for name in [CheckName::Plan, CheckName::Apply] {
            let title = match state {
                PullState::Merged => "merged before everything was applied",
                PullState::Closed | PullState::Open => "the pull was closed",
            };
            let report = CheckReport {
                head: rollout.head.clone(),
                name,
                state: CheckState::Superseded,
                title: title.to_owned(),
                summary: String::new(),
                url: Some(self.facts.server.pages.rollout(&rollout.id)),
            };
            self.act(super::observe::check_slot(&report), Act::Check(report));
        }
    }
}

/// Whether both checks already said success.
fn is_settled(rollout: &Rollout) -> bool {
    rollout.is_planned()
        && rollout
            .runs
            .values()
            .all(|run| run.is_applied() || run.planned().is_some_and(|planned| !planned.plan.changes_something()))
}
