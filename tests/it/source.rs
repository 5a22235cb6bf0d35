//! The source on real git repositories in temporary directories. No network but a server of our own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tempfile::TempDir;
use tidegate::domain::ids::{RepoKey, Sha};
use tidegate::domain::tree::EntryKind;
use tidegate::ports::forge::{GitAccess, RepoRef};
use tidegate::ports::source::{Merged, Source, SourceError, Wanted};
use tidegate::source::GitSource;

/// A forge's repository, and mirrors of it.
struct World {
    dir: TempDir,
    source: GitSource,
}

impl World {
    /// One commit on `main` with the file `a.tf`.
    fn new() -> Self {
        let dir = TempDir::new().expect("a directory");
        let source = GitSource::new(dir.path().join("data"));
        let world = Self { dir, source };
        std::fs::create_dir(world.forge()).expect("a directory");
        world.git(&["init", "-q", "-b", "main"]);
        world.write("a.tf", b"one\n");
        world.commit("first");
        world
    }

    fn forge(&self) -> PathBuf {
        self.dir.path().join("forge")
    }

    fn mirror(&self) -> PathBuf {
        let mut made = std::fs::read_dir(self.dir.path().join("data/mirrors")).expect("mirrors");
        made.next().expect("a mirror").expect("readable").path()
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.forge(), args)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.forge().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, bytes).expect("written");
    }

    /// Everything in the working tree, as a commit of the current branch.
    fn commit(&self, message: &str) -> Sha {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.tip("HEAD")
    }

    /// The head of pull `number` is the current commit.
    fn pull(&self, number: u64) -> Sha {
        self.git(&["update-ref", &format!("refs/pull/{number}/head"), "HEAD"]);
        self.tip("HEAD")
    }

    fn tip(&self, name: &str) -> Sha {
        Sha::new(self.git(&["rev-parse", name]).trim())
    }

    fn access(&self) -> GitAccess {
        GitAccess { url: self.forge().display().to_string(), authorization: None }
    }

    async fn fetch(&self, pull: u64, head: &Sha, known: Option<&Sha>) -> Result<Sha, SourceError> {
        let wanted = Wanted { pull, head: head.clone(), base_ref: "main".to_owned() };
        self.source.fetch(&repo(), &self.access(), &wanted, known).await
    }

    async fn text(&self, treeish: &Sha, path: &str) -> Option<String> {
        let bytes = self.source.read(&repo(), treeish, path).await.expect("readable")?;
        Some(String::from_utf8(bytes).expect("text"))
    }
}

fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"])
        .args(args)
        .output()
        .expect("git runs");
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

fn repo() -> RepoRef {
    RepoRef { key: RepoKey { forge: "github".to_owned(), id: 12 }, name: "org/infra".to_owned() }
}

fn tree(merged: Merged) -> Sha {
    match merged {
        Merged::Tree(tree) => tree,
        Merged::Conflict(paths) => panic!("a conflict in {paths:?}"),
    }
}

fn packs(mirror: &Path) -> usize {
    let entries = std::fs::read_dir(mirror.join("objects/pack")).expect("packs");
    entries
        .filter(|entry| entry.as_ref().expect("readable").path().extension().is_some_and(|end| end == "pack"))
        .count()
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test]
async fn the_merge_has_what_base_gained() {
    let world = World::new();
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.write("b/b.tf", b"two\n");
    world.commit("topic");
    let head = world.pull(7);
    world.git(&["checkout", "-q", "main"]);
    world.write("a.tf", b"base moved\n");
    let base = world.commit("base");

    assert_eq!(world.fetch(7, &head, None).await.expect("fetched"), base);
    let merged = tree(world.source.merge(&repo(), &base, &head).await.expect("merged"));
    assert_eq!(world.text(&merged, "a.tf").await.as_deref(), Some("base moved\n"));
    assert_eq!(world.text(&merged, "b/b.tf").await.as_deref(), Some("two\n"));
    assert_eq!(world.text(&head, "a.tf").await.as_deref(), Some("one\n"));
    assert_eq!(world.text(&merged, "c.tf").await, None);
    let changed = world.source.listing(&repo(), &merged).await.expect("listed");
    let before = world.source.listing(&repo(), &base).await.expect("listed");
    assert_eq!(changed.changed_since(&before), ["b/b.tf"]);
}

