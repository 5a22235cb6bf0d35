//! What real repositories taught, each as a small tree with its right answer.

use super::super::fixture::{edges, estate, read, s3, waves, with};
use super::*;
use crate::domain::config::ToolKind;

const NONE: &[&str] = &[];

fn certain(estate: &Estate) -> Vec<String> {
    let roots = estate.roots.iter().filter(|root| root.kind == RootKind::Certain);
    roots.map(|root| root.key.to_string()).collect()
}

/// Roots that are planned, edges, of a tree without settings.
fn check(files: &[(&str, &str)], roots: &[&str], wanted: &[&str]) -> Estate {
    let (_, estate) = estate(files, &RepoConfig::default());
    assert_eq!(certain(&estate), roots, "{:?}", estate.holes);
    assert_eq!(edges(&estate), wanted, "{:?} {:?}", estate.holes, estate.external);
    estate
}

#[test]
fn a_backend_makes_a_root_and_a_provider_only_a_probable_one() {
    let queue = "provider \"queue\" {\n  endpoint = var.url\n}\n";
    let found = check(&[("modules/user/main.tf", queue), ("stacks/a/main.tf", &s3("a.tfstate"))], &["stacks/a"], NONE);
    assert_eq!(found.roots[0].kind, RootKind::Probable);
    assert_eq!(found.roots[1].state, StateKey::new("s3:b/a.tfstate"));
    assert!(found.holes[0].what.contains("backend"));
    let call = format!("{}module \"u\" {{\n  source = \"../../modules/user\"\n}}\n", s3("a"));
    let found = check(&[("modules/user/main.tf", queue), ("stacks/a/main.tf", &call)], &["stacks/a"], NONE);
    assert_eq!(found.roots.len(), 1);
}

#[test]
fn folder_names_prove_nothing_except_examples_of_modules_and_fixtures() {
    let backend = s3("k");
    let dirs =
        ["test/vpc", "policies/templates", "environments/example", "modules/x/examples/y", "pkg/tests/fixtures/a"];
    let paths: Vec<String> = dirs.iter().map(|dir| format!("{dir}/main.tf")).collect();
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), backend.as_str())).collect();
    let found = check(&files, &["environments/example", "policies/templates", "test/vpc"], NONE);
    assert_eq!(found.shared_states.len(), 1);
    assert_eq!(found.shared_states[0].1.len(), 3);
}

#[test]
fn placeholders_are_listed_and_not_planned() {
    for key in ["envs/$app/x", "UPDATE_ME", "<team>/x", "{{ team }}/x"] {
        let found = check(&[("templates/main.tf", &s3(key))], NONE, NONE);
        assert_eq!(found.roots.len(), 1);
        assert!(found.holes.iter().any(|hole| hole.what.contains("placeholder")));
    }
}

#[test]
fn a_placeholder_hides_only_itself() {
    let root = |prefix: &str, rest: &str| {
        format!(
            "terraform {{\n  backend \"gcs\" {{\n    bucket = \"UPDATE_ME\"\n    prefix = \"{prefix}\"\n  }}\n}}\n{rest}"
        )
    };
    let read = "variable \"bucket\" {}\ndata \"terraform_remote_state\" \"boot\" {\n  backend = \"gcs\"\n  config = {\n    bucket = var.bucket\n    prefix = \"states/boot\"\n  }\n}\n";
    let (boot, org) = (root("states/boot", ""), root("states/org", read));
    let found = check(&[("0-boot/b.tf", &boot), ("1-org/b.tf", &org)], NONE, &["1-org -> 0-boot?"]);
    assert_eq!(found.roots.len(), 2);
    assert_eq!(found.holes.iter().filter(|hole| hole.what.contains("`UPDATE_ME`")).count(), 2);
}

#[test]
fn a_read_beside_a_directory_without_a_backend_is_probably_of_it() {
    let net = "provider \"p\" {\n  a = 1\n}\n";
    let app = format!(
        "{}data \"terraform_remote_state\" \"n\" {{\n  backend = \"local\"\n  config = {{ path = \"../net/terraform.tfstate\" }}\n}}\n",
        s3("app")
    );
    check(&[("app/m.tf", &app), ("net/m.tf", net)], &["app"], &["app -> net?"]);
}

