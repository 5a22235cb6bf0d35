//! Builds pulls for the tests of the notes. It asserts nothing.

use crate::domain::config::{RootSettings, ToolKind};
use crate::domain::estate::{Edge, Hole, Reason};
use crate::domain::ids::{Digest, Login, PullKey, RepoKey, RootKey, Timestamp};
use crate::domain::job::Failure;
use crate::domain::note::{self, Context};
use crate::domain::plan::trace::Trace;
use crate::domain::plan::{Action, AttributeChange, Change, Counts, Plan, Shown};
use crate::domain::pull::Pull;
use crate::domain::reach::{Class, Downstream, Reach, Reached, ResourceReach, Through};
use crate::domain::rollout::{
    Apply, ApplyRun, ApplyStage, Blocker, PlanRun, Planned, Read, Rollout, RootRun, Scope, Stage, Tool, WaveState,
};

pub(super) struct World {
    pub(super) pull: Pull,
    pub(super) rollout: Rollout,
    pub(super) context: Context,
}

impl World {
    pub(super) fn new() -> Self {
        let key = PullKey { repo: RepoKey { forge: "github".to_owned(), id: 1 }, number: 7 };
        let begun = Rollout::of_head("1-7-1".into(), "9f2c1ab0000000".into(), "main".to_owned(), Timestamp(0));
        let rollout = Rollout {
            base: "41d0e770000000".into(),
            tree: "t".into(),
            planned_at: Some(Timestamp(38_000)),
            stage: Stage::Ready,
            undiverged: true,
            ..begun
        };
        let context = Context {
            url: "https://tidegate.example/r/1204".to_owned(),
            limit: 65_536,
            now: Timestamp(60_000),
            waves: Vec::new(),
            waits: Vec::new(),
        };
        Self { pull: Pull::unseen(key, "o/r", Timestamp(0)), rollout, context }
    }

    pub(super) fn note(&self) -> String {
        super::report::check(self);
        note::note(&self.pull, &self.rollout, &self.context)
    }

    pub(super) fn comment(&self, wave: usize, scope: Scope, stage: ApplyStage) -> String {
        let apply = Apply { number: 1, by: Login::from("mira"), at: Timestamp(0), scope, wave, stage };
        note::apply(&self.pull, &self.rollout, &apply, &self.context)
    }

    pub(super) fn digest(&self, wave: usize) -> Digest {
        self.rollout.set_digest(wave).expect("the wave changes something")
    }

    pub(super) fn wave(&mut self, roots: &[&str]) -> &mut Self {
        let keys: Vec<RootKey> = roots.iter().map(|root| RootKey::new(*root)).collect();
        for key in &keys {
            let run = RootRun {
                root: key.clone(),
                reasons: vec![Reason::Changed(format!("{key}/main.tf"))],
                settings: RootSettings::default(),
                state: "s".into(),
                reads: Vec::new(),
                source: String::new(),
                closure: Vec::new(),
                args: Vec::new(),
                plan: PlanRun::Queued,
                apply: ApplyRun::None,
                replans_after: Vec::new(),
                steps: Vec::new(),
                previous: None,
                lost: 0,
                basis: Vec::new(),
                uses: Vec::new(),
                again: None,
            };
            self.rollout.runs.insert(key.clone(), run);
        }
        self.rollout.waves.push(keys);
        self
    }

    fn run(&mut self, root: &str) -> &mut RootRun {
        self.rollout.runs.get_mut(&RootKey::new(root)).expect("a root of the world")
    }

    pub(super) fn plan(&mut self, root: &str, changes: Vec<Change>) -> &mut Self {
        let hex: String = root.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.run(root).plan = PlanRun::Done(Planned {
            job: "j".into(),
            plan: Plan { tool_version: "1.11.4".to_owned(), changes, ..Plan::default() },
            digest: Digest::from_hex(&format!("{hex:0<64}")),
            tool: Tool { kind: ToolKind::Terraform, version: "1.11.4".to_owned() },
            at: Timestamp(1),
            took_ms: 1,
            fell_back: Vec::new(),
            since: None,
        });
        self
    }

    pub(super) fn drift(&mut self, root: &str, address: &str) -> &mut Self {
        if let PlanRun::Done(planned) = &mut self.run(root).plan {
            planned.plan.drift.push(address.to_owned());
        }
        self
    }

    /// The tool that planned, and what it found of the other.
    pub(super) fn traces(&mut self, root: &str, kind: ToolKind, traces: &[Trace]) -> &mut Self {
        if let PlanRun::Done(planned) = &mut self.run(root).plan {
            planned.tool.kind = kind;
            planned.plan.traces = traces.to_vec();
        }
        self
    }

    pub(super) fn fail(&mut self, root: &str, failure: Failure) -> &mut Self {
        self.run(root).plan = PlanRun::Failed { job: "j".into(), failure };
        self
    }

    pub(super) fn running(&mut self, root: &str) -> &mut Self {
        self.run(root).plan = PlanRun::Running { job: "j".into(), since: Timestamp(0) };
        self
    }

    pub(super) fn block(&mut self, root: &str, blocker: &Blocker) -> &mut Self {
        self.run(root).plan = PlanRun::Blocked(blocker.clone());
        self
    }

