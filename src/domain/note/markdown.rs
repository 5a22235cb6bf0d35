//! Escaping by type: text, code, fences, tables and details that cannot break out of their place. Nothing from a plan
//! reaches a comment but through a function of this file.

use std::fmt::Write as _;

/// Takes the life out of mentions and references without changing how they look.
const JOINER: char = '\u{200d}';

/// Inline code outside a table: no newline, no control character, a fence longer than any run of backticks inside.
pub fn code(text: &str) -> String {
    let text = visible(text);
    if text.is_empty() {
        return "` `".to_owned();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    let odd = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    if odd { format!("{fence} {text} {fence}") } else { format!("{fence}{text}{fence}") }
}

/// Inline code in a table's cell. A pipe ends a cell even inside backticks, so odd text becomes HTML entities.
pub fn code_cell(text: &str) -> String {
    if text.contains(['|', '`']) { html_code(text) } else { code(text) }
}

/// Text in a paragraph, heading or cell: no markup, no mention, no reference, one line.
pub fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut previous = ' ';
    for letter in visible_lines(text).chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' | '{' | '}' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '#' | '!' => escaped.extend(['\\', letter, JOINER]),
            '@' => escaped.extend(['@', JOINER]),
            '/' if previous == ':' => escaped.extend([JOINER, '/']),
            '-' if escaped.get(escaped.len().saturating_sub(2)..).is_some_and(|it| it.eq_ignore_ascii_case("gh")) => {
                escaped.extend([JOINER, '-']);
            }
            '.' | ')' if !escaped.is_empty() && escaped.bytes().all(|byte| byte.is_ascii_digit()) => {
                escaped.extend(['\\', letter]);
            }
            '-' | '+' | '=' | '/' if escaped.is_empty() => escaped.extend([JOINER, letter]),
            _ => escaped.push(letter),
        }
        previous = letter;
    }
    escaped
}

/// Text inside HTML (a summary line): entities, and no mention or reference.
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in visible_lines(text).chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '@' | '#' | '!' => escaped.extend([letter, JOINER]),
            _ => escaped.push(letter),
        }
    }
    escaped.replace("://", &format!(":{JOINER}//"))
}

/// A block of code. The fence is longer than any run of backticks inside.
pub fn fence(language: &str, body: &str) -> String {
    let body = visible_lines_kept(body);
    let fence = "`".repeat(longest_run(&body).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", body.trim_end_matches('\n'))
}

/// A folded block; `summary` is HTML made by [`html`].
pub fn details(summary: &str, body: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{}\n</details>", body.trim_end_matches('\n'))
}

/// A box (`WARNING`, `CAUTION`, `NOTE`) around whole blocks.
pub fn alert(kind: &str, body: &str) -> String {
    let quoted: Vec<String> =
        body.lines().map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") }).collect();
    format!("> [!{kind}]\n{}", quoted.join("\n"))
}

/// `a`, `a` and `b`, `a`, `b` and `c`; at most `limit` of them by name.
pub fn list(items: &[String], limit: usize) -> String {
    let hidden = items.len().saturating_sub(limit);
    if hidden > 0 {
        return format!("{} and {hidden} more", items[..limit].join(", "));
    }
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// At most `limit` characters, cut on a character.
pub fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    kept + "…"
}

/// HTML code in which every sign that Markdown or a table could read is an entity.
fn html_code(text: &str) -> String {
    let mut escaped = String::new();
    for letter in visible(text).chars() {
        if letter.is_ascii_punctuation() && !matches!(letter, '.' | '/' | '-' | ':' | ',') {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "&#{};", u32::from(letter));
        } else {
            escaped.push(letter);
        }
    }
    format!("<code>{escaped}</code>")
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, letter| {
        match letter {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            _ => push_visible(&mut shown, letter),
        }
        shown
    })
}

fn visible_lines(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn visible_lines_kept(text: &str) -> String {
    text.replace("\r\n", "\n").chars().fold(String::with_capacity(text.len()), |mut shown, letter| {
        if matches!(letter, '\n' | '\t') {
            shown.push(letter);
        } else {
            push_visible(&mut shown, letter);
        }
        shown
    })
}

/// Control characters, and those that turn the reading direction, as people can see them.
fn push_visible(shown: &mut String, letter: char) {
    let turns = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    let written = if letter.is_control() {
        write!(shown, "\\x{:02x}", u32::from(letter))
    } else if turns {
        write!(shown, "\\u{{{:x}}}", u32::from(letter))
    } else {
        shown.write_char(letter)
    };
    // Writing to a string cannot fail.
    let _ = written;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn html_of(markdown: &str) -> String {
        let mut options = comrak::Options::default();
        options.extension.table = true;
        options.extension.autolink = true;
        options.extension.strikethrough = true;
        options.render.r#unsafe = true;
        comrak::markdown_to_html(markdown, &options)
    }

    #[test]
    fn code_holds_any_text() {
        for (given, expected) in [
            ("a.b", "`a.b`"),
            ("a`b", "``a`b``"),
            ("`", "`` ` ``"),
            ("a\nb", "`a\\nb`"),
            ("\u{1b}[31m", "`\\x1b[31m`"),
            ("", "` `"),
        ] {
            assert_eq!(code(given), expected);
        }
        assert_eq!(code_cell("a|b"), "<code>a&#124;b</code>");
    }

    #[test]
    fn text_mentions_nobody_and_closes_nothing() {
        let escaped = text("@org/team closes #12, o/r#3, GH-4, https://f.example/o/r/issues/5 <img> *b*");
        for live in ["@org", "#12", "#3", "GH-4", "://", "<img>"] {
            assert!(!escaped.replace("\\<", "").contains(live), "{live} in {escaped}");
        }
        let page = html_of(&escaped);
        assert!(!page.contains("<img") && !page.contains("<em>") && !page.contains("<a "), "{page}");
    }

    #[test]
    fn lists_read_like_a_sentence() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(list(&names[..1], 5), "a");
        assert_eq!(list(&names[..2], 5), "a and b");
        assert_eq!(list(&names, 5), "a, b and c");
        assert_eq!(list(&names, 2), "a, b and 1 more");
    }

    proptest! {
        #[test]
        fn a_fence_is_one_block(body in "[`~<>a\\n|\u{1b}]{0,40}") {
            let page = html_of(&format!("{}\n\nafter", fence("diff", &body)));
            prop_assert!(page.starts_with("<pre>"), "{}", page);
            prop_assert!(page.ends_with("</code></pre>\n<p>after</p>\n"), "{}", page);
            let raw_escape = page.contains('\u{1b}');
            prop_assert!(!raw_escape, "a raw escape character");
        }

        #[test]
        fn a_cell_stays_a_cell(body in "[`|\\\\<>a&@#*\\n]{1,20}") {
            let page = html_of(&format!("| h | i |\n|---|---|\n| {} | end |", code_cell(&body)));
            prop_assert!(page.contains("<td>end</td>"), "{}", page);
            prop_assert_eq!(page.matches("<td>").count(), 2);
        }

        #[test]
        fn text_is_one_paragraph_of_plain_text(body in "[a1.`|\\\\<>&@#*_\\[\\]!~\\n+= -]{1,30}") {
            for page in [html_of(&format!("x {} y", text(&body))), html_of(&text(&body))] {
                for tag in ["<em", "<code", "<strong", "<del", "<a ", "<img", "<h1", "<ul", "<ol", "<block", "<hr"] {
                    prop_assert!(!page.contains(tag), "{}", page);
                }
            }
        }
    }
}
