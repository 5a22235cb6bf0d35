//! Where providers come from: fetched once from a registry, given by their sums, and nothing of it where others decide. The
//! provider of these tests is a script that fails, so every job here gets as far as the plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tidegate::domain::job::{JobResult, Phase};

use super::registry::{Registry, SOURCE};
use super::server::{Kept, Trouble, World};
use super::{backend, environment, spec};

const NEEDS: &str =
    "terraform {\n  required_providers {\n    test = { source = \"registry.example.test/acme/test\" }\n  }\n}\n";

/// A machine with a store, and a registry.
struct Machine {
    dir: tempfile::TempDir,
    registry: Registry,
}

impl Machine {
    async fn new() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/registry");
        let machine = Self { dir: tempfile::tempdir().unwrap(), registry: Registry::start(&folder).await };
        std::fs::write(machine.dir.path().join("cli.tfrc"), machine.registry.settings()).unwrap();
        machine
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let text = |path: &str| self.dir.path().join(path).display().to_string();
        let mut environment = environment(self.dir.path());
        environment.insert("HOME".into(), text("home"));
        environment.insert("XDG_DATA_DIRS".into(), text("shared"));
        environment.insert("TF_CLI_CONFIG_FILE".into(), text("cli.tfrc"));
        environment.insert("TIDEGATE_JOB_PROVIDERS".into(), text("store"));
        environment
    }

    /// A plan job; `sums` are those of the committed lock file, none without one.
    async fn plan(&self, sums: &[&str]) -> Kept {
        let mut files = vec![("envs/dev/main.tf".to_owned(), format!("{}{NEEDS}", backend(self.dir.path())))];
        if !sums.is_empty() {
            let sums: String = sums.iter().map(|sum| format!("    \"{sum}\",\n")).collect();
            let lock = format!("provider \"{SOURCE}\" {{\n  version = \"0.1.0\"\n  hashes = [\n{sums}  ]\n}}\n");
            files.push(("envs/dev/.terraform.lock.hcl".to_owned(), lock));
        }
        let world = World::start(&files, spec(Phase::Plan), None, Trouble::None).await;
        world.run(&self.environment()).await.expect("the job ends");
        world.kept()
    }

    fn packages(&self) -> Vec<PathBuf> {
        let shelves = self.dir.path().join("store").join(SOURCE).join("0.1.0");
        let all = std::fs::read_dir(shelves).into_iter().flatten().flatten();
        let all = all.flat_map(|shelf| std::fs::read_dir(shelf.path()).into_iter().flatten().flatten());
        all.map(|entry| entry.path().join("package")).filter(|package| package.is_dir()).collect()
    }
}

fn initialised(kept: &Kept) -> bool {
    kept.steps().contains(&"init ok".to_owned())
}

fn from_store(kept: &Kept) -> bool {
    kept.log("init").contains("From the provider store: registry.example.test/acme/test 0.1.0")
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_side_by_side_fetch_a_package_once() {
    let machine = Machine::new().await;
    let archive = machine.registry.archive();
    // The lock file of somebody with another platform, whose content has another sum.
    let foreign = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let sums = [foreign, archive.as_str()];
    let (a, b, c) = tokio::join!(machine.plan(&sums), machine.plan(&sums), machine.plan(&sums));
    let all = [a, b, c, machine.plan(&sums).await];
    for kept in &all {
        assert!(initialised(kept) && from_store(kept), "{:?}\n{}", kept.result, kept.log("init"));
        let log = kept.log("init");
        assert!(
            log.contains("Installed registry.example.test/acme/test v0.1.0") && !log.contains("Once more"),
            "{log}"
        );
    }
    assert_eq!((machine.registry.fetched(), machine.packages().len()), (1, 1), "{all:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_lock_file_vouches_for_is_fetched_by_the_tool() {
    let machine = Machine::new().await;
    let archive = machine.registry.archive();
    let kept = machine.plan(&[]).await;
    assert!(initialised(&kept) && !from_store(&kept), "{:?}", kept.result);
    assert!(machine.packages().is_empty(), "nothing that a root had in its hands comes into the store");

    // Another sum than the registry's: the tool's own refusal, with or without a store that has the package.
    let other = format!("zh:{}", "00".repeat(32));
    for _ in 0..2 {
        let kept = machine.plan(&[&other]).await;
        let Some(JobResult::Failed { failure, .. }) = &kept.result else { panic!("{:?}", kept.result) };
        assert_eq!(failure.step, "init");
        assert!(failure.detail.contains("checksums") && !from_store(&kept), "{failure:?}");
        assert!(initialised(&machine.plan(&[&archive]).await));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_no_other_platforms() {
    let machine = Machine::new().await;
    assert!(from_store(&machine.plan(&[&machine.registry.archive()]).await));
    // The registry signed this one as well, but as another platform's archive.
    let kept = machine.plan(&[&machine.registry.other_archive()]).await;
    assert!(!initialised(&kept) && !from_store(&kept), "{:?}", kept.result);
    let Some(JobResult::Failed { failure, .. }) = &kept.result else { panic!("{:?}", kept.result) };
    assert!(failure.detail.contains("checksums"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_package_is_thrown_out_and_hurts_nobody() {
    let machine = Machine::new().await;
    let archive = machine.registry.archive();
    assert!(from_store(&machine.plan(&[&archive]).await));
    let package = machine.packages().pop().expect("kept");
    let program = package.join("terraform-provider-test_v0.1.0");
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "evil").unwrap();

    let kept = machine.plan(&[&archive]).await;
    assert!(initialised(&kept), "{:?}", kept.result);
    assert!(kept.log("init").contains("Once more, without the provider store."), "{}", kept.log("init"));
    assert!(machine.packages().is_empty());
    assert!(from_store(&machine.plan(&[&archive]).await), "and it is fetched again");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_stays_out_where_the_user_says_where_providers_come_from() {
    let machine = Machine::new().await;
    let archive = machine.registry.archive();
    let own = format!("{}provider_installation {{\n  direct {{}}\n}}\n", machine.registry.settings());
    std::fs::write(machine.dir.path().join("cli.tfrc"), own).unwrap();
    let kept = machine.plan(&[&archive]).await;
    assert!(initialised(&kept) && !from_store(&kept), "{:?}", kept.result);
    assert!(machine.packages().is_empty());
}
