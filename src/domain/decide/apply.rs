//! An apply as it goes from wave to wave: plan again on real outputs, ask the gate, take the locks, start the jobs, wait. Every
//! step is derived from the state, so an approval that arrives resumes a waiting wave by itself and nothing runs twice.

use std::collections::{BTreeMap, BTreeSet};

use super::gates::permit;
use super::{Turn, basis};
use crate::domain::effect::Act;
use crate::domain::estate::order;
use crate::domain::gate::{Permit, Verdict};
use crate::domain::ids::{Digest, Login, RootKey};
use crate::domain::job::{JobSpec, Phase, ReplaceStage, ResourceStage, ResourceState, StateLock, VERSION};
use crate::domain::lock::{Blocked, Cause, Holder};
use crate::domain::note::markdown::code;
use crate::domain::plan::{Action, Plan, moved};
use crate::domain::rollout::{Apply, ApplyRun, ApplyStage, Outputs, PlanRun, Rollout, RootRun, Scope, Stage};
use crate::domain::tool::AskedBy;

/// Whether jobs apply or plan for the apply right now: nothing else may change the rollout's plans meanwhile.
pub(super) fn is_busy(rollout: &Rollout) -> bool {
    let applying = rollout.runs.values().any(|run| matches!(run.apply, ApplyRun::Running { .. }));
    applying
        || rollout
            .apply
            .as_ref()
            .is_some_and(|apply| matches!(apply.stage, ApplyStage::Planning | ApplyStage::Applying))
}

