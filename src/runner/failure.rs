//! What went wrong, in the words of the tool or in ours: rule, value, way out. Nothing leaves here unmasked.

use std::io;
use std::path::{Component, Path};

use crate::domain::job::Failure;
use crate::domain::progress::Diagnostic;
use crate::domain::secret::Secrets;

/// The most that is kept of one text.
const LONGEST: usize = 16 * 1024;
/// The most further errors that are kept.
const MOST_OTHERS: usize = 50;

/// Why a job cannot go on.
#[derive(Clone, Debug)]
pub(super) enum Broken {
    /// Something failed.
    Failed(Box<Failure>),
    /// A stop was wanted, and nothing was changed.
    Stopped,
}

impl Broken {
    /// Something of ours failed: what, and the way out.
    pub(super) fn new(summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::of(Failure { summary: summary.into(), detail: detail.into(), ..Failure::default() })
    }

    /// A failure that is known in full.
    pub(super) fn of(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }

    /// The server failed us for good.
    pub(super) fn server(what: &str, why: &str) -> Self {
        Self::new(format!("The job could not exchange `{what}` with the server"), why)
    }

    /// Names the step, unless a narrower one is named already.
    pub(super) fn at(mut self, step: &str) -> Self {
        if let Self::Failed(failure) = &mut self
            && failure.step.is_empty()
        {
            step.clone_into(&mut failure.step);
        }
        self
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::StorageFull {
            return Self::new(
                "Out of disk",
                format!("{error}. Give the job's work directory more room and run it again."),
            );
        }
        Self::new("The job's work directory cannot be used", error.to_string())
    }
}

/// What to report: every text masked and cut, a full disk named as such.
pub(super) fn failure(broken: Broken, secrets: &Secrets) -> Failure {
    let mut failure = match broken {
        Broken::Failed(failure) => *failure,
        Broken::Stopped => Failure { summary: "The job was stopped".to_owned(), ..Failure::default() },
    };
    let all = || [&failure.summary, &failure.detail].into_iter().chain(&failure.others);
    let full = all().any(|text| text.to_ascii_lowercase().contains("no space left on device"));
    if full && !failure.summary.starts_with("Out of disk") {
        failure.summary = format!("Out of disk: {}", failure.summary);
    }
    let clean = |text: &str| readable(&secrets.mask(text), LONGEST);
    failure.summary = clean(&failure.summary);
    failure.detail = clean(&failure.detail);
    failure.code = failure.code.as_deref().map(clean);
    failure.address = failure.address.as_deref().map(clean);
    failure.others.truncate(MOST_OTHERS);
    failure.others = failure.others.iter().map(|text| clean(text).replace('\n', " ")).collect();
    failure
}

/// The failure that a list of errors makes: the first is the main one.
pub(super) fn of_errors(step: &str, place: &Place<'_>, errors: &[Diagnostic]) -> Option<Failure> {
    let (main, others) = errors.split_first()?;
    Some(Failure {
        step: step.to_owned(),
        summary: main.summary.trim().to_owned(),
        detail: main.detail.trim().to_owned(),
        file: main.file.as_deref().and_then(|file| place.in_repository(file)),
        line: main.line,
        code: main.code.clone(),
        address: main.address.clone(),
        others: others.iter().map(Diagnostic::text).collect(),
    })
}

/// Where the tool runs.
pub(super) struct Place<'a> {
    /// The checkout.
    pub(super) checkout: &'a Path,
    /// The root's directory within it.
    pub(super) root: &'a str,
}

