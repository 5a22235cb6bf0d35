//! Requests and replies of the sandbox: the three layouts of GitHub's API on one router, faults, rate headers and
//! pages of lists. Never knows what an endpoint does.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::faults::Fault;
use super::refusal::{Answer, Refusal};
use super::shape::Base;
use super::world::World;
use super::{api, pages, rate, smart};

/// The most bytes of a body: a pushed pack may be large.
const BODY_LIMIT: usize = 512 << 20;

/// A request, taken apart.
#[derive(Debug)]
pub struct Call {
    /// The method.
    pub method: String,
    /// The path without the API prefix.
    pub path: String,
    /// Its parts, decoded.
    pub parts: Vec<String>,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
    /// What links are built from.
    pub base: Base,
}

impl Call {
    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
    /// The body as a JSON object; no body is an empty one.
    pub fn json(&self) -> Answer<Value> {
        if self.body.is_empty() {
            return Ok(json!({}));
        }
        let body: Value = serde_json::from_slice(&self.body).map_err(|_| Refusal::new(400, "Problems parsing JSON"))?;
        // A list is a body in one place: labels.
        if body.is_object() || body.is_array() {
            Ok(body)
        } else {
            Err(Refusal::new(400, "Body should be a JSON object"))
        }
    }
    /// The body, whose fields of these names are texts where they are given.
    pub fn texts(&self, names: &[&str]) -> Answer<Value> {
        let body = self.json()?;
        match names.iter().find(|name| !matches!(&body[**name], Value::String(_) | Value::Null)) {
            Some(name) => Err(Refusal::wrong_type(name, &body[*name], "a string")),
            None => Ok(body),
        }
    }
    /// A form, decoded.
    pub fn form(&self) -> BTreeMap<String, String> {
        url::form_urlencoded::parse(&self.body).into_owned().collect()
    }
    fn number(&self, key: &str, default: usize) -> usize {
        self.query.get(key).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// One page of a list with its `Link` header; `key` wraps it as `{total_count, key: […]}`.
    pub fn page(&self, items: Vec<Value>, key: Option<&str>) -> Reply {
        let size = self.number("per_page", 30).clamp(1, 100);
        let page = self.number("page", 1).max(1);
        let total = items.len();
        let last = total.div_ceil(size).max(1);
        let shown: Vec<Value> = items.into_iter().skip((page - 1).saturating_mul(size)).take(size).collect();
        let body = match key {
            Some(key) => json!({"total_count": total, key: shown}),
            None => Value::Array(shown),
        };
        let mut links = Vec::new();
        let mut link = |to: usize, rel: &str| links.push(format!("<{}>; rel=\"{rel}\"", self.page_url(to)));
        if page > 1 {
            link(page - 1, "prev");
        }
        if page < last {
            link(page + 1, "next");
            link(last, "last");
        }
        if page > 1 {
            link(1, "first");
        }
        let reply = Reply::json(200, &body);
        if links.is_empty() { reply } else { reply.with("link", &links.join(", ")) }
    }

    fn page_url(&self, page: usize) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.query.iter().filter(|(key, _)| *key != "page"));
        query.append_pair("page", &page.to_string());
        format!("{}{}?{}", self.base.api, self.path, query.finish())
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// A JSON answer.
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string().into_bytes() }
            .with("content-type", "application/json; charset=utf-8")
    }
    /// With a tag of what it says, or, when the client has exactly this, without a body: 304, as GitHub answers a conditional read.
    fn unless_known(self, known: Option<&str>) -> Self {
        if self.status != 200 || self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("etag")) {
            return self;
        }
        let tag = format!("W/\"{}\"", hex::encode(Sha256::digest(&self.body)));
        let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let is_known = known.is_some_and(|tags| tags.split(',').any(|one| bare(one) == bare(&tag)));
        if is_known { Self::empty(304).with("etag", &tag) } else { self.with("etag", &tag) }
    }
    /// An answer without a body.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }
    /// An answer of some type.
    pub fn text(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.into() }.with("content-type", kind)
    }
    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        let reply = Self::json(refusal.status, &refusal.body());
        match &refusal.location {
            Some(to) => reply.with("location", to),
            None => reply,
        }
    }
}

