//! HCL's native syntax into facts. A file that does not parse as a whole is tried block by block, so that
//! one bad line hides one block and not the file.

use std::borrow::Cow;

use hcl_edit::Span;
use hcl_edit::structure::{Block, Body, Structure};
use serde_json::Value as Json;

use super::body::{self, Top};
use super::expr::{Expr, from_hcl};
use super::{FileFacts, FileHole, Named};

/// Reads a whole file.
pub(super) fn read(text: &str, facts: &mut FileFacts) {
    let text = &blocks_of_old(text);
    match parsed(text) {
        Ok((parsed, text)) => take(&parsed, &Lines::new(&text, 0), facts),
        Err(whole) => salvage(text, whole.location().line(), whole.message(), facts),
    }
}

/// Terragrunt once had its blocks in `terraform.tfvars`, in an object; as blocks in a block they are the same. Every byte keeps its place.
fn blocks_of_old(text: &str) -> Cow<'_, str> {
    const NAME: &str = "terragrunt";
    let sign = |line: &str| {
        let rest = line.strip_prefix(NAME)?;
        let inner = rest.trim_start().strip_prefix('=')?;
        inner.trim_start().starts_with('{').then_some(line.len() - inner.len() - 1)
    };
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(at) = sign(line) {
            let at = start + at;
            return Cow::Owned(format!("{} {}", &text[..at], &text[at + 1..]));
        }
        start += line.len();
    }
    Cow::Borrowed(text)
}

/// More keys than this that one text writes twice are not told apart.
const MOST_TWICE: usize = 32;

/// Parses a text in which an object may write a key twice: the tools take the last, and the parser refuses them. The text that was
/// parsed in the end has the same lines.
fn parsed(text: &str) -> Result<(Body, Cow<'_, str>), hcl_edit::parser::Error> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..MOST_TWICE {
        match hcl_edit::parser::parse_body(&text) {
            Err(error) if error.message().contains("redefined object key") => {
                let Some(apart) = told_apart(&text, error.location().offset()) else { return Err(error) };
                text = Cow::Owned(apart);
            }
            other => return Ok((other?, text)),
        }
    }
    Ok((hcl_edit::parser::parse_body(&text)?, text))
}

/// The key at this place in parentheses, which is the same key and another one to the parser.
fn told_apart(text: &str, at: usize) -> Option<String> {
    let rest = text.get(at..)?;
    let start = at + (rest.len() - rest.trim_start().len());
    let rest = &text[start..];
    let length = match rest.as_bytes().first()? {
        b'"' => 2 + rest[1..].find('"')?,
        b'(' => {
            let quote = rest.find("\")")?;
            quote + 1 + rest[quote + 1..].bytes().take_while(|byte| *byte == b')').count()
        }
        _ => rest.find(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '-')))?,
    };
    let key = &rest[..length];
    let key = if key.starts_with(['"', '(']) { format!("({key})") } else { format!("(\"{key}\")") };
    (length > 0).then(|| format!("{}{key}{}", &text[..start], &rest[length..]))
}

/// More holes than this say no more about a file.
const MOST_HOLES: usize = 20;

/// Cuts after each line that closes a top-level block, the way formatted files look, and reads what it can.
fn salvage(text: &str, line: usize, message: &str, facts: &mut FileFacts) {
    let before = facts.holes.len();
    let mut is_old = false;
    let mut chunk = String::new();
    let mut start = 0;
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    while let Some((number, content)) = lines.next() {
        chunk.push_str(content);
        if !content.starts_with('}') && lines.peek().is_some() {
            continue;
        }
        let bare = bare_keys(&chunk);
        let old = |error| match parsed(&bare) {
            Ok(parsed) => {
                is_old = true;
                Ok(parsed)
            }
            Err(_) => Err(error),
        };
        match parsed(&chunk).or_else(old) {
            Ok((parsed, text)) => take(&parsed, &Lines::new(&text, start), facts),
            Err(error) => facts.holes.push(hole(start + error.location().line(), error.message())),
        }
        chunk.clear();
        start = number + 1;
    }
    if facts.holes.len() == before && !is_old {
        facts.holes.push(hole(line, message));
    }
    let more = facts.holes.len().saturating_sub(before + MOST_HOLES);
    if more > 0 {
        facts.holes.truncate(before + MOST_HOLES);
        facts.holes.push(FileHole { line: 0, what: format!("{more} more parts of the file cannot be read.") });
    }
}

/// Terraform 0.11 allowed `"key" = value` in a block; as `key = value` it is the same to us. Every byte keeps its place.
fn bare_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let begin = line.len() - line.trim_start().len();
        let quoted = line[begin..].strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let sets = |rest: &str| rest.trim_start().starts_with('=') && !rest.trim_start().starts_with("==");
        match quoted {
            Some((key, rest)) if sets(rest) && key.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                out.push_str(&line[..begin]);
                out.push(' ');
                out.extend(key.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '_' }));
                out.push(' ');
                out.push_str(rest);
            }
            _ => out.push_str(line),
        }
    }
    out
}

fn hole(line: usize, message: &str) -> FileHole {
    let message = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    FileHole { line, what: format!("The block here cannot be read: {message}.") }
}

fn take(parsed: &Body, lines: &Lines, facts: &mut FileFacts) {
    for structure in parsed {
        match structure {
            Structure::Attribute(attribute) => {
                let value = from_hcl(&attribute.value);
                body::files_of(&value, lines.at(attribute.span().map_or(0, |span| span.start)), facts);
                facts.values.push((attribute.key.as_str().to_owned(), value));
            }
            Structure::Block(block) => {
                let top = Top {
                    kind: block.ident.as_str(),
                    labels: block.labels.iter().map(|label| label.as_str().to_owned()).collect(),
                    entries: entries(&block.body),
                    line: lines.at(block.span().map_or(0, |span| span.start)),
                };
                body::take(top, facts);
            }
        }
    }
}

/// A body as named expressions: a nested block is an object under its type, labels as keys between.
fn entries(body: &Body) -> Vec<Named> {
    body.iter()
        .map(|structure| match structure {
            Structure::Attribute(attribute) => (attribute.key.as_str().to_owned(), from_hcl(&attribute.value)),
            Structure::Block(block) => (block.ident.as_str().to_owned(), object(block)),
        })
        .collect()
}

fn object(block: &Block) -> Expr {
    let text = |text: &str| Expr::Literal(Json::String(text.to_owned()));
    let inner = Expr::Object(entries(&block.body).into_iter().map(|(name, value)| (text(&name), value)).collect());
    block.labels.iter().rev().fold(inner, |inner, label| Expr::Object(vec![(text(label.as_str()), inner)]))
}

/// Byte offsets to line numbers.
struct Lines {
    starts: Vec<usize>,
    first: usize,
}

impl Lines {
    fn new(text: &str, first: usize) -> Self {
        Self { starts: text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1).collect(), first }
    }

    fn at(&self, offset: usize) -> usize {
        self.first + 1 + self.starts.partition_point(|start| *start <= offset)
    }
}
