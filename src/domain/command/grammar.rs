//! From a comment to a command: who is spoken to, which verb, and that nothing else is asked beside it. It never
//! looks anything up, and decides nothing about rights.

use super::arguments::{self, Trouble};
use super::markdown;
use super::words::{address_parts, is_address};
use super::{Command, Reading};
use crate::domain::approval::Confirmed;
use crate::domain::ids::RootKey;
use crate::domain::nearest::nearest;

/// What a flag selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    /// `-d`
    Root,
    /// `-w`
    Workspace,
}

/// A row of the grammar.
pub(super) struct Verb {
    pub name: &'static str,
    usage: &'static str,
    does: &'static str,
    pub flags: &'static [Flag],
}

const fn verb(name: &'static str, usage: &'static str, does: &'static str, flags: &'static [Flag]) -> Verb {
    Verb { name, usage, does, flags }
}

const VERBS: [Verb; 12] = [
    verb(
        "plan",
        "plan [-d ROOT]… [-w WORKSPACE] [-- ARGS]",
        "plan again, all reached roots or those named",
        &[Flag::Root, Flag::Workspace],
    ),
    verb(
        "apply",
        "apply [wave-N | -d ROOT…]",
        "apply: everything, up to a wave, or the roots named with what they need",
        &[Flag::Root],
    ),
    verb(
        "approve",
        "approve [wave-N] [DIGEST]",
        "approve the waves shown; further lines `confirm [ROOT] ADDRESS` name what may be destroyed",
        &[],
    ),
    verb("unapprove", "unapprove", "take your approvals back", &[]),
    verb("discard", "discard [-d ROOT]…", "drop plans", &[Flag::Root]),
    verb("cancel", "cancel", "cancel what is queued", &[]),
    verb("lock", "lock [-d ROOT]… [REASON]", "hold roots until you unlock them or this pull closes", &[Flag::Root]),
    verb("unlock", "unlock [-d ROOT]…", "release what this pull holds", &[Flag::Root]),
    verb(
        "settle",
        "settle -d ROOT…",
        "say that a state that an apply could not save is pushed, or not needed",
        &[Flag::Root],
    ),
    verb("status", "status", "say where things stand", &[]),
    verb("explain", "explain PATH", "say why a root is planned", &[]),
    verb("help", "help", "list the commands", &[]),
];

enum Form {
    Named,
    Bare,
}

