//! Which lines of a comment can be commands at all: paragraphs at the top of the Markdown tree, never what is
//! quoted, fenced, listed or hidden. It knows no verb.

use comrak::nodes::{AstNode, NodeValue};
use comrak::{Arena, Options, parse_document};

/// The lines that may hold a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// The first non-empty line outside quotes, code blocks, lists and HTML comments, if it is plain text.
    pub first: Option<String>,
    /// Plain lines after it.
    pub later: Vec<String>,
}

/// Reads a comment's Markdown. All three line ends are known.
pub(super) fn lines(body: &str) -> Lines {
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let source: Vec<&str> = body.split('\n').collect();
    let arena = Arena::new();
    let document = parse_document(&arena, &body, &Options::default());
    let mut blocks = document.children().filter(|block| !is_skipped(block));
    let Some(first_block) = blocks.next() else { return Lines { first: None, later: Vec::new() } };
    let begins = first_block.data().sourcepos.start.line;
    let mut plain = plain_lines(first_block, &source).into_iter().peekable();
    let first = plain.next_if(|(line, _)| *line == begins).map(|(_, text)| text);
    let later = plain.chain(blocks.flat_map(|block| plain_lines(block, &source))).map(|(_, text)| text).collect();
    Lines { first, later }
}

/// What somebody quotes, shows or hides; a command may follow it.
fn is_skipped<'a>(block: &'a AstNode<'a>) -> bool {
    match &block.data().value {
        NodeValue::BlockQuote | NodeValue::CodeBlock(_) | NodeValue::List(_) => true,
        NodeValue::HtmlBlock(html) => html.literal.trim_start().starts_with("<!--"),
        _ => false,
    }
}

/// The lines of a paragraph that begin with text of the paragraph itself, with their numbers.
///
/// Both the source line and the text node must agree on the first word: the source alone is fooled by an inline
/// comment over several lines, the node alone by escapes and entities.
fn plain_lines<'a>(block: &'a AstNode<'a>, source: &[&str]) -> Vec<(usize, String)> {
    // `tidegate plan` above a mail signature's `--` is a heading to Markdown and a command to its author.
    let is_text = match &block.data().value {
        NodeValue::Paragraph => true,
        NodeValue::Heading(heading) => heading.setext,
        _ => false,
    };
    if !is_text {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at_start = true;
    for child in block.children() {
        let data = child.data();
        let line = data.sourcepos.start.line;
        let raw = line.checked_sub(1).and_then(|index| source.get(index)).map_or("", |raw| raw.trim());
        match &data.value {
            NodeValue::SoftBreak | NodeValue::LineBreak => {
                at_start = true;
                continue;
            }
            NodeValue::Text(text) if at_start && same_start(raw, text) => found.push((line, raw.to_owned())),
            NodeValue::Code(code) if at_start && is_whole_line(raw, &code.literal) => {
                found.push((line, code.literal.trim().to_owned()));
            }
            _ => {}
        }
        at_start = false;
    }
    found
}

fn same_start(raw: &str, text: &str) -> bool {
    let word = raw.split_whitespace().next().unwrap_or_default();
    !word.is_empty() && text.split_whitespace().next() == Some(word)
}

/// Whether a line is one code span and nothing else.
fn is_whole_line(raw: &str, literal: &str) -> bool {
    let inner = raw.trim_matches('`');
    !inner.contains('`') && inner.len() < raw.len() && inner.trim() == literal.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(body: &str) -> Option<String> {
        lines(body).first
    }

    #[test]
    fn the_first_line_is_found_whatever_ends_it() {
        for body in [
            "bot plan",
            "\r\n  bot plan \r\n",
            "bot plan\rfoo",
            "bot plan\r\nthanks!",
            "\n\nbot plan\n<!-- x -->",
            "bot plan\n--\nJohn",
            "`bot plan`",
            "``bot plan``\nfoo",
        ] {
            assert_eq!(first(body).as_deref(), Some("bot plan"), "{body:?}");
        }
    }

    #[test]
    fn what_is_quoted_fenced_or_listed_is_passed_over() {
        for before in [
            "> bot apply",
            "```\nbot apply\n```",
            "    bot apply",
            "- bot apply",
            "1. bot apply",
            "<!-- bot apply -->",
            "<!--\nbot apply\n-->",
        ] {
            assert_eq!(first(before), None, "{before:?} alone");
            assert_eq!(
                first(&format!("{before}\n\n<!-- -->\n\nbot plan")).as_deref(),
                Some("bot plan"),
                "{before:?} before a command"
            );
        }
        assert_eq!(first("> quoted\nbot apply"), None, "a lazy continuation is still the quote");
        assert_eq!(first("```\nbot apply"), None, "an unclosed fence reaches the end");
    }

    #[test]
    fn what_only_looks_like_a_line_is_none() {
        for body in [
            "# bot apply",
            "**bot apply**",
            "[bot](x) apply",
            "\\/bot apply",
            "&#47;bot apply",
            "<div>\nbot apply\n</div>",
            "`bot apply` please",
            "please `bot apply`",
            "[bot\napply](x)",
            "***\n",
            "",
            "   ",
        ] {
            let found = first(body);
            assert!(found.as_deref().is_none_or(|line| line.starts_with("please")), "{body:?} gave {found:?}");
        }
        assert_eq!(lines("text <!--\nbot apply\n-->").later, Vec::<String>::new());
        assert_eq!(lines("text `a\nbot apply`").later, Vec::<String>::new());
    }

    #[test]
    fn later_lines_are_those_of_paragraphs() {
        let all = lines("bot approve\nconfirm a.b[\"x y\"]\n`confirm c.d`\n\n> no\n\nconfirm *e*.f\n- no");
        assert_eq!(all.later, ["confirm a.b[\"x y\"]", "confirm c.d", "confirm *e*.f"]);
    }
}
