//! How long people wait: from a delivery to the pending checks, to the first job's start, and to the note, beside the bare
//! commands of the tool in the same run. Prints figures and ratios; run by hand: `cargo bench --bench latency`.

mod cost;
#[path = "../tests/it/ctx.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod ctx;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cost::{Cost, Start, ratio};
use ctx::{Ctx, MIRA, REPO};

/// Every figure is the median of so many.
const ROUNDS: usize = 7;
/// Roots of the wide case, and what stands in each.
const WIDE: usize = 20;
const RESOURCES: usize = 10;

#[expect(clippy::print_stdout, reason = "it prints its figures")]
fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let text = runtime.block_on(async {
        let mut text = String::new();
        narrow(&mut text).await;
        wide(&mut text).await;
        text
    });
    print!("{text}");
}

fn root(name: &str, value: &str) -> String {
    let mut text = format!("terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n}}\n");
    for at in 0..RESOURCES {
        let _ = writeln!(text, "resource \"terraform_data\" \"r{at}\" {{ input = \"{value}\" }}");
    }
    text
}

/// What one pull shows, and when.
struct Seen {
    checks: Duration,
    job: Duration,
    note: Duration,
    cpu: Duration,
}

async fn open_and_watch(ctx: &Ctx, branch: &str, changes: &[(&str, Option<&str>)], done: &str) -> Seen {
    ctx.push(branch, changes);
    let (start, from) = (Instant::now(), Start::now());
    let pull = ctx.sandbox.open_pull(REPO, branch, "Change it", MIRA).expect("a pull");
    ctx.until("the checks", |ctx| (ctx.plan_check(pull) != "none" && ctx.apply_check(pull) != "none").then_some(()))
        .await;
    let checks = start.elapsed();
    let job = loop {
        let jobs = ctx.app().store.open_jobs().await.expect("jobs");
        if jobs.iter().any(|job| job.claimed_by.is_some()) || ctx.note(pull).is_some_and(|note| note.contains(done)) {
            break start.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    ctx.until("the note", |ctx| ctx.note(pull).filter(|note| note.contains(done))).await;
    let note = start.elapsed();
    ctx.settle().await;
    let cpu = from.cost().cpu;
    ctx.sandbox.close(REPO, pull, MIRA).expect("closed");
    ctx.settle().await;
    Seen { checks, job, note, cpu }
}

async fn narrow(text: &mut String) {
    let file = root("one", "1");
    let ctx = Ctx::with(&[("one/main.tf", &file)]).await;
    ctx.applied_before(&["one"]).await;
    let mut seen = Vec::new();
    for round in 0..ROUNDS {
        let changed = root("one", &format!("v{round}"));
        seen.push(
            open_and_watch(&ctx, &format!("b{round}"), &[("one/main.tf", Some(&changed))], "1 of 1 root planned").await,
        );
    }
    let bare = bare(&ctx, 1, 1).wall;
    let _ = writeln!(text, "1 root of {RESOURCES} resources, median of {ROUNDS}:");
    row(text, "delivery to both checks pending (aim < 100 ms)", median(&seen, |it| it.checks));
    row(text, "delivery to the first job at work, warm mirror (aim < 300 ms)", median(&seen, |it| it.job));
    let note = median(&seen, |it| it.note);
    row(text, "delivery to the note", note);
    row(text, "bare init + plan + show", bare);
    let _ = writeln!(
        text,
        "  note − bare: {} ms (aim ≤ 250 ms), ratio {:.2}",
        note.saturating_sub(bare).as_millis(),
        ratio(note, bare)
    );
}

async fn wide(text: &mut String) {
    let files: Vec<(String, String)> =
        (0..WIDE).map(|at| (format!("r{at}/main.tf"), root(&format!("r{at}"), "1"))).collect();
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, file)| (path.as_str(), file.as_str())).collect();
    let ctx = Ctx::with(&borrowed).await;
    let names: Vec<String> = (0..WIDE).map(|at| format!("r{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ctx.applied_before(&names).await;
    let mut seen = Vec::new();
    for round in 0..3 {
        let changed: Vec<(String, String)> =
            (0..WIDE).map(|at| (format!("r{at}/main.tf"), root(&format!("r{at}"), &format!("v{round}")))).collect();
        let changed: Vec<(&str, Option<&str>)> =
            changed.iter().map(|(path, file)| (path.as_str(), Some(file.as_str()))).collect();
        seen.push(
            open_and_watch(&ctx, &format!("b{round}"), &changed, &format!("{WIDE} of {WIDE} roots planned")).await,
        );
    }
    let parallel = 4;
    let bare = bare(&ctx, WIDE, parallel);
    let _ = writeln!(text, "{WIDE} roots of {RESOURCES} resources, {parallel} jobs at once, median of 3:");
    row(text, "delivery to both checks pending", median(&seen, |it| it.checks));
    let note = median(&seen, |it| it.note);
    row(text, "delivery to the note", note);
    row(text, &format!("the same commands under xargs -P {parallel}"), bare.wall);
    let _ = writeln!(text, "  ratio {:.2} (aim ≤ 1.25)", ratio(note, bare.wall));
    let cpu = median(&seen, |it| it.cpu);
    row(text, "CPU time until all is at rest, the forge and its deliveries included", cpu);
    row(text, "CPU time of the same commands", bare.cpu);
    let _ = writeln!(text, "  ratio {:.2}", ratio(cpu, bare.cpu));
}

/// The same commands by hand, in checkouts that are there already.
fn bare(ctx: &Ctx, roots: usize, parallel: usize) -> Cost {
    let seen: Vec<Cost> = (0..3).map(|_| bare_once(ctx, roots, parallel)).collect();
    cost::median(&seen)
}

fn bare_once(ctx: &Ctx, roots: usize, parallel: usize) -> Cost {
    let folder = tempfile::tempdir().expect("a folder");
    let names: Vec<String> =
        (0..roots).map(|at| if roots == 1 { "one".to_owned() } else { format!("r{at}") }).collect();
    for name in &names {
        let dir = folder.path().join(name);
        std::fs::create_dir_all(&dir).expect("a folder");
        std::fs::write(dir.join("main.tf"), ctx.fill(&root(name, "bare"))).expect("a file");
    }
    let script = "cd \"$1\" && terraform init -input=false -no-color >/dev/null && terraform plan -input=false -no-color -lock=false -out=p >/dev/null && terraform show -json p >/dev/null";
    std::fs::write(folder.path().join("names"), names.join("\n")).expect("a file");
    let start = Start::now();
    let status = Command::new("xargs")
        .args(["-P", &parallel.to_string(), "-I{}", "sh", "-c", script, "sh", "{}"])
        .stdin(std::fs::File::open(folder.path().join("names")).expect("a file"))
        .current_dir(Path::new(folder.path()))
        .env_remove("TF_CLI_CONFIG_FILE")
        .env("CHECKPOINT_DISABLE", "1")
        .env("TF_IN_AUTOMATION", "1")
        .status()
        .expect("xargs");
    assert!(status.success(), "the bare commands failed");
    start.cost()
}

fn median(seen: &[Seen], of: impl Fn(&Seen) -> Duration) -> Duration {
    let mut times: Vec<Duration> = seen.iter().map(of).collect();
    times.sort();
    times[times.len() / 2]
}

fn row(text: &mut String, what: &str, time: Duration) {
    let _ = writeln!(text, "  {:>6} ms  {what}", time.as_millis());
}
