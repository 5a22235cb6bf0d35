//! Which roots a change reaches, why, and in which layers.

use proptest::prelude::*;

use super::super::fixture::{estate, ordered, read, s3, waves};
use super::*;

const NOBODY: Vec<Vec<String>> = Vec::new();

fn tree(files: &[(&str, String)]) -> (Listing, Estate) {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    estate(&files, &RepoConfig::default())
}

fn reach(estate: &Estate, path: &str) -> Vec<Vec<String>> {
    waves(estate, &[path], &RepoConfig::default())
}

#[test]
fn the_deepest_root_owns_a_path_by_component() {
    let dirs = ["", "test/", "test222/", "test/nested/"];
    let files: Vec<(String, String)> = dirs.iter().map(|dir| (format!("{dir}main.tf"), s3(dir))).collect();
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    let (_, estate) = tree(&files);
    for (path, root) in [
        ("test222/main.tf", "test222"),
        ("test/nested/main.tf", "test/nested"),
        ("main.tf", "."),
        ("test/x/y.json", "test"),
        ("other/x", "."),
    ] {
        assert_eq!(reach(&estate, path), [[root]], "{path}");
    }
    for path in ["README.md", "test/LICENSE.txt", ".gitignore"] {
        assert_eq!(reach(&estate, path), NOBODY, "{path}");
    }
}

#[test]
fn modules_and_data_files_reach_who_uses_them() {
    let call = |source: &str| format!("module \"m\" {{\n  for_each = {{ a = 1 }}\n  source = \"{source}\"\n}}\n");
    let plain = "resource \"terraform_data\" \"a\" {}\n".to_owned();
    let solo =
        "locals {\n  v = file(\"../shared/v.txt\")\n  t = templatefile(\"${path.module}/../shared/t.tpl\", {})\n}\n";
    let (_, estate) = tree(&[
        ("modules/m/main.tf", plain.clone()),
        ("modules/n/main.tf", call("../m")),
        ("net/main.tf", format!("{}{}", s3("net"), call("../modules/m"))),
        ("app/main.tf", format!("{}{}", s3("app"), call("../modules/n"))),
        ("solo/main.tf", format!("{}{solo}", s3("solo"))),
    ]);
    for (path, roots) in [
        ("modules/m/main.tf", vec!["app", "net"]),
        ("modules/m/gone.tf", vec!["app", "net"]),
        ("modules/n/main.tf", vec!["app"]),
        ("modules/m/templates/x.tpl", vec!["app", "net"]),
        ("shared/v.txt", vec!["solo"]),
        ("shared/t.tpl", vec!["solo"]),
        ("app/.terraform.lock.hcl", vec!["app"]),
        ("solo/x.auto.tfvars", vec!["solo"]),
    ] {
        assert_eq!(reach(&estate, path), [roots], "{path}");
    }
    assert_eq!(reach(&estate, "modules/m/README.md"), NOBODY);
    assert_eq!(reach(&estate, "modules/mm/main.tf"), NOBODY);
    let reached =
        estate.reached(&["modules/m/main.tf".to_owned(), "net/x.tf".to_owned()], &RepoConfig::default()).unwrap();
    let module = Reason::Module { dir: "modules/m".to_owned(), path: "modules/m/main.tf".to_owned() };
    assert_eq!(reached.roots[1].reasons, [Reason::Changed("net/x.tf".to_owned()), module]);
}