#[tokio::test]
async fn a_conflict_names_its_paths() {
    let world = World::new();
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.write("a.tf", b"mine\n");
    world.write("dir with space/é.tf", b"mine\n");
    world.commit("topic");
    let head = world.pull(7);
    world.git(&["checkout", "-q", "main"]);
    world.write("a.tf", b"theirs\n");
    world.write("dir with space/é.tf", b"theirs\n");
    let base = world.commit("base");
    world.fetch(7, &head, None).await.expect("fetched");
    let merged = world.source.merge(&repo(), &base, &head).await.expect("an answer");
    assert_eq!(merged, Merged::Conflict(vec!["a.tf".to_owned(), "dir with space/é.tf".to_owned()]));
}

#[tokio::test]
async fn what_is_there_is_not_fetched_again_and_a_push_adds_only_itself() {
    let world = World::new();
    world.write("big.bin", &pseudo_random(200_000));
    let base = world.commit("big");
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.write("b.tf", b"two\n");
    world.commit("topic");
    let head = world.pull(7);
    world.fetch(7, &head, None).await.expect("fetched");
    world.write("b.tf", b"three\n");
    world.commit("push");
    let pushed = world.pull(7);
    assert_eq!(world.fetch(7, &pushed, Some(&base)).await.expect("fetched"), base);
    assert_eq!(packs(&world.mirror()), 2);
    let packed = files(&world.mirror().join("objects/pack"));
    let big = packed.iter().filter(|path| path.metadata().expect("there").len() > 100_000);
    assert_eq!(big.count(), 1, "the big file came once");

    std::fs::rename(world.forge(), world.dir.path().join("away")).expect("the forge is down");
    assert_eq!(world.fetch(7, &pushed, Some(&base)).await.expect("from disk"), base);
    assert_eq!(world.fetch(7, &head, Some(&base)).await.expect("the older head too"), base);
    let down = world.fetch(7, &Sha::new("1".repeat(40)), Some(&base)).await;
    assert!(matches!(down, Err(SourceError::Unavailable(_))), "{down:?}");
}

#[tokio::test]
async fn many_fetches_leave_few_packs_and_lose_no_tree() {
    let world = World::new();
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.write("b.tf", b"0\n");
    world.commit("0");
    let first = world.pull(1);
    let base = world.fetch(1, &first, None).await.expect("fetched");
    let merged = tree(world.source.merge(&repo(), &base, &first).await.expect("merged"));
    for push in 1..23 {
        world.write("b.tf", format!("{push}\n").as_bytes());
        world.git(&["add", "-A"]);
        world.git(&["commit", "-q", "--amend", "-m", "push"]);
        let head = world.pull(1);
        world.fetch(1, &head, Some(&base)).await.expect("fetched");
    }
    assert!(packs(&world.mirror()) < 10);
    let again = GitSource::new(world.dir.path().join("data"));
    for treeish in [&merged, &first] {
        let bytes = again.read(&repo(), treeish, "b.tf").await.expect("a head that was pushed over is kept");
        assert_eq!(bytes.as_deref(), Some(b"0\n".as_slice()));
    }
}

fn pseudo_random(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    })
    .take(len)
    .collect()
}

#[tokio::test]
async fn a_head_that_was_replaced_is_found_by_id_or_gone() {
    let world = World::new();
    world.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.write("b.tf", b"old\n");
    world.commit("old");
    let old = world.pull(7);
    world.git(&["reset", "-q", "--hard", "main"]);
    world.write("b.tf", b"new\n");
    world.commit("new");
    let new = world.pull(7);
    world.fetch(7, &old, None).await.expect("still there by its id");
    assert_eq!(world.text(&old, "b.tf").await.as_deref(), Some("old\n"));
    assert_eq!(world.text(&new, "b.tf").await.as_deref(), Some("new\n"));
    let never = Sha::new("1".repeat(40));
    let gone = world.fetch(7, &never, None).await;
    assert!(matches!(&gone, Err(SourceError::Gone(what)) if what == never.as_str()), "{gone:?}");
    let no_pull = world.fetch(8, &new, None).await;
    assert!(matches!(&no_pull, Err(SourceError::Gone(what)) if what == "refs/pull/8/head"), "{no_pull:?}");
    let wanted = Wanted { pull: 7, head: new, base_ref: "deleted".to_owned() };
    let no_base = world.source.fetch(&repo(), &world.access(), &wanted, None).await;
    assert!(matches!(&no_base, Err(SourceError::Gone(what)) if what == "refs/heads/deleted"), "{no_base:?}");
}

