//! Which program a job takes: the one on PATH, a version of the tools directory, or none with the reason.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tidegate::domain::config::ToolKind;
use tidegate::domain::job::{Failure, JobResult, JobSpec, Phase};
use tidegate::domain::tool::AskedBy;

use super::server::{Kept, Trouble, World};
use super::{TWO, backend, environment, spec};

pub fn terraform() -> PathBuf {
    let path = std::env::var_os("PATH").expect("a PATH");
    std::env::split_paths(&path).map(|dir| dir.join("terraform")).find(|file| file.is_file()).expect("a terraform")
}

/// The version of that Terraform.
pub fn version() -> String {
    let output = std::process::Command::new(terraform())
        .arg("version")
        .env_remove("TF_CLI_CONFIG_FILE")
        .env("CHECKPOINT_DISABLE", "1")
        .output()
        .expect("terraform");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().and_then(|line| line.strip_prefix("Terraform v")).expect("a version").to_owned()
}

/// A machine with a folder on PATH and a tools directory, each with links to the one Terraform that is there.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn with(on_path: &[&str], tools: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (folder, links) in [("bin", on_path), ("tools", tools)] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            for link in links {
                let link = dir.path().join(folder).join(link);
                std::fs::create_dir_all(link.parent().unwrap()).unwrap();
                symlink(terraform(), link).unwrap();
            }
        }
        Self { dir }
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let text = |path: &Path| path.display().to_string();
        let mut environment = environment(self.dir.path());
        environment.insert("PATH".into(), text(&self.dir.path().join("bin")));
        environment.insert("TIDEGATE_JOB_TOOLS".into(), text(&self.dir.path().join("tools")));
        environment
    }

    async fn plan(&self, spec: JobSpec) -> Kept {
        let files = [("envs/dev/main.tf".to_owned(), format!("{}{TWO}", backend(self.dir.path())))];
        let world = World::start(&files, spec, None, Trouble::None).await;
        world.run(&self.environment()).await.expect("the job ends");
        world.kept()
    }

    async fn failure(&self, spec: JobSpec) -> Failure {
        match self.plan(spec).await.result {
            Some(JobResult::Failed { failure, .. }) => failure,
            other => panic!("{other:?}"),
        }
    }
}

pub fn wanting(tool: Option<ToolKind>, version: &str, asked_by: AskedBy) -> JobSpec {
    let tool_version = (!version.is_empty()).then(|| version.to_owned());
    JobSpec { tool, tool_version, asked_by, ..spec(Phase::Plan) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fitting_version_of_the_tools_directory_is_taken() {
    let version = version();
    let folder = format!("terraform/{version}/terraform");
    let minor = version.rsplit_once('.').expect("three numbers").0;
    // What is no version is no folder of one.
    let machine = Machine::with(&[], &[&folder, "terraform/notes/terraform", "tofu/README/tofu"]);
    for wish in ["", &version, &format!("~> {minor}.0"), ">= 0.12, != 0.13.1"] {
        let kept = machine.plan(wanting(None, wish, AskedBy::Settings)).await;
        let Some(JobResult::Planned { tool, .. }) = &kept.result else { panic!("{wish}: {:?}", kept.result) };
        assert_eq!((tool.kind, &tool.version), (ToolKind::Terraform, &version));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_there_is_refused_with_who_asks_and_where_it_goes() {
    let version = version();
    let machine = Machine::with(&["terraform"], &["terraform/0.13.1/terraform"]);
    for (asked_by, who, way_out) in [
        (AskedBy::Settings, "`version:` in `.tidegate.yaml` asks", "change `version:`"),
        (AskedBy::File("envs/.terraform-version".into()), "`envs/.terraform-version` asks", "change `envs/.terraform"),
        (AskedBy::RequiredVersion, "`required_version` of the root", "change `required_version`"),
        (AskedBy::Plan, "only by the tool and version that made it", "plan again with"),
    ] {
        let failure = machine.failure(wanting(None, "0.12.31", asked_by)).await;
        assert_eq!(
            failure.summary,
            format!("terraform 0.12.31 is needed, terraform {version}, terraform 0.13.1 are installed")
        );
        assert!(failure.detail.contains(who) && failure.detail.contains(way_out), "{}", failure.detail);
        assert!(failure.detail.contains("tools/terraform/VERSION/terraform"), "{}", failure.detail);
    }
    let failure = machine.failure(wanting(None, "newest", AskedBy::File(".terraform-version".into()))).await;
    assert_eq!(failure.summary, "`newest` is no version");
    assert!(failure.detail.contains("`.terraform-version` asks for it"), "{}", failure.detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_of_terraform_is_never_planned_by_tofu_because_a_version_is_missing() {
    let machine = Machine::with(&["terraform"], &["tofu/0.12.31/tofu"]);
    for asked_by in [AskedBy::RequiredVersion, AskedBy::Settings] {
        let failure = machine.failure(wanting(None, "0.12.31", asked_by)).await;
        assert!(failure.summary.starts_with("terraform 0.12.31 is needed"), "{}", failure.summary);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_under_the_others_name_is_found_out() {
    let version = version();
    let linked = Machine::with(&["tofu"], &[]);
    let failure = linked.failure(wanting(Some(ToolKind::Tofu), "", AskedBy::Settings)).await;
    assert_eq!(failure.summary, format!("`tofu` is in truth terraform {version}"));
    let failure = linked.failure(wanting(Some(ToolKind::Tofu), &version, AskedBy::Plan)).await;
    assert_eq!(failure.summary, format!("tofu {version} is needed, terraform {version} is installed"));

    let folder = Machine::with(&[], &["terraform/0.13.1/terraform"]);
    let failure = folder.failure(wanting(None, "0.13.1", AskedBy::Settings)).await;
    assert!(failure.summary.ends_with(&format!("is not terraform 0.13.1 but terraform {version}")), "{failure:?}");
}