#[test]
fn file_patterns_reach_and_unknown_names_are_said() {
    let envs = "locals {\n  e = { for f in fileset(\"../../environments\", \"*.json\") : f => jsondecode(file(\"../../environments/${f}\")) }\n}\n";
    let (_, estate) = tree(&[
        ("envs/main.tf", format!("{}locals {{\n  a = fileset(\"${{path.module}}/app\", \"*.json\")\n}}\n", s3("envs"))),
        ("envs/app/main.tf", s3("app")),
        ("live/a/main.tf", format!("{}{envs}", s3("a"))),
        (
            "w/main.tf",
            format!(
                "{}locals {{\n  x = file(\"../data/vars-${{terraform.workspace}}.json\")\n  y = file(\"../xml/${{var.env}}.xml\")\n  z = file(var.f)\n}}\n",
                s3("w")
            ),
        ),
    ]);
    assert_eq!(reach(&estate, "envs/app/x.tf"), [["envs/app"]]);
    assert_eq!(reach(&estate, "envs/app/a.json"), [["envs", "envs/app"]]);
    assert_eq!(reach(&estate, "environments/z.json"), [["live/a"]]);
    assert_eq!(reach(&estate, "data/vars-default.json"), [["w"]]);
    assert_eq!(reach(&estate, "data/vars-other.json"), NOBODY);
    assert_eq!(reach(&estate, "xml/dev.xml"), [["w"]]);
    let (_, read_me) = tree(&[("r/m.tf", s3("r") + "locals {\n  x = file(\"${path.module}/README.md\")\n}\n")]);
    assert_eq!(reach(&read_me, "r/README.md"), [["r"]]);
    assert_eq!(estate.holes.iter().filter(|hole| hole.what.contains("reaches nobody")).count(), 1);
}

#[test]
fn a_chain_gets_a_wave_each_and_bystanders_none() {
    let (listing, estate) = tree(&[
        ("network/main.tf", s3("network")),
        ("database/main.tf", format!("{}{}", s3("database"), read("network"))),
        ("app/main.tf", format!("{}{}", s3("app"), read("database"))),
        ("worker/main.tf", s3("worker")),
    ]);
    assert_eq!(reach(&estate, "network/main.tf"), [["network"], ["database"], ["app"]]);
    assert_eq!(reach(&estate, "app/main.tf"), [["app"]]);
    let reached = estate.reached(&["network/main.tf".to_owned()], &RepoConfig::default()).unwrap();
    assert_eq!(reached.roots[0].reasons, [Reason::Reads(RootKey::new("database"))]);
    assert_eq!(reached.edges.len(), 2);
    let (digest, covers) = estate.source_of(&RootKey::new("app"), &listing);
    assert_eq!((digest.len(), covers), (64, vec!["app".to_owned()]));
}

#[test]
fn after_orders_plain_roots_and_canaries_go_first() {
    let (_, estate) =
        tree(&[("app/m.tf", s3("a")), ("database/m.tf", s3("d")), ("network/m.tf", s3("n")), ("z/m.tf", s3("z"))]);
    let config = ordered(&[("app", &["database"]), ("database", &["network"])], &[]);
    assert_eq!(waves(&estate, &["network/m.tf"], &config), [["network"], ["database"], ["app"]]);
    let config = ordered(&[("app", &["database"])], &["app", "z"]);
    let all = ["app/m.tf", "database/m.tf", "network/m.tf", "z/m.tf"];
    assert_eq!(waves(&estate, &all, &config), [vec!["database", "z"], vec!["app"], vec!["network"]]);
    let config = ordered(&[("app", &["database"]), ("database", &["app"])], &[]);
    let cycle = estate.reached(&["app/m.tf".to_owned()], &config).unwrap_err();
    assert_eq!(cycle.len(), 3);
    assert_eq!(cycle.first(), cycle.last());
    assert!(estate.reached(&["z/m.tf".to_owned()], &config).is_ok());
}

#[test]
fn canaries_are_layered_in_themselves_with_what_they_read() {
    let (_, estate) = tree(&[
        ("app/m.tf", format!("{}{}", s3("app"), read("db"))),
        ("db/m.tf", format!("{}{}", s3("db"), read("net"))),
        ("net/m.tf", s3("net")),
        ("solo/m.tf", s3("solo")),
        ("web/m.tf", format!("{}{}", s3("web"), read("net"))),
    ]);
    let all = ["net/m.tf", "solo/m.tf"];
    for (canary, expected) in [
        (&[][..], vec![vec!["net", "solo"], vec!["db", "web"], vec!["app"]]),
        (&["solo"], vec![vec!["solo"], vec!["net"], vec!["db", "web"], vec!["app"]]),
        (&["db"], vec![vec!["net"], vec!["db"], vec!["app", "solo", "web"]]),
        (&["net", "db", "app"], vec![vec!["net"], vec!["db"], vec!["app"], vec!["solo", "web"]]),
        (&["nowhere"], vec![vec!["net", "solo"], vec!["db", "web"], vec!["app"]]),
    ] {
        assert_eq!(waves(&estate, &all, &ordered(&[], canary)), expected, "{canary:?}");
    }
}

