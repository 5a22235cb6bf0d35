//! Finds every form of many values in one pass over a text, and masks what it finds whole. It holds the values in clear and
//! prints none.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::{MASK, forms};

/// A longer value is masked line by line: what wraps text breaks no such one into a form that is worth an expression.
const LONGEST_WRAPPED: usize = 300;

/// The machine.
#[derive(Clone)]
pub(super) struct Search {
    forms: AhoCorasick,
    /// From this pattern on they are windows into base64, and the letters around them are masked with them.
    windows: usize,
    /// Values of several words, however the text is wrapped between them.
    wrapped: Option<Regex>,
}

impl Search {
    /// For these values; `None` when there is nothing to look for.
    pub(super) fn of(values: &BTreeSet<String>) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let whole: BTreeSet<String> = values.iter().flat_map(|value| forms::of(value)).collect();
        let windows: BTreeSet<String> = values.iter().flat_map(|value| forms::windows(value)).collect();
        let forms = AhoCorasick::new(whole.iter().chain(&windows)).ok()?;
        Some(Self { forms, windows: whole.len(), wrapped: wrapped(values) })
    }

    /// The text with each find replaced. Finds that share letters are one: what stands between their ends is secret.
    pub(super) fn mask(&self, text: &str) -> String {
        let mut finds: Vec<Range<usize>> = self
            .forms
            .find_overlapping_iter(text)
            .map(|found| {
                let is_window = found.pattern().as_usize() >= self.windows;
                if is_window { encoded_around(text.as_bytes(), found.range()) } else { found.range() }
            })
            .collect();
        if text.contains('\n') {
            finds.extend(self.wrapped.iter().flat_map(|wrapped| wrapped.find_iter(text)).map(|found| found.range()));
        }
        finds.sort_by_key(|found| (found.start, std::cmp::Reverse(found.end)));
        let mut masked = String::with_capacity(text.len());
        let mut end = 0;
        for found in finds {
            if found.start >= end {
                masked.push_str(&text[end..found.start]);
                masked.push_str(MASK);
            }
            end = end.max(found.end);
        }
        masked.push_str(&text[end..]);
        masked
    }
}

/// The run of base64 around a find.
fn encoded_around(text: &[u8], found: Range<usize>) -> Range<usize> {
    let before = text[..found.start].iter().rev().take_while(|byte| forms::is_base64(**byte)).count();
    let after = text[found.end..].iter().take_while(|byte| forms::is_base64(**byte)).count();
    found.start - before..found.end + after
}

/// The tools wrap what they say to people, and put a bar before each line.
fn wrapped(values: &BTreeSet<String>) -> Option<Regex> {
    let mut several: Vec<&String> = values
        .iter()
        .filter(|value| value.len() <= LONGEST_WRAPPED && value.trim().contains(char::is_whitespace))
        .collect();
    if several.is_empty() {
        return None;
    }
    // The first that fits is taken, and a longer one must not be cut short by its beginning.
    several.sort_by_key(|value| std::cmp::Reverse(value.len()));
    let words = |value: &String| value.split_whitespace().map(regex::escape).collect::<Vec<_>>().join(r"[\s│]+");
    let expressions: Vec<String> = several.into_iter().map(words).collect();
    Regex::new(&expressions.join("|")).ok()
}
