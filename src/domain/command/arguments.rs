//! The arguments of a verb, from flags to values. Every flag is honoured exactly or refused, so that a command never
//! selects more than it names.

use super::grammar::{Flag, Verb, code};
use super::words::{Unreadable, Word, next_word, straight, words};
use super::{ApplyTarget, Command, tool};
use crate::domain::nearest::nearest;

/// Why a line is no command.
#[derive(Debug)]
pub(super) enum Trouble {
    /// A word that is not the verb's own: prose, unless our name is in front.
    Stray(String),
    /// The verb's own words, but wrong.
    Malformed(String),
}

use Trouble::{Malformed, Stray};

/// The spellings of each flag.
const FLAGS: [(&str, Flag); 7] = [
    ("-d", Flag::Root),
    ("--dir", Flag::Root),
    ("-p", Flag::Root),
    ("--project", Flag::Root),
    ("--root", Flag::Root),
    ("-w", Flag::Workspace),
    ("--workspace", Flag::Workspace),
];

#[derive(Default)]
struct Given<'a> {
    roots: Vec<String>,
    workspace: Option<String>,
    plain: Vec<Word<'a>>,
    /// What follows `--`.
    tool: Option<&'a str>,
}

/// Reads what follows the verb.
pub(super) fn parse(verb: &Verb, rest: &str) -> Result<Command, Trouble> {
    if verb.name == "lock" {
        let mut given = Given::default();
        let reason = flags(verb, rest, &mut given)?.trim();
        let quoted = words(reason).ok().filter(|all| all.len() == 1).and_then(|mut all| all.pop());
        let reason = quoted.map_or_else(|| reason.to_owned(), |word| word.text);
        return Ok(Command::Lock { roots: given.roots, reason });
    }
    let given = all(verb, rest)?;
    if given.tool.is_some() && verb.name != "plan" {
        return Err(Stray(format!("only `plan` takes arguments for the tool after `--`, `{}` does not.", verb.name)));
    }
    match verb.name {
        "approve" => approve(&given.plain),
        "apply" => apply(given),
        "explain" => explain(&given.plain),
        _ => {
            if let Some(word) = given.plain.first() {
                return Err(Stray(stray(verb, word)));
            }
            match verb.name {
                "plan" => plan(given),
                "unapprove" => Ok(Command::Unapprove),
                "discard" => Ok(Command::Discard(given.roots)),
                "cancel" => Ok(Command::Cancel),
                "unlock" => Ok(Command::Unlock(given.roots)),
                "settle" if given.roots.is_empty() => {
                    Err(Malformed("`settle` names each root by `-d ROOT`.".to_owned()))
                }
                "settle" => Ok(Command::Settle(given.roots)),
                "status" => Ok(Command::Status),
                _ => Ok(Command::Help),
            }
        }
    }
}

/// Whether what follows a bare verb can only be meant as its arguments, so that a mistake deserves a reply.
pub(super) fn is_deliberate(verb: &Verb, rest: &str) -> bool {
    let mut typed = rest.split_whitespace();
    let Some(first) = typed.next() else { return true };
    let own = |(name, flag): &(&str, Flag)| {
        verb.flags.contains(flag)
            && (first.split('=').next() == Some(*name) || (name.len() == 2 && first.starts_with(name)))
    };
    match first {
        "--" => verb.name == "plan" && typed.next().is_some_and(|next| next.starts_with('-')),
        _ => FLAGS.iter().any(own) || (matches!(verb.name, "apply" | "approve") && wave(first).is_some()),
    }
}

fn all<'a>(verb: &Verb, rest: &'a str) -> Result<Given<'a>, Trouble> {
    let mut given = Given::default();
    let mut rest = rest;
    loop {
        rest = flags(verb, rest, &mut given)?;
        match next_word(rest).map_err(unreadable)? {
            None => return Ok(given),
            Some((word, after)) if word.raw == "--" => {
                given.tool = Some(after);
                return Ok(given);
            }
            Some((word, after)) => {
                given.plain.push(word);
                rest = after;
            }
        }
    }
}

/// Takes flags from the front; what is left begins with something else.
fn flags<'a>(verb: &Verb, text: &'a str, given: &mut Given<'a>) -> Result<&'a str, Trouble> {
    let mut rest = text;
    loop {
        // A reason may hold any apostrophe: only flags are cut into words here.
        let typed = rest.trim_start();
        if !typed.starts_with('-') || typed.split_whitespace().next().is_some_and(|word| word == "--" || word == "-") {
            return Ok(rest);
        }
        let Some((word, after)) = next_word(rest).map_err(unreadable)? else { return Ok(rest) };
        let (name, attached) = word.text.split_once('=').map_or((word.text.as_str(), None), |(n, v)| (n, Some(v)));
        let Some((_, flag)) = FLAGS.iter().find(|(known, flag)| *known == name && verb.flags.contains(flag)) else {
            return Err(unknown(verb, &word));
        };
        rest = after;
        let (value, quoted) = match attached {
            Some(value) => (value.to_owned(), word.raw != word.text),
            None => match next_word(rest).map_err(unreadable)? {
                Some((value, after)) if !value.raw.starts_with('-') => {
                    rest = after;
                    (value.text.clone(), value.is_quoted())
                }
                _ => return Err(Malformed(format!("`{name}` needs a value."))),
            },
        };
        if value.trim().is_empty() {
            return Err(Malformed(format!("`{name}` needs a value, and an empty one selects nothing.")));
        }
        match flag {
            Flag::Workspace if given.workspace.is_some() => {
                return Err(Malformed(format!("`{name}` is given twice; one command plans one workspace.")));
            }
            Flag::Workspace => given.workspace = Some(value),
            Flag::Root if value.contains(',') && !quoted => {
                let each: Vec<_> =
                    value.split(',').filter(|root| !root.is_empty()).map(|root| format!("-d {root}")).collect();
                return Err(Malformed(format!(
                    "{} is no root; name each by its own flag: {}.",
                    code(&value),
                    code(&each.join(" "))
                )));
            }
            Flag::Root => given.roots.push(tidy(&value)),
        }
    }
}

