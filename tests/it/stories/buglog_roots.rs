//! Faults that others had in telling which roots a change reaches: the deepest root by path component, modules and data files through
//! any number of steps, odd names, and roots that leave or move.

use super::{ESTATE, SOLO, solo};
use crate::ctx::{Ctx, LIN, MIRA};

fn root(name: &str) -> String {
    SOLO.replace("solo.tfstate", &format!("{name}.tfstate"))
}

/// The roots that the note's table lists.
fn listed(ctx: &Ctx, pull: u64) -> Vec<String> {
    let note = ctx.note(pull).unwrap_or_default();
    let rows = note.lines().filter(|line| line.starts_with("| 1 |") || line.starts_with("| 2 |"));
    rows.filter_map(|row| Some(row.split('|').nth(2)?.trim().trim_matches('`').trim().to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deepest_root_owns_a_path_by_its_components() {
    let (top, test, wide, nested) = (root("top"), root("test"), root("wide"), root("nested"));
    let ctx = Ctx::with(&[
        ("main.tf", &top),
        ("test/main.tf", &test),
        ("test222/main.tf", &wide),
        ("test/nested/main.tf", &nested),
        ("README.md", "x\n"),
    ])
    .await;
    let more = "resource \"terraform_data\" \"b\" { input = \"b\" }\n";
    for (branch, path, expected) in [
        ("wide", "test222/more.tf", vec!["test222"]),
        ("nested", "test/nested/more.tf", vec!["test/nested"]),
        ("words", "README.md", vec![]),
        ("deep-words", "test/docs/README.md", vec![]),
        ("top", "more.tf", vec!["."]),
    ] {
        let pull = ctx.open(branch, &[(path, Some(more))]);
        ctx.settle().await;
        assert_eq!(listed(&ctx, pull), expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_and_files_reach_their_readers_and_nobody_else() {
    let call = |source: &str| format!("module \"m\" {{\n  source = \"{source}\"\n}}\n");
    let net = format!("{}{}", root("net"), call("../modules/m"));
    let app = format!("{}{}", root("app"), call("../modules/n"));
    let solo = format!(
        "{}resource \"terraform_data\" \"v\" {{ input = file(\"../shared/v.txt\") }}\nresource \"terraform_data\" \"t\" {{ input = templatefile(\"${{path.module}}/../shared/t.tpl\", {{}}) }}\n",
        root("solo")
    );
    let inner = call("../m");
    let ctx = Ctx::with(&[
        ("net/main.tf", &net),
        ("app/main.tf", &app),
        ("solo/main.tf", &solo),
        ("modules/m/main.tf", "resource \"terraform_data\" \"m\" { input = \"m\" }\n"),
        ("modules/m/other.tf", "# other\n"),
        ("modules/n/main.tf", &inner),
        ("shared/v.txt", "v\n"),
        ("shared/t.tpl", "t\n"),
        ("README.md", "x\n"),
    ])
    .await;
    for (branch, path, text, expected) in [
        (
            "inner",
            "modules/m/main.tf",
            Some("resource \"terraform_data\" \"m\" { input = \"n\" }\n"),
            vec!["app", "net"],
        ),
        ("deleted", "modules/m/other.tf", None, vec!["app", "net"]),
        ("data", "shared/v.txt", Some("w\n"), vec!["solo"]),
        ("template", "shared/t.tpl", Some("u\n"), vec!["solo"]),
        ("values", "solo/x.auto.tfvars", Some("# none\n"), vec!["solo"]),
        ("words", "modules/m/README.md", Some("words\n"), vec![]),
        ("nobody", "shared/else.txt", Some("words\n"), vec![]),
    ] {
        let pull = ctx.open(branch, &[(path, text)]);
        ctx.settle().await;
        assert_eq!(listed(&ctx, pull), expected, "{path}: {:?}", ctx.note(pull));
        if !expected.is_empty() {
            ctx.comment(pull, LIN, &format!("explain {path}")).await;
            assert!(ctx.last_reply(pull).contains(path), "{}", ctx.last_reply(pull));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roots_with_odd_names_are_planned_named_and_applied() {
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    for (index, (dir, typed)) in [
        ("network/firewall --", "\"network/firewall --\""),
        ("-odd", "\"-odd\""),
        ("a`b", "'a`b'"),
        ("it's \"it\"", "\"it's \\\"it\\\"\""),
        ("ünï/ß", "ünï/ß"),
        ("@octocat #1", "\"@octocat #1\""),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("{dir}/main.tf");
        let pull = ctx.open(&format!("odd-{index}"), &[(path.as_str(), Some(&root(&format!("odd{index}"))))]);
        ctx.settle().await;
        let note = ctx.note(pull).unwrap_or_default();
        assert!(note.starts_with("### 1 create"), "{dir}: {note}");
        ctx.comment(pull, MIRA, &format!("plan -d {typed}")).await;
        assert_eq!(ctx.replies(pull), Vec::<String>::new(), "{dir}");
        assert_eq!(ctx.jobs(pull).await, 2, "{dir}");
        ctx.comment(pull, LIN, "approve").await;
        ctx.comment(pull, MIRA, &format!("apply -d {typed}")).await;
        assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{dir}: {:?}", ctx.replies(pull));
        ctx.merge(pull).expect("it merges");
        ctx.settle().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_of_which_only_words_are_left_is_said_to_be_removed() {
    let mut files = ESTATE.to_vec();
    files.push(("solo/README.md", "words\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("gone", &[("solo/main.tf", None)]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("The root `solo` is removed by this change"), "{note}");
    assert_eq!(ctx.serial("solo"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_moves_with_a_state_of_its_path_warns_that_it_creates_anew() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("moved", &[("solo/main.tf", None), ("solo2/main.tf", Some(&root("solo2")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("The root `solo` is removed by this change"), "{note}");
    assert!(note.contains("`solo2` would create what `solo` still holds"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_new_while_another_leaves_is_not_taken_for_it() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let other =
        format!("{}{}", root("other"), "resource \"terraform_data\" \"more\" { input = \"much more than before\" }\n");
    let pull = ctx.open("swap", &[("solo/main.tf", None), ("other/main.tf", Some(&other))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("The root `solo` is removed by this change") && !note.contains("would create"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_names_another_state_is_said_to_create_anew() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("key", &[("solo/main.tf", Some(&root("elsewhere")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("The backend of `solo` names another state") && !note.contains("is removed"), "{note}");
    assert!(note.contains("`solo` would create it anew"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_renamed_by_case_alone_keeps_its_state_and_its_lock() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("case", &[("solo/main.tf", None), ("Solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 1 update") && !note.contains("is removed"), "{note}");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.locks().await, [format!("Solo #{pull}")]);
    // Another pull that still knows it by the old name meets the same lock.
    let other = ctx.open("other", &[("solo/more.tf", Some("resource \"terraform_data\" \"b\" {}\n"))]);
    ctx.settle().await;
    assert_eq!(ctx.plan_check(other), format!("queued: solo waits for #{pull}"));
}

/// `git mv` of a root whose backend names its state outright: it plans nothing, and the state is what is locked.
#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_only_renamed_changes_nothing_and_another_meets_its_lock() {
    let mut files = ESTATE.to_vec();
    files.push((".tidegate.yaml", "locks: plan\n"));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["solo"]).await;
    let pull = ctx.open("renamed", &[("solo/main.tf", None), ("solo2/main.tf", Some(SOLO))]);
    ctx.settle().await;
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: no resource changes", "{:?}", ctx.note(pull));
    assert!(!ctx.note(pull).unwrap_or_default().contains("is removed"), "{:?}", ctx.note(pull));
    // Renamed and changed, it holds the state under which others still know it.
    ctx.push("renamed", &[("solo2/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert_eq!(ctx.locks().await, [format!("solo2 #{pull}")]);
    let other = ctx.open("other", &[("solo/more.tf", Some("resource \"terraform_data\" \"b\" {}\n"))]);
    ctx.settle().await;
    assert_eq!(ctx.plan_check(other), format!("queued: solo waits for #{pull}"));
}
