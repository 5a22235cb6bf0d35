//! A state that somebody else has locked: who, since when, and the way out. It frees nothing: whoever holds the lock may be writing.

use jiff::Timestamp;

use crate::domain::ids::RootKey;
use crate::domain::job::Failure;
use crate::domain::reply::quoted;

/// What was tried.
pub(super) struct Attempt<'a> {
    /// When the job began, milliseconds since 1970.
    pub(super) began: i64,
    /// The tool's command.
    pub(super) tool: &'static str,
    /// The root.
    pub(super) root: &'a RootKey,
}

/// The lock as the tool shows it.
#[derive(Default)]
struct Shown<'a> {
    id: &'a str,
    who: &'a str,
    operation: &'a str,
    version: &'a str,
    created: &'a str,
}

/// The failure in words that say what to do, when it is one of a lock; else as it was. The tool says the same of a state that it
/// cannot read (an encrypted one, say): then there is no lock to show.
pub(super) fn explained(mut failure: Failure, attempt: &Attempt<'_>) -> Failure {
    if failure.summary != "Error acquiring the state lock" {
        return failure;
    }
    let Some((message, info)) = failure.detail.split_once("Lock Info:") else { return failure };
    let shown = shown(info);
    // Some backends show the lock that was asked for and not the one that is held; that one is younger than this job.
    let since: Option<Timestamp> = time(shown.created).filter(|at| at.as_millisecond() < attempt.began);
    let (summary, id) = match since {
        Some(since) => (
            format!("The state is locked by {} since {} UTC", shown.who, since.strftime("%Y-%m-%d %H:%M")),
            shown.id.to_owned(),
        ),
        None => ("The state is locked, and its backend does not say by whom".to_owned(), held_id(message)),
    };
    let what = match since {
        Some(_) => format!("They run {} with version {}. ", operation(shown.operation), shown.version),
        None => String::new(),
    };
    let workspace = match attempt.root.workspace() {
        "default" => String::new(),
        name => format!("TF_WORKSPACE={name} "),
    };
    let id = if id.is_empty() { "LOCK_ID" } else { &id };
    let mut detail = format!(
        "{what}Nothing was changed here, and Tidegate frees no lock that it did not take. Wait until that run ends, then type `plan -d {}` and apply. If it is certain that nobody works there any more, `{workspace}{} force-unlock {id}` in `{}` frees it.",
        quoted(attempt.root),
        attempt.tool,
        attempt.root.dir()
    );
    let message = message.trim();
    if !message.is_empty() {
        detail = format!("{detail}\n{message}");
    }
    failure.summary = summary;
    failure.detail = detail;
    failure
}

fn shown(info: &str) -> Shown<'_> {
    let mut shown = Shown::default();
    for line in info.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let place = match name.trim() {
            "ID" => &mut shown.id,
            "Who" => &mut shown.who,
            "Operation" => &mut shown.operation,
            "Version" => &mut shown.version,
            "Created" => &mut shown.created,
            _ => continue,
        };
        *place = value.trim();
    }
    shown
}

/// `2026-11-30 09:12:00.123456789 +0000 UTC`
fn time(text: &str) -> Option<Timestamp> {
    let text = text.strip_suffix(" UTC").unwrap_or(text);
    let parsed = jiff::fmt::strtime::parse("%Y-%m-%d %H:%M:%S%.f %z", text).ok()?;
    parsed.to_timestamp().ok()
}

/// `OperationTypeApply` as a person says it.
fn operation(name: &str) -> String {
    match name.strip_prefix("OperationType") {
        Some(rest) => format!("`{}`", rest.to_ascii_lowercase()),
        None if name.is_empty() => "something".to_owned(),
        None => format!("`{name}`"),
    }
}

/// The id that the backend's own message names: `… already locked: ID=…`.
fn held_id(message: &str) -> String {
    let after = message.split("ID=").nth(1).unwrap_or_default();
    after.chars().take_while(|c| !c.is_whitespace() && *c != ',').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(message: &str, created: &str) -> Failure {
        let detail = format!(
            "Error message: {message}\nLock Info:\n  ID:        7c1b-22\n  Path:      /s.tfstate\n  Operation: OperationTypeApply\n  \
             Who:       sam@host\n  Version:   1.11.4\n  Created:   {created}\n  Info:      \n\nTerraform acquires a state lock to"
        );
        Failure { summary: "Error acquiring the state lock".to_owned(), detail, ..Failure::default() }
    }

    fn told(failure: Failure) -> (String, String) {
        // 2026-12-01 00:00 UTC
        let attempt =
            Attempt { began: 1_796_083_200_000, tool: "terraform", root: &RootKey::in_workspace("a/b", "blue") };
        let failure = explained(failure, &attempt);
        (failure.summary, failure.detail)
    }

    #[test]
    fn the_holder_is_named_when_the_backend_shows_it() {
        let (summary, detail) =
            told(locked("resource temporarily unavailable", "2026-11-30 09:12:59.123456789 +0000 UTC"));
        assert_eq!(summary, "The state is locked by sam@host since 2026-11-30 09:12 UTC");
        assert!(detail.starts_with("They run `apply` with version 1.11.4. Nothing was changed here"), "{detail}");
        assert!(detail.contains("type `plan -d a/b:blue` and apply"), "{detail}");
        assert!(detail.contains("`TF_WORKSPACE=blue terraform force-unlock 7c1b-22` in `a/b`"), "{detail}");
    }

    #[test]
    fn ones_own_attempt_is_no_holder() {
        let (summary, detail) =
            told(locked("HTTP remote state already locked: ID=held-by-sam", "2026-12-01 00:00:01.5 +0000 UTC"));
        assert_eq!(summary, "The state is locked, and its backend does not say by whom");
        assert!(detail.contains("force-unlock held-by-sam`") && !detail.contains("sam@host"), "{detail}");
        let (summary, _) = told(locked("x", "yesterday"));
        assert_eq!(summary, "The state is locked, and its backend does not say by whom");
    }

    #[test]
    fn what_is_no_lock_is_left_alone() {
        let encrypted = Failure {
            summary: "Error acquiring the state lock".to_owned(),
            detail: "failed to write backup file: This state file is encrypted".to_owned(),
            ..Failure::default()
        };
        assert_eq!(told(encrypted.clone()), (encrypted.summary, encrypted.detail));
        let other = Failure { summary: "Other".to_owned(), detail: "Lock Info:".to_owned(), ..Failure::default() };
        assert_eq!(told(other.clone()), (other.summary, other.detail));
    }
}
