//! Whole notes as people read them, and what holds for any note.

use super::markdown::code;
use super::*;
use crate::domain::config::{LockMode, ToolKind};
use crate::domain::ids::Login;
use crate::domain::job::{Failure, ReplaceStage, ResourceStage, ResourceState, StateLeft};
use crate::domain::plan::trace::Trace;
use crate::domain::plan::{Action, Counts};
use crate::domain::reach::Class;
use crate::domain::rollout::{ApplyRun, ApplyStage, Blocker, Hold, Read, Refusal, Scope};

mod any;
mod beside;
mod report;
mod world;

use world::{World, action, attribute, change, replaced, sensitive, unknown};

/// The pull of the worked example.
fn example() -> World {
    let mut world = World::new();
    world.wave(&["network"]).wave(&["database"]).wave(&["app", "worker"]);
    world.plan(
        "network",
        vec![attribute(action("aws_subnet.private", Action::Update), "map_public_ip", "true", "false")],
    );
    let orders = replaced("aws_db_instance.orders", &["engine_version"]);
    let orders = attribute(orders, "engine_version", "\"15.4\"", "\"16.1\"");
    let orders = unknown(orders, "endpoint", "\"orders.internal\"");
    world.plan("database", vec![action("aws_db_subnet_group.old", Action::Delete), sensitive(orders, "password")]);
    let creates = ["aws_ssm_parameter.a", "aws_ssm_parameter.b"].map(|address| action(address, Action::Create));
    let task = attribute(action("aws_ecs_task_definition.app", Action::Update), "cpu", "256", "512");
    world.plan("app", std::iter::once(task).chain(creates).collect());
    world.plan("worker", vec![]);
    world.edge("database", "network", Some(&["subnet_ids"])).edge("app", "database", Some(&["endpoint"]));
    world.edge("billing", "database", None);
    world.again("app", "database", &["endpoint"]);
    world.changed(&["network", "database", "app"]);
    world.downstream("reports", 4, &["app"], Class::Unchanged);
    world.downstream("billing", 4, &["database"], Class::MayChange);
    world.reaches(("database", "aws_db_instance.orders"), Action::DeleteThenCreate, "aws_ssm_parameter.dsn", None);
    world.reaches(
        ("database", "aws_db_instance.orders"),
        Action::DeleteThenCreate,
        "aws_ecs_task_definition.app",
        Some(("app", "endpoint", Class::MayChange)),
    );
    world.reaches(
        ("network", "aws_subnet.private"),
        Action::Update,
        "aws_db_subnet_group.orders",
        Some(("database", "subnet_ids", Class::Unchanged)),
    );
    world.waiting(1).after(2, 1).after(3, 2);
    world
}

#[test]
fn a_pull_that_waits_for_approvals() {
    insta::assert_snapshot!(example().note());
}

#[test]
fn a_plan_that_failed() {
    let mut world = World::new();
    world.wave(&["database"]).wave(&["app"]);
    world.plan("database", vec![action("aws_db_parameter_group.a", Action::Update)]);
    world.fail(
        "app",
        Failure {
            step: "plan".to_owned(),
            summary: "Unsupported attribute".to_owned(),
            detail: "This object does not have an attribute named \"endpoit\".".to_owned(),
            file: Some("app/main.tf".to_owned()),
            line: Some(14),
            code: Some("  value = data.terraform_remote_state.database.outputs.endpoit".to_owned()),
            address: None,
            others: vec!["Missing @team argument: see #12".to_owned()],
        },
    );
    world.waiting(1).state(WaveState::Failed);
    insta::assert_snapshot!(world.note());
}

