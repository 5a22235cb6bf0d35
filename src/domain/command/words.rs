//! A line cut into words as a shell would cut it, without a shell: quotes group, nothing is ever expanded. It knows
//! no verb and no flag.

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Quotes removed.
    pub text: String,
    /// As it was typed.
    pub raw: &'a str,
}

/// Why a line cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// A quote opens at this column, 1-based in the text given, and never closes.
    Open(char, usize),
    /// A typographic quote stands at this column.
    Curly(usize),
    /// The text ends in a backslash.
    Backslash,
}

impl Word<'_> {
    /// Whether any of it was quoted or escaped: then it is taken literally and is no flag.
    pub fn is_quoted(&self) -> bool {
        self.raw != self.text
    }
}

/// The first word and what follows it; `None` at the end.
pub(super) fn next_word(text: &str) -> Result<Option<(Word<'_>, &str)>, Unreadable> {
    let rest = text.trim_start();
    if rest.is_empty() {
        return Ok(None);
    }
    let column = |at: usize| text[..text.len() - rest.len() + at].chars().count() + 1;
    let mut word = String::new();
    let mut chars = rest.char_indices();
    let mut end = rest.len();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c.is_whitespace() => {
                end = at;
                break;
            }
            '\'' => loop {
                match chars.next() {
                    Some((_, '\'')) => break,
                    Some((_, inner)) => word.push(inner),
                    None => return Err(Unreadable::Open('\'', column(at))),
                }
            },
            '"' => loop {
                match chars.next() {
                    Some((_, '"')) => break,
                    Some((_, '\\')) => match chars.next() {
                        Some((_, escaped @ ('"' | '\\'))) => word.push(escaped),
                        Some((_, other)) => word.extend(['\\', other]),
                        None => return Err(Unreadable::Open('"', column(at))),
                    },
                    Some((_, inner)) => word.push(inner),
                    None => return Err(Unreadable::Open('"', column(at))),
                }
            },
            '\\' => word.push(chars.next().ok_or(Unreadable::Backslash)?.1),
            '“' | '”' | '„' | '‘' | '’' => return Err(Unreadable::Curly(column(at))),
            plain => word.push(plain),
        }
    }
    Ok(Some((Word { text: word, raw: &rest[..end] }, &rest[end..])))
}

/// All words of a text; columns of an error count from its start.
pub(super) fn words(text: &str) -> Result<Vec<Word<'_>>, Unreadable> {
    let shift = |unreadable: Unreadable, rest: &str| {
        let before = text[..text.len() - rest.len()].chars().count();
        match unreadable {
            Unreadable::Open(quote, column) => Unreadable::Open(quote, before + column),
            Unreadable::Curly(column) => Unreadable::Curly(before + column),
            Unreadable::Backslash => Unreadable::Backslash,
        }
    };
    let mut all = Vec::new();
    let mut rest = text;
    while let Some((word, after)) = next_word(rest).map_err(|unreadable| shift(unreadable, rest))? {
        all.push(word);
        rest = after;
    }
    Ok(all)
}

/// The text with straight quotes.
pub(super) fn straight(text: &str) -> String {
    text.replace(['“', '”', '„'], "\"").replace(['‘', '’'], "'")
}

/// The parts of a `confirm` line: cut at spaces outside of brackets and quotes. Quotes around a whole part go.
pub(super) fn address_parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let (mut part, mut depth, mut quote, mut escaped) = (String::new(), 0_usize, None, false);
    for c in text.chars() {
        if quote.is_none() && depth == 0 && c.is_whitespace() {
            parts.push(std::mem::take(&mut part));
            continue;
        }
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    let bare = |part: String| {
        let inner = ['\'', '"', '`'].iter().find_map(|q| part.strip_prefix(*q)?.strip_suffix(*q));
        inner.map_or_else(|| part.clone(), str::to_owned)
    };
    parts.into_iter().map(bare).collect()
}

/// Whether a text can be the address of a resource or module: names joined by dots, each with `[0]` or `["key"]`.
pub(super) fn is_address(text: &str) -> bool {
    let mut rest = text;
    loop {
        let name = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
        if name == 0 {
            return false;
        }
        rest = &rest[name..];
        if let Some(index) = rest.strip_prefix('[') {
            let Some(after) = after_index(index) else { return false };
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None => return rest.is_empty(),
        }
    }
}

/// What follows `0]` or `"key"]`.
fn after_index(index: &str) -> Option<&str> {
    let Some(key) = index.strip_prefix('"') else {
        let (number, after) = index.split_once(']')?;
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        return digits.then_some(after);
    };
    let mut escaped = false;
    for (at, c) in key.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return key[at + 1..].strip_prefix(']'),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_as_a_shell_does() {
        for (text, cut) in [
            ("-d solo", vec!["-d", "solo"]),
            (r#"-d "network/firewall --""#, vec!["-d", "network/firewall --"]),
            (r#"-target='a.b["x y"]'"#, vec![r#"-target=a.b["x y"]"#]),
            (r#"-target="a.b[\"x\"]""#, vec![r#"-target=a.b["x"]"#]),
            (r"a\ b  c", vec!["a b", "c"]),
            ("''", vec![""]),
            ("", vec![]),
        ] {
            let words: Vec<_> = words(text).expect("balanced").into_iter().map(|word| word.text).collect();
            assert_eq!(words, cut, "{text}");
        }
        assert_eq!(words("-var 'who=it's'"), Err(Unreadable::Open('\'', 15)));
        assert_eq!(words("-d \"a"), Err(Unreadable::Open('"', 4)));
        assert_eq!(words("-d “solo”"), Err(Unreadable::Curly(4)));
        assert_eq!(words("a\\"), Err(Unreadable::Backslash));
    }

    #[test]
    fn addresses_keep_their_spaces() {
        for (text, parts) in [
            ("aws_db.old", vec!["aws_db.old"]),
            (r#"aws_db.old["x y"]"#, vec![r#"aws_db.old["x y"]"#]),
            (r#"eu/db  a.b["x \" ] y"]"#, vec!["eu/db", r#"a.b["x \" ] y"]"#]),
            (r#""net work" 'a.b["x y"]'"#, vec!["net work", r#"a.b["x y"]"#]),
        ] {
            assert_eq!(address_parts(text), parts, "{text}");
        }
    }

    #[test]
    fn an_index_is_a_number_or_a_quoted_key() {
        for good in ["a.b", "module.m", r#"module.m["a.b"].data.x.y[0]"#, r#"a.b["x \" y"]"#] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["", "a.", "a.b[x y]", "a.b[x]", "a.b[]", "a.b[\"x]", "a b", "a.b[0]c", ".a"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
