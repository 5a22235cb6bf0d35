//! Random sessions against the decision: whatever comes in whatever order, nothing is applied without an approval of exactly
//! what is planned, nothing runs twice, and a repeated event starts nothing.

use proptest::prelude::*;

use super::{Decision, Facts, Server, decide};
use crate::domain::approval::Permission;
use crate::domain::config::RepoConfig;
use crate::domain::effect::{Act, CheckState};
use crate::domain::estate::Edge;
use crate::domain::event::{AuthorKind, Comment, CommentKind, Event, InspectedRoot, Inspection, Outcome, Reading};
use crate::domain::ids::{Digest, JobId, PullKey, RepoKey, RolloutId, RootKey, Sha, StateKey, Timestamp};
use crate::domain::job::{Failure, JobSpec, Phase};
use crate::domain::lock::{Cause, Holder, LockTable, Release};
use crate::domain::page::Pages;
use crate::domain::plan::{Action, Change, OutputChange, Plan, Shown};
use crate::domain::pull::{Pull, PullState, Seen};
use crate::domain::rollout::{PlanRun, Planned, Rollout, Stage, Tool};

const AUTHOR: &str = "mira";

/// What can happen.
#[derive(Clone, Debug)]
enum Step {
    Push(u8),
    /// The n-th running job ends, a plan with this variant of changes; 0 changes nothing.
    JobEnds(usize, u8),
    JobFails(usize),
    JobIsStale(usize),
    JobIsLost(usize),
    Comment(&'static str, &'static str),
    BaseMoves(u8),
    Close,
    Reopen,
    Draft(bool),
    OtherTakes,
    OtherFrees,
    Repeat,
}

fn step() -> impl Strategy<Value = Step> {
    let who = prop::sample::select(vec![AUTHOR, "lin", "kim"]);
    let what = prop::sample::select(vec![
        "apply",
        "apply wave-1",
        "apply -d b",
        "approve",
        "approve wave-1",
        "approve wave-2",
        "plan",
        "plan -d a",
        "unapprove",
        "discard",
        "cancel",
        "unlock",
        "lock",
        "status",
        "words",
    ]);
    prop_oneof![
        2 => (0u8..3).prop_map(Step::Push),
        8 => (0usize..4, 0u8..3).prop_map(|(at, variant)| Step::JobEnds(at, variant)),
        1 => (0usize..4).prop_map(Step::JobFails),
        1 => (0usize..4).prop_map(Step::JobIsStale),
        1 => (0usize..4).prop_map(Step::JobIsLost),
        10 => (who, what).prop_map(|(who, what)| Step::Comment(who, what)),
        1 => (0u8..3).prop_map(Step::BaseMoves),
        1 => Just(Step::Close),
        2 => Just(Step::Reopen),
        1 => any::<bool>().prop_map(Step::Draft),
        1 => Just(Step::OtherTakes),
        1 => Just(Step::OtherFrees),
        2 => Just(Step::Repeat),
    ]
}

struct World {
    pull: Pull,
    locks: LockTable,
    running: Vec<JobSpec>,
    seen: Seen,
    now: i64,
    comments: u64,
    last: Option<Event>,
    base: Sha,
}

impl World {
    fn new() -> Self {
        let seen = Seen {
            repo: "acme/infra".to_owned(),
            head: Sha::new("h0"),
            base_ref: "main".to_owned(),
            base: Sha::new("b0"),
            author: AUTHOR.into(),
            title: String::new(),
            state: PullState::Open,
            draft: false,
            fork: false,
            mergeable: Some(true),
            updated: Timestamp(1),
        };
        let key = PullKey { repo: RepoKey { forge: "github".to_owned(), id: 1 }, number: 1 };
        Self {
            pull: Pull::unseen(key, "acme/infra", Timestamp(0)),
            locks: LockTable::default(),
            running: Vec::new(),
            seen,
            now: 1,
            comments: 0,
            last: None,
            base: Sha::new("b0"),
        }
    }

