//! Stories with a real OpenTofu. Not part of a plain `cargo test`: `scripts/opentofu` builds one and names it in
//! `TIDEGATE_TEST_TOFU`; without that every test here fails.

use std::path::PathBuf;

#[path = "it/ctx.rs"]
#[expect(dead_code, reason = "these stories need a part of it")]
mod ctx;

use ctx::{Ctx, LIN, MIRA};

const SETTINGS: (&str, &str) = (".tidegate.yaml", "tool: tofu\n");

const NET: &str = r#"terraform {
  backend "local" { path = "$S/net.tfstate" }
}
resource "terraform_data" "vpc" {
  input            = "10.0.0.0/16"
  triggers_replace = ["10.0.0.0/16"]
}
output "vpc_id" { value = terraform_data.vpc.id }
"#;

const APP: &str = r#"terraform {
  backend "local" { path = "$S/app.tfstate" }
}
data "terraform_remote_state" "net" {
  backend = "local"
  config  = { path = "$S/net.tfstate" }
}
resource "terraform_data" "svc" { input = data.terraform_remote_state.net.outputs.vpc_id }
"#;

const SOLO: &str = r#"terraform {
  backend "local" { path = "$S/solo.tfstate" }
}
resource "terraform_data" "a" { input = "1" }
"#;

fn tofu() -> PathBuf {
    std::env::var_os("TIDEGATE_TEST_TOFU").map(PathBuf::from).expect("run by scripts/opentofu, which builds one")
}

/// A world where OpenTofu 1.12.6 lies in the tools directory, beside the Terraform on PATH.
async fn world(files: &[(&str, &str)]) -> Ctx {
    let ctx = Ctx::with(files).await;
    let folder = ctx.data_dir().join("tools/tofu/1.12.6");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::os::unix::fs::symlink(tofu(), folder.join("tofu")).expect("a link");
    ctx
}

/// Opens a pull, approves and applies it, merges it.
async fn applied(ctx: &Ctx, branch: &str, changes: &[(&str, Option<&str>)]) {
    let pull = ctx.open(branch, changes);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    // A reader of a state that was never applied is planned, and approved, after it.
    if ctx.apply_check(pull).starts_with("queued") {
        assert!(!ctx.note(pull).expect("a note").contains("not planned in this run"), "{:?}", ctx.note(pull));
        ctx.next_second().await;
        ctx.comment(pull, LIN, "approve").await;
    }
    assert!(ctx.apply_check(pull).starts_with("success"), "{} {:?}", ctx.apply_check(pull), ctx.note(pull));
    ctx.merge(pull).expect("it merges");
    ctx.settle().await;
}

