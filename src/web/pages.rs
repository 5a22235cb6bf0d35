//! Pages: a rollout with its waves, runs, steps and logs. A page opens with the key that stands in the note's links, so that
//! who can read the note can read the page. Nothing can be changed here.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;

use crate::app::App;
use crate::domain::ids::{JobId, PullKey, RepoKey, RolloutId};
use crate::domain::job::ResourceStage;
use crate::domain::pull::Pull;
use crate::domain::report;
use crate::domain::rollout::{ApplyRun, Hold, PlanRun, Rollout, RootRun, StepState};

mod waves;

#[derive(Deserialize)]
pub(super) struct Key {
    #[serde(default)]
    k: String,
}

/// Says only that the server is there.
pub(super) async fn home() -> &'static str {
    "Tidegate is running. Its notes on pull requests link to their pages.\n"
}

/// 200 while the database answers.
pub(super) async fn health(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    match app.store.next_due(app.clock.now()).await {
        Ok(_) => (StatusCode::OK, "ok\n"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"),
    }
}

#[derive(Template)]
#[template(path = "pages/rollout.html")]
struct RolloutPage {
    title: String,
    repo: String,
    number: u64,
    head: String,
    base: String,
    superseded: bool,
    moving: bool,
    waves: Vec<waves::WaveView>,
    radius: Vec<String>,
    ledger: Vec<String>,
}

struct RootView {
    name: String,
    status: &'static str,
    counts: String,
    /// Whether its plan changes something, or it reads one whose plan does.
    place: &'static str,
    reads: String,
    steps: Vec<StepView>,
    resources: Vec<ResourceView>,
    error: String,
    log: Option<String>,
}

struct StepView {
    name: String,
    mark: &'static str,
    took: String,
}

struct ResourceView {
    address: String,
    word: &'static str,
    state: &'static str,
    error: String,
}

pub(super) async fn rollout(State(app): State<Arc<App>>, Path(id): Path<String>, Query(key): Query<Key>) -> Response {
    let id = RolloutId::new(id);
    let Some(pull) = open(&app, &id, &key.k).await else { return not_found() };
    let ledger = app.store.ledger(&pull.key).await.unwrap_or_default();
    let rollouts = pull.rollout.iter().chain(&pull.retired);
    let Some(rollout) = rollouts.clone().find(|rollout| rollout.id == id).or(pull.rollout.as_ref()) else {
        return not_found();
    };
    let page = RolloutPage {
        title: pull.seen.as_ref().map(|seen| seen.title.clone()).unwrap_or_default(),
        repo: pull.repo.clone(),
        number: pull.key.number,
        head: rollout.head.short().to_owned(),
        base: rollout.base.short().to_owned(),
        superseded: rollout.id != id,
        moving: is_moving(rollout),
        waves: waves::waves(rollout, app.clock.now(), |run| root_view(run, rollout, &key.k, &id)),
        radius: waves::radius(rollout),
        ledger: ledger.into_iter().map(|(at, line)| format!("{} {line}", at.hour_minute())).collect(),
    };
    match page.render() {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The rollout for programs; a rollout that was superseded is not found, so that nobody takes another for it.
pub(super) async fn report(State(app): State<Arc<App>>, Path(id): Path<String>, Query(key): Query<Key>) -> Response {
    let id = RolloutId::new(id);
    let Some(pull) = open(&app, &id, &key.k).await else { return not_found() };
    let Some(rollout) = pull.rollout.iter().chain(&pull.retired).find(|rollout| rollout.id == id) else {
        return not_found();
    };
    Json(report::report(&pull, rollout)).into_response()
}

/// A job's log as text, masked before it was kept.
pub(super) async fn log(
    State(app): State<Arc<App>>,
    Path((id, job)): Path<(String, String)>,
    Query(key): Query<Key>,
) -> Response {
    let id = RolloutId::new(id);
    if !job.starts_with(&format!("{id}-")) || open(&app, &id, &key.k).await.is_none() {
        return not_found();
    }
    match app.store.log(&JobId::new(job), 0).await {
        Ok(lines) => {
            let mut text = String::new();
            let mut step = String::new();
            for line in lines {
                if line.step != step {
                    step.clone_from(&line.step);
                    text.push_str("── ");
                    text.push_str(&step);
                    text.push('\n');
                }
                text.push_str(&line.line);
                text.push('\n');
            }
            ([(http::header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn open(app: &App, id: &RolloutId, key: &str) -> Option<Pull> {
    if !app.pages.opens(id, key) {
        return None;
    }
    app.store.load(&pull_of(id)?).await.ok()?.pull
}

/// `<forge>-<repo>-<pull>-<n>`
fn pull_of(id: &RolloutId) -> Option<PullKey> {
    let mut parts = id.as_str().rsplitn(4, '-');
    let (_, number, repo, forge) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some(PullKey { repo: RepoKey { forge: forge.to_owned(), id: repo.parse().ok()? }, number: number.parse().ok()? })
}

/// Every address that is none of ours.
pub(super) async fn nothing() -> Response {
    not_found()
}

fn not_found() -> Response {
    (
        StatusCode::NOT_FOUND,
        "There is no such page, or its key is missing. Open it from the note of the pull request.\n",
    )
        .into_response()
}

fn is_moving(rollout: &Rollout) -> bool {
    rollout.runs.values().any(|run| {
        matches!(run.plan, PlanRun::Running { .. } | PlanRun::Queued) || matches!(run.apply, ApplyRun::Running { .. })
    })
}

fn root_view(run: &RootRun, rollout: &Rollout, key: &str, id: &RolloutId) -> RootView {
    let (status, job, error) = state_of(run);
    let resources = match &run.apply {
        ApplyRun::Running { resources, .. }
        | ApplyRun::Applied { resources, .. }
        | ApplyRun::Failed { resources, .. } => resources.clone(),
        ApplyRun::None => Vec::new(),
    };
    let reads: Vec<String> =
        rollout.edges.iter().filter(|edge| edge.reader == run.root).map(|edge| edge.source.to_string()).collect();
    RootView {
        name: run.root.to_string(),
        status,
        counts: run.planned().map(|planned| planned.plan.counts().to_string()).unwrap_or_default(),
        place: waves::place(rollout, run),
        reads: reads.join(", "),
        steps: run
            .steps
            .iter()
            .map(|step| StepView { name: step.name.clone(), mark: mark(step.state), took: took(step.took_ms) })
            .collect(),
        resources: resources
            .iter()
            .map(|resource| ResourceView {
                address: resource.address.clone(),
                word: resource.action.word(),
                state: stage_word(resource.state),
                error: resource.error.clone().unwrap_or_default(),
            })
            .collect(),
        error,
        log: job.map(|job| format!("/r/{id}/log/{job}?k={key}")),
    }
}

fn state_of(run: &RootRun) -> (&'static str, Option<JobId>, String) {
    match (&run.apply, &run.plan) {
        (ApplyRun::Running { job, .. }, _) => ("applying", Some(job.clone()), String::new()),
        (ApplyRun::Applied { job, .. }, _) => ("applied", Some(job.clone()), String::new()),
        (ApplyRun::Failed { job, failure, .. }, _) | (ApplyRun::None, PlanRun::Failed { job, failure }) => {
            ("failed", Some(job.clone()), format!("{} {}", failure.summary, failure.detail))
        }
        (_, PlanRun::Running { job, .. }) => ("planning", Some(job.clone()), String::new()),
        (_, PlanRun::Done(planned)) if planned.plan.changes_something() => {
            ("planned", Some(planned.job.clone()), String::new())
        }
        (_, PlanRun::Done(planned)) => ("no changes", Some(planned.job.clone()), String::new()),
        (_, PlanRun::Blocked(blocker)) if blocker.how != Hold::Lock => ("state not saved", None, String::new()),
        (_, PlanRun::Blocked(_)) => ("locked", None, String::new()),
        (_, PlanRun::Unread) => ("unchanged", None, String::new()),
        (_, PlanRun::AwaitsSource(_)) => ("waits", None, String::new()),
        (_, PlanRun::Dropped { .. }) => ("discarded", None, String::new()),
        (_, PlanRun::Queued) => ("queued", None, String::new()),
    }
}

fn mark(state: StepState) -> &'static str {
    match state {
        StepState::Running => "…",
        StepState::Done => "✓",
        StepState::Failed => "✗",
    }
}

fn stage_word(stage: ResourceStage) -> &'static str {
    match stage {
        ResourceStage::Pending => "pending",
        ResourceStage::Applying => "applying",
        ResourceStage::Done => "done",
        ResourceStage::Failed => "failed",
        ResourceStage::NotApplied => "not_applied",
    }
}

fn took(ms: Option<i64>) -> String {
    match ms {
        None => String::new(),
        Some(ms) if ms < 1000 => format!("{ms} ms"),
        Some(ms) if ms < 60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        Some(ms) => format!("{} m {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}