    fn facts(&self, event: &Event) -> Facts {
        let comment = matches!(event, Event::Comment(..));
        Facts {
            now: Timestamp(self.now * 1000),
            locks: self.locks.clone(),
            fresh: comment.then(|| self.seen.clone()),
            permission: comment.then_some(Permission::Write),
            interested: Vec::new(),
            foreign: Vec::new(),
            base_tip: None,
            teams: std::collections::BTreeMap::new(),
            reviews: None,
            estate: None,
            server: Server {
                login: "tidegate[bot]".to_owned(),
                pages: Pages::new("http://t", b"k"),
                comment_limit: 65_536,
                edit_gap_ms: 1,
                parallelism: 4,
                cross_repo: crate::domain::outside::CrossRepo::Counts,
            },
        }
    }

    /// Takes an event, checks what it started, and answers inspections at once.
    fn hear(&mut self, event: Event) {
        self.now += 2;
        let facts = self.facts(&event);
        let decision = decide(&self.pull, &facts, &event);
        if self.now % 32 == 1 {
            let again = decide(&self.pull, &facts, &event);
            assert_eq!(format!("{decision:?}"), format!("{again:?}"), "deciding is a function");
        }
        self.check(&decision);
        self.check_lines(&decision);
        self.pull = decision.pull.clone();
        if let Some(locks) = &decision.locks {
            self.locks = locks.clone();
        }
        self.running.extend(decision.jobs.iter().cloned());
        self.last = Some(event);
        for effect in &decision.effects {
            if let Act::Inspect { rollout, head, base, reading, .. } = &effect.act {
                self.hear_late(rollout, head, reading.wrapping_sub(1));
                let inspection = Event::Inspected(Box::new(self.inspection(head, base)));
                self.hear(inspection.of_reading(Reading { rollout: rollout.clone(), number: *reading }));
            }
        }
    }

    /// The answer to a reading that was replaced says nothing any more.
    fn hear_late(&mut self, rollout: &RolloutId, head: &Sha, number: u32) {
        let before = self.pull.rollout.clone();
        let late = Event::Inspected(Box::new(self.inspection(head, &Sha::new("late"))));
        let late = late.of_reading(Reading { rollout: rollout.clone(), number });
        let decision = decide(&self.pull, &self.facts(&late), &late);
        assert_eq!(decision.pull.rollout, before, "a late reading changes nothing");
    }

    fn check(&self, decision: &Decision) {
        let after = &decision.pull;
        for spec in &decision.jobs {
            assert!(!self.running.iter().any(|known| known.id == spec.id), "a job's id is new");
            if spec.phase == Phase::Plan {
                continue;
            }
            let rollout = after.rollout.as_ref().expect("an apply has a rollout");
            assert_eq!(rollout.head, spec.head, "only the current head is applied");
            let applying = |known: &&JobSpec| known.phase == Phase::Apply && known.root == spec.root;
            assert!(self.running.iter().find(applying).is_none(), "{} is applied twice at once", spec.root);
            let wave = rollout.wave_of(&spec.root).expect("a wave");
            let digest = rollout.set_digest(wave).expect("a digest");
            let approved = after
                .approvals
                .iter()
                .any(|approval| approval.wave == wave && approval.digest == digest && approval.by.as_str() != AUTHOR);
            assert!(approved, "{} is applied without an approval of {digest}", spec.root);
            let planned = rollout.runs[&spec.root].planned().expect("a plan");
            assert_eq!(spec.plan_of.as_ref(), Some(&planned.job), "exactly the plan that was approved");
            let locks = decision.locks.as_ref().unwrap_or(&self.locks);
            let holder = locks.locks.get(&rollout.runs[&spec.root].state).and_then(|lock| lock.holder.as_ref());
            assert_eq!(holder.map(|holder| holder.pull), Some(1), "the lock is held");
            assert!(
                decision.ledger.iter().any(|line| line.contains("uses") && line.contains(digest.as_str())),
                "the ledger records the use"
            );
        }
    }

