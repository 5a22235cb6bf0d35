//! An apply job: exactly the saved plan, followed resource by resource. It is never killed and interrupted at most once;
//! whatever the tool could not save is uploaded before the job ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Job;
use super::environment;
use super::failure::{Broken, failure, of_errors};
use super::plan::log_diagnostic;
use super::process::{Call, Exit, Stopping, run_with};
use super::program;
use super::saved;
use super::tool::{self, Workplace, step};
use crate::domain::config::ToolKind;
use crate::domain::job::{Failure, JobResult, ResourceStage, ResourceState, StateLeft};
use crate::domain::plan::{self, Action, Plan};
use crate::domain::progress::{Diagnostic, Ended, Follower, Line, Moved, What};
use crate::domain::secret::Secrets;

const ERRORED: &str = "errored.tfstate";
const BETWEEN_RESOURCES: Duration = Duration::from_millis(200);
const LONGEST_ERROR: usize = 4 * 1024;
/// What is kept free for the words of an apply: its last ones may be the state itself, when no file takes it.
const ROOM: u64 = 16 << 20;
/// The most errors and warnings that are held until the end.
const MOST_DIAGNOSTICS: usize = 1000;

/// Applies.
pub(super) async fn run(job: &Job, secrets: &mut Secrets) -> Result<JobResult, Broken> {
    let place = tool::prepare(job, secrets).await?;
    keeps_its_state(job, &place).map_err(|broken| broken.at("init"))?;
    let file = saved::file(job);
    let shown = step(job, "show", async {
        let (_, json) = tool::show(job, &place, &file).await?;
        secrets.add_plan(&json, &place.declared);
        let plan = plan::parse(&json).map_err(|error| {
            Broken::new("The saved plan cannot be applied", format!("{error}. Plan the pull request again."))
        })?;
        Ok((plan, json))
    });
    let (plan, json) = shown.await?;
    if job.stop.is_wanted() {
        return Err(Broken::Stopped);
    }
    let began = Instant::now();
    job.reporter.step_started("apply");
    let result = apply(job, &place, &Saved { file, plan, json }, secrets).await;
    let ended = if matches!(result, Ok(JobResult::Applied { .. })) { Ended::Well } else { Ended::Badly };
    job.reporter.step_ended("apply", ended, began.elapsed());
    result.map_err(|broken| broken.at("apply"))
}

/// A saved plan.
struct Saved {
    file: PathBuf,
    plan: Plan,
    json: Vec<u8>,
}

async fn apply(job: &Job, place: &Workplace, saved: &Saved, secrets: &mut Secrets) -> Result<JobResult, Broken> {
    // Not ours if it came with the commit; the checkout is private, so it may go.
    let left = place.root.join(ERRORED);
    if left.symlink_metadata().is_ok() {
        std::fs::remove_file(&left)?;
    }
    let environment = environment_of(job, place, saved).await?;
    let Followed { follower, told, dumped, exit } = follow(job, place, saved, (&environment, secrets)).await;
    let left = rescued(job, left, dumped.as_deref());
    if !exit.as_ref().is_ok_and(Exit::ok) {
        // An error may quote what was made a moment ago, and no plan knew.
        secrets.add_plan(&tool::show_state(job, place, &left).await, &place.declared);
    }
    for diagnostic in &told {
        log_diagnostic(job, "apply", diagnostic, secrets);
    }
    if let Ok(exit) = &exit {
        tool::log_errors(job, "apply", exit, secrets);
    }
    let left = keep_errored_state(job, &left, dumped, secrets).await;
    Ok(conclude(job, place, follower, exit, &left, secrets))
}

/// What the tool sees: the variables as they were when it planned.
async fn environment_of(job: &Job, place: &Workplace, saved: &Saved) -> Result<BTreeMap<String, String>, Broken> {
    let environment = match place.program.kind {
        ToolKind::Terraform => job.environment.clone(),
        ToolKind::Tofu => environment::as_planned(&job.environment, &saved.json),
    };
    let ephemeral = environment::ephemeral(&saved.json);
    if ephemeral.is_empty() {
        return Ok(environment);
    }
    // A plan of an earlier version has no record of them.
    let Some(planned) = job.server.inputs().await? else { return Ok(environment) };
    environment::with_ephemeral(environment, &ephemeral, &planned).map_err(|missing| {
        let names: Vec<String> = missing.iter().map(|name| format!("`TF_VAR_{name}`")).collect();
        Broken::new(
            format!("The plan was made with {}, which jobs do not have any more", names.join(", ")),
            "An ephemeral variable is in no plan and has to be given again. Nothing was applied. Set it in the environment of the \
             server again (`executor.env` says which names pass) and apply, or plan again without it.",
        )
    })
}

