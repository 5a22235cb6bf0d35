//! What a job says is masked once more by what other roots of its repository know to be secret: a job never learns their
//! values, and a value that crosses a state bears no mark. It keeps nothing in clear for longer than some minutes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::App;
use super::reports::{self, ReportError, SECRETS};
use crate::domain::ids::JobId;
use crate::domain::job::{Failure, FellBack, ResourceState};
use crate::domain::pull::Pull;
use crate::domain::rollout::{Planned, RootRun};
use crate::domain::secret::Secrets;
use crate::ports::store::{Job, JobState};

/// The values of the newest plan of each other root of the job's repository. Gathered once for a job.
pub(super) async fn of_repository(app: &App, job: &Job) -> Result<Arc<Secrets>, ReportError> {
    if let Some(known) = app.known.get(&job.spec.id).await {
        return Ok(known);
    }
    let mut secrets = Secrets::default();
    let mut seen = BTreeSet::new();
    for pull in app.store.pulls().await?.iter().filter(|pull| pull.key.repo == job.pull.repo) {
        for (run, planned) in plans(pull) {
            if run.root == job.spec.root || !seen.insert(run.root.clone()) {
                continue;
            }
            let told = told(app, &planned.job).await?;
            secrets.extend_from_abroad(&told);
        }
    }
    let secrets = Arc::new(secrets);
    app.known.insert(job.spec.id.clone(), Arc::clone(&secrets)).await;
    Ok(secrets)
}

/// What a job that planned told of its secrets. Once it ended nothing changes that any more.
async fn told(app: &App, planner: &JobId) -> Result<Arc<Secrets>, ReportError> {
    if let Some(told) = app.told.get(planner).await {
        return Ok(told);
    }
    let Some(maker) = app.store.job(planner).await? else { return Ok(Arc::default()) };
    let told = match reports::open(app, &maker, SECRETS).await {
        Ok(bytes) => Arc::new(Secrets::from_bytes(&bytes)),
        // Sealed with an older key, or made before there were any: it cannot be used, and must not stop the job.
        Err(ReportError::Missing(_) | ReportError::NotOurs(_)) => return Ok(Arc::default()),
        Err(error) => return Err(error),
    };
    if maker.state == JobState::Ended {
        app.told.insert(planner.clone(), Arc::clone(&told)).await;
    }
    Ok(told)
}

fn plans(pull: &Pull) -> impl Iterator<Item = (&RootRun, &Planned)> {
    let runs = pull.rollout.iter().chain(&pull.retired).flat_map(|rollout| rollout.runs.values());
    runs.filter_map(|run| Some((run, run.planned().or(run.previous.as_ref())?)))
}

/// Resources as they may be kept.
pub(super) fn resources(resources: &[ResourceState], known: &Secrets) -> Vec<ResourceState> {
    let mask = |resource: &ResourceState| ResourceState {
        address: known.mask(&resource.address),
        error: resource.error.as_deref().map(|error| known.mask(error)),
        ..resource.clone()
    };
    resources.iter().map(mask).collect()
}

/// Why a root is planned on applied values, as it may be kept: the reason may quote the tool.
pub(super) fn fallen_back(sources: &[FellBack], known: &Secrets) -> Vec<FellBack> {
    sources.iter().map(|one| FellBack { source: one.source.clone(), why: known.mask(&one.why) }).collect()
}

/// A failure as it may be kept.
pub(super) fn failure(failure: &Failure, known: &Secrets) -> Failure {
    let mask = |text: &str| known.mask(text);
    Failure {
        summary: mask(&failure.summary),
        detail: mask(&failure.detail),
        code: failure.code.as_deref().map(mask),
        address: failure.address.as_deref().map(mask),
        others: failure.others.iter().map(|text| mask(text)).collect(),
        ..failure.clone()
    }
}
