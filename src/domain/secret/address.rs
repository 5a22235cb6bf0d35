//! Credentials in URLs, masked by where they stand: whoever wrote one into an address meant nobody to read it. It knows no
//! value, and leaves every other part of a URL as it is.

use sha2::{Digest, Sha256};

use super::MASK;

/// Where a URL ends in running text.
const ENDS: [char; 9] = ['"', '\'', '`', '<', '>', '\\', '|', ')', ']'];

/// Parts of the name of a query's parameter that make its value a secret.
const WORDS: [&str; 8] = ["token", "secret", "passw", "signature", "credential", "apikey", "api_key", "access_key"];

/// The text with the password (or the lone user of an HTTP address) and the secret parameters of each URL masked.
pub(super) fn mask(text: &str) -> String {
    replaced(text, &|_| MASK.to_owned())
}

/// The same for the name of a state: two that differ in such a part stay two, by four digits that give nothing away.
pub(super) fn named(text: &str) -> String {
    replaced(text, &|secret| format!("sensitive-{}", hex::encode(&Sha256::digest(secret)[..2])))
}

fn replaced(text: &str, instead: &dyn Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let end = after.find(|c: char| c.is_whitespace() || ENDS.contains(&c)).unwrap_or(after.len());
        out.push_str(before);
        out.push_str(&url(before, &after[..end], instead));
        rest = &after[end..];
    }
    out + rest
}

/// What stands behind `://`.
fn url(scheme: &str, text: &str, instead: &dyn Fn(&str) -> String) -> String {
    let end = text.find(['/', '?', '#']).unwrap_or(text.len());
    let (authority, path) = text.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, password)) => format!("{name}:{}@{host}", instead(password)),
            None if scheme.ends_with("http://") || scheme.ends_with("https://") => {
                format!("{}@{host}", instead(user))
            }
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let Some((path, query)) = path.split_once('?') else { return authority + path };
    let query: Vec<String> = query.split('&').map(|text| parameter(text, instead)).collect();
    format!("{authority}{path}?{}", query.join("&"))
}

fn parameter(text: &str, instead: &dyn Fn(&str) -> String) -> String {
    let Some((name, value)) = text.split_once('=') else { return text.to_owned() };
    let lower = name.to_ascii_lowercase();
    let is_secret = WORDS.iter().any(|word| lower.contains(word)) || matches!(lower.as_str(), "sig" | "key" | "auth");
    if is_secret && !value.is_empty() { format!("{name}={}", instead(value)) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_and_the_rest_stays() {
        let table = [
            ("at https://u:p4ss@h.io/x?ref=v1, ok", "at https://u:(sensitive)@h.io/x?ref=v1, ok"),
            ("git::https://ghp_1@h/x.git", "git::https://(sensitive)@h/x.git"),
            ("git::ssh://git@h/x.git?ref=1", "git::ssh://git@h/x.git?ref=1"),
            ("\"postgres://u:a@b@h:5/db?sslmode=require\"", "\"postgres://u:(sensitive)@h:5/db?sslmode=require\""),
            ("https://h/a?X-Amz-Signature=1f&v=2", "https://h/a?X-Amz-Signature=(sensitive)&v=2"),
            ("no address: a@b?token=x", "no address: a@b?token=x"),
            ("https://a/ https://u:1@b", "https://a/ https://u:(sensitive)@b"),
        ];
        for (text, expected) in table {
            assert_eq!(mask(text), expected);
        }
    }

    #[test]
    fn names_of_states_differ_and_show_nothing() {
        let (one, other) = (named("http:http://h/s?token=one"), named("http:http://h/s?token=other"));
        assert!(one.starts_with("http:http://h/s?token=sensitive-") && one != other, "{one} {other}");
        assert_eq!(named("s3:bucket/a.tfstate"), "s3:bucket/a.tfstate");
    }
}
