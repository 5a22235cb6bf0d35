//! Which program works, and its calls that plans and applies share. Checks the version before anything runs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Job;
use super::checkout;
use super::failure::{Broken, Place, of_text};
use super::process::{Call, Exit, Stopping, run};
use crate::domain::config::ToolKind;
use crate::domain::job::StateLock;
use crate::domain::progress::Ended;
use crate::domain::secret::Secrets;

/// The program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Which of the two.
    pub(super) kind: ToolKind,
    /// Where it lies.
    pub(super) path: PathBuf,
}

/// A program in the directory where it works.
pub(super) struct Workplace {
    /// The program.
    pub(super) program: Program,
    /// The checkout.
    pub(super) checkout: PathBuf,
    /// The root's directory, where the program runs.
    pub(super) root: PathBuf,
}

impl Workplace {
    /// For the files that the tool names.
    pub(super) fn place<'a>(&'a self, job: &'a Job) -> Place<'a> {
        Place { checkout: &self.checkout, root: job.spec.root.dir() }
    }
}

/// Does one step: says when it starts and how it ended.
pub(super) async fn step<T>(job: &Job, name: &str, work: impl Future<Output = Result<T, Broken>>) -> Result<T, Broken> {
    if job.stop.is_wanted() {
        return Err(Broken::Stopped);
    }
    let began = Instant::now();
    job.reporter.step_started(name);
    let result = work.await.map_err(|broken| broken.at(name));
    let ended = if result.is_ok() { Ended::Well } else { Ended::Badly };
    job.reporter.step_ended(name, ended, began.elapsed());
    result
}

/// Checkout, beside which the program is found and its version checked, then `init`.
pub(super) async fn prepare(job: &Job, secrets: &Secrets) -> Result<Workplace, Broken> {
    let place = step(job, "checkout", async {
        let program = find(job)?;
        let (checkout, checked) = tokio::join!(checkout::fetch(job), check_version(job, &program));
        checked?;
        let checkout = checkout?;
        let root = checkout::root(&checkout, job.spec.root.dir())?;
        Ok(Workplace { program, checkout, root })
    })
    .await?;
    step(job, "init", init(job, &place, secrets)).await?;
    Ok(place)
}

fn find(job: &Job) -> Result<Program, Broken> {
    find_on(job.environment.get("PATH").map(String::as_str).unwrap_or_default(), job.spec.tool)
}

/// The program that is asked for, or the first that there is, on this `PATH`.
pub(super) fn find_on(path: &str, tool: Option<ToolKind>) -> Result<Program, Broken> {
    let kinds: &[ToolKind] = match &tool {
        Some(kind) => std::slice::from_ref(kind),
        None => &[ToolKind::Terraform, ToolKind::Tofu],
    };
    let on_path = |kind: &ToolKind| {
        let files = std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name(*kind)));
        files.into_iter().find(|file| is_program(file)).map(|path| Program { kind: *kind, path })
    };
    kinds.iter().find_map(on_path).ok_or_else(|| {
        let names: Vec<String> = kinds.iter().map(|kind| format!("`{}`", name(*kind))).collect();
        Broken::new(
            format!("{} is not installed where jobs run", names.join(" or ")),
            format!("PATH is `{path}`. Install it there, or choose another with `tool:` in `.tidegate.yaml`."),
        )
    })
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The program's name.
pub(super) fn name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Terraform => "terraform",
        ToolKind::Tofu => "tofu",
    }
}

async fn check_version(job: &Job, program: &Program) -> Result<(), Broken> {
    // Without a wish the version is read from the plan's own stream, which saves a process.
    let Some(wanted) = &job.spec.tool_version else { return Ok(()) };
    let installed = version(job, program).await?;
    if &installed == wanted {
        return Ok(());
    }
    let tool = name(program.kind);
    Err(Broken::new(
        format!("{tool} {wanted} is needed, {installed} is installed"),
        format!(
            "A saved plan is applied only by the version that made it, and `version:` in `.tidegate.yaml` is exact. \
             Install {tool} {wanted} where jobs run, change `version:`, or plan again with {installed}."
        ),
    ))
}

/// The installed version.
pub(super) async fn version(job: &Job, program: &Program) -> Result<String, Broken> {
    let call = Call {
        program: &program.path,
        args: vec!["version".into(), "-json".into()],
        directory: &job.directory,
        name: "version",
        stop: Stopping::Kill,
    };
    let exit = run(job, &call, &mut |_| {}).await?;
    let json: Option<serde_json::Value> = serde_json::from_slice(&json_of(&exit)?).ok();
    let version = json.as_ref().and_then(|json| json.get("terraform_version")?.as_str());
    version
        .map(str::to_owned)
        .ok_or_else(|| Broken::new(format!("`{} version -json` names no version", name(program.kind)), exit.errors()))
}

async fn init(job: &Job, place: &Workplace, secrets: &Secrets) -> Result<(), Broken> {
    let mut args: Vec<String> = ["init", "-input=false", "-no-color"].map(str::to_owned).to_vec();
    args.extend(job.spec.backend_config.iter().map(|file| format!("-backend-config={file}")));
    // A backend may be written with variables, which `tofu init` then needs as well.
    if place.program.kind == ToolKind::Tofu {
        args.extend(job.spec.var_files.iter().map(|file| format!("-var-file={file}")));
    }
    let call = Call { program: &place.program.path, args, directory: &place.root, name: "init", stop: Stopping::Kill };
    let exit = run(job, &call, &mut |line| job.reporter.log("init", &secrets.mask(line))).await?;
    log_errors(job, "init", &exit, secrets);
    if exit.ok() {
        return Ok(());
    }
    Err(ended_badly(job, place, "init", &exit))
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
    };
    let exit = run(job, &call, &mut |_| {}).await?;
    if !exit.ok() {
        return Err(ended_badly(job, place, "show", &exit));
    }
    let json = json_of(&exit)?;
    let file = job.directory.join("plan.json");
    tokio::fs::write(&file, &json).await?;
    Ok((file, json))
}

/// Standard output from its first brace on: a warning about the command line's own settings may stand before it.
fn json_of(exit: &Exit) -> Result<Vec<u8>, Broken> {
    let mut out = std::fs::read(&exit.out)?;
    let start = out.iter().position(|&byte| byte == b'{').unwrap_or(0);
    Ok(out.split_off(start))
}

/// The flag for the state's own lock.
pub(super) fn lock_flag(lock: StateLock) -> &'static str {
    match lock {
        StateLock::Off => "-lock=false",
        StateLock::Wait => "-lock-timeout=60s",
    }
}
