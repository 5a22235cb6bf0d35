//! From queued plans to jobs, and from ended plans to what they mean together: who is planned again
//! after whom, and what the change reaches. It applies nothing.

use super::{Facts, Turn, basis};
use crate::domain::config::LockMode;
use crate::domain::effect::Act;
use crate::domain::estate::{Edge, Estate};
use crate::domain::ids::{JobId, RootKey, StateKey};
use crate::domain::job::{Failure, JobSpec, Phase, StateLock, VERSION};
use crate::domain::lock::{Cause, Holder};
use crate::domain::outside::{Outside, outside};
use crate::domain::plan::Plan;
use crate::domain::reach::{Reach, blast, resources};
use crate::domain::rollout::{ApplyRun, Blocker, Hold, PlanRun, Rollout, RootRun, Stage};

impl Turn<'_> {
    /// Everything that follows from the state, until nothing more does.
    pub(super) fn advance(&mut self) {
        if !self.pull.is_open() {
            return;
        }
        self.drop_plans_on_unsaved();
        self.plan_outdated_again();
        self.start_plans();
        self.read_together();
        self.let_go_of_unchanged();
        self.advance_apply();
        // An apply that ended just now leaves readers whose plans are older than what is there.
        self.plan_outdated_again();
        self.start_plans();
        self.leave_lines();
        self.let_go_of_refused();
        self.let_go_of_unchanged();
        self.follow_base();
    }

    /// Starts a job for each queued plan that no other pull, and no apply of an earlier head, stands in the way of.
    fn start_plans(&mut self) {
        let Some(rollout) = &self.pull.rollout else { return };
        if rollout.stage != Stage::Ready {
            return;
        }
        let limit = match rollout.config.parallelism {
            0 => self.facts.server.parallelism,
            asked => asked.min(self.facts.server.parallelism),
        };
        let mut free = limit
            .saturating_sub(rollout.runs.values().filter(|run| matches!(run.plan, PlanRun::Running { .. })).count());
        let waiting: Vec<RootKey> = rollout
            .waves
            .iter()
            .flatten()
            .filter(|root| {
                rollout.runs.get(*root).is_some_and(|run| matches!(run.plan, PlanRun::Queued | PlanRun::Blocked(_)))
            })
            .cloned()
            .collect();
        for root in waiting {
            if self.is_too_early(&root) || self.is_unread(&root) || self.is_held_up(&root) {
                continue;
            }
            if free == 0 {
                break;
            }
            free -= 1;
            self.start_plan(&root);
        }
    }

    /// A plan that was made on other outputs than those that are there or planned now is made again. While jobs apply, the
    /// apply itself sees to that, wave by wave.
    fn plan_outdated_again(&mut self) {
        if self.is_applying() {
            return;
        }
        let Some(rollout) = self.pull.rollout.as_ref().filter(|rollout| rollout.stage == Stage::Ready) else { return };
        let outdated: Vec<RootKey> = rollout
            .runs
            .values()
            .filter(|run| {
                matches!(
                    run.plan,
                    PlanRun::Done(_) | PlanRun::Failed { .. } | PlanRun::Unread | PlanRun::AwaitsSource(_)
                )
            })
            .filter(|run| run.apply == ApplyRun::None && basis::is_settled(rollout, &run.root))
            .filter(|run| basis::of(rollout, &run.root) != run.basis)
            .map(|run| run.root.clone())
            .collect();
        for root in &outdated {
            if let Some(run) = self.run_mut(root) {
                run.queue_again();
            }
        }
        if let Some(rollout) = self.pull.rollout.as_mut().filter(|_| !outdated.is_empty()) {
            rollout.reach = None;
        }
    }

    /// Whether a source of the root has not ended planning.
    fn is_too_early(&self, root: &RootKey) -> bool {
        self.pull.rollout.as_ref().is_some_and(|rollout| !basis::is_settled(rollout, root))
    }

    /// Whether the root needs no plan, because nothing that it reads changes; then it says so.
    fn is_unread(&mut self, root: &RootKey) -> bool {
        let Some(rollout) = &self.pull.rollout else { return false };
        let unread = rollout.runs.get(root).is_some_and(|run| basis::is_unread(rollout, run));
        if let Some(run) = self.run_mut(root).filter(|_| unread) {
            run.plan = PlanRun::Unread;
            run.replans_after.clear();
        }
        unread
    }

    /// Whether the root cannot be planned now; then it stands in line and says for whom it waits.
    fn is_held_up(&mut self, root: &RootKey) -> bool {
        let number = self.number();
        let draft = self.pull.seen.as_ref().is_some_and(|seen| seen.draft);
        let Some(run) = self.run(root) else { return true };
        let (state, name) = (run.state.clone(), run.root.clone());
        let applying = self.pull.retired.iter().flat_map(|old| old.runs.values());
        if applying.into_iter().any(|run| run.state == state && matches!(run.apply, ApplyRun::Running { .. })) {
            return true;
        }
        if let Some(blocker) = self.unsaved_in_the_way(&state) {
            if let Some(run) = self.run_mut(root) {
                run.plan = PlanRun::Blocked(blocker);
            }
            return true;
        }
        let blocked = if draft { Vec::new() } else { self.locks.blocked(number, std::slice::from_ref(&state)) };
        let Some(first) = blocked.first() else { return false };
        self.locks = self.locks.join(number, &[(state, name)]);
        let blocker = match &first.holder {
            Some(holder) => Blocker {
                pull: holder.pull,
                by: holder.by.clone(),
                since: holder.since,
                ahead: first.ahead.clone(),
                how: Hold::Lock,
            },
            None => Blocker {
                pull: first.ahead.first().copied().unwrap_or_default(),
                by: "the line".into(),
                since: self.now(),
                ahead: first.ahead.iter().skip(1).copied().collect(),
                how: Hold::Lock,
            },
        };
        if let Some(run) = self.run_mut(root) {
            run.plan = PlanRun::Blocked(blocker);
        }
        true
    }

    fn start_plan(&mut self, root: &RootKey) {
        self.hold_for_plan(root);
        let now = self.now();
        let Some(spec) = self.plan_spec(root) else { return };
        let job = spec.id.clone();
        let basis = self.pull.rollout.as_ref().map(|rollout| basis::of(rollout, root)).unwrap_or_default();
        if let Some(run) = self.run_mut(root) {
            run.basis = basis;
            run.plan = PlanRun::Running { job: job.clone(), since: now };
            run.steps.clear();
        }
        self.jobs.push(spec);
        self.act(format!("job:{job}"), Act::StartJob { job });
    }

    /// Under `locks: plan` the first plan takes the lock; otherwise a plan only has its turn.
    pub(super) fn hold_for_plan(&mut self, root: &RootKey) {
        let number = self.number();
        let Some(seen) = self.pull.seen.clone().filter(|seen| !seen.draft) else { return };
        let mode = self.pull.rollout.as_ref().map(|rollout| rollout.config.locks).unwrap_or_default();
        let states = self.states(std::slice::from_ref(root));
        match mode {
            LockMode::Plan => {
                let holder = Holder { pull: number, by: seen.author, since: self.now(), cause: Cause::Plan };
                if let Ok(locks) = self.locks.take(&states, &holder) {
                    self.locks = locks;
                }
            }
            LockMode::Apply => {
                let keys: Vec<StateKey> = states.into_iter().map(|(state, _)| state).collect();
                let (locks, _) = self.locks.served(number, &keys);
                self.locks = locks;
            }
        }
    }

    fn plan_spec(&mut self, root: &RootKey) -> Option<JobSpec> {
        let rollout = self.pull.rollout.as_mut()?;
        let id = next_job(rollout);
        let run = rollout.runs.get(root)?;
        let linked = basis::links(rollout, &basis::of(rollout, root));
        let sources = basis::sources(rollout, root);
        Some(JobSpec {
            version: VERSION,
            id,
            phase: Phase::Plan,
            root: run.root.clone(),
            head: rollout.head.clone(),
            tree: rollout.tree.clone(),
            tool: run.settings.tool,
            tool_version: run.settings.version.clone(),
            asked_by: run.settings.asked_by.clone(),
            var_files: run.settings.var_files.clone(),
            backend_config: run.settings.backend_config.clone(),
            args: run.args.clone(),
            plan_of: None,
            source: run.source.clone(),
            state_lock: StateLock::Off,
            linked,
            sources,
        })
    }

    /// Once every plan is there: who reads outputs that change, and what the change reaches.
    fn read_together(&mut self) {
        let now = self.now();
        let facts = self.facts;
        let Some(rollout) = &mut self.pull.rollout else { return };
        if rollout.apply.is_none() {
            wait_for_unapplied_sources(rollout, facts.estate.as_deref());
        }
        if !rollout.is_planned() || rollout.reach.is_some() {
            return;
        }
        if facts.estate.is_some() || rollout.planned_at.is_none() {
            // Without an estate this comes again with every event; the plans are as old as they are.
            rollout.planned_at = Some(now);
        }
        mark_replans(rollout);
        if let Some(estate) = &facts.estate {
            let plans: Vec<(RootKey, &Plan)> =
                rollout.runs.values().filter_map(|run| Some((run.root.clone(), &run.planned()?.plan))).collect();
            let changed =
                plans.iter().filter(|(_, plan)| plan.changes_something()).map(|(root, _)| root.clone()).collect();
            rollout.reach = Some(Reach {
                changed,
                downstream: blast(estate, &rollout.config, &rollout.waves, &plans),
                resources: resources(estate, &rollout.waves, &plans),
                outside: beyond(rollout, facts),
            });
        }
    }

    /// A move of the base that came while something was being applied is looked at afterwards.
    fn follow_base(&mut self) {
        if self.is_applying() {
            return;
        }
        let Some(rollout) = &mut self.pull.rollout else { return };
        if rollout.reading {
            return;
        }
        let Some(tip) = rollout.moved_base.take() else { return };
        if rollout.base != tip {
            self.read_on(tip);
        }
    }

    pub(super) fn run(&self, root: &RootKey) -> Option<&RootRun> {
        self.pull.rollout.as_ref()?.runs.get(root)
    }

    pub(super) fn run_mut(&mut self, root: &RootKey) -> Option<&mut RootRun> {
        self.pull.rollout.as_mut()?.runs.get_mut(root)
    }
}

