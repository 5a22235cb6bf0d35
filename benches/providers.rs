//! Many roots with a real provider: a second plan of a pull, each package from the store, beside the same commands by hand with
//! the tool's own cache, warm. Run by hand, because the provider is built apart: `scripts/provider cargo bench --bench providers`;
//! `TIDEGATE_BENCH_ROOTS=8` for a quick look.

mod cost;
#[path = "../tests/it/ctx.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod ctx;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cost::{Cost, Start, median, ratio};
use ctx::{Ctx, MIRA, Way};
use sha2::{Digest, Sha256};
use tidegate::domain::packages::{Locked, folder_of, sum};

const ADDRESS: &str = "registry.example.test/acme/test";
const VERSION: &str = "0.1.0";
/// Resources of a root.
const RESOURCES: usize = 10;
/// Jobs at once, as many as the stories' server runs.
const PARALLEL: usize = 4;
const ROUNDS: usize = 3;

#[expect(clippy::print_stdout, reason = "it prints its figures")]
fn main() {
    let roots = std::env::var("TIDEGATE_BENCH_ROOTS").map_or(40, |text| text.parse().expect("a number of roots"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let package = Package::built();
    let (ours, bare) = runtime.block_on(async {
        let home = tempfile::tempdir().expect("a folder");
        let ctx = world(roots, &package, home.path()).await;
        let ours = second_plans(&ctx, roots).await;
        (ours, (0..ROUNDS).map(|_| by_hand(&ctx, roots, &package)).collect::<Vec<Cost>>())
    });
    let (ours, bare) = (median(&ours), median(&bare));
    println!("{roots} roots of {RESOURCES} resources of a provider, {PARALLEL} at once, median of {ROUNDS}:");
    for (what, cost) in [("the second plan of the pull", ours), ("by hand with xargs, the tool's own cache warm", bare)]
    {
        println!("  {:>6} ms, {:>6} ms of CPU  {what}", cost.wall.as_millis(), cost.cpu.as_millis());
    }
    println!("  ratio {:.2}, of CPU {:.2} (aim < 1)", ratio(ours.wall, bare.wall), ratio(ours.cpu, bare.cpu));
}

/// The provider as `scripts/provider` built it.
struct Package {
    mirror: PathBuf,
    folder: PathBuf,
    locked: Locked,
}

impl Package {
    fn built() -> Self {
        let mirror = std::env::var_os("TIDEGATE_TEST_MIRROR").map(PathBuf::from).expect("run by scripts/provider");
        let version = mirror.join(ADDRESS).join(VERSION);
        let folder = std::fs::read_dir(version).expect("a version").flatten().next().expect("a platform").path();
        let files: Vec<(String, [u8; 32])> = std::fs::read_dir(&folder)
            .expect("a package")
            .flatten()
            .map(|file| {
                let content = std::fs::read(file.path()).expect("a file");
                (file.file_name().into_string().expect("a name"), Sha256::digest(content).into())
            })
            .collect();
        let locked = Locked { source: ADDRESS.into(), version: VERSION.into(), sums: [sum(&files)].into() };
        Self { mirror, folder, locked }
    }

    /// Puts it where a fetch of the server's would have put it.
    fn put_into(&self, store: &Path) {
        let platform = self.folder.file_name().expect("a platform");
        let name = self.locked.sums.first().and_then(|sum| folder_of(sum)).expect("a sum");
        let place = store.join(ADDRESS).join(VERSION).join(platform).join(name).join("package");
        std::fs::create_dir_all(&place).expect("a folder");
        for file in std::fs::read_dir(&self.folder).expect("a package").flatten() {
            std::fs::copy(file.path(), place.join(file.file_name())).expect("a copy");
        }
    }
}

fn root(name: &str, value: &str) -> String {
    let things: String = (0..RESOURCES)
        .map(|at| {
            format!("resource \"test_thing\" \"r{at}\" {{\n  name = \"{name}-{at}\"\n  value = \"{value}\"\n}}\n")
        })
        .collect();
    format!(
        "terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n  required_providers {{\n    \
         test = {{ source = \"{ADDRESS}\" }}\n  }}\n}}\nprovider \"test\" {{ folder = \"$S/cloud\" }}\n{things}"
    )
}

fn names(roots: usize) -> Vec<String> {
    (0..roots).map(|at| format!("r{at}")).collect()
}

async fn world(roots: usize, package: &Package, home: &Path) -> Ctx {
    let lock = package.locked.lock_file();
    let files: Vec<(String, String)> = names(roots)
        .iter()
        .flat_map(|name| {
            [(format!("{name}/main.tf"), root(name, "1")), (format!("{name}/.terraform.lock.hcl"), lock.clone())]
        })
        .collect();
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    // Nothing of this machine's user says where providers come from.
    let home = home.display().to_string();
    let environment = [("HOME", home.as_str()), ("XDG_DATA_DIRS", &home), ("RUST_BACKTRACE", "0")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let ctx = Ctx::in_environment(&borrowed, Way::App, BTreeMap::from(environment)).await;
    package.put_into(&ctx.data_dir().join("providers"));
    ctx
}

async fn second_plans(ctx: &Ctx, roots: usize) -> Vec<Cost> {
    let changed: Vec<(String, String)> =
        names(roots).iter().map(|name| (format!("{name}/main.tf"), root(name, "2"))).collect();
    let changed: Vec<(&str, Option<&str>)> =
        changed.iter().map(|(path, file)| (path.as_str(), Some(file.as_str()))).collect();
    let pull = ctx.open("b", &changed);
    ctx.settle().await;
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let start = Start::now();
        ctx.comment(pull, MIRA, "plan").await;
        seen.push(start.cost());
        let check = ctx.plan_check(pull);
        assert!(check.starts_with("success"), "{check}\n{:?}", ctx.note(pull));
    }
    seen
}

/// Checkouts that are there already, without a `.terraform`.
fn by_hand(ctx: &Ctx, roots: usize, package: &Package) -> Cost {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    std::fs::create_dir(&cache).expect("a folder");
    let settings = folder.path().join("cli.tfrc");
    let (cache, mirror) = (cache.display(), package.mirror.display());
    let text = format!(
        "plugin_cache_dir = \"{cache}\"\nprovider_installation {{\n  filesystem_mirror {{\n    path = \"{mirror}\"\n  }}\n}}\n"
    );
    std::fs::write(&settings, text).expect("settings");
    let names = names(roots);
    for name in names.iter().map(String::as_str).chain(["first"]) {
        let dir = folder.path().join(name);
        std::fs::create_dir(&dir).expect("a folder");
        std::fs::write(dir.join("main.tf"), ctx.fill(&root(name, "2"))).expect("a file");
        std::fs::write(dir.join(".terraform.lock.hcl"), package.locked.lock_file()).expect("a file");
    }
    let all = "cd \"$1\" && terraform init -input=false -no-color && terraform plan -input=false -no-color -lock=false -out=p && terraform show -json p";
    let shell = |program: &str| {
        let mut command = Command::new(program);
        command
            .current_dir(folder.path())
            .env("TF_CLI_CONFIG_FILE", &settings)
            .env("CHECKPOINT_DISABLE", "1")
            .env("TF_IN_AUTOMATION", "1")
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::null());
        command
    };
    let warm = shell("sh").args(["-c", all, "sh", "first"]).status().expect("sh");
    assert!(warm.success(), "the tool cannot be run by hand");
    std::fs::write(folder.path().join("names"), names.join("\n")).expect("a file");
    let start = Start::now();
    let status = shell("xargs")
        .args(["-P", &PARALLEL.to_string(), "-I{}", "sh", "-c", all, "sh", "{}"])
        .stdin(std::fs::File::open(folder.path().join("names")).expect("a file"))
        .status()
        .expect("xargs");
    assert!(status.success(), "the commands by hand failed");
    start.cost()
}