#[tokio::test]
async fn a_branch_may_take_the_place_of_a_folder_of_branches() {
    let world = World::new();
    let head = world.pull(7);
    for name in ["release/1", "release"] {
        world.git(&["branch", name]);
        let wanted = Wanted { pull: 7, head: head.clone(), base_ref: name.to_owned() };
        world.source.fetch(&repo(), &world.access(), &wanted, None).await.expect(name);
        world.git(&["branch", "-D", name]);
    }
}

#[tokio::test]
async fn any_name_is_listed_and_read() {
    let world = World::new();
    for name in ["with space.tf", "ünï/ço.tf", "line\nbreak.tf", "tab\there.tf", "\"quoted\".tf", "-n.tf"] {
        world.write(name, name.as_bytes());
    }
    world.write("empty.tf", b"");
    std::os::unix::fs::symlink("../with space.tf", world.forge().join("ünï/link.tf")).expect("a link");
    std::os::unix::fs::symlink("loop.tf", world.forge().join("loop.tf")).expect("a link");
    world.commit("names");
    let head = world.pull(1);
    world.fetch(1, &head, None).await.expect("fetched");
    let listing = world.source.listing(&repo(), &head).await.expect("listed");
    for name in ["with space.tf", "ünï/ço.tf", "line\nbreak.tf", "tab\there.tf", "\"quoted\".tf", "-n.tf"] {
        assert_eq!(listing.entries[name].size, u64::try_from(name.len()).expect("small"), "{name:?}");
        assert_eq!(world.text(&head, name).await.as_deref(), Some(name));
    }
    assert_eq!(listing.entries.len(), 10);
    assert_eq!(listing.entries["ünï/link.tf"].kind, EntryKind::Link);
    let paths = ["ünï/link.tf", "with space.tf", "loop.tf", "none.tf"].map(str::to_owned);
    let files = world.source.read_all(&repo(), &head, &paths).await.expect("readable");
    let found: Vec<(&str, &[u8])> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
    assert_eq!(found, [("with space.tf", b"with space.tf".as_slice()), ("ünï/link.tf", b"with space.tf")]);
    assert_eq!(world.text(&head, "ünï/link.tf").await.as_deref(), Some("with space.tf"));
    assert_eq!(world.text(&head, "loop.tf").await, None);
    assert_eq!(world.text(&head, "empty.tf").await.as_deref(), Some(""));
}

#[tokio::test]
async fn an_archive_has_every_file_whatever_its_attributes_say() {
    let world = World::new();
    world.write(".gitattributes", b"hidden export-ignore\n*.tf export-subst\n");
    world.write("hidden/x.tf", b"$Format:%H$\n");
    world.commit("attributes");
    let head = world.pull(1);
    let base = world.fetch(1, &head, None).await.expect("fetched");
    let merged = tree(world.source.merge(&repo(), &base, &head).await.expect("merged"));
    for treeish in [&merged, &head] {
        let tar = world.source.archive(&repo(), treeish).await.expect("a tar");
        let mut archive = tar::Archive::new(&tar[..]);
        let mut found = std::collections::BTreeMap::new();
        for entry in archive.entries().expect("entries") {
            let mut entry = entry.expect("an entry");
            let path = entry.path().expect("a path").display().to_string();
            let mut text = String::new();
            std::io::Read::read_to_string(&mut entry, &mut text).expect("text");
            found.insert(path, text);
        }
        assert_eq!(found["hidden/x.tf"], "$Format:%H$\n");
        assert_eq!(found["a.tf"], "one\n");
    }
}

#[tokio::test]
async fn a_mirror_that_was_cut_off_recovers() {
    let world = World::new();
    let base = world.tip("main");
    let head = world.pull(1);
    // A copy that never got its HEAD, as `git init` leaves it when it is killed.
    let half = world.dir.path().join(format!("data/mirrors/{}-12.git", hex::encode("github")));
    std::fs::create_dir_all(half.join("objects")).expect("a half mirror");
    assert_eq!(world.fetch(1, &head, None).await.expect("made anew"), base);

    // Lock files that a killed git left: another process, as after a restart, takes them away.
    std::fs::write(world.mirror().join("refs/tidegate/pull/1.lock"), b"").expect("a lock");
    std::fs::write(world.mirror().join("packed-refs.lock"), b"").expect("a lock");
    world.write("a.tf", b"two\n");
    world.commit("more");
    let head = world.pull(1);
    let restarted = GitSource::new(world.dir.path().join("data"));
    let wanted = Wanted { pull: 1, head: head.clone(), base_ref: "main".to_owned() };
    assert_eq!(restarted.fetch(&repo(), &world.access(), &wanted, None).await.expect("fetched"), head);
    let left = std::fs::read_dir(world.dir.path().join("data/mirrors")).expect("mirrors").count();
    assert_eq!(left, 1, "no copy in the making is left");
}

