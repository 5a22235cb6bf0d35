//! What a note says of other pulls and other repositories, in one and in many.

use super::world::{World, action};
use crate::domain::event::StateRead;
use crate::domain::ids::RootKey;
use crate::domain::neighbour::{Because, Mover, MovingPull, Neighbour, Shared};
use crate::domain::outside::{Outside, OutsideName, OutsideSource};
use crate::domain::plan::Action;
use crate::domain::pull::Merge;
use crate::domain::reach::{Class, Reach};
use crate::domain::rollout::PlanRun;

/// 09:12 of some day.
const AT: crate::domain::ids::Timestamp = crate::domain::ids::Timestamp(33_120_000);

fn world() -> World {
    let mut world = World::new();
    world.wave(&["net"]).wave(&["app"]);
    world.plan("net", vec![action("aws_vpc.main", Action::Update)]);
    world.plan("app", vec![action("aws_instance.app", Action::Update)]);
    world.waiting(1).after(2, 1);
    world
}

fn shared(root: &str, address: &str, theirs: Action, ours: Action) -> Shared {
    Shared { root: RootKey::new(root), address: address.to_owned(), theirs, ours }
}

fn neighbour(pull: u64, by: &str, shared: Vec<Shared>) -> Neighbour {
    Neighbour { pull, by: by.into(), draft: false, shared }
}

fn mover(repo: Option<&str>, outputs: &[&str]) -> Mover {
    let pull = MovingPull { repo: repo.map(str::to_owned), number: 12, by: "ann".into(), root: RootKey::new("net") };
    let outputs = Some(outputs.iter().map(|name| (*name).to_owned()).collect());
    Mover { pull: Some(pull), outputs, failed: false, at: AT }
}

#[test]
fn one_pull_and_one_resource() {
    let mut world = world();
    world.pull.neighbours =
        vec![neighbour(12, "ann", vec![shared("net", "aws_vpc.main", Action::Update, Action::Update)])];
    let note = world.note();
    let head = "**Another open pull changes the same resource:** whoever applies first locks the root until that pull merges or closes, and the others are planned again on what is there then.";
    let line = "- #12 by `@ann` updates `aws_vpc.main` in `net`, as this pull does";
    assert!(note.contains(&format!("{head}\n\n{line}\n\n")), "{note}");
}

#[test]
fn what_dies_stands_first_and_many_are_folded() {
    let mut world = world();
    let many = |number: u64| {
        let update = |index: u64| shared("net", &format!("aws_x.a{index}"), Action::Update, Action::Update);
        neighbour(
            number,
            "kim",
            (0..5).map(update).chain([shared("app", "aws_y.b", Action::Create, Action::Create)]).collect(),
        )
    };
    world.pull.neighbours = (20..24).map(many).collect();
    world.pull.neighbours.push(Neighbour {
        draft: true,
        ..neighbour(30, "lin", vec![shared("net", "aws_vpc.main", Action::Delete, Action::Update)])
    });
    let note = world.note();
    assert!(note.contains("**5 other open pulls change the same resources:**"), "{note}");
    let first = note.find("- #30 by `@lin` (a draft) deletes `aws_vpc.main` in `net`, which this pull updates");
    let second =
        note.find("- #20 by `@kim` updates `aws_x.a0`, `aws_x.a1`, `aws_x.a2` and 2 more in `net`, as this pull does");
    assert!(first.expect("the deletion") < second.expect("the others"), "{note}");
    assert!(note.contains("<details><summary>4 more lines</summary>"), "{note}");
}

#[test]
fn an_applied_root_is_nobodys_any_more() {
    let mut world = world();
    world.pull.neighbours =
        vec![neighbour(12, "ann", vec![shared("net", "aws_vpc.main", Action::Update, Action::Update)])];
    world.applied("net", crate::domain::plan::Counts::default(), 1);
    assert!(!world.note().contains("other open pull"));
}

