//! Jobs whose disk is full: a small file system of memory is mounted for each, which needs the right to mount.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tidegate::domain::ids::RootKey;
use tidegate::domain::job::{JobResult, JobSpec, Phase, StateLeft, StateLock, VERSION};

#[path = "it/runner/server.rs"]
#[expect(dead_code, reason = "the server of jobs is shared with other tests")]
mod server;

use server::{Kept, Trouble, World, forgetful_backend};

/// A mounted disk of this size, gone at the end.
struct Disk(TempDir);

impl Disk {
    fn of(size: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path()).status();
        assert!(mounted.unwrap().success(), "it needs the right to mount");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn spec(phase: Phase) -> JobSpec {
    JobSpec {
        version: VERSION,
        id: "1-2-3".into(),
        phase,
        root: RootKey::new("net"),
        head: "h".into(),
        tree: "t".into(),
        tool: None,
        tool_version: None,
        asked_by: Default::default(),
        var_files: Vec::new(),
        backend_config: Vec::new(),
        args: Vec::new(),
        plan_of: None,
        source: String::new(),
        linked: vec![],
        sources: vec![],
        state_lock: StateLock::Off,
    }
}

async fn job(on: &Path, main: &str, phase: Phase, before: Option<&Kept>) -> Kept {
    let files = [("net/main.tf".to_owned(), main.to_owned())];
    let world = World::start(&files, spec(phase), before, Trouble::None).await;
    let mut environment: BTreeMap<String, String> =
        ["PATH", "HOME"].iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    environment.insert("TIDEGATE_JOB_DIR".into(), on.display().to_string());
    environment.insert("DISK".into(), on.display().to_string());
    world.run(&environment).await.unwrap();
    world.kept()
}

fn local(states: &Path, body: &str) -> String {
    format!("terraform {{\n  backend \"local\" {{ path = \"{}/s.tfstate\" }}\n}}\n{body}", states.display())
}

const ONE: &str = "resource \"terraform_data\" \"a\" { input = \"one\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_on_a_full_disk_says_so() {
    let (disk, states) = (Disk::of("512k"), tempfile::tempdir().unwrap());
    let many = "resource \"terraform_data\" \"a\" {\n  count = 500\n  input = \"one\"\n}\n";
    let kept = job(disk.path(), &local(states.path(), many), Phase::Plan, None).await;
    let Some(JobResult::Failed { failure, .. }) = &kept.result else { panic!("{:?}", kept.result) };
    assert!(failure.summary.starts_with("Out of disk"), "{failure:?}");
    assert!(failure.detail.contains("more room") || failure.detail.contains("Give it more"), "{failure:?}");
    assert_eq!(kept.plan, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_without_room_for_its_state_does_not_begin() {
    let (roomy, small, states) = (tempfile::tempdir().unwrap(), Disk::of("8m"), tempfile::tempdir().unwrap());
    let main = local(states.path(), ONE);
    let planned = job(roomy.path(), &main, Phase::Plan, None).await;
    let kept = job(small.path(), &main, Phase::Apply, Some(&planned)).await;
    let Some(JobResult::Failed { failure, errored_state: StateLeft::Nothing, .. }) = &kept.result else {
        panic!("{:?}", kept.result)
    };
    assert_eq!(failure.summary, "Out of disk: nothing was applied");
    assert!(!states.path().join("s.tfstate").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_neither_its_backend_nor_the_disk_takes_is_read_from_the_tools_last_words() {
    let (disk, url) = (Disk::of("48m"), forgetful_backend().await);
    let fill = "resource \"terraform_data\" \"b\" {\n  input = \"left-behind\"\n  provisioner \"local-exec\" { command = \"dd if=/dev/zero of=$DISK/fill bs=64k 2> /dev/null; true\" }\n}\n";
    let main = format!(
        "terraform {{\n  backend \"http\" {{\n    address = \"{url}\"\n    retry_max = 0\n  }}\n}}\n{ONE}{fill}"
    );
    let roomy = tempfile::tempdir().unwrap();
    let planned = job(roomy.path(), &main, Phase::Plan, None).await;
    let kept = job(disk.path(), &main, Phase::Apply, Some(&planned)).await;
    let Some(JobResult::Failed { failure, errored_state, .. }) = &kept.result else { panic!("{:?}", kept.result) };
    assert_eq!(*errored_state, StateLeft::Kept, "{failure:?}");
    let text = String::from_utf8_lossy(kept.errored_state.as_deref().unwrap()).into_owned();
    let state: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(state["resources"].as_array().map(Vec::len), Some(2), "{state}");
    assert!(failure.summary.starts_with("Out of disk: "), "{failure:?}");
}
