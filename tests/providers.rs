//! Stories with a provider of our own: drift, failures, secrets that only an apply makes, and versions that move. Not part of a
//! plain `cargo test`: `scripts/provider` builds it and names its mirror in `TIDEGATE_TEST_MIRROR`; without that every test fails.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

#[path = "it/ctx.rs"]
#[expect(dead_code, reason = "these stories need a part of it")]
mod ctx;

use ctx::{Ctx, LIN, MIRA, Way};

const ADDRESS: &str = "registry.example.test/acme/test";

fn root(things: &str) -> String {
    format!(
        "terraform {{\n  backend \"local\" {{ path = \"$S/app.tfstate\" }}\n  required_providers {{\n    \
         test = {{ source = \"{ADDRESS}\" }}\n  }}\n}}\nprovider \"test\" {{ folder = \"$S/cloud\" }}\n{things}"
    )
}

fn thing(name: &str, rest: &str) -> String {
    format!("resource \"test_thing\" \"{name}\" {{\n  name = \"{name}\"\n{rest}\n}}\n")
}

/// A mirror in which versions can appear, and a world whose jobs look there.
struct World {
    ctx: Ctx,
    mirror: tempfile::TempDir,
}

impl World {
    async fn with(things: &str) -> Self {
        let mirror = tempfile::tempdir().expect("a folder");
        let settings = mirror.path().join("cli.tfrc");
        let path = mirror.path().display();
        let text = format!("provider_installation {{\n  filesystem_mirror {{\n    path = \"{path}\"\n  }}\n}}\n");
        std::fs::write(&settings, text).expect("settings");
        publish(mirror.path(), "0.1.0");
        let environment = BTreeMap::from([
            ("TF_CLI_CONFIG_FILE".to_owned(), settings.display().to_string()),
            // The provider's library adds one to each of its errors.
            ("RUST_BACKTRACE".to_owned(), "0".to_owned()),
        ]);
        let ctx = Ctx::in_environment(&[("app/main.tf", &root(things))], Way::App, environment).await;
        Self { ctx, mirror }
    }

    async fn open(&self, branch: &str, things: &str) -> u64 {
        let pull = self.ctx.open(branch, &[("app/main.tf", Some(&root(things)))]);
        self.ctx.settle().await;
        pull
    }

    async fn apply(&self, pull: u64) {
        self.ctx.comment(pull, LIN, "approve").await;
        self.ctx.comment(pull, MIRA, "apply").await;
    }

    fn cloud(&self, name: &str) -> PathBuf {
        self.ctx.states().join("cloud").join(name)
    }

    /// All that anybody can read at a pull.
    fn texts(&self, pull: u64) -> String {
        let mut texts = self.ctx.replies(pull);
        texts.extend(self.ctx.note(pull));
        texts.extend([self.ctx.plan_check(pull), self.ctx.apply_check(pull)]);
        texts.join("\n")
    }
}