#[tokio::test]
async fn ids_that_are_none_never_reach_git() {
    let world = World::new();
    let head = world.pull(1);
    world.fetch(1, &head, None).await.expect("fetched");
    for odd in ["--help", "HEAD", "main", ""] {
        let odd = Sha::new(odd);
        assert!(matches!(world.source.listing(&repo(), &odd).await, Err(SourceError::Broken(_))));
        assert!(matches!(world.source.archive(&repo(), &odd).await, Err(SourceError::Broken(_))));
        assert!(matches!(world.source.merge(&repo(), &odd, &head).await, Err(SourceError::Broken(_))));
        assert!(matches!(world.fetch(1, &odd, None).await, Err(SourceError::Broken(_))));
    }
    let missing = world.source.listing(&repo(), &Sha::new("1".repeat(40))).await;
    assert!(matches!(missing, Err(SourceError::Broken(_))), "{missing:?}");
}

const SECRET: &str = "Basic c2VjcmV0LXRva2Vu";

/// What a server of plain files saw.
#[derive(Clone)]
struct Seen {
    files: PathBuf,
    /// `Authorization` of each request.
    headers: Arc<Mutex<Vec<Option<String>>>>,
    /// Command lines of the machine that held the secret while a request was open.
    leaks: Arc<Mutex<Vec<String>>>,
}

async fn serve(State(seen): State<Seen>, request: Request) -> Response {
    let header = request.headers().get("authorization").map(|value| value.to_str().expect("text").to_owned());
    let allowed = header.as_deref() == Some(SECRET);
    seen.headers.lock().expect("unpoisoned").push(header);
    for process in std::fs::read_dir("/proc").expect("processes").flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(SECRET) {
            seen.leaks.lock().expect("unpoisoned").push(line);
        }
    }
    if !allowed {
        return StatusCode::FORBIDDEN.into_response();
    }
    match std::fs::read(seen.files.join(request.uri().path().trim_start_matches('/'))) {
        Ok(bytes) => bytes.into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

#[tokio::test]
async fn credentials_go_in_a_header_and_stay_nowhere() {
    let world = World::new();
    let head = world.pull(1);
    git(world.dir.path(), &["clone", "-q", "--mirror", "forge", "served/infra.git"]);
    git(&world.dir.path().join("served/infra.git"), &["update-server-info"]);
    let seen = Seen { files: world.dir.path().join("served"), headers: Arc::default(), leaks: Arc::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/infra.git", listener.local_addr().expect("an address"));
    let router = axum::Router::new().fallback(serve).with_state(seen.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });

    let wanted = Wanted { pull: 1, head: head.clone(), base_ref: "main".to_owned() };
    let access = |value: &str| GitAccess { url: url.clone(), authorization: Some(value.to_owned().into()) };
    let refused = world.source.fetch(&repo(), &access("Basic d3Jvbmc="), &wanted, None).await;
    let why = refused.expect_err("forbidden").to_string();
    assert!(!why.contains("d3Jvbmc="), "{why}");
    assert_eq!(world.source.fetch(&repo(), &access(SECRET), &wanted, None).await.expect("fetched"), head);

    let headers = seen.headers.lock().expect("unpoisoned").clone();
    assert!(headers.iter().any(|header| header.as_deref() == Some(SECRET)));
    assert!(headers.iter().all(Option::is_some), "every request is authorized: {headers:?}");
    assert_eq!(*seen.leaks.lock().expect("unpoisoned"), Vec::<String>::new());
    for file in files(&world.mirror()) {
        let bytes = std::fs::read(&file).expect("readable");
        let secret = SECRET.strip_prefix("Basic ").expect("it begins so").as_bytes();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{}", file.display());
    }
}
