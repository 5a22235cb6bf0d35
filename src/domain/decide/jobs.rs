//! What jobs report: progress and ends, matched to the run that waits for exactly that job. A report for
//! any other job changes nothing, so a late, doubled or superseded one does no harm.

use super::Turn;
use crate::domain::event::Outcome;
use crate::domain::ids::{JobId, RootKey, StateKey};
use crate::domain::job::{Failure, ResourceState, StateLeft};
use crate::domain::neighbour::{Mover, MovingPull};
use crate::domain::pull::AppliedDigest;
use crate::domain::rollout::{ApplyRun, ApplyStage, PlanRun, Planned, Rollout, RootRun, Step, StepState};

/// A lost plan is tried once more.
const PLAN_TRIES: u32 = 2;

/// What to do when nobody knows how far an apply came.
const AFTER_A_LOST_APPLY: &str = "Nobody heard how far the apply came, and it is not tried again by itself.\n\
    The next plan shows what is left to do. If it finds the state locked, the lock was left behind:\n\
    see that nothing works on this state any more, then use force-unlock with the id that the error names.";
/// What to do when a plan was lost again and again.
const AFTER_LOST_PLANS: &str = "It was tried once more by itself, and lost again. The command plan tries anew.";

/// What a job is to a run.
pub(super) enum Role {
    Plan,
    Apply,
}