/// The readers in other repositories.
fn beyond(rollout: &Rollout, facts: &Facts) -> Option<Outside> {
    let runs = rollout.runs.values();
    let plans: Vec<_> = runs.filter_map(|run| Some((&run.root, &run.state, &run.planned()?.plan))).collect();
    outside(&plans, &facts.foreign, facts.server.cross_repo)
}

/// The next job's id: valid as a Kubernetes name, and the same whenever the same turn is decided again.
pub(super) fn next_job(rollout: &mut Rollout) -> JobId {
    rollout.jobs += 1;
    JobId::new(format!("{}-{}", rollout.id, rollout.jobs))
}

/// A plan that failed because its source's state is not there yet waits for that source: one that this change creates, or one that
/// nobody has applied so far.
fn wait_for_unapplied_sources(rollout: &mut Rollout, estate: Option<&Estate>) {
    let changing: Vec<RootKey> =
        rollout.runs.values().filter(|run| awaits_or_changes(run)).map(|run| run.root.clone()).collect();
    let is_outside = |source: &RootKey| !rollout.runs.contains_key(source);
    let outside = estate.into_iter().flat_map(|estate| &estate.edges).filter(|edge| is_outside(&edge.source));
    let edges: Vec<Edge> = rollout.edges.iter().chain(outside).cloned().collect();
    for edge in edges {
        if rollout.runs.contains_key(&edge.source) && !changing.contains(&edge.source) {
            continue;
        }
        let Some(run) = rollout.runs.get_mut(&edge.reader) else { continue };
        if matches!(&run.plan, PlanRun::Failed { failure, .. } if is_unfound(failure, &edge)) {
            run.plan = PlanRun::AwaitsSource(edge.source);
        }
    }
}

/// Whether a plan failed because the state behind this read is not there.
fn is_unfound(failure: &Failure, edge: &Edge) -> bool {
    let says = |text: &String| text.contains("Unable to find remote state");
    let elsewhere = failure.address.as_ref().is_some_and(|address| !address.starts_with(&edge.block));
    (says(&failure.summary) && !elsewhere) || failure.others.iter().any(says)
}

fn awaits_or_changes(run: &RootRun) -> bool {
    run.changes_something() || matches!(run.plan, PlanRun::AwaitsSource(_))
}

/// Marks the readers of outputs that change: they are planned again on real values.
fn mark_replans(rollout: &mut Rollout) {
    let unapplied = rollout.runs.values().filter(|run| !run.is_applied());
    let reads: Vec<_> = unapplied.map(|run| (run.root.clone(), basis::replans(rollout, run))).collect();
    for (root, reads) in reads {
        if let Some(run) = rollout.runs.get_mut(&root) {
            run.replans_after = reads;
        }
    }
}