impl Place<'_> {
    /// A file that the tool names, relative to the repository; `None` when it lies outside.
    pub(super) fn in_repository(&self, file: &str) -> Option<String> {
        let file = Path::new(file);
        let whole = match file.strip_prefix(self.checkout) {
            Ok(inside) => inside.to_owned(),
            Err(_) if file.is_absolute() => return None,
            Err(_) => Path::new(self.root).join(file),
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in whole.components() {
            match part {
                Component::Normal(name) => parts.push(name.to_str()?),
                Component::ParentDir => drop(parts.pop()?),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(parts.join("/"))
    }
}

/// Reads the errors out of the text of a command that knows no JSON, such as `init`.
pub(super) fn of_text(step: &str, place: &Place<'_>, text: &str) -> Option<Failure> {
    let plain = strip_ansi_escapes::strip_str(text);
    let bare = |line: &str| line.trim_start_matches(['╷', '│', '╵']).trim_end().to_owned();
    let mut errors: Vec<Diagnostic> = Vec::new();
    for line in plain.lines().map(bare) {
        let words = line.trim();
        if let Some(summary) = words.strip_prefix("Error: ") {
            errors.push(Diagnostic { severity: "error".into(), summary: summary.to_owned(), ..Diagnostic::default() });
        } else if words.starts_with("Warning: ") && !errors.is_empty() {
            break;
        } else if let Some(error) = errors.last_mut() {
            add_line(error, words);
        }
    }
    // The errors that name a place say more than the general one that `init` puts before them; some come twice.
    errors.sort_by_key(|error| error.file.is_none());
    errors.dedup();
    of_errors(step, place, &errors)
}

fn add_line(error: &mut Diagnostic, words: &str) {
    let place = words.strip_prefix("on ").and_then(|rest| rest.split_once(" line "));
    if let (Some((file, rest)), None) = (place, &error.file) {
        error.file = Some(file.to_owned());
        error.line = rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse().ok());
        return;
    }
    let quoted = error.line.and_then(|line| words.strip_prefix(&format!("{line}:")));
    match quoted {
        Some(code) if error.code.is_none() => error.code = Some(code.trim().to_owned()),
        _ if words.is_empty() && error.detail.is_empty() => {}
        _ => {
            error.detail.push_str(words);
            error.detail.push('\n');
        }
    }
}

/// Text that a person may read: no escapes, no control characters, no more than `most` bytes.
pub(super) fn readable(text: &str, most: usize) -> String {
    let mut text = strip_ansi_escapes::strip_str(text.replace('\t', "    "));
    text.retain(|c| c == '\n' || !c.is_control());
    if text.len() > most {
        let end = (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(root: &str) -> Place<'_> {
        Place { checkout: Path::new("/w/source"), root }
    }

    #[test]
    fn files_are_named_as_the_repository_knows_them() {
        let table = [
            ("main.tf", Some("envs/dev/main.tf")),
            ("../../modules/m/x.tf", Some("modules/m/x.tf")),
            ("/w/source/a.tf", Some("a.tf")),
            ("/etc/passwd", None),
            ("../../../x.tf", None),
        ];
        for (file, expected) in table {
            assert_eq!(place("envs/dev").in_repository(file).as_deref(), expected, "{file}");
        }
        assert_eq!(place(".").in_repository("main.tf").as_deref(), Some("main.tf"));
    }

    #[test]
    fn the_text_of_init_is_read() {
        let text = "\u{1b}[31m╷\u{1b}[0m\n│ Error: Missing name for resource\n│ \n│   on b.tf line 3, in resource \"x\":\n\
                    │    3: resource \"x\" {\n│ \n│ All resource blocks\n│ must have 2 labels.\n╵\n\n\
                    Error: Second\n\nIts detail.\n";
        let failure = of_text("init", &place("envs/dev"), text).expect("two errors");
        assert_eq!(failure.summary, "Missing name for resource");
        assert_eq!((failure.file.as_deref(), failure.line), (Some("envs/dev/b.tf"), Some(3)));
        assert_eq!(failure.code.as_deref(), Some("resource \"x\" {"));
        assert_eq!(failure.detail, "All resource blocks\nmust have 2 labels.");
        assert_eq!(failure.others, ["Second: Its detail."]);
        assert_eq!(of_text("init", &place("envs/dev"), "all well"), None);
    }

    #[test]
    fn readable_text_has_no_escapes_and_an_end() {
        assert_eq!(readable("\u{1b}[1mbold\u{1b}[0m\ta\u{7}b\r\nc", 100), "bold    ab\nc");
        assert_eq!(readable("ääää", 3), "ä…");
    }
}
