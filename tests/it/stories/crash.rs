//! The server dies at every boundary of whole stories and comes back: what people see in the end, the states, the locks and the ledger are
//! those of a server that never died. The same when each effect is done twice.
//!
//! By default some *kinds* of boundaries are tried, spread over the story; with `TIDEGATE_EVERY_BOUNDARY` set, each boundary is.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use tidegate::app::sweep;

use super::{ESTATE, net, solo};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};
use crate::peril::{Peril, Trouble};

/// How many worlds run at once.
const AT_ONCE: usize = 4;
/// How many boundaries of a story are tried by default.
const MOST: usize = 4;

/// A story, as data: so that it can be told again and again.
#[derive(Clone, Copy)]
struct Story {
    config: &'static str,
    extra: &'static [(&'static str, &'static str)],
    applied: &'static [&'static str],
    pulls: u64,
    /// Each is followed by rest.
    steps: &'static [fn(&Ctx)],
}

/// What is left of a story.
#[derive(Debug, PartialEq, Eq)]
struct End {
    notes: Vec<Option<String>>,
    replies: Vec<Vec<String>>,
    checks: Vec<[String; 2]>,
    merged: Vec<bool>,
    uses: Vec<usize>,
    locks: Vec<String>,
    states: BTreeMap<String, u64>,
}

/// Tells a story in a world with this trouble.
async fn tell(story: Story, trouble: Trouble) -> (End, Vec<String>) {
    let mut files = ESTATE.to_vec();
    if !story.config.is_empty() {
        files.push((".tidegate.yaml", story.config));
    }
    files.extend(story.extra);
    let peril = Peril::new(trouble);
    let mut ctx = Ctx::decorated(&files, peril.decorate()).await;
    ctx.applied_before(story.applied).await;
    // A story begins after the first sweep, so that every run of it has the same boundaries.
    for step in story.steps {
        step(&ctx);
        rest(&mut ctx, &peril).await;
    }
    (end(&ctx, story.pulls).await, peril.passed())
}

/// Waits for rest; a server that dies meanwhile is started again, and looks for what it missed.
async fn rest(ctx: &mut Ctx, peril: &Arc<Peril>) {
    let life = peril.life();
    let died = tokio::select! {
        biased;
        () = life.died() => true,
        () = ctx.settle() => false,
    };
    if !died {
        return;
    }
    ctx.restart().await;
    // As the next sweeps would: the first sees heads, the second what was said below them.
    for _ in 0..2 {
        ctx.settle().await;
        sweep::forges(ctx.app()).await.expect("a sweep");
    }
    ctx.settle().await;
}

async fn end(ctx: &Ctx, pulls: u64) -> End {
    let each = 1..=pulls;
    let mut uses = Vec::new();
    for pull in each.clone() {
        uses.push(ctx.uses(pull).await);
    }
    let mut locks = ctx.locks().await;
    locks.sort();
    let names = ["net", "app", "solo", "slow"].map(|name| (name.to_owned(), ctx.serial(name)));
    End {
        notes: each.clone().map(|pull| ctx.note(pull).map(|note| plain(&note))).collect(),
        replies: each.clone().map(|pull| ctx.replies(pull).iter().map(|text| plain(text)).collect()).collect(),
        checks: each.clone().map(|pull| [plain(&ctx.plan_check(pull)), plain(&ctx.apply_check(pull))]).collect(),
        merged: each.map(|pull| ctx.sandbox.pull(REPO, pull).expect("a pull").merged.is_some()).collect(),
        uses,
        locks,
        states: names.into(),
    }
}

