//! Terragrunt's units in the graph, each shape of real live repositories as a small tree with its right answer.

use super::super::fixture::{edges, estate, read, s3};
use super::super::{Estate, RootKind};
use crate::domain::config::RepoConfig;

const ROOT: &str = "remote_state {\n  backend = \"s3\"\n  config = {\n    bucket = \"b\"\n    key    = \"${path_relative_to_include()}/x.tfstate\"\n  }\n}\n";
const INCLUDE: &str = "include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n";

fn units(estate: &Estate) -> Vec<String> {
    let units = estate.roots.iter().filter(|root| root.kind == RootKind::Unit);
    units.map(|root| format!("{} {}", root.key, root.state)).collect()
}

fn reached(estate: &Estate, path: &str) -> Vec<String> {
    let reached = estate.touched(&[path.to_owned()], &RepoConfig::default()).expect("no cycle");
    reached.roots.iter().map(|root| root.root.to_string()).collect()
}

#[test]
fn units_their_states_and_both_kinds_of_edges() {
    let unit = |source: &str, rest: &str| format!("{INCLUDE}terraform {{\n  source = \"{source}\"\n}}\n{rest}");
    let (_, found) = estate(
        &[
            ("root.hcl", ROOT),
            ("mods/db/main.tf", "terraform {\n  backend \"s3\" {}\n}\nresource \"a\" \"b\" {}\n"),
            ("mods/vpc/main.tf", "provider \"p\" {\n  r = 1\n}\n"),
            ("live/vpc/terragrunt.hcl", &unit("../../mods//vpc", "")),
            (
                "live/db/terragrunt.hcl",
                &unit("${get_repo_root()}//mods/db", "dependency \"vpc\" {\n  config_path = \"../vpc\"\n}\n"),
            ),
            (
                "live/app/terragrunt.hcl",
                &unit(
                    "git::https://h/o/r.git//app?ref=v1",
                    "dependencies {\n  paths = [\"../db\", \"${get_terragrunt_dir()}/../vpc\"]\n}\ndependency \"gone\" {\n  config_path = \"../gone\"\n}\ndependency \"off\" {\n  config_path = \"../db\"\n  enabled = false\n}\n",
                ),
            ),
            ("plain/main.tf", &format!("{}{}", s3("plain"), read("live/vpc/x.tfstate"))),
        ],
        &RepoConfig::default(),
    );
    assert_eq!(
        units(&found),
        ["live/app s3:b/live/app/x.tfstate", "live/db s3:b/live/db/x.tfstate", "live/vpc s3:b/live/vpc/x.tfstate"]
    );
    assert_eq!(found.roots.len(), 4, "a module of units is no root: {:?}", found.roots);
    assert_eq!(
        edges(&found),
        ["live/app -> live/db", "live/app -> live/vpc", "live/db -> live/vpc", "plain -> live/vpc"]
    );
    assert!(found.holes.iter().any(|hole| hole.what.contains("`live/gone`") && hole.line > 0), "{:?}", found.holes);
    assert_eq!(reached(&found, "mods/db/main.tf"), ["live/app", "live/db"]);
    assert_eq!(reached(&found, "root.hcl"), ["live/app", "live/db", "live/vpc", "plain"]);
    assert!(found.reached(&["mods/db/main.tf".to_owned()], &RepoConfig::default()).expect("no cycle").roots.is_empty());
}

