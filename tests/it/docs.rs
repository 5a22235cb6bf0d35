//! Documents agree with the code: the README's table of settings is the table that the settings are read by, and every verb of the
//! grammar stands in it.

use std::fmt::Write as _;

use tidegate::config::{Form, table};
use tidegate::domain::command;

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap()
}

#[test]
fn the_table_of_settings_is_the_one_that_is_read() {
    let mut expected = String::from("| Setting | Variable | Default | Meaning |\n|---|---|---|---|\n");
    for row in table() {
        let file = if row.form == Form::Secret { ", `…_FILE`" } else { "" };
        let _ = writeln!(expected, "| `{}` | `{}`{file} | {} | {} |", row.key, row.env, row.default, row.meaning);
    }
    let readme = readme();
    let (_, rest) = readme.split_once("<!-- settings -->\n").unwrap();
    let (found, _) = rest.split_once("<!-- /settings -->").unwrap();
    assert_eq!(found, expected, "put this between the marks in README.md:\n{expected}");
}

#[test]
fn every_verb_stands_in_the_readme() {
    let readme = readme();
    let usage = command::usage();
    let verbs: Vec<&str> = usage
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split(['`', ' ']).next())
        .collect();
    assert!(verbs.len() >= 10, "{usage}");
    for verb in verbs {
        assert!(readme.contains(&format!("`{verb}")), "`{verb}` is not in the README");
    }
}
