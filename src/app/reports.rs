//! What jobs fetch and report. A job proves with its token that it is this one job; what it uploads is sealed before it is
//! kept; what it says becomes an event.

use bytes::Bytes;

use super::vault::{NotOurs, Vault};
use super::{App, mask};
use crate::domain::digest::{self, Bound};
use crate::domain::event::{Event, Outcome};
use crate::domain::ids::JobId;
use crate::domain::job::{Failure, FellBack, JobEvent, JobLine, JobResult, JobSpec, Phase, StateLeft};
use crate::domain::linked::{self, Source};
use crate::domain::packages::LOCK_FILE;
use crate::domain::plan;
use crate::domain::pull::Pull;
use crate::domain::rollout::{ApplyRun, PlanRun, Planned, Step, StepState, Tool};
use crate::domain::secret::Secrets;
use crate::ports::forge::RepoRef;
use crate::ports::source::SourceError;
use crate::ports::store::{Blob, Job, JobState, LogLine, Store, StoreError};

/// Why a job's call is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No such job, or not its token: 401.
    #[error("no such job, or not its token")]
    Unknown,
    /// Another process has it, or it ended: 409.
    #[error("another process has this job, or it ended")]
    Taken,
    /// What it asks for is not there: 404.
    #[error("not there: {0}")]
    Missing(&'static str),
    /// The database: 503.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// git: 503.
    #[error("the source failed")]
    Source(#[from] SourceError),
    /// What was kept cannot be opened, now or ever: 422.
    #[error(transparent)]
    NotOurs(#[from] NotOurs),
}

/// Kinds of kept binaries.
pub const PLAN: &str = "plan";
const PLAN_JSON: &str = "plan-json";
const ERRORED_STATE: &str = "errored-state";
pub(super) const SECRETS: &str = "secrets";
const INPUTS: &str = "inputs";

/// The job that a token opens.
pub async fn authorize(app: &App, id: &JobId, token: &str) -> Result<Job, ReportError> {
    if !app.vault.opens_job(id, token) {
        return Err(ReportError::Unknown);
    }
    app.store.job(id).await?.ok_or(ReportError::Unknown)
}

/// Lets one process have the job.
pub async fn claim(app: &App, job: &Job, nonce: &str) -> Result<JobSpec, ReportError> {
    if job.state == JobState::Ended || !app.store.claim_job(&job.spec.id, nonce, app.clock.now()).await? {
        return Err(ReportError::Taken);
    }
    Ok(job.spec.clone())
}

/// The tree to work on, as a tar.
pub async fn source(app: &App, job: &Job) -> Result<Bytes, ReportError> {
    let repo = RepoRef { key: job.pull.repo.clone(), name: job.repo.clone() };
    Ok(app.source.archive(&repo, &job.spec.tree).await?)
}

/// The saved plan that this job applies.
pub async fn saved_plan(app: &App, job: &Job) -> Result<Vec<u8>, ReportError> {
    let made_by = job.spec.plan_of.as_ref().ok_or(ReportError::Missing("this job applies no plan"))?;
    let maker = app.store.job(made_by).await?.ok_or(ReportError::Missing("the job that planned"))?;
    open(app, &maker, PLAN).await
}

/// The planned outputs that this job reads. They hold secrets in clear and are never kept anywhere else than in the sealed plan.
/// A source whose plan is not kept any more is left out: the job then reads what is applied, and says so.
pub async fn linked(app: &App, job: &Job) -> Result<Vec<Source>, ReportError> {
    let mut sources = Vec::new();
    for link in &job.spec.linked {
        let Some(maker) = app.store.job(&link.plan_of).await?.filter(|maker| maker.pull == job.pull) else { continue };
        let json = match open(app, &maker, PLAN_JSON).await {
            Err(ReportError::Missing(_)) => continue,
            opened => opened?,
        };
        match linked::source(link, &json) {
            Ok(source) => sources.push(source),
            Err(why) => tracing::warn!(job = %job.spec.id, source = %link.root, why, "planned outputs cannot be read"),
        }
    }
    Ok(sources)
}

/// What is sensitive in the roots that this job's root reads: there it has its mark, here it has lost it.
async fn upstream_secrets(app: &App, job: &Job) -> Result<Secrets, ReportError> {
    let mut secrets = Secrets::default();
    for id in &job.spec.sources {
        let Some(maker) = app.store.job(id).await?.filter(|maker| maker.pull == job.pull) else { continue };
        match open(app, &maker, PLAN_JSON).await {
            Err(ReportError::Missing(_)) => {}
            opened => secrets.extend(&Secrets::of_plan(&opened?)),
        }
    }
    for source in linked(app, job).await? {
        source.secrets.iter().for_each(|secret| secrets.add(secret));
    }
    Ok(secrets)
}

/// The names of the ephemeral variables that the plan of this job was made with.
pub async fn inputs(app: &App, job: &Job) -> Result<Vec<u8>, ReportError> {
    let made_by = job.spec.plan_of.as_ref().ok_or(ReportError::Missing("this job applies no plan"))?;
    let maker = app.store.job(made_by).await?.ok_or(ReportError::Missing("the job that planned"))?;
    open(app, &maker, INPUTS).await
}

/// Keeps something that the job uploads.
pub async fn keep(app: &App, job: &Job, kind: Upload, bytes: &[u8]) -> Result<(), ReportError> {
    // A job that ended has said what it planned, and people may have approved it: nothing takes that plan's place any more. A state
    // that could not be written is kept even of a job that was given up.
    if job.state == JobState::Ended && !matches!(kind, Upload::ErroredState) {
        return Err(ReportError::Taken);
    }
    // What a plan leaves is nothing: it would only stop others.
    if kind == Upload::ErroredState && job.spec.phase == Phase::Plan {
        return Err(ReportError::Taken);
    }
    let name = kind.as_str();
    let blob = Blob { kind: name.to_owned(), bytes: app.vault.seal(&job.spec, name, bytes) };
    app.store.put_blob(&job.spec.id, &blob).await?;
    if kind == Upload::ErroredState {
        // Not only with the job's end: that may be lost with the job, or have been made up for it before.
        let left = Event::StateLeft { job: job.spec.id.clone(), root: job.spec.root.clone() };
        app.store.enqueue(&[(job.pull.clone(), left)], app.clock.now()).await?;
        app.ring();
    }
    Ok(())
}

/// The state that a job left, opened. Only for whoever has the installation's key and its database.
pub async fn errored_state(store: &dyn Store, vault: &Vault, id: &JobId) -> Result<Vec<u8>, ReportError> {
    let job = store.job(id).await?.ok_or(ReportError::Missing("a job of this id"))?;
    let blob = store.blob(id, ERRORED_STATE).await?.ok_or(ReportError::Missing("a state that this job left"))?;
    Ok(vault.open(&job.spec, ERRORED_STATE, &blob.bytes)?)
}

/// What a job uploads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upload {
    /// The saved plan.
    Plan,
    /// `show -json` of it.
    PlanJson,
    /// `errored.tfstate`.
    ErroredState,
    /// The values that no text may show.
    Secrets,
    /// The names of the ephemeral variables that it was planned with.
    Inputs,
}

impl Upload {
    fn as_str(self) -> &'static str {
        match self {
            Upload::Plan => PLAN,
            Upload::PlanJson => PLAN_JSON,
            Upload::ErroredState => ERRORED_STATE,
            Upload::Secrets => SECRETS,
            Upload::Inputs => INPUTS,
        }
    }
}

