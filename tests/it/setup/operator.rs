//! What whoever runs the server does about it: settings that name an App, another key, and forgetting.

use std::process::Stdio;

use tidegate::sandbox::{Sandbox, SandboxConfig};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn another_key_opens_no_app_and_replaces_none() {
    let mut stage = Stage::new().await;
    stage.set_up().await;
    stage.kill();
    stage.key = [8; 32];
    let error = stage.start().await.expect_err("it does not start");
    let mut said = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(one) = cause {
        said = format!("{said}: {one}");
        cause = one.source();
    }
    assert!(said.contains("another encryption key") && said.contains("forget-app"), "{said}");
    stage.key = [7; 32];
    stage.start().await.unwrap();
}

/// What the program said until it served, with its child.
async fn served(command: &mut Command) -> (tokio::process::Child, String, Vec<String>) {
    let mut child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let mut address = None;
    // The token comes right after the address.
    while address.is_none() || said.last().is_none_or(|line: &String| line.len() != 68) {
        let Some(line) = lines.next_line().await.unwrap() else { panic!("it ended: {said:?}") };
        if let Some((_, rest)) = line.split_once("address=") {
            address = Some(rest.split_whitespace().next().unwrap().to_owned());
        }
        said.push(line);
    }
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, address.unwrap(), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_prints_its_token_and_forgets_on_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::start(SandboxConfig::local(folder.path().join("forge"))).await.unwrap();
    sandbox.create_user("mira");
    sandbox.forget_app();
    let settings = folder.path().join("tidegate.toml");
    let text = format!(
        "listen = \"127.0.0.1:0\"\ndata_dir = \"{}\"\n[github]\nurl = \"{url}\"\nweb_url = \"{url}\"\n",
        folder.path().join("data").display(),
        url = sandbox.url()
    );
    std::fs::write(&settings, text).unwrap();
    let program = |verb: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command
            .args([verb, "--config", &settings.display().to_string()])
            .env("NO_COLOR", "1")
            .env("TIDEGATE_LOG", "info");
        command
    };
    let (mut child, address, said) = served(&mut program("serve")).await;
    let token = said.last().unwrap().trim();
    assert!(said.iter().any(|line| line.contains("/setup/github")), "{said:?}");
    let page = format!("http://{address}/setup/github");
    let entered = super::seen(super::posted(&page, &[("token", token)])).await;
    assert_eq!(entered.status, 303, "{}", entered.text);
    child.kill().await.unwrap();

    let forgotten = program("forget-app").output().await.unwrap();
    assert!(forgotten.status.success());
    assert!(String::from_utf8_lossy(&forgotten.stdout).contains("nothing was forgotten"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_app_makes_room_for_another() {
    let mut stage = Stage::new().await;
    let cookie = stage.set_up().await;
    stage.kill();
    let settings = stage.dir.path().join("tidegate.toml");
    let text = format!(
        "data_dir = \"{}\"\n[keys]\nencryption = \"{}\"\n",
        stage.dir.path().join("server").display(),
        "07".repeat(32)
    );
    std::fs::write(&settings, text).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["forget-app", "--config", &settings.display().to_string()])
        .output();
    let run = run.await.unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(
        run.status.success()
            && said.contains("Tidegate acme (id 7001) is forgotten")
            && said.contains("settings/apps/tidegate"),
        "{said}"
    );
    stage.start().await.unwrap();
    stage.get(&stage.page(), &cookie).await.says(200, &["printed a token"]);
    stage.sandbox.forget_app();
    stage.set_up().await;
}

fn doctor(settings: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["doctor", "--config", &settings.display().to_string()]);
    command
}

fn lines(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_is_missing_and_what_mends_it() {
    let stage = Stage::new().await;
    let data = stage.dir.path().join("server");
    let settings = stage.dir.path().join("tidegate.toml");
    let text = format!(
        "listen = \"{address}\"\nurl = \"http://{address}\"\ndata_dir = \"{}\"\n[keys]\nencryption = \"{}\"\n[github]\nurl = \"{url}\"\nweb_url = \"{url}\"\n",
        data.display(),
        "07".repeat(32),
        address = stage.address,
        url = stage.sandbox.url()
    );
    std::fs::write(&settings, text).unwrap();
    let said = doctor(&settings).output().await.unwrap();
    assert_eq!(said.status.code(), Some(1));
    for part in ["ok    server", "ok    database", "FAIL  App", "/setup/github", "1 must be mended"] {
        assert!(lines(&said).contains(part), "{part} is not in:\n{}", lines(&said));
    }

    let cookie = stage.enter().await;
    let back = stage.made(&cookie).await;
    stage.get(&back, &cookie).await;
    let said = lines(&doctor(&settings).output().await.unwrap());
    for part in ["we are tidegate[bot]", "FAIL  repositories", "/apps/tidegate/installations/new", "FAIL  webhooks"] {
        assert!(said.contains(part), "{part} is not in:\n{said}");
    }

    stage.install().await;
    let said = doctor(&settings).output().await.unwrap();
    let text = lines(&said);
    assert_eq!(said.status.code(), Some(0), "{text}");
    for part in ["ok    repositories  acme/infra", "taken is installation, 2", "ok    git", "ok    terraform"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let key = stage.sandbox.app_credentials().private_key;
    let secrets = key.lines().filter(|line| line.len() > 40).map(str::to_owned).chain(stage.sandbox.made_secret());
    assert!(secrets.into_iter().all(|secret| !text.contains(&secret)), "{text}");
}

#[tokio::test]
async fn the_doctor_changes_nothing_and_says_every_wrong_setting() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("tidegate.toml");
    let data = folder.path().join("data");
    std::fs::write(&settings, format!("data_dir = \"{}\"\nlisten = \"127.0.0.1:9\"\n", data.display())).unwrap();
    let said = doctor(&settings).env("PATH", "/nowhere").output().await.unwrap();
    assert_eq!(said.status.code(), Some(1));
    for part in [
        "FAIL  address",
        "look  data folder",
        "FAIL  git",
        "FAIL  tools",
        "FAIL  server",
        "look  database",
        "FAIL  App",
    ] {
        assert!(lines(&said).contains(part), "{part} is not in:\n{}", lines(&said));
    }
    assert!(!data.exists(), "it made the folder");
    std::fs::write(&settings, "lisen = \"x\"\n[github]\napp_id = 7\n").unwrap();
    let said = lines(&doctor(&settings).output().await.unwrap());
    assert!(
        ["did you mean `listen`", "github.private_key", "github.webhook_secret"].iter().all(|part| said.contains(part)),
        "{said}"
    );
}