/// Runs the apply and follows it. What goes wrong is said by the tool at its very end, and is told only afterwards.
async fn follow(
    job: &Job,
    place: &Workplace,
    saved: &Saved,
    (environment, secrets): (&BTreeMap<String, String>, &Secrets),
) -> Followed {
    let mut follower = Follower::new(&saved.plan);
    let (mut told, mut dumped): (Vec<Diagnostic>, Option<String>) = (Vec::new(), None);
    job.reporter.resources(masked(follower.resources(), secrets));
    let call = Call {
        program: &place.program.path,
        args: arguments(job, place, saved),
        directory: &place.root,
        name: "apply",
        stop: Stopping::Patience,
        room: ROOM,
    };
    let mut last = Instant::now();
    let exit = run_with(job, &call, environment, &mut |line| {
        let Some(line) = Line::parse(line) else { return job.reporter.log("apply", &secrets.mask(line)) };
        match &line.what {
            What::Diagnostic(diagnostic) if told.len() < MOST_DIAGNOSTICS => told.push(diagnostic.clone()),
            What::Diagnostic(_) => {}
            What::StateDump(state) => dumped = Some(state.clone()),
            _ => job.reporter.log("apply", &secrets.mask(line.spoken())),
        }
        if follower.take(&line) == Moved::Yes && last.elapsed() >= BETWEEN_RESOURCES {
            last = Instant::now();
            job.reporter.resources(masked(follower.resources(), secrets));
        }
    })
    .await;
    Followed { follower, told, dumped, exit }
}

/// An apply that ended.
struct Followed {
    follower: Follower,
    told: Vec<Diagnostic>,
    /// The state in its words.
    dumped: Option<String>,
    exit: Result<Exit, Broken>,
}

/// Where the state lies that could not be saved: where the tool puts it, or, if that failed as well, where its last words are put here.
fn rescued(job: &Job, left: PathBuf, dumped: Option<&str>) -> PathBuf {
    // A file of that name may be there even so, empty or cut.
    let Some(state) = dumped else { return left };
    let own = job.directory.join(ERRORED);
    if std::fs::write(&own, state).is_ok() { own } else { left }
}

/// How it ended. Something may have changed by now, so nothing fails here any more.
fn conclude(
    job: &Job,
    place: &Workplace,
    mut follower: Follower,
    exit: Result<Exit, Broken>,
    left: &StateLeft,
    secrets: &Secrets,
) -> JobResult {
    let ok = exit.as_ref().is_ok_and(Exit::ok);
    let errors = follower.errors().to_vec();
    let rest = follower.finish(if ok { Ended::Well } else { Ended::Badly });
    let resources = masked(follower.resources(), secrets);
    job.reporter.resources(resources.clone());
    if ok && *left == StateLeft::Nothing {
        return JobResult::Applied { resources };
    }
    let interrupted = exit.as_ref().is_ok_and(|exit| exit.interrupted);
    let why = match exit {
        Ok(exit) => how(job, place, &exit),
        Err(Broken::Failed(failure)) => *failure,
        Err(Broken::Stopped) => Failure::default(),
    };
    let mut main = of_errors("apply", &place.place(job), &in_order(&rest, &errors)).unwrap_or(why);
    let tool = program::name(place.program.kind);
    main = super::locked::explained(main, &super::locked::Attempt { began: job.began, tool, root: &job.spec.root });
    if interrupted {
        main.others.insert(0, format!("{}: {}", main.summary, main.detail));
        main.summary = "The apply was interrupted".to_owned();
        main.detail = "What had started was finished or is marked failed; the rest was not applied.".to_owned();
    }
    if let StateLeft::At(path) = left {
        main.others.insert(0, format!("`{ERRORED}` could not be uploaded; it lies at `{path}` where the job ran"));
    }
    let main = super::disk::explained(main, &job.directory);
    let stale = is_stale(&errors) && *left == StateLeft::Nothing && resources.iter().all(untouched);
    let failure = failure(Broken::of(main).at("apply"), secrets);
    if stale {
        return JobResult::Stale { failure };
    }
    JobResult::Failed { failure, resources, errored_state: left.clone() }
}

/// The run's own errors first, then those that belong to a resource.
fn in_order(rest: &[Diagnostic], all: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut errors = rest.to_vec();
    errors.extend(all.iter().filter(|error| !rest.contains(error)).cloned());
    errors
}