/// Answers everything: API, git and pages. `scheme` is what the port speaks.
pub async fn serve(
    Shared((world, scheme)): Shared<(Arc<World>, &'static str)>,
    request: Request<Body>,
) -> Response<Body> {
    let call = match take_apart(request, scheme).await {
        Ok(call) => call,
        Err(refusal) => return finish(Reply::from(refusal)),
    };
    if call.method != "GET" && !smart::fits(&call) {
        world.hear(&call.method, &call.path, &call.body);
    }
    let fault = world.faults.take(&call.method, &call.path);
    if let Some(Fault::Status(status, headers)) = &fault {
        let message = StatusCode::from_u16(*status).ok().and_then(|s| s.canonical_reason()).unwrap_or("Fault");
        let reply = Reply::from(Refusal::new(*status, message));
        return finish(headers.iter().fold(reply, |reply, (name, value)| reply.with(name, value)));
    }
    match &fault {
        Some(Fault::Answer(status, body)) => return finish(Reply::json(*status, body)),
        Some(Fault::Text(status, body)) => {
            let reply = Reply::text("text/html; charset=utf-8", body.as_bytes());
            return finish(Reply { status: *status, ..reply });
        }
        Some(Fault::Silence) => return std::future::pending().await,
        _ => {}
    }
    let known = call.headers.get("if-none-match").and_then(|tags| tags.to_str().ok()).map(str::to_owned);
    let known = known.filter(|_| call.method == "GET");
    // Git and the lock may block, so the work leaves the async threads.
    let work = tokio::task::spawn_blocking(move || route(&world, &call, known.as_deref())).await;
    let reply = work.unwrap_or_else(|_| Reply::from(Refusal::new(500, "Server Error")));
    match fault {
        Some(Fault::AfterEffect(status)) => finish(Reply::from(Refusal::new(status, "Server Error"))),
        Some(Fault::Reset) => reset(),
        Some(Fault::Delay(time)) => {
            tokio::time::sleep(time).await;
            finish(reply)
        }
        _ => finish(reply),
    }
}

/// An answer whose body breaks off, so that the server drops the connection.
fn reset() -> Response<Body> {
    let broken = futures::stream::once(std::future::ready(Err::<Vec<u8>, _>(std::io::Error::other("reset"))));
    Response::new(Body::from_stream(broken))
}

fn route(world: &World, call: &Call, known: Option<&str>) -> Reply {
    if smart::fits(call) {
        return smart::serve(world, call).unwrap_or_else(Reply::from);
    }
    if pages::fits(call) {
        return pages::serve(world, call).unless_known(known);
    }
    let resource = if call.parts.first().is_some_and(|first| first == "graphql") { "graphql" } else { "core" };
    let asker = api::asker(world, call);
    if world.rates.look(&asker, resource).spent && call.parts != ["rate_limit"] {
        let whose = if asker.is_empty() { "your address".to_owned() } else { format!("{asker}.") };
        let refusal = Refusal::new(403, format!("API rate limit exceeded for {whose}"));
        return rated(Reply::from(refusal), &world.rates.count(&asker, resource), resource);
    }
    let reply = api::serve(world, call).unwrap_or_else(Reply::from).unless_known(known);
    // What the client has already costs nothing, and neither does looking at the account.
    let free = reply.status == 304 || call.parts == ["rate_limit"];
    let account = if free { world.rates.look(&asker, resource) } else { world.rates.count(&asker, resource) };
    rated(reply, &account, resource)
}

fn rated(reply: Reply, account: &rate::Account, resource: &str) -> Reply {
    let numbers = [
        ("limit", account.limit.to_string()),
        ("remaining", account.remaining().to_string()),
        ("used", account.used.to_string()),
        ("reset", account.reset.to_string()),
        ("resource", resource.to_owned()),
    ];
    numbers.iter().fold(reply, |reply, (name, value)| reply.with(&format!("x-ratelimit-{name}"), value))
}

fn finish(reply: Reply) -> Response<Body> {
    let mut response = Response::builder().status(reply.status);
    response = response.header("x-github-request-id", format!("{:08X}", rand::random::<u32>()));
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.body)).unwrap_or_else(|_| {
        let mut broken = Response::new(Body::empty());
        *broken.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        broken
    })
}

async fn take_apart(request: Request<Body>, scheme: &str) -> Answer<Call> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_LIMIT).await.map_err(|_| Refusal::new(413, "Payload Too Large"))?;
    let host = head.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1");
    let scheme = head.headers.get("x-forwarded-proto").and_then(|scheme| scheme.to_str().ok()).unwrap_or(scheme);
    let full = head.uri.path();
    let (prefix, path) = ["/api/v3", "/api"]
        .iter()
        .find_map(|prefix| full.strip_prefix(prefix).filter(|rest| rest.starts_with('/')).map(|rest| (*prefix, rest)))
        .unwrap_or(("", full));
    let raw_query = head.uri.query().unwrap_or("").to_owned();
    let html = format!("{scheme}://{}", host.strip_prefix("api.").unwrap_or(host));
    let api = format!("{scheme}://{host}{prefix}");
    Ok(Call {
        // Whoever asks for the head alone gets it: the server keeps the body back.
        method: if head.method == "HEAD" { "GET".to_owned() } else { head.method.as_str().to_owned() },
        // An escaped slash divides as well: some clients escape those of refs and paths, and no other parameter may have one.
        parts: percent(path).split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
        path: path.to_owned(),
        query: url::form_urlencoded::parse(raw_query.as_bytes()).into_owned().collect(),
        headers: head.headers,
        body: body.to_vec(),
        base: Base { api, html },
    })
}

/// Percent-decoding of one part of a path; a plus stays a plus.
fn percent(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten().and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or(&[]);
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(query: &str) -> Call {
        Call {
            method: "GET".into(),
            path: "/x".into(),
            parts: vec!["x".into()],
            query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            headers: HeaderMap::new(),
            body: Vec::new(),
            base: Base::plain("http://h"),
        }
    }

    #[test]
    fn pages_are_cut_and_linked() {
        let items: Vec<Value> = (0..250).map(|n| json!(n)).collect();
        for (query, len, next) in [
            ("", 30, Some(2)),
            ("per_page=300", 100, Some(2)),
            ("per_page=100&page=3", 50, None),
            ("per_page=100&page=9223372036854775807", 0, None),
        ] {
            let reply = call(query).page(items.clone(), None);
            let shown: Vec<Value> = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(shown.len(), len, "{query}");
            let link = reply.headers.iter().find(|(name, _)| name == "link").map(|(_, value)| value.clone()).unwrap();
            assert_eq!(link.contains("rel=\"next\""), next.is_some(), "{query}: {link}");
        }
        assert!(call("page=9").page(vec![], None).headers.iter().all(|(_, value)| !value.contains("next")));
    }

    #[test]
    fn parts_decode() {
        assert_eq!(percent("net%2Fmain.tf"), "net/main.tf");
        assert_eq!(percent("a+b%5Bbot%5D%"), "a+b[bot]%");
    }
}
