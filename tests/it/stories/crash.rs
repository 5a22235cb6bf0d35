//! The server dies at every boundary of whole stories and comes back: what people see in the end, the states, the locks and the ledger are
//! those of a server that never died. The same when each effect is done twice.
//!
//! A story is a value, so that each has its crash runs as soon as it is written (`sessions.rs`). By default some *kinds* of boundaries are
//! tried; `TIDEGATE_BOUNDARIES=all` tries each, `TIDEGATE_BOUNDARIES=2/5` each fifth from the second on.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tidegate::app::sweep;

use super::ESTATE;
use crate::ctx::Ctx;
use crate::peril::{Peril, Trouble};
use crate::shim::Shim;

mod end;
mod sessions;

use end::{End, difference, end};

/// How many worlds run at once.
const AT_ONCE: usize = 4;
/// How many boundaries of a story are tried by default.
const MOST: usize = 2;

/// A story, as data: so that it can be told again and again.
#[derive(Clone, Copy)]
struct Story {
    config: &'static str,
    extra: &'static [(&'static str, &'static str)],
    applied: &'static [&'static str],
    pulls: u64,
    steps: &'static [Step],
}

/// What happens, and when the next may.
#[derive(Clone, Copy)]
struct Step {
    act: fn(&Ctx),
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    /// When all is at rest.
    Rest,
    /// As soon as this is to be seen, in the middle of something that the story holds up.
    Seen(fn(&Ctx) -> bool),
}

const fn rests(act: fn(&Ctx)) -> Step {
    Step { act, then: Then::Rest }
}

const fn seen(act: fn(&Ctx), seen: fn(&Ctx) -> bool) -> Step {
    Step { act, then: Then::Seen(seen) }
}

/// Tells a story in a world with this trouble.
async fn tell(story: Story, trouble: Trouble) -> (End, Vec<String>) {
    let mut files = ESTATE.to_vec();
    if !story.config.is_empty() {
        files.push((".tidegate.yaml", story.config));
    }
    files.extend(story.extra);
    let (peril, shim) = (Peril::new(trouble), Shim::new());
    let mut ctx = Ctx::decorated_in(&files, shim.environment(), peril.decorate()).await;
    ctx.applied_before(story.applied).await;
    // A story begins after the first sweep, so that every run of it has the same boundaries.
    for step in story.steps {
        (step.act)(&ctx);
        match step.then {
            Then::Rest => rest(&mut ctx, &peril).await,
            Then::Seen(seen) => until(&mut ctx, &peril, seen).await,
        }
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

/// Waits until something is to be seen; a server that dies meanwhile is started again, and sweeps until then.
async fn until(ctx: &mut Ctx, peril: &Arc<Peril>, seen: fn(&Ctx) -> bool) {
    let life = peril.life();
    let died = tokio::select! {
        biased;
        () = life.died() => true,
        () = ctx.until("what the story waits for", |ctx| seen(ctx).then_some(())) => false,
    };
    if !died {
        return;
    }
    ctx.restart().await;
    let app = Arc::clone(ctx.app());
    let sweeps = async {
        loop {
            sweep::forges(&app).await.expect("a sweep");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = sweeps => {}
        () = ctx.until("what the story waits for, after a crash", |ctx| seen(ctx).then_some(())) => {}
    }
}

/// The boundaries at which the server dies, one by one.
fn tried(name: &str, passed: &[String]) -> Vec<usize> {
    let all = 1..=passed.len();
    match std::env::var("TIDEGATE_BOUNDARIES").as_deref() {
        Ok("all") => return all.collect(),
        Ok(part) => {
            let (nth, of) = part.split_once('/').expect("`all`, or a part like `2/5`");
            let (nth, of): (usize, usize) = (nth.parse().expect("a number"), of.parse().expect("a number"));
            return all.filter(|at| at % of == nth % of).collect();
        }
        Err(_) => {}
    }
    // What lies before a write lies after another one; the first of a kind stands for all. Each story begins elsewhere.
    let kinds: Vec<usize> =
        all.filter(|at| passed[at - 1].starts_with("after") && !passed[..at - 1].contains(&passed[at - 1])).collect();
    let stride = kinds.len().div_ceil(MOST).max(1);
    kinds.into_iter().skip(name.len() % stride).step_by(stride).collect()
}

/// A story's end does not depend on where the server died, nor on effects that are done twice.
async fn holds(name: &str, story: Story) {
    let (whole, passed) = tell(story, Trouble::Nothing).await;
    assert!(passed.len() > 10, "{passed:#?}");
    let (twice, _) = tell(story, Trouble::EffectsTwice).await;
    assert!(whole == twice, "{name}: each effect twice:\n{}", difference(&whole, &twice));
    let tried = tried(name, &passed);
    let ends: Vec<(usize, Option<End>)> = stream::iter(tried)
        .map(|at| async move {
            let told = tokio::spawn(tell(story, Trouble::DiesAt(at)));
            (at, told.await.ok().map(|told| told.0))
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let told =
        |end: &Option<End>| end.as_ref().map_or("it panicked, see above".to_owned(), |end| difference(&whole, end));
    let failed: Vec<String> = ends
        .iter()
        .filter(|(_, end)| end.as_ref() != Some(&whole))
        .map(|(at, end)| format!("died {at}, {}:\n{}", passed[at - 1], told(end)))
        .collect();
    assert!(failed.is_empty(), "{name}: {} of {} differ\n{}", failed.len(), ends.len(), failed.join("\n"));
}
