//! `/setup/github` over HTTP, as a browser goes through it, with the sandbox in GitHub's part: the whole way, and every way in which
//! it breaks off.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use secrecy::ExposeSecret;
use tempfile::TempDir;
use tidegate::app::Limits;
use tidegate::domain::ids::Timestamp;
use tidegate::domain::outside::CrossRepo;
use tidegate::forge::github::GitHubPlace;
use tidegate::ports::clock::{Clock, SystemClock};
use tidegate::sandbox::{Role, Sandbox, SandboxConfig};
use tidegate::serve::{self, Parts, Running};
use tokio::runtime::Runtime;

mod breaks;
mod operator;
mod whole;

const REPO: &str = "acme/infra";
const ROOT: &str = "terraform {\n  backend \"local\" { path = \"/dev/null\" }\n}\n";

/// A clock that a test can put forward.
#[derive(Default)]
struct Late(AtomicI64);

impl Clock for Late {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_ms(self.0.load(Ordering::Relaxed))
    }
}

/// A forge that knows no App, and a server whose settings name none.
struct Stage {
    sandbox: Sandbox,
    server: Option<(Runtime, Running)>,
    address: SocketAddr,
    clock: Arc<Late>,
    key: [u8; 32],
    dir: TempDir,
}

/// What a browser got.
struct Seen {
    status: u16,
    location: String,
    cookie: String,
    policy: String,
    text: String,
}

impl Seen {
    /// The page's text must say all of this.
    #[track_caller]
    fn says(&self, status: u16, parts: &[&str]) {
        assert_eq!(self.status, status, "{}", self.text);
        for part in parts {
            assert!(self.text.contains(part), "`{part}` is not in:\n{}", self.text);
        }
    }

    /// The value of a hidden field, or of any attribute after this.
    fn after(&self, mark: &str) -> String {
        let (_, rest) = self.text.split_once(mark).unwrap_or_else(|| panic!("`{mark}` is not in:\n{}", self.text));
        let value = rest.split('"').next().unwrap();
        value.replace("&#34;", "\"").replace("&quot;", "\"").replace("&#38;", "&").replace("&amp;", "&")
    }
}

impl Drop for Stage {
    /// A runtime must not end within another.
    fn drop(&mut self) {
        self.kill();
    }
}

impl Stage {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::start(SandboxConfig::local(dir.path().join("forge"))).await.unwrap();
        for login in ["mira", "lin"] {
            sandbox.create_user(login);
        }
        sandbox.create_repo("acme", "infra", &[("README.md", "x\n")]).unwrap();
        sandbox.set_role(REPO, "mira", Role::Admin).unwrap();
        sandbox.forget_app();
        let address = crate::ctx::own_address();
        let mut stage = Self { sandbox, server: None, address, clock: Arc::default(), key: [7; 32], dir };
        stage.start().await.unwrap();
        stage
    }

    async fn start(&mut self) -> Result<(), serve::StartError> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let place = GitHubPlace {
            api_url: self.sandbox.url().to_owned(),
            web_url: self.sandbox.url().to_owned(),
            forge: "github".to_owned(),
        };
        let started = runtime.spawn(serve::start_at(self.parts(), Some(place))).await.expect("no panic");
        match started {
            Ok(running) => {
                self.address = running.address;
                self.server = Some((runtime, running));
                Ok(())
            }
            Err(error) => {
                std::thread::spawn(move || drop(runtime)).join().unwrap();
                Err(error)
            }
        }
    }

    fn parts(&self) -> Parts {
        Parts {
            listen: self.address,
            url: None,
            data_dir: self.dir.path().join("server"),
            store: None,
            key: self.key,
            forges: Vec::new(),
            program: PathBuf::from(env!("CARGO_BIN_EXE_tidegate")),
            parallelism: 2,
            job_environment: BTreeMap::new(),
            managed: tidegate::domain::managed::Managed::default(),
            limits: Limits { edit_gap_ms: 1, parallelism: 2, heartbeat_timeout_ms: 600_000, sweep_ms: 3_600_000 },
            webhook_bytes: 1 << 20,
            cross_repo: CrossRepo::Off,
            clock: self.clock.clone(),
            decorate: None,
        }
    }

    fn kill(&mut self) {
        if let Some((runtime, _)) = self.server.take() {
            std::thread::spawn(move || runtime.shutdown_timeout(std::time::Duration::from_secs(5))).join().unwrap();
        }
    }

    fn token(&self) -> Option<String> {
        let running = &self.server.as_ref().unwrap().1;
        running.setup.as_ref().unwrap().token().map(|token| token.expose_secret().to_owned())
    }

    fn page(&self) -> String {
        format!("http://{}/setup/github", self.address)
    }

    async fn get(&self, address: &str, cookie: &str) -> Seen {
        seen(client().get(address).header("cookie", cookie)).await
    }

    async fn post(&self, address: &str, cookie: &str, form: &[(&str, &str)]) -> Seen {
        seen(posted(address, form).header("cookie", cookie)).await
    }

    /// Gives the token; gets the session's cookie.
    async fn enter(&self) -> String {
        let token = self.token().expect("a token");
        let seen = self.post(&self.page(), "", &[("token", &token)]).await;
        assert_eq!((seen.status, seen.location.as_str()), (303, self.page().as_str()), "{}", seen.text);
        seen.cookie.split(';').next().unwrap().to_owned()
    }

    /// Has the forge make an App; gives the address that it sends the browser back to.
    async fn made(&self, cookie: &str) -> String {
        let form = [("kind", "organization"), ("organization", "acme")];
        let ours = self.post(&format!("{}/create", self.page()), cookie, &form).await;
        ours.says(200, &["Create the App on GitHub"]);
        let (action, manifest) =
            (ours.after("<form class=\"card\" method=\"post\" action=\""), ours.after("name=\"manifest\" value=\""));
        assert!(
            ours.policy.contains(&format!("form-action 'self' http://{} {}", self.address, self.sandbox.url())),
            "{}",
            ours.policy
        );
        let asked = self.post(&action, "", &[("manifest", &manifest)]).await;
        asked.says(200, &["Create GitHub App for acme"]);
        let (manifest, state) = (asked.after("name=\"manifest\" value=\""), asked.after("name=\"state\" value=\""));
        let confirm = format!("{}/organizations/acme/settings/apps/confirm", self.sandbox.url());
        let done =
            self.post(&confirm, "", &[("manifest", &manifest), ("state", &state), ("name", "Tidegate acme")]).await;
        assert_eq!(done.status, 303, "{}", done.text);
        done.location
    }

    /// Installs the App on the forge; gives where the browser goes then.
    async fn install(&self) -> String {
        let page = format!("{}/apps/tidegate/installations/new", self.sandbox.url());
        self.get(&page, "").await.says(200, &["Install Tidegate acme"]);
        let done = self.post(&page, "", &[]).await;
        self.sandbox.deliveries_idle().await;
        done.location
    }

    /// The whole way.
    async fn set_up(&self) -> String {
        let cookie = self.enter().await;
        let back = self.made(&cookie).await;
        assert_eq!(self.get(&back, &cookie).await.status, 303);
        self.install().await;
        cookie
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

fn posted(address: &str, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    client().post(address).header("content-type", "application/x-www-form-urlencoded").body(body)
}

async fn seen(request: reqwest::RequestBuilder) -> Seen {
    let answer = request.send().await.unwrap();
    let header =
        |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    Seen {
        status: answer.status().as_u16(),
        location: header("location"),
        cookie: header("set-cookie"),
        policy: header("content-security-policy"),
        text: answer.text().await.unwrap(),
    }
}
