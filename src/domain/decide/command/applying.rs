//! What an `apply` by comment needs before it begins: plans that are there and were seen, requirements that hold, a scope, the
//! locks. It asks no gate and starts no job.

use super::{Answer, is_before};
use crate::domain::command::{ApplyTarget, Command};
use crate::domain::config::Requirement;
use crate::domain::decide::Turn;
use crate::domain::decide::apply::{has_work, in_scope};
use crate::domain::event::Comment;
use crate::domain::ids::StateKey;
use crate::domain::pull::{Pull, PullState, Seen};
use crate::domain::reply;
use crate::domain::rollout::{ApplyRun, ApplyStage, PlanRun, Rollout, RootRun, Scope, Stage};

impl Turn<'_> {
    pub(super) fn apply(&mut self, target: &ApplyTarget, comment: &Comment) -> Answer {
        let by = &comment.by;
        let Some(rollout) = self.pull.rollout.clone() else { return Answer::Refused(reply::not_seen()) };
        if let Some(refusal) = self.not_applicable(&rollout) {
            return Answer::Refused(refusal);
        }
        if rollout.planned_at.is_some_and(|shown| is_before(comment, shown)) {
            return Answer::Refused(reply::older_than_the_plan("applied", "apply"));
        }
        let scope = match self.scope(&rollout, target) {
            Ok(scope) => scope,
            Err(refusal) => return Answer::Refused(refusal),
        };
        if let Some(refusal) = unmet_requirement(self, &rollout) {
            return Answer::Refused(refusal);
        }
        match self.lock_for_apply(&scope, by) {
            Err(blocked) => Answer::Refused(reply::locked(&blocked, self.number())),
            Ok(()) => {
                self.begin_apply(scope, by);
                Answer::Done
            }
        }
    }

    /// Why nothing can be applied where the rollout stands, whatever the gate says.
    pub(super) fn not_applicable(&self, rollout: &Rollout) -> Option<String> {
        if self.pull.seen.as_ref().is_some_and(|seen| seen.draft) {
            return Some(reply::draft());
        }
        if let Some(apply) =
            rollout.apply.as_ref().filter(|apply| matches!(apply.stage, ApplyStage::Planning | ApplyStage::Applying))
        {
            return Some(reply::already_applying(apply));
        }
        let unsaved = self.unsaved_here();
        if !unsaved.is_empty() {
            return Some(reply::unsaved(&unsaved));
        }
        if let Stage::Refused(refusal) = &rollout.stage {
            return Some(format!("Not applied. {}: {}", refusal.title, refusal.text));
        }
        let held_up = rollout.runs.values().filter(|run| matches!(run.plan, PlanRun::Blocked(_)));
        let states: Vec<StateKey> = held_up.map(|run| run.state.clone()).collect();
        let blocked = self.locks.blocked(self.number(), &states);
        if !blocked.is_empty() {
            return Some(reply::locked(&blocked, self.number()));
        }
        if rollout.stage == Stage::Inspecting || !rollout.is_planned() {
            return Some(reply::still_planning(rollout));
        }
        if self.facts.base_tip.as_ref().is_some_and(|tip| *tip != rollout.base) {
            return Some(reply::base_moved(rollout));
        }
        if rollout.runs.is_empty() {
            return Some(reply::nothing_to_apply(&rollout.head));
        }
        if let Some(run) = rollout.runs.values().find(|run| matches!(run.apply, ApplyRun::Failed { .. })) {
            return Some(reply::failed_before(&run.root));
        }
        if rollout.runs.values().all(|run| run.is_applied() || run.is_unchanged()) {
            return Some(reply::nothing_to_apply(&rollout.head));
        }
        None
    }

    pub(super) fn scope(&self, rollout: &Rollout, target: &ApplyTarget) -> Result<Scope, String> {
        let scope = match target {
            ApplyTarget::All => Scope::All,
            ApplyTarget::Wave(wave) if *wave >= 1 && *wave <= rollout.waves.len() => Scope::UpTo(*wave),
            ApplyTarget::Wave(wave) => return Err(reply::no_such_wave(*wave, rollout.waves.len())),
            ApplyTarget::Roots(roots) => Scope::Roots(self.select(roots, None)?),
        };
        // A wave with a plan that failed or was dropped has no digest: nothing of it can go.
        let meant = in_scope(rollout, &scope);
        let incomplete =
            rollout.runs.values().filter(|run| matches!(run.plan, PlanRun::Failed { .. } | PlanRun::Dropped { .. }));
        for run in incomplete {
            let beside = rollout.wave_of(&run.root).into_iter().flat_map(|wave| rollout.wave(wave));
            let holds = |other: &RootRun| meant.contains(&other.root) && has_work(rollout, other);
            if meant.contains(&run.root) || beside.into_iter().any(holds) {
                return Err(reply::no_plan(&run.root));
            }
        }
        Ok(scope)
    }
}

/// Whether an apply hangs on what the forge has yet to work out, whether the pull merges: asking makes it begin, and it takes a moment.
pub fn is_merge_unsaid(pull: &Pull, seen: &Seen, command: &Command) -> bool {
    let asks = |rollout: &Rollout| rollout.config.apply.requires.contains(&Requirement::Mergeable);
    seen.mergeable.is_none()
        && seen.state == PullState::Open
        && matches!(command, Command::Apply(_))
        && pull.rollout.as_ref().is_some_and(asks)
}

/// The first of `apply.requires` that does not hold.
fn unmet_requirement(turn: &Turn<'_>, rollout: &Rollout) -> Option<String> {
    let seen = turn.pull.seen.as_ref()?;
    rollout.config.apply.requires.iter().find_map(|requirement| {
        let held = match requirement {
            Requirement::Approved => is_approved(turn, rollout),
            Requirement::Mergeable => seen.mergeable == Some(true),
            Requirement::Undiverged => rollout.undiverged,
        };
        (!held).then(|| reply::unmet(*requirement, seen.mergeable))
    })
}

fn is_approved(turn: &Turn<'_>, rollout: &Rollout) -> bool {
    use crate::domain::approval::Verdict;
    let reviews = &turn.pull.reviews;
    let asked = reviews.iter().any(|review| review.verdict == Verdict::ChangesRequested);
    let approved = reviews.iter().any(|review| review.verdict == Verdict::Approved && review.head == rollout.head);
    approved && !asked
}
