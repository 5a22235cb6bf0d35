//! What could leave beside the texts of a root: the command lines and environments of our children, a forge that repeats what it
//! was sent, a plan in the terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate::local::plan::{Wish, plan};
use tidegate::sandbox::Fault;

use super::{Case, Then, core, filled, logs, places, run, surfaces};
use crate::ctx::{Ctx, LIN, MIRA};
use crate::stories::{ESTATE, solo};

/// What was seen of the processes below this one: the command line and the environment of each, a line for each of their words.
type Seen = BTreeSet<(String, String)>;

/// Looks at all children, and their children, until told to stop.
struct Watch {
    stop: Arc<AtomicBool>,
    looks: std::thread::JoinHandle<Seen>,
}

impl Watch {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let looks = std::thread::spawn(move || {
            let mut seen = Seen::new();
            while !told.load(Ordering::SeqCst) {
                look(&mut seen);
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            seen
        });
        Self { stop, looks }
    }

    fn end(self) -> Seen {
        self.stop.store(true, Ordering::SeqCst);
        self.looks.join().unwrap()
    }
}

fn look(seen: &mut Seen) {
    let text = |pid: u32, name: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', "\n")
    };
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = text(pid, "stat");
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.insert(pid, parent.unwrap_or_default());
    }
    for pid in parents.keys() {
        let mut above = std::iter::successors(parents.get(pid), |pid| parents.get(pid));
        if above.any(|pid| *pid == std::process::id()) {
            let (line, environment) = (text(*pid, "cmdline"), text(*pid, "environ"));
            // Between the two it may have become another program.
            if text(*pid, "cmdline") == line {
                seen.insert((line, environment));
            }
        }
    }
}

/// The program's name.
fn program(line: &str) -> &str {
    line.lines().next().and_then(|first| first.rsplit('/').next()).unwrap_or_default()
}

const FAILING: &[Case] = &[Case {
    name: "process",
    before: None,
    files: &[
        (
            "main.tf",
            "variable \"s\" { sensitive = true }\nresource \"terraform_data\" \"a\" {\n  input = var.s\n  provisioner \"local-exec\" {\n    command = \"sleep 0.2; exit 3\"\n    environment = { PW = var.s }\n  }\n}\n",
        ),
        ("x.auto.tfvars", "s = \"@X@\"\n"),
    ],
}];

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn no_command_line_shows_one_and_no_tool_gets_ours() {
    let watch = Watch::start();
    let (ctx, pull) = run(FAILING, &[], Then::Apply).await;
    let seen = watch.end();
    assert!(ctx.apply_check(pull).starts_with("failure"), "{}", ctx.apply_check(pull));
    let app = ctx.sandbox.app_credentials();
    let mut ours: Vec<String> = ctx.sandbox.tokens();
    ours.push(app.webhook_secret.to_owned());
    ours.extend(app.private_key.lines().filter(|line| line.len() > 40).map(str::to_owned));
    ours.push(hex::encode([7; 32]));
    let pulls = ctx.app().store.pulls().await.unwrap();
    let runs = pulls.iter().flat_map(|pull| &pull.rollout).flat_map(|rollout| rollout.runs.values());
    let jobs: Vec<_> = runs.filter_map(|run| Some(ctx.app().vault.job_token(&run.planned()?.job))).collect();
    assert!(!jobs.is_empty(), "no job is known");
    for (line, environment) in &seen {
        for secret in ours.iter().chain(&jobs).chain(&[core("process")]) {
            assert!(!line.contains(secret.as_str()), "{line}");
        }
        // A tool gets nothing of ours, and git alone a token for the forge.
        if program(line) == "terraform" {
            assert!(!environment.contains("TIDEGATE_"), "{line}: {environment}");
        }
        if !program(line).starts_with("git") {
            let held = ours.iter().find(|secret| environment.contains(secret.as_str()));
            assert_eq!(held, None, "{line}");
        }
    }
    let names: BTreeSet<&str> = seen.iter().map(|(line, _)| program(line)).collect();
    assert!(["terraform", "git", "tidegate"].iter().all(|name| names.contains(name)), "{names:?}");
}