#[test]
fn optional_attributes_have_their_defaults() {
    let app = |given: &str| {
        let kind = "map(object({\n    key = optional(string, \"a/net\")\n    more = optional(object({ x = optional(string, \"b\") }), {})\n  }))";
        let variable = format!("variable \"nets\" {{\n  type = {kind}\n  default = {given}\n}}\n");
        let read = read("net").replace(
            "config = { bucket = \"b\", key = \"net\" }",
            "for_each = var.nets\n  config = { bucket = each.value.more.x, key = try(each.value.key, \"b/net\") }",
        );
        format!("{}{variable}{read}", s3("app"))
    };
    let (a, b) = (s3("a/net"), s3("b/net"));
    for (given, wanted) in [
        ("{ one = {} }", vec!["app -> a"]),
        ("{ one = { key = null }, two = { key = \"b/net\", more = { x = \"b\" } } }", vec!["app -> a", "app -> b"]),
        ("{ one = { more = { x = \"c\" } } }", vec![]),
    ] {
        check(&[("a/m.tf", &a), ("app/m.tf", &app(given)), ("b/m.tf", &b)], &["a", "app", "b"], &wanted);
    }
}

#[test]
fn a_linked_backend_makes_the_linker_a_root() {
    let files = [
        ("shared/backend.tofu", s3("x")),
        ("shared/helpers.tofu", "locals {\n  a = 1\n}\n".to_owned()),
        ("live/x/backend.tofu", "->../../shared/backend.tofu".to_owned()),
        ("live/x/helpers.tofu", "->../../shared/helpers.tofu".to_owned()),
        ("live/x/main.tofu", "resource \"terraform_data\" \"a\" {}\n".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let found = check(&files, &["live/x"], NONE);
    assert_eq!(waves(&found, &["shared/backend.tofu"], &RepoConfig::default()), [["live/x"]]);
}

#[test]
fn overrides_win_and_two_blocks_are_said() {
    let local = |path: &str| format!("terraform {{\n  backend \"local\" {{\n    path = \"{path}\"\n  }}\n}}\n");
    let found = check(&[("r/a.tf", &local("one")), ("r/backend_override.tf", &local("two"))], &["r"], NONE);
    assert_eq!(found.roots[0].state.as_str(), "local:r/two");
    let found = check(&[("r/a.tf", &local("one")), ("r/b.tf", &local("two"))], &["r"], NONE);
    assert!(found.holes[0].what.contains("second"));
    let (one, two) = (local("one"), local("two"));
    let twins = [("r/x.tf", one.as_str()), ("r/x.tofu", two.as_str())];
    assert_eq!(check(&twins, &["r"], NONE).roots[0].state.as_str(), "local:r/two");
    let terraform = with(RootSettings { tool: Some(ToolKind::Terraform), ..RootSettings::default() });
    assert_eq!(estate(&twins, &terraform).1.roots[0].state.as_str(), "local:r/one");
}

#[test]
fn what_is_unreadable_hides_only_itself() {
    let main = format!("{}variable \"e\" {{\n  default = \"dev\"\n}}\n{}", s3("a"), read("${var.e}/net"));
    let net = s3("dev/net");
    let base = [("a/main.tf", main.as_str()), ("net/main.tf", net.as_str())];
    check(&base, &["a", "net"], &["a -> net"]);
    let found = check(&[&base[..], &[("a/terraform.tfvars", "\0GITCRYPT\0")]].concat(), &["a", "net"], &["a -> net?"]);
    assert!(found.roots[0].state_known);
    assert!(found.holes.iter().any(|hole| hole.path == "a/terraform.tfvars"));
    let found =
        check(&[&base[..], &[("a/common.auto.tfvars", "->../gone.tfvars")]].concat(), &["a", "net"], &["a -> net?"]);
    assert!(found.holes.iter().any(|hole| hole.what.contains("nothing")));
}

#[test]
fn reads_in_modules_are_evaluated_with_the_callers_arguments() {
    let call = |env: &str| {
        let local = format!("locals {{\n  env = \"{env}\"\n}}\n");
        format!(
            "{}{local}module \"app\" {{\n  source = \"../../modules/app\"\n  env = local.env\n}}\n",
            s3(&format!("app/{env}"))
        )
    };
    let module = format!(
        "variable \"env\" {{}}\n{}output \"o\" {{\n  value = data.terraform_remote_state.net.outputs.id\n}}\n",
        read("net/${var.env}.tfstate")
    );
    let (dev, prod, net_dev, net_prod) = (call("dev"), call("prod"), s3("net/dev.tfstate"), s3("net/prod.tfstate"));
    let found = check(
        &[
            ("envs/dev/main.tf", &dev),
            ("envs/prod/main.tf", &prod),
            ("modules/app/main.tf", &module),
            ("net-dev/main.tf", &net_dev),
            ("net-prod/main.tf", &net_prod),
        ],
        &["envs/dev", "envs/prod", "net-dev", "net-prod"],
        &["envs/dev -> net-dev", "envs/prod -> net-prod"],
    );
    assert_eq!(found.edges[0].block, "module.app.data.terraform_remote_state.net");
    assert_eq!(found.edges[0].outputs, Some(vec!["id".to_owned()]));
}

#[test]
fn a_workspace_in_the_key_is_one_segment() {
    let owner = |prefix: &str| {
        format!(
            "terraform {{\n  backend \"s3\" {{\n    bucket = \"b\"\n    key = \"terraform.tfstate\"\n    workspace_key_prefix = \"{prefix}\"\n  }}\n}}\n"
        )
    };
    let owners = [owner("acc"), owner("acc/net"), owner("acc/net/core")];
    for key in ["acc/net/${terraform.workspace}/terraform.tfstate", "acc/net/live/terraform.tfstate"] {
        let app = format!("{}{}", s3("app"), read(key));
        let files =
            [("a/m.tf", owners[0].as_str()), ("app/m.tf", &app), ("c/m.tf", &owners[2]), ("net/m.tf", &owners[1])];
        check(&files, &["a", "app", "c", "net"], &["app -> net"]);
    }
}

#[test]
fn roots_that_differ_only_in_their_workspace_are_no_owners() {
    let gcs = |dir: &str| {
        format!(
            "terraform {{\n  backend \"gcs\" {{\n    bucket = \"b\"\n    prefix = \"plat\"\n  }}\n}}\nvariable \"e\" {{}}\ndata \"terraform_remote_state\" \"{dir}\" {{\n  backend = \"gcs\"\n  workspace = \"main-${{var.e}}\"\n  config = {{ bucket = \"b\", prefix = \"plat\" }}\n}}\n"
        )
    };
    let (a, b) = (gcs("a"), gcs("b"));
    let found = check(&[("a/m.tf", &a), ("b/m.tf", &b)], &["a", "b"], NONE);
    assert_eq!(found.shared_states.len(), 1);
    assert_eq!(found.holes.iter().filter(|hole| hole.what.contains("no order")).count(), 2);
}

#[test]
fn backend_files_found_by_naming_give_probable_edges() {
    let app = format!(
        "{}variable \"stack\" {{}}\nvariable \"net_stack\" {{\n  default = null\n}}\ndata \"terraform_remote_state\" \"n\" {{\n  backend = \"s3\"\n  config = {{ bucket = var.b, key = \"${{coalesce(var.net_stack, var.stack)}}/net.tfstate\" }}\n}}\n",
        s3("app")
    );
    let empty = "terraform {\n  backend \"s3\" {}\n}\n";
    let files = [
        ("app/main.tf", app.as_str()),
        ("db/main.tf", empty),
        ("db/prod.blue.backend", "key = \"blue/old-net.tfstate\"\n"),
        ("net/main.tf", empty),
        ("net/prod.blue.backend", "key = \"blue/net.tfstate\"\n"),
        ("net/prod.green.backend", "key = \"green/net.tfstate\"\n"),
    ];
    let found = check(&files, &["app", "db", "net"], &["app -> net?"]);
    assert_eq!(found.roots[2].state.as_str(), "dir:net");
    assert!(!found.roots[2].state_known);
}

#[test]
fn configured_backend_and_var_files_are_certain() {
    let empty = "terraform {\n  backend \"s3\" {}\n}\n";
    let app = format!("{}variable \"e\" {{}}\n{}", s3("app"), read("${var.e}/net"));
    let files = [
        ("app/main.tf", app.as_str()),
        ("env/dev.tfvars", "e = \"dev\"\n"),
        ("env/b.tfbackend", "bucket = \"b\"\nkey = \"dev/net\"\n"),
        ("net/main.tf", empty),
    ];
    let mut config = with(RootSettings { var_files: vec!["../env/dev.tfvars".to_owned()], ..RootSettings::default() });
    let net = RootSettings { backend_config: vec!["../env/b.tfbackend".to_owned()], ..RootSettings::default() };
    config.matches.push(("net".to_owned(), net));
    let (_, estate) = estate(&files, &config);
    assert_eq!(edges(&estate), ["app -> net"], "{:?}", estate.holes);
    // The file stands at the top of the configuration, so every root has it; `net` only adds its backend's.
    assert_eq!(waves(&estate, &["env/dev.tfvars"], &config), [["net"], ["app"]]);
    assert_eq!(waves(&estate, &["env/b.tfbackend"], &config), [["net"], ["app"]]);
}

#[test]
fn for_each_over_a_map_of_states() {
    let app = |hub: bool| {
        format!(
            "{}variable \"hub\" {{\n  default = {hub}\n}}\nlocals {{\n  nets = {{ a = {{ key = \"a/net.tfstate\" }}, b = {{ key = \"b/net.tfstate\" }} }}\n  on = {{ for k, v in local.nets : k => v if !var.hub }}\n}}\ndata \"terraform_remote_state\" \"n\" {{\n  for_each = local.on\n  backend = \"s3\"\n  config = {{ bucket = \"b\", key = lookup(each.value, \"key\") }}\n}}\n",
            s3("b/net.tfstate")
        )
    };
    let net = s3("a/net.tfstate");
    check(&[("a/m.tf", &net), ("b/m.tf", &app(false))], &["a", "b"], &["b -> a"]);
    check(&[("a/m.tf", &net), ("b/m.tf", &app(true))], &["a", "b"], NONE);
    let counted =
        format!("{}{}", s3("app"), read("a/net.tfstate").replace("backend =", "count = var.hub ? 1 : 0\n  backend ="));
    check(
        &[("a/m.tf", &net), ("b/m.tf", &format!("variable \"hub\" {{\n  default = false\n}}\n{counted}"))],
        &["a", "b"],
        NONE,
    );
    check(&[("a/m.tf", &net), ("b/m.tf", &format!("variable \"hub\" {{}}\n{counted}"))], &["a", "b"], &["b -> a"]);
}

#[test]
fn key_alone_is_enough_with_one_owner_and_never_with_two() {
    let app = format!(
        "{}{}",
        s3("app"),
        read("certs/${var.e}/x.tfstate").replace("\"b\"", "data.terraform_remote_state.boot.outputs.bucket")
    );
    let (one, two) = (s3("certs/dev/x.tfstate"), s3("certs/prod/x.tfstate"));
    check(&[("app/m.tf", &app), ("c1/m.tf", &one)], &["app", "c1"], &["app -> c1?"]);
    let found = check(&[("app/m.tf", &app), ("c1/m.tf", &one), ("c2/m.tf", &two)], &["app", "c1", "c2"], NONE);
    assert!(found.holes.iter().any(|hole| hole.what.contains("2 roots may own")));
}

#[test]
fn reads_of_nobody_of_oneself_and_of_shared_states() {
    let own = format!("{}{}", s3("a"), read("a"));
    let found = check(&[("a/m.tf", &own)], &["a"], NONE);
    assert!(found.external.is_empty() && found.holes.is_empty());
    let other = format!("{}{}", s3("a"), read("gone/x.tfstate"));
    let found = check(&[("a/m.tf", &other)], &["a"], NONE);
    assert_eq!(found.external[0].state, Some(StateKey::new("s3:b/gone/x.tfstate")));
    let (app, net) = (format!("{}{}", s3("app"), read("n")), s3("n"));
    let found = check(&[("app/m.tf", &app), ("n1/m.tf", &net), ("n2/m.tf", &net)], &["app", "n1", "n2"], NONE);
    assert_eq!((found.shared_states.len(), found.external.len()), (1, 0));
    let unknown = format!(
        "{}data \"terraform_remote_state\" \"x\" {{\n  for_each = var.states\n  backend = try(each.value.type, \"azurerm\")\n}}\n",
        s3("a")
    );
    assert!(check(&[("a/m.tf", &unknown)], &["a"], NONE).holes[0].what.contains("type"));
}

#[test]
fn local_paths_are_relative_to_the_root_and_path_module_to_the_module() {
    let local = "terraform {\n  backend \"local\" {}\n}\n";
    let module = |path: &str| {
        format!(
            "data \"terraform_remote_state\" \"n\" {{\n  backend = \"local\"\n  config = {{ path = \"{path}\" }}\n}}\n"
        )
    };
    let app = format!("{local}module \"m\" {{\n  for_each = {{}}\n  source = \"../../modules/m\"\n}}\n")
        .replace("  for_each = {}\n", "");
    for (path, source) in
        [("../net/terraform.tfstate", "live/net"), ("${path.module}/../net/terraform.tfstate", "modules/net")]
    {
        let m = module(path);
        let files = [
            ("live/app/m.tf", app.as_str()),
            ("live/net/m.tf", local),
            ("modules/m/m.tf", &m),
            ("modules/net/m.tf", local),
        ];
        check(&files, &["live/app", "live/net", "modules/net"], &[&format!("live/app -> {source}")]);
    }
}

#[test]
fn clouds_and_tfe_outputs_are_one_graph() {
    let cloud =
        "terraform {\n  cloud {\n    organization = \"o\"\n    workspaces {\n      name = \"vpc-dev\"\n    }\n  }\n}\n";
    let app = format!(
        "{}variable \"env\" {{\n  default = \"dev\"\n}}\ndata \"tfe_outputs\" \"v\" {{\n  organization = \"o\"\n  workspace = \"vpc-${{var.env}}\"\n}}\n",
        s3("a")
    );
    let json = r#"{"terraform":{"backend":{"local":{"path":"/home/dev/x.tfstate"}}},"data":{"terraform_remote_state":{"n":{"backend":"remote","config":{"organization":"o","workspaces":{"name":"vpc-dev"}}}}}}"#;
    let found = check(
        &[("app/m.tf", &app), ("cdk/cdk.tf.json", json), ("vpc/m.tf", cloud)],
        &["app", "cdk", "vpc"],
        &["app -> vpc", "cdk -> vpc"],
    );
    assert_eq!(found.roots[1].state.as_str(), "local:/home/dev/x.tfstate");
}

#[test]
fn a_backend_written_at_run_time_is_no_root_and_ignores_hold() {
    check(&[("components/api/main.tf", "provider \"aws\" {\n  region = var.region\n}\n")], NONE, NONE);
    let config = RepoConfig { ignore: vec!["sandbox/**".to_owned()], ..RepoConfig::default() };
    let (_, estate) = estate(&[("sandbox/x/main.tf", &s3("x")), ("network/firewall --/main.tf", &s3("f"))], &config);
    assert_eq!(certain(&estate), ["network/firewall --"]);
}

#[test]
fn each_workspace_of_the_settings_is_a_root() {
    let config =
        with(RootSettings { workspaces: vec!["blue".to_owned(), "green".to_owned()], ..RootSettings::default() });
    let app = format!("{}{}", s3("app"), read("env:/${terraform.workspace}/net"));
    let (_, estate) = estate(&[("app/m.tf", &app), ("net/m.tf", &s3("net"))], &config);
    assert_eq!(edges(&estate), ["app:blue -> net:blue", "app:green -> net:green"]);
}

#[test]
fn outputs_are_none_only_when_the_whole_object_is_used() {
    for (body, outputs) in [
        (
            "resource \"a\" \"b\" {\n  c = data.terraform_remote_state.net.outputs.x\n  d = data.terraform_remote_state.net.outputs[\"y\"]\n}\n",
            Some(vec!["x", "y"]),
        ),
        (
            "locals {\n  n = data.terraform_remote_state.net.outputs\n}\nresource \"a\" \"b\" {\n  c = local.n.x\n}\n",
            Some(vec!["x"]),
        ),
        (
            "locals {\n  n = data.terraform_remote_state.net.outputs\n}\nresource \"a\" \"b\" {\n  c = local.n\n}\n",
            None,
        ),
        ("resource \"a\" \"b\" {\n  c = data.terraform_remote_state.net.outputs[var.k]\n}\n", None),
        ("", Some(vec![])),
    ] {
        let (app, net) = (format!("{}{}{body}", s3("app"), read("net")), s3("net"));
        let found = check(&[("app/m.tf", &app), ("net/m.tf", &net)], &["app", "net"], &["app -> net"]);
        let wanted: Option<Vec<String>> = outputs.map(|names| names.into_iter().map(str::to_owned).collect());
        assert_eq!(found.edges[0].outputs, wanted, "{body}");
    }
}

#[test]
fn each_in_an_argument_is_that_of_the_call() {
    let call = "module \"m\" {\n  for_each = toset([\"a\", \"b\"])\n  source = \"../m\"\n  k = each.key\n}\n";
    let app = format!("{}{call}", s3("app"));
    let module = format!("variable \"k\" {{}}\n{}", read("${var.k}/net"));
    let (a, b) = (s3("a/net"), s3("b/net"));
    let files = [("a/m.tf", a.as_str()), ("app/m.tf", &app), ("b/m.tf", &b), ("m/m.tf", &module)];
    check(&files, &["a", "app", "b"], &["app -> a", "app -> b"]);
}

#[test]
fn code_that_grows_without_end_is_unknown_soon() {
    let mut text = format!("{}{}", s3("a"), read("${local.t60}/x"));
    text.push_str("locals {\n  t0 = \"xxxxxxxx\"\n  l0 = [1, 2]\n  d0 = local.d1\n");
    for at in 1..=60 {
        text.push_str(
            &[
                "  t",
                &at.to_string(),
                " = \"${local.t",
                &(at - 1).to_string(),
                "}${local.t",
                &(at - 1).to_string(),
                "}\"\n",
            ]
            .concat(),
        );
        text.push_str(
            &["  l", &at.to_string(), " = [local.l", &(at - 1).to_string(), ", local.l", &(at - 1).to_string(), "]\n"]
                .concat(),
        );
    }
    for at in 1..5_000 {
        text.push_str(&["  d", &at.to_string(), " = local.d", &(at + 1).to_string(), "\n"].concat());
    }
    text.push_str("}\nresource \"a\" \"b\" {\n  x = [file(local.l60[0][0]), file(\"${local.d0}\")]\n}\n");
    let found = check(&[("a/m.tf", &text)], &["a"], NONE);
    assert!(!found.holes.is_empty());
}

#[test]
fn an_unknown_owner_is_no_owner_and_calls_that_lead_nowhere_are_said() {
    let tags =
        "terraform {\n  cloud {\n    organization = \"o\"\n    workspaces {\n      tags = [\"vpc\"]\n    }\n  }\n}\n";
    let app = format!(
        "{}data \"tfe_outputs\" \"v\" {{\n  organization = \"o\"\n  workspace = \"vpc-${{var.env}}\"\n}}\nmodule \"gone\" {{\n  source = \"../gone\"\n}}\n",
        s3("a")
    );
    let found = check(&[("app/m.tf", &app), ("vpc/m.tf", tags)], &["app", "vpc"], NONE);
    assert_eq!(found.holes.len(), 2, "{:?}", found.holes);
}

#[test]
fn what_is_written_in_other_ways_is_evaluated_too() {
    let net = s3("live/dev/net.tfstate");
    for key in [
        "${replace(\"live_dev\", \"_\", \"/\")}/net.tfstate",
        "${replace(\"live--dev\", \"/-+/\", \"/\")}/net.tfstate",
        "${regex(\"^[a-z]+\", \"live-x\")}/dev/net.tfstate",
        "live/${regex(\"^(?P<a>\\\\w+)-(?P<env>\\\\w+)$\", \"net-dev\").env}/net.tfstate",
        "live/${regex(\"-(\\\\w+)$\", \"net-dev\")[0]}/net.tfstate",
        "live/${split(\"-\", \"net-dev\")[1]}/net.tfstate",
        "live/${substr(\"develop\", 0, 3)}/net.tfstate",
        "live/${element(reverse(split(\"/\", path.cwd)), 0) == \"app\" ? \"x\" : \"y\"}/../net.tfstate",
        "live/${substr(\"dev\", 0, -1)}/${basename(\"a/net.tfstate\")}",
        "${dirname(\"live/dev/x\")}/net.tfstate",
        "live/${one([\"dev\"])}/net.tfstate",
        "live/${join(\"\", [{ n = \"dev\" }][*].n)}/net.tfstate",
        "live/${compact([\"\", \"dev\"])[0]}/net.tfstate",
        "live/${zipmap([\"a\"], [\"dev\"])[\"a\"]}/net.tfstate",
        "live/${[\"x\", \"dev\"][2 - 1]}/net.tfstate",
        "live/${can(tostring(\"a\")) ? \"dev\" : \"x\"}/net.tfstate",
        "live/${lower(title(\"DEV\"))}/net.tfstate",
        "live/${trimspace(\" dev \")}/net.tfstate",
        "live/${startswith(\"devel\", \"dev\") ? \"dev\" : \"x\"}/net.tfstate",
        "${format(\"live/%s/%s\", \"dev\", \"net.tfstate\")}",
        "live/${basename(abspath(path.root)) == \"app\" ? \"dev\" : \"x\"}/net.tfstate",
    ] {
        let app = format!("{}{}", s3("app"), read(key));
        let (_, found) = estate(&[("app/m.tf", &app), ("net/m.tf", &net)], &RepoConfig::default());
        let wanted: &[&str] = if key.contains("reverse") { &[] } else { &["app -> net"] };
        assert_eq!(edges(&found), wanted, "{key}: {:?} {:?}", found.holes, found.external);
    }
}

#[test]
fn keys_in_quotes_as_terraform_0_11_had_them() {
    let old = "data \"terraform_remote_state\" \"net\" {\n  backend = \"s3\"\n  config {\n    \"bucket\" = \"b\"\n    \"key\" = \"net\"\n  }\n}\nresource \"x\" \"y\" {\n  tags {\n    \"kubernetes.io/x\" = \"1\"\n    \"Name\" = \"${data.terraform_remote_state.net.id}\"\n  }\n}\n";
    let found = check(
        &[("app/m.tf", &format!("{}{old}", s3("app"))), ("net/m.tf", &s3("net"))],
        &["app", "net"],
        &["app -> net"],
    );
    assert!(found.holes.is_empty(), "{:?}", found.holes);
}

#[test]
fn a_link_may_lead_to_a_file_with_another_ending() {
    let shared = s3("${terraform.workspace}/x");
    let files = [
        ("shared/backend.tf.shared", shared.as_str()),
        ("live/x/backend.tf", "->../../shared/backend.tf.shared"),
        ("live/x/main.tf", "resource \"terraform_data\" \"a\" {}\n"),
    ];
    let found = check(&files, &["live/x"], NONE);
    assert_eq!(found.roots[0].state.as_str(), "s3:b/default/x");
    assert_eq!(waves(&found, &["shared/backend.tf.shared"], &RepoConfig::default()), [["live/x"]]);
}

#[test]
fn a_folder_to_link_from_that_cannot_run_by_itself_is_no_root() {
    let main = "terraform {\n  backend \"s3\" {}\n}\nvariable \"env\" {}\nresource \"a\" \"b\" {}\n";
    let mut files = vec![("common/main.tf", main)];
    for dir in ["envs/dev", "envs/prod"] {
        files
            .push((if dir == "envs/dev" { "envs/dev/main.tf" } else { "envs/prod/main.tf" }, "->../../common/main.tf"));
    }
    files.push(("envs/dev/terraform.tfvars", "env = \"dev\"\n"));
    check(&files, &["envs/dev", "envs/prod"], NONE);
    // With values of its own it is one environment more.
    files.push(("common/terraform.tfvars", "env = \"lab\"\n"));
    check(&files, &["common", "envs/dev", "envs/prod"], NONE);
}

#[test]
fn places_of_old_and_of_other_makers_backends() {
    let backend = |kind: &str, args: &str| format!("terraform {{\n  backend \"{kind}\" {{\n{args}  }}\n}}\n");
    let reads = |kind: &str, args: &str| {
        format!(
            "{}data \"terraform_remote_state\" \"n\" {{\n  backend = \"{kind}\"\n  config = {{\n{args}  }}\n}}\n",
            s3("app")
        )
    };
    for (kind, owner, reader) in [
        ("gcs", "    bucket = \"b\"\n    path = \"n/x.tfstate\"\n", "    bucket = \"b\"\n    path = \"n/x.tfstate\"\n"),
        ("swift", "    path = \"n\"\n", "    container = \"n\"\n"),
        ("artifactory", "    repo = \"r\"\n    subpath = \"n\"\n", "    repo = \"r\"\n    subpath = \"n\"\n"),
        ("etcdv3", "    prefix = \"n/\"\n", "    prefix = \"n/\"\n"),
        ("manta", "    path = \"n\"\n", "    path = \"n\"\n"),
        (
            "s3",
            "    bucket = \"b\"\n    key = \"n\"\n    endpoint = \"https://s\"\n",
            "    bucket = \"b\"\n    key = \"n\"\n    endpoints = { s3 = \"https://s\" }\n",
        ),
        ("atlas", "    name = \"o/n\"\n", "    name = \"o/n\"\n"),
    ] {
        let (app, net) = (reads(kind, reader), backend(kind, owner));
        check(&[("app/m.tf", &app), ("net/m.tf", &net)], &["app", "net"], &["app -> net"]);
    }
}

#[test]
fn a_state_that_a_wrapper_names_is_hinted_at_and_can_be_set() {
    let component = "provider \"aws\" {\n  region = var.region\n}\n";
    let reader = format!("{}variable \"p\" {{}}\n{}", s3("app"), read("${format(\"%s/eu/api.tfstate\", var.p)}"));
    let files =
        [("app/m.tf", reader.as_str()), ("components/api/main.tf", component), ("components/db/main.tf", component)];
    let found = check(&files, &["app"], NONE);
    assert!(found.holes.iter().any(|hole| hole.what.contains("looks like `components/api`")), "{:?}", found.holes);
    let mut config = RepoConfig::default();
    let said = RootSettings { state: Some("s3:*/{name}.tfstate".to_owned()), ..RootSettings::default() };
    config.matches.push(("components/*".to_owned(), said));
    let (_, found) = estate(&files, &config);
    assert_eq!(edges(&found), Vec::<String>::new(), "a star is one segment");
    config.matches[0].1.state = Some("s3:*/eu/{name}.tfstate".to_owned());
    let (_, found) = estate(&files, &config);
    assert_eq!(edges(&found), ["app -> components/api?"]);
    assert_eq!(certain(&found), ["app"], "it orders, and plans nothing by itself");
}

#[test]
fn workspaces_made_by_code_own_by_their_directory() {
    let tags =
        "terraform {\n  cloud {\n    organization = \"o\"\n    workspaces {\n      tags = [\"vpc\"]\n    }\n  }\n}\n";
    let app = format!(
        "{}variable \"env\" {{\n  default = \"int\"\n}}\ndata \"tfe_outputs\" \"v\" {{\n  organization = \"o\"\n  workspace = \"vpc-${{var.env}}\"\n}}\n",
        s3("a")
    );
    let module = format!(
        "{}module \"vpc\" {{\n  source = \"o/workspacer/tfe\"\n  workspace_name = \"vpc-int\"\n  working_directory = \"/deploy/vpc/\"\n}}\n",
        s3("tfc")
    );
    let resource = format!(
        "{}resource \"tfe_workspace\" \"w\" {{\n  for_each = toset([\"int\", \"live\"])\n  name = \"vpc-${{each.key}}\"\n  working_directory = \"deploy/vpc\"\n}}\n",
        s3("tfc")
    );
    for makes in [module, resource] {
        let files = [("app/m.tf", app.as_str()), ("deploy/vpc/m.tf", tags), ("tfc/m.tf", &makes)];
        check(&files, &["app", "deploy/vpc", "tfc"], &["app -> deploy/vpc?"]);
    }
}

#[test]
fn a_convention_is_said_once() {
    let empty = "terraform {\n  backend \"s3\" {}\n}\n";
    let found = check(
        &[
            ("a/m.tf", empty),
            ("a/dev.s3.tfbackend", "key = \"dev/a\"\n"),
            ("a/prod.s3.tfbackend", "key = \"prod/a\"\n"),
            ("b/m.tf", empty),
            ("b/dev.s3.tfbackend", "key = \"dev/b\"\n"),
        ],
        &["a", "b"],
        NONE,
    );
    let said: Vec<(&str, usize)> = found.conventions.iter().map(|said| (said.pattern.as_str(), said.roots)).collect();
    assert_eq!(said, [("*.s3.tfbackend", 2)]);
}

#[test]
fn a_heredoc_is_text() {
    let app = format!("{}locals {{\n  a = <<-EOT\n    net\n  EOT\n}}\n{}", s3("app"), read("${trimspace(local.a)}"));
    check(&[("app/m.tf", &app), ("net/m.tf", &s3("net"))], &["app", "net"], &["app -> net"]);
}

#[test]
fn a_source_in_a_variable_is_followed_for_reach_and_references() {
    let app = format!(
        "{}variable \"v\" {{\n  default = \"../m\"\n}}\nmodule \"m\" {{\n  source = var.v\n  in = terraform_data.a.id\n}}\nresource \"terraform_data\" \"a\" {{}}\n",
        s3("app")
    );
    let module =
        "variable \"in\" {}\nresource \"terraform_data\" \"b\" {\n  input = var.in\n}\nprovider \"p\" {\n  x = 1\n}\n";
    let found = check(&[("app/m.tofu", &app), ("m/main.tf", module)], &["app"], NONE);
    assert_eq!(found.roots.len(), 1, "a called module is not probably a root");
    assert_eq!(waves(&found, &["m/main.tf"], &RepoConfig::default()), [["app"]]);
    let uses = found.references(&RootKey::new("app")).dependencies();
    assert!(uses["module.m.terraform_data.b"].contains("terraform_data.a"), "{uses:?}");
}
