//! The server's side of the job contract: each route proves the job's token first, then calls `app::reports`.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::app::reports::{self, ReportError, Upload, Wanted};
use crate::domain::ids::JobId;
use crate::domain::job::{JobLine, JobResult, JobSpec};
use crate::domain::linked::Source;
use crate::ports::store::Job;

/// A job that proved its token. No route here works without one.
pub(super) struct Authorized(Job);

impl FromRequestParts<Arc<App>> for Authorized {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Self::Rejection> {
        let id = Path::<String>::from_request_parts(parts, app).await.map_err(|_| Refused(ReportError::Unknown))?;
        let header =
            parts.headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = header.strip_prefix("Bearer ").unwrap_or_default();
        Ok(Self(reports::authorize(app, &JobId::new(id.0), token).await?))
    }
}

/// A refused call, with the status that the job acts on.
pub(super) struct Refused(ReportError);

impl From<ReportError> for Refused {
    fn from(error: ReportError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = match &self.0 {
            ReportError::Unknown => StatusCode::UNAUTHORIZED,
            ReportError::Taken => StatusCode::CONFLICT,
            ReportError::Missing(_) => StatusCode::NOT_FOUND,
            ReportError::Store(_) | ReportError::Source(_) => StatusCode::SERVICE_UNAVAILABLE,
            // No repeat opens it: the job is to fail now, and not to wait for a server that gets well.
            ReportError::NotOurs(_) => StatusCode::UNPROCESSABLE_ENTITY,
        };
        if status.is_server_error() || matches!(self.0, ReportError::NotOurs(_)) {
            tracing::error!(error = &self.0 as &dyn std::error::Error, "a job's call failed");
        }
        (status, format!("{}\n", self.0)).into_response()
    }
}

#[derive(Deserialize)]
pub(super) struct Claim {
    nonce: String,
}

pub(super) async fn claim(
    State(app): State<Arc<App>>,
    job: Authorized,
    Json(claim): Json<Claim>,
) -> Result<Json<JobSpec>, Refused> {
    Ok(Json(reports::claim(&app, &job.0, &claim.nonce).await?))
}

pub(super) async fn source(State(app): State<Arc<App>>, job: Authorized) -> Result<Bytes, Refused> {
    Ok(reports::source(&app, &job.0).await?)
}

pub(super) async fn linked(State(app): State<Arc<App>>, job: Authorized) -> Result<Json<Vec<Source>>, Refused> {
    Ok(Json(reports::linked(&app, &job.0).await?))
}

pub(super) async fn saved_plan(State(app): State<Arc<App>>, job: Authorized) -> Result<Vec<u8>, Refused> {
    Ok(reports::saved_plan(&app, &job.0).await?)
}

pub(super) async fn put_plan(State(app): State<Arc<App>>, job: Authorized, body: Bytes) -> Result<StatusCode, Refused> {
    reports::keep(&app, &job.0, Upload::Plan, &body).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn put_plan_json(
    State(app): State<Arc<App>>,
    job: Authorized,
    body: Bytes,
) -> Result<StatusCode, Refused> {
    reports::keep(&app, &job.0, Upload::PlanJson, &body).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn put_errored_state(
    State(app): State<Arc<App>>,
    job: Authorized,
    body: Bytes,
) -> Result<StatusCode, Refused> {
    reports::keep(&app, &job.0, Upload::ErroredState, &body).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn put_secrets(
    State(app): State<Arc<App>>,
    job: Authorized,
    body: Bytes,
) -> Result<StatusCode, Refused> {
    reports::keep(&app, &job.0, Upload::Secrets, &body).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn inputs(State(app): State<Arc<App>>, job: Authorized) -> Result<Vec<u8>, Refused> {
    Ok(reports::inputs(&app, &job.0).await?)
}

pub(super) async fn put_inputs(
    State(app): State<Arc<App>>,
    job: Authorized,
    body: Bytes,
) -> Result<StatusCode, Refused> {
    reports::keep(&app, &job.0, Upload::Inputs, &body).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
pub(super) struct Lines {
    lines: Vec<JobLine>,
}

#[derive(Serialize)]
pub(super) struct GoOn {
    cancel: bool,
}

pub(super) async fn lines(
    State(app): State<Arc<App>>,
    job: Authorized,
    Json(lines): Json<Lines>,
) -> Result<Json<GoOn>, Refused> {
    let wanted = reports::lines(&app, &job.0, &lines.lines).await?;
    Ok(Json(GoOn { cancel: wanted == Wanted::No }))
}

pub(super) async fn result(
    State(app): State<Arc<App>>,
    job: Authorized,
    Json(result): Json<JobResult>,
) -> Result<StatusCode, Refused> {
    reports::result(&app, &job.0, &result).await?;
    Ok(StatusCode::OK)
}
