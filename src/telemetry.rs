//! Logs: one line per event on standard error, readable or as JSON, filtered by `TIDEGATE_LOG`. Nothing secret is ever logged;
//! what could hold a secret is masked before it reaches a log line.

use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For a terminal.
    Readable,
    /// For a log collector.
    Json,
}

/// Starts logging; a second call changes nothing. `filter` is in the form of `tracing`, e.g. `info,tidegate=debug`.
pub fn start(form: Form, filter: &str) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match form {
        Form::Readable => lines.with_target(false).compact().try_init(),
        Form::Json => lines.json().try_init(),
    };
    // Another subscriber is there already, as in tests: its lines are as good.
    drop(started);
}
