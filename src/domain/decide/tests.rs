//! Random sessions against the decision: whatever comes in whatever order, nothing is applied without an approval of exactly
//! what is planned, nothing runs twice, and a repeated event starts nothing.

use proptest::prelude::*;

use super::decide;
use crate::domain::config::LockMode;
use crate::domain::effect::{Act, CheckState};
use crate::domain::event::Event;
use crate::domain::ids::{RootKey, StateKey};
use crate::domain::lock::Release;
use crate::domain::rollout::{PlanRun, Stage};

mod world;

use world::{AUTHOR, Step, World};

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
        1 => any::<bool>().prop_map(Step::Refuses),
        1 => Just(Step::Close),
        2 => Just(Step::Reopen),
        1 => any::<bool>().prop_map(Step::Draft),
        1 => Just(Step::OtherTakes),
        1 => Just(Step::OtherFrees),
        2 => Just(Step::Repeat),
    ]
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

#[test]
fn a_refused_head_keeps_nobody_waiting_and_takes_its_lock_again_when_it_is_mended() {
    let mut world = World::new();
    world.config.locks = LockMode::Plan;
    world.look();
    world.take(&Step::JobEnds(0, 1));
    let holder = |world: &World| world.locks.locks.get(&StateKey::new("a")).and_then(|lock| lock.holder.clone());
    assert_eq!(holder(&world).map(|holder| holder.pull), Some(1));
    world.take(&Step::Refuses(true));
    world.take(&Step::BaseMoves(1));
    assert_eq!(holder(&world), None, "nothing of it can be applied now");
    world.take(&Step::Refuses(false));
    world.take(&Step::BaseMoves(2));
    assert_eq!(holder(&world).map(|holder| holder.pull), Some(1), "its plan stands, and so does its lock");

    world.take(&Step::Refuses(true));
    world.take(&Step::BaseMoves(1));
    world.take(&Step::OtherTakes);
    world.take(&Step::Refuses(false));
    world.take(&Step::BaseMoves(2));
    let plan = |world: &World| world.pull.rollout.as_ref().map(|rollout| rollout.runs[&RootKey::new("a")].plan.clone());
    assert!(matches!(plan(&world), Some(PlanRun::Blocked(_))), "another pull came first: {:?}", plan(&world));
    world.take(&Step::OtherFrees);
    assert!(matches!(plan(&world), Some(PlanRun::Running { .. })), "{:?}", plan(&world));
}

#[test]
fn a_head_that_was_refused_at_once_is_read_again_when_the_base_moves() {
    let mut world = World::new();
    world.take(&Step::Refuses(true));
    world.look();
    world.take(&Step::Refuses(false));
    world.take(&Step::BaseMoves(1));
    assert_eq!(world.pull.rollout.as_ref().map(|rollout| rollout.stage.clone()), Some(Stage::Ready));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_applied_without_its_approval_whatever_comes(
        locks in prop::sample::select(vec![LockMode::Apply, LockMode::Plan]),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new();
        world.config.locks = locks;
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
        world.take(&Step::Refuses(false));
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
