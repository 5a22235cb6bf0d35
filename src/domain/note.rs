//! What people read: the note of a pull and the comment of an apply, rendered from the rollout. Text from a plan can
//! mention nobody, close no issue, break no fence and inject no HTML. Nothing is decided here.

use super::ids::Timestamp;
use super::pull::Pull;
use super::rollout::{Apply, Rollout, WaveState};

pub mod markdown;

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

/// The note of the pull's rollout (`examples/notes.md` 1 to 3).
pub fn note(pull: &Pull, rollout: &Rollout, context: &Context) -> String {
    let _ = (pull, rollout, context);
    unimplemented!()
}

/// The comment of an apply, while it runs and when it ended (`examples/notes.md` 4).
pub fn apply(pull: &Pull, rollout: &Rollout, apply: &Apply, context: &Context) -> String {
    let _ = (pull, rollout, apply, context);
    unimplemented!()
}