enum LineReading {
    Prose,
    Command(Command),
    /// What is wrong, and the verb when it is one of ours.
    Wrong(String, Option<&'static Verb>),
}

/// Reads a comment. `login` is our own, for `@login verb`.
pub fn read(body: &str, login: &str) -> Reading {
    let lines = markdown::lines(body);
    let Some(first) = &lines.first else { return Reading::NotForUs };
    let command = match read_line(first, login) {
        LineReading::Prose => return Reading::NotForUs,
        LineReading::Wrong(what, verb) => return Reading::Wrong(wrong(&what, verb)),
        LineReading::Command(command) => command,
    };
    for line in &lines.later {
        if matches!(read_line(line, login), LineReading::Command(_) | LineReading::Wrong(_, Some(_))) {
            return Reading::Wrong(format!(
                "Not run: one command per comment, and {} is followed by {}. Write each in a comment of its own.",
                code(first),
                code(line)
            ));
        }
    }
    match command {
        Command::Approve { wave, digest, .. } => match confirmations(&lines.later) {
            Ok(confirm) => Reading::Command(Command::Approve { wave, digest, confirm }),
            Err(what) => Reading::Wrong(format!("Not approved: {what}")),
        },
        command => Reading::Command(command),
    }
}

/// The usage of every verb, as a Markdown table generated from the grammar's own table.
pub fn usage() -> String {
    let row = |verb: &Verb| format!("| `{}` | {} |", verb.usage.replace('|', "\\|"), verb.does);
    let rows: Vec<String> = VERBS.iter().map(row).collect();
    format!("| Type | To |\n|---|---|\n{}\n", rows.join("\n"))
}

/// Text of people as inline code that it cannot leave.
pub(super) fn code(text: &str) -> String {
    let mut shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect();
    if shown.len() < text.len() && text.chars().count() > 120 {
        shown.push('…');
    }
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{shown}`") } else { format!("{fence} {shown} {fence}") }
}

fn wrong(what: &str, verb: Option<&Verb>) -> String {
    match verb {
        Some(verb) => {
            format!("Not understood: {what}\n\nUsage: `{}`. `tidegate help` lists every command.", verb.usage)
        }
        None => format!("Not understood: {what}\n\n{}", usage()),
    }
}

fn read_line(line: &str, login: &str) -> LineReading {
    let (form, typed, rest) = spoken_to(line, login);
    let known = VERBS.iter().find(|verb| verb.name.eq_ignore_ascii_case(typed));
    let Some(verb) = known else {
        return match form {
            Form::Bare => LineReading::Prose,
            Form::Named if typed.is_empty() => LineReading::Wrong("no command follows the name.".into(), None),
            Form::Named => {
                let meant = nearest(typed, VERBS.iter().map(|verb| verb.name));
                let meant = meant.map_or_else(|| ".".to_owned(), |near| format!("; did you mean `{near}`?"));
                LineReading::Wrong(format!("{} is no command{meant}", code(typed)), None)
            }
        };
    };
    let answered = match form {
        Form::Named => true,
        Form::Bare => arguments::is_deliberate(verb, rest),
    };
    match (arguments::parse(verb, rest), form) {
        (Ok(Command::Lock { roots, reason }), Form::Bare) if roots.is_empty() && is_sentence(rest, &reason) => {
            LineReading::Prose
        }
        (Ok(command), _) => LineReading::Command(command),
        (Err(Trouble::Stray(what)), Form::Named) => LineReading::Wrong(what, Some(verb)),
        (Err(Trouble::Malformed(what)), _) if answered => {
            LineReading::Wrong(arguments::quote_trouble(line).unwrap_or(what), Some(verb))
        }
        (Err(_), _) => LineReading::Prose,
    }
}

/// "lock it down please" is prose; `lock "until the audit"` is not.
fn is_sentence(rest: &str, reason: &str) -> bool {
    !reason.is_empty() && !rest.trim_start().starts_with(['"', '\''])
}

/// Cuts `tidegate verb …`, `/tidegate verb …`, `@login verb …`, `verb …` and `/verb …`.
fn spoken_to<'a>(line: &'a str, login: &str) -> (Form, &'a str, &'a str) {
    let cut = |text: &'a str| {
        let text = text.trim_start();
        text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
    };
    let (first, rest) = cut(line);
    let plain = |name: &str| name.strip_suffix("[bot]").unwrap_or(name).to_ascii_lowercase();
    let mentions = first.strip_prefix('@').is_some_and(|name| !name.is_empty() && plain(name) == plain(login));
    let slashless = first.strip_prefix('/').unwrap_or(first);
    if mentions || slashless.eq_ignore_ascii_case("tidegate") {
        let (verb, rest) = cut(rest);
        return (Form::Named, verb.strip_prefix('/').unwrap_or(verb), rest);
    }
    (Form::Bare, slashless, rest)
}

/// The `confirm` lines: `confirm ADDRESS`, or `confirm ROOT ADDRESS` with the root first.
fn confirmations(lines: &[String]) -> Result<Vec<Confirmed>, String> {
    let mut confirmed = Vec::new();
    for line in lines {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if !word.eq_ignore_ascii_case("confirm") {
            continue;
        }
        let mut parts = address_parts(rest);
        let address = parts.pop().filter(|address| address.contains('.') && is_address(address));
        match (address, parts.len()) {
            (Some(address), 0) => confirmed.push(Confirmed { root: None, address }),
            (Some(address), 1) => {
                let root = parts.pop().map(RootKey::from);
                confirmed.push(Confirmed { root, address });
            }
            _ => {
                return Err(format!(
                    "{} is not read. Type `confirm ADDRESS` or `confirm ROOT ADDRESS`, one address on each line.",
                    code(line)
                ));
            }
        }
    }
    Ok(confirmed)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
