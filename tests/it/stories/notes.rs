//! Whole notes as people read them, as snapshots. Digests and commits stand for themselves by name, so that a snapshot is stable.

use super::{ESTATE, net};
use crate::ctx::{Ctx, LIN, MIRA, REPO};

/// The text with each digest and commit that the pull has by name, and durations left out.
async fn named(ctx: &Ctx, pull: u64, text: &str) -> String {
    let mut names: Vec<(String, String)> = Vec::new();
    for known in ctx.app().store.pulls().await.expect("pulls").into_iter().filter(|known| known.key.number == pull) {
        let rollout = known.rollout.expect("a rollout");
        names.push((rollout.head.short().to_owned(), "HEAD123".to_owned()));
        names.push((rollout.base.short().to_owned(), "BASE123".to_owned()));
        names.push((ctx.app().pages.rollout(&rollout.id), "https://tidegate.example/r/1".to_owned()));
        for wave in 1..=rollout.waves.len() {
            if let Some(digest) = rollout.set_digest(wave) {
                names.push((digest.short().to_owned(), format!("wave{wave}digest")));
            }
        }
        for run in rollout.runs.values() {
            if let Some(planned) = run.planned() {
                names.push((planned.digest.short().to_owned(), format!("{}-digest", run.root)));
            }
        }
    }
    let text = ids_by_number(text);
    let text = names.iter().fold(text, |text, (value, name)| text.replace(value, name));
    let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    // A duration is a number and its unit.
    let mut out: Vec<String> = Vec::new();
    for word in words {
        let is_unit = ["s", "ms"].iter().any(|unit| word == *unit || word.starts_with(&format!("{unit}\n")));
        if is_unit && out.last().is_some_and(|number| number.parse::<f64>().is_ok()) {
            out.pop();
            out.push("N".to_owned());
        }
        out.push(word);
    }
    out.join(" ").replace("N ms", "N s")
}

/// The random ids of the tool, numbered as they first come.
fn ids_by_number(text: &str) -> String {
    let is_id = |part: &str| {
        part.len() == 36
            && part
                .chars()
                .enumerate()
                .all(|(at, c)| if [8, 13, 18, 23].contains(&at) { c == '-' } else { c.is_ascii_hexdigit() })
    };
    let mut known: Vec<String> = Vec::new();
    let parts = text.split('"').map(|part| {
        if !is_id(part) {
            return part.to_owned();
        }
        let at = known.iter().position(|id| id == part).unwrap_or_else(|| {
            known.push(part.to_owned());
            known.len() - 1
        });
        format!("id-{}", at + 1)
    });
    parts.collect::<Vec<_>>().join("\"")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_note_and_the_apply_comment_of_a_whole_session() {
    let ctx = Ctx::with(ESTATE).await;
    ctx.applied_before(&["net", "app", "solo"]).await;
    let pull = ctx.open("range", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    insta::assert_snapshot!("session_planned", named(&ctx, pull, &ctx.note(pull).expect("a note")).await);
    ctx.comment(pull, LIN, "approve").await;
    ctx.comment(pull, MIRA, "apply").await;
    insta::assert_snapshot!("session_waits", named(&ctx, pull, &ctx.last_reply(pull)).await);
    insta::assert_snapshot!("session_half", named(&ctx, pull, &ctx.note(pull).expect("a note")).await);
    ctx.comment(pull, LIN, "approve wave-2").await;
    insta::assert_snapshot!("session_applied", named(&ctx, pull, &ctx.last_reply(pull)).await);
    ctx.comment(pull, LIN, "status").await;
    insta::assert_snapshot!("session_status", named(&ctx, pull, &ctx.last_reply(pull)).await);
    ctx.merge(pull).expect("it merges");
    ctx.settle().await;
    insta::assert_snapshot!("session_merged", named(&ctx, pull, &ctx.note(pull).expect("a note")).await);
    let _ = REPO;
}
