//! Roots that read each other in one pull: what is known is planned as it will be, what is not says so, who reads nothing that changes
//! is left alone, and nothing is applied from a preview.

use crate::ctx::{Ctx, LIN, MIRA};

/// The source of these stories: `name` known while planning, `id` new with each replacement, `fixed` the same for ever.
fn net(name: &str, kind: &str) -> String {
    format!(
        r#"terraform {{
  backend "local" {{ path = "$S/net.tfstate" }}
}}
resource "terraform_data" "vpc" {{
  input            = "{name}"
  triggers_replace = ["{kind}"]
}}
output "name" {{ value = "{name}" }}
output "id" {{ value = terraform_data.vpc.id }}
output "mixed" {{ value = {{ id = terraform_data.vpc.id, name = "{name}" }} }}
output "zones" {{ value = tolist(["{name}-a", "{name}-b"]) }}
output "password" {{
  value     = "hunter-{name}-secret"
  sensitive = true
}}
output "fixed" {{ value = "fixed" }}
"#
    )
}

/// A root that reads another, with this body.
fn reader(name: &str, source: &str, body: &str) -> String {
    format!(
        r#"terraform {{
  backend "local" {{ path = "$S/{name}.tfstate" }}
}}
data "terraform_remote_state" "{source}" {{
  backend = "local"
  config  = {{ path = "$S/{source}.tfstate" }}
}}
{body}
"#
    )
}

fn app(value: &str) -> String {
    reader("app", "net", &format!("resource \"terraform_data\" \"a\" {{ input = {value} }}"))
}

/// The estate of `net` and other roots, applied, and a pull that changes `net`.
async fn changed(others: &[(&str, String)], new: &str) -> (Ctx, u64) {
    let before = net("one", "a");
    let mut files = vec![("net/main.tf", before.as_str()), ("README.md", "x\n")];
    files.extend(others.iter().map(|(path, text)| (*path, text.as_str())));
    let ctx = Ctx::with(&files).await;
    let roots: Vec<&str> = files.iter().filter_map(|(path, _)| path.split_once('/').map(|(root, _)| root)).collect();
    ctx.applied_before(&roots).await;
    let pull = ctx.open("it", &[("net/main.tf", Some(new))]);
    ctx.settle().await;
    (ctx, pull)
}

fn row<'a>(note: &'a str, root: &str) -> &'a str {
    note.lines().find(|line| line.contains(&format!("| `{root}` |"))).unwrap_or_else(|| panic!("no `{root}`: {note}"))
}

