//! stub
use super::RepoConfig;
/// Something wrong in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// 1-based, 0 when unknown.
    pub line: usize,
    /// 1-based, 0 when unknown.
    pub column: usize,
    /// What is wrong, with the nearest name or the right type: a whole sentence.
    pub what: String,
}
/// Reads the file; all problems at once.
pub fn parse(text: &str) -> Result<RepoConfig, Vec<Problem>> {
    let _ = text;
    unimplemented!()
}
