//! Faults that others had with what they print: text of a plan mentions nobody and breaks nothing, and no size is too large to be told.

use comrak::nodes::NodeValue;
use tidegate::sandbox::{Fault, Verdict};

use super::{ESTATE, SOLO, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};

/// What the forge would read as a mention, a reference or markup: text outside of code, and HTML.
fn live_text(markdown: &str) -> String {
    let arena = comrak::Arena::new();
    let mut options = comrak::Options::default();
    options.extension.table = true;
    options.extension.alerts = true;
    options.extension.strikethrough = true;
    let mut live = String::new();
    let mut code = 0;
    for node in comrak::parse_document(&arena, markdown, &options).descendants() {
        match &node.data.borrow().value {
            NodeValue::Text(text) if code == 0 => live.push_str(text),
            NodeValue::HtmlBlock(block) => live.push_str(&without_code(&block.literal)),
            NodeValue::HtmlInline(tag) if tag == "<code>" => code += 1,
            NodeValue::HtmlInline(tag) if tag == "</code>" => code -= 1,
            NodeValue::HtmlInline(tag) => live.push_str(tag),
            NodeValue::CodeBlock(block) => assert!(block.closed || !block.fenced, "an open fence: {markdown}"),
            NodeValue::Image(_) => panic!("an image: {markdown}"),
            _ => {}
        }
        live.push('\n');
    }
    live
}

fn without_code(html: &str) -> String {
    let mut parts = html.split("<code>");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("</code>").map_or("", |(_, after)| after))
}

fn assert_quiet(markdown: &str) {
    let live = live_text(markdown);
    for bad in ["@octocat", "@org/team", "#12", "repo#3", "closes #1", "<script", "<img", "\u{1b}", "</details><"] {
        assert!(!live.contains(bad), "{bad:?} is alive in\n{markdown}\n---\n{live}");
    }
    assert!(!markdown.contains('\u{1b}'), "a raw escape: {markdown}");
    assert_eq!(markdown.matches("<details>").count(), markdown.matches("\n</details>").count(), "{markdown}");
}

const HOSTILE: &str = r##"terraform {
  backend "local" { path = "$S/hostile.tfstate" }
}
resource "terraform_data" "note" {
  for_each = { "a\"b" = 1, "@octocat #12" = 2, "</details>" = 3, "|x|" = 4, "`@octocat`" = 5, "closes #1" = 6 }
  input    = <<-EOT
    ```
    ~~~
    </details><script>alert(1)</script>
    @org/team see #12, owner/repo#3, closes #1
    ${"\u001b[31mred\u001b[0m"}
    `````
  EOT
}
output "says" { value = "</details> @octocat closes #1" }
"##;

#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_plan_mentions_nobody_and_breaks_nothing() {
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("<img>-`@octocat`", &[("a`b @octocat #12/main.tf", Some(HOSTILE))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 6 create"), "{note}");
    assert_quiet(&note);
    // An approval that voids, an apply that fails and the words of both.
    ctx.comment(pull, MIRA, "apply -d \"`@octocat` closes #1\"").await;
    ctx.comment(pull, MIRA, "tidegate explain \"`@octocat` closes #1\"").await;
    ctx.comment(pull, MIRA, "tidegate @octocat closes #1").await;
    ctx.comment(pull, LIN, "approve").await;
    ctx.push(
        "<img>-`@octocat`",
        &[("a`b @octocat #12/main.tf", Some(&HOSTILE.replace("\"closes #1\" = 6", "\"closes #1 @org/team`\" = 6")))],
    );
    ctx.settle().await;
    ctx.comment(pull, MIRA, "apply").await;
    assert!(ctx.last_reply(pull).contains("changed after the approval"), "{}", ctx.last_reply(pull));
    ctx.comment(pull, LIN, "approve").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
    ctx.comment(pull, MIRA, "status").await;
    for reply in ctx.replies(pull) {
        assert_quiet(&reply);
    }
    assert_quiet(&ctx.note(pull).expect("a note"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_tool_is_text_as_well() {
    let bad = format!(
        "{SOLO}locals {{ one = 1 }}\nresource \"terraform_data\" \"b\" {{\n  lifecycle {{\n    precondition {{\n      condition     = local.one > 2\n      error_message = \"</details><script> @octocat closes #1 ``` owner/repo#3\"\n    }}\n  }}\n}}\n"
    );
    let fails = "resource \"terraform_data\" \"c\" {\n  provisioner \"local-exec\" { command = \"printf '\\\\033[31m``` @octocat </details> closes #1' >&2; false\" }\n}\n";
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net"]).await;
    let plan = ctx.open("plan", &[("solo/main.tf", Some(&bad))]);
    let apply = ctx.open("apply", &[("net/more.tf", Some(fails))]);
    ctx.settle().await;
    let note = ctx.note(plan).expect("a note");
    assert!(note.starts_with("### 1 root failed"), "{note}");
    assert_quiet(&note);
    ctx.comment(apply, LIN, "approve").await;
    ctx.comment(apply, MIRA, "apply").await;
    assert!(ctx.last_reply(apply).contains("failed"), "{}", ctx.last_reply(apply));
    assert_quiet(&ctx.last_reply(apply));
    assert_quiet(&ctx.note(apply).expect("a note"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_names_odd_paths_and_branches_as_text() {
    let ctx = Ctx::with(ESTATE).await;
    let path = "a`@octocat` closes #1.txt";
    ctx.push("topic", &[(path, Some("1\n"))]);
    ctx.push("main", &[(path, Some("2\n"))]);
    let pull = ctx.sandbox.open_pull(REPO, "topic", "Change it", MIRA).expect("a pull");
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.contains("it conflicts with `main`"), "{note}");
    assert_quiet(&note);
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_resources_and_an_endless_line_are_one_note_within_the_limit() {
    let large = r#"terraform {
  backend "local" { path = "$S/large.tfstate" }
}
resource "terraform_data" "many" {
  count = 600
  input = "ä-${count.index}-äöü"
}
resource "terraform_data" "long" {
  input = join("", [for i in range(1000) : "0123456789012345678901234567890123456789012345678901234567890123456789äöü456789"])
}
"#;
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let pull = ctx.open("large", &[("large/main.tf", Some(large))]);
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with("### 601 create"), "{}", &note[..200]);
    assert!(note.chars().count() <= 65_536, "{}", note.chars().count());
    assert_quiet(&note);
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 601 create");
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied");
    assert!(ctx.last_reply(pull).chars().count() <= 65_536);
    assert!(ctx.last_reply(pull).contains("601"), "{}", ctx.last_reply(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_that_the_forge_refused_once_is_said_again_and_the_run_goes_on() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["solo"]).await;
    for status in [422, 403, 500] {
        ctx.sandbox.faults().next("POST", "*/issues/*/comments", Fault::Status(status, Vec::new()));
    }
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert!(ctx.note(pull).is_some_and(|note| note.starts_with("### 1 update")));
    assert_eq!(ctx.plan_check(pull), "success: 1 root planned: 1 update");
    // The text of a review is a comment like any other, and only once.
    ctx.sandbox.review(REPO, pull, LIN, Verdict::Comment, "approve").expect("a review");
    ctx.settle().await;
    ctx.comment(pull, KIM, "apply").await;
    assert_eq!(ctx.apply_check(pull), "success: 1 root applied", "{:?}", ctx.replies(pull));
}
