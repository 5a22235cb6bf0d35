//! What a refused call means for the caller, from its status, headers and message. Asks no clock: how long
//! to wait follows from the answer's own `date`.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::request::{Answer, Ask};
use crate::domain::secret::shapeless;
use crate::ports::forge::ForgeError;

/// GitHub asks for at least a minute when it limits without saying how long.
const UNSAID_WAIT_MS: i64 = 60_000;

/// The longest message that is passed on; what GitHub says belongs on one line of a log.
const LONGEST_MESSAGE: usize = 500;

/// The error for an answer that is no success.
pub(super) fn refusal(ask: &Ask, answer: &Answer) -> ForgeError {
    let said = message(&answer.body);
    if let Some(wait_ms) = limit(answer, &said) {
        return ForgeError::RateLimited { wait_ms };
    }
    let text = format!("{} {}: {} {said}", ask.method, ask.shown(), answer.status.as_u16());
    let lower = said.to_ascii_lowercase();
    match answer.status {
        StatusCode::FORBIDDEN if lower.contains("suspended") => return ForgeError::Suspended(text),
        StatusCode::UNPROCESSABLE_ENTITY if lower.contains("too long") => return ForgeError::TooLong(text),
        _ => {}
    }
    match answer.status {
        StatusCode::NOT_FOUND | StatusCode::GONE => ForgeError::NotFound(text),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => {
            ForgeError::Denied(text)
        }
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::CONFLICT => ForgeError::Conflict(text),
        StatusCode::REQUEST_TIMEOUT => ForgeError::Unavailable(text),
        status if status.is_server_error() => ForgeError::Unavailable(text),
        // The name is old: the next event or sweep brings the new one.
        status if status.is_redirection() => ForgeError::NotFound(format!("{text} (the repository moved)")),
        _ => ForgeError::Invalid(text),
    }
}

/// How long to wait, when the answer is a limit and no refusal.
fn limit(answer: &Answer, said: &str) -> Option<i64> {
    if !matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
        return None;
    }
    let headers = &answer.headers;
    if let Some(seconds) = number(headers, "retry-after") {
        return Some(seconds.clamp(1, 86_400) * 1000);
    }
    if number(headers, "x-ratelimit-remaining") == Some(0) {
        return Some(until_reset(headers).unwrap_or(UNSAID_WAIT_MS));
    }
    let said = said.to_ascii_lowercase();
    let secondary = said.contains("secondary rate limit") || said.contains("abuse detection");
    (secondary || answer.status == StatusCode::TOO_MANY_REQUESTS).then_some(UNSAID_WAIT_MS)
}

fn until_reset(headers: &HeaderMap) -> Option<i64> {
    let reset = number(headers, "x-ratelimit-reset")?;
    // One second more, since both are cut to seconds.
    Some((reset.saturating_sub(date(headers)?).clamp(0, 86_400) + 1) * 1000)
}

/// When GitHub answered, in seconds since 1970.
pub(super) fn date(headers: &HeaderMap) -> Option<i64> {
    let text = headers.get(http::header::DATE)?.to_str().ok()?;
    // The form of HTTP ends in a zone name that RFC 2822 calls obsolete.
    let text = text.replace("GMT", "+0000");
    Some(jiff::fmt::rfc2822::parse(&text).ok()?.timestamp().as_second())
}

fn number(headers: &HeaderMap, name: &str) -> Option<i64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// GitHub's message with its details, in one short line.
fn message(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return short(body) };
    let mut parts: Vec<String> = value["message"].as_str().map(str::to_owned).into_iter().collect();
    for error in value["errors"].as_array().into_iter().flatten() {
        let told = error.as_str().or_else(|| error["message"].as_str()).map(str::to_owned);
        parts.push(told.unwrap_or_else(|| {
            ["resource", "field", "code"].iter().filter_map(|key| error[key].as_str()).collect::<Vec<_>>().join(" ")
        }));
    }
    short(&parts.join(": "))
}

fn short(text: &str) -> String {
    // Before it is cut: a forge, or a proxy on the way, may repeat what it was sent.
    shapeless(text).split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: (&str, &str) = ("date", "Mon, 30 Nov 2026 12:00:00 GMT");
    const AT: i64 = 1_796_040_000;

    fn refused(status: u16, headers: &[(&str, &str)], body: &str) -> ForgeError {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let answer = Answer { status: StatusCode::from_u16(status).unwrap(), headers: map, body: body.to_owned() };
        refusal(&Ask::get("/x"), &answer)
    }

    #[test]
    fn a_status_says_what_the_caller_can_do() {
        for (status, kind) in [
            (404, "NotFound"),
            (410, "NotFound"),
            (301, "NotFound"),
            (401, "Denied"),
            (403, "Denied"),
            (405, "Conflict"),
            (409, "Conflict"),
            (422, "Invalid"),
            (400, "Invalid"),
            (408, "Unavailable"),
            (500, "Unavailable"),
            (502, "Unavailable"),
            (503, "Unavailable"),
        ] {
            let error = format!("{:?}", refused(status, &[], r#"{"message":"no"}"#));
            assert!(error.starts_with(kind), "{status}: {error}");
        }
    }

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        for (status, said, kind) in [
            (403, "This installation has been suspended", "Suspended"),
            (403, "Resource not accessible by integration", "Denied"),
            (422, "Body is too long (maximum is 65536 characters)", "TooLong"),
            (422, "Body can't be blank", "Invalid"),
        ] {
            let error = format!("{:?}", refused(status, &[], &serde_json::json!({ "message": said }).to_string()));
            assert!(error.starts_with(kind), "{said}: {error}");
        }
    }

    #[test]
    fn a_limit_says_how_long_to_wait() {
        let reset = (AT + 90).to_string();
        let past = (AT - 90).to_string();
        let secondary = r#"{"message":"You have exceeded a secondary rate limit."}"#;
        let table = [
            (403, vec![("retry-after", "60")], "", 60_000),
            (429, vec![("retry-after", "2")], "", 2_000),
            (403, vec![DATE, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &reset)], "", 91_000),
            (429, vec![DATE, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &past)], "", 1_000),
            (403, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &reset)], "", 60_000),
            (403, vec![], secondary, 60_000),
            (429, vec![], "", 60_000),
            (403, vec![("retry-after", "99999999")], "", 86_400_000),
        ];
        for (status, headers, body, wait) in table {
            match refused(status, &headers, body) {
                ForgeError::RateLimited { wait_ms } => assert_eq!(wait_ms, wait, "{status} {headers:?}"),
                other => panic!("{status} {headers:?}: {other:?}"),
            }
        }
        let plenty = refused(403, &[("x-ratelimit-remaining", "4999")], r#"{"message":"Resource not accessible"}"#);
        assert!(matches!(plenty, ForgeError::Denied(_)), "{plenty:?}");
    }

    #[test]
    fn both_shapes_of_details_are_told() {
        let custom = r#"{"message":"Validation Failed","errors":[{"resource":"IssueComment","code":"unprocessable","field":"data","message":"Body is too long"}]}"#;
        assert_eq!(message(custom), "Validation Failed: Body is too long");
        let coded = r#"{"message":"Validation Failed","errors":[{"resource":"X","field":"sha","code":"invalid"}]}"#;
        assert_eq!(message(coded), "Validation Failed: X sha invalid");
        assert_eq!(message(r#"{"message":"No","errors":["Can not"]}"#), "No: Can not");
        assert_eq!(message("<html>\n bad gateway"), "<html> bad gateway");
    }
}