/// One approval of everything shown, one `apply`.
async fn approve_and_apply(ctx: &Ctx, pull: u64) {
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_output_is_planned_as_it_will_be_and_one_approval_covers_both_waves() {
    let files = [("app/main.tf", app("data.terraform_remote_state.net.outputs.name"))];
    let (ctx, pull) = changed(&files, &net("two", "a")).await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("\"one\" -> \"two\"") && !note.contains("planned again"), "{note}");
    assert!(row(&note, "app").contains("1 update"), "{note}");
    approve_and_apply(&ctx, pull).await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "{:?}", ctx.replies(pull));
    assert_eq!(ctx.uses(pull).await, 2);
    assert!(ctx.state("app").contains("\"two\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_output_says_so_and_asks_again() {
    let files = [("app/main.tf", app("data.terraform_remote_state.net.outputs.id"))];
    let (ctx, pull) = changed(&files, &net("one", "b")).await;
    let note = ctx.note(pull).expect("a note");
    assert!(row(&note, "app").contains("planned again after `net`: reads `id`, known after apply"), "{note}");
    assert!(note.contains("-> (known after apply)"), "{note}");
    approve_and_apply(&ctx, pull).await;
    assert_eq!((ctx.uses(pull).await, ctx.serial("app")), (1, 1));
    assert!(ctx.last_reply(pull).contains("approve wave-2"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, LIN, "approve wave-2").await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_known_in_part_and_a_whole_object_may_be_read() {
    let files = [
        ("app/main.tf", app("data.terraform_remote_state.net.outputs.mixed")),
        (
            "all/main.tf",
            reader(
                "all",
                "net",
                "locals { net = data.terraform_remote_state.net.outputs }\nresource \"terraform_data\" \"a\" { input = [local.net.name, keys(local.net)] }",
            ),
        ),
    ];
    let (ctx, pull) = changed(&files, &net("two", "b")).await;
    let note = ctx.note(pull).expect("a note");
    assert!(row(&note, "app").contains("reads `mixed`, known after apply"), "{note}");
    assert!(row(&note, "all").contains("reads all its outputs at once, known after apply"), "{note}");
    assert!(note.contains("!     input.name: \"one\" -> \"two\""), "{note}");
    approve_and_apply(&ctx, pull).await;
    ctx.comment(pull, LIN, "approve wave-2").await;
    assert_eq!(ctx.apply_check(pull), "success: 3 roots applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_in_json_is_linked_the_same_way() {
    let json = r#"{
  "terraform": { "backend": { "local": { "path": "$S/app.tfstate" } } },
  "data": { "terraform_remote_state": { "net": { "backend": "local", "config": { "path": "$S/net.tfstate" } } } },
  "resource": { "terraform_data": { "a": {
    "depends_on": ["data.terraform_remote_state.net"],
    "input": "x ${data.terraform_remote_state.net.outputs.name} ${join(\",\", data.terraform_remote_state.net.outputs.zones)}"
  } } }
}"#;
    let (ctx, pull) = changed(&[("app/main.tf.json", json.to_owned())], &net("two", "a")).await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("x two two-a,two-b") && !note.contains("planned again"), "{note}");
    approve_and_apply(&ctx, pull).await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_linked_is_planned_as_applied_and_says_why() {
    let counted =
        app("data.terraform_remote_state.net[0].outputs.name").replace("  backend = ", "  count = 1\n  backend = ");
    let each = reader(
        "each",
        "net",
        "resource \"terraform_data\" \"a\" {\n  for_each = toset([data.terraform_remote_state.net.outputs.id])\n  input = each.key\n}",
    );
    let inner = reader(
        "inner",
        "net",
        "resource \"terraform_data\" \"a\" { input = data.terraform_remote_state.net.outputs.name }",
    );
    let (backend, block) = inner.split_once("data \"terraform").expect("two parts");
    let files = [
        ("app/main.tf", counted),
        ("each/main.tf", each),
        ("inner/main.tf", format!("{backend}module \"m\" {{ source = \"./m\" }}\n")),
        ("inner/m/main.tf", format!("data \"terraform{block}")),
    ];
    let before = net("one", "a");
    let mut all = vec![("net/main.tf", before.as_str())];
    all.extend(files.iter().map(|(path, text)| (*path, text.as_str())));
    let ctx = Ctx::with(&all).await;
    ctx.applied_before(&["net", "app", "each", "inner"]).await;
    let pull = ctx.open("it", &[("net/main.tf", Some(&net("two", "b")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    for (root, why) in [
        ("app", "because its block has"),
        ("each", "because the plan on its planned outputs failed: Invalid for"),
        ("inner", "because the block that reads it is in a module"),
    ] {
        assert!(row(&note, root).contains("planned again after `net`") && row(&note, root).contains(why), "{note}");
    }
    approve_and_apply(&ctx, pull).await;
    assert_eq!(ctx.uses(pull).await, 1, "the second wave waits for an approval of its real plans");
    ctx.comment(pull, LIN, "approve wave-2").await;
    assert_eq!(ctx.apply_check(pull), "success: 4 roots applied", "{:?}", ctx.replies(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hub_only_the_readers_of_what_changes_are_planned() {
    let input = |name: &str, output: &str| {
        let body =
            format!("resource \"terraform_data\" \"a\" {{ input = data.terraform_remote_state.net.outputs.{output} }}");
        reader(name, "net", &body)
    };
    let files = [
        ("app/main.tf", input("app", "name")),
        ("still/main.tf", input("still", "fixed")),
        ("beside/main.tf", input("beside", "id")),
        (
            "last/main.tf",
            reader(
                "last",
                "still",
                "resource \"terraform_data\" \"a\" { input = try(data.terraform_remote_state.still.outputs.x, \"\") }",
            ),
        ),
    ];
    let (ctx, pull) = changed(&files, &net("two", "a")).await;
    let note = ctx.note(pull).expect("a note");
    for root in ["still", "beside", "last"] {
        assert!(row(&note, root).contains("| none | – | reads nothing that changes |"), "{note}");
    }
    assert!(note.contains("`still` (wave 2) reads `net`; value unchanged, not planned"), "{note}");
    assert!(note.contains("**2 of 5 roots planned**, 3 read nothing that changes"), "{note}");
    assert!(ctx.plan_check(pull).starts_with("success: 2 roots planned"), "{}", ctx.plan_check(pull));
    approve_and_apply(&ctx, pull).await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "{:?}", ctx.replies(pull));
    assert_eq!(ctx.locks().await, ["app #1", "net #1"]);
    ctx.comment(pull, MIRA, "plan -d still").await;
    let note = ctx.note(pull).expect("a note");
    assert!(row(&note, "still").contains("nothing to apply"), "what is named is planned: {note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_can_be_turned_off() {
    let files = [
        ("app/main.tf", app("data.terraform_remote_state.net.outputs.fixed")),
        (".tidegate.yaml", "prune: false\n".to_owned()),
    ];
    let before = net("one", "a");
    let ctx = Ctx::with(&[("net/main.tf", &before), (files[0].0, &files[0].1), (files[1].0, &files[1].1)]).await;
    ctx.applied_before(&["net", "app"]).await;
    let pull = ctx.open("it", &[("net/main.tf", Some(&net("two", "a")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("**2 of 2 roots planned**") && row(&note, "app").contains("nothing to apply"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_known_outputs_goes_through_on_one_approval() {
    let files = [
        (
            "mid/main.tf",
            reader("mid", "net", "output \"name\" { value = \"mid-${data.terraform_remote_state.net.outputs.name}\" }"),
        ),
        (
            "end/main.tf",
            reader(
                "end",
                "mid",
                "resource \"terraform_data\" \"a\" {\n  depends_on = [data.terraform_remote_state.mid]\n  input = data.terraform_remote_state.mid.outputs.name\n}",
            ),
        ),
    ];
    let (ctx, pull) = changed(&files, &net("two", "a")).await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("\"mid-one\" -> \"mid-two\"") && !note.contains("planned again"), "{note}");
    approve_and_apply(&ctx, pull).await;
    assert_eq!(ctx.apply_check(pull), "success: 3 roots applied", "{:?}", ctx.replies(pull));
    assert!(ctx.state("end").contains("mid-two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_was_made_before_its_source_applied_is_never_applied() {
    let files = [("app/main.tf", app("data.terraform_remote_state.net.outputs.id"))];
    let (ctx, pull) = changed(&files, &net("one", "b")).await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply wave-1").await;
    let note = ctx.note(pull).expect("a note");
    assert!(!note.contains("planned again"), "it is planned on what is there now: {note}");
    ctx.comment(pull, MIRA, "plan -d net").await;
    approve_and_apply(&ctx, pull).await;
    assert!(ctx.serial("app") > 1, "{:?}", ctx.replies(pull));
    let id = |name: &str, at: &str| {
        let state: serde_json::Value = serde_json::from_str(&ctx.state(name)).expect("a state");
        state.pointer(at).cloned().expect("a value")
    };
    assert_eq!(id("app", "/resources/1/instances/0/attributes/input/value"), id("net", "/outputs/id/value"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sensitive_output_is_shown_nowhere() {
    let files = [("app/main.tf", app("\"user:${data.terraform_remote_state.net.outputs.password}\""))];
    let (ctx, pull) = changed(&files, &net("two", "a")).await;
    let known = ctx.app().store.pulls().await.expect("pulls");
    let stored = serde_json::to_string(&known).expect("JSON");
    let note = ctx.note(pull).expect("a note");
    for text in [&note, &stored] {
        assert!(!text.contains("-secret"), "{text}");
    }
    assert!(row(&note, "app").contains("1 update"), "{note}");
    approve_and_apply(&ctx, pull).await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "{:?}", ctx.replies(pull));
    let said = format!("{:?} {:?}", ctx.note(pull), ctx.replies(pull));
    assert!(!said.contains("-secret"), "{said}");
}

/// A source with an output of each kind of value, all of which follow `word`.
fn every_type(word: &str) -> String {
    format!(
        r#"terraform {{
  backend "local" {{ path = "$S/net.tfstate" }}
}}
output "text" {{ value = "{word} \"q\" \\ $${{x}} %%{{y}} é\n" }}
output "number" {{ value = length("{word}") + 0.1 }}
output "large" {{ value = 12345678901234567890 + length("{word}") }}
output "flag" {{ value = "{word}" == "three" }}
output "list" {{ value = tolist(["{word}", ""]) }}
output "empty" {{ value = tolist("{word}" == "three" ? [] : ["x"]) }}
output "set" {{ value = toset(["b", "{word}"]) }}
output "map" {{ value = tomap({{ "k-1" = "{word}", "a.b" = "x" }}) }}
output "tuple" {{ value = [1, "{word}", true, null] }}
output "object" {{ value = {{ name = "{word}", none = null, deep = [{{ zone = "{word}-a" }}] }} }}
"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_any_type_gives_the_plan_that_is_made_after_the_apply() {
    let outputs = ["text", "number", "large", "flag", "list", "empty", "set", "map", "tuple", "object"];
    let each: Vec<String> = outputs
        .iter()
        .map(|name| {
            format!(
                "resource \"terraform_data\" \"{name}\" {{ input = data.terraform_remote_state.net.outputs.{name} }}\n"
            )
        })
        .collect();
    let (before, app) = (every_type("seven"), reader("app", "net", &each.concat()));
    let ctx = Ctx::with(&[("net/main.tf", &before), ("app/main.tf", &app)]).await;
    ctx.applied_before(&["net", "app"]).await;
    let pull = ctx.open("it", &[("net/main.tf", Some(&every_type("three")))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(row(&note, "app").contains("8 update"), "`number` and `large` have the same length: {note}");
    assert!(!note.contains("planned again"), "{note}");
    approve_and_apply(&ctx, pull).await;
    assert_eq!(ctx.apply_check(pull), "success: 2 roots applied", "the digest is the same: {:?}", ctx.replies(pull));
    assert_eq!(ctx.uses(pull).await, 2);
}
