//! A provider registry from a folder of signed files, which counts how often the archive is fetched. The command line's settings
//! name it, since a real one needs a certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Path as Part, State};
use axum::http::Method;
use axum::routing::get;
use serde_json::{Value, json};

/// The provider's address.
pub const SOURCE: &str = "registry.example.test/acme/test";

/// A running registry.
pub struct Registry {
    shared: Arc<Shared>,
}

struct Shared {
    folder: PathBuf,
    url: String,
    fetched: AtomicUsize,
}

impl Registry {
    /// Serves the files `test_0.1.0.zip`, `SHA256SUMS`, `SHA256SUMS.sig` and `key.asc` of a folder.
    pub async fn start(folder: &Path) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { folder: folder.to_owned(), url, fetched: AtomicUsize::default() });
        let routes = Router::new()
            .route("/v1/acme/test/versions", get(versions))
            .route("/v1/acme/test/0.1.0/download/{os}/{arch}", get(download))
            .route("/files/{file}", get(file))
            .with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { shared }
    }

    /// How often the archive was fetched.
    pub fn fetched(&self) -> usize {
        self.shared.fetched.load(Ordering::SeqCst)
    }

    /// The settings of the tool's command line by which it finds this registry.
    pub fn settings(&self) -> String {
        let url = &self.shared.url;
        format!("host \"registry.example.test\" {{\n  services = {{\n    \"providers.v1\" = \"{url}/v1/\"\n  }}\n}}\n")
    }

    /// The sum of the archive, as a lock file has it.
    pub fn archive(&self) -> String {
        self.sum("linux_amd64")
    }

    /// The sum of an archive that is signed with it, and that no test's machine can use.
    pub fn other_archive(&self) -> String {
        self.sum("darwin_arm64")
    }

    fn sum(&self, platform: &str) -> String {
        let sums = std::fs::read_to_string(self.shared.folder.join("SHA256SUMS")).unwrap();
        let line = sums.lines().find(|line| line.contains(platform)).unwrap();
        format!("zh:{}", line.split_whitespace().next().unwrap())
    }
}

async fn versions() -> axum::Json<Value> {
    let platforms = [("linux", "amd64"), ("linux", "arm64"), ("darwin", "arm64")];
    let platforms: Vec<Value> = platforms.iter().map(|(os, arch)| json!({ "os": os, "arch": arch })).collect();
    axum::Json(json!({ "versions": [{ "version": "0.1.0", "protocols": ["6.0"], "platforms": platforms }] }))
}

async fn download(State(shared): State<Arc<Shared>>, Part((os, arch)): Part<(String, String)>) -> axum::Json<Value> {
    let files = format!("{}/files", shared.url);
    let key = std::fs::read_to_string(shared.folder.join("key.asc")).unwrap();
    axum::Json(json!({
        "protocols": ["6.0"],
        "os": os,
        "arch": arch,
        "filename": format!("terraform-provider-test_0.1.0_{os}_{arch}.zip"),
        "download_url": format!("{files}/test_0.1.0.zip"),
        "shasums_url": format!("{files}/SHA256SUMS"),
        "shasums_signature_url": format!("{files}/SHA256SUMS.sig"),
        "shasum": Registry { shared: shared.clone() }.archive().trim_start_matches("zh:"),
        "signing_keys": { "gpg_public_keys": [{ "key_id": "44FAD1F0E0CEC9F9", "ascii_armor": key }] },
    }))
}

async fn file(State(shared): State<Arc<Shared>>, method: Method, Part(file): Part<String>) -> Vec<u8> {
    if file.ends_with(".zip") && method == Method::GET {
        shared.fetched.fetch_add(1, Ordering::SeqCst);
    }
    std::fs::read(shared.folder.join(file)).unwrap()
}