#[test]
fn nothing_changes() {
    let mut world = World::new();
    world.wave(&["network", "app"]).plan("network", vec![]).plan("app", vec![]).state(WaveState::NoChanges);
    insta::assert_snapshot!(world.note(), @"
    ### No changes

    2 roots planned at `9f2c1ab` on top of `main` `41d0e77` · nothing to apply, nothing is locked · [run](https://tidegate.example/r/1204)
    ");
}

#[test]
fn drift_alone_is_no_change_and_no_silence() {
    let mut world = World::new();
    world.wave(&["network"]).plan("network", vec![]).drift("network", "aws_vpc.main").state(WaveState::NoChanges);
    let note = world.note();
    assert!(note.starts_with("### No changes\n"), "{note}");
    assert!(
        note.ends_with("Changed outside, and the code asks for nothing else:\n\n- `aws_vpc.main` in `network`"),
        "{note}"
    );
}

#[test]
fn one_root_that_only_moves() {
    let mut world = World::new();
    let mut moved = action("aws_sqs_queue.new", Action::Nothing);
    moved.previous_address = Some("aws_sqs_queue.old".to_owned());
    world.wave(&["queue"]).plan("queue", vec![moved]).waiting(1);
    insta::assert_snapshot!(world.note());
}

#[test]
fn before_the_roots_are_known() {
    let mut world = World::new();
    world.rollout.stage = Stage::Inspecting;
    insta::assert_snapshot!(world.note(), @"
    ### Planning at `9f2c1ab`…

    Reading which roots this change reaches · [run](https://tidegate.example/r/1204)
    ");
    let (title, text) = ("Not planned: base and head conflict".to_owned(), "Merge `main` and push.".to_owned());
    world.rollout.stage = Stage::Refused(Refusal { title, text });
    assert!(world.note().starts_with("### Not planned: base and head conflict\n\nMerge `main` and push."));
}

#[test]
fn while_roots_are_still_planned() {
    let mut world = World::new();
    world.wave(&["network"]).wave(&["database", "app"]);
    world.plan("network", vec![action("a.b", Action::Create)]);
    world.running("database").state(WaveState::Planning).state(WaveState::Planning);
    insta::assert_snapshot!(world.note());
}

#[test]
fn locked_by_another_pull() {
    let mut world = World::new();
    world.wave(&["network", "dns"]).wave(&["app"]);
    let blocker =
        Blocker { pull: 41, by: Login::from("sam"), since: Timestamp(33_120_000), ahead: vec![43], how: Hold::Lock };
    world.block("network", &blocker).block("dns", &blocker);
    world.plan("app", vec![action("a.b", Action::Create)]).state(WaveState::Planning).after(2, 1);
    insta::assert_snapshot!(world.note());
}

fn resource(address: &str, action: Action, state: ResourceStage) -> ResourceState {
    ResourceState {
        address: address.to_owned(),
        deposed: None,
        action,
        state,
        stages: Vec::new(),
        seconds: 0,
        error: None,
    }
}

fn four(orders: ResourceStage, dsn: ResourceStage) -> Vec<ResourceState> {
    let mut replaced = resource("aws_db_instance.orders", Action::DeleteThenCreate, orders);
    replaced.seconds = 130;
    replaced.stages = vec![
        ReplaceStage { what: "delete".to_owned(), state: ResourceStage::Done },
        ReplaceStage { what: "create".to_owned(), state: orders },
    ];
    if orders == ResourceStage::Failed {
        replaced.error = Some("InsufficientDBInstanceCapacity: `db.r6g` is not there, ask @aws".to_owned());
    }
    vec![
        resource("aws_db_subnet_group.orders", Action::Update, ResourceStage::Done),
        resource("aws_db_parameter_group.pg16", Action::Create, ResourceStage::Done),
        replaced,
        resource("aws_ssm_parameter.dsn", Action::Create, dsn),
    ]
}

fn applying() -> World {
    let mut world = example();
    world.applied("network", Counts { update: 1, ..Counts::default() }, 41_000);
    world.context.waves = vec![WaveState::Applied, WaveState::Applying, WaveState::After(2)];
    world.context.waits = vec![None; 3];
    world
}

#[test]
fn the_comment_while_it_applies() {
    let mut world = applying();
    let resources = four(ResourceStage::Applying, ResourceStage::Pending);
    world.apply_run("database", ApplyRun::Running { job: "j".into(), since: Timestamp(0), resources });
    insta::assert_snapshot!(world.comment(2, Scope::All, ApplyStage::Applying));
    insta::assert_snapshot!("the_note_while_it_applies", world.note());
}

#[test]
fn the_comment_of_a_failed_apply() {
    let mut world = applying();
    let resources = four(ResourceStage::Failed, ResourceStage::NotApplied);
    let failure = Failure::default();
    world.apply_run(
        "database",
        ApplyRun::Failed { job: "j".into(), failure, resources, at: Timestamp(0), left: StateLeft::Nothing },
    );
    world.context.waves[1] = WaveState::Failed;
    insta::assert_snapshot!(world.comment(2, Scope::All, ApplyStage::Failed));
    insta::assert_snapshot!("the_note_after_a_failed_apply", world.note());
}

#[test]
fn a_state_that_its_backend_did_not_take() {
    let mut world = applying();
    let summary = "Failed to save state".to_owned();
    let detail = "Error saving state: HTTP error: 500".to_owned();
    let failure = Failure { step: "apply".to_owned(), summary, detail, ..Failure::default() };
    let resources = four(ResourceStage::Done, ResourceStage::Done);
    let left = StateLeft::Kept;
    let run = ApplyRun::Failed { job: "g-1-7-2-5".into(), failure, resources, at: Timestamp(0), left };
    world.apply_run("database", run);
    world.context.waves[1] = WaveState::Failed;
    insta::assert_snapshot!(world.comment(2, Scope::All, ApplyStage::Failed));
    let at = StateLeft::At("/tmp/tidegate-g-1-7-2-5-x/errored.tfstate".to_owned());
    let (job, failure) = ("g-1-7-2-5".into(), Failure::default());
    world.apply_run("database", ApplyRun::Failed { job, failure, resources: vec![], at: Timestamp(0), left: at });
    let comment = world.comment(2, Scope::All, ApplyStage::Failed);
    assert!(comment.contains("1. Fetch `/tmp/tidegate-g-1-7-2-5-x/errored.tfstate` from the machine"), "{comment}");
}

#[test]
fn roots_that_both_tools_have_been_at() {
    let mut world = World::new();
    world.wave(&["network", "dns", "app"]);
    for root in ["network", "dns", "app"] {
        world.plan(root, vec![action("a.b", Action::Create)]);
    }
    world.traces("network", ToolKind::Terraform, &[Trace::State, Trace::LockFile]);
    world.traces("dns", ToolKind::Tofu, &[Trace::LockFile]).traces("app", ToolKind::Tofu, &[Trace::LockFile]);
    let note = world.state(WaveState::Planning).note();
    let boxes: Vec<&str> =
        note.lines().filter(|line| line.contains("was written by") || line.contains("were written by")).collect();
    insta::assert_snapshot!(boxes.join("\n"));
}

#[test]
fn a_root_whose_state_another_pull_could_not_save() {
    let mut world = World::new();
    world.wave(&["network", "dns"]);
    let how = Hold::Unsaved("g-1-41-2-5".into());
    let blocker = Blocker { pull: 41, by: Login::from(""), since: Timestamp(33_120_000), ahead: vec![], how };
    world.block("network", &blocker).plan("dns", vec![action("a.b", Action::Create)]).state(WaveState::Planning);
    insta::assert_snapshot!(world.note());
}

#[test]
fn the_comment_of_a_wave_that_waits() {
    let mut world = applying();
    world.rollout.config.confirm_destructive = true;
    world.context.waits[1] = Some("1 more approval, from anyone with write access but the author".to_owned());
    let digest = world.digest(2);
    insta::assert_snapshot!(world.comment(2, Scope::All, ApplyStage::Waiting(digest)));
    insta::assert_snapshot!("planning_a_wave_again", world.comment(3, Scope::All, ApplyStage::Planning));
}

#[test]
fn the_comment_when_all_is_applied() {
    let mut world = applying();
    world.applied("database", Counts { delete: 1, replace: 1, ..Counts::default() }, 312_000);
    let some = world.comment(2, Scope::UpTo(2), ApplyStage::Done);
    assert!(some.starts_with("**Applied** 2 of 3 waves") && some.contains("1 root is still to be applied"), "{some}");
    world.applied("app", Counts { update: 1, create: 2, ..Counts::default() }, 9_000);
    world.context.waves = vec![WaveState::Applied; 3];
    insta::assert_snapshot!(world.comment(3, Scope::All, ApplyStage::Done));
    insta::assert_snapshot!("the_note_when_all_is_applied", world.note());
}

#[test]
fn the_comment_of_a_refused_wave() {
    let moved = "`@lin` approved `77ad90be1f02`; it now plans `c1209fe5b7d4`.".to_owned();
    insta::assert_snapshot!(applying().comment(2, Scope::All, ApplyStage::Refused(moved)));
}

/// As many roots as a shared module can have, one of which loses something.
fn many(roots: usize) -> World {
    let mut world = World::new();
    let names: Vec<String> = (0..roots).map(|number| format!("envs/r{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world.wave(&names);
    for (index, name) in names.iter().enumerate() {
        let changed = attribute(action("aws_iam_role.ci", Action::Update), "max_session", "1", "2");
        let mut changes = vec![changed];
        if index == 7 {
            changes.insert(0, action("aws_kms_key.only", Action::Delete));
        }
        world.plan(name, changes);
    }
    world.changed(&names).downstream("top", 2, &names[..1], Class::Changes).waiting(1);
    world
}

#[test]
fn four_hundred_roots() {
    let mut world = many(400);
    let whole = world.note();
    assert!(whole.contains("### 1 delete · 400 update"), "{whole}");
    assert!(whole.contains("**400 of 400 roots planned**") && whole.contains("400 roots change"), "{whole}");
    world.context.limit = 6_000;
    insta::assert_snapshot!(world.note());
}

#[test]
fn the_largest_diff_goes_first_and_deletions_stay() {
    let mut world = example();
    let long = (0..600).map(|index| attribute(action(&format!("t.x[{index}]"), Action::Update), "v", "1", "\"ä\""));
    world.plan("network", long.collect());
    world.context.limit = 4_000;
    let note = world.note();
    assert!(note.chars().count() <= 3_800);
    assert!(note.contains("**Left out**, because a comment is limited: the diff of 1 root (`network`)."), "{note}");
    assert!(note.contains("-   aws_db_subnet_group.old"), "{note}");
}

#[test]
fn hostile_text_stays_text() {
    let mut world = World::new();
    let root = "a`b|c";
    world.rollout.base_ref = "<img>".to_owned();
    world.wave(&[root, "@octocat"]);
    let keys = ["a\\\"b", "@octocat #12", "</details>", "|x|"];
    let of_key = |key: &str| action(&format!("t.x[\"{key}\"]"), Action::Delete);
    let text = "```\n~~~\n</details><script>, @org/team see #12, owner/repo#3, closes #1 \u{1b}[31mred";
    let value = serde_json::Value::from(text).to_string();
    let mut changes: Vec<_> = keys.iter().map(|key| of_key(key)).collect();
    changes.push(attribute(action("t.y", Action::Update), "input", "null", &value));
    world.plan(root, changes);
    let summary = format!("bad\n{text}");
    world.fail("@octocat", Failure { summary: summary.clone(), detail: text.to_owned(), ..Failure::default() });
    world.hole("@octocat/<b>.tf", &summary).state(WaveState::Failed);
    let note = world.note();
    assert!(!note.contains('\u{1b}'));
    any::assert_sound(&note, world.context.limit);
    insta::assert_snapshot!(note);
}

#[test]
fn singular_and_plural_are_true() {
    for (roots, changed) in [(1, "1 root changes"), (3, "3 roots change"), (40, "40 roots change")] {
        let note = many_plain(roots).note();
        assert!(note.contains(&format!("**{roots} of {roots} root{} planned**", if roots == 1 { "" } else { "s" })));
        assert!(note.contains(&format!("**Blast radius:** {changed} (")), "{note}");
        assert!(note.contains("and 1 root downstream reads their state:"), "{note}");
    }
}

fn many_plain(roots: usize) -> World {
    let mut world = World::new();
    let names: Vec<String> = (0..roots).map(|number| format!("r{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world.wave(&names);
    names.iter().for_each(|name| {
        world.plan(name, vec![action("a.b", Action::Update)]);
    });
    world.changed(&names).downstream("top", 2, &names[..1], Class::Changes).waiting(1);
    world
}

#[test]
fn roots_from_one_mould_share_a_diff_and_outliers_do_not() {
    let mut world = World::new();
    world.wave(&["envs/dev", "envs/prod", "envs/test"]);
    for name in ["dev", "prod", "test"] {
        let size = if name == "test" { "9" } else { "2" };
        let tagged = attribute(action("t.x", Action::Update), "size", "1", size);
        world.plan(&format!("envs/{name}"), vec![attribute(tagged, "name", "null", &format!("\"ci-{name}\""))]);
    }
    world.waiting(1);
    let note = world.note();
    assert!(note.contains("<b>2 roots</b> · 1 update in each"), "{note}");
    assert!(note.contains("Shown for `envs/dev`; `envs/prod` differs from it only in its own name:"), "{note}");
    assert!(note.contains("<b>envs/test</b> · 1 update"), "{note}");
}

#[test]
fn a_refused_wave_says_the_way_out() {
    let mut world = many_plain(1);
    world.context.waves[0] = WaveState::Refused("`r000` also changes `t.x`.".to_owned());
    let note = world.note();
    assert!(note.contains("**Next:** `wave-1` is refused: `r000` also changes `t.x`. Review it"), "{note}");
    let row = format!("| `approve wave-1` | approve exactly `{}` |", world.digest(1).short());
    assert!(note.contains(&row), "{note}");
}

#[test]
fn a_lock_of_the_plan_can_be_given_back() {
    let mut world = many_plain(1);
    assert!(!world.note().contains("`unlock`"));
    world.rollout.config.locks = LockMode::Plan;
    assert!(world.note().contains("| `unlock` |"));
}

#[test]
fn a_wave_that_plans_again_shows_no_digest() {
    let world = example();
    let digest = code(world.digest(3).short());
    assert!(!world.note().contains(&digest));
    let read = &world.rollout.runs.values().find(|run| !run.replans_after.is_empty()).expect("app").replans_after[0];
    assert_eq!(
        read,
        &Read { source: "database".to_owned().into(), outputs: vec!["endpoint".into()], unknown: true, why: None }
    );
    assert_eq!(change("a.b").action, Action::Update);
}
