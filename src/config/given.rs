//! The values that somebody gave, by key, each with the place it came from: file, environment or secret file, the
//! environment winning. It knows names, not meanings.

use std::collections::BTreeMap;
use std::io;

use toml_edit::{Document, Item, TableLike, Value};

use super::Problem;
use super::table::{Form, SettingRow, table};
use crate::domain::nearest::nearest;

/// Variables of ours that are no settings: the log's filter, and what jobs are started with.
const READ_ELSEWHERE: [&str; 2] = ["TIDEGATE_LOG", "TIDEGATE_JOB_"];

/// A value as text; a list's items are separated by commas.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub text: String,
    pub place: String,
}

/// Reads both sources. What no setting knows is a problem.
pub(super) fn collect(
    text: &str,
    env: &BTreeMap<String, String>,
    read_secret_file: &dyn Fn(&str) -> io::Result<String>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<&'static str, Given> {
    let rows = table();
    let mut given = BTreeMap::new();
    let mut add = |row: &SettingRow, is_file: IsFile, value: Given, problems: &mut Vec<Problem>| {
        let value = match is_file {
            IsFile::No => value,
            IsFile::Yes => match read_secret_file(&value.text) {
                Ok(text) => Given { text: text.trim().to_owned(), place: value.place },
                Err(error) => {
                    // Not its name: somebody may have put the secret itself where its file belongs.
                    problems.push(value.problem(format!("The file that it names cannot be read: {error}.")));
                    return;
                }
            },
        };
        given.insert(row.key, value);
    };
    let mut from_file = Vec::new();
    match Document::parse(text) {
        Ok(document) => flatten("", document.as_table(), text, &mut from_file, problems),
        Err(error) => {
            let place = error.span().map_or_else(|| "tidegate.toml".to_owned(), |span| place(text, span.start));
            problems.push(Problem { place, what: format!("This is no TOML: {}.", error.message()) });
        }
    }
    for (key, value) in &from_file {
        let plain = key.strip_suffix("_file").filter(|plain| from_file.iter().any(|(other, _)| other == plain));
        if let Some(plain) = plain {
            problems.push(value.problem(format!("`{plain}` is set as well; keep one.")));
        }
    }
    for (key, value) in from_file {
        match find(&rows, &key, |row| row.key.to_owned(), "_file") {
            Some((row, is_file)) => add(row, is_file, value, problems),
            None => problems.push(value.problem(unknown(&key, rows.iter().map(|row| row.key)))),
        }
    }
    for (name, text) in env.iter().filter(|(name, text)| name.starts_with("TIDEGATE_") && !text.is_empty()) {
        let value = Given { text: text.clone(), place: name.clone() };
        match find(&rows, name, |row| row.env.clone(), "_FILE") {
            // Of both ways to say one secret, the plain variable sorts first and would be overwritten.
            Some((row, IsFile::Yes)) if env.get(&row.env).is_some_and(|plain| !plain.is_empty()) => {
                problems.push(value.problem(format!("`{}` is set as well; keep one.", row.env)));
            }
            Some((row, is_file)) => add(row, is_file, value, problems),
            // The environment holds variables of other programs: only what looks like a slip is said.
            None if READ_ELSEWHERE.iter().any(|known| name.starts_with(known)) => {}
            None => {
                if let Some(near) = nearest(name, rows.iter().map(|row| row.env.as_str())) {
                    problems.push(value.problem(format!("`{name}` is no setting; did you mean `{near}`?")));
                }
            }
        }
    }
    given
}

impl Given {
    /// A problem with this value.
    pub fn problem(&self, what: String) -> Problem {
        Problem { place: self.place.clone(), what }
    }
}

#[derive(Clone, Copy)]
enum IsFile {
    No,
    Yes,
}

fn find<'a>(
    rows: &'a [SettingRow],
    name: &str,
    of: impl Fn(&SettingRow) -> String,
    suffix: &str,
) -> Option<(&'a SettingRow, IsFile)> {
    let plain = rows.iter().find(|row| of(row) == name).map(|row| (row, IsFile::No));
    let secret = || rows.iter().find(|row| row.form == Form::Secret && of(row) + suffix == name);
    plain.or_else(|| secret().map(|row| (row, IsFile::Yes)))
}

fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = nearest(key, known);
    near.map_or_else(
        || format!("`{key}` is no setting."),
        |near| format!("`{key}` is no setting; did you mean `{near}`?"),
    )
}

fn flatten(
    above: &str,
    table: &dyn TableLike,
    text: &str,
    found: &mut Vec<(String, Given)>,
    problems: &mut Vec<Problem>,
) {
    for (name, item) in table.iter() {
        let key = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        if let Some(inner) = item.as_table_like() {
            flatten(&key, inner, text, found, problems);
            continue;
        }
        let place = place(text, item.span().map_or(0, |span| span.start));
        match scalar(item) {
            Some(value) => found.push((key, Given { text: value, place })),
            None => {
                problems.push(Problem { place, what: format!("`{key}` must be a text, a number or a list of texts.") });
            }
        }
    }
}

fn scalar(item: &Item) -> Option<String> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        _ => None,
    };
    match item.as_value()? {
        Value::Array(items) => items.iter().map(one).collect::<Option<Vec<_>>>().map(|all| all.join(",")),
        value => one(value),
    }
}

/// `tidegate.toml:3`, for a byte offset.
fn place(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    format!("tidegate.toml:{}", before.matches('\n').count() + 1)
}
