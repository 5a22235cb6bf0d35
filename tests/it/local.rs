//! Tidegate without a server: graphs of directories as they are on people's machines, and plans in a copy.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate::local::plan::{Wish, plan};
use tidegate::local::{Format, explain, graph};

use crate::stories::{APP, NET, SOLO};

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text.replace("$S", &dir.display().to_string())).expect("a file");
    }
}

fn git(dir: &Path, args: &[&str]) {
    let output = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=m", "-c", "user.email=m@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .output()
        .expect("git");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn json(dir: &Path, of: Option<&Path>) -> serde_json::Value {
    serde_json::from_str(&graph(dir, of, Format::Json).expect("a graph")).expect("JSON")
}

fn dirs(chart: &serde_json::Value) -> Vec<String> {
    chart["roots"].as_array().unwrap().iter().map(|root| root["dir"].as_str().unwrap().to_owned()).collect()
}

fn estate() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let top = dir.path().canonicalize().expect("a path");
    write(&top, &[("net/main.tf", NET), ("app/main.tf", APP), ("solo/main.tf", SOLO), ("README.md", "# estate\n")]);
    dir
}

#[test]
fn a_graph_needs_no_git_and_sees_what_git_would_keep() {
    let dir = estate();
    let plain = json(dir.path(), None);
    assert_eq!(dirs(&plain), ["app", "net", "solo"]);
    assert_eq!(plain["edges"][0]["reader"], "app");
    assert_eq!(plain["edges"][0]["source"], "net");
    assert_eq!(plain["edges"][0]["block"], "data.terraform_remote_state.net");
    assert_eq!(plain["edges"][0]["certain"], true);
    assert_eq!(plain["waves"], serde_json::json!([["net", "solo"], ["app"]]));
    git(dir.path(), &["init", "-q"]);
    write(
        dir.path(),
        &[
            (".gitignore", "scratch/\n"),
            ("scratch/main.tf", SOLO),
            ("new/main.tf", SOLO),
            ("app/.terraform/modules/m/main.tf", SOLO),
        ],
    );
    // Untracked counts, ignored does not; from a sub-directory the whole repository is meant, unless one is named.
    assert_eq!(dirs(&json(&dir.path().join("app"), None)), ["app", "net", "new", "solo"]);
    assert_eq!(dirs(&json(dir.path(), Some(Path::new("app")))), ["."]);
    assert_eq!(
        dirs(&json(dir.path(), Some(Path::new("scratch")))),
        ["."],
        "a folder that was named is read, ignored or not"
    );
    std::fs::remove_dir_all(dir.path().join("solo")).expect("removed");
    assert_eq!(dirs(&json(dir.path(), None)), ["app", "net", "new"]);
}

