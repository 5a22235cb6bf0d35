//! Comments as HTML, the way GitHub shows them. Whatever the text says, only harmless HTML comes out.

use std::fmt::Write;

use ammonia::Builder;
use comrak::Options;

/// Renders one comment.
pub fn render(text: &str) -> String {
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.autolink = true;
    options.extension.alerts = true;
    options.extension.footnotes = true;
    options.render.hardbreaks = true;
    // Raw HTML is let through here because the next step keeps only what is on its list.
    options.render.r#unsafe = true;
    colour(&clean(&comrak::markdown_to_html(text, &options)))
}

fn clean(html: &str) -> String {
    let alerts = [
        "markdown-alert",
        "markdown-alert-note",
        "markdown-alert-tip",
        "markdown-alert-important",
        "markdown-alert-warning",
        "markdown-alert-caution",
    ];
    Builder::default()
        .add_tags(["details", "summary", "input"])
        .add_tag_attributes("details", ["open"])
        .add_tag_attributes("input", ["checked"])
        .add_tag_attributes("code", ["class"])
        .add_tag_attribute_values("input", "type", ["checkbox"])
        .set_tag_attribute_value("input", "disabled", "")
        .add_allowed_classes("div", alerts)
        .add_allowed_classes("p", ["markdown-alert-title"])
        .clean(html)
        .to_string()
}

const OPEN: &str = "<pre><code class=\"language-diff\">";
const CLOSE: &str = "</code></pre>";

/// Colours the lines of `diff` fences by their first sign.
fn colour(html: &str) -> String {
    let mut out = String::with_capacity(html.len() + 1024);
    let mut rest = html;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((code, tail)) = after.split_once(CLOSE) else { break };
        out.push_str(before);
        out.push_str("<pre class=\"diff\"><code>");
        out.push_str(&diff_lines(code));
        out.push_str(CLOSE);
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Lines of an escaped diff, each in a span of its kind.
pub fn diff_lines(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len() * 2);
    for line in escaped.trim_end_matches('\n').split('\n') {
        let kind = match line.as_bytes().first() {
            Some(b'+') => "add",
            Some(b'-') => "del",
            Some(b'!') => "mod",
            Some(b'@') => "hunk",
            Some(b'#') => "com",
            _ => "ctx",
        };
        // Writing to a String cannot fail.
        write!(out, "<span class=\"{kind}\">{line}\n</span>").ok();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_github_shows() {
        let cases = [
            ("> [!CAUTION]\n> `db` dies", "<div class=\"markdown-alert markdown-alert-caution\">"),
            ("| a | b |\n|---|---|\n| 1 | 2 |", "<table>"),
            ("- [x] done", "type=\"checkbox\""),
            ("~~old~~", "<del>old</del>"),
            ("see https://example.com", "<a href=\"https://example.com\""),
            ("<details><summary><b>x</b></summary>\n\nhidden\n\n</details>", "<details><summary><b>x</b></summary>"),
            ("```diff\n+ one\n- two\n! three\n```", "<span class=\"add\">+ one\n</span><span class=\"del\">- two"),
        ];
        for (text, wanted) in cases {
            let html = render(text);
            assert!(html.contains(wanted), "{text:?} gives {html}");
        }
    }

    #[test]
    fn lets_nothing_harmful_through() {
        let cases = [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "<!-- tidegate:note -->",
            "<style>main{display:none}</style>",
            "<form action=/merge><button class=merge>x</button></form>",
            "```diff\n</code></pre><script>alert(1)</script>\n```",
            "<code class=\"language-diff\"><script>alert(1)</script></code>",
        ];
        for text in cases {
            let html = render(text).to_lowercase();
            for bad in ["<script", "onerror", "javascript:", "<!--", "<style", "<form", "<button"] {
                assert!(!html.contains(bad), "{text:?} gives {html}");
            }
        }
    }
}
