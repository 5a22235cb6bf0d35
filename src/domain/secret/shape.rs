//! Credentials by their shape: what stands behind `Authorization:`, tokens of forges, signed tokens, private keys. A proxy or a
//! forge that repeats what it was sent, or a tool that traces, tells them without anybody having marked them. It knows no value.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::MASK;

/// Each alternative keeps what it captures, and what follows is masked.
const SHAPES: &str = r#"(?x)
    # A header, in any quoting: with its scheme, or with a value too long to be a word.
    ( (?i:\bauthorization) \\?["']? \s* [:=] \s* \\?["']? (?i: basic | bearer | token ) \s+ ) [^\s"'\\,;<>`]{6,}
  | ( (?i:\bauthorization) \\?["']? \s* [:=] \s* \\?["']? ) [^\s"'\\,;<>`]{20,}
  | ( (?i:\bbearer) \s+ ) [A-Za-z0-9._~+/-]{20,} =*
    # Tokens that say what they are.
  | \b (?: gh[opsur]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,} )
  | \b eyJ[A-Za-z0-9_-]{8,} \. eyJ[A-Za-z0-9_-]{8,} \. [A-Za-z0-9_-]{8,}
  | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY----- (?s:.)*? (?: -----END\ [A-Z\ ]*PRIVATE\ KEY----- | \z )
"#;

/// The text with each such credential masked.
pub(super) fn mask(text: &str) -> Cow<'_, str> {
    // The expression is a constant, and a test reads it; without it nothing but shapes would be lost.
    static READ: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SHAPES).ok());
    let Some(shapes) = READ.as_ref() else { return Cow::Borrowed(text) };
    shapes.replace_all(text, |found: &Captures<'_>| {
        let kept = found.iter().skip(1).flatten().next().map_or("", |kept| kept.as_str());
        format!("{kept}{MASK}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_shape_and_prose_stays() {
        let table = [
            ("Authorization: Bearer abc123def", "Authorization: Bearer (sensitive)"),
            ("> authorization: basic eDp5eg==, x", "> authorization: basic (sensitive), x"),
            (r#"{"Authorization":"token 0123456789abcdef"}"#, r#"{"Authorization":"token (sensitive)"}"#),
            (r#"{\"authorization\":\"abcdefghij0123456789\"}"#, r#"{\"authorization\":\"(sensitive)\"}"#),
            ("authorization: denied by policy", "authorization: denied by policy"),
            ("no bearer token was sent; the bearer of news", "no bearer token was sent; the bearer of news"),
            ("with bearer 0123456789abcdefghij==", "with bearer (sensitive)"),
            ("token ghs_0123456789abcdefABCD is old", "token (sensitive) is old"),
            ("x=github_pat_11ABCDEFG0123456789_abc", "x=(sensitive)"),
            ("glpat-0123456789abcdefghij.", "(sensitive)."),
            ("is eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0In0.c2lnbmF0dXJl here", "is (sensitive) here"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", "(sensitive)\nrest"),
            ("-----BEGIN PRIVATE KEY-----\\nMIIE", "(sensitive)"),
            ("-----BEGIN CERTIFICATE-----\nMIIE", "-----BEGIN CERTIFICATE-----\nMIIE"),
            ("ghs_short and highs_0123456789abcdefABCD", "ghs_short and highs_0123456789abcdefABCD"),
        ];
        for (text, expected) in table {
            assert_eq!(mask(text), expected);
        }
    }
}
