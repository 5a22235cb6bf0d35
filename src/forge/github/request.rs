//! One request to GitHub and its answer, as plain JSON: octocrab's typed calls are stricter than GitHub itself.
//! It sends exactly once.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use octocrab::Octocrab;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::refusal::refusal;
use crate::ports::forge::ForgeError;

/// The longest that one call may take, from connect to the last byte.
const WHOLE_CALL: Duration = Duration::from_secs(60);

/// Whose token a call needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose<'a> {
    /// The App itself, by its signed JWT; with a plain token, that token.
    App,
    /// The installation that covers this repository, `owner/name`.
    Repo(&'a str),
    /// The installation of this account.
    Account(&'a str),
    /// This installation.
    Installation(u64),
}

/// What to ask.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub method: Method,
    /// Path and query, below the API's root.
    pub path: String,
    pub body: Option<Value>,
}

impl Ask {
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None }
    }

    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, path: path.into(), body: Some(body) }
    }

    pub fn patch(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::PATCH, path: path.into(), body: Some(body) }
    }

    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::PUT, path: path.into(), body: Some(body) }
    }
}

impl Ask {
    /// The path for logs and errors: a code that is worth an App's keys is left out.
    pub fn shown(&self) -> &str {
        if self.path.starts_with("/app-manifests/") { "/app-manifests/…/conversions" } else { &self.path }
    }
}

/// What GitHub said.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// The answer, when it is a success.
    pub fn accepted(self, ask: &Ask) -> Result<Self, ForgeError> {
        if self.status.is_success() { Ok(self) } else { Err(refusal(ask, &self)) }
    }

    /// Reads the body.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ForgeError> {
        serde_json::from_str(&self.body)
            .map_err(|error| ForgeError::Unavailable(format!("an answer could not be read: {}", place(&error))))
    }

    /// Reads the body of something that was just made.
    ///
    /// A redirect turns a POST into a GET, which looks like success and has made nothing: only 201 says that it was made.
    pub fn read_created<T: DeserializeOwned>(&self, ask: &Ask) -> Result<T, ForgeError> {
        if self.status == StatusCode::CREATED {
            return self.read();
        }
        Err(ForgeError::NotFound(format!(
            "{} {}: {} instead of 201; did the repository move?",
            ask.method,
            ask.shown(),
            self.status
        )))
    }
}

/// Sends once, with whatever credential `crab` has.
pub(super) async fn send(crab: &Octocrab, ask: &Ask) -> Result<Answer, ForgeError> {
    let unavailable =
        |why: &dyn std::fmt::Display| ForgeError::Unavailable(format!("{} {}: {why}", ask.method, ask.shown()));
    let answer = tokio::time::timeout(WHOLE_CALL, exchange(crab, ask))
        .await
        .map_err(|_| unavailable(&"no answer within a minute"))?
        .map_err(|error| unavailable(&reason(&error)))?;
    tracing::debug!(method = %ask.method, path = ask.shown(), status = answer.status.as_u16(), "github");
    Ok(answer)
}

async fn exchange(crab: &Octocrab, ask: &Ask) -> Result<Answer, octocrab::Error> {
    let builder = http::request::Builder::new()
        .method(ask.method.clone())
        .uri(&ask.path)
        .header(http::header::ACCEPT, "application/vnd.github+json");
    let request = crab.build_request(builder, ask.body.as_ref())?;
    let response = crab.execute(request).await?;
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(Answer { status, headers, body: crab.body_to_string(response).await? })
}

/// Where an answer cannot be read. Of the reader's own words only those that quote nothing of it: it may hold a token.
pub(super) fn place(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let quotes_nothing = ["missing field", "EOF", "expected", "trailing"].iter().any(|start| said.starts_with(start));
    if quotes_nothing {
        return said;
    }
    format!("a value of another type at line {} column {}", error.line(), error.column())
}

/// The innermost cause: octocrab's own words hide it, and append a backtrace.
fn reason(error: &octocrab::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// One segment of a path, escaped: logins such as `name[bot]` and team slugs are not ours to trust.
pub(super) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex::encode_upper([byte]));
        }
    }
    // A lone `.` or `..` would name another path.
    if out.bytes().all(|byte| byte == b'.') { out.replace('.', "%2E") } else { out }
}

/// `/repos/owner/name`, when `name` is that and nothing else.
pub(super) fn repo_path(name: &str) -> Result<String, ForgeError> {
    match name.split_once('/') {
        Some((owner, repo)) if !owner.is_empty() && !repo.is_empty() && !repo.contains('/') => {
            Ok(format!("/repos/{}/{}", segment(owner), segment(repo)))
        }
        _ => Err(ForgeError::Invalid(format!("`{name}` is no repository; write `owner/name`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place_in_a_path() {
        for (name, path) in [
            ("acme/infra", "/repos/acme/infra"),
            ("acme/in.fra_2", "/repos/acme/in.fra_2"),
            ("acme/..", "/repos/acme/%2E%2E"),
            ("a?b/c#d", "/repos/a%3Fb/c%23d"),
        ] {
            assert_eq!(repo_path(name).unwrap(), path);
        }
        for name in ["", "acme", "acme/", "/infra", "acme/infra/pulls"] {
            assert!(matches!(repo_path(name), Err(ForgeError::Invalid(_))), "{name}");
        }
        assert_eq!(segment("renovate[bot]"), "renovate%5Bbot%5D");
    }
}
