//! The world of a story: a sandbox forge, a server in a runtime of its own, real git and real Terraform. A story speaks of
//! pulls, comments and notes; it settles without sleeping, and it can end the server dead and start it again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use secrecy::SecretString;
use tempfile::TempDir;
use tidegate::app::Limits;
use tidegate::app::engine::Rest;
use tidegate::domain::outside::CrossRepo;
use tidegate::forge::github::{GitHubAuth, GitHubConfig};
use tidegate::ports::clock::SystemClock;
use tidegate::sandbox::{Comment, Role, Sandbox, SandboxConfig};
use tidegate::serve::{self, Decorate, Parts, Running};
use tokio::runtime::Runtime;

pub const REPO: &str = "acme/infra";
/// Opens pulls; may write.
pub const MIRA: &str = "mira";
/// Owns the repository; approves.
pub const LIN: &str = "lin";
/// May write as well.
pub const KIM: &str = "kim";
/// May only read.
pub const SAM: &str = "sam";

/// How long a story may take to come to rest before it has failed.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

pub struct Ctx {
    pub sandbox: Sandbox,
    server: Option<(Runtime, Running)>,
    address: SocketAddr,
    dir: TempDir,
    way: Way,
    /// What jobs get from the next start of the server on.
    pub job_environment: BTreeMap<String, String>,
    /// Which pulls are planned and which programs may command, from the next start of the server on.
    pub managed: tidegate::domain::managed::Managed,
    decorate: Option<Decorate>,
    /// What pulls may say of other repositories from the next start of the server on.
    pub cross_repo: CrossRepo,
    pushed: Mutex<Vec<String>>,
}

/// How the server signs in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    App,
    Token,
}

impl Ctx {
    /// A repository with these files on `main`; `$S` in them stands for the folder of the states.
    pub async fn with(files: &[(&str, &str)]) -> Self {
        Self::signed_in(files, Way::App).await
    }

    pub async fn signed_in(files: &[(&str, &str)], way: Way) -> Self {
        Self::in_environment(files, way, BTreeMap::new()).await
    }

    /// The same with what the settings let jobs see.
    pub async fn in_environment(files: &[(&str, &str)], way: Way, environment: BTreeMap<String, String>) -> Self {
        Self::made(files, way, environment, None).await
    }

    /// A server whose adapters have something around them, with what the settings let jobs see.
    pub async fn decorated_in(
        files: &[(&str, &str)],
        environment: BTreeMap<String, String>,
        decorate: Decorate,
    ) -> Self {
        Self::made(files, Way::App, environment, Some(decorate)).await
    }

