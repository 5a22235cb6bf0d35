//! A state backend over http, as the tools speak to one, with the troubles that a story wants. It keeps states in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

/// A running backend.
pub struct Backend {
    url: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    states: BTreeMap<String, Bytes>,
    locks: BTreeMap<String, Bytes>,
    refuses: bool,
}

impl Backend {
    pub async fn start() -> Self {
        let shared: Arc<Mutex<Shared>> = Arc::default();
        let routes = Router::new().route("/{name}", any(answer)).with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, shared }
    }

    /// The `terraform` block of a root whose state lies here under `name`.
    pub fn block(&self, name: &str) -> String {
        let at = format!("{}/{name}", self.url);
        format!(
            "terraform {{\n  backend \"http\" {{\n    address        = \"{at}\"\n    lock_address   = \"{at}\"\n    unlock_address = \"{at}\"\n    retry_max      = 0\n  }}\n}}\n"
        )
    }

    /// From now on it answers 500 to whoever wants to write.
    pub fn refuse_writes(&self) {
        self.shared.lock().unwrap().refuses = true;
    }

    /// And no longer.
    pub fn take_writes(&self) {
        self.shared.lock().unwrap().refuses = false;
    }

    /// Locks a state, as somebody else would.
    pub fn lock(&self, name: &str, info: &str) {
        self.shared.lock().unwrap().locks.insert(name.to_owned(), Bytes::from(info.to_owned()));
    }

    pub fn state(&self, name: &str) -> String {
        let shared = self.shared.lock().unwrap();
        shared.states.get(name).map(|state| String::from_utf8_lossy(state).into_owned()).unwrap_or_default()
    }
}

async fn answer(
    State(shared): State<Arc<Mutex<Shared>>>,
    Path(name): Path<String>,
    method: Method,
    body: Bytes,
) -> Response {
    let mut shared = shared.lock().unwrap();
    match method.as_str() {
        "GET" => match shared.states.get(&name) {
            Some(state) => state.clone().into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        "POST" if shared.refuses => {
            (StatusCode::INTERNAL_SERVER_ERROR, "the disk of the backend is full").into_response()
        }
        "POST" => {
            shared.states.insert(name, body);
            StatusCode::OK.into_response()
        }
        "LOCK" => match shared.locks.get(&name) {
            Some(held) => (StatusCode::LOCKED, held.clone()).into_response(),
            None => {
                shared.locks.insert(name, body);
                StatusCode::OK.into_response()
            }
        },
        "UNLOCK" => {
            shared.locks.remove(&name);
            StatusCode::OK.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}
