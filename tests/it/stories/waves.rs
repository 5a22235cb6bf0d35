//! Waves by hand: `waves.after` widens what a change plans and whom it reaches, named roots bring what they need and stop at nothing
//! else, and a name that means no root is said.

use super::{APP, NET};
use crate::ctx::{Ctx, LIN, MIRA};

/// A root that reads nothing.
fn plain(name: &str, value: &str) -> String {
    format!(
        "terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n}}\nresource \"terraform_data\" \"a\" {{ input = \"{value}\" }}\n"
    )
}

const THREE: [&str; 3] = ["network", "database", "app"];

async fn three(settings: &str) -> Ctx {
    let files: Vec<(String, String)> = THREE.iter().map(|name| (format!("{name}/main.tf"), plain(name, "1"))).collect();
    let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push((".tidegate.yaml", settings));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&THREE).await;
    ctx
}

const AFTER: &str = "waves:\n  after:\n    app: [database]\n    database: [network]\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_first_plans_all_three_and_its_radius_names_the_others() {
    let ctx = three(AFTER).await;
    let pull = ctx.open("one", &[("network/main.tf", Some(&plain("network", "2")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    for line in [
        "**3 of 3 roots planned**",
        "| 1 | `network` | 1 update |",
        "| 2 | `database` | none |",
        "| 3 | `app` | none |",
        "**Blast radius:** 1 root changes (`network`), and 2 roots downstream come after them:\n\n- `database` (wave 2) comes after `network`\n- `app` (wave 3) comes after `database`",
    ] {
        assert!(note.contains(line), "{line}\n{note}");
    }
    assert_eq!(ctx.jobs(pull).await, 3);
    ctx.comment(pull, MIRA, "explain network/main.tf").await;
    assert!(
        ctx.last_reply(pull).contains("- `app`: `waves.after` puts it after `database`"),
        "{}",
        ctx.last_reply(pull)
    );
    // A pull beside it that changes the last of them plans that one alone.
    let other = ctx.open("two", &[("app/main.tf", Some(&plain("app", "2")))]);
    ctx.settle().await;
    let note = ctx.note(other).expect("a note");
    assert!(note.contains("**1 of 1 root planned**") && note.contains("| 1 | `app` |"), "{note}");
    assert!(!note.contains("Blast radius"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_root_is_applied_after_what_comes_before_it() {
    let ctx = three(&format!("{AFTER}gate: never\n")).await;
    let changes: Vec<(String, String)> =
        THREE.iter().map(|name| (format!("{name}/main.tf"), plain(name, "2"))).collect();
    let changes: Vec<(&str, Option<&str>)> =
        changes.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let pull = ctx.open("all", &changes);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply -d database").await;
    let applied = THREE.map(|name| ctx.state(name).contains("\"2\""));
    assert_eq!(
        applied,
        [true, true, false],
        "`network` comes before `database`, `app` was not named: {:?}",
        ctx.replies(pull)
    );
    assert!(ctx.last_reply(pull).contains("1 root is still to be applied: type `apply`"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 3 roots applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_root_stops_its_own_wave_and_no_other() {
    let settings = "gate: never\nwaves:\n  after:\n    app: [network]\n";
    let ctx = three(settings).await;
    let broken = "terraform {\n  backend \"local\" { path = \"$S/bad.tfstate\" }\n}\nlocals { one = 1 }\nresource \"terraform_data\" \"b\" {\n  lifecycle {\n    precondition {\n      condition     = local.one > 2\n      error_message = \"never\"\n    }\n  }\n}\n";
    let pull = ctx.open(
        "bad",
        &[
            ("bad/main.tf", Some(broken)),
            ("database/main.tf", Some(&plain("database", "2"))),
            ("app/main.tf", Some(&plain("app", "2"))),
            ("network/other.tf", Some("locals { other = 1 }\n")),
        ],
    );
    ctx.settle().await;
    let before = ctx.jobs(pull).await;
    for typed in ["apply", "apply wave-1", "apply -d database", "apply -d bad"] {
        ctx.comment(pull, MIRA, typed).await;
        let reply = ctx.last_reply(pull);
        assert!(reply.starts_with("Not applied: `bad` has no plan"), "{typed}: {reply}");
    }
    assert_eq!(ctx.jobs(pull).await, before);
    // `app` needs `network`, which changes nothing, and not its neighbour that failed.
    ctx.comment(pull, MIRA, "apply -d app").await;
    let applied = ["app", "database"].map(|name| ctx.state(name).contains("\"2\""));
    assert_eq!(applied, [true, false], "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_in_waves_that_is_no_root_is_said_with_the_one_it_means() {
    let ctx = three("waves:\n  canary: [nowhere]\n  after:\n    app: [databse]\n").await;
    let pull = ctx.open("one", &[("app/main.tf", Some(&plain("app", "2"))), ("README.md", Some("x\n"))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("`waves.after` in `.tidegate.yaml` names `databse`, which is no root here"), "{note}");
    assert!(note.contains("Did you mean `database`?") && note.contains("`waves.canary`"), "{note}");
    // Who reaches no root is not told.
    let quiet = ctx.open("quiet", &[("README.md", Some("words\n"))]);
    ctx.settle().await;
    assert_eq!(ctx.note(quiet), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_whose_source_was_never_applied_waits_for_it_by_name() {
    let ctx = Ctx::with(&[("net/main.tf", NET), ("app/main.tf", APP), ("README.md", "x\n")]).await;
    let pull = ctx.open("app", &[("app/main.tf", Some(&format!("{APP}# more\n")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 root waits to be planned"), "{note}");
    assert!(note.contains("| waits for `net`, which was never applied |"), "{note}");
    assert!(ctx.plan_check(pull).contains("app waits for net, which was never applied"), "{}", ctx.plan_check(pull));
    assert!(!ctx.plan_check(pull).starts_with("success"), "{}", ctx.plan_check(pull));
    // Another pull applies it; this one is planned by itself.
    let source = ctx.open("net", &[("net/main.tf", Some(&format!("{NET}# more\n")))]);
    ctx.settle().await;
    ctx.comment(source, LIN, "approve wave-1").await;
    ctx.comment(source, MIRA, "apply wave-1").await;
    assert!(ctx.serial("net") > 0, "{:?}", ctx.replies(source));
    // Of the pull that applied it, the reader does not wait for it any more either.
    let note = ctx.note(source).expect("a note");
    assert!(!note.contains("which was never applied") && note.contains("| 2 | `app` | 1 create |"), "{note}");
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 create"), "{note}");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_settings_is_read_before_it_is_merged() {
    let ctx = three("gate: always\n").await;
    let wrong = ctx.open("wrong", &[(".tidegate.yaml", Some("gaet: never\nlocks: 3\n"))]);
    let cycle = ctx.open("cycle", &[(".tidegate.yaml", Some("waves: {after: {app: [database], database: [app]}}\n"))]);
    let loose =
        ctx.open("loose", &[(".tidegate.yaml", Some("gate: never\n")), ("app/main.tf", Some(&plain("app", "2")))]);
    let right = ctx.open("right", &[(".tidegate.yaml", Some("gate: on-destructive\n"))]);
    ctx.settle().await;
    for (pull, says) in [
        (wrong, "- line 1, column 1: the file has no key `gaet`; did you mean `gate`?"),
        (cycle, "makes a cycle with this change: `database` → `app` → `database`"),
        (loose, "this pull goes by the settings of its base"),
    ] {
        let note = ctx.note(pull).expect("a note");
        assert!(note.contains(says), "{says}\n{note}");
    }
    assert!(ctx.note(loose).expect("a note").contains("waits for `wave-1`"), "{:?}", ctx.note(loose));
    assert_eq!(ctx.note(right), None, "who touches no root and breaks nothing hears nothing");
    assert_eq!(ctx.plan_check(wrong), "success: No Terraform roots touched");
}
