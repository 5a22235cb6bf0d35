//! The sandbox alone and over TLS, as a client meets it that speaks nothing else.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tidegate::demo::alone::{self, Alone, Encryption, Standing};
use tidegate::sandbox::Identity;

async fn start(encryption: Encryption, data: &Path) -> anyhow::Result<Standing> {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = Alone { listen, data: None, encryption, plain: None, hook: None, seed: None, rate_limit: None };
    alone::start(&options, data).await
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A client that trusts nothing but this certificate.
fn client(certificate: &[u8]) -> reqwest::Client {
    let trusted = reqwest::Certificate::from_pem(certificate).unwrap();
    reqwest::Client::builder().no_proxy().tls_certs_only([trusted]).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_speaks_only_https_reads_and_clones() {
    let dir = tempfile::tempdir().unwrap();
    let standing = start(Encryption::Made, dir.path()).await.unwrap();
    let facts: Value = serde_json::from_slice(&std::fs::read(dir.path().join("sandbox.json")).unwrap()).unwrap();
    assert_eq!(facts, standing.facts);
    let (url, token) = (text(&facts["url"]), text(&facts["tokens"]["mira"]));
    assert!(url.starts_with("https://localhost:"), "{url}");
    // Somebody who never ends the handshake keeps nobody waiting.
    let port = url.rsplit_once(':').unwrap().1;
    let _silent = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();

    let certificate = std::fs::read(text(&facts["certificate"])).unwrap();
    let https = client(&certificate);
    for (layout, prefix) in [("", ""), ("/api/v3", "/api/v3")] {
        let answer =
            https.get(format!("{url}{layout}/repos/acme/infra")).basic_auth("mira", Some(token)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let repo: Value = answer.json().await.unwrap();
        assert_eq!(repo["url"], format!("{url}{prefix}/repos/acme/infra"));
        assert_eq!(repo["clone_url"], format!("{url}/acme/infra.git"));
    }

    let clone = format!("https://mira:{token}@localhost:{port}/acme/infra.git");
    let into = dir.path().join("clone");
    let output = Command::new("git")
        .args(["clone", "--quiet", &clone])
        .arg(&into)
        .env("GIT_SSL_CAINFO", text(&facts["certificate"]))
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("NO_PROXY", "localhost")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(into.join("network/main.tf").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_has_is_not_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let standing = start(Encryption::Plain, dir.path()).await.unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |tag: Option<String>| {
        let request = http
            .get(format!("{}/repos/acme/infra/pulls", standing.sandbox.url()))
            .bearer_auth(text(&standing.facts["tokens"]["lin"]));
        tag.map_or_else(
            || request.try_clone().unwrap(),
            |tag| request.try_clone().unwrap().header("if-none-match", tag),
        )
        .send()
    };
    let first = ask(None).await.unwrap();
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let again = ask(Some(tag.clone())).await.unwrap();
    assert_eq!((again.status().as_u16(), again.headers()["etag"].to_str().unwrap()), (304, tag.as_str()));
    assert!(again.bytes().await.unwrap().is_empty());
    let change = [("network/main.tf", Some("# less\n"))];
    standing.sandbox.commit("acme/infra", "less", &change, "Less", "mira").unwrap();
    standing.sandbox.open_pull("acme/infra", "less", "Less", "mira").unwrap();
    let changed = ask(Some(tag)).await.unwrap();
    assert_eq!(changed.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_outlives_a_restart_and_a_bad_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let made = Identity::made_in(dir.path()).unwrap();
    let before = std::fs::read(&made.certificate).unwrap();
    assert_eq!(Identity::made_in(dir.path()).unwrap(), made);
    assert_eq!(std::fs::read(&made.certificate).unwrap(), before);

    let given = start(Encryption::Given(made.clone()), &dir.path().join("given")).await.unwrap();
    let answer = client(&before).get(format!("{}/rate_limit", given.sandbox.url())).send().await.unwrap();
    assert_eq!(answer.status(), 200);

    let nonsense = dir.path().join("nonsense.pem");
    std::fs::write(&nonsense, "no key").unwrap();
    let wrong = Identity { certificate: made.certificate, key: nonsense };
    let error = start(Encryption::Given(wrong), dir.path()).await.err().unwrap();
    assert!(format!("{error:#}").contains("nonsense.pem"), "{error:#}");
}