#[test]
fn a_plan_made_again_says_because_of_whom() {
    let merge = Merge { pull: 12, by: "ann".into(), base_ref: "main".to_owned(), states: Vec::new() };
    let moved = |merged| Because::BaseMoved { branch: "main".to_owned(), tip: "41d0e770".into(), merged };
    let anonymous = Mover { pull: None, ..mover(None, &["vpc_id"]) };
    for (because, wanted) in [
        (
            Because::Applied(mover(None, &["vpc_id"])),
            "#12 by `@ann` applied `net` at 09:12 UTC and changed output `vpc_id`",
        ),
        (
            Because::Applied(mover(None, &["cidr", "vpc_id", "zone"])),
            "#12 by `@ann` applied `net` at 09:12 UTC and changed outputs `cidr` and `vpc_id`",
        ),
        (
            Because::Applied(Mover { failed: true, ..mover(None, &["zone"]) }),
            "#12 by `@ann` applied `net` in part at 09:12 UTC",
        ),
        (
            Because::Applied(mover(Some("acme/net"), &["vpc_id"])),
            "`acme/net#12` by `@ann` applied `net` of `acme/net` at 09:12 UTC and changed output `vpc_id`",
        ),
        (
            Because::Applied(anonymous),
            "a pull of another repository applied a root whose state it reads at 09:12 UTC and changed output `vpc_id`",
        ),
        (moved(None), "`main` moved to `41d0e77`"),
        (moved(Some(merge)), "#12 by `@ann` merged and moved `main` to `41d0e77`"),
    ] {
        let mut world = world();
        let run = world.rollout.runs.get_mut(&RootKey::new("app")).expect("app");
        let outputs = Some(vec!["cidr".to_owned(), "vpc_id".to_owned()]);
        run.uses = vec![StateRead { state: "s".into(), outputs, external: false }];
        run.again = Some(because);
        let plan = run.plan.clone();
        let note = world.note();
        assert!(note.contains(&format!("**Planned again:** `app`, because {wanted}.\n\n")), "{wanted}: {note}");

        let run = world.rollout.runs.get_mut(&RootKey::new("app")).expect("app");
        if let PlanRun::Done(planned) = &plan {
            run.previous = Some(planned.clone());
        }
        let same = "The plan is the same as before; what was approved still is.";
        assert!(world.note().contains(&format!("because {wanted}. {same}")), "{}", world.note());

        world.running("app");
        let note = world.note();
        let coming = format!("**Being planned again:** `app`, because {wanted}. The plan before no longer counts.");
        assert!(note.contains(&coming) && note.contains("| stale, being planned again |"), "{note}");
    }
}

#[test]
fn the_root_that_another_pull_applied_itself() {
    let mut world = world();
    world.rollout.runs.get_mut(&RootKey::new("net")).expect("net").again =
        Some(Because::Applied(mover(None, &["vpc_id"])));
    let note = world.note();
    assert!(note.contains("**Planned again:** `net`, because #12 by `@ann` applied it at 09:12 UTC."), "{note}");
}

fn outside(groups: &[(Class, usize)], names: &[&str]) -> World {
    let mut world = world();
    let source = |(class, readers): &(Class, usize)| OutsideSource {
        source: RootKey::new("net"),
        class: *class,
        readers: *readers,
        names: names
            .iter()
            .map(|root| OutsideName { repo: "acme/web".to_owned(), root: RootKey::new(*root) })
            .collect(),
    };
    let sources: Vec<OutsideSource> = groups.iter().map(source).collect();
    let readers = groups.iter().map(|(_, readers)| readers).sum();
    let changed = vec![RootKey::new("net")];
    world.rollout.reach = Some(Reach { changed, outside: Some(Outside { readers, sources }), ..Reach::default() });
    world
}

#[test]
fn readers_elsewhere_are_counted_or_named() {
    let note = outside(&[(Class::MayChange, 1)], &[]).note();
    let alone = "**Blast radius:** 1 root changes (`net`), and no other root here reads its state.";
    let one = "**In other repositories**, 1 root reads its state:\n\n- 1 root reads `net`; may change\n\n";
    assert!(note.contains(&format!("{alone}\n\n{one}")), "{note}");

    let note = outside(&[(Class::Changes, 3), (Class::Unchanged, 165)], &[]).note();
    let many = "**In other repositories**, 168 roots read its state:\n\n- 3 roots read `net`\n- 165 roots read `net`; value unchanged\n\n";
    assert!(note.contains(many), "{note}");

    let roots: Vec<String> = (0..168).map(|index| format!("envs/{index:03}")).collect();
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let note = outside(&[(Class::Changes, 168)], &roots).note();
    assert!(
        note.contains("- `envs/004` of `acme/web` reads `net`\n\n<details><summary>163 more lines</summary>"),
        "{note}"
    );
    assert!(note.contains("- and 123 more\n</details>"), "{note}");
}