fn how(job: &Job, place: &Workplace, exit: &Exit) -> Failure {
    let said = super::failure::of_text("apply", &place.place(job), &exit.errors()).filter(|_| !exit.was_killed());
    said.unwrap_or_else(|| {
        let lost =
            "What it had begun may exist without standing in the state: look there before the next plan is applied.";
        let (tail, killed) = (tool::tail(&exit.errors()), exit.was_killed());
        Failure {
            step: "apply".to_owned(),
            summary: format!("`{} apply` {}", program::name(place.program.kind), exit.how()),
            detail: if killed { format!("{lost}\n{tail}") } else { tail },
            ..Failure::default()
        }
    })
}

fn is_stale(errors: &[Diagnostic]) -> bool {
    errors.iter().any(|error| {
        error.summary.contains("Saved plan is stale") || error.summary.contains("does not match the given state")
    })
}

fn untouched(resource: &ResourceState) -> bool {
    resource.state == ResourceStage::NotApplied
}

fn masked(resources: &[ResourceState], secrets: &Secrets) -> Vec<ResourceState> {
    let mut resources = resources.to_vec();
    for resource in &mut resources {
        let clean = |error: &String| super::failure::readable(&secrets.mask(error), LONGEST_ERROR);
        resource.error = resource.error.as_ref().map(clean);
        resource.address = secrets.mask(&resource.address);
    }
    resources
}

/// Uploads the state that the tool could not save. If that fails the job's directory is left where it is.
async fn keep_errored_state(job: &Job, left: &Path, dumped: Option<String>, secrets: &Secrets) -> StateLeft {
    let (sent, place) = match dumped {
        // The tool could write no file; its output has the state as well.
        Some(state) => (job.server.put_bytes("errored-state", state.into()).await, job.directory.join("apply.out")),
        None if left.is_file() => (job.server.put("errored-state", left).await, left.to_owned()),
        None => return StateLeft::Nothing,
    };
    let Err(broken) = sent else { return StateLeft::Kept };
    job.keeps.store(true, Ordering::SeqCst);
    let why = failure(broken, secrets);
    job.reporter.log("apply", &format!("`{ERRORED}` could not be uploaded: {} {}", why.summary, why.detail));
    StateLeft::At(place.display().to_string())
}

fn arguments(job: &Job, place: &Workplace, saved: &Saved) -> Vec<String> {
    let mut args: Vec<String> = vec!["apply".into(), "-json".into(), "-input=false".into()];
    args.push(tool::lock_flag(job.spec.state_lock, job.limits.lock));
    if !environment::ephemeral(&saved.json).is_empty() {
        // Their values are in no plan file: they must be given again, exactly as they were.
        args.extend(job.spec.var_files.iter().map(|file| format!("-var-file={file}")));
        args.extend(
            job.spec.args.iter().filter(|arg| arg.starts_with("-var=") || arg.starts_with("-var-file=")).cloned(),
        );
    }
    let forgets = saved.plan.changes.iter().any(|change| change.action == Action::Forget);
    if place.program.kind == ToolKind::Tofu && forgets && job.spec.args.iter().any(|arg| arg == "-destroy") {
        // Otherwise a destroy that did everything it should ends with exit code 1.
        args.push("-suppress-forget-errors".into());
    }
    args.push(saved.file.display().to_string());
    args
}

/// A state that lies in the job's own directory would vanish with it, and everything that was applied be orphaned.
fn keeps_its_state(job: &Job, place: &Workplace) -> Result<(), Broken> {
    let record = std::fs::read(place.root.join(".terraform/terraform.tfstate")).unwrap_or_default();
    let record: Value = serde_json::from_slice(&record).unwrap_or_default();
    let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = text("/backend/type").unwrap_or("local");
    let path = match job.spec.root.workspace() {
        "default" => text("/backend/config/path"),
        _ => text("/backend/config/workspace_dir"),
    };
    let whole = place.root.join(path.unwrap_or("terraform.tfstate"));
    let lost =
        kind == "local" && (path.is_none_or(|path| Path::new(path).is_relative()) || whole.starts_with(&job.directory));
    if !lost {
        return Ok(());
    }
    Err(Broken::new(
        format!("The state of `{}` would be lost", job.spec.root),
        format!(
            "Its state is the local file `{}`, which lies in the job's own directory and vanishes with it. Give the root a \
             remote `backend`, or an absolute `path` that outlives the job.",
            path.unwrap_or("terraform.tfstate")
        ),
    ))
}
