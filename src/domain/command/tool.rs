//! What may stand after `--`: the few arguments of Terraform that change what is planned and leave alone how we run
//! it. It hands words on exactly as typed.

use super::grammar::code;
use super::words::{Word, is_address};

const SWITCHES: [&str; 3] = ["destroy", "refresh", "refresh-only"];
const ADDRESSES: [&str; 3] = ["target", "replace", "exclude"];
const ALLOWED: &str = "`-destroy`, `-exclude`, `-refresh`, `-refresh-only`, `-replace`, `-target`, `-var`";

/// The arguments, or what is wrong with one of them.
pub(super) fn check(words: &[Word<'_>]) -> Result<Vec<String>, String> {
    let mut checked = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word.raw == "--" {
            return Err("a second `--` would be handed to the tool as a file name; leave it out.".into());
        }
        let Some(name) = word.text.strip_prefix("--").or_else(|| word.text.strip_prefix('-')) else {
            return Err(format!(
                "{} is no argument that can stand after `--`; these can: {ALLOWED}.",
                code(&word.text)
            ));
        };
        let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        checked.push(word.text.clone());
        if SWITCHES.contains(&name) {
            if !matches!(value, None | Some("true" | "false")) {
                return Err(format!("`-{name}` takes `=true` or `=false`, not {}.", code(&word.text)));
            }
            continue;
        }
        if name != "var" && !ADDRESSES.contains(&name) {
            return Err(format!(
                "{} is not allowed after `--`, because it changes how the plan is made or kept; these are: {ALLOWED}.",
                code(&word.text)
            ));
        }
        let (value, raw) = match value {
            Some(value) => (value, word.raw.split_once('=').map_or(word.raw, |(_, raw)| raw)),
            None => {
                let next = words.next().filter(|next| !next.raw.starts_with('-'));
                let next = next.ok_or_else(|| format!("`-{name}` needs a value."))?;
                checked.push(next.text.clone());
                (next.text.as_str(), next.raw)
            }
        };
        if name == "var" {
            if value.split_once('=').is_none_or(|(name, _)| name.is_empty()) {
                return Err(format!("`-var` takes `NAME=VALUE`, not {}.", code(value)));
            }
        } else if !is_address(value) {
            // Shells eat the quotes of `["key"]`: what was typed tells what was meant.
            let meant =
                if is_address(raw) { format!(" Type {}.", code(&format!("-{name}='{raw}'"))) } else { String::new() };
            return Err(format!(
                "{} is no address of a resource or module: a key needs its quotes inside single quotes.{meant}",
                code(value)
            ));
        }
    }
    Ok(checked)
}
