//! What the forge shows: a pull's head, base and state, and when a new rollout begins. It starts nothing by itself
//! but the inspection of a head.

use super::Turn;
use crate::domain::approval::{Permission, Review};
use crate::domain::effect::{Act, CheckName, CheckReport, CheckState};
use crate::domain::event::{Event, InspectedRoot, Inspection, Reading};
use crate::domain::ids::{RolloutId, Sha};
use crate::domain::neighbour::Because;
use crate::domain::pull::{Merge, PullState, Seen};
use crate::domain::rollout::{Apply, ApplyRun, ApplyStage, PlanRun, Refusal, Rollout, RootRun, Stage};

impl Turn<'_> {
    /// Takes what the forge answered when it was asked for this turn.
    pub(super) fn adopt_fresh(&mut self) {
        if let Some(fresh) = self.facts.fresh.clone() {
            self.adopt(&fresh);
        }
        if let (Some(tip), Some(base_ref)) =
            (self.facts.base_tip.clone(), self.pull.rollout.as_ref().map(|rollout| rollout.base_ref.clone()))
        {
            self.base_moved(&base_ref, &tip);
        }
        if let Some(reviews) = &self.facts.reviews {
            self.pull.reviews =
                reviews.iter().filter(|(_, may)| *may >= Permission::Write).map(|(review, _)| review.clone()).collect();
        }
    }

    /// A snapshot that a delivery or the sweep brought. Deliveries promise no order: an older one changes nothing,
    /// and one of the same second that differs is checked by a look at the forge.
    pub(super) fn see(&mut self, seen: &Seen) {
        let ambiguous = self.pull.seen.as_ref().is_some_and(|known| {
            known.updated == seen.updated && (known.head != seen.head || known.state != seen.state)
        });
        self.adopt(seen);
        if ambiguous {
            self.events.push((self.pull.key.clone(), Event::Look(seen.repo.clone())));
        }
    }

    fn adopt(&mut self, seen: &Seen) {
        if self.pull.seen.as_ref().is_some_and(|known| known.updated > seen.updated) {
            return;
        }
        let before = self.pull.seen.replace(seen.clone());
        self.pull.repo.clone_from(&seen.repo);
        if seen.state != PullState::Open {
            self.finish(seen.state);
            return;
        }
        let reopened = before.as_ref().is_some_and(|known| known.state != PullState::Open);
        let moved = self
            .pull
            .rollout
            .as_ref()
            .is_none_or(|rollout| rollout.head != seen.head || rollout.base_ref != seen.base_ref);
        if moved || reopened {
            self.begin(Vec::new());
        }
        match (before.map(|known| known.draft), seen.draft) {
            (Some(false), true) => self.back_to_draft(),
            (Some(true), false) => self.take_up_again(),
            _ => {}
        }
    }

    /// Begins a rollout of the head that is known, in place of the one before.
    pub(super) fn begin(&mut self, args: Vec<String>) {
        let Some(seen) = self.pull.seen.clone() else { return };
        if let Some(old) = self.pull.rollout.take() {
            self.retire(old, &seen.head);
        }
        self.pull.rollouts += 1;
        let key = &self.pull.key;
        let id = RolloutId::new(format!("{}-{}-{}-{}", key.repo.forge, key.repo.id, key.number, self.pull.rollouts));
        let stage = match self.facts.server.managed.turns_away(&seen.base_ref) {
            Some(refusal) => Stage::Unmanaged(refusal),
            None if self.is_blocked_fork() => Stage::Refused(fork_refusal(&seen.head)),
            None => Stage::Inspecting,
        };
        let reads = stage == Stage::Inspecting;
        let rollout = Rollout::of_head(id, seen.head.clone(), seen.base_ref.clone(), self.now());
        self.pull.rollout = Some(Rollout { stage, args, ..rollout });
        if reads {
            self.inspect(seen.head, seen.base_ref, seen.base);
        }
    }

    /// Whether the head comes from a fork, and nobody let it run.
    fn is_blocked_fork(&self) -> bool {
        self.pull.seen.as_ref().is_some_and(|seen| seen.fork && !self.pull.permitted.contains(&seen.head))
    }

    pub(super) fn inspect(&mut self, head: Sha, base_ref: String, base: Sha) {
        let Some(rollout) = &self.pull.rollout else { return };
        let (rollout, reading) = (rollout.id.clone(), rollout.readings);
        self.act("inspect", Act::Inspect { rollout, head, base_ref, base, reading });
    }

    /// Reads the same head again on another base.
    pub(super) fn read_on(&mut self, tip: Sha) {
        let Some(rollout) = &mut self.pull.rollout else { return };
        rollout.readings += 1;
        rollout.reading = true;
        rollout.moved_base = Some(tip.clone());
        let (head, base_ref) = (rollout.head.clone(), rollout.base_ref.clone());
        self.inspect(head, base_ref, tip);
    }

    /// An earlier rollout ends: its plans stop, its checks are closed, and an apply that runs goes on for its own head.
    fn retire(&mut self, old: Rollout, new_head: &Sha) {
        for run in old.runs.values() {
            if let PlanRun::Running { job, .. } = &run.plan {
                self.act(format!("cancel:{job}"), Act::CancelJob { job: job.clone() });
            }
        }
        if old.head != *new_head {
            for name in [CheckName::Plan, CheckName::Apply] {
                let report = CheckReport {
                    head: old.head.clone(),
                    name,
                    state: CheckState::Superseded,
                    title: format!("superseded by {}", new_head.short()),
                    summary: String::new(),
                    url: Some(self.facts.server.pages.rollout(&old.id)),
                };
                self.act(check_slot(&report), Act::Check(report));
            }
        }
        if old.runs.values().any(|run| matches!(run.apply, ApplyRun::Running { .. })) {
            self.pull.retired.push(old);
        }
    }

    pub(super) fn review(&mut self, review: &Review) {
        if self.facts.reviews.is_none() {
            self.pull.reviews.retain(|known| !known.by.same(&review.by));
            self.pull.reviews.push(review.clone());
        }
    }

    /// Somebody pressed "re-run" on a check of this head.
    pub(super) fn recheck(&mut self, head: &Sha) {
        let current = self.pull.rollout.as_ref().is_some_and(|rollout| rollout.head == *head);
        if current && self.pull.is_open() && !self.is_applying() {
            self.begin(Vec::new());
        }
    }

    /// The branch that this pull merges into has a new tip: the same head is read again on top of it, and what it
    /// does not touch keeps its plans.
    pub(super) fn base_moved(&mut self, branch: &str, tip: &Sha) {
        if !self.pull.is_open() {
            return;
        }
        let applying = self.is_applying();
        let blocked_fork = self.is_blocked_fork();
        let Some(rollout) = &mut self.pull.rollout else { return };
        // A head that was refused may be mended by what the base gained or lost: settings, or the end of a conflict.
        let is_left_alone = blocked_fork || matches!(rollout.stage, Stage::Unmanaged(_));
        let refused = matches!(rollout.stage, Stage::Refused(_));
        if rollout.base_ref != branch || rollout.base == *tip && !refused || is_left_alone {
            return;
        }
        if applying {
            rollout.moved_base = Some(tip.clone());
        } else if !rollout.reading || rollout.moved_base.as_ref() != Some(tip) {
            self.read_on(tip.clone());
        }
    }

    /// Whether this answers a reading that a later one replaced: of another base, or for a rollout that is gone.
    fn is_late(&self, reading: Option<&Reading>) -> bool {
        let Some(rollout) = &self.pull.rollout else { return true };
        reading.is_some_and(|reading| reading.rollout != rollout.id || reading.number != rollout.readings)
    }

    pub(super) fn refused(&mut self, head: &Sha, refusal: &Refusal, reading: Option<&Reading>) {
        if self.is_late(reading) {
            return;
        }
        let applying = self.is_applying();
        let Some(rollout) = self.pull.rollout.as_mut().filter(|rollout| rollout.head == *head) else { return };
        rollout.reading = false;
        // What is being applied goes on with what it was planned on; the base is looked at again afterwards.
        if !applying {
            rollout.moved_base = None;
            rollout.stage = Stage::Refused(refusal.clone());
        }
    }

    /// The tree was read. A run whose source and settings are as before keeps its plan: the base's move does not matter to it.
    pub(super) fn inspected(&mut self, inspection: &Inspection) {
        if self.is_late(inspection.reading.as_ref()) {
            return;
        }
        if self.is_applying() {
            if let Some(rollout) = self.pull.rollout.as_mut().filter(|rollout| rollout.head == inspection.head) {
                rollout.moved_base = Some(inspection.base.clone());
                rollout.reading = false;
            }
            return;
        }
        let Some(rollout) = self.pull.rollout.as_mut().filter(|rollout| rollout.head == inspection.head) else {
            return;
        };
        let was_refused = matches!(rollout.stage, Stage::Refused(_));
        let mut old = std::mem::take(&mut rollout.runs);
        let keep = |run: &RootRun| rollout.config == inspection.config || matches!(run.apply, ApplyRun::Applied { .. });
        for root in &inspection.roots {
            let before = old.remove(&root.root);
            let again =
                before.as_ref().filter(|run| run.planned().is_some() || run.previous.is_some()).and_then(|_| {
                    (rollout.base != inspection.base).then(|| moved_base(&self.pull.merges, rollout, inspection, root))
                });
            let kept = before.filter(|run| {
                run.source == root.source && run.settings == root.settings && run.state == root.state && keep(run)
            });
            let run = kept.unwrap_or_else(|| RootRun {
                root: root.root.clone(),
                reasons: root.reasons.clone(),
                settings: root.settings.clone(),
                state: root.state.clone(),
                reads: root.reads.clone(),
                source: root.source.clone(),
                closure: root.closure.clone(),
                args: rollout.args.clone(),
                plan: PlanRun::Queued,
                apply: ApplyRun::None,
                replans_after: Vec::new(),
                steps: Vec::new(),
                previous: None,
                lost: 0,
                basis: Vec::new(),
                uses: root.uses.clone(),
                again,
            });
            let (reasons, reads, uses) = (root.reasons.clone(), root.reads.clone(), root.uses.clone());
            let mut run = RootRun { reasons, reads, uses, ..run };
            // It may be here for another reason now.
            if run.plan == PlanRun::Unread {
                run.queue_again();
            }
            rollout.runs.insert(root.root.clone(), run);
        }
        rollout.base = inspection.base.clone();
        rollout.tree = inspection.tree.clone();
        rollout.undiverged = inspection.undiverged;
        rollout.committers.clone_from(&inspection.committers);
        rollout.config = inspection.config.clone();
        if rollout.waves != inspection.waves
            && let Some(apply) = rollout.apply.as_mut().filter(|apply| is_waiting(apply))
        {
            // The waves were counted anew; what is applied already is passed over.
            apply.wave = 1;
            apply.stage = ApplyStage::Planning;
        }
        rollout.waves.clone_from(&inspection.waves);
        rollout.edges.clone_from(&inspection.edges);
        rollout.holes.clone_from(&inspection.holes);
        rollout.notices.clone_from(&inspection.notices);
        rollout.moved_base = None;
        rollout.reading = false;
        rollout.reach = None;
        rollout.stage = Stage::Ready;
        let dropped: Vec<RootRun> = old.into_values().collect();
        for run in &dropped {
            if let PlanRun::Running { job, .. } = &run.plan {
                self.act(format!("cancel:{job}"), Act::CancelJob { job: job.clone() });
            }
        }
        self.let_go_of_left();
        if was_refused && self.pull.seen.as_ref().is_some_and(|seen| !seen.draft) {
            self.take_up_again();
        }
    }

    /// Whether a job of the current rollout applies, or a wave of its apply is being planned again.
    pub(super) fn is_applying(&self) -> bool {
        self.pull.rollout.as_ref().is_some_and(super::apply::is_busy)
    }
}

/// The base moved under a root: by the newest merge of a pull that has to do with its state, as far as we have heard.
fn moved_base(merges: &[Merge], rollout: &Rollout, inspection: &Inspection, root: &InspectedRoot) -> Because {
    let of = |merge: &&Merge| merge.base_ref == rollout.base_ref && merge.states.contains(&root.state);
    let merged = merges.iter().rev().find(of).cloned();
    Because::BaseMoved { branch: rollout.base_ref.clone(), tip: inspection.base.clone(), merged }
}

fn is_waiting(apply: &Apply) -> bool {
    matches!(apply.stage, ApplyStage::Waiting(_) | ApplyStage::Refused(_))
}

/// The slot of a check: one per head and name.
pub(super) fn check_slot(report: &CheckReport) -> String {
    format!("check:{}:{}", report.name.as_str(), report.head)
}

fn fork_refusal(head: &Sha) -> Refusal {
    Refusal {
        title: "Not planned: the head comes from a fork".to_owned(),
        text: format!(
            "Nothing of a fork runs without a maintainer's word for exactly this head. Somebody with write access types `plan` to let `{}` run; a later push needs it again.",
            head.short()
        ),
    }
}
