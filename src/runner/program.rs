//! Which installed program does the work: the one on `PATH` if it is the tool and version that is asked for, else the newest
//! fitting one of the tools directory. What is asked for exactly and is not there may be fetched (`release`). It takes no other version than the one asked for.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Job;
use super::failure::Broken;
use super::process::{Call, Stopping, run};
use super::release;
use crate::domain::config::ToolKind;
use crate::domain::rollout::Tool;
use crate::domain::tool::{AskedBy, Constraint, Version};

/// The program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Which of the two.
    pub(super) kind: ToolKind,
    /// Where it lies.
    pub(super) path: PathBuf,
}

/// The program's name.
pub(super) fn name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Terraform => "terraform",
        ToolKind::Tofu => "tofu",
    }
}

/// Finds the program of a job. Without a wish for one tool it is the first that is installed at all: whether its version fits
/// never turns a root of Terraform into one of OpenTofu.
pub(super) async fn find(job: &Job) -> Result<Program, Broken> {
    let kinds: &[ToolKind] = match &job.spec.tool {
        Some(kind) => std::slice::from_ref(kind),
        None => &[ToolKind::Terraform, ToolKind::Tofu],
    };
    let there = |kind: &ToolKind| (*kind, on_path(job, *kind), installed(job, *kind));
    let Some((kind, on_path, installed)) =
        kinds.iter().map(there).find(|(_, on_path, installed)| on_path.is_some() || !installed.is_empty())
    else {
        // Only where the tool is named: nothing that happens to be downloadable decides which of the two a root is of.
        let named = job.spec.tool.filter(|kind| release::is_allowed(job, *kind));
        let exact = named.map(|kind| wanted(job, kind)).transpose()?.flatten();
        return match (named, exact.as_ref().and_then(Constraint::exactly)) {
            (Some(kind), Some(version)) => fetched(job, kind, version).await,
            _ => Err(not_installed(job, kinds)),
        };
    };
    let Some(wanted) = wanted(job, kind)? else {
        // Without a wish the version is read from the plan's own stream, which saves a process.
        let newest = installed.into_iter().next().map(|(_, program)| program);
        return on_path.or(newest).ok_or_else(|| not_installed(job, kinds));
    };
    let mut unfit = Vec::new();
    if let Some(program) = on_path {
        let found = version(job, &program).await?;
        if found.kind == kind && Version::parse(&found.version).is_some_and(|version| wanted.fits(&version)) {
            return Ok(program);
        }
        unfit.push(found);
    }
    for (version, program) in installed {
        if wanted.fits(&version) {
            return version_of_folder(job, &program, &version).await;
        }
        unfit.push(Tool { kind, version: version.to_string() });
    }
    match wanted.exactly().filter(|_| release::is_allowed(job, kind)) {
        Some(version) => fetched(job, kind, version).await,
        None => Err(no_fitting_version(job, kind, &unfit)),
    }
}

async fn fetched(job: &Job, kind: ToolKind, version: &Version) -> Result<Program, Broken> {
    let program = release::fetch(job, kind, version).await?;
    version_of_folder(job, &program, version).await
}

/// The conditions that a program of this kind must meet; `None` takes any.
fn wanted(job: &Job, kind: ToolKind) -> Result<Option<Constraint>, Broken> {
    let Some(text) = &job.spec.tool_version else { return Ok(None) };
    if kind == ToolKind::Tofu && job.spec.asked_by == AskedBy::RequiredVersion {
        return Ok(None);
    }
    let constraint = Constraint::parse(text);
    constraint.map(Some).ok_or_else(|| {
        Broken::new(
            format!("`{text}` is no version"),
            format!("{} A version is written `1.12.6`, a constraint `~> 1.5`.", asked(job)),
        )
    })
}

/// Who asks for the version: a whole sentence.
fn asked(job: &Job) -> String {
    match &job.spec.asked_by {
        AskedBy::Settings => "`version:` in `.tidegate.yaml` asks for it.".to_owned(),
        AskedBy::File(path) => format!("`{path}` asks for it."),
        AskedBy::RequiredVersion => "`required_version` of the root asks for it.".to_owned(),
        AskedBy::Plan => "A saved plan is applied only by the tool and version that made it.".to_owned(),
    }
}

/// The program that is asked for, or the first that there is, on this `PATH`, whatever its version.
pub(super) fn find_on(path: &str, tool: Option<ToolKind>) -> Result<Program, Broken> {
    let kinds: &[ToolKind] = match &tool {
        Some(kind) => std::slice::from_ref(kind),
        None => &[ToolKind::Terraform, ToolKind::Tofu],
    };
    kinds.iter().find_map(|kind| first_on(path, *kind)).ok_or_else(|| {
        let names: Vec<String> = kinds.iter().map(|kind| format!("`{}`", name(*kind))).collect();
        Broken::new(
            format!("{} is not installed", names.join(" or ")),
            format!("PATH is `{path}`. Install it, or choose another with `tool:` in `.tidegate.yaml`."),
        )
    })
}

fn on_path(job: &Job, kind: ToolKind) -> Option<Program> {
    first_on(job.environment.get("PATH").map(String::as_str).unwrap_or_default(), kind)
}

fn first_on(path: &str, kind: ToolKind) -> Option<Program> {
    find_program(path, name(kind)).map(|path| Program { kind, path })
}

