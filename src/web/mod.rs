//! Routes: webhooks, the side of the job contract that is ours, and pages. It turns requests into calls of `app` and answers
//! into status codes; it decides nothing and knows no forge.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post, put};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};

use crate::app::App;
use crate::app::setup::Setup;

mod hook;
mod jobs;
mod pages;
mod setup;

/// Saved plans and their JSON.
const UPLOAD_LIMIT: usize = 512 << 20;

/// All routes. A webhook may have `webhook_bytes`. Without a set-up the settings say who we are.
pub fn router(app: Arc<App>, webhook_bytes: usize, setup: Option<Arc<Setup>>) -> Router {
    let hooks =
        Router::new().route("/webhooks/{forge}", post(hook::receive)).layer(DefaultBodyLimit::max(webhook_bytes));
    let jobs = Router::new()
        .route("/jobs/{id}/claim", post(jobs::claim))
        .route("/jobs/{id}/source", get(jobs::source))
        .route("/jobs/{id}/linked", get(jobs::linked))
        .route("/jobs/{id}/plan", get(jobs::saved_plan).put(jobs::put_plan))
        .route("/jobs/{id}/plan.json", put(jobs::put_plan_json))
        .route("/jobs/{id}/secrets", put(jobs::put_secrets))
        .route("/jobs/{id}/inputs", get(jobs::inputs).put(jobs::put_inputs))
        .route("/jobs/{id}/errored-state", put(jobs::put_errored_state))
        .route("/jobs/{id}/lines", post(jobs::lines))
        .route("/jobs/{id}/result", post(jobs::result))
        .layer(DefaultBodyLimit::max(UPLOAD_LIMIT));
    let pages = Router::new()
        .route("/", get(pages::home))
        .route("/healthz", get(pages::health))
        .route("/r/{id}", get(pages::rollout))
        .route("/r/{id}/report.json", get(pages::report))
        .route("/r/{id}/log/{job}", get(pages::log));
    let setup = match setup {
        Some(setup) => setup::routes(setup),
        None => setup::closed(),
    };
    hooks.merge(jobs).merge(pages).fallback(pages::nothing).with_state(app).merge(setup).layer(map_response(guard))
}

/// What a browser may do with an answer: show it, and nothing else. The address of a page holds its key, so it is sent to
/// nobody, and kept by no cache. A page that needs to be allowed more says so itself.
async fn guard(mut response: Response) -> Response {
    for (name, value) in [
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
