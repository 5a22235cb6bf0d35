//! Three hundred real roots in one pull: all are planned by the real tool, one note within the forge's limit tells them, and the
//! counts are complete. Many minutes of work in a debug build, so no script runs it: `cargo test --release --test many`.

#[path = "it/ctx.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod ctx;

use ctx::{Ctx, LIN, MIRA};

const ROOTS: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_roots_are_one_note_and_one_apply() {
    let root = |number: usize| {
        format!(
            "terraform {{\n  backend \"local\" {{ path = \"$S/r{number}.tfstate\" }}\n}}\nresource \"terraform_data\" \"own_{number}\" {{ input = \"value of {number}\" }}\n"
        )
    };
    let files: Vec<(String, String)> = (0..ROOTS)
        .map(|number| (format!("estate/part-{}/root-{number:03}/main.tf", number % 7), root(number)))
        .collect();
    let changes: Vec<(&str, Option<&str>)> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let ctx = Ctx::with(&[("README.md", "x\n")]).await;
    let began = std::time::Instant::now();
    let pull = ctx.open("many", &changes);
    ctx.until_within(std::time::Duration::from_secs(1800), "all plans", |ctx| {
        ctx.plan_check(pull).starts_with("success").then_some(())
    })
    .await;
    let planned = began.elapsed();
    ctx.settle().await;
    let note = ctx.note(pull).expect("a note");
    assert!(note.starts_with(&format!("### {ROOTS} create")), "{}", &note[..200]);
    assert!(note.chars().count() <= 65_536, "{}", note.chars().count());
    assert!(note.contains(&format!("**{ROOTS} of {ROOTS} roots planned**")), "{}", &note[..400]);
    assert_eq!(ctx.plan_check(pull), format!("success: {ROOTS} roots planned: {ROOTS} create"));
    assert_eq!(note.matches("<details>").count(), note.matches("\n</details>").count());
    assert_eq!(ctx.jobs(pull).await as usize, ROOTS);
    // A few of them by name, and nothing else with them.
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply -d estate/part-0/root-000 -d estate/part-5/root-299").await;
    assert!(ctx.apply_check(pull).starts_with(&format!("queued: 2 of {ROOTS} applied")), "{}", ctx.apply_check(pull));
    assert_eq!((ctx.serial("r0"), ctx.serial("r299"), ctx.serial("r7")), (1, 1, 0));
    for reply in ctx.replies(pull) {
        assert!(reply.chars().count() <= 65_536);
    }
    assert!(planned.as_secs() < 1800, "{planned:?}");
}