/// Puts a version into a mirror.
fn publish(mirror: &Path, version: &str) {
    let built = std::env::var_os("TIDEGATE_TEST_MIRROR").map(PathBuf::from).expect("run by scripts/provider");
    let folder = mirror.join(ADDRESS).join(version);
    std::fs::create_dir_all(&folder).expect("a folder");
    // The tool follows a link in the place of a package, and none above it.
    for package in std::fs::read_dir(built.join(ADDRESS).join(version)).expect("packages").flatten() {
        symlink(package.path(), folder.join(package.file_name())).expect("a link");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_takes_the_provider_of_its_plan_although_a_newer_one_appeared() {
    let world = World::with(&thing("a", "")).await;
    let pull = world.open("b", &thing("a", "  value = \"1\"")).await;
    assert!(world.ctx.plan_check(pull).starts_with("success"), "{}", world.texts(pull));
    publish(world.mirror.path(), "0.2.0");
    world.apply(pull).await;
    assert!(world.ctx.apply_check(pull).starts_with("success"), "{}", world.texts(pull));
    assert!(world.cloud("a.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_calls_sensitive_is_seen_by_nobody_when_it_fails() {
    let world = World::with("").await;
    let bad = thing("bad", "  secret = \"hush-hush-4711\"\n  fails  = \"create\"\n  depends_on = [test_thing.good]");
    let pull = world.open("b", &format!("{}{bad}", thing("good", "  secret = \"quiet-quiet-12\""))).await;
    world.apply(pull).await;
    let texts = world.texts(pull);
    assert!(world.ctx.apply_check(pull).starts_with("failure"), "{texts}");
    assert!(texts.contains("the test cloud refuses to create"), "{texts}");
    for secret in ["hush-hush", "quiet-quiet", "made-token-of"] {
        assert!(!texts.contains(secret), "{secret}: {texts}");
    }
    assert!(world.cloud("good.json").exists() && !world.cloud("bad.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_between_plan_and_apply_is_what_the_next_plan_shows() {
    let world = World::with(&thing("a", "  value = \"1\"")).await;
    let pull = world.open("b", &thing("a", "  value = \"2\"")).await;
    world.apply(pull).await;
    assert!(world.ctx.apply_check(pull).starts_with("success"), "{}", world.texts(pull));
    world.ctx.merge(pull).expect("it merges");
    world.ctx.settle().await;

    std::fs::write(world.cloud("a.json"), "{\"value\":\"by hand\"}").expect("drift");
    let pull = world.open("c", &format!("{}# a comment\n", thing("a", "  value = \"2\""))).await;
    let note = world.ctx.note(pull).expect("a note");
    assert!(note.contains("1 update") && note.contains("by hand"), "{note}");
    world.apply(pull).await;
    let kept = std::fs::read_to_string(world.cloud("a.json")).expect("it is there");
    assert!(kept.contains("\"2\""), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_fails_half_way_says_which_half() {
    let world = World::with("").await;
    let first = world.open("b", &thing("a", "  value = \"1\"")).await;
    world.apply(first).await;
    world.ctx.merge(first).expect("it merges");
    world.ctx.settle().await;
    let other = "resource \"test_thing\" \"a\" {\n  name  = \"other\"\n  fails = \"create\"\n}\n";
    let pull = world.open("c", other).await;
    assert!(world.ctx.note(pull).is_some_and(|note| note.contains("1 replace")), "{}", world.texts(pull));
    world.apply(pull).await;
    assert!(world.ctx.apply_check(pull).starts_with("failure"), "{}", world.texts(pull));
    assert!(!world.cloud("a.json").exists() && !world.cloud("other.json").exists());
    // The push that mends it plans what is left to do: a create, and no replacement any more.
    world.ctx.push("c", &[("app/main.tf", Some(&root(&other.replace("  fails = \"create\"\n", ""))))]);
    world.ctx.settle().await;
    let note = world.ctx.note(pull).expect("a note");
    assert!(note.contains("1 create") && !note.contains("1 replace"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_takes_long_is_followed_while_it_works() {
    let world = World::with("").await;
    let pull = world.open("b", &thing("slow", &format!("  wait_for = \"{}\"", world.cloud("go").display()))).await;
    let waiting = world.cloud("slow.waiting");
    let going = async {
        world.ctx.until("the provider at work", |_| waiting.exists().then_some(())).await;
        assert!(!world.ctx.apply_check(pull).starts_with("success"));
        // A running apply is never taken away: a push in its middle lets it end.
        world.ctx.push("b", &[("app/other.txt", Some("x"))]);
        std::fs::write(world.cloud("go"), "").expect("the word to go on");
    };
    tokio::join!(world.apply(pull), going);
    world.ctx.settle().await;
    assert!(world.cloud("slow.json").exists() && !waiting.exists(), "{}", world.texts(pull));
}
