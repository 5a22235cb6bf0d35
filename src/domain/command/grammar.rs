//! stub
use super::Reading;
/// Reads a comment. `login` is our own, for `@login verb`.
pub fn read(body: &str, login: &str) -> Reading {
    let _ = (body, login);
    unimplemented!()
}
/// The usage of every verb, as a Markdown table generated from the grammar's own table.
pub fn usage() -> String {
    unimplemented!()
}