    pub(super) fn apply_run(&mut self, root: &str, apply: ApplyRun) -> &mut Self {
        self.run(root).apply = apply;
        self
    }

    pub(super) fn applied(&mut self, root: &str, counts: Counts, took_ms: i64) -> &mut Self {
        let digest = Digest::from_hex("00");
        let (job, resources, at) = ("j".into(), Vec::new(), Timestamp(0));
        self.apply_run(root, ApplyRun::Applied { job, digest, counts, resources, at, took_ms })
    }

    pub(super) fn edge(&mut self, reader: &str, source: &str, outputs: Option<&[&str]>) -> &mut Self {
        self.rollout.edges.push(Edge {
            reader: RootKey::new(reader),
            source: RootKey::new(source),
            block: format!("data.terraform_remote_state.{source}"),
            outputs: outputs.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            certain: true,
        });
        self
    }

    pub(super) fn again(&mut self, root: &str, source: &str, outputs: &[&str]) -> &mut Self {
        let outputs = outputs.iter().map(|name| (*name).to_owned()).collect();
        self.run(root).replans_after.push(Read { source: RootKey::new(source), outputs, unknown: true, why: None });
        self
    }

    fn reach(&mut self) -> &mut Reach {
        self.rollout.reach.get_or_insert_with(Reach::default)
    }

    pub(super) fn changed(&mut self, roots: &[&str]) -> &mut Self {
        self.reach().changed = roots.iter().map(|root| RootKey::new(*root)).collect();
        self
    }

    pub(super) fn downstream(&mut self, root: &str, wave: usize, reads: &[&str], class: Class) -> &mut Self {
        let reads = reads.iter().map(|root| RootKey::new(*root)).collect();
        let root = RootKey::new(root);
        self.reach().downstream.push(Downstream {
            root,
            wave,
            depth: 1,
            reads,
            by_order: false,
            planned: false,
            class,
        });
        self
    }

    /// A resource of `from` reaches another; through an output when it lies in another root.
    pub(super) fn reaches(
        &mut self,
        from: (&str, &str),
        action: Action,
        address: &str,
        through: Option<(&str, &str, Class)>,
    ) -> &mut Self {
        let own = RootKey::new(from.0);
        let reached = Reached {
            root: through.map_or(own.clone(), |(root, _, _)| RootKey::new(root)),
            address: address.to_owned(),
            through: through.map(|(_, output, class)| Through {
                output: Some(output.to_owned()),
                root: own.clone(),
                class,
            }),
            planned: true,
        };
        let resources = &mut self.reach().resources;
        if let Some(known) = resources.iter_mut().find(|known| known.address == from.1) {
            known.reaches.push(reached);
        } else {
            resources.push(ResourceReach { address: from.1.to_owned(), root: own, action, reaches: vec![reached] });
        }
        self
    }

    pub(super) fn hole(&mut self, path: &str, what: &str) -> &mut Self {
        self.rollout.holes.push(Hole { path: path.to_owned(), line: 3, what: what.to_owned() });
        self
    }

    pub(super) fn state(&mut self, state: WaveState) -> &mut Self {
        self.context.waves.push(state);
        self.context.waits.push(None);
        self
    }

    pub(super) fn waiting(&mut self, wave: usize) -> &mut Self {
        let digest = self.rollout.set_digest(wave);
        self.context.waves.push(WaveState::Waiting(digest));
        self.context.waits.push(Some("1 more approval, from anyone with write access but the author".to_owned()));
        self
    }

    pub(super) fn after(&mut self, wave: usize, earlier: usize) -> &mut Self {
        assert_eq!(self.context.waves.len() + 1, wave, "states come in order");
        self.state(WaveState::After(earlier))
    }
}

pub(super) fn change(address: &str) -> Change {
    action(address, Action::Update)
}

pub(super) fn action(address: &str, action: Action) -> Change {
    Change {
        address: address.to_owned(),
        resource_type: "t".to_owned(),
        action,
        deposed: None,
        previous_address: None,
        importing: false,
        replaced_by: Vec::new(),
        reason: None,
        attributes: Vec::new(),
    }
}

pub(super) fn replaced(address: &str, by: &[&str]) -> Change {
    Change {
        replaced_by: by.iter().map(|path| (*path).to_owned()).collect(),
        reason: Some("replace_because_cannot_update".to_owned()),
        ..action(address, Action::DeleteThenCreate)
    }
}

fn with(mut change: Change, path: &str, before: Shown, after: Shown) -> Change {
    change.attributes.push(AttributeChange { path: path.to_owned(), before, after });
    change
}

pub(super) fn attribute(change: Change, path: &str, before: &str, after: &str) -> Change {
    with(change, path, Shown::Value(before.to_owned()), Shown::Value(after.to_owned()))
}

pub(super) fn unknown(change: Change, path: &str, before: &str) -> Change {
    with(change, path, Shown::Value(before.to_owned()), Shown::Unknown)
}

pub(super) fn sensitive(change: Change, path: &str) -> Change {
    with(change, path, Shown::Sensitive, Shown::Sensitive)
}