    /// Nobody keeps others waiting in a line for a state that it will not plan.
    fn check_lines(&self, decision: &Decision) {
        let locks = decision.locks.as_ref().unwrap_or(&self.locks);
        let ready = |rollout: &&Rollout| !matches!(rollout.stage, Stage::Inspecting);
        let Some(rollout) = decision.pull.rollout.as_ref().filter(ready) else { return };
        for (state, lock) in locks.locks.iter().filter(|(_, lock)| lock.queue.contains(&1)) {
            let turn = lock.holder.is_none() && lock.queue.first() == Some(&1);
            let plan = rollout.runs.values().find(|run| run.state == *state).map(|run| &run.plan);
            let wants = match plan {
                Some(PlanRun::Queued | PlanRun::Blocked(_)) => rollout.stage == Stage::Ready,
                Some(PlanRun::Done(_) | PlanRun::Running { .. } | PlanRun::AwaitsSource(_)) => !turn,
                _ => false,
            };
            assert!(wants && decision.pull.is_open(), "{state:?}: {lock:?} while {plan:?}");
        }
    }

    fn inspection(&self, head: &Sha, base: &Sha) -> Inspection {
        let root = |name: &str, reads: &[&str]| InspectedRoot {
            root: RootKey::new(name),
            reasons: Vec::new(),
            settings: crate::domain::config::RootSettings::default(),
            state: StateKey::new(name),
            reads: reads.iter().map(|read| StateKey::new(*read)).collect(),
            uses: Vec::new(),
            // The head decides what `a` is; the base only what `b` is.
            source: if name == "a" { head.as_str().to_owned() } else { base.as_str().to_owned() },
            closure: vec![name.to_owned()],
        };
        Inspection {
            head: head.clone(),
            base: base.clone(),
            tree: Sha::new(format!("t-{head}-{base}")),
            config: RepoConfig::default(),
            undiverged: true,
            committers: vec![AUTHOR.into()],
            roots: vec![root("a", &[]), root("b", &["a"])],
            waves: vec![vec![RootKey::new("a")], vec![RootKey::new("b")]],
            edges: vec![Edge {
                reader: RootKey::new("b"),
                source: RootKey::new("a"),
                block: "data.terraform_remote_state.a".to_owned(),
                outputs: Some(vec!["x".to_owned()]),
                certain: true,
            }],
            holes: Vec::new(),
            notices: Vec::new(),
            reading: None,
        }
    }

    fn end(&mut self, at: usize, outcome: impl FnOnce(&JobSpec) -> Outcome) {
        if self.running.is_empty() {
            return;
        }
        let spec = self.running.remove(at % self.running.len());
        let outcome = Box::new(outcome(&spec));
        self.hear(Event::JobEnded { job: spec.id, outcome });
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Push(variant) => {
                self.seen.head = Sha::new(format!("h{variant}"));
                self.look();
            }
            Step::JobEnds(at, variant) => {
                let now = self.now;
                self.end(*at, |spec| match spec.phase {
                    Phase::Plan => Outcome::Planned(planned(&spec.id, &spec.source, *variant, now)),
                    Phase::Apply => Outcome::Applied(Vec::new()),
                });
            }
            Step::JobFails(at) => self.end(*at, |_| Outcome::Failed {
                failure: Failure { summary: "no".to_owned(), ..Failure::default() },
                resources: Vec::new(),
                errored_state: crate::domain::job::StateLeft::Nothing,
            }),
            Step::JobIsStale(at) => self.end(*at, |_| Outcome::Stale(Failure::default())),
            Step::JobIsLost(at) => self.end(*at, |_| Outcome::Lost("gone".to_owned())),
            Step::Comment(who, what) => {
                self.comments += 1;
                let comment = Comment {
                    id: self.comments,
                    by: (*who).into(),
                    author: AuthorKind::Person,
                    body: (*what).to_owned(),
                    at: Timestamp((self.now + 2) * 1000),
                    kind: CommentKind::Created,
                };
                self.hear(Event::Comment("acme/infra".to_owned(), comment));
            }
            Step::BaseMoves(variant) => {
                self.base = Sha::new(format!("b{variant}"));
                let tip = self.base.clone();
                self.hear(Event::BaseMoved { branch: "main".to_owned(), tip });
            }
            Step::Close => {
                self.seen.state = PullState::Closed;
                self.look();
            }
            Step::Reopen => {
                self.seen.state = PullState::Open;
                self.look();
            }
            Step::Draft(draft) => {
                self.seen.draft = *draft;
                self.look();
            }
            Step::OtherTakes => self.other_takes(),
            Step::OtherFrees => self.other_frees(),
            Step::Repeat => self.repeat(),
        }
    }

    fn look(&mut self) {
        self.seen.updated = Timestamp(self.now * 1000 + 1);
        let seen = self.seen.clone();
        self.hear(Event::Seen(Box::new(seen)));
    }

    /// Another pull takes `a`.
    fn other_takes(&mut self) {
        let holder = Holder { pull: 2, by: "ann".into(), since: Timestamp(self.now), cause: Cause::Apply };
        if let Ok(locks) = self.locks.take(&[(StateKey::new("a"), RootKey::new("a"))], &holder) {
            self.locks = locks;
        }
        self.hear(Event::LockFreed);
    }

    /// Another pull frees `a`.
    fn other_frees(&mut self) {
        self.locks = self.locks.release(2, &Release::All).0;
        self.hear(Event::LockFreed);
    }

    /// The same event again starts no job.
    fn repeat(&mut self) {
        let Some(event) = self.last.clone() else { return };
        let before = self.running.len();
        self.hear(event);
        assert_eq!(self.running.len(), before, "a repeated event starts nothing");
    }
}

