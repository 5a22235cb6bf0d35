//! The world of the random sessions: one pull of two roots, what happens to it, and what must hold after each decision.

use super::super::{Decision, Facts, Server, decide};
use crate::domain::approval::Permission;
use crate::domain::config::RepoConfig;
use crate::domain::effect::Act;
use crate::domain::estate::Edge;
use crate::domain::event::{AuthorKind, Comment, CommentKind, Event, InspectedRoot, Inspection, Outcome, Reading};
use crate::domain::ids::{Digest, JobId, PullKey, RepoKey, RolloutId, RootKey, Sha, StateKey, Timestamp};
use crate::domain::job::{Failure, JobSpec, Phase};
use crate::domain::lock::{Cause, Holder, LockTable, Release};
use crate::domain::page::Pages;
use crate::domain::plan::{Action, Change, OutputChange, Plan, Shown};
use crate::domain::pull::{Pull, PullState, Seen};
use crate::domain::rollout::{ApplyStage, PlanRun, Planned, Refusal, Rollout, Stage, Tool};

/// Who wrote the change.
pub(super) const AUTHOR: &str = "mira";

/// What can happen.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Push(u8),
    /// The n-th running job ends, a plan with this variant of changes; 0 changes nothing.
    JobEnds(usize, u8),
    JobFails(usize),
    JobIsStale(usize),
    JobIsLost(usize),
    Comment(&'static str, &'static str),
    BaseMoves(u8),
    /// From now on heads are refused, or are no more.
    Refuses(bool),
    Close,
    Reopen,
    Draft(bool),
    OtherTakes,
    OtherFrees,
    Repeat,
}

/// Everything that a decision sees.
pub(super) struct World {
    pub(super) pull: Pull,
    pub(super) locks: LockTable,
    pub(super) running: Vec<JobSpec>,
    seen: Seen,
    now: i64,
    comments: u64,
    last: Option<Event>,
    base: Sha,
    pub(super) refuses: bool,
    pub(super) config: RepoConfig,
}

impl World {
    pub(super) fn new() -> Self {
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
            refuses: false,
            config: RepoConfig::default(),
        }
    }

    pub(super) fn facts(&self, event: &Event) -> Facts {
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
                managed: crate::domain::managed::Managed::default(),
                cross_repo: crate::domain::outside::CrossRepo::Counts,
            },
        }
    }

    /// Takes an event, checks what it started, and answers inspections at once.
    pub(super) fn hear(&mut self, event: Event) {
        self.now += 2;
        let facts = self.facts(&event);
        let decision = decide(&self.pull, &facts, &event);
        if self.now % 32 == 1 {
            let again = decide(&self.pull, &facts, &event);
            assert_eq!(format!("{decision:?}"), format!("{again:?}"), "deciding is a function");
        }
        self.check(&decision);
        self.check_lines(&decision);
        self.check_held(&decision);
        self.pull = decision.pull.clone();
        if let Some(locks) = &decision.locks {
            self.locks = locks.clone();
        }
        self.running.extend(decision.jobs.iter().cloned());
        self.last = Some(event);
        for effect in &decision.effects {
            if let Act::Inspect { rollout, head, base, reading, .. } = &effect.act {
                self.hear_late(rollout, head, reading.wrapping_sub(1));
                let answer = if self.refuses {
                    let refusal = Refusal { title: "no".to_owned(), text: String::new() };
                    Event::Refused { head: head.clone(), refusal, reading: None }
                } else {
                    Event::Inspected(Box::new(self.inspection(head, base)))
                };
                self.hear(answer.of_reading(Reading { rollout: rollout.clone(), number: *reading }));
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

    /// Beside what an apply worked on or a person asked for, only what has something to plan or to apply is held: nothing of a head that
    /// is refused.
    pub(super) fn check_held(&self, decision: &Decision) {
        let pull = &decision.pull;
        let ready = |rollout: &&Rollout| !matches!(rollout.stage, Stage::Inspecting);
        let Some(rollout) = pull.rollout.as_ref().filter(ready).filter(|_| pull.is_open()) else { return };
        let applies = rollout.apply.as_ref().is_some_and(|apply| apply.stage != ApplyStage::Done);
        let locks = decision.locks.as_ref().unwrap_or(&self.locks);
        for (state, lock) in &locks.locks {
            let Some(holder) = lock.holder.as_ref().filter(|holder| holder.pull == 1) else { continue };
            let run = rollout.runs.values().find(|run| run.state == *state);
            let works =
                run.is_some_and(|run| run.lacks_plan() || run.changes_something() || !run.replans_after.is_empty());
            let has_reason = pull.touched.contains(state)
                || matches!(holder.cause, Cause::Asked(_))
                || rollout.stage == Stage::Ready && (applies || works);
            assert!(has_reason, "{state:?} is held without a reason: {holder:?}, {:?}", run.map(|run| &run.plan));
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
            config: self.config.clone(),
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

    pub(super) fn end(&mut self, at: usize, outcome: impl FnOnce(&JobSpec) -> Outcome) {
        if self.running.is_empty() {
            return;
        }
        let spec = self.running.remove(at % self.running.len());
        let outcome = Box::new(outcome(&spec));
        self.hear(Event::JobEnded { job: spec.id, outcome });
    }

    pub(super) fn take(&mut self, step: &Step) {
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
            Step::Refuses(refuses) => self.refuses = *refuses,
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

    pub(super) fn look(&mut self) {
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