#[test]
fn a_pinned_source_is_not_the_working_tree() {
    let unit = |pinned: bool| {
        format!(
            "locals {{\n  pinned = {pinned}\n}}\nterraform {{\n  source = local.pinned ? \"git::https://h/estate//mods/db?ref=v7\" : \"../../mods//db\"\n}}\n"
        )
    };
    let files = [
        ("mods/db/main.tf", "resource \"a\" \"b\" {}\n".to_owned()),
        ("live/dev/terragrunt.hcl", unit(false)),
        ("live/prod/terragrunt.hcl", unit(true)),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let (_, found) = estate(&files, &RepoConfig::default());
    assert_eq!(reached(&found, "mods/db/main.tf"), ["live/dev"]);
}

#[test]
fn parents_of_the_old_style_shared_parts_and_configs_that_are_read() {
    let (_, found) = estate(
        &[
            (
                "terragrunt.hcl",
                &format!(
                    "locals {{\n  env = read_terragrunt_config(find_in_parent_folders(\"env.hcl\"))\n}}\n{}",
                    ROOT.replace("\"b\"", "\"states-${local.env.locals.name}\"")
                ),
            ),
            ("dev/env.hcl", "locals {\n  name = \"dev\"\n}\n"),
            (
                "_common/app.hcl",
                "locals {\n  env = read_terragrunt_config(find_in_parent_folders(\"env.hcl\"))\n}\nterraform {\n  source = \"${dirname(find_in_parent_folders())}/mods//app\"\n}\ndependency \"vpc\" {\n  config_path = \"../vpc\"\n}\ninputs = {\n  env = local.env.locals.name\n}\n",
            ),
            (
                "mods/app/main.tf",
                &format!(
                    "variable \"env\" {{}}\n{}",
                    read("dev/vpc/x.tfstate").replace("\"b\"", "\"states-${var.env}\"")
                ),
            ),
            (
                "dev/vpc/terragrunt.hcl",
                "include {\n  path = find_in_parent_folders()\n}\nterraform {\n  source = \"tfr:///x/y/z?version=1.0.0\"\n}\n",
            ),
            (
                "dev/app/terragrunt.hcl",
                "include {\n  path = find_in_parent_folders()\n}\ninclude \"app\" {\n  path = \"${dirname(find_in_parent_folders())}/_common/app.hcl\"\n  expose = true\n}\ninputs = {\n  name = include.app.locals.env.locals.name\n}\n",
            ),
        ],
        &RepoConfig::default(),
    );
    assert_eq!(
        units(&found),
        ["dev/app s3:states-dev/dev/app/x.tfstate", "dev/vpc s3:states-dev/dev/vpc/x.tfstate"],
        "{:?}",
        found.holes
    );
    assert_eq!(edges(&found), ["dev/app -> dev/vpc"]);
    assert_eq!(found.edges.len(), 2, "the dependency and the module's own read: {:?}", found.edges);
    assert_eq!(reached(&found, "dev/env.hcl"), ["dev/app", "dev/vpc"]);
    assert_eq!(reached(&found, "_common/app.hcl"), ["dev/app"]);
}

#[test]
fn what_only_terragrunt_knows_is_a_hole_and_loops_end() {
    let (_, found) = estate(
        &[
            (
                "a/terragrunt.hcl",
                "locals {\n  b = read_terragrunt_config(\"../b/terragrunt.hcl\")\n  e = get_env(\"E\", \"dev\")\n}\nterraform {\n  source = \"${local.e}\"\n}\ndependency \"x\" {\n  config_path = \"../${local.e}\"\n}\n",
            ),
            (
                "b/terragrunt.hcl",
                "locals {\n  a = read_terragrunt_config(\"../a/terragrunt.hcl\")\n}\nterraform {\n  source = \".\"\n}\ninclude \"self\" {\n  path = \"terragrunt.hcl\"\n}\n",
            ),
            ("c/terragrunt.hcl", "terraform {\n  source = \n"),
            ("d/main.tf", &s3("d")),
            (
                "d/terragrunt.hcl",
                "remote_state {\n  backend = \"s3\"\n  config = { bucket = \"b\", key = \"d2\" }\n}\n",
            ),
            ("live/terragrunt.stack.hcl", "unit \"a\" {\n  source = \"x\"\n  path = \"a\"\n}\n"),
        ],
        &RepoConfig::default(),
    );
    assert_eq!(units(&found), ["a dir:a", "d s3:b/d2"]);
    let said: Vec<String> = found.holes.iter().map(|hole| format!("{}:{}", hole.path, hole.line)).collect();
    assert_eq!(
        said,
        ["a/terragrunt.hcl:5", "a/terragrunt.hcl:8", "c/terragrunt.hcl:2", "live/terragrunt.stack.hcl:0"],
        "{:?}",
        found.holes
    );
}

#[test]
fn units_from_before_terragrunt_had_a_file_of_its_own() {
    let root = "terragrunt = {\n  remote_state {\n    backend = \"s3\"\n    config {\n      bucket = \"b\"\n      key = \"${path_relative_to_include()}/x.tfstate\"\n    }\n  }\n}\nregion = \"of the parent\"\n";
    let include = "  include {\n    path = \"${find_in_parent_folders()}\"\n  }\n";
    let unit = |rest: &str, values: &str| format!("{values}terragrunt = {{\n{include}{rest}}}\n");
    let vpc = unit("  terraform {\n    source = \"../mods//vpc\"\n  }\n", "env = \"dev\"\n");
    let app =
        unit("  dependencies {\n    paths = [\"../vpc\", \"../nowhere\"]\n  }\n", "# which network\nnet = \"vpc\"\n");
    let module = format!("variable \"net\" {{}}\n{}", read("${var.net}/x.tfstate"));
    let (_, found) = estate(
        &[
            ("terraform.tfvars", root),
            ("vpc/terraform.tfvars", &vpc),
            ("mods/vpc/main.tf", "variable \"region\" {}\nterraform {\n  backend \"s3\" {}\n}\n"),
            ("app/terraform.tfvars", &app),
            ("app/main.tf", &module),
            ("app/backend.tf", "terraform {\n  backend \"s3\" {}\n}\n"),
            ("plain/main.tf", &s3("plain")),
            ("plain/terraform.tfvars", "net = \"x\"\n"),
        ],
        &RepoConfig::default(),
    );
    assert_eq!(units(&found), ["app s3:b/app/x.tfstate", "vpc s3:b/vpc/x.tfstate"], "{:?}", found.holes);
    assert_eq!(found.roots.len(), 3);
    assert_eq!(edges(&found), ["app -> vpc"]);
    assert_eq!(found.edges.len(), 2, "the dependency and the module's own read: {:?}", found.edges);
    assert!(found.holes.iter().any(|hole| hole.what.contains("`nowhere`") && hole.line > 0), "{:?}", found.holes);
}

#[test]
fn what_is_included_is_merged_as_it_says_and_a_written_backend_is_read() {
    let shared = "generate \"backend\" {\n  path = \"backend.tf\"\n  contents = <<EOF\nterraform {\n  backend \"s3\" {\n    bucket = \"b\"\n    key = \"${path_relative_to_include()}/x.tfstate\"\n    region = \"${get_env(\"R\")}\"\n  }\n}\nEOF\n}\ngenerate \"provider\" {\n  path = \"p.tf\"\n  contents = \"provider \\\"p\\\" {}\"\n}\ndependency \"net\" {\n  config_path = \"../old\"\n}\n";
    let only = "dependency \"o\" {\n  config_path = \"../old\"\n}\nlocals {\n  n = \"new\"\n}\n";
    let app = "include \"root\" {\n  path = \"../root.hcl\"\n}\ninclude \"only\" {\n  path = \"../only.hcl\"\n  expose = true\n  merge_strategy = \"no_merge\"\n}\nterraform {\n  source = \"../mods/app\"\n}\ndependency \"net\" {\n  config_path = \"../${include.only.locals.n}\"\n}\n";
    let plain = "terraform {\n  source = \"../mods/app\"\n}\n";
    let (_, found) = estate(
        &[
            ("root.hcl", shared),
            ("only.hcl", only),
            ("mods/app/main.tf", "resource \"a\" \"b\" {}\n"),
            ("app/terragrunt.hcl", app),
            ("new/terragrunt.hcl", plain),
            ("old/terragrunt.hcl", plain),
            ("reader/main.tf", &format!("{}{}", s3("reader"), read("app/x.tfstate"))),
        ],
        &RepoConfig::default(),
    );
    assert_eq!(units(&found), ["app s3:b/app/x.tfstate", "new dir:new", "old dir:old"], "{:?}", found.holes);
    assert_eq!(edges(&found), ["app -> new", "reader -> app"], "{:?}", found.holes);
}
