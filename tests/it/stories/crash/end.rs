//! What is left of a story: what people see, the states, what is kept. Two worlds that told the same story have the same.

use std::collections::BTreeMap;

use tidegate::domain::pull::Pull;
use tidegate::domain::rollout::{ApplyRun, PlanRun};

use crate::ctx::{Ctx, REPO};

/// What is left of a story.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    notes: Vec<Option<String>>,
    replies: Vec<Vec<String>>,
    /// Our reactions to each comment.
    reactions: Vec<Vec<String>>,
    checks: Vec<[String; 2]>,
    /// Checks of earlier heads that are not over.
    open_checks: Vec<String>,
    merged: Vec<bool>,
    locks: Vec<String>,
    ledger: Vec<Vec<String>>,
    rows: Vec<String>,
    states: BTreeMap<String, u64>,
}

/// Reads it.
pub async fn end(ctx: &Ctx, pulls: u64) -> End {
    let each = 1..=pulls;
    let store = &ctx.app().store;
    let mut kept = store.pulls().await.expect("pulls");
    kept.sort_by_key(|pull| pull.key.number);
    let mut ledger = Vec::new();
    for pull in &kept {
        let lines = store.ledger(&pull.key).await.expect("a ledger");
        ledger.push(lines.iter().map(|(_, line)| plain(line)).collect());
    }
    let open = store.open_jobs().await.expect("jobs");
    assert!(open.is_empty(), "at rest no job is open: {open:?}");
    let mut locks = ctx.locks().await;
    locks.sort();
    let names = ["net", "app", "solo", "slow", "src", "dst"].map(|name| (name.to_owned(), ctx.serial(name)));
    End {
        notes: each.clone().map(|pull| ctx.note(pull).map(|note| plain(&note))).collect(),
        replies: each.clone().map(|pull| ctx.replies(pull).iter().map(|text| plain(text)).collect()).collect(),
        reactions: each.clone().flat_map(|pull| reactions(ctx, pull)).collect(),
        checks: each.clone().map(|pull| [plain(&ctx.plan_check(pull)), plain(&ctx.apply_check(pull))]).collect(),
        open_checks: open_checks(ctx, pulls),
        merged: each.map(|pull| ctx.sandbox.pull(REPO, pull).expect("a pull").merged.is_some()).collect(),
        locks,
        ledger,
        rows: kept.iter().flat_map(rows).collect(),
        states: names.into(),
    }
}

/// What is kept of a pull, without times, commits and ids.
fn rows(pull: &Pull) -> Vec<String> {
    let number = pull.key.number;
    let state = pull.seen.as_ref().map(|seen| (seen.state, seen.draft));
    let approved: Vec<String> =
        pull.approvals.iter().map(|approval| format!("wave-{} by {}", approval.wave, approval.by)).collect();
    let mut rows = vec![format!(
        "#{number} {state:?}, approved {approved:?}, {} applied, {} touched, {} retired",
        pull.applied.len(),
        pull.touched.len(),
        pull.retired.len()
    )];
    let Some(rollout) = &pull.rollout else { return rows };
    rows.push(format!("#{number} {:?}, {} applies, {} jobs", rollout.stage, rollout.applies, rollout.jobs));
    for run in rollout.runs.values() {
        let plan = match &run.plan {
            PlanRun::Done(planned) => format!("planned {}", planned.plan.counts()),
            PlanRun::Failed { failure, .. } => format!("failed: {}", failure.summary),
            PlanRun::Running { .. } => "running".to_owned(),
            PlanRun::Blocked(blocker) => format!("blocked by {}", blocker.pull),
            other => format!("{other:?}"),
        };
        let apply = match &run.apply {
            ApplyRun::None => "not applied",
            ApplyRun::Running { .. } => "running",
            ApplyRun::Applied { .. } => "applied",
            ApplyRun::Failed { .. } => "failed",
        };
        rows.push(format!("#{number} {}: {plan}, {apply}, lost {}", run.root, run.lost));
    }
    rows
}

fn reactions(ctx: &Ctx, pull: u64) -> Vec<Vec<String>> {
    let comments = ctx.sandbox.comments(REPO, pull).expect("comments");
    let people = comments.into_iter().filter(|comment| !comment.author.starts_with("tidegate"));
    people
        .map(|comment| {
            let mut each: Vec<String> = comment.reactions.into_iter().map(|reaction| reaction.content).collect();
            each.sort();
            each
        })
        .collect()
}

/// How far an earlier head came is chance; that none of its checks hangs is not.
fn open_checks(ctx: &Ctx, pulls: u64) -> Vec<String> {
    let current: Vec<String> = (1..=pulls).map(|pull| ctx.sandbox.pull(REPO, pull).expect("a pull").head_sha).collect();
    let earlier = ctx.pushed().into_iter().filter(|head| !current.contains(head));
    let shown = earlier.flat_map(|head| ["tidegate/plan", "tidegate/apply"].map(|name| ctx.check_of(&head, name)));
    shown.filter(|shown| shown.starts_with("queued") || shown.starts_with("in_progress")).collect()
}

/// A text without what differs between two worlds: commits, digests, ids, addresses, durations.
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(std::iter::once('\n')) {
        if c.is_ascii_alphanumeric() || "-_./:".contains(c) {
            word.push(c);
            continue;
        }
        out.push_str(if is_chance(&word) { "…" } else { &word });
        word.clear();
        out.push(c);
    }
    // A duration is a number before its unit.
    let words: Vec<&str> = out.split(' ').collect();
    let mut told = String::new();
    let number = |word: &str| word.parse::<f64>().is_ok();
    for (at, word) in words.iter().enumerate() {
        match after_unit(word).filter(|_| at > 0 && number(words[at - 1])) {
            Some(rest) => told.extend(["s", rest, " "]),
            None if number(word) && words.get(at + 1).is_some_and(|next| after_unit(next).is_some()) => {
                told.push_str("N ");
            }
            None => told.extend([word, " "]),
        }
    }
    told
}

/// What follows a unit of time that a word begins with.
fn after_unit(word: &str) -> Option<&str> {
    let rest = ["ms", "s"].iter().find_map(|unit| word.strip_prefix(unit))?;
    (!rest.starts_with(|c: char| c.is_alphanumeric())).then_some(rest)
}

fn is_chance(word: &str) -> bool {
    let hex = |part: &str| part.len() >= 7 && part.chars().all(|c| c.is_ascii_hexdigit());
    word.starts_with("http") || word.contains("/tmp") || word.split(['-', ':', '.']).any(hex)
}

/// The lines that differ.
pub fn difference(whole: &End, other: &End) -> String {
    let (whole, other) = (format!("{whole:#?}").replace("\\n", "\n"), format!("{other:#?}").replace("\\n", "\n"));
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (whole.lines().collect(), other.lines().collect());
    let gone = ours.iter().filter(|line| !theirs.contains(line)).map(|line| format!("- {line}"));
    let new = theirs.iter().filter(|line| !ours.contains(line)).map(|line| format!("+ {line}"));
    let lines: Vec<String> = gone.chain(new).collect();
    if lines.is_empty() { format!("the same lines, otherwise arranged:\n{other}") } else { lines.join("\n") }
}
