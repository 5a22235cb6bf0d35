//! A plan without a server: `init`, `plan` and `show` in a directory that is ours, for `tidegate plan`. It takes no lock of a state,
//! applies nothing and keeps nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::process::Command;

use super::declared;
use super::environment;
use super::failure::{Broken, Place, failure, of_errors, of_text};
use super::program::{Program, find_on, name};
use super::tool::{lock_flag, tail};
use crate::domain::config::ToolKind;
use crate::domain::job::{Failure, JobSpec};
use crate::domain::progress::{Diagnostic, Line, What};
use crate::domain::rollout::Tool;
use crate::domain::secret::Secrets;

/// Where a plan works.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// A copy of the tree, which may be written to.
    pub tree: &'a Path,
    /// A directory for the plan file, outside the tree.
    pub scratch: &'a Path,
    /// The environment of the user, credentials included.
    pub environment: &'a BTreeMap<String, String>,
}

/// Plans one root; gives the program, what `show -json` says, and adds to `secrets` what no text may show.
pub async fn plan(spec: &JobSpec, bench: &Bench<'_>, secrets: &mut Secrets) -> Result<(Tool, Vec<u8>), Failure> {
    environment::add_secrets(bench.environment, secrets);
    let work = Work {
        spec,
        environment: environment::scrub(bench.environment, spec),
        root: bench.tree.join(spec.root.dir()),
        bench,
    };
    // As in a job: an early error may quote what is sensitive by the files alone.
    let declared = declared::read(spec, &work.environment, bench.tree, &work.root);
    secrets.extend(declared.secrets());
    let planned = work.run().await.map_err(|broken| failure(broken, secrets))?;
    secrets.add_plan(&planned.1, &declared);
    Ok(planned)
}

struct Work<'a> {
    spec: &'a JobSpec,
    environment: BTreeMap<String, String>,
    root: PathBuf,
    bench: &'a Bench<'a>,
}

impl Work<'_> {
    async fn run(&self) -> Result<(Tool, Vec<u8>), Broken> {
        let path = self.environment.get("PATH").map(String::as_str).unwrap_or_default();
        let program = find_on(path, self.spec.tool).map_err(|broken| broken.at("init"))?;
        let tool = self.tool(&program).await.map_err(|broken| broken.at("init"))?;
        self.init(&program).await?;
        let file = self.bench.scratch.join("plan.tfplan");
        let file_text = file.display().to_string();
        let mut args: Vec<String> = vec!["plan".into(), "-json".into()];
        args.extend(self.spec.var_files.iter().map(|file| format!("-var-file={file}")));
        args.extend(self.spec.args.iter().cloned());
        args.extend([
            "-input=false".into(),
            lock_flag(self.spec.state_lock, super::limits::LOCK),
            format!("-out={file_text}"),
        ]);
        let output = self.call(&program, &args).await?;
        if !output.status.success() {
            return Err(self.plan_failed(&program, &output));
        }
        let output = self.call(&program, &["show".into(), "-json".into(), "-no-color".into(), file_text]).await?;
        if !output.status.success() {
            return Err(self.ended_badly(&program, "show", &output));
        }
        Ok((tool, from_brace(output.stdout)))
    }

    async fn tool(&self, program: &Program) -> Result<Tool, Broken> {
        let output = self.call(program, &["version".into(), "-json".into()]).await?;
        let json: Option<serde_json::Value> = serde_json::from_slice(&from_brace(output.stdout)).ok();
        let version = json.as_ref().and_then(|json| json.get("terraform_version")?.as_str()).map(str::to_owned);
        let command = name(program.kind);
        let version = version.ok_or_else(|| {
            Broken::new(format!("`{command} version -json` names no version"), String::from_utf8_lossy(&output.stderr))
        })?;
        match &self.spec.tool_version {
            Some(wanted) if *wanted != version => Err(Broken::new(
                format!("{command} {wanted} is needed, {version} is installed"),
                format!("`version:` in `.tidegate.yaml` is exact. Put {command} {wanted} first on PATH."),
            )),
            _ => Ok(Tool { kind: program.kind, version }),
        }
    }

    async fn init(&self, program: &Program) -> Result<(), Broken> {
        let mut args: Vec<String> = ["init", "-input=false", "-no-color"].map(str::to_owned).to_vec();
        args.extend(self.spec.backend_config.iter().map(|file| format!("-backend-config={file}")));
        // A backend may be written with variables, which `tofu init` then needs as well.
        if program.kind == ToolKind::Tofu {
            args.extend(self.spec.var_files.iter().map(|file| format!("-var-file={file}")));
        }
        let output = self.call(program, &args).await?;
        if output.status.success() { Ok(()) } else { Err(self.ended_badly(program, "init", &output)) }
    }

    async fn call(&self, program: &Program, args: &[String]) -> Result<Output, Broken> {
        let output = Command::new(&program.path)
            .args(args)
            .current_dir(&self.root)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        output
            .map_err(|error| Broken::new(format!("`{}` cannot be started", program.path.display()), error.to_string()))
    }

    fn place(&self) -> Place<'_> {
        Place { checkout: self.bench.tree, root: self.spec.root.dir() }
    }

    fn plan_failed(&self, program: &Program, output: &Output) -> Broken {
        let errors: Vec<Diagnostic> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| match Line::parse(line)?.what {
                What::Diagnostic(diagnostic) => Some(diagnostic),
                _ => None,
            })
            .filter(Diagnostic::is_error)
            .collect();
        let told = of_errors("plan", &self.place(), &errors).map(Broken::of);
        told.unwrap_or_else(|| self.ended_badly(program, "plan", output))
    }

    fn ended_badly(&self, program: &Program, step: &str, output: &Output) -> Broken {
        let errors = String::from_utf8_lossy(&output.stderr);
        let unknown =
            || Broken::new(format!("`{} {step}` failed ({})", name(program.kind), output.status), tail(&errors));
        of_text(step, &self.place(), &errors).map_or_else(unknown, Broken::of).at(step)
    }
}

/// From the first brace on: a warning about the command line's own settings may stand before it.
fn from_brace(mut out: Vec<u8>) -> Vec<u8> {
    let start = out.iter().position(|byte| *byte == b'{').unwrap_or(0);
    out.split_off(start)
}
