//! The server's side of the job contract, kept in memory, with the troubles that a test wants.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use serde_json::{Value, json};
use tidegate::domain::job::{JobEvent, JobLine, JobResult, JobSpec, ResourceState};
use tidegate::runner::RunnerError;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    EveryOther503,
    Claimed,
    CancelAtPlan,
    CancelAtProvisioner,
    LinesGone,
    StateRefused,
}

/// What the job sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    pub lines: BTreeMap<u64, JobEvent>,
    pub plan: Option<Vec<u8>>,
    pub plan_json: Option<Vec<u8>>,
    pub inputs: Option<Vec<u8>>,
    pub errored_state: Option<Vec<u8>>,
    pub result: Option<JobResult>,
}

impl Kept {
    /// `name ok` or `name failed` of each step that ended.
    pub fn steps(&self) -> Vec<String> {
        let ended = self.lines.values().filter_map(|event| match event {
            JobEvent::StepEnded { step, ok, .. } => Some(format!("{step} {}", if *ok { "ok" } else { "failed" })),
            _ => None,
        });
        ended.collect()
    }

    /// The log of a step.
    pub fn log(&self, of: &str) -> String {
        let lines = self.lines.values().filter_map(|event| match event {
            JobEvent::Log { step, line } if step == of => Some(format!("{line}\n")),
            _ => None,
        });
        lines.collect()
    }

    /// The last states of the resources.
    pub fn last_resources(&self) -> Vec<ResourceState> {
        let all = self.lines.values().rev().find_map(|event| match event {
            JobEvent::Resources { resources } => Some(resources.clone()),
            _ => None,
        });
        all.unwrap_or_default()
    }
}

/// A server with one job.
pub struct World {
    shared: Arc<Shared>,
    url: String,
}

struct Shared {
    spec: JobSpec,
    tar: Vec<u8>,
    saved: Vec<u8>,
    inputs: Option<Vec<u8>>,
    trouble: Trouble,
    calls: AtomicUsize,
    kept: Mutex<Kept>,
}

impl World {
    pub async fn start(files: &[(String, String)], spec: JobSpec, before: Option<&Kept>, trouble: Trouble) -> Self {
        let saved = before.and_then(|kept| kept.plan.clone()).unwrap_or_default();
        let shared = Arc::new(Shared {
            spec,
            tar: tar_of(files),
            saved,
            inputs: before.and_then(|kept| kept.inputs.clone()),
            trouble,
            calls: AtomicUsize::default(),
            kept: Mutex::default(),
        });
        let routes = Router::new()
            .route("/jobs/j/claim", post(claim))
            .route("/jobs/j/source", get(|State(shared): State<Arc<Shared>>| async move { shared.tar.clone() }))
            .route("/jobs/j/plan", get(saved_plan).put(keep_plan))
            .route("/jobs/j/plan.json", put(keep_json))
            .route("/jobs/j/secrets", put(|| async {}))
            .route("/jobs/j/inputs", get(inputs).put(keep_inputs))
            .route("/jobs/j/errored-state", put(keep_errored_state))
            .route("/jobs/j/lines", post(lines))
            .route("/jobs/j/result", post(result))
            .layer(from_fn_with_state(shared.clone(), gate))
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jobs/j", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { shared, url }
    }

    pub async fn run(&self, environment: &BTreeMap<String, String>) -> Result<(), RunnerError> {
        tidegate::runner::run(&self.url, "opens-one-job".into(), environment.clone()).await
    }

    pub fn kept(&self) -> Kept {
        self.shared.kept.lock().unwrap().clone()
    }
}

/// An address that takes connections and never answers.
pub async fn deaf() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            held.push(socket);
        }
    });
    url
}

/// A state backend that keeps nothing.
pub async fn forgetful_backend() -> String {
    let routes = Router::new()
        .route("/state", get(|| async { StatusCode::NOT_FOUND }).post(|| async { StatusCode::INTERNAL_SERVER_ERROR }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/state", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

fn tar_of(files: &[(String, String)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

async fn gate(State(shared): State<Arc<Shared>>, headers: HeaderMap, request: Request, next: Next) -> Response {
    if headers.get("authorization").and_then(|value| value.to_str().ok()) != Some("Bearer opens-one-job") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let odd = shared.calls.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
    if shared.trouble == Trouble::EveryOther503 && odd {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

async fn claim(State(shared): State<Arc<Shared>>, body: axum::Json<Value>) -> Response {
    assert!(body["nonce"].as_str().is_some_and(|nonce| nonce.len() >= 16));
    match shared.trouble {
        Trouble::Claimed => StatusCode::CONFLICT.into_response(),
        _ => axum::Json(&shared.spec).into_response(),
    }
}

async fn saved_plan(State(shared): State<Arc<Shared>>) -> Vec<u8> {
    shared.saved.clone()
}

async fn keep_plan(State(shared): State<Arc<Shared>>, body: Bytes) {
    shared.kept.lock().unwrap().plan = Some(body.to_vec());
}

async fn keep_json(State(shared): State<Arc<Shared>>, body: Bytes) {
    shared.kept.lock().unwrap().plan_json = Some(body.to_vec());
}

async fn inputs(State(shared): State<Arc<Shared>>) -> Response {
    shared.inputs.clone().map_or_else(|| StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response)
}

async fn keep_inputs(State(shared): State<Arc<Shared>>, body: Bytes) {
    shared.kept.lock().unwrap().inputs = Some(body.to_vec());
}

async fn keep_errored_state(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    if shared.trouble == Trouble::StateRefused {
        return StatusCode::PAYLOAD_TOO_LARGE;
    }
    shared.kept.lock().unwrap().errored_state = Some(body.to_vec());
    StatusCode::OK
}

async fn lines(State(shared): State<Arc<Shared>>, body: axum::Json<Value>) -> Response {
    if shared.trouble == Trouble::LinesGone {
        return StatusCode::GONE.into_response();
    }
    let lines: Vec<JobLine> = serde_json::from_value(body["lines"].clone()).unwrap();
    let mut kept = shared.kept.lock().unwrap();
    let wanted = |event: &JobEvent| match (shared.trouble, event) {
        (Trouble::CancelAtPlan, JobEvent::StepStarted { step }) => step == "plan",
        (Trouble::CancelAtProvisioner, JobEvent::Log { line, .. }) => line.contains("Executing"),
        _ => false,
    };
    let cancel = lines.iter().any(|line| wanted(&line.what));
    kept.lines.extend(lines.into_iter().map(|line| (line.seq, line.what)));
    axum::Json(json!({ "cancel": cancel })).into_response()
}

async fn result(State(shared): State<Arc<Shared>>, body: axum::Json<JobResult>) -> StatusCode {
    shared.kept.lock().unwrap().result = Some(body.0);
    StatusCode::OK
}
