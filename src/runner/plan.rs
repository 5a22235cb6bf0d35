//! A plan job: `init`, `plan`, `show`, upload. A plan that failed uploads nothing.

use std::path::Path;

use super::Job;
use super::environment;
use super::failure::{Broken, of_errors};
use super::linked;
use super::process::{Call, Stopping, run_with};
use super::program;
use super::report::MOST_LINES_PER_STEP;
use super::saved;
use super::tool::{self, Workplace, step};
use crate::domain::job::{JobResult, StateLock};
use crate::domain::progress::{Diagnostic, Line, What};
use crate::domain::rollout::Tool;
use crate::domain::secret::Secrets;

/// Errors and warnings that are held beyond the most lines.
const MOST_LATE: usize = 1_000;

/// Plans.
pub(super) async fn run(job: &Job, secrets: &mut Secrets) -> Result<JobResult, Broken> {
    let place = tool::prepare(job, secrets).await?;
    let file = saved::file(job);
    let (tool, said, fell_back) = step(job, "plan", async {
        let mut upstream = Secrets::default();
        let mut linked = linked::put_in(job, &place, &mut upstream).await?;
        secrets.extend(&upstream);
        let mut planned = plan(job, &place, &file, secrets).await;
        if linked.is_in_place()
            && let Err(Broken::Failed(failure)) = &planned
        {
            let failure = super::failure::failure(Broken::Failed(failure.clone()), secrets);
            job.reporter.log("plan", &format!("The plan on planned outputs failed: {}", failure.summary));
            job.reporter.log("plan", "Planning once more on the applied ones.");
            linked
                .take_out(&format!("the plan on its planned outputs failed: {}", failure.summary.replace('\n', " ")))?;
            // What the failed plan left must not be taken for the new one.
            let _ = std::fs::remove_file(&file);
            planned = plan(job, &place, &file, secrets).await;
        }
        let (tool, said) = planned?;
        Ok((tool, said, linked.left))
    })
    .await?;
    step(job, "show", async {
        let (json, bytes) = tool::show(job, &place, &file).await?;
        secrets.add_plan(&bytes, &place.declared);
        log(job, &said, secrets);
        let known = job.directory.join("secrets.json");
        tokio::fs::write(&known, secrets.to_bytes()).await?;
        tokio::try_join!(
            job.server.put("plan", &file),
            job.server.put("plan.json", &json),
            job.server.put("secrets", &known)
        )?;
        let ephemeral = environment::ephemeral(&bytes);
        if !ephemeral.is_empty() {
            let set = serde_json::to_vec(&environment::set_of(&ephemeral, &job.environment)).unwrap_or_default();
            job.server.put_bytes("inputs", set).await?;
        }
        Ok(())
    })
    .await?;
    Ok(JobResult::Planned { tool, fell_back })
}

/// What the tool said while it planned. It is held back until its plan was read: the key of an instance or an error may
/// quote a secret that is known only then.
enum Said {
    Text(String),
    Diagnostic(Diagnostic),
    /// So many more lines were not held.
    Unheard(usize),
}

fn log(job: &Job, said: &[Said], secrets: &Secrets) {
    for said in said {
        match said {
            Said::Text(text) => job.reporter.log("plan", &secrets.mask(text)),
            Said::Diagnostic(diagnostic) => log_diagnostic(job, "plan", diagnostic, secrets),
            Said::Unheard(lines) => job.reporter.leave_out("plan", *lines),
        }
    }
    job.reporter.count_left_out("plan");
}

async fn plan(job: &Job, place: &Workplace, file: &Path, secrets: &mut Secrets) -> Result<(Tool, Vec<Said>), Broken> {
    let call = Call {
        program: &place.program.path,
        args: arguments(job, file),
        directory: &place.root,
        name: "plan",
        stop: match job.spec.state_lock {
            StateLock::Off => Stopping::Kill,
            // A killed plan would leave the state locked.
            StateLock::Wait => Stopping::Patience,
        },
        room: 0,
    };
    let mut tool = None;
    let mut said: Vec<Said> = Vec::new();
    let mut left_out = 0;
    let exit = run_with(job, &call, &place.environment(job), &mut |line| {
        let new = match Line::parse(line) {
            Some(Line { what: What::Version(version), .. }) => return tool = Some(version),
            Some(Line { what: What::Diagnostic(diagnostic), .. }) => Said::Diagnostic(diagnostic),
            Some(line) => Said::Text(line.spoken().to_owned()),
            None => Said::Text(line.to_owned()),
        };
        // What nobody will be shown is not held in memory either; errors come last, and have room of their own.
        let most = if matches!(new, Said::Text(_)) { MOST_LINES_PER_STEP } else { MOST_LINES_PER_STEP + MOST_LATE };
        if said.len() < most { said.push(new) } else { left_out += 1 }
    })
    .await?;
    said.push(Said::Unheard(left_out));
    if exit.interrupted && !exit.ok() {
        return Err(Broken::Stopped);
    }
    if !exit.ok()
        && file.exists()
        && let Ok((_, json)) = tool::show(job, place, file).await
    {
        secrets.add_plan(&json, &place.declared);
    }
    tool::log_errors(job, "plan", &exit, secrets);
    if !exit.ok() {
        log(job, &said, secrets);
        let told =
            said.into_iter().filter_map(|said| if let Said::Diagnostic(told) = said { Some(told) } else { None });
        let errors: Vec<Diagnostic> = told.filter(Diagnostic::is_error).collect();
        let failure = of_errors("plan", &place.place(job), &errors).map(Broken::of);
        return Err(failure.unwrap_or_else(|| tool::ended_badly(job, place, "plan", &exit)));
    }
    let tool = match tool {
        Some(tool) => Ok(tool),
        None => program::version(job, &place.program).await,
    }?;
    Ok((bound(job, tool)?, said))
}

/// The tool that planned, when it is the one that was asked for: a link may have the other's name, and a plan is bound to its tool.
fn bound(job: &Job, tool: Tool) -> Result<Tool, Broken> {
    match job.spec.tool.filter(|asked| *asked != tool.kind) {
        None => Ok(tool),
        Some(asked) => Err(Broken::new(
            format!("`{}` is in truth {} {}", program::name(asked), program::name(tool.kind), tool.version),
            "The program where jobs run has the other tool's name. Install the right one, or change `tool:` in `.tidegate.yaml`.",
        )),
    }
}

/// Ours come last, so that no further argument takes their place; `-json` first, so that even a bad flag is said in JSON.
fn arguments(job: &Job, file: &Path) -> Vec<String> {
    let spec = &job.spec;
    let mut args: Vec<String> = vec!["plan".into(), "-json".into()];
    args.extend(spec.var_files.iter().map(|file| format!("-var-file={file}")));
    args.extend(spec.args.iter().cloned());
    args.extend([
        "-input=false".into(),
        tool::lock_flag(spec.state_lock, job.limits.lock),
        format!("-out={}", file.display()),
    ]);
    args
}

/// An error or a warning in the log: with its detail and place, without the values that the tool may add.
pub(super) fn log_diagnostic(job: &Job, step: &str, diagnostic: &Diagnostic, secrets: &Secrets) {
    let word = if diagnostic.is_error() { "Error" } else { "Warning" };
    let mut text = format!("{word}: {}", diagnostic.summary.trim());
    if let (Some(file), Some(line)) = (&diagnostic.file, diagnostic.line) {
        text = format!("{text}\n  on {file} line {line}");
    }
    let detail = diagnostic.detail.trim();
    if !detail.is_empty() {
        text = format!("{text}\n{detail}");
    }
    job.reporter.log(step, &secrets.mask(&text));
}