/// A text without what differs between two worlds: commits, digests, ids, addresses, durations.
fn plain(text: &str) -> String {
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

/// The boundaries at which the server dies, one by one.
fn tried(passed: &[String]) -> Vec<usize> {
    let all = 1..=passed.len();
    if std::env::var_os("TIDEGATE_EVERY_BOUNDARY").is_some() {
        return all.collect();
    }
    // What lies before a write lies after another one; the first of a kind stands for all.
    let kinds: Vec<usize> =
        all.filter(|at| passed[at - 1].starts_with("after") && !passed[..at - 1].contains(&passed[at - 1])).collect();
    kinds.iter().copied().step_by(kinds.len().div_ceil(MOST).max(1)).collect()
}

/// A story's end does not depend on where the server died, nor on effects that are done twice.
async fn holds(name: &str, story: Story) {
    let (whole, passed) = tell(story, Trouble::Nothing).await;
    assert!(passed.len() > 10, "{passed:#?}");
    let (twice, _) = tell(story, Trouble::EffectsTwice).await;
    pretty(&whole, &twice, &format!("{name}: each effect twice"));
    let tried = tried(&passed);
    let ends: Vec<(usize, End)> = stream::iter(tried)
        .map(|at| async move {
            let told = tokio::spawn(tell(story, Trouble::DiesAt(at)));
            (at, told.await.unwrap_or_else(|error| panic!("died at {at}: {error}")).0)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let failed: Vec<String> = ends
        .iter()
        .filter(|(_, end)| *end != whole)
        .map(|(at, end)| format!("died {at}, {}:\n{}", passed[at - 1], difference(&whole, end)))
        .collect();
    assert!(failed.is_empty(), "{name}: {} of {} differ\n{}", failed.len(), ends.len(), failed.join("\n"));
}

fn pretty(whole: &End, other: &End, what: &str) {
    assert!(whole == other, "{what}:\n{}", difference(whole, other));
}

fn difference(whole: &End, other: &End) -> String {
    let (whole, other) = (format!("{whole:#?}").replace("\\n", "\n"), format!("{other:#?}").replace("\\n", "\n"));
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (whole.lines().collect(), other.lines().collect());
    let gone = ours.iter().filter(|line| !theirs.contains(line)).map(|line| format!("- {line}"));
    let new = theirs.iter().filter(|line| !ours.contains(line)).map(|line| format!("+ {line}"));
    let lines: Vec<String> = gone.chain(new).collect();
    if lines.is_empty() { format!("the same lines, otherwise arranged:\n{other}") } else { lines.join("\n") }
}

fn open(ctx: &Ctx, branch: &str, changes: &[(&str, Option<&str>)]) {
    ctx.open(branch, changes);
}

fn say(ctx: &Ctx, pull: u64, by: &str, text: &str) {
    ctx.sandbox.comment(REPO, pull, by, text).expect("a comment");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_on_open() {
    let story = Story {
        config: "",
        extra: &[],
        applied: &["solo"],
        pulls: 1,
        steps: &[|ctx| open(ctx, "one", &[("solo/main.tf", Some(&solo("2")))])],
    };
    holds("plan", story).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn approve_apply_and_merge() {
    let story = Story {
        config: "apply: { merge: auto }\n",
        extra: &[],
        applied: &["solo"],
        pulls: 1,
        steps: &[
            |ctx| open(ctx, "one", &[("solo/main.tf", Some(&solo("2")))]),
            |ctx| say(ctx, 1, LIN, "approve"),
            |ctx| say(ctx, 1, MIRA, "apply"),
        ],
    };
    holds("apply", story).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_waves_with_a_new_plan_between() {
    let story = Story {
        config: "gate: never\n",
        extra: &[],
        applied: &["net", "app"],
        pulls: 1,
        steps: &[
            |ctx| open(ctx, "range", &[("net/main.tf", Some(&net("10.9.0.0/16")))]),
            |ctx| say(ctx, 1, MIRA, "apply"),
        ],
    };
    holds("waves", story).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_goes_to_the_next_pull() {
    let story = Story {
        config: "gate: never\nlocks: plan\n",
        extra: &[],
        applied: &["solo"],
        pulls: 2,
        steps: &[
            |ctx| open(ctx, "one", &[("solo/main.tf", Some(&solo("2")))]),
            |ctx| {
                ctx.push("two", &[("solo/main.tf", Some(&solo("3")))]);
                ctx.sandbox.open_pull(REPO, "two", "Change it again", KIM).expect("a pull");
            },
            |ctx| ctx.sandbox.close(REPO, 1, MIRA).expect("closed"),
        ],
    };
    holds("locks", story).await;
}

const FAILS: &str = r#"terraform {
  backend "local" { path = "$S/slow.tfstate" }
}
resource "terraform_data" "a" { input = "1" }
resource "terraform_data" "b" {
  depends_on = [terraform_data.a]
  provisioner "local-exec" { command = "test -e $S/allow" }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_apply_and_a_new_plan() {
    let story = Story {
        config: "gate: never\n",
        extra: &[],
        applied: &[],
        pulls: 1,
        steps: &[
            |ctx| open(ctx, "slow", &[("slow/main.tf", Some(FAILS))]),
            |ctx| say(ctx, 1, MIRA, "apply"),
            |ctx| {
                std::fs::write(ctx.states().join("allow"), "").expect("a file");
                say(ctx, 1, MIRA, "plan -d slow");
            },
            |ctx| say(ctx, 1, MIRA, "apply"),
        ],
    };
    holds("failure", story).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_and_a_close() {
    let story = Story {
        config: "locks: plan\n",
        extra: &[],
        applied: &["solo"],
        pulls: 1,
        steps: &[
            |ctx| {
                ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
                ctx.push("one", &[("solo/main.tf", Some(&solo("3")))]);
            },
            |ctx| {
                ctx.push("one", &[("solo/main.tf", Some(&solo("4")))]);
                ctx.sandbox.close(REPO, 1, MIRA).expect("closed");
            },
        ],
    };
    holds("close", story).await;
}
