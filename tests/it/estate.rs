//! The reference graph against the tool's own: no dependency that `terraform graph` knows may be missing from ours.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tidegate::domain::config::RepoConfig;
use tidegate::domain::estate::{Estate, survey};
use tidegate::domain::hcl;
use tidegate::domain::ids::RootKey;
use tidegate::domain::tree::{Entry, EntryKind, Listing};

type Files<'a> = &'a [(&'a str, &'a str)];
type Dependencies = BTreeMap<String, BTreeSet<String>>;

mod generated;

const BACKEND: &str = "terraform {\n  backend \"local\" {}\n}\n";

const LOCALS_AND_LIFECYCLES: Files<'static> = &[
    ("r/backend.tf", BACKEND),
    (
        "r/main.tf",
        r#"
locals {
  a = { id = terraform_data.seed.id }
  b = local.a
  c = "x-${local.b.id}"
}
variable "on" {
  default = true
}
resource "terraform_data" "seed" {}
resource "terraform_data" "by_local" {
  input = local.c
}
resource "terraform_data" "by_count" {
  count = length(local.a) + (var.on ? 1 : 0)
}
resource "terraform_data" "by_each" {
  for_each = { k = local.b }
  input    = each.value
}
resource "terraform_data" "by_trigger" {
  lifecycle {
    replace_triggered_by = [terraform_data.by_count[0].id]
  }
}
resource "terraform_data" "by_condition" {
  lifecycle {
    precondition {
      condition     = terraform_data.by_each["k"].id != ""
      error_message = "no"
    }
  }
}
resource "terraform_data" "by_provisioner" {
  provisioner "local-exec" {
    command = "echo ${terraform_data.by_local.id}"
  }
}
resource "terraform_data" "by_template" {
  input = <<-EOT
    %{ for x in terraform_data.by_count[*].id ~}
    ${x}
    %{ endfor ~}
  EOT
}
resource "terraform_data" "apart" {}
"#,
    ),
];

const MODULES: Files<'static> = &[
    ("r/backend.tf", BACKEND),
    (
        "r/main.tf",
        r#"
resource "terraform_data" "first" {}
resource "terraform_data" "gate" {}
module "m" {
  for_each   = toset(["a", "b"])
  source     = "../m"
  in         = terraform_data.first.id
  depends_on = [terraform_data.gate]
}
module "n" {
  count  = 1
  source = "../n"
  all    = module.m
}
resource "terraform_data" "by_output" {
  input = module.m["a"].out
}
resource "terraform_data" "by_depends" {
  depends_on = [module.n]
}
resource "terraform_data" "by_splat" {
  input = module.n[*].out
}
"#,
    ),
    (
        "m/main.tf",
        r#"
variable "in" {}
resource "terraform_data" "used" {
  input = var.in
}
resource "terraform_data" "beside" {}
module "deep" {
  source = "../deep"
  in     = terraform_data.used.id
}
output "out" {
  value      = module.deep.out
  depends_on = [terraform_data.beside]
}
"#,
    ),
    (
        "n/main.tf.json",
        r#"{"variable":{"all":{}},"resource":{"terraform_data":{"j":{"input":"${var.all}"}}},"output":{"out":{"value":"${terraform_data.j.id}"}}}"#,
    ),
    (
        "deep/main.tf",
        r#"
variable "in" {
  validation {
    condition     = var.in != "never"
    error_message = "no"
  }
}
resource "terraform_data" "d" {
  triggers_replace = [var.in]
}
output "out" {
  value = terraform_data.d.output
}
"#,
    ),
];

fn surveyed(files: Files<'_>) -> Estate {
    let mut listing = Listing::default();
    let mut facts = BTreeMap::new();
    for (path, text) in files {
        facts.insert((*path).to_owned(), Arc::new(hcl::parse(path, text.as_bytes())));
        listing.entries.insert((*path).to_owned(), Entry { kind: EntryKind::File, blob: (*path).to_owned(), size: 1 });
    }
    survey(&listing, &facts, &BTreeMap::new(), &RepoConfig::default())
}

fn terraform(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("terraform")
        .current_dir(dir)
        .args(args)
        .env_remove("TF_CLI_CONFIG_FILE")
        .env("CHECKPOINT_DISABLE", "1")
        .output()
        .expect("terraform is needed for this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Each managed resource with all that it depends on, from the tool's graph.
fn by_the_tool(files: Files<'_>) -> Dependencies {
    let top = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        let path = top.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    let root = top.path().join("r");
    terraform(&root, &["init", "-input=false"]);
    let graph = terraform(&root, &["graph", "-type=plan"]);
    let mut next: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in graph.lines() {
        if let Some((user, used)) = line.trim().split_once("\" -> \"") {
            let name = |text: &str| text.trim_matches(['"', ';']).trim_start_matches("[root] ").to_owned();
            next.entry(name(user)).or_default().insert(name(used));
        }
    }
    let resource = |name: &str| {
        let name = name.strip_suffix(" (expand)").unwrap_or(name);
        (name.contains("terraform_data.") && !name.starts_with("provider")).then(|| name.to_owned())
    };
    let mut all = Dependencies::new();
    for user in next.keys().filter(|name| resource(name).is_some()) {
        let (mut seen, mut open) = (BTreeSet::new(), vec![user.clone()]);
        while let Some(at) = open.pop() {
            for used in next.get(&at).into_iter().flatten().filter(|used| seen.insert((*used).clone())) {
                open.push(used.clone());
            }
        }
        let used: BTreeSet<String> = seen.iter().filter_map(|name| resource(name)).collect();
        all.insert(resource(user).expect("a resource"), used);
    }
    all
}

#[test]
fn no_dependency_of_terraforms_graph_is_missing() {
    for files in [LOCALS_AND_LIFECYCLES, MODULES] {
        let ours = compared(files);
        assert!(!ours.contains_key("terraform_data.apart"));
    }
}

/// Fails when the tool knows a dependency that we do not; gives ours.
fn compared(files: Files<'_>) -> Dependencies {
    let all = surveyed(files).references(&RootKey::new("r")).dependencies();
    let theirs = by_the_tool(files);
    assert!(theirs.values().map(BTreeSet::len).sum::<usize>() >= 8, "the tool's graph was not understood: {theirs:?}");
    for (user, used) in theirs {
        let ours = all.get(&user).cloned().unwrap_or_default();
        let missing: Vec<&String> = used.iter().filter(|used| **used != user && !ours.contains(*used)).collect();
        assert!(missing.is_empty(), "{user}: {missing:?} is missing from {ours:?} in {files:?}");
    }
    all
}

#[test]
fn no_dependency_is_missing_from_configurations_made_by_chance() {
    for seed in 0..6 {
        let files = generated::files(seed, 40);
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        compared(&files);
    }
}
