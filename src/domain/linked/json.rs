//! The same in Terraform's JSON syntax: references stand in the templates within strings. Only a string that holds one is written
//! anew, and around it every byte stays.

use std::collections::BTreeSet;

use super::native;

/// The text with its references replaced; `None` when there is none.
pub(super) fn rewrite(text: &str, blocks: &BTreeSet<&str>) -> Result<Option<String>, String> {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    let mut changed = false;
    while let Some(start) = text[from..].find('"').map(|at| from + at) {
        let end = end_of_string(text, start).ok_or("a string does not end")?;
        out.push_str(&text[from..start]);
        match rewritten(&text[start..end], blocks)? {
            Some(new) => {
                out.push_str(&new);
                changed = true;
            }
            None => out.push_str(&text[start..end]),
        }
        from = end;
    }
    out.push_str(&text[from..]);
    Ok(changed.then_some(out))
}

/// The offset behind the closing quote of the string that opens at `start`.
fn end_of_string(text: &str, start: usize) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The string, quotes included, with its references replaced. Without a template it names a block, as in `depends_on`.
fn rewritten(string: &str, blocks: &BTreeSet<&str>) -> Result<Option<String>, String> {
    let template: String = serde_json::from_str(string).map_err(|error| error.to_string())?;
    let has_template = template.contains("${") || template.contains("%{");
    if !has_template || !template.contains("terraform_remote_state") {
        return Ok(None);
    }
    let hits = native::of_template(&template, blocks)?;
    if hits.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(&super::splice(&template, &hits)).map(Some).map_err(|error| error.to_string())
}