fn planned(job: &JobId, source: &str, variant: u8, now: i64) -> Planned {
    let update = Change {
        address: "x.y".to_owned(),
        resource_type: "x".to_owned(),
        action: Action::Update,
        deposed: None,
        previous_address: None,
        importing: false,
        replaced_by: Vec::new(),
        reason: None,
        attributes: Vec::new(),
    };
    let output = OutputChange {
        name: "x".to_owned(),
        action: Action::Update,
        before: Shown::Absent,
        after: Shown::Unknown,
        unknown: true,
    };
    let changes = variant > 0;
    let text: String = format!("{source}{variant}").bytes().map(|byte| format!("{byte:02x}")).collect();
    Planned {
        job: job.clone(),
        plan: Plan {
            tool_version: "1".to_owned(),
            changes: if changes { vec![update] } else { Vec::new() },
            outputs: if changes { vec![output] } else { Vec::new() },
            ..Plan::default()
        },
        digest: Digest::from_hex(&text),
        tool: Tool { kind: crate::domain::config::ToolKind::Terraform, version: "1".to_owned() },
        at: Timestamp(now * 1000),
        took_ms: 0,
        fell_back: Vec::new(),
        since: None,
    }
}

#[test]
fn the_session_that_the_random_ones_vary_applies_both_waves() {
    let mut world = World::new();
    world.look();
    let session = [
        Step::JobEnds(0, 1),
        Step::JobEnds(0, 1),
        Step::Comment("lin", "approve"),
        Step::Comment(AUTHOR, "apply"),
        Step::JobEnds(0, 1),
        Step::JobEnds(0, 2),
        Step::Comment("lin", "approve wave-2"),
        Step::JobEnds(0, 1),
    ];
    for step in &session {
        world.take(step);
    }
    let rollout = world.pull.rollout.as_ref().expect("a rollout");
    assert!(rollout.runs.values().all(crate::domain::rollout::RootRun::is_applied), "{:?}", rollout.apply);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_applied_without_its_approval_whatever_comes(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        world.look();
        for step in &steps {
            world.take(step);
        }
    }

    #[test]
    fn every_session_comes_to_an_end(steps in prop::collection::vec(step(), 1..30)) {
        let mut world = World::new();
        world.look();
        for step in &steps {
            world.take(step);
        }
        world.locks = world.locks.release(2, &Release::All).0;
        world.take(&Step::Reopen);
        world.hear(Event::LockFreed);
        for _ in 0..40 {
            world.take(&Step::JobEnds(0, 1));
        }
        prop_assert!(world.running.is_empty(), "jobs start jobs for ever");
        let facts = world.facts(&Event::LockFreed);
        let decision = decide(&world.pull, &facts, &Event::LockFreed);
        let running = decision.effects.iter().any(|effect| matches!(&effect.act, Act::Check(report) if report.state == CheckState::Running));
        prop_assert!(!running, "a check says that something runs, and nothing does");
    }
}
