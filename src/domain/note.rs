//! What people read: the note of a pull and the comment of an apply, rendered from the rollout. Text from a plan can
//! mention nobody, close no issue, break no fence and inject no HTML. Nothing is decided here.

use super::ids::Timestamp;
use super::pull::Pull;
use super::rollout::{Apply, PlanRun, Rollout, Stage, WaveState};

mod applying;
mod beside;
mod boxes;
mod cut;
mod details;
mod diff;
mod headline;
pub mod markdown;
mod next;
mod reach;
mod table;
mod two_tools;
mod unsaved;
mod words;

use cut::Budget;
pub use cut::shortened;

/// What a note needs beside the pull.
#[derive(Clone, Debug)]
pub struct Context {
    /// The page of the rollout.
    pub url: String,
    /// The most characters of a comment.
    pub limit: usize,
    /// Now, for durations of what still runs.
    pub now: Timestamp,
    /// State of each wave, from wave 1 on, as the gate sees it.
    pub waves: Vec<WaveState>,
    /// What each waiting wave waits for, in words: `1 more approval, from anyone with write access but the author`.
    pub waits: Vec<Option<String>>,
}

impl Context {
    /// The state of a wave, 1-based.
    fn wave(&self, number: usize) -> Option<&WaveState> {
        self.waves.get(number.checked_sub(1)?)
    }

    /// What a wave waits for, 1-based.
    fn wait(&self, number: usize) -> Option<&str> {
        self.waits.get(number.checked_sub(1)?)?.as_deref()
    }
}

/// All that a note is written from.
#[derive(Clone, Copy)]
struct Subject<'a> {
    pull: &'a Pull,
    rollout: &'a Rollout,
    context: &'a Context,
}

/// The note of the pull's rollout (`examples/notes.md` 1 to 3).
pub fn note(pull: &Pull, rollout: &Rollout, context: &Context) -> String {
    let subject = Subject { pull, rollout, context };
    match &rollout.stage {
        Stage::Inspecting => {
            let head = markdown::code(rollout.head.short());
            format!("### Planning at {head}…\n\nReading which roots this change reaches · [run]({})", context.url)
        }
        Stage::Refused(refusal) | Stage::Unmanaged(refusal) => {
            let note = format!("### {}\n\n{}\n\n[run]({})", refusal.title, refusal.text, context.url);
            cut::hard(note, context)
        }
        Stage::Ready if headline::is_unchanged(rollout) => cut::hard(unchanged(subject), context),
        Stage::Ready => cut::within_limit(subject, |budget| ready(subject, budget)),
    }
}

/// The comment of an apply, while it runs and when it ended (`examples/notes.md` 4).
pub fn apply(pull: &Pull, rollout: &Rollout, apply: &Apply, context: &Context) -> String {
    cut::hard(applying::comment(Subject { pull, rollout, context }, apply), context)
}

/// The questions of the reader in their order: what dies, is it right, what else does it touch, what now.
fn ready(subject: Subject<'_>, budget: &Budget) -> String {
    let blocks = [
        Some(headline::headline(subject)),
        Some(headline::summary(subject)),
        boxes::failures(subject),
        boxes::caution(subject),
        boxes::locks(subject),
        boxes::notices(subject),
        table::table(subject, budget),
        beside::again(subject),
        beside::neighbours(subject),
        reach::radius(subject, budget),
        reach::by_resource(subject, budget),
        details::details(subject, budget),
        reach::holes(subject.rollout, budget),
        cut::said(subject, budget),
        next::next(subject),
    ];
    blocks.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

fn unchanged(subject: Subject<'_>) -> String {
    let blocks = [
        Some(headline::headline(subject)),
        Some(headline::nothing_to_do(subject)),
        boxes::notices(subject),
        beside::again(subject),
        headline::drift(subject.rollout),
        reach::holes(subject.rollout, &Budget::default()),
    ];
    blocks.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Whether a run still has to plan.
fn is_pending(plan: &PlanRun) -> bool {
    matches!(plan, PlanRun::Queued | PlanRun::Running { .. })
}

#[cfg(test)]
mod tests;
