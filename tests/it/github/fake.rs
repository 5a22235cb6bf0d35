//! A server that answers what it is told and remembers what it was asked. It knows nothing of GitHub.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::openapi;

/// What came in.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `METHOD /path?query`.
    pub what: String,
    pub authorization: String,
    pub body: Option<Value>,
}

/// What goes out.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Reply {
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string() }
    }

    pub fn text(status: u16, body: &str) -> Self {
        Self { status, headers: vec![("content-type", "text/html".to_owned())], body: body.to_owned() }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

#[derive(Default)]
struct Script {
    asked: Mutex<Vec<Asked>>,
    replies: Mutex<HashMap<String, VecDeque<Reply>>>,
}

/// The server.
pub struct Fake {
    pub url: String,
    script: Arc<Script>,
}

impl Fake {
    /// Listens on a free port.
    pub async fn start() -> Self {
        let script = Arc::new(Script::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let router = axum::Router::new().fallback(answer).with_state(Arc::clone(&script));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, script }
    }

    /// One that knows an App's installation 5 on `acme/infra`, with the tokens `t1`, `t2`, …
    pub async fn with_app() -> Self {
        let fake = Self::start().await;
        fake.on(
            "GET /repos/acme/infra/installation",
            Reply::json(200, &json!({"id": 5, "account": {"login": "acme"}})),
        );
        fake.on("GET /app", Reply::json(200, &json!({"id": super::APP_ID, "slug": "tidegate"})));
        for token in ["t1", "t2", "t3"] {
            fake.on("POST /app/installations/5/access_tokens", Reply::json(201, &json!({ "token": token })));
        }
        fake
    }

    /// Queues a reply; the last one of a request stays for ever.
    pub fn on(&self, what: &str, reply: Reply) {
        let mut replies = self.script.replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.entry(what.to_owned()).or_default().push_back(reply);
    }

    /// Everything that was asked, after a check of each body against GitHub's own description.
    pub fn asked(&self) -> Vec<Asked> {
        let asked = self.script.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for one in &asked {
            if let Some(body) = &one.body {
                openapi::check(&one.what, body);
            }
        }
        asked
    }

    /// `METHOD /path?query` of everything that was asked.
    pub fn whats(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.what).collect()
    }

    /// The bodies that this request was sent with.
    pub fn bodies(&self, what: &str) -> Vec<Value> {
        self.asked().into_iter().filter(|asked| asked.what == what).filter_map(|asked| asked.body).collect()
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 24).await.expect("a small body");
    let what = format!("{} {}", parts.method, parts.uri);
    let authorization = parts.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let asked = Asked {
        what: what.clone(),
        authorization: authorization.to_owned(),
        body: serde_json::from_slice(&bytes).ok(),
    };
    script.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    let reply = next(&script, &what).unwrap_or_else(|| Reply::json(404, &json!({"message": "Not Found"})));
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.body)).expect("the test wrote a valid reply")
}

/// The reply to exactly this, else to its path whatever the query.
fn next(script: &Script, what: &str) -> Option<Reply> {
    let mut replies = script.replies.lock().unwrap_or_else(PoisonError::into_inner);
    let path = what.split('?').next().unwrap_or(what).to_owned();
    let key = if replies.contains_key(what) { what.to_owned() } else { path };
    let queue = replies.get_mut(&key)?;
    if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() }
}