#[test]
fn what_cannot_be_read_is_a_hole_and_hides_only_itself() {
    let dir = estate();
    let top = dir.path();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, top.join(name)).expect("a link");
    link("../gone.tf", "app/dangling.tf");
    link("loop-b", "loop-a");
    link("loop-a", "loop-b");
    link("..", "net/up");
    link("loop-a/main.tf", "solo/looped.tf");
    std::fs::write(top.join("solo/huge.tf"), vec![b'#'; (4 << 20) + 1]).expect("a file");
    std::fs::write(top.join("solo/deep.tf"), "locals {\n a = ".to_owned() + &"[".repeat(200_000)).expect("a file");
    std::fs::write(top.join("net/noise.tf"), [0xff, 0x00, 0x80, b'{']).expect("a file");
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff.tf");
    std::fs::write(top.join("solo").join(odd), "locals {}\n").expect("a file");
    nix::unistd::mkfifo(&top.join("solo/pipe.tf"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    write(top, &[(".tidegate.yaml", "gaet: always\n")]);
    let chart = json(top, None);
    assert_eq!(dirs(&chart), ["app", "net", "solo"]);
    let holes = chart["holes"].as_array().unwrap();
    for file in [
        "app/dangling.tf",
        "solo/huge.tf",
        "solo/deep.tf",
        "net/noise.tf",
        "solo/odd\u{fffd}.tf",
        "solo/pipe.tf",
        ".tidegate.yaml",
        "solo/looped.tf",
    ] {
        assert!(holes.iter().any(|hole| hole["file"] == file), "{file}: {holes:#?}");
    }
    for format in [Format::Text, Format::Dot, Format::Mermaid] {
        assert!(!graph(top, None, format).expect("a graph").is_empty());
    }
    let nowhere = graph(top, Some(Path::new("nowhere")), Format::Text).expect_err("no such directory");
    assert!(nowhere.to_string().contains("nowhere"), "{nowhere}");
}

#[test]
fn a_path_is_explained_from_where_one_stands() {
    let dir = estate();
    git(dir.path(), &["init", "-q"]);
    let said = explain(&dir.path().join("net"), Path::new("main.tf")).expect("an answer");
    assert!(said.contains("net/main.tf\n") && said.contains("it reads the state of `net`"), "{said}");
    assert!(explain(dir.path(), Path::new("README.md")).expect("an answer").contains("reaches nothing"));
    assert!(explain(dir.path(), Path::new("../x")).is_err());
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "terraform {",
        "backend \"s3\" {",
        "}",
        "{",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "${",
        "%{ for x in y }",
        "<<EOF\n",
        "EOF\n",
        "\n",
        " = ",
        "key",
        "data \"terraform_remote_state\" \"n\"",
        "config",
        "local.a",
        "var.b",
        "each.value",
        "module \"m\"",
        "source = \"../a\"",
        "count = 1",
        "for_each = {}",
        "...",
        "*",
        "?",
        ":",
        "!",
        "-1e99999",
        "\\u{0}",
        "\u{feff}",
        "é",
        "\0",
        "#",
        "/*",
        "locals",
        "file(",
        "fileset(\".\", \"**\")",
        "include {\n path = find_in_parent_folders()\n}\n",
        "dependency \"d\" {\n config_path = \"../b\"\n}\n",
        "locals {\n a = read_terragrunt_config(\"../a/terragrunt.hcl\")\n}\n",
        "terragrunt = {\n",
        "regex(\"(a|b*)*$\", local.a)",
        "substr(var.b, -9999999999999, 1)",
        "range(99999999999)",
        "a[*].b.0[1]",
        "moved {\n from = a.b\n}\n",
        "\r\n",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_tree_of_anything_ends_it(files in prop::collection::vec((0..8usize, 0..11usize, pieces()), 1..8)) {
        let dir = tempfile::tempdir().expect("a folder");
        let folders = ["a", "b", "a/b", ".", "modules/m", "a b", "x\"y", "é"];
        let names = [
            "main.tf", "x.tofu", "x.tf.json", "terraform.tfvars", "x.tfbackend", "z_override.tf", "terragrunt.hcl",
            "root.hcl", ".tidegate.yaml", "-> ..", "-> ../a/main.tf",
        ];
        for (folder, name, text) in &files {
            let path = dir.path().join(folders[*folder]);
            std::fs::create_dir_all(&path).expect("a directory");
            match names[*name].strip_prefix("-> ") {
                // Up and round again, or to a file that may not be there.
                Some(target) => drop(std::os::unix::fs::symlink(target, path.join("linked.tf"))),
                None => drop(std::fs::write(path.join(names[*name]), text)),
            }
        }
        json(dir.path(), Some(Path::new(".")));
        explain(dir.path(), Path::new("a/main.tf")).expect("an answer");
    }
}

/// All files with their content, git's own left out.
fn snapshot(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).expect("a directory").flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                all.push((entry.path(), std::fs::read(entry.path()).expect("a file")));
            }
        }
    }
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_works_in_a_copy_on_the_applied_state() {
    let dir = tempfile::tempdir().expect("a folder");
    let top = dir.path().canonicalize().expect("a path");
    // Relative states within the tree, as on a first try at home.
    let local = |text: &str, name: &str| text.replace(&format!("$S/{name}.tfstate"), "terraform.tfstate");
    let app = local(APP, "app").replace("$S/net.tfstate", "../net/terraform.tfstate");
    write(
        &top,
        &[
            ("net/main.tf", &local(NET, "net")),
            ("app/main.tf", &app),
            ("solo/main.tf", &local(SOLO, "solo")),
            (".gitignore", "*.tfstate*\n.terraform*\n"),
        ],
    );
    git(&top, &["init", "-q"]);
    git(&top, &["add", "."]);
    git(&top, &["commit", "-qm", "begin"]);
    for root in ["net", "app"] {
        crate::ctx::terraform(&top.join(root), &["init", "-input=false", "-no-color"]);
        crate::ctx::terraform(&top.join(root), &["apply", "-auto-approve", "-input=false", "-no-color"]);
    }
    write(&top, &[("net/main.tf", &local(NET, "net").replace("10.0.0.0/16", "10.9.0.0/16"))]);
    let before = snapshot(&top);
    let environment = std::env::vars().filter(|(name, _)| name != "TF_CLI_CONFIG_FILE").collect();
    let wish = Wish { here: &top.join("app"), base: None, environment };
    let mut told = Vec::new();
    let answer = plan(&wish, &mut |what| told.push(what.to_owned())).await.expect("a note");
    assert!(answer.complete, "{}", answer.note);
    assert_eq!(told, ["planning net", "planning app"]);
    assert!(answer.note.contains("| 1 | `net` | 1 replace |"), "{}", answer.note);
    assert!(answer.note.contains("`app`") && !answer.note.contains("`solo`"), "{}", answer.note);
    assert!(!answer.note.contains("]()"), "{}", answer.note);
    assert!(snapshot(&top) == before, "the tree was written to");
    let missing = plan(&Wish { base: Some("nowhere"), ..wish.clone() }, &mut |_| {}).await.expect_err("no such commit");
    assert!(missing.to_string().contains("`nowhere`"), "{missing}");
    git(&top, &["checkout", "-q", "net/main.tf"]);
    let nothing = plan(&wish, &mut |_| {}).await.expect("a note");
    assert!(nothing.note.starts_with("### No root is reached"), "{}", nothing.note);
    write(
        &top,
        &[("solo/main.tf", "terraform {\n  backend \"local\" {}\n}\noutput \"x\" {\n  value = nothing.at.all\n}\n")],
    );
    let broken = plan(&wish, &mut |_| {}).await.expect("a note");
    assert!(!broken.complete && broken.note.contains("solo/main.tf"), "{}", broken.note);
}

