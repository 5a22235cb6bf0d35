//! What people type: one grammar for every verb, read from the Markdown tree of a comment. It says
//! what a comment asks for and never whether that is allowed.

use super::approval::Confirmed;

mod arguments;
mod grammar;
mod markdown;
mod tool;
mod words;

pub use grammar::{read, usage};

/// A command as it was typed. Roots are as typed (`dir` or `dir:workspace`), not yet looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `plan [-d ROOT]… [-w WORKSPACE] [-- ARGS]`
    Plan {
        /// Empty: all reached roots.
        roots: Vec<String>,
        /// The workspace.
        workspace: Option<String>,
        /// Exact arguments for the tool.
        args: Vec<String>,
    },
    /// `apply [wave-N | -d ROOT…]`
    Apply(ApplyTarget),
    /// `approve [wave-N] [DIGEST]` with `confirm ADDRESS` lines.
    Approve {
        /// `None`: every wave whose digest is shown.
        wave: Option<usize>,
        /// At least 12 digits.
        digest: Option<String>,
        /// The addresses named.
        confirm: Vec<Confirmed>,
    },
    /// `unapprove`
    Unapprove,
    /// `discard [-d ROOT]…`
    Discard(Vec<String>),
    /// `cancel`
    Cancel,
    /// `lock [-d ROOT]… [REASON]`
    Lock {
        /// Empty: all reached roots.
        roots: Vec<String>,
        /// Why.
        reason: String,
    },
    /// `unlock [-d ROOT]…`
    Unlock(Vec<String>),
    /// `settle -d ROOT…`
    Settle(Vec<String>),
    /// `status`
    Status,
    /// `explain PATH`
    Explain(String),
    /// `help`
    Help,
}

/// How far to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyTarget {
    /// Every wave.
    All,
    /// Up to `wave-N`.
    Wave(usize),
    /// Only these roots and what they need.
    Roots(Vec<String>),
}

/// What a comment is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Prose: no run, no reply.
    NotForUs,
    /// A command.
    Command(Command),
    /// It names us, or is clearly a command, and cannot be obeyed: Markdown that says what is wrong and the usage.
    Wrong(String),
}