impl Turn<'_> {
    pub(super) fn progress(&mut self, job: &JobId, steps: &[Step], resources: &[ResourceState]) {
        let Some((rollout, root, _)) = self.find(job) else { return };
        let Some(run) = rollout.runs.get_mut(&root) else { return };
        for step in steps {
            match run.steps.iter_mut().find(|known| known.name == step.name) {
                Some(known) if known.state == StepState::Running => *known = step.clone(),
                Some(_) => {}
                None => run.steps.push(step.clone()),
            }
        }
        if let ApplyRun::Running { resources: known, .. } = &mut run.apply
            && !resources.is_empty()
        {
            *known = resources.to_vec();
        }
    }

    pub(super) fn job_ended(&mut self, job: &JobId, outcome: &Outcome) {
        let Some((_, root, role)) = self.find(job) else { return };
        match role {
            Role::Plan => self.plan_ended(&root, job, outcome),
            Role::Apply => self.apply_ended(&root, job, outcome),
        }
        self.forget_retired();
        if !self.pull.is_open() {
            if let Some(rollout) = &mut self.pull.rollout {
                settle_apply(rollout);
            }
            self.free();
        }
    }

    fn plan_ended(&mut self, root: &RootKey, job: &JobId, outcome: &Outcome) {
        let (busy, now) = (self.is_applying(), self.now());
        if let Some(rollout) = &mut self.pull.rollout {
            match (&mut rollout.reach, outcome) {
                (reach, _) if !busy => *reach = None,
                (Some(reach), Outcome::Planned(_)) => reach.mark_planned(root),
                _ => {}
            }
        }
        let Some(run) = self.run_mut(root) else { return };
        run.plan = match outcome {
            Outcome::Planned(planned) => {
                run.lost = 0;
                let since = if let PlanRun::Running { since, .. } = run.plan { since } else { now };
                let same = run.previous.as_ref().filter(|before| before.digest == planned.digest);
                let shown = same.map_or(planned.at, |before| before.since.unwrap_or(before.at));
                PlanRun::Done(Planned { took_ms: now.since_ms(since), since: Some(shown), ..planned.clone() })
            }
            Outcome::Lost(_) if run.lost + 1 < PLAN_TRIES => {
                run.lost += 1;
                PlanRun::Queued
            }
            other => PlanRun::Failed { job: job.clone(), failure: failure_of(other, "plan") },
        };
    }

    fn apply_ended(&mut self, root: &RootKey, job: &JobId, outcome: &Outcome) {
        let now = self.now();
        let by_wave = self.applied_digest(job, root);
        let sent: Vec<StateKey> =
            self.locks.unsaved.iter().filter(|(_, one)| one.job == *job).map(|(state, _)| state.clone()).collect();
        let Some((rollout, root, _)) = self.find(job) else { return };
        let Some(run) = rollout.runs.get_mut(&root) else { return };
        let ApplyRun::Running { since, resources: known, .. } = run.apply.clone() else { return };
        let mut changed = true;
        run.apply = match outcome {
            Outcome::Applied(resources) => applied(run, job, resources.clone(), now, now.since_ms(since)),
            Outcome::Stale(_) => {
                changed = false;
                plan_again(run)
            }
            Outcome::Failed { failure, resources, errored_state } => ApplyRun::Failed {
                job: job.clone(),
                failure: failure.clone(),
                resources: if resources.is_empty() { known } else { resources.clone() },
                at: now,
                left: errored_state.clone(),
            },
            other => {
                changed = !matches!(other, Outcome::Canceled);
                let failure = failure_of(other, "apply");
                // It may have sent the state before it was lost.
                let left = if sent.contains(&run.state) { StateLeft::Kept } else { StateLeft::Nothing };
                ApplyRun::Failed { job: job.clone(), failure, resources: known, at: now, left }
            }
        };
        let (state, root) = (run.state.clone(), run.root.clone());
        let outputs = run.planned().map(|planned| planned.plan.outputs.iter().map(|it| it.name.clone()).collect());
        let failed = matches!(run.apply, ApplyRun::Failed { .. });
        let by = rollout.apply.as_ref().map(|apply| apply.by.clone());
        if matches!(outcome, Outcome::Failed { errored_state, .. } if *errored_state != StateLeft::Nothing) {
            self.leave_unsaved(&state, &root, job);
        }
        if changed {
            let by = by.unwrap_or_else(|| "nobody".into());
            let pull = Some(MovingPull { repo: None, number: self.number(), by, root });
            self.tell_moved(&state, Some(&Mover { pull, outputs, failed, at: now }));
        }
        if let Some(digest) = by_wave.filter(|_| changed)
            && !self.pull.applied.iter().any(|applied| applied.digest == digest.digest)
        {
            self.pull.applied.push(digest);
        }
    }

    /// The set digest of the wave that this job applies a part of.
    fn applied_digest(&self, job: &JobId, root: &RootKey) -> Option<AppliedDigest> {
        let rollout = self.pull.rollout.iter().chain(&self.pull.retired).find(|rollout| {
            rollout
                .runs
                .get(root)
                .is_some_and(|run| matches!(&run.apply, ApplyRun::Running { job: known, .. } if known == job))
        })?;
        let wave = rollout.wave_of(root)?;
        Some(AppliedDigest { wave, digest: rollout.set_digest(wave)?, at: self.now() })
    }

    /// The run that waits for this job, in the current rollout or in one whose apply still runs.
    pub(super) fn find(&mut self, job: &JobId) -> Option<(&mut Rollout, RootKey, Role)> {
        let rollouts = self.pull.rollout.iter_mut().chain(self.pull.retired.iter_mut());
        for rollout in rollouts {
            let found = rollout.runs.values().find_map(|run| match (&run.plan, &run.apply) {
                (_, ApplyRun::Running { job: known, .. }) if known == job => Some((run.root.clone(), Role::Apply)),
                (PlanRun::Running { job: known, .. }, _) if known == job => Some((run.root.clone(), Role::Plan)),
                _ => None,
            });
            if let Some((root, role)) = found {
                return Some((rollout, root, role));
            }
        }
        None
    }

    /// Earlier rollouts are kept only while they apply. Their end changes the state under the current plans, so
    /// the same states are planned again.
    fn forget_retired(&mut self) {
        let (running, ended): (Vec<Rollout>, Vec<Rollout>) = std::mem::take(&mut self.pull.retired)
            .into_iter()
            .partition(|rollout| rollout.runs.values().any(|run| matches!(run.apply, ApplyRun::Running { .. })));
        self.pull.retired = running;
        for mut old in ended {
            settle_apply(&mut old);
            // Its comment is written for the last time: nothing follows it from now on.
            self.publish_apply(&old);
            self.plan_again_after(&old);
        }
    }

    /// Plans again what was planned on states that the apply of an earlier head changed, and whoever reads those.
    fn plan_again_after(&mut self, old: &Rollout) {
        let Some(rollout) = &mut self.pull.rollout else { return };
        let moved: Vec<&StateKey> =
            old.runs.values().filter(|run| run.apply != ApplyRun::None).map(|run| &run.state).collect();
        let applied: Vec<RootKey> = old
            .runs
            .values()
            .filter(|run| run.apply != ApplyRun::None)
            .map(|run| run.root.clone())
            .chain(rollout.runs.values().filter(|run| moved.contains(&&run.state)).map(|run| run.root.clone()))
            .collect();
        let again = with_readers(rollout, applied);
        for root in again {
            let Some(run) = rollout.runs.get_mut(&root) else { continue };
            if matches!(run.plan, PlanRun::Done(_) | PlanRun::Failed { .. }) {
                run.plan = PlanRun::Queued;
                rollout.reach = None;
            }
        }
    }
}