pub(super) async fn open(app: &App, job: &Job, kind: &'static str) -> Result<Vec<u8>, ReportError> {
    let blob = app.store.blob(&job.spec.id, kind).await?.ok_or(ReportError::Missing(kind))?;
    Ok(app.vault.open(&job.spec, kind, &blob.bytes)?)
}

/// Whether the job should go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Yes.
    Yes,
    /// Nobody waits for it any more: a plan stops, an apply never does.
    No,
}

/// Takes lines: log, steps, resources; and a sign of life.
pub async fn lines(app: &App, job: &Job, lines: &[JobLine]) -> Result<Wanted, ReportError> {
    let id = &job.spec.id;
    let now = app.clock.now();
    app.store.touch_job(id, now).await?;
    let known = mask::of_repository(app, job).await?;
    let log: Vec<LogLine> = lines
        .iter()
        .filter_map(|line| match &line.what {
            JobEvent::Log { step, line: text } => Some(LogLine {
                seq: i64::try_from(line.seq).unwrap_or(i64::MAX),
                step: step.clone(),
                line: known.mask(text),
            }),
            _ => None,
        })
        .collect();
    if !log.is_empty() {
        app.store.append_log(id, &log).await?;
    }
    if let Some(progress) = progress(id, lines, &known) {
        app.store.enqueue(&[(job.pull.clone(), progress)], now).await?;
        app.ring();
    }
    let pull = app.store.load(&job.pull).await?.pull;
    Ok(if job.spec.phase == Phase::Apply || pull.is_some_and(|pull| waits_for(&pull, id)) {
        Wanted::Yes
    } else {
        Wanted::No
    })
}