fn made_by(ctx: &Ctx, state: &str) -> String {
    let state: serde_json::Value = serde_json::from_str(&ctx.state(state)).expect("a state");
    state["terraform_version"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_waves_are_planned_approved_and_applied() {
    let ctx = world(&[SETTINGS, ("net/main.tf", NET), ("app/main.tf", APP)]).await;
    let first = ctx.open("first", &[("net/main.tf", Some(&format!("{NET}# one\n")))]);
    ctx.settle().await;
    ctx.comment(first, LIN, "approve").await;
    ctx.comment(first, MIRA, "apply").await;
    ctx.comment(first, LIN, "approve wave-2").await;
    ctx.merge(first).expect("it merges");
    ctx.settle().await;
    assert_eq!((made_by(&ctx, "net").as_str(), made_by(&ctx, "app").as_str()), ("1.12.6", "1.12.6"));
    let pull = ctx.open("range", &[("net/main.tf", Some(&NET.replace("10.0", "10.9")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("replace"), "{note}");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.state("net").contains("10.9.0.0/16"));
    assert!(ctx.last_reply(pull).contains("approve wave-2"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, LIN, "approve wave-2").await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied");
    assert_eq!(ctx.uses(pull).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tofu_file_chooses_tofu_and_hides_its_twin() {
    let ctx = world(&[("solo/main.tf", SOLO), ("solo/b.tf", "resource \"terraform_data\" \"old\" {}\n")]).await;
    let pull = ctx.open("twin", &[("solo/b.tofu", Some("resource \"terraform_data\" \"new\" {}\n"))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("terraform_data.new") && !note.contains("terraform_data.old"), "{note}");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(made_by(&ctx, "solo"), "1.12.6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_leaves_the_old_object_is_shown_as_one() {
    let kept = |value: &str| {
        format!(
            "terraform {{\n  backend \"local\" {{ path = \"$S/solo.tfstate\" }}\n}}\nresource \"terraform_data\" \"db\" {{\n  \
             triggers_replace = [\"{value}\"]\n  lifecycle {{ destroy = false }}\n}}\n"
        )
    };
    let ctx = world(&[SETTINGS, ("solo/main.tf", SOLO)]).await;
    applied(&ctx, "first", &[("solo/main.tf", Some(&kept("1")))]).await;
    let pull = ctx.open("second", &[("solo/main.tf", Some(&kept("2")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("1 replace") && note.contains("old object"), "{note}");
    ctx.comment(pull, MIRA, "apply").await;
    assert!(!ctx.state("solo").contains("\"2\""), "it waits for an approval");
    ctx.comment(pull, LIN, "approve wave-1").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied");
    assert!(ctx.state("solo").contains("\"2\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_plan_is_bound_to_its_tool() {
    let ctx = world(&[("solo/main.tf", SOLO)]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&SOLO.replace("\"1\"", "\"2\"")))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.push("main", &[SETTINGS].map(|(path, text)| (path, Some(text))));
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.state("solo"), "", "{:?}", ctx.replies(pull));
    assert!(ctx.last_reply(pull).contains("changed after the approval"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, LIN, "approve wave-1").await;
    assert_eq!(made_by(&ctx, "solo"), "1.12.6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_comes_after_the_plan_does_not_reach_the_apply() {
    let root = format!(
        "{SOLO}variable \"word\" {{ default = \"planned\" }}\nresource \"terraform_data\" \"run\" {{\n  \
         provisioner \"local-exec\" {{ command = \"echo ${{var.word}} > $S/ran\" }}\n}}\n"
    );
    let mut ctx = world(&[SETTINGS, ("solo/main.tf", SOLO)]).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&root))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.job_environment.insert("TF_VAR_word".to_owned(), "another".to_owned());
    ctx.restart().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied");
    let ran = std::fs::read_to_string(ctx.states().join("ran")).expect("it ran");
    assert_eq!(ran.trim(), "planned");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_excluded_is_neither_planned_nor_applied() {
    let ctx = world(&[SETTINGS, ("solo/main.tf", SOLO)]).await;
    let root = format!("{SOLO}resource \"terraform_data\" \"b\" {{}}\n");
    let pull = ctx.open("one", &[("solo/main.tf", Some(&root))]);
    ctx.settle().await;
    ctx.comment(pull, MIRA, "plan -d solo -- -exclude=terraform_data.b").await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("terraform_data.a") && !note.contains("terraform_data.b"), "{note}");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    let state: serde_json::Value = serde_json::from_str(&ctx.state("solo")).expect("a state");
    let names: Vec<&str> =
        state["resources"].as_array().into_iter().flatten().filter_map(|resource| resource["name"].as_str()).collect();
    assert_eq!(names, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_file_chooses_tool_and_version_and_a_missing_one_is_named() {
    let ctx = world(&[("solo/main.tf", SOLO)]).await;
    let root = SOLO.replace("\"1\"", "\"2\"");
    let pull = ctx.open("one", &[("solo/main.tf", Some(&root)), (".opentofu-version", Some("1.11.0\n"))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("tofu 1.11.0 is needed, tofu 1.12.6 is installed"), "{note}");
    assert!(note.contains(".opentofu-version"), "{note}");
    ctx.push("one", &[(".opentofu-version", Some("~> 1.12.0\n"))]);
    ctx.settle().await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(made_by(&ctx, "solo"), "1.12.6", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_output_is_planned_as_it_will_be() {
    let net = |name: &str| format!("{NET}output \"name\" {{ value = \"{name}\" }}\n");
    let by_name = APP.replace("outputs.vpc_id", "outputs.name");
    let before = net("one");
    let ctx = world(&[SETTINGS, ("net/main.tf", &before), ("app/main.tf", &by_name)]).await;
    applied(&ctx, "first", &[("net/main.tf", Some(&format!("{before}# one\n")))]).await;
    let pull = ctx.open("name", &[("net/main.tf", Some(&net("two")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("\"one\" -> \"two\"") && !note.contains("planned again"), "{note}");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "one approval: {:?}", ctx.replies(pull));
    assert!(ctx.state("app").contains("\"two\""));
}
