//! What jobs report: progress and ends, matched to the run that waits for exactly that job. A report for
//! any other job changes nothing, so a late, doubled or superseded one does no harm.

use super::Turn;
use crate::domain::event::Outcome;
use crate::domain::ids::{JobId, RootKey};
use crate::domain::job::{Failure, ResourceState};
use crate::domain::pull::AppliedDigest;
use crate::domain::rollout::{ApplyRun, PlanRun, Planned, Rollout, RootRun, Step, StepState};

/// A lost plan is tried once more.
const PLAN_TRIES: u32 = 2;

/// What a job is to a run.
enum Role {
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
            self.free();
        }
    }

    fn plan_ended(&mut self, root: &RootKey, job: &JobId, outcome: &Outcome) {
        let (busy, now) = (self.is_applying(), self.now());
        if let Some(rollout) = self.pull.rollout.as_mut().filter(|_| !busy) {
            rollout.reach = None;
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
                failure: if *errored_state { with_kept_state(failure.clone()) } else { failure.clone() },
                resources: if resources.is_empty() { known } else { resources.clone() },
                at: now,
            },
            other => {
                changed = !matches!(other, Outcome::Canceled);
                ApplyRun::Failed { job: job.clone(), failure: failure_of(other, "apply"), resources: known, at: now }
            }
        };
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
    fn find(&mut self, job: &JobId) -> Option<(&mut Rollout, RootKey, Role)> {
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
        let Some(rollout) = &mut self.pull.rollout else { return };
        for state in ended
            .iter()
            .flat_map(|old| old.runs.values())
            .filter(|run| run.apply != ApplyRun::None)
            .map(|run| &run.state)
        {
            for run in rollout.runs.values_mut().filter(|run| run.state == *state) {
                if matches!(run.plan, PlanRun::Done(_) | PlanRun::Failed { .. }) {
                    run.plan = PlanRun::Queued;
                    rollout.reach = None;
                }
            }
        }
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

fn with_kept_state(mut failure: Failure) -> Failure {
    let note = "The state could not be written to its backend. It was kept, encrypted, with this run: `terraform state push errored.tfstate` puts it back. Until then nothing else is applied here.";
    failure.detail = if failure.detail.is_empty() { note.to_owned() } else { format!("{}\n{note}", failure.detail) };
    failure
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
        Outcome::Lost(why) => named("The job was lost", why),
        Outcome::Canceled => named("Canceled", "It was stopped before it was done."),
        Outcome::Planned(_) | Outcome::Applied(_) => named("The job reported something else than it was asked for", ""),
    }
}