/// A forge, or a proxy on the way to it, that repeats in an error what it was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_forge_that_repeats_our_token_tells_it_to_nobody() {
    logs();
    let ctx = Ctx::with(ESTATE).await;
    ctx.sandbox.record();
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let known = ctx.sandbox.tokens();
    let echo = format!(
        "Bad request. Authorization: Bearer {0} X-Debug: {0} token={0} {{\"authorization\":\"token {0}\"}} {1}",
        known.join(" "),
        core("echo")
    );
    for (method, path, status) in [
        ("POST", "/repos/*/comments", 500),
        ("PATCH", "/repos/*/comments/*", 502),
        ("POST", "/repos/*/check-runs", 422),
        ("PATCH", "/repos/*/check-runs/*", 400),
        ("GET", "/repos/*/collaborators/*/permission", 500),
        ("POST", "/repos/*/reactions", 403),
        ("GET", "/repos/*/pulls/*", 500),
    ] {
        ctx.sandbox.faults().next(method, path, Fault::Answer(status, serde_json::json!({ "message": echo })));
    }
    ctx.comment(pull, MIRA, "plan").await;
    ctx.comment(pull, LIN, "approve").await;
    let found = surfaces(&ctx).await;
    let logged = found.iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("Bad request"));
    assert!(logged, "what the forge says is told, so that this test means something");
    for token in known.iter().chain(&ctx.sandbox.tokens()) {
        let shown = places(&found, token);
        assert!(shown.is_empty(), "{}", shown.join("\n\n"));
    }
}

/// `tidegate plan` prints to a terminal, which is a log as soon as a pipeline runs it.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_in_the_terminal_shows_none() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let write = |path: &str, text: &str| {
        let path = top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("$S", &top.display().to_string())).unwrap();
    };
    let git = |args: &[&str]| {
        let settings = ["-c", "user.name=m", "-c", "user.email=m@example.org", "-c", "init.defaultBranch=main"];
        let done = std::process::Command::new("git").current_dir(&top).args(settings).args(args).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let says = "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n  validation {\n    condition = var.s == \"\"\n    error_message = \"Not ${nonsensitive(var.s)}\"\n  }\n}\n";
    let owner = "output \"token\" {\n  value = \"@X@\"\n  sensitive = true\n}\n";
    let reader = "data \"terraform_remote_state\" \"o\" {\n  backend = \"local\"\n  config = { path = \"$S/towner.tfstate\" }\n}\nresource \"terraform_data\" \"r\" { input = \"t-${data.terraform_remote_state.o.outputs.token}\" }\n";
    let roots = [
        ("tsays", says),
        ("towner", owner),
        ("treader", reader),
        ("tcommand", "variable \"envpass\" {}\nresource \"terraform_data\" \"a\" { input = var.envpass }\n"),
    ];
    write("README.md", "# secrets\n");
    write(".gitignore", "*.tfstate*\n.terraform*\n");
    write("towner/main.tf", &filled("towner", owner));
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "begin"]);
    crate::ctx::terraform(&top.join("towner"), &["init", "-input=false", "-no-color"]);
    crate::ctx::terraform(&top.join("towner"), &["apply", "-auto-approve", "-input=false", "-no-color"]);
    for (name, text) in roots.iter().filter(|(name, _)| *name != "towner") {
        write(&format!("{name}/main.tf"), &filled(name, text));
    }
    let mut environment: BTreeMap<String, String> =
        std::env::vars().filter(|(name, _)| name != "TF_CLI_CONFIG_FILE").collect();
    environment.insert("TF_VAR_envpass".to_owned(), core("tcommand"));
    let mut told = Vec::new();
    let answer = plan(&Wish { here: &top, base: None, environment }, &mut |what| told.push(what.to_owned())).await;
    let note = answer.unwrap().note;
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(note.contains("1 root failed") && note.contains("Not (sensitive)"), "{note}");
    let printed = [("terminal".to_owned(), format!("{note}\n{}", told.join("\n")).into_bytes())];
    for (name, _) in roots {
        let shown = places(&printed, &core(name));
        let shown: Vec<String> = if name == "treader" { places(&printed, &core("towner")) } else { shown };
        assert!(shown.is_empty(), "{name}: {}", shown.join("\n\n"));
    }
}

/// A forge's secret in a clone URL, and what git says when it cannot fetch.
#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_fails_shows_no_token() {
    logs();
    let ctx = Ctx::with(ESTATE).await;
    ctx.sandbox.record();
    for _ in 0..2 {
        ctx.sandbox.faults().next(
            "GET",
            "/acme/infra.git/info/refs",
            Fault::Answer(403, serde_json::json!({ "message": "no" })),
        );
    }
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    assert!(ctx.note(pull).is_some());
    let found = surfaces(&ctx).await;
    for token in ctx.sandbox.tokens() {
        let basic =
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("x-access-token:{token}"));
        for secret in [token, basic] {
            let shown = places(&found, &secret);
            assert!(shown.is_empty(), "{}", shown.join("\n\n"));
        }
    }
}
