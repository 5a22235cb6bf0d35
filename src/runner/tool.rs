//! The calls of the tool that plans and applies share: `init` and `show`, each in the checkout of the root.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Job;
use super::checkout;
use super::declared;
use super::environment;
use super::failure::{Broken, Place, of_text};
use super::packages;
use super::process::{Call, Exit, Stopping, run, run_with};
use super::program::{self, Program, name};
use super::saved;
use crate::domain::config::ToolKind;
use crate::domain::job::StateLock;
use crate::domain::progress::Ended;
use crate::domain::secret::{Declared, Secrets};

/// A program in the directory where it works.
pub(super) struct Workplace {
    /// The program.
    pub(super) program: Program,
    /// The checkout.
    pub(super) checkout: PathBuf,
    /// The root's directory, where the program runs.
    pub(super) root: PathBuf,
    /// What the checkout calls sensitive.
    pub(super) declared: Declared,
}

impl Workplace {
    /// For the files that the tool names.
    pub(super) fn place<'a>(&'a self, job: &'a Job) -> Place<'a> {
        Place { checkout: &self.checkout, root: job.spec.root.dir() }
    }

    /// The environment of a call that changes nothing.
    pub(super) fn environment(&self, job: &Job) -> BTreeMap<String, String> {
        if packages::may_start_any(&self.root) {
            return job.environment.clone();
        }
        environment::of_the_tool_alone(&job.environment)
    }
}

/// Does one step: says when it starts and how it ended.
pub(super) async fn step<T>(job: &Job, name: &str, work: impl Future<Output = Result<T, Broken>>) -> Result<T, Broken> {
    if job.stop.is_wanted() {
        return Err(job.late(Broken::Stopped, name).at(name));
    }
    let began = Instant::now();
    job.reporter.step_started(name);
    let result = work.await.map_err(|broken| job.late(broken, name).at(name));
    let ended = if result.is_ok() { Ended::Well } else { Ended::Badly };
    job.reporter.step_ended(name, ended, began.elapsed());
    result
}

/// Checkout, beside which the program is found and its version checked, then `init`.
pub(super) async fn prepare(job: &Job, secrets: &mut Secrets) -> Result<Workplace, Broken> {
    let place = step(job, "checkout", async {
        let (program, checkout, plan) = tokio::join!(program::find(job), checkout::fetch(job), saved::fetch(job));
        let (program, checkout) = (program?, checkout?);
        let root = checkout::root(&checkout, job.spec.root.dir())?;
        saved::take_over(&plan?, &root)?;
        let declared = declared::read(&job.spec, &job.environment, &checkout, &root);
        Ok(Workplace { program, checkout, root, declared })
    })
    .await?;
    secrets.extend(place.declared.secrets());
    step(job, "init", init(job, &place, secrets)).await?;
    Ok(place)
}

async fn init(job: &Job, place: &Workplace, secrets: &Secrets) -> Result<(), Broken> {
    let exit = match packages::offer(job, &place.program, &place.root).await {
        None => call_init(job, place, &job.environment, secrets).await?,
        Some(offer) => {
            job.reporter.log("init", &format!("From the provider store: {}", offer.names()));
            let exit = call_init(job, place, &offer.environment, secrets).await?;
            if exit.ok() || exit.interrupted || !exit.errors().contains("provider") {
                exit
            } else {
                offer.take_back(&place.root)?;
                job.reporter.log("init", "Once more, without the provider store.");
                call_init(job, place, &job.environment, secrets).await?
            }
        }
    };
    if exit.ok() { Ok(()) } else { Err(ended_badly(job, place, "init", &exit)) }
}

async fn call_init(
    job: &Job,
    place: &Workplace,
    environment: &BTreeMap<String, String>,
    secrets: &Secrets,
) -> Result<Exit, Broken> {
    let mut args: Vec<String> = ["init", "-input=false", "-no-color"].map(str::to_owned).to_vec();
    args.extend(job.spec.backend_config.iter().map(|file| format!("-backend-config={file}")));
    // A backend may be written with variables, which `tofu init` then needs as well.
    if place.program.kind == ToolKind::Tofu {
        args.extend(job.spec.var_files.iter().map(|file| format!("-var-file={file}")));
    }
    let call = Call {
        program: &place.program.path,
        args,
        directory: &place.root,
        name: "init",
        stop: Stopping::Kill,
        room: 0,
    };
    // `init` starts no provider.
    let environment = environment::of_the_tool_alone(environment);
    let exit = run_with(job, &call, &environment, &mut |line| job.reporter.log("init", &secrets.mask(line))).await?;
    log_errors(job, "init", &exit, secrets);
    Ok(exit)
}

/// Puts standard error into the step's log.
pub(super) fn log_errors(job: &Job, step: &str, exit: &Exit, secrets: &Secrets) {
    job.reporter.log(step, &secrets.mask(&exit.errors()));
}

/// Why a command that says no JSON failed.
pub(super) fn ended_badly(job: &Job, place: &Workplace, step: &str, exit: &Exit) -> Broken {
    if exit.interrupted {
        return Broken::Stopped;
    }
    let errors = exit.errors();
    let failure = of_text(step, &place.place(job), &errors);
    let unknown = || Broken::new(format!("`{} {step}` {}", name(place.program.kind), exit.how()), tail(&errors));
    failure.map_or_else(unknown, Broken::of)
}

/// The last part of a text, where the reason usually stands.
pub(super) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// What `show -json` says of the plan file; also kept in the file whose path is returned.
pub(super) async fn show(job: &Job, place: &Workplace, plan: &Path) -> Result<(PathBuf, Vec<u8>), Broken> {
    let call = Call {
        program: &place.program.path,
        args: vec!["show".into(), "-json".into(), "-no-color".into(), plan.display().to_string()],
        directory: &place.root,
        name: "show",
        stop: Stopping::Kill,
        room: 0,
    };
    let exit = run_with(job, &call, &place.environment(job), &mut |_| {}).await?;
    if !exit.ok() {
        return Err(ended_badly(job, place, "show", &exit));
    }
    let json = json_of(&exit)?;
    let file = job.directory.join("plan.json");
    tokio::fs::write(&file, &json).await?;
    Ok((file, json))
}

/// What `show -json` says of the state: of the file that is left when it could not be saved, else of the backend's. Empty
/// when there is none to be had.
pub(super) async fn show_state(job: &Job, place: &Workplace, left: &Path) -> Vec<u8> {
    let mut args: Vec<String> = vec!["show".into(), "-json".into(), "-no-color".into()];
    args.extend(left.is_file().then(|| left.display().to_string()));
    let call = Call {
        program: &place.program.path,
        args,
        directory: &place.root,
        name: "state",
        stop: Stopping::Patience,
        room: 0,
    };
    match run(job, &call, &mut |_| {}).await {
        Ok(exit) if exit.ok() => json_of(&exit).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Standard output from its first brace on: a warning about the command line's own settings may stand before it.
fn json_of(exit: &Exit) -> Result<Vec<u8>, Broken> {
    let mut out = std::fs::read(&exit.out)?;
    let start = out.iter().position(|&byte| byte == b'{').unwrap_or(0);
    Ok(out.split_off(start))
}

/// The flag for the state's own lock.
pub(super) fn lock_flag(lock: StateLock, patience: Duration) -> String {
    match lock {
        StateLock::Off => "-lock=false".to_owned(),
        StateLock::Wait => format!("-lock-timeout={}s", patience.as_secs()),
    }
}
