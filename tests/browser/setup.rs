//! `/setup/github` clicked through by a person who has only the token of the terminal, the sandbox in GitHub's part: with the mouse,
//! with the keyboard alone, and with a wrong token first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use tidegate::app::Limits;
use tidegate::forge::github::GitHubPlace;
use tidegate::ports::clock::SystemClock;
use tidegate::sandbox::{Role, Sandbox, SandboxConfig};
use tidegate::serve::{self, Parts, Running};

use crate::tab::Tab;

const REPO: &str = "acme/infra";

struct Stage {
    sandbox: Sandbox,
    running: Running,
    _dir: TempDir,
}

impl Stage {
    async fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let sandbox = Sandbox::start(SandboxConfig::local(dir.path().join("forge"))).await.expect("a sandbox");
        sandbox.create_user("mira");
        sandbox.create_repo("acme", "infra", &[("README.md", "x\n")]).expect("a repository");
        sandbox.set_role(REPO, "mira", Role::Admin).expect("a role");
        sandbox.forget_app();
        let place = GitHubPlace {
            api_url: sandbox.url().to_owned(),
            web_url: sandbox.url().to_owned(),
            forge: "github".to_owned(),
        };
        let parts = Parts {
            listen: crate::ctx::own_address(),
            url: None,
            data_dir: dir.path().join("server"),
            store: None,
            key: [7; 32],
            forges: Vec::new(),
            program: PathBuf::from(env!("CARGO_BIN_EXE_tidegate")),
            parallelism: 2,
            job_environment: BTreeMap::new(),
            managed: tidegate::domain::managed::Managed::default(),
            limits: Limits { edit_gap_ms: 1, parallelism: 2, heartbeat_timeout_ms: 600_000, sweep_ms: 3_600_000 },
            webhook_bytes: 1 << 20,
            cross_repo: tidegate::domain::outside::CrossRepo::Off,
            clock: Arc::new(SystemClock),
            decorate: None,
        };
        let running = serve::start_at(parts, Some(place)).await.expect("a server");
        Self { sandbox, running, _dir: dir }
    }

    fn page(&self) -> String {
        format!("{}/setup/github", self.running.url)
    }

    fn token(&self) -> String {
        let setup = self.running.setup.as_ref().expect("a set-up");
        setup.token().expect("a token").expose_secret().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_made_and_installed_by_clicking() {
    let stage = Stage::new().await;
    tokio::task::block_in_place(|| {
        let mut tab = Tab::open();
        tab.go(&stage.page());
        tab.reads("The token from the server's terminal");
        tab.look("setup-1-token");
        // The field has the cursor already.
        tab.write("not the token");
        tab.click(".button");
        tab.reads("token");
        tab.look("setup-2-wrong-token");
        tab.click("#token");
        tab.write(&stage.token());
        tab.click(".button");
        tab.reads("Who shall own the App?");
        tab.look("setup-3-owner");
        tab.click("input[name=organization]");
        tab.write("acme");
        tab.click(".button");
        tab.reads("Create the App on GitHub");
        tab.look("setup-4-create");
        tab.click(".button");
        // From here on it is the forge's page.
        tab.reads("Create GitHub App for acme");
        tab.click("button");
        tab.reads("This page looks again every five seconds");
        tab.look("setup-5-install");
        tab.click("a.button");
        tab.reads("Install");
        tab.click("button");
        tab.reads("What to do next");
        tab.look("setup-6-done");
    });
    assert!(stage.running.setup.as_ref().is_some_and(|setup| setup.token().is_none()), "the token is used up");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_gets_there_as_well() {
    let stage = Stage::new().await;
    tokio::task::block_in_place(|| {
        let mut tab = Tab::open();
        tab.go(&stage.page());
        tab.reads("The token from the server's terminal");
        tab.write(&stage.token());
        tab.press("Enter", 13);
        tab.reads("Who shall own the App?");
        // Past the choice, which stands on the organization, into its name.
        tab.press("Tab", 9);
        tab.press("Tab", 9);
        tab.write("acme");
        tab.press("Enter", 13);
        tab.reads("Create the App on GitHub");
        tab.press("Tab", 9);
        tab.press("Enter", 13);
        tab.reads("Create GitHub App for acme");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_said_where_it_is_read() {
    let stage = Stage::new().await;
    tokio::task::block_in_place(|| {
        let mut tab = Tab::open();
        tab.go(&format!("{}?code=nothing&state=forged", stage.page()));
        tab.reads("The token from the server's terminal");
        tab.write(&stage.token());
        tab.click(".button");
        tab.reads("Who shall own the App?");
        tab.click("input[name=organization]");
        tab.write("no such/organization");
        tab.click(".button");
        tab.reads("Who shall own the App?");
        tab.look("setup-7-bad-name");
        tab.go(&format!("{}?code=nothing&state=forged", stage.page()));
        tab.look("setup-8-forged");
    });
}