#[test]
fn a_name_in_waves_that_is_no_root_is_found_with_the_one_it_means() {
    let (_, estate) = tree(&[("app/m.tf", s3("a")), ("database/m.tf", s3("d"))]);
    let config = ordered(&[("app", &["databse"]), ("elsewhere/x", &["database", "app"])], &["app", "ap"]);
    let found: Vec<(&str, String, Option<String>)> =
        estate.strangers(&config).into_iter().map(|found| (found.setting, found.name, found.near)).collect();
    assert_eq!(
        found,
        [
            ("waves.after", "databse".to_owned(), Some("database".to_owned())),
            ("waves.after", "elsewhere/x".to_owned(), None),
            ("waves.canary", "ap".to_owned(), Some("app".to_owned())),
        ]
    );
    assert!(estate.strangers(&ordered(&[("app", &["database"])], &["app:default"])).is_empty());
}

#[test]
fn a_group_that_reads_each_other_is_one_wave_unless_after_breaks_it() {
    let (_, estate) = tree(&[
        ("a/m.tf", format!("{}{}", s3("a"), read("b"))),
        ("b/m.tf", format!("{}{}", s3("b"), read("a"))),
        ("c/m.tf", format!("{}{}", s3("c"), read("b"))),
    ]);
    assert_eq!(reach(&estate, "a/m.tf"), [vec!["a", "b"], vec!["c"]]);
    assert_eq!(waves(&estate, &["a/m.tf"], &ordered(&[("a", &["b"])], &[])), [vec!["b"], vec!["a", "c"]]);
    let against = estate.reached(&["a/m.tf".to_owned()], &ordered(&[("b", &["c"])], &[])).unwrap_err();
    assert_eq!(against, ["b", "c", "b"].map(RootKey::new));
}

#[test]
fn the_source_digest_moves_with_everything_that_is_source_and_nothing_else() {
    let files = |module: &str, below: &str, read: &str, linked: &str| {
        tree(&[
            (
                "r/main.tf",
                format!(
                    "{}module \"m\" {{\n  source = \"../m\"\n}}\nlocals {{\n  f = file(\"../f.txt\")\n}}\n",
                    s3("r")
                ),
            ),
            ("r/link.tf", "->../shared/l.tf".to_owned()),
            ("r/below/main.tf", format!("{}# {below}\n", s3("below"))),
            ("m/main.tf", format!("# {module}\n")),
            ("f.txt", read.to_owned()),
            ("shared/l.tf", format!("# {linked}\n")),
            ("other.txt", below.to_owned()),
        ])
    };
    let digest = |tree: (Listing, Estate)| tree.1.source_of(&RootKey::new("r"), &tree.0).0;
    let first = digest(files("1", "1", "1", "1"));
    assert_eq!(digest(files("1", "2", "1", "1")), first);
    for moved in [files("2", "1", "1", "1"), files("1", "1", "2", "1"), files("1", "1", "1", "2")] {
        assert_ne!(digest(moved), first);
    }
}

#[test]
fn a_root_is_deleted_when_nobody_owns_its_state() {
    let base = tree(&[("solo/m.tf", s3("solo")), ("net/m.tf", s3("net"))]).1;
    let moved = tree(&[("solo2/m.tf", s3("solo")), ("net/m.tf", s3("net"))]).1;
    let gone = tree(&[("solo/README.md", String::new()), ("net/m.tf", s3("net"))]).1;
    assert!(deleted(&base, &moved).is_empty());
    let provider = "provider \"x\" {\n  a = 1\n}\n".to_owned();
    let no_backend = tree(&[("solo/m.tf", provider), ("net/m.tf", s3("net"))]).1;
    assert_eq!(deleted(&base, &no_backend).len(), 1);
    let lost: Vec<String> = deleted(&base, &gone).iter().map(|root| root.key.to_string()).collect();
    assert_eq!(lost, ["solo"]);
}