    async fn made(
        files: &[(&str, &str)],
        way: Way,
        environment: BTreeMap<String, String>,
        decorate: Option<Decorate>,
    ) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(dir.path().join("states")).expect("states");
        let sandbox = Sandbox::start(SandboxConfig::local(dir.path().join("forge"))).await.expect("a sandbox");
        for login in [MIRA, LIN, KIM, SAM, "tidegate-bot"] {
            sandbox.create_user(login);
        }
        let mut ctx = Self {
            sandbox,
            server: None,
            address: own_address(),
            dir,
            way,
            job_environment: environment,
            managed: tidegate::domain::managed::Managed::default(),
            decorate,
            cross_repo: CrossRepo::Off,
            pushed: Mutex::default(),
        };
        let filled: Vec<(String, String)> =
            files.iter().map(|(path, text)| ((*path).to_owned(), ctx.fill(text))).collect();
        let borrowed: Vec<(&str, &str)> = filled.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        ctx.sandbox.create_repo("acme", "infra", &borrowed).expect("a repository");
        for (login, role) in [
            (MIRA, Role::Write),
            (LIN, Role::Admin),
            (KIM, Role::Write),
            (SAM, Role::Read),
            ("tidegate-bot", Role::Admin),
        ] {
            ctx.sandbox.set_role(REPO, login, role).expect("a role");
        }
        ctx.sandbox.protect(REPO, "main", &["tidegate/plan", "tidegate/apply"]).expect("protection");
        ctx.start().await;
        ctx
    }

    /// `$S` is the folder of the states.
    pub fn fill(&self, text: &str) -> String {
        text.replace("$S", &self.states().display().to_string())
    }

    pub fn states(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("the folder").join("states")
    }

    /// The server's data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("server")
    }

    /// Applies roots of `main` as if that had happened long ago.
    pub async fn applied_before(&self, roots: &[&str]) {
        let checkout = tempfile::tempdir().expect("a folder");
        let clone = std::process::Command::new("git")
            .args(["clone", "-q", &self.bare().display().to_string(), &checkout.path().display().to_string()])
            .output()
            .expect("git");
        assert!(clone.status.success(), "{}", String::from_utf8_lossy(&clone.stderr));
        for root in roots {
            terraform(&checkout.path().join(root), &["init", "-input=false", "-no-color"]);
            terraform(&checkout.path().join(root), &["apply", "-auto-approve", "-input=false", "-no-color"]);
        }
    }

    fn bare(&self) -> PathBuf {
        let found = find_bare(&self.dir.path().join("forge"));
        found.expect("the bare repository")
    }

    /// Starts the server; at the address that it had before, so that jobs and hooks find it again.
    pub async fn start(&mut self) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let running = self.listening(&runtime).await;
        self.address = running.address;
        let secret = self.sandbox.app_credentials().webhook_secret;
        self.sandbox.set_hook(&format!("{}/webhooks/github", running.url), secret);
        self.server = Some((runtime, running));
    }

    /// A child that was being started while the server ended may hold its port for a moment.
    async fn listening(&self, runtime: &Runtime) -> Running {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            match runtime.spawn(serve::start(self.parts())).await.expect("no panic") {
                Err(serve::StartError::Listen { .. }) if std::time::Instant::now() < until => {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                started => return started.expect("a server"),
            }
        }
    }

    /// The server is gone, wherever it was: no task of it runs on.
    pub fn kill(&mut self) {
        if let Some((runtime, _)) = self.server.take() {
            std::thread::spawn(move || runtime.shutdown_timeout(std::time::Duration::from_secs(5)))
                .join()
                .expect("the runtime ends");
        }
    }

    pub async fn restart(&mut self) {
        self.kill();
        self.start().await;
    }

    fn parts(&self) -> Parts {
        let app = self.sandbox.app_credentials();
        let auth = match self.way {
            Way::App => GitHubAuth::App { id: app.app_id, private_key_pem: SecretString::from(app.private_key) },
            Way::Token => GitHubAuth::Token(SecretString::from(self.sandbox.token_for("tidegate-bot"))),
        };
        Parts {
            listen: self.address,
            url: None,
            data_dir: self.data_dir(),
            store: None,
            key: [7; 32],
            forges: vec![(
                "github".to_owned(),
                GitHubConfig {
                    api_url: self.sandbox.url().to_owned(),
                    web_url: None,
                    auth,
                    webhook_secret: SecretString::from(app.webhook_secret),
                    forge: "github".to_owned(),
                },
            )],
            program: PathBuf::from(env!("CARGO_BIN_EXE_tidegate")),
            parallelism: 4,
            job_environment: self.job_environment.clone(),
            managed: self.managed.clone(),
            limits: Limits { edit_gap_ms: 1, parallelism: 4, heartbeat_timeout_ms: 600_000, sweep_ms: 3_600_000 },
            webhook_bytes: 26 << 20,
            cross_repo: self.cross_repo,
            clock: Arc::new(SystemClock),
            decorate: self.decorate.clone(),
        }
    }

    /// The server's address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn app(&self) -> &Arc<tidegate::app::App> {
        &self.server.as_ref().expect("a running server").1.app
    }

    /// Waits until nothing is under way: no delivery, no turn, no effect, no job.
    pub async fn settle(&self) {
        let app = Arc::clone(self.app());
        let rest = async {
            let mut activity = app.activity.subscribe();
            let mut quiet_rounds = 0;
            loop {
                self.sandbox.deliveries_idle().await;
                // The round that is under way may have looked before the last delivery came; the one after it looks again.
                let telling = activity.borrow_and_update().round + 2;
                while activity.borrow_and_update().round < telling {
                    app.ring();
                    activity.changed().await.expect("the engine runs");
                }
                let now = *activity.borrow();
                quiet_rounds = if now.rest == Rest::Complete && now.jobs == 0 { quiet_rounds + 1 } else { 0 };
                if quiet_rounds >= 2 {
                    return;
                }
            }
        };
        if tokio::time::timeout(PATIENCE, rest).await.is_err() {
            panic!("the story does not come to rest: {:?}", self.all_comments());
        }
    }

    /// Waits until the forge shows something.
    pub async fn until<T>(&self, what: &str, mut seen: impl FnMut(&Self) -> Option<T>) -> T {
        self.until_within(PATIENCE, what, &mut seen).await
    }

    /// The same for what takes longer than a story may.
    pub async fn until_within<T>(
        &self,
        patience: std::time::Duration,
        what: &str,
        mut seen: impl FnMut(&Self) -> Option<T>,
    ) -> T {
        let wait = async {
            loop {
                if let Some(value) = seen(self) {
                    return value;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(patience, wait).await {
            Ok(value) => value,
            Err(_) => panic!("{what} did not come: {:?}", self.all_comments()),
        }
    }

    /// Waits for another second of the clock: forges tell whole seconds, and what they tell apart has to differ in them.
    pub async fn next_second(&self) {
        let second = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
        let before = second();
        self.until("the next second", |_| (second() > before).then_some(())).await;
    }

    /// Commits to a branch made from `main` when it is new.
    pub fn push(&self, branch: &str, changes: &[(&str, Option<&str>)]) -> String {
        let filled: Vec<(String, Option<String>)> =
            changes.iter().map(|(path, text)| ((*path).to_owned(), text.map(|text| self.fill(text)))).collect();
        let borrowed: Vec<(&str, Option<&str>)> =
            filled.iter().map(|(path, text)| (path.as_str(), text.as_deref())).collect();
        let head = self.sandbox.commit(REPO, branch, &borrowed, "Change it", MIRA).expect("a commit");
        self.pushed.lock().expect("no test panics here").push(head.clone());
        head
    }

    /// All commits that were pushed.
    pub fn pushed(&self) -> Vec<String> {
        self.pushed.lock().expect("no test panics here").clone()
    }

    /// Opens a pull of a branch with these changes.
    pub fn open(&self, branch: &str, changes: &[(&str, Option<&str>)]) -> u64 {
        self.push(branch, changes);
        self.sandbox.open_pull(REPO, branch, "Change it", MIRA).expect("a pull")
    }

    /// Sends a delivery of ours to the server, signed as the forge signs; gives the answer's status.
    pub async fn webhook(&self, event: &str, id: &str, body: &serde_json::Value) -> u16 {
        let text = body.to_string();
        let secret = self.sandbox.app_credentials().webhook_secret;
        let sent = reqwest::Client::new()
            .post(format!("http://{}/webhooks/github", self.address))
            .header("content-type", "application/json")
            .header("x-github-event", event)
            .header("x-github-delivery", id)
            .header("x-hub-signature-256", tidegate::sandbox::hooks::signature(secret, text.as_bytes()))
            .body(text)
            .send()
            .await;
        sent.expect("an answer").status().as_u16()
    }

    /// The newest delivery of this event and action, as the forge sent it.
    pub fn delivered(&self, event: &str, action: &str) -> serde_json::Value {
        let all = self.sandbox.hooks().delivered();
        let found = all.iter().rev().find(|delivery| delivery.event == event && delivery.action == action);
        serde_json::from_str(&found.expect("such a delivery").body).expect("JSON")
    }

    /// Changes a byte of each plan that is kept.
    pub async fn spoil_kept_plans(&self) {
        let store = &self.app().store;
        for rollout in store.pulls().await.expect("pulls").into_iter().filter_map(|pull| pull.rollout) {
            for planned in rollout.runs.values().filter_map(|run| run.planned()) {
                let mut blob = store.blob(&planned.job, "plan").await.expect("the store").expect("a kept plan");
                let last = blob.bytes.last_mut().expect("bytes");
                *last ^= 1;
                store.put_blob(&planned.job, &blob).await.expect("kept");
            }
        }
    }

    /// What the server answers when the job of a plan that is there uploads something more.
    pub async fn put_for_ended_job(&self, what: &str) -> u16 {
        let app = self.app();
        let rollouts = app.store.pulls().await.expect("pulls").into_iter().filter_map(|pull| pull.rollout);
        let job =
            rollouts.flat_map(|rollout| rollout.runs.into_values()).find_map(|run| Some(run.planned()?.job.clone()));
        self.put_for_job(&job.expect("a planned root"), what).await
    }

    /// What the server answers when this job uploads something more.
    pub async fn put_for_job(&self, job: &tidegate::domain::ids::JobId, what: &str) -> u16 {
        let app = self.app();
        let request = reqwest::Client::new()
            .put(format!("{}/{what}", app.url_of_job(job)))
            .bearer_auth(app.vault.job_token(job))
            .body("other bytes");
        request.send().await.expect("an answer").status().as_u16()
    }

    /// How many jobs were ever started for a pull's current head.
    pub async fn jobs(&self, pull: u64) -> u32 {
        let pulls = self.app().store.pulls().await.expect("pulls");
        let known = pulls.into_iter().find(|known| known.key.number == pull).and_then(|known| known.rollout);
        known.map_or(0, |rollout| rollout.jobs)
    }

    /// Comments, and waits until everything that follows has happened. Gives the comment's id.
    pub async fn comment(&self, pull: u64, by: &str, text: &str) -> u64 {
        let id = self.sandbox.comment(REPO, pull, by, text).expect("a comment");
        self.settle().await;
        id
    }

    pub fn merge(&self, pull: u64) -> Result<String, String> {
        self.sandbox.merge(REPO, pull, MIRA).map_err(|refusal| format!("{refusal:?}"))
    }

    fn ours(&self, pull: u64) -> Vec<Comment> {
        let comments = self.sandbox.comments(REPO, pull).expect("comments");
        comments.into_iter().filter(|comment| comment.author.starts_with("tidegate")).collect()
    }

    fn all_comments(&self) -> Vec<String> {
        (1..20)
            .filter_map(|pull| self.sandbox.comments(REPO, pull).ok())
            .flatten()
            .map(|comment| comment.body)
            .collect()
    }

    /// How often a comment of the pull was edited, as far as the forge has told.
    pub fn edits(&self, pull: u64) -> usize {
        let of_pull = |body: &str| {
            let value: serde_json::Value = serde_json::from_str(body).expect("JSON");
            value["issue"]["number"].as_u64() == Some(pull)
        };
        let all = self.sandbox.hooks().delivered();
        let edits = all.iter().filter(|told| told.event == "issue_comment" && told.action == "edited");
        edits.filter(|told| of_pull(&told.body)).count()
    }

    /// The notes of a pull: never more than one.
    pub fn note(&self, pull: u64) -> Option<String> {
        let mut notes: Vec<String> =
            self.ours(pull).into_iter().filter_map(|comment| split(&comment.body, " note -->")).collect();
        assert!(notes.len() <= 1, "more than one note: {notes:#?}");
        notes.pop()
    }

    /// All our other comments, oldest first.
    pub fn replies(&self, pull: u64) -> Vec<String> {
        let others = self.ours(pull).into_iter().filter(|comment| !comment.body.trim_end().ends_with(" note -->"));
        others.map(|comment| split(&comment.body, "-->").unwrap_or(comment.body)).collect()
    }

    pub fn last_reply(&self, pull: u64) -> String {
        self.replies(pull).pop().expect("a reply")
    }

    /// State and title of one of our checks on the pull's head: `success: …`.
    pub fn check(&self, pull: u64, name: &str) -> String {
        let head = self.sandbox.pull(REPO, pull).expect("a pull").head_sha;
        self.check_of(&head, name)
    }

    pub fn check_of(&self, head: &str, name: &str) -> String {
        let runs = self.sandbox.checks(REPO, head).expect("checks");
        if let Some(run) = runs.iter().filter(|run| run.name == name).max_by_key(|run| run.id) {
            let state = run.conclusion.clone().unwrap_or_else(|| run.status.clone());
            return format!("{state}: {}", run.output[0].clone().unwrap_or_default());
        }
        let statuses = self.sandbox.statuses(REPO, head).expect("statuses");
        match statuses.iter().filter(|status| status.context == name).max_by_key(|status| status.id) {
            Some(status) => format!("{}: {}", status.state, status.description.clone().unwrap_or_default()),
            None => "none".to_owned(),
        }
    }

    pub fn plan_check(&self, pull: u64) -> String {
        self.check(pull, "tidegate/plan")
    }

    pub fn apply_check(&self, pull: u64) -> String {
        self.check(pull, "tidegate/apply")
    }

    /// Roots locked, each with its holder's number, as `network #1`.
    pub async fn locks(&self) -> Vec<String> {
        let pulls = self.app().store.pulls().await.expect("pulls");
        let Some(repo) = pulls.first().map(|pull| pull.key.repo.clone()) else { return Vec::new() };
        let table = self.app().store.locks(&repo).await.expect("locks");
        let held =
            table.locks.values().filter_map(|lock| Some(format!("{} #{}", lock.root, lock.holder.as_ref()?.pull)));
        held.collect()
    }

    /// The outputs of a root's state, as JSON text; empty when there is no state.
    pub fn state(&self, name: &str) -> String {
        std::fs::read_to_string(self.states().join(format!("{name}.tfstate"))).unwrap_or_default()
    }

    /// How often a wave of the pull was let through to its jobs.
    pub async fn uses(&self, pull: u64) -> usize {
        let pulls = self.app().store.pulls().await.expect("pulls");
        let Some(known) = pulls.iter().find(|known| known.key.number == pull) else { return 0 };
        let ledger = self.app().store.ledger(&known.key).await.expect("a ledger");
        ledger.iter().filter(|(_, line)| line.contains(" uses ")).count()
    }

    /// How often a state was written: its serial.
    pub fn serial(&self, name: &str) -> u64 {
        let state: serde_json::Value = serde_json::from_str(&self.state(name)).unwrap_or_default();
        state["serial"].as_u64().unwrap_or(0)
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A loopback address of this world alone: nobody takes its port while its server is down. Elsewhere than on Linux there
/// is only one.
pub fn own_address() -> SocketAddr {
    let own = |_| rand::random_range(1..=254);
    let [a, b, c] = if cfg!(target_os = "linux") { [0, 1, 2].map(own) } else { [0, 0, 1] };
    SocketAddr::from(([127, a, b, c], 0))
}

/// The text before our marker, when it ends with this kind of marker.
fn split(body: &str, ending: &str) -> Option<String> {
    let body = body.trim_end();
    if !body.ends_with(ending) {
        return None;
    }
    body.rfind("<!-- tidegate").map(|at| body[..at].trim_end().to_owned())
}

fn find_bare(dir: &Path) -> Option<PathBuf> {
    if dir.join("HEAD").is_file() && dir.join("objects").is_dir() {
        return Some(dir.to_owned());
    }
    std::fs::read_dir(dir).ok()?.filter_map(|entry| find_bare(&entry.ok()?.path())).next()
}

pub fn terraform(dir: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("terraform")
        .args(arguments)
        .current_dir(dir)
        .env_remove("TF_CLI_CONFIG_FILE")
        .env("CHECKPOINT_DISABLE", "1")
        .output()
        .expect("terraform");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
