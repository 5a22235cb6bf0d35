//! Estates of the size and style of real ones, each with its certain edges known by construction: none may be missing, none invented.

use std::collections::BTreeSet;
use std::path::Path;

use tidegate::local::{Format, graph};

/// Reader and source.
type Edges = BTreeSet<(String, String)>;

struct Estate {
    dir: tempfile::TempDir,
    roots: BTreeSet<String>,
    edges: Edges,
}

impl Estate {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder"), roots: BTreeSet::new(), edges: Edges::new() }
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::os::unix::fs::symlink(target, path).expect("a link");
    }

    fn root(&mut self, dir: &str) {
        self.roots.insert(dir.to_owned());
    }

    fn edge(&mut self, reader: &str, source: &str) {
        self.edges.insert((reader.to_owned(), source.to_owned()));
    }

    fn check(&self, at_least: usize) {
        let text = graph(self.dir.path(), Some(Path::new(".")), Format::Json).expect("a graph");
        let chart: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let list = |name: &str| chart[name].as_array().expect("a list").clone();
        let said = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let roots: BTreeSet<String> =
            list("roots").iter().filter(|root| root["kind"] == "certain").map(|root| said(&root["dir"])).collect();
        assert_eq!(roots, self.roots, "{:#}", chart["holes"]);
        assert!(roots.len() >= at_least, "{} roots", roots.len());
        let certain = list("edges").into_iter().filter(|edge| edge["certain"] == true);
        let edges: Edges = certain.map(|edge| (said(&edge["reader"]), said(&edge["source"]))).collect();
        let missing: Vec<_> = self.edges.difference(&edges).collect();
        let invented: Vec<_> = edges.difference(&self.edges).collect();
        assert!(
            missing.is_empty() && invented.is_empty(),
            "missing {missing:?}, invented {invented:?}, {:#}",
            chart["holes"]
        );
        let probable = list("edges").into_iter().filter(|edge| edge["certain"] == false).count();
        assert_eq!(probable, 0, "{:#}", chart["edges"]);
    }
}

fn read(backend: &str, label: &str, config: &str) -> String {
    format!("data \"terraform_remote_state\" \"{label}\" {{\n  backend = \"{backend}\"\n  config = {config}\n}}\n")
}

#[test]
fn a_folder_per_environment_with_a_module_per_component() {
    let mut estate = Estate::new();
    let parts = ["network", "dns", "database", "cache", "queue", "cluster", "app", "web"];
    for (at, part) in parts.iter().enumerate() {
        let mut module = "variable \"env\" {}\nlocals {\n  folder = \"live/${var.env}\"\n}\n".to_owned();
        if at > 0 {
            module += &read(
                "s3",
                "before",
                &format!("{{ bucket = \"states\", key = \"${{local.folder}}/{}.tfstate\" }}", parts[at - 1]),
            );
            module += "output \"o\" {\n  value = data.terraform_remote_state.before.outputs.o\n}\n";
        }
        estate.file(&format!("modules/{part}/main.tf"), &module);
        for env in ["dev", "stage", "prod", "eu/dev", "eu/prod", "us/dev", "us/prod", "lab"] {
            let dir = format!("envs/{env}/{part}");
            let up = "../".repeat(dir.split('/').count());
            estate.file(&format!("{dir}/backend.tf"), &format!("terraform {{\n  backend \"s3\" {{\n    bucket = \"states\"\n    key    = \"live/{env}/{part}.tfstate\"\n    region = \"eu-west-1\"\n  }}\n}}\n"));
            estate.file(&format!("{dir}/main.tf"), &format!("locals {{\n  env = \"{env}\"\n}}\nmodule \"{part}\" {{\n  source = \"{up}modules/{part}\"\n  env    = local.env\n}}\nprovider \"aws\" {{\n  region = \"eu-west-1\"\n}}\n"));
            estate.root(&dir);
            if at > 0 {
                estate.edge(&dir, &format!("envs/{env}/{}", parts[at - 1]));
            }
        }
    }
    estate.check(64);
}

#[test]
fn prefixes_of_one_bucket_with_values_from_var_files() {
    let mut estate = Estate::new();
    for project in 0..12 {
        for stack in ["base", "data", "run", "edge", "jobs"] {
            let dir = format!("projects/p{project}/{stack}");
            let reads = match stack {
                "base" => String::new(),
                _ => read(
                    "gcs",
                    "base",
                    "{\n    bucket = var.bucket\n    prefix = format(\"%s/%s\", var.project, \"base\")\n  }",
                ),
            };
            estate.file(&format!("{dir}/main.tf"), &format!("terraform {{\n  backend \"gcs\" {{\n    bucket = \"all-states\"\n    prefix = \"p{project}/{stack}\"\n  }}\n}}\nvariable \"project\" {{}}\nvariable \"bucket\" {{\n  default = \"all-states\"\n}}\n{reads}"));
            estate.file(&format!("{dir}/terraform.tfvars"), &format!("project = \"p{project}\"\n"));
            estate.root(&dir);
            if stack != "base" {
                estate.edge(&dir, &format!("projects/p{project}/base"));
            }
        }
    }
    estate.check(60);
}