#[test]
fn a_version_file_reaches_the_roots_below_it_that_name_no_version() {
    let files: Vec<(String, String)> =
        ["a", "b/c", "b/d"].iter().map(|dir| (format!("{dir}/main.tf"), s3(dir))).collect();
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    let (_, estate) = tree(&files);
    for (path, roots) in [
        (".terraform-version", vec!["a", "b/c", "b/d"]),
        ("b/.opentofu-version", vec!["b/c", "b/d"]),
        ("b/c/.terraform-version", vec!["b/c"]),
    ] {
        assert_eq!(reach(&estate, path), [roots], "{path}");
    }
    assert_eq!(reach(&estate, ".tool-versions"), NOBODY);
    let mut config = RepoConfig::default();
    config.top.version = Some("1.5.7".to_owned());
    assert_eq!(waves(&estate, &[".terraform-version"], &config), NOBODY);
}

fn made(count: usize, edges: &[(usize, usize)]) -> Estate {
    let key = |at: usize| RootKey::new(format!("r{at:02}"));
    let root = |at: usize| Root {
        key: key(at),
        backend: "s3".to_owned(),
        state: StateKey::new(format!("s3:{at}")),
        state_known: true,
        kind: RootKind::Certain,
        modules: Vec::new(),
        files: Vec::new(),
        required_version: None,
    };
    let edge = |(source, reader): &(usize, usize)| Edge {
        reader: key(*reader),
        source: key(*source),
        block: "data.terraform_remote_state.x".to_owned(),
        outputs: None,
        certain: true,
    };
    Estate { roots: (0..count).map(root).collect(), edges: edges.iter().map(edge).collect(), ..Estate::default() }
}

proptest! {
    #[test]
    fn reach_is_the_closure_and_no_layer_comes_before_its_source(
        pairs in proptest::collection::vec((0_usize..12, 0_usize..12), 0..30),
        changed in proptest::collection::btree_set(0_usize..12, 1..4),
        canary in proptest::collection::btree_set(0_usize..12, 0..3),
    ) {
        // Pairs that go up make no cycle, so each source must lie in an earlier layer.
        let pairs: Vec<(usize, usize)> = pairs.into_iter().filter(|(a, b)| a < b).collect();
        let estate = made(12, &pairs);
        let names: Vec<String> = canary.iter().map(|at| format!("r{at:02}")).collect();
        let config = ordered(&[], &names.iter().map(String::as_str).collect::<Vec<_>>());
        let paths: Vec<String> = changed.iter().map(|at| format!("r{at:02}/x.tf")).collect();
        let reached = estate.reached(&paths, &config).unwrap();
        let mut naive = changed.clone();
        while let Some((_, more)) = pairs.iter().find(|(a, b)| naive.contains(a) && !naive.contains(b)) {
            naive.insert(*more);
        }
        let naive: Vec<String> = naive.iter().map(|at| format!("r{at:02}")).collect();
        let got: Vec<String> = reached.roots.iter().map(|root| root.root.to_string()).collect();
        prop_assert_eq!(&got, &naive);
        let mut in_layers: Vec<String> = reached.waves.iter().flatten().map(RootKey::to_string).collect();
        in_layers.sort();
        prop_assert_eq!(&in_layers, &naive);
        let layer = |key: &RootKey| reached.waves.iter().position(|wave| wave.contains(key)).unwrap();
        for edge in &reached.edges {
            prop_assert!(layer(&edge.source) < layer(&edge.reader));
        }
    }

    #[test]
    fn groups_are_whole_whatever_the_edges(pairs in proptest::collection::vec((0_usize..8, 0_usize..8), 0..24)) {
        let estate = made(8, &pairs);
        let all: BTreeSet<RootKey> = estate.roots.iter().map(|root| root.key.clone()).collect();
        let layers = estate.layers(&all, &RepoConfig::default()).unwrap();
        let count: usize = layers.iter().map(Vec::len).sum();
        prop_assert_eq!(count, 8);
        let layer = |at: usize| layers.iter().position(|wave| wave.contains(&RootKey::new(format!("r{at:02}")))).unwrap();
        for (source, reader) in &pairs {
            prop_assert!(layer(*source) <= layer(*reader));
        }
    }
}
