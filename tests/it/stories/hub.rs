//! A hub that many roots read: what a change of it plans, and what it leaves alone.

use crate::ctx::{Ctx, LIN, MIRA};

const READERS: usize = 50;
/// Every tenth reader reads the output that changes.
const EACH: usize = 10;

fn hub(zone: &str) -> String {
    format!(
        "terraform {{\n  backend \"local\" {{ path = \"$S/hub.tfstate\" }}\n}}\noutput \"zone\" {{ value = \"{zone}\" }}\noutput \"name\" {{ value = \"hub\" }}\n"
    )
}

fn reader(number: usize) -> String {
    let output = if number.is_multiple_of(EACH) { "zone" } else { "name" };
    format!(
        r#"terraform {{
  backend "local" {{ path = "$S/r{number:02}.tfstate" }}
}}
data "terraform_remote_state" "hub" {{
  backend = "local"
  config  = {{ path = "$S/hub.tfstate" }}
}}
resource "terraform_data" "a" {{ input = data.terraform_remote_state.hub.outputs.{output} }}
"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_readers_only_those_of_the_changed_output_are_planned() {
    let before = hub("a");
    let readers: Vec<(String, String)> =
        (0..READERS).map(|number| (format!("r{number:02}/main.tf"), reader(number))).collect();
    let mut files = vec![("hub/main.tf", before.as_str())];
    files.extend(readers.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let ctx = Ctx::with(&files).await;
    ctx.applied_before(&["hub"]).await;
    let pull = ctx.open("zone", &[("hub/main.tf", Some(&hub("b")))]);
    ctx.settle().await;

    let planned = 1 + READERS / EACH;
    assert_eq!(ctx.jobs(pull).await as usize, planned, "jobs of the hub and of the readers of `zone`");
    let note = ctx.note(pull).expect("a note");
    let told =
        format!("**{planned} of {} roots planned**, {} read nothing that changes", READERS + 1, READERS + 1 - planned);
    assert!(note.contains(&told), "{told} in {note}");
    assert!(note.contains("whose values stay as they are"), "{note}");
    assert!(note.contains("`r07`") && note.contains("`r10`"), "{note}");

    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    assert_eq!(ctx.apply_check(pull), format!("success: {planned} roots applied"), "{:?}", ctx.replies(pull));
    assert!(ctx.state("r10").contains("\"b\"") && ctx.state("r07").is_empty());
    assert_eq!(ctx.jobs(pull).await as usize, 2 * planned, "each planned once and applied once");
}
