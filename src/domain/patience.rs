//! How long something that failed is tried again, by what kind of failure it was. Pure: it asks no clock and names no client.

use std::ops::ControlFlow;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An event of a pull, which holds those behind it.
    Event,
    /// An effect, which holds what its slot and lane would say next.
    Effect,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The forge says how long to wait.
    Limited {
        /// Milliseconds.
        wait_ms: i64,
    },
    /// The forge, or its git, does not answer, or says that it cannot now.
    Away,
    /// The forge's answer has no shape that we know: a page of a proxy, or another API.
    Unreadable,
    /// It is not there, or not yet.
    Missing,
    /// We may not.
    Denied,
    /// What we send, or when we send it, is refused.
    Rejected,
    /// No forge of that name is in the settings.
    Unknown,
    /// Anything else: a disk, git, the executor.
    Other,
}

/// With at most a minute between: a day. What is away comes back without us, and what it would have been told is kept for it.
const OF_A_DAY: i64 = 1_500;
/// Above ten minutes: longer than a deployment of the forge or a restart of a proxy takes. What cannot be read after that is ours or
/// the operator's to mend, and holds nobody's order for it.
const UNREADABLE: i64 = 18;

/// How long to wait after this many tries, in milliseconds; or that it is put aside.
pub fn patience(work: Work, trouble: Trouble, attempts: i64) -> ControlFlow<(), i64> {
    let tries = match (trouble, work) {
        (Trouble::Limited { .. } | Trouble::Away, _) => OF_A_DAY,
        (Trouble::Unreadable, _) => UNREADABLE,
        (Trouble::Missing, _) => 8,
        (Trouble::Denied, Work::Event) => 3,
        (Trouble::Denied | Trouble::Rejected, Work::Effect) => 2,
        (Trouble::Rejected | Trouble::Other, Work::Event) => 40,
        (Trouble::Other, Work::Effect) => 60,
        (Trouble::Unknown, _) => 0,
    };
    if attempts >= tries {
        return ControlFlow::Break(());
    }
    ControlFlow::Continue(match trouble {
        Trouble::Limited { wait_ms } => wait_ms,
        _ => backoff_ms(attempts),
    })
}

/// 250 ms, doubled each time, at most a minute.
pub fn backoff_ms(attempts: i64) -> i64 {
    250i64.saturating_mul(1 << attempts.clamp(0, 8)).min(60_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;

    /// How often it is tried again, and for how long.
    fn kept(work: Work, trouble: Trouble) -> (i64, i64) {
        let wait = |attempts| match patience(work, trouble, attempts) {
            ControlFlow::Continue(wait) => Some(wait),
            ControlFlow::Break(()) => None,
        };
        let waits: Vec<i64> = (0..5_000).map_while(wait).collect();
        (i64::try_from(waits.len()).unwrap(), waits.iter().sum())
    }

    #[test]
    fn each_trouble_has_its_bound() {
        use Trouble::{Away, Denied, Limited, Missing, Other, Rejected, Unknown, Unreadable};
        use Work::{Effect, Event};
        let table = [
            (Event, Limited { wait_ms: MINUTE }, 24 * HOUR, 26 * HOUR),
            (Effect, Limited { wait_ms: MINUTE }, 24 * HOUR, 26 * HOUR),
            (Event, Away, 24 * HOUR, 26 * HOUR),
            (Effect, Away, 24 * HOUR, 26 * HOUR),
            (Event, Unreadable, 10 * MINUTE, 15 * MINUTE),
            (Effect, Unreadable, 10 * MINUTE, 15 * MINUTE),
            (Event, Missing, 20 * SECOND, 2 * MINUTE),
            (Effect, Missing, 20 * SECOND, 2 * MINUTE),
            (Event, Denied, SECOND, 5 * SECOND),
            (Effect, Denied, SECOND / 2, 5 * SECOND),
            (Event, Rejected, 20 * MINUTE, HOUR),
            (Effect, Rejected, SECOND / 2, 5 * SECOND),
            (Event, Other, 20 * MINUTE, HOUR),
            (Effect, Other, 40 * MINUTE, 2 * HOUR),
            (Event, Unknown, 0, 0),
            (Effect, Unknown, 0, 0),
        ];
        for (work, trouble, least, most) in table {
            let (tries, time) = kept(work, trouble);
            assert!((least..=most).contains(&time), "{work:?} {trouble:?}: {tries} tries in {time} ms");
        }
    }

    #[test]
    fn a_wait_is_the_forges_word_or_at_most_a_minute() {
        let limited = Trouble::Limited { wait_ms: 7 * HOUR };
        assert_eq!(patience(Work::Event, limited, 3), ControlFlow::Continue(7 * HOUR));
        for attempts in [0, 1, 8, 9, 500, i64::MAX] {
            assert!((250..=MINUTE).contains(&backoff_ms(attempts)), "{attempts}");
        }
    }
}