/// The first program of that name in the absolute folders of a `PATH`.
pub fn find_program(path: &str, name: &str) -> Option<PathBuf> {
    let files = std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    files.into_iter().find(|file| is_program(file))
}

/// The programs of the tools directory, `<tools>/<tool>/<version>/<tool>`, newest first.
fn installed(job: &Job, kind: ToolKind) -> Vec<(Version, Program)> {
    let Some(tools) = &job.tools else { return Vec::new() };
    let folders = std::fs::read_dir(tools.join(name(kind))).into_iter().flatten().flatten();
    let mut found: Vec<(Version, Program)> = folders
        .filter_map(|folder| {
            let version = Version::parse(folder.file_name().to_str()?)?;
            let path = folder.path().join(name(kind));
            is_program(&path).then_some((version, Program { kind, path }))
        })
        .collect();
    found.sort_by(|(a, _), (b, _)| b.cmp(a));
    found
}

/// The program of a version's folder, when it is what the folder says.
async fn version_of_folder(job: &Job, program: &Program, expected: &Version) -> Result<Program, Broken> {
    let found = version(job, program).await?;
    if found.kind == program.kind && Version::parse(&found.version).as_ref() == Some(expected) {
        return Ok(program.clone());
    }
    Err(Broken::new(
        format!("`{}` is not {} {expected} but {}", program.path.display(), name(program.kind), said(&found)),
        "The folder's name must be the version of the program in it. Mend the tools directory where jobs run.",
    ))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn not_installed(job: &Job, kinds: &[ToolKind]) -> Broken {
    let names: Vec<String> = kinds.iter().map(|kind| format!("`{}`", name(*kind))).collect();
    let path = job.environment.get("PATH").map(String::as_str).unwrap_or_default();
    Broken::new(
        format!("{} is not installed where jobs run", names.join(" or ")),
        format!(
            "PATH is `{path}`{}. Install it there, or choose another with `tool:` in `.tidegate.yaml`.",
            beside(job)
        ),
    )
}

fn no_fitting_version(job: &Job, kind: ToolKind, unfit: &[Tool]) -> Broken {
    let tool = name(kind);
    let wanted = job.spec.tool_version.as_deref().unwrap_or_default();
    let installed = unfit.iter().map(said).collect::<Vec<_>>().join(", ");
    let way_out = match &job.spec.asked_by {
        AskedBy::Plan => format!("or plan again with {installed}"),
        AskedBy::Settings => "or change `version:`".to_owned(),
        AskedBy::File(path) => format!("or change `{path}`"),
        AskedBy::RequiredVersion => "or change `required_version`".to_owned(),
    };
    let where_to = match &job.tools {
        Some(tools) => {
            let folder = tools.join(tool).join("VERSION").join(tool);
            format!("Install it where jobs run, on PATH or as `{}`, {way_out}.", folder.display())
        }
        None => format!("Install it where jobs run, {way_out}."),
    };
    let where_to = if release::is_allowed(job, kind) {
        format!("Only an exact version is downloaded. {where_to}")
    } else {
        where_to
    };
    let verb = if unfit.len() == 1 { "is" } else { "are" };
    Broken::new(
        format!("{tool} {wanted} is needed, {installed} {verb} installed"),
        format!("{} {where_to}", asked(job)),
    )
}

fn beside(job: &Job) -> String {
    job.tools.as_ref().map(|tools| format!(", the tools directory `{}`", tools.display())).unwrap_or_default()
}

fn said(tool: &Tool) -> String {
    format!("{} {}", name(tool.kind), tool.version)
}

/// What a program says of itself. Its text and not its JSON: the JSON names no tool, and a link may have the other's name.
pub(super) async fn version(job: &Job, program: &Program) -> Result<Tool, Broken> {
    let call = Call {
        program: &program.path,
        args: vec!["version".into()],
        directory: &job.directory,
        name: "version",
        stop: Stopping::Kill,
        room: 0,
    };
    let exit = run(job, &call, &mut |_| {}).await?;
    let text = std::fs::read(&exit.out)?;
    of_text(&String::from_utf8_lossy(&text))
        .ok_or_else(|| Broken::new(format!("`{} version` names no version", name(program.kind)), exit.errors()))
}

/// `OpenTofu v1.12.6` or `Terraform v1.11.4`, which a warning may stand before.
fn of_text(text: &str) -> Option<Tool> {
    text.lines().find_map(|line| {
        let (kind, version) = match line.trim().split_once(" v")? {
            ("Terraform", version) => (ToolKind::Terraform, version),
            ("OpenTofu", version) => (ToolKind::Tofu, version),
            _ => return None,
        };
        let version = version.split_whitespace().next()?;
        Version::parse(version).map(|_| Tool { kind, version: version.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_own_words() {
        for (text, kind, version) in [
            ("Terraform v1.11.4\non linux_amd64\n", ToolKind::Terraform, "1.11.4"),
            ("OpenTofu v1.12.6\non linux_amd64\n+ provider v2\n", ToolKind::Tofu, "1.12.6"),
            ("\nWarning: no such file v1\n\nTerraform v1.6.0-rc1\n", ToolKind::Terraform, "1.6.0-rc1"),
        ] {
            assert_eq!(of_text(text), Some(Tool { kind, version: version.to_owned() }), "{text}");
        }
        assert_eq!(of_text("Packer v1.2.3\n"), None);
    }
}