/// Links: of a root's file, of a module's directory, of a whole root under a second name.
#[test]
fn links_reach_what_they_lead_to_and_make_no_second_root() {
    let dir = estate();
    let top = dir.path();
    let link = |target: &str, name: &str| {
        std::fs::create_dir_all(top.join(name).parent().expect("a parent")).expect("a directory");
        std::os::unix::fs::symlink(target, top.join(name)).expect("a link");
    };
    let backend = |name: &str| format!("terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n}}\n");
    write(
        top,
        &[
            ("shared/common.tf", "resource \"terraform_data\" \"c\" { input = file(\"${path.module}/words.txt\") }\n"),
            ("shared/words.txt", "words\n"),
            ("modules/real/main.tf", "resource \"terraform_data\" \"m\" { input = \"m\" }\n"),
            ("filed/backend.tf", &backend("filed")),
            ("called/main.tf", &format!("{}module \"m\" {{\n  source = \"../modules/alias\"\n}}\n", backend("called"))),
        ],
    );
    link("../shared/common.tf", "filed/common.tf");
    link("../shared/words.txt", "filed/words.txt");
    link("real", "modules/alias");
    link("solo", "alias-of-solo");
    link("../../solo", "live/prod/solo");
    let chart = json(top, None);
    assert_eq!(dirs(&chart), ["app", "called", "filed", "net", "solo"], "{chart:#}");
    for (path, root) in [
        ("shared/common.tf", "filed"),
        ("shared/words.txt", "filed"),
        ("modules/real/main.tf", "called"),
        ("solo/main.tf", "solo"),
    ] {
        let said = explain(top, Path::new(path)).expect("an explanation");
        let named: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split("  (wave-").next())
            .skip(1)
            .filter(|name| !name.starts_with(' '))
            .collect();
        assert_eq!(named, [root], "{path}: {said}");
    }
}
