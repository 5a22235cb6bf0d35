//! `POST /webhooks/{forge}`: hands the raw body to the intake and says whether it was taken.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use http::{HeaderMap, StatusCode};

use crate::app::App;
use crate::app::intake::{self, IntakeError};
use crate::ports::forge::HookError;
use crate::ports::store::Accepted;

/// 202 for a new delivery, 200 for one that we have; 400 and 401 for what is none of the forge's; 503 when it could not be stored, or when
/// no forge is set up.
pub(super) async fn receive(
    State(app): State<Arc<App>>,
    Path(forge): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    match intake::receive(&app, &forge, &headers, &body).await {
        Ok(Accepted::New) => (StatusCode::ACCEPTED, "taken\n".to_owned()),
        Ok(Accepted::Duplicate) => (StatusCode::OK, "known already\n".to_owned()),
        Err(error) => {
            let status = match &error {
                IntakeError::Hook(HookError::Forged) => StatusCode::UNAUTHORIZED,
                IntakeError::Hook(_) => StatusCode::BAD_REQUEST,
                IntakeError::UnknownForge(_) => StatusCode::NOT_FOUND,
                IntakeError::Store(_) | IntakeError::NotSetUp => StatusCode::SERVICE_UNAVAILABLE,
            };
            // Anybody can send this: its words are quoted, so that they can forge no line of the log.
            tracing::warn!(?forge, %status, error = ?error.to_string(), "delivery refused");
            (status, format!("{}\n", said(&error)))
        }
    }
}

/// What the sender is told: nothing of what it sent.
fn said(error: &IntakeError) -> String {
    match error {
        IntakeError::UnknownForge(_) => "no such forge is in the settings".to_owned(),
        other => other.to_string(),
    }
}