/// These roots and all that read them, through any number of reads.
fn with_readers(rollout: &Rollout, mut roots: Vec<RootKey>) -> Vec<RootKey> {
    let mut next = 0;
    while let Some(source) = roots.get(next).cloned() {
        for edge in rollout.edges.iter().filter(|edge| edge.source == source) {
            if !roots.contains(&edge.reader) {
                roots.push(edge.reader.clone());
            }
        }
        next += 1;
    }
    roots
}

/// An apply that nothing carries on any more (a newer head, or the end of the pull) ends with the jobs that ran.
fn settle_apply(rollout: &mut Rollout) {
    let runs: Vec<&ApplyRun> = rollout.runs.values().map(|run| &run.apply).collect();
    if runs.iter().any(|run| matches!(run, ApplyRun::Running { .. })) {
        return;
    }
    let failed = runs.iter().any(|run| matches!(run, ApplyRun::Failed { .. }));
    if let Some(apply) = &mut rollout.apply
        && matches!(apply.stage, ApplyStage::Planning | ApplyStage::Applying)
    {
        apply.stage = if failed { ApplyStage::Failed } else { ApplyStage::Done };
    }
}

fn applied(
    run: &RootRun,
    job: &JobId,
    resources: Vec<ResourceState>,
    at: crate::domain::ids::Timestamp,
    took_ms: i64,
) -> ApplyRun {
    match run.planned() {
        Some(planned) => ApplyRun::Applied {
            job: job.clone(),
            digest: planned.digest.clone(),
            counts: planned.plan.counts(),
            resources,
            at,
            took_ms,
        },
        None => run.apply.clone(),
    }
}

/// The tool refused the saved plan because the state moved. It is planned again: the same digest applies without
/// asking again, another is told with what moved.
fn plan_again(run: &mut RootRun) -> ApplyRun {
    if let PlanRun::Done(planned) = std::mem::replace(&mut run.plan, PlanRun::Queued) {
        run.previous = Some::<Planned>(planned);
    }
    ApplyRun::None
}

fn failure_of(outcome: &Outcome, step: &str) -> Failure {
    let named = |summary: &str, detail: &str| Failure {
        step: step.to_owned(),
        summary: summary.to_owned(),
        detail: detail.to_owned(),
        ..Failure::default()
    };
    match outcome {
        Outcome::Failed { failure, .. } | Outcome::Stale(failure) => failure.clone(),
        Outcome::Lost(why) if step == "apply" => named("The job was lost", &format!("{why}\n\n{AFTER_A_LOST_APPLY}")),
        Outcome::Lost(why) => named("The job was lost", &format!("{why}\n\n{AFTER_LOST_PLANS}")),
        Outcome::Canceled => named("Canceled", "It was stopped before it was done."),
        Outcome::Planned(_) | Outcome::Applied(_) => named("The job reported something else than it was asked for", ""),
    }
}