fn progress(job: &JobId, lines: &[JobLine], known: &Secrets) -> Option<Event> {
    let mut steps: Vec<Step> = Vec::new();
    let mut resources = Vec::new();
    for line in lines {
        match &line.what {
            JobEvent::StepStarted { step } => {
                steps.push(Step { name: step.clone(), state: StepState::Running, took_ms: None });
            }
            JobEvent::StepEnded { step, ok, took_ms } => {
                let state = if *ok { StepState::Done } else { StepState::Failed };
                steps.push(Step { name: step.clone(), state, took_ms: Some(*took_ms) });
            }
            JobEvent::Resources { resources: all } => resources = mask::resources(all, known),
            JobEvent::Log { .. } => {}
        }
    }
    (!steps.is_empty() || !resources.is_empty()).then(|| Event::Progress { job: job.clone(), steps, resources })
}

/// Whether a run of the pull waits for this job.
pub fn waits_for(pull: &Pull, job: &JobId) -> bool {
    pull.rollout.iter().chain(&pull.retired).flat_map(|rollout| rollout.runs.values()).any(|run| {
        matches!(&run.plan, PlanRun::Running { job: known, .. } if known == job)
            || matches!(&run.apply, ApplyRun::Running { job: known, .. } if known == job)
    })
}

/// Takes the result, once.
pub async fn result(app: &App, job: &Job, result: &JobResult) -> Result<(), ReportError> {
    // Other roots may have been planned since the job began.
    app.known.invalidate(&job.spec.id).await;
    let known = mask::of_repository(app, job).await?;
    let outcome = match result {
        JobResult::Planned { tool, fell_back } => planned(app, job, tool, (&known, fell_back)).await?,
        JobResult::Applied { resources } => Outcome::Applied(mask::resources(resources, &known)),
        JobResult::Stale { failure } => Outcome::Stale(mask::failure(failure, &known)),
        JobResult::Failed { failure, resources, errored_state } => Outcome::Failed {
            failure: mask::failure(failure, &known),
            resources: mask::resources(resources, &known),
            errored_state: errored_state.clone(),
        },
        JobResult::Canceled => Outcome::Canceled,
    };
    end(app, job, outcome).await?;
    Ok(())
}

/// Ends a job, once; whoever comes second changes nothing.
pub async fn end(app: &App, job: &Job, outcome: Outcome) -> Result<(), StoreError> {
    let id = job.spec.id.clone();
    let event = Event::JobEnded { job: id.clone(), outcome: Box::new(outcome) };
    app.store.end_job(&id, &(job.pull.clone(), event), app.clock.now()).await?;
    app.ring();
    Ok(())
}

/// The lock file of the root, as it was committed.
async fn lock_file(app: &App, job: &Job) -> Result<Option<String>, ReportError> {
    let repo = RepoRef { key: job.pull.repo.clone(), name: job.repo.clone() };
    let path = match job.spec.root.dir() {
        "." => LOCK_FILE.to_owned(),
        dir => format!("{dir}/{LOCK_FILE}"),
    };
    let bytes = app.source.read(&repo, &job.spec.tree, &path).await?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads the uploaded plan; the digest is made here, because the job has no key.
async fn planned(
    app: &App,
    job: &Job,
    tool: &Tool,
    (abroad, fell_back): (&Secrets, &[FellBack]),
) -> Result<Outcome, ReportError> {
    let now = app.clock.now();
    let json = open(app, job, PLAN_JSON).await?;
    app.store.blob(&job.spec.id, PLAN).await?.ok_or(ReportError::Missing(PLAN))?;
    let bound = Bound { root: &job.spec.root, tool, source: &job.spec.source, args: &job.spec.args };
    let mut known = match open(app, job, SECRETS).await {
        Ok(bytes) => Secrets::from_bytes(&bytes),
        Err(ReportError::Missing(_)) => Secrets::default(),
        Err(error) => return Err(error),
    };
    known.extend(abroad);
    known.extend(&upstream_secrets(app, job).await?);
    let lock_file = lock_file(app, job).await?;
    let read = plan::parse_knowing(&json, &known).and_then(|mut plan| {
        plan.traces = plan::trace::traces(&json, lock_file.as_deref(), tool.kind);
        Ok((plan, digest::of_plan(&json, &bound, &app.vault.digest_key())?))
    });
    Ok(match read {
        Ok((plan, digest)) => Outcome::Planned(Planned {
            job: job.spec.id.clone(),
            plan,
            digest,
            tool: tool.clone(),
            at: now,
            took_ms: 0,
            fell_back: mask::fallen_back(fell_back, &known),
            since: None,
        }),
        Err(error) => Outcome::Failed {
            failure: Failure {
                step: "show".to_owned(),
                summary: "The plan cannot be read".to_owned(),
                detail: error.to_string(),
                ..Failure::default()
            },
            resources: Vec::new(),
            errored_state: StateLeft::Nothing,
        },
    })
}
