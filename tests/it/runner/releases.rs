//! Versions that are fetched: from a site of our own, signed by a key of our own. What is not signed, not whole or not there installs
//! nothing, and says what to do.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use pgp::composed::{
    ArmorOptions, DetachedSignature, EncryptionCaps, KeyType, SecretKeyParamsBuilder, SignedPublicKey, SignedSecretKey,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::ser::Serialize;
use pgp::types::Password;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tidegate::domain::config::ToolKind;
use tidegate::domain::job::{Failure, JobResult, JobSpec};
use tidegate::domain::tool::AskedBy;

use super::server::{Kept, Trouble, World};
use super::tools::{terraform, version, wanting};
use super::{TWO, backend, environment};

fn new_key(name: &str) -> SignedSecretKey {
    let mut params = SecretKeyParamsBuilder::default();
    params.key_type(KeyType::Ed25519Legacy).can_certify(true).can_sign(true).can_encrypt(EncryptionCaps::None);
    params.primary_user_id(name.into());
    params.build().unwrap().generate(rand_08::thread_rng()).unwrap()
}

fn vendor() -> &'static SignedSecretKey {
    static KEY: OnceLock<SignedSecretKey> = OnceLock::new();
    KEY.get_or_init(|| new_key("The vendor <v@example.com>"))
}

fn sign(key: &SignedSecretKey, text: &[u8]) -> Vec<u8> {
    let empty = Password::empty();
    let signed = DetachedSignature::sign_binary_data(
        rand_08::thread_rng(),
        &key.primary_key,
        &empty,
        HashAlgorithm::Sha256,
        text,
    );
    signed.unwrap().to_bytes().unwrap()
}

/// An archive with a program that runs the Terraform that is there.
fn archive() -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("LICENSE.txt", options).unwrap();
    zip.write_all(b"words").unwrap();
    zip.start_file("terraform", options).unwrap();
    write!(zip, "#!/bin/sh\nexec {} \"$@\"\n", terraform().display()).unwrap();
    zip.finish().unwrap().into_inner()
}

/// A release site, with the files of one version.
struct Site {
    url: String,
    shared: Arc<Shared>,
    dir: TempDir,
}

#[derive(Default)]
struct Shared {
    files: Mutex<BTreeMap<String, Bytes>>,
    asked: Mutex<Vec<String>>,
    /// The archive ends in the middle.
    cut: Mutex<bool>,
}

