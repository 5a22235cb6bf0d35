//! The forms in which a secret turns up in text: as it is, escaped and encoded. It never decides what is a secret.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// A shorter piece of base64 would match by chance.
const SHORTEST_PIECE: usize = 5;

/// Base64 of more letters than this is broken into lines somewhere: `openssl` breaks after 64, `base64` after 76.
const LONGEST_LINE: usize = 60;

/// So many letters of a line are known to be of a secret, wherever the lines are broken.
const WINDOW: usize = 16;

/// A window starts at each so-manieth letter: a line with 23 letters of a secret holds a whole one.
const STEP: usize = 8;

/// Every form of a value, the value itself among them.
pub(super) fn of(value: &str) -> Vec<String> {
    // JSON within JSON is escaped twice.
    let mut forms = vec![value.to_owned(), json(value), json(&json(value))];
    // Terraform writes its JSON with HTML's characters escaped, and its strings with templates escaped.
    forms.push(json(value).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"));
    forms.push(json(value).replace("${", "$${").replace("%{", "%%{"));
    forms.push(hex::encode(value));
    forms.push(hex::encode_upper(value));
    // Within a path the letters of a path stay.
    for plain in ["-._~", "-._~$&+,/:;=@"] {
        let percent = percent(value, plain);
        forms.push(with_small_digits(&percent));
        forms.push(percent);
    }
    forms.push(url::form_urlencoded::byte_serialize(value.as_bytes()).collect());
    for engine in [STANDARD, URL_SAFE] {
        let whole = engine.encode(value);
        forms.push(whole.trim_end_matches('=').to_owned());
        forms.push(whole);
        forms.extend((0..3).filter_map(|offset| piece(&engine, value.as_bytes(), offset)));
    }
    forms
}

/// Pieces of a long value's base64 that stand whole in each line of it, wherever the lines are broken. What stands around one
/// in its line is base64 as well.
pub(super) fn windows(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    for engine in [STANDARD, URL_SAFE] {
        for certain in (0..3).filter_map(|offset| piece(&engine, value.as_bytes(), offset)) {
            if certain.len() > LONGEST_LINE {
                let all = certain.as_bytes().windows(WINDOW);
                let last = all.clone().next_back();
                found.extend(all.step_by(STEP).chain(last).map(|window| String::from_utf8_lossy(window).into_owned()));
            }
        }
    }
    found
}

/// Whether the byte may stand in base64 of either alphabet.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte)
}

fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(value: &str, plain: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The same with lower-case digits after each percent sign; the rest of the value keeps its case.
fn with_small_digits(percent: &str) -> String {
    let mut left: usize = 0;
    percent
        .chars()
        .map(|letter| {
            let is_digit = left > 0;
            left = if letter == '%' { 2 } else { left.saturating_sub(1) };
            if is_digit { letter.to_ascii_lowercase() } else { letter }
        })
        .collect()
}

/// The part of the base64 that does not depend on what stands around the value, `offset` bytes into a group of three.
fn piece(engine: &impl base64::Engine, value: &[u8], offset: usize) -> Option<String> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(value);
    let encoded = engine.encode(&padded);
    let certain = encoded.get((offset * 8).div_ceil(6)..padded.len() * 8 / 6)?;
    (certain.len() >= SHORTEST_PIECE).then(|| certain.to_owned())
}
