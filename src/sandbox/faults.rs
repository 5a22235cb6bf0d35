//! Faults that a test orders in advance. Never does anything that was not ordered.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answer with this status and these headers, doing nothing.
    Status(u16, Vec<(String, String)>),
    /// Answer this status and body, doing nothing: an old truth, a message that counts, an error in a 200.
    Answer(u16, serde_json::Value),
    /// Do the work, then answer with this status: the caller cannot know that it worked.
    AfterEffect(u16),
    /// Do the work, then break the connection within the answer.
    Reset,
    /// Do the work and answer well, but late.
    Delay(Duration),
    /// Take the request and say nothing, ever.
    Silence,
    /// Answer this status and text, doing nothing: a page of a proxy where JSON belongs.
    Text(u16, String),
}

/// The queue of faults.
#[derive(Debug, Default)]
pub struct Faults(Mutex<VecDeque<(String, globset::GlobMatcher, Fault)>>);

impl Faults {
    /// Orders a fault for the next request with this method (`*` for any) whose path fits the pattern (`*` also crosses slashes).
    ///
    /// # Panics
    /// When the pattern is no glob: it is written in a test.
    pub fn next(&self, method: &str, path: &str, fault: Fault) {
        let glob = globset::Glob::new(path).expect("a test writes a valid pattern").compile_matcher();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((method.to_owned(), glob, fault));
    }
    /// How many orders still wait.
    pub fn waiting(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
    /// Takes the first order that fits.
    pub fn take(&self, method: &str, path: &str) -> Option<Fault> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = queue.iter().position(|(m, glob, _)| (m == "*" || m == method) && glob.is_match(path))?;
        queue.remove(at).map(|(_, _, fault)| fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_once_and_only_where_it_fits() {
        let faults = Faults::default();
        faults.next("POST", "/repos/*/comments", Fault::AfterEffect(502));
        assert_eq!(faults.take("GET", "/repos/o/r/issues/1/comments"), None);
        assert_eq!(faults.take("POST", "/repos/o/r/issues/1/comments"), Some(Fault::AfterEffect(502)));
        assert_eq!(faults.take("POST", "/repos/o/r/issues/1/comments"), None);
    }
}