/// `./a/` is the same directory as `a`.
fn tidy(root: &str) -> String {
    let inner = root.strip_prefix("./").unwrap_or(root).trim_end_matches('/');
    if inner.is_empty() { if root.starts_with('.') { ".".into() } else { root.into() } } else { inner.into() }
}

fn unknown(verb: &Verb, word: &Word<'_>) -> Trouble {
    let short = FLAGS
        .iter()
        .find(|(known, flag)| known.len() == 2 && word.text.starts_with(known) && verb.flags.contains(flag));
    if let Some((known, _)) = short {
        let typed = word.text[2..].trim_start_matches('=');
        return Malformed(format!("write {} with a space.", code(&format!("{known} {typed}"))));
    }
    let own = FLAGS.iter().filter(|(_, flag)| verb.flags.contains(flag)).map(|(name, _)| *name);
    let meant = nearest(&word.text, own).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Stray(format!("`{}` has no flag {}{meant}", verb.name, code(&word.text)))
}

fn stray(verb: &Verb, word: &Word<'_>) -> String {
    let way = if verb.flags.contains(&Flag::Root) {
        format!(" Name a root by {}.", code(&format!("-d {}", word.raw)))
    } else {
        String::new()
    };
    format!("`{}` takes no {}.{way}", verb.name, code(&word.text))
}

fn unreadable(why: Unreadable) -> Trouble {
    Malformed(match why {
        Unreadable::Open(quote, _) => format!("a quote {} opens and does not close", code(&quote.to_string())),
        Unreadable::Curly(_) => "typographic quotes are not read".into(),
        Unreadable::Backslash => "it ends in a backslash".into(),
    })
}

/// What a line's quotes suffer from, with the column in that line; `None`: nothing.
pub(super) fn quote_trouble(line: &str) -> Option<String> {
    Some(match words(line).err()? {
        Unreadable::Open(quote, column) => {
            format!("the quote {} at column {column} does not close.", code(&quote.to_string()))
        }
        Unreadable::Curly(column) => {
            format!("the quote at column {column} is a typographic one; did you mean {}?", code(&straight(line)))
        }
        Unreadable::Backslash => {
            format!("the backslash at column {} has nothing to escape.", line.trim_end().chars().count())
        }
    })
}

/// `wave-N`: the number, 0 when it is none that can be.
fn wave(text: &str) -> Option<usize> {
    let number = text.get(..5).filter(|prefix| prefix.eq_ignore_ascii_case("wave-")).map(|_| &text[5..])?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse().unwrap_or(0))
}

fn checked_wave(word: &Word<'_>) -> Option<Result<usize, Trouble>> {
    let number = wave(&word.text)?;
    Some(if number == 0 {
        Err(Malformed(format!("{} cannot be; the first is `wave-1`.", code(&word.text))))
    } else {
        Ok(number)
    })
}

fn plan(given: Given<'_>) -> Result<Command, Trouble> {
    let args = match given.tool {
        Some(rest) => tool::check(&words(rest).map_err(unreadable)?).map_err(Malformed)?,
        None => Vec::new(),
    };
    Ok(Command::Plan { roots: given.roots, workspace: given.workspace, args })
}

fn apply(given: Given<'_>) -> Result<Command, Trouble> {
    let mut target = None;
    for word in &given.plain {
        match checked_wave(word) {
            Some(number) if target.is_none() => target = Some(number?),
            Some(_) => return Err(Malformed("`apply` goes up to one wave; name the last.".into())),
            None => {
                return Err(Stray(format!(
                    "`apply` takes no {}. Name a root by {}.",
                    code(&word.text),
                    code(&format!("-d {}", word.raw))
                )));
            }
        }
    }
    match (target, given.roots.is_empty()) {
        (Some(_), false) => Err(Malformed("`apply` takes a wave or roots, not both.".into())),
        (Some(number), true) => Ok(Command::Apply(ApplyTarget::Wave(number))),
        (None, false) => Ok(Command::Apply(ApplyTarget::Roots(given.roots))),
        (None, true) => Ok(Command::Apply(ApplyTarget::All)),
    }
}

fn approve(plain: &[Word<'_>]) -> Result<Command, Trouble> {
    let (mut number, mut digest) = (None, None);
    for word in plain {
        let hex = word.text.strip_prefix("tg1:").unwrap_or(&word.text);
        if let Some(wave) = checked_wave(word) {
            if number.replace(wave?).is_some() {
                return Err(Malformed("one `approve` names one wave.".into()));
            }
        } else if hex.len() >= 4 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            if hex.len() < 12 || hex.len() > 64 {
                return Err(Stray(format!(
                    "a digest is typed with 12 to 64 digits, {} has {}.",
                    code(&word.text),
                    hex.len()
                )));
            }
            if digest.replace(word.text.clone()).is_some() {
                return Err(Malformed("one `approve` names one digest.".into()));
            }
        } else {
            return Err(Stray(format!("{} is neither a wave (`wave-1`) nor a digest.", code(&word.text))));
        }
    }
    Ok(Command::Approve { wave: number, digest, confirm: Vec::new() })
}

fn explain(plain: &[Word<'_>]) -> Result<Command, Trouble> {
    match plain {
        [path] if !path.text.trim().is_empty() => Ok(Command::Explain(path.text.clone())),
        _ => Err(Stray("`explain` takes one path; put quotes around one with spaces.".into())),
    }
}