impl Site {
    async fn start() -> Self {
        let shared: Arc<Shared> = Arc::default();
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user:hunter2-4711@{}/terraform", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let dir = tempfile::tempdir().unwrap();
        for folder in ["bin", "tools"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let public = SignedPublicKey::from(vendor().clone());
        let armored = public.to_armored_string(ArmorOptions::default()).unwrap();
        std::fs::write(dir.path().join("vendor.asc"), armored).unwrap();
        Self { url, shared, dir }
    }

    fn put(&self, name: &str, bytes: Vec<u8>) {
        let path = format!("/terraform/{}/{name}", version());
        self.shared.files.lock().unwrap().insert(path, bytes.into());
    }

    fn name(&self, ending: &str) -> String {
        format!("terraform_{}_{ending}", version())
    }

    fn archive_name(&self) -> String {
        let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
        self.name(&format!("{system}_{machine}.zip"))
    }

    /// A whole release, signed by this key; `sums` may change the list after it was signed.
    fn publish(&self, key: &SignedSecretKey, sums: impl Fn(String) -> String) {
        let archive = archive();
        let list = format!("{}  {}\n", hex::encode(Sha256::digest(&archive)), self.archive_name());
        self.put(&self.name("SHA256SUMS.sig"), sign(key, list.as_bytes()));
        self.put(&self.name("SHA256SUMS"), sums(list).into_bytes());
        self.put(&self.archive_name(), archive);
    }

    fn archives_sent(&self) -> usize {
        self.shared.asked.lock().unwrap().iter().filter(|path| path.ends_with(".zip")).count()
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let text = |path: &Path| path.display().to_string();
        let mut environment = environment(self.dir.path());
        environment.insert("PATH".into(), format!("{}:/usr/bin:/bin", text(&self.dir.path().join("bin"))));
        environment.insert("TIDEGATE_JOB_TOOLS".into(), text(&self.dir.path().join("tools")));
        environment.insert("TIDEGATE_JOB_RELEASES_TERRAFORM".into(), self.url.clone());
        environment.insert("TIDEGATE_JOB_RELEASES_TOFU".into(), self.url.clone());
        environment.insert("TIDEGATE_JOB_RELEASES_TERRAFORM_KEY".into(), text(&self.dir.path().join("vendor.asc")));
        environment
    }

    async fn plan(&self, spec: JobSpec) -> Kept {
        let files = [("envs/dev/main.tf".to_owned(), format!("{}{TWO}", backend(self.dir.path())))];
        let world = World::start(&files, spec, None, Trouble::None).await;
        world.run(&self.environment()).await.expect("the job ends");
        world.kept()
    }

    async fn failure(&self) -> Failure {
        match self.plan(exactly()).await.result {
            Some(JobResult::Failed { failure, .. }) => failure,
            other => panic!("{other:?}"),
        }
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("tools/terraform").join(version()).join("terraform")
    }

    /// What lies in the tools directory, but for the lock.
    fn installed(&self) -> Vec<String> {
        let folder = self.dir.path().join("tools/terraform");
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        names.map(|entry| entry.file_name().display().to_string()).filter(|name| !name.ends_with(".lock")).collect()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    let path = uri.path().to_owned();
    shared.asked.lock().unwrap().push(path.clone());
    let Some(bytes) = shared.files.lock().unwrap().get(&path).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if path.ends_with(".zip") && *shared.cut.lock().unwrap() {
        let half = bytes.slice(..bytes.len() / 2);
        let parts = [Ok(half), Err(std::io::Error::other("the line is cut"))];
        return Body::from_stream(futures::stream::iter(parts)).into_response();
    }
    bytes.into_response()
}

fn exactly() -> JobSpec {
    wanting(Some(ToolKind::Terraform), &version(), AskedBy::File(".terraform-version".to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_there_is_fetched_once_for_all() {
    let site = Site::start().await;
    site.publish(vendor(), |list| list);
    // What a job that was killed in the middle of it left.
    let left = site.dir.path().join(format!("tools/terraform/.{}-download-x7", version()));
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("archive.zip"), "half").unwrap();
    std::fs::write(site.dir.path().join(format!("tools/terraform/.{}.lock", version())), "").unwrap();
    let (one, two) = tokio::join!(site.plan(exactly()), site.plan(exactly()));
    for kept in [&one, &two] {
        let Some(JobResult::Planned { tool, .. }) = &kept.result else { panic!("{:?}", kept.result) };
        assert_eq!((tool.kind, tool.version.as_str()), (ToolKind::Terraform, version().as_str()));
    }
    assert_eq!((site.archives_sent(), site.installed()), (1, vec![version()]));
    let log = format!("{}{}", one.log("checkout"), two.log("checkout"));
    assert!(log.contains("it is downloaded from http://127.0.0.1:") && log.contains("is signed by "), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
    site.plan(exactly()).await;
    assert_eq!(site.archives_sent(), 1, "it is there now");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_whole_or_there_installs_nothing() {
    let site = Site::start().await;
    let name = format!("terraform {}", version());
    let check = async |summary: &str, detail: &str| {
        let failure = site.failure().await;
        assert!(failure.summary.contains(&name) && failure.summary.contains(summary), "{failure:?}");
        assert!(failure.detail.contains(detail), "{detail}: {failure:?}");
        assert!(!format!("{failure:?}").contains("hunter2"), "{failure:?}");
        assert_eq!(site.installed(), Vec::<String>::new(), "{summary}");
        assert!(!site.program().exists());
    };
    check("could not be downloaded", "SHA256SUMS is not there").await;
    site.publish(&new_key("Somebody else <s@example.com>"), |list| list);
    check("is not what its vendor signed", "it was not made by the key").await;
    site.publish(vendor(), |list| list.replace(|c: char| c.is_ascii_digit(), "0"));
    check("is not what its vendor signed", "it was not made by the key").await;
    site.publish(vendor(), |list| list);
    site.put(&site.archive_name(), b"other bytes".to_vec());
    check("is not what its vendor signed", "is signed").await;
    site.put(&site.name("SHA256SUMS.sig"), b"nonsense".to_vec());
    check("is not what its vendor signed", "it is no signature").await;
    site.publish(vendor(), |list| list);
    *site.shared.cut.lock().unwrap() = true;
    check("could not be downloaded", ".zip: ").await;
    *site.shared.cut.lock().unwrap() = false;
    let list = format!("{}  terraform_1.0.0_solaris_amd64.zip\n", "a".repeat(64));
    site.put(&site.name("SHA256SUMS.sig"), sign(vendor(), list.as_bytes()));
    site.put(&site.name("SHA256SUMS"), list.into_bytes());
    check("could not be downloaded", "there is none for this system").await;
    std::fs::write(site.dir.path().join("vendor.asc"), "nonsense").unwrap();
    check("could not be downloaded", "vendor.asc` is no public key").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_or_an_exact_version_nothing_is_asked_of_the_site() {
    let site = Site::start().await;
    for (spec, summary, detail) in [
        (
            wanting(Some(ToolKind::Tofu), "1.12.6", AskedBy::Settings),
            "tofu 1.12.6 is not installed",
            "`tools.tofu_key` names",
        ),
        (
            wanting(Some(ToolKind::Terraform), "~> 1.5", AskedBy::Settings),
            "`terraform` is not installed",
            "Install it there",
        ),
        (wanting(None, &version(), AskedBy::Settings), "`terraform` or `tofu` is not installed", "Install it there"),
    ] {
        let kept = site.plan(spec).await;
        let Some(JobResult::Failed { failure, .. }) = kept.result else { panic!("{:?}", kept.result) };
        assert!(failure.summary.contains(summary), "{failure:?}");
        assert!(failure.detail.contains(detail), "{failure:?}");
    }
    assert_eq!(*site.shared.asked.lock().unwrap(), Vec::<String>::new());
}