#[test]
fn workspaces_of_a_remote_organisation() {
    let mut estate = Estate::new();
    for env in ["dev", "prod"] {
        for number in 0..26 {
            let dir = format!("{env}/s{number}");
            let block = if number % 2 == 0 {
                format!(
                    "cloud {{\n    organization = \"acme\"\n    workspaces {{\n      name = \"s{number}-{env}\"\n    }}\n  }}"
                )
            } else {
                format!(
                    "backend \"remote\" {{\n    hostname = \"app.terraform.io\"\n    organization = \"acme\"\n    workspaces {{\n      name = \"s{number}-{env}\"\n    }}\n  }}"
                )
            };
            let mut text = format!("terraform {{\n  {block}\n}}\nlocals {{\n  env = \"{env}\"\n}}\n");
            if number > 0 && number % 3 == 0 {
                text += &read(
                    "remote",
                    "before",
                    &format!(
                        "{{\n    organization = \"acme\"\n    workspaces = {{\n      name = \"s{}-${{local.env}}\"\n    }}\n  }}",
                        number - 1
                    ),
                );
                estate.edge(&dir, &format!("{env}/s{}", number - 1));
            } else if number > 0 && number % 3 == 1 {
                let outputs = format!(
                    "data \"tfe_outputs\" \"before\" {{\n  organization = \"acme\"\n  workspace = \"s{}-${{local.env}}\"\n}}\n",
                    number - 1
                );
                text += &outputs;
                estate.edge(&dir, &format!("{env}/s{}", number - 1));
            }
            estate.file(&format!("{dir}/main.tf"), &text);
            estate.root(&dir);
        }
    }
    estate.check(52);
}

#[test]
fn one_backend_linked_into_every_root() {
    let mut estate = Estate::new();
    estate.file(
        "shared/backend.tofu",
        "terraform {\n  backend \"s3\" {\n    bucket = \"b\"\n    key = \"${var.stack}/state.json\"\n  }\n}\n",
    );
    estate.file("shared/variables.tofu", "variable \"stack\" {}\n");
    for number in 0..60 {
        let dir = format!("stacks/s{number}");
        estate.link(&format!("{dir}/backend.tofu"), "../../shared/backend.tofu");
        estate.link(&format!("{dir}/variables.tofu"), "../../shared/variables.tofu");
        estate.file(&format!("{dir}/terraform.tfvars"), &format!("stack = \"s{number}\"\n"));
        let reads =
            if number == 0 { String::new() } else { read("s3", "hub", "{ bucket = \"b\", key = \"s0/state.json\" }") };
        estate.file(&format!("{dir}/main.tofu"), &format!("resource \"terraform_data\" \"a\" {{}}\n{reads}"));
        estate.root(&dir);
        if number > 0 {
            estate.edge(&dir, "stacks/s0");
        }
    }
    estate.check(60);
}

#[test]
fn synthesised_json_stacks_beside_backend_files_of_the_settings() {
    let mut estate = Estate::new();
    for number in 0..40 {
        let dir = format!("cdktf.out/stacks/s{number}");
        let mut stack = serde_json::json!({
            "terraform": {"backend": {"s3": {"bucket": "b", "key": format!("cdk/s{number}")}}},
            "resource": {"terraform_data": {"a": {"input": "1"}}},
        });
        if number > 0 {
            let source = number / 2;
            stack["data"] = serde_json::json!({"terraform_remote_state": {"cross": {"backend": "s3", "config": {"bucket": "b", "key": format!("cdk/s{source}")}}}});
            estate.edge(&dir, &format!("cdktf.out/stacks/s{source}"));
        }
        estate.file(&format!("{dir}/cdk.tf.json"), &stack.to_string());
        estate.root(&dir);
    }
    estate.file(".tidegate.yaml", "roots:\n  match:\n    \"components/*\": { backend_config: [prod.s3.tfbackend] }\n");
    for name in ["vpc", "dns", "mail", "shop", "blog", "wiki", "chat", "cron", "logs", "auth"] {
        let dir = format!("components/{name}");
        let reads = if name == "vpc" {
            String::new()
        } else {
            read("s3", "vpc", "{ bucket = \"c\", key = \"prod/vpc.tfstate\" }")
        };
        estate.file(&format!("{dir}/main.tf"), &format!("terraform {{\n  backend \"s3\" {{}}\n}}\n{reads}"));
        estate.file(&format!("{dir}/prod.s3.tfbackend"), &format!("bucket = \"c\"\nkey = \"prod/{name}.tfstate\"\n"));
        estate.root(&dir);
        if name != "vpc" {
            estate.edge(&dir, "components/vpc");
        }
    }
    estate.check(50);
}
