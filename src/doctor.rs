//! `tidegate doctor`: why nothing happens when a pull is opened. It looks at settings, folders, the database, the forge, the webhook
//! and the tools, and says of each what it is and what mends it. It changes nothing and prints no secret.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::config::{Problem, Settings};
use crate::domain::setup::{Reachable, reachable};

mod database;
mod forge;
mod machine;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As it should be.
    Good,
    /// Worth a look; the server works, or may.
    Look,
    /// The server cannot work so.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How it is.
    pub mark: Mark,
    /// What it is.
    pub what: &'static str,
    /// Its value.
    pub value: String,
    /// What mends it; empty when nothing has to be.
    pub way_out: String,
}

impl Line {
    fn good(what: &'static str, value: impl Into<String>) -> Self {
        Self { mark: Mark::Good, what, value: value.into(), way_out: String::new() }
    }

    fn look(what: &'static str, value: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { mark: Mark::Look, what, value: value.into(), way_out: way_out.into() }
    }

    fn bad(what: &'static str, value: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { mark: Mark::Bad, what, value: value.into(), way_out: way_out.into() }
    }
}

/// Looks at everything, in the order in which a pull needs it.
pub async fn examine(
    file: Option<&Path>,
    settings: Result<Settings, Vec<Problem>>,
    environment: &BTreeMap<String, String>,
) -> Vec<Line> {
    let settings = match settings {
        Ok(settings) => settings,
        Err(problems) => {
            let line = |problem: &Problem| {
                Line::bad(
                    "settings",
                    format!("{}: {}", problem.place, problem.what),
                    "README.md has every setting; nothing else was looked at.",
                )
            };
            return problems.iter().map(line).collect();
        }
    };
    let mut lines = vec![match file {
        Some(file) => Line::good("settings", format!("{} and the environment are valid", file.display())),
        None => Line::good("settings", "the environment is valid; no file was named by --config"),
    }];
    lines.push(address(&settings));
    lines.extend(machine::folder(&settings));
    lines.extend(machine::tools(&settings, environment).await);
    lines.extend(machine::server(&settings).await);
    let known = database::look(&settings, &mut lines).await;
    forge::look(settings, known, &mut lines).await;
    lines
}

fn address(settings: &Settings) -> Line {
    let url = settings.url.as_str().trim_end_matches('/');
    match reachable(url, settings.github.web_url.as_str().trim_end_matches('/')) {
        Reachable::No(why) => Line::bad("address", url, why),
        Reachable::Unlikely(why) => Line::look("address", url, why),
        Reachable::Yes => Line::good("address", url),
    }
}

/// The lines as text, worst words in capitals, and a last line that sums up.
pub fn text(lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        let mark = match line.mark {
            Mark::Good => "ok",
            Mark::Look => "look",
            Mark::Bad => "FAIL",
        };
        let _ = writeln!(out, "{mark:<5} {:<13} {}", line.what, line.value);
        if !line.way_out.is_empty() {
            let _ = writeln!(out, "      {:<13} → {}", "", line.way_out);
        }
    }
    let count = |mark: Mark| lines.iter().filter(|line| line.mark == mark).count();
    let _ = match (count(Mark::Bad), count(Mark::Look)) {
        (0, 0) => writeln!(out, "\nNothing is wrong."),
        (0, look) => writeln!(out, "\nNothing fails; {look} worth a look."),
        (bad, _) => writeln!(out, "\n{bad} must be mended."),
    };
    out
}

/// Whether the server can work.
pub fn is_well(lines: &[Line]) -> bool {
    lines.iter().all(|line| line.mark != Mark::Bad)
}