impl Turn<'_> {
    /// Takes all locks that the apply needs, or says who is in the way.
    pub(super) fn lock_for_apply(&mut self, scope: &Scope, by: &Login) -> Result<(), Vec<Blocked>> {
        let Some(rollout) = &self.pull.rollout else { return Ok(()) };
        let scope = in_scope(rollout, scope);
        let roots: Vec<RootKey> = rollout
            .runs
            .values()
            .filter(|run| {
                run.changes_something() || !run.replans_after.is_empty() || matches!(run.plan, PlanRun::AwaitsSource(_))
            })
            .filter(|run| scope.contains(&run.root))
            .map(|run| run.root.clone())
            .collect();
        let holder = Holder { pull: self.number(), by: by.clone(), since: self.now(), cause: Cause::Apply };
        let states = self.states(&roots);
        match self.locks.take(&states, &holder) {
            Ok(locks) => {
                self.locks = locks;
                Ok(())
            }
            Err(blocked) => {
                self.locks = self.locks.join(self.number(), &states);
                Err(blocked)
            }
        }
    }

    /// Begins the apply that somebody asked for.
    pub(super) fn begin_apply(&mut self, scope: Scope, by: &Login) {
        let now = self.now();
        let Some(rollout) = &mut self.pull.rollout else { return };
        rollout.applies += 1;
        let number = rollout.applies;
        rollout.apply = Some(Apply { number, by: by.clone(), at: now, scope, wave: 1, stage: ApplyStage::Planning });
    }

    /// Carries the apply as far as it goes without waiting.
    pub(super) fn advance_apply(&mut self) {
        // Each round either waits, ends, or moves to the next wave; there are finitely many waves.
        let waves = self.pull.rollout.as_ref().map_or(0, |rollout| rollout.waves.len());
        for _ in 0..=waves * 2 + 2 {
            let Some(rollout) = &self.pull.rollout else { return };
            let Some(apply) = &rollout.apply else { return };
            // What can no longer be planned, or is being read on a newer base, does not start; what runs is waited for.
            if apply.stage != ApplyStage::Applying && (rollout.stage != Stage::Ready || rollout.reading) {
                return;
            }
            let next = match &apply.stage {
                ApplyStage::Done | ApplyStage::Failed => return,
                ApplyStage::Planning => self.after_planning(rollout, apply),
                ApplyStage::Waiting(_) | ApplyStage::Refused(_) => self.at_the_gate(rollout, apply),
                ApplyStage::Applying => after_applying(rollout, apply),
            };
            match next {
                Step::Stay => return,
                Step::To(stage) => {
                    let stays = self.set_stage(stage);
                    if stays {
                        return;
                    }
                }
                Step::PlanAgain(roots) => self.plan_on_real_outputs(&roots),
                Step::Start(permit) => self.start_wave(&permit),
                Step::NextWave => self.next_wave(),
            }
        }
    }

    fn set_stage(&mut self, stage: ApplyStage) -> bool {
        let Some(apply) = self.pull.rollout.as_mut().and_then(|rollout| rollout.apply.as_mut()) else { return true };
        let same = apply.stage == stage;
        apply.stage = stage;
        same
    }

    fn next_wave(&mut self) {
        let Some(apply) = self.pull.rollout.as_mut().and_then(|rollout| rollout.apply.as_mut()) else { return };
        apply.wave += 1;
        apply.stage = ApplyStage::Planning;
    }

    /// The wave's turn has come: what reads outputs that have now been applied is planned again first.
    fn after_planning(&self, rollout: &Rollout, apply: &Apply) -> Step {
        if apply.wave > last_wave(rollout, apply) {
            return Step::To(ApplyStage::Done);
        }
        let wave: Vec<&RootRun> = rollout.wave(apply.wave).collect();
        let scope = in_scope(rollout, &apply.scope);
        if !wave.iter().any(|run| scope.contains(&run.root) && has_work(rollout, run)) {
            return Step::NextWave;
        }
        let again: Vec<RootKey> = wave
            .iter()
            .filter(|run| !run.is_applied())
            .filter(|run| {
                !run.replans_after.is_empty()
                    || matches!(run.plan, PlanRun::AwaitsSource(_))
                    || is_outdated(rollout, run)
            })
            .map(|run| run.root.clone())
            .collect();
        if !again.is_empty() {
            return Step::PlanAgain(again);
        }
        if wave.iter().any(|run| matches!(run.plan, PlanRun::Failed { .. } | PlanRun::Dropped { .. })) {
            return Step::To(ApplyStage::Failed);
        }
        if wave.iter().any(|run| run.lacks_plan()) {
            return Step::Stay;
        }
        self.at_the_gate(rollout, apply)
    }

    fn at_the_gate(&self, rollout: &Rollout, apply: &Apply) -> Step {
        let stale = |run: &RootRun| run.lacks_plan() || !run.is_applied() && is_outdated(rollout, run);
        if rollout.wave(apply.wave).any(stale) {
            return Step::To(ApplyStage::Planning);
        }
        if to_apply(rollout, apply).is_empty() {
            return Step::NextWave;
        }
        match self.ask(rollout, apply.wave) {
            Verdict::Nothing => Step::NextWave,
            Verdict::Held(_) => match rollout.set_digest(apply.wave) {
                Some(digest) => Step::To(ApplyStage::Waiting(digest)),
                None => Step::NextWave,
            },
            Verdict::Refused { approved, by } => {
                Step::To(ApplyStage::Refused(what_moved(rollout, apply.wave, &approved, &by)))
            }
            open @ Verdict::Open(_) => permit(open).map_or(Step::Stay, Step::Start),
        }
    }

    fn plan_on_real_outputs(&mut self, roots: &[RootKey]) {
        for root in roots {
            if let Some(run) = self.run_mut(root) {
                run.replans_after.clear();
                run.queue_again();
            }
        }
    }

    /// Whether every lock of the wave is this pull's, taking those that were given back meanwhile. An apply that lost one to another
    /// pull ends: it has to be asked for again.
    fn holds_locks(&mut self) -> bool {
        let Some(rollout) = &self.pull.rollout else { return false };
        let Some(apply) = &rollout.apply else { return false };
        let states = self.states(&to_apply(rollout, apply));
        let holder = Holder { pull: self.number(), by: apply.by.clone(), since: self.now(), cause: Cause::Apply };
        // Their plans are about to be dropped: they were made on a state that lacks what is there.
        let unsaved = states.iter().any(|(state, _)| self.locks.unsaved.contains_key(state));
        match self.locks.take(&states, &holder) {
            Ok(locks) if !unsaved => {
                self.locks = locks;
                self.pull.touched.extend(states.into_iter().map(|(state, _)| state));
                true
            }
            _ => {
                if let Some(rollout) = &mut self.pull.rollout {
                    rollout.apply = None;
                }
                false
            }
        }
    }

    /// Starts the jobs of a wave. Nothing is applied without the gate's permit for exactly these plans, or without the locks.
    fn start_wave(&mut self, permit: &Permit) {
        let now = self.now();
        if !self.holds_locks() {
            return;
        }
        let Some(rollout) = &mut self.pull.rollout else { return };
        let Some(apply) = rollout.apply.clone() else { return };
        let mut jobs = Vec::new();
        for root in to_apply(rollout, &apply) {
            let Some(spec) = apply_spec(rollout, &root, permit) else { continue };
            let job = spec.id.clone();
            if let Some(run) = rollout.runs.get_mut(&root) {
                let resources = run.planned().map(|planned| pending(&planned.plan)).unwrap_or_default();
                run.apply = ApplyRun::Running { job, since: now, resources };
                run.steps.clear();
            }
            jobs.push(spec);
        }
        if let Some(apply) = &mut rollout.apply {
            apply.stage = ApplyStage::Applying;
        }
        let who = permit.by().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let who = if who.is_empty() { "the policy, which asks for no approval".to_owned() } else { who };
        self.ledger.push(format!("wave-{} uses {} on the approval of {who}", permit.wave(), permit.digest().as_str()));
        for spec in jobs {
            let job = spec.id.clone();
            self.jobs.push(spec);
            self.act(format!("job:{job}"), Act::StartJob { job });
        }
    }
}

/// What an apply does next.
enum Step {
    Stay,
    To(ApplyStage),
    PlanAgain(Vec<RootKey>),
    Start(Permit),
    NextWave,
}

fn after_applying(rollout: &Rollout, apply: &Apply) -> Step {
    let scope = in_scope(rollout, &apply.scope);
    let wave: Vec<&RootRun> = rollout.wave(apply.wave).filter(|run| scope.contains(&run.root)).collect();
    if wave.iter().any(|run| matches!(run.apply, ApplyRun::Running { .. })) {
        return Step::Stay;
    }
    if wave.iter().any(|run| matches!(run.apply, ApplyRun::Failed { .. })) {
        return Step::To(ApplyStage::Failed);
    }
    // A stale plan is being made again, or a job was stopped before it began: back to the gate with what is left.
    Step::To(ApplyStage::Planning)
}

/// Whether a plan was made on other outputs than those that are there now.
fn is_outdated(rollout: &Rollout, run: &RootRun) -> bool {
    matches!(run.plan, PlanRun::Done(_) | PlanRun::Unread) && basis::of(rollout, &run.root) != run.basis
}

/// The roots of the wave at work that still have something to apply.
fn to_apply(rollout: &Rollout, apply: &Apply) -> Vec<RootKey> {
    let scope = in_scope(rollout, &apply.scope);
    rollout
        .wave(apply.wave)
        .filter(|run| scope.contains(&run.root))
        .filter(|run| run.changes_something() && !run.is_applied() && !matches!(run.apply, ApplyRun::Running { .. }))
        .map(|run| run.root.clone())
        .collect()
}

fn last_wave(rollout: &Rollout, apply: &Apply) -> usize {
    match &apply.scope {
        Scope::All => rollout.waves.len(),
        Scope::UpTo(wave) => (*wave).min(rollout.waves.len()),
        Scope::Roots(roots) => roots.iter().filter_map(|root| rollout.wave_of(root)).max().unwrap_or(0),
    }
}

/// The roots that an apply may touch: of named ones also those that they need, by what they read and by `waves.after`, through any
/// number of steps.
pub(super) fn in_scope(rollout: &Rollout, scope: &Scope) -> BTreeSet<RootKey> {
    let roots = match scope {
        Scope::All => return rollout.runs.keys().cloned().collect(),
        Scope::UpTo(wave) => return rollout.waves.iter().take(*wave).flatten().cloned().collect(),
        Scope::Roots(roots) => roots,
    };
    let keys: Vec<&RootKey> = rollout.runs.keys().collect();
    let after = order::after_pairs(&keys, &rollout.config);
    let after = after.into_iter().map(|(source, later)| (keys[later], keys[source]));
    let mut before: BTreeMap<&RootKey, Vec<&RootKey>> = BTreeMap::new();
    for (later, source) in rollout.edges.iter().map(|edge| (&edge.reader, &edge.source)).chain(after) {
        before.entry(later).or_default().push(source);
    }
    let mut needed: BTreeSet<RootKey> = BTreeSet::new();
    let mut open: Vec<&RootKey> = roots.iter().collect();
    while let Some(root) = open.pop() {
        if needed.insert(root.clone()) {
            open.extend(before.get(root).into_iter().flatten());
        }
    }
    needed
}

/// Whether an apply still has something to plan or to do here.
pub(super) fn has_work(rollout: &Rollout, run: &RootRun) -> bool {
    !run.is_applied() && (!run.is_unchanged() || !run.replans_after.is_empty() || is_outdated(rollout, run))
}

fn apply_spec(rollout: &mut Rollout, root: &RootKey, permit: &Permit) -> Option<JobSpec> {
    let wave = rollout.wave_of(root)?;
    // The permit is for one wave and one set of plans; anything else would be a bug of ours, and applies nothing.
    if permit.wave() != wave || rollout.set_digest(wave).as_ref() != Some(permit.digest()) {
        return None;
    }
    let id = super::plans::next_job(rollout);
    let run = rollout.runs.get(root)?;
    let planned = run.planned()?;
    // A preview holds configuration that is not the commit's; it never applies, whoever let it through.
    if run.basis.iter().any(|basis| basis.outputs == Outputs::Planned) {
        return None;
    }
    Some(JobSpec {
        version: VERSION,
        id,
        phase: Phase::Apply,
        root: run.root.clone(),
        head: rollout.head.clone(),
        tree: rollout.tree.clone(),
        tool: Some(planned.tool.kind),
        tool_version: Some(planned.tool.version.clone()),
        asked_by: AskedBy::Plan,
        var_files: run.settings.var_files.clone(),
        backend_config: run.settings.backend_config.clone(),
        args: run.args.clone(),
        plan_of: Some(planned.job.clone()),
        source: run.source.clone(),
        state_lock: StateLock::Wait,
        linked: Vec::new(),
        sources: basis::sources(rollout, root),
    })
}

/// Every resource of a plan, before anything started.
fn pending(plan: &Plan) -> Vec<ResourceState> {
    let changes = plan.changes.iter().filter(|change| !matches!(change.action, Action::Nothing | Action::Read));
    changes
        .map(|change| ResourceState {
            address: change.address.clone(),
            deposed: change.deposed.clone(),
            action: change.action,
            state: ResourceStage::Pending,
            stages: stages(change.action),
            seconds: 0,
            error: None,
        })
        .collect()
}

fn stages(action: Action) -> Vec<ReplaceStage> {
    let order: &[&str] = match action {
        Action::DeleteThenCreate => &["delete", "create"],
        Action::CreateThenDelete => &["create", "delete"],
        Action::ForgetThenCreate => &["forget", "create"],
        _ => &[],
    };
    order.iter().map(|what| ReplaceStage { what: (*what).to_owned(), state: ResourceStage::Pending }).collect()
}

/// The refusal of row three of the table: who approved what, what it plans now, and what moved.
fn what_moved(rollout: &Rollout, wave: usize, approved: &Digest, by: &Login) -> String {
    let now = rollout.set_digest(wave).map(|digest| digest.short().to_owned()).unwrap_or_default();
    let differences: Vec<String> = rollout
        .wave(wave)
        .filter_map(|run| Some((run, run.previous.as_ref()?, run.planned()?)))
        .filter(|(_, before, now)| before.digest != now.digest)
        .map(|(run, before, now)| format!("in {}, {}", code(&run.root.to_string()), moved(&before.plan, &now.plan)))
        .collect();
    let moved = if differences.is_empty() { String::new() } else { format!(": {}", differences.join("; ")) };
    format!("{by} approved `{approved}`; it now plans `{now}`{moved}.")
}
