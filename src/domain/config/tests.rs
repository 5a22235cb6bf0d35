//! The file's keys, its problems with their places, and the published schema against the parser.

use super::*;

const EXAMPLE: &str = r#"roots:
  ignore: ["sandbox/**"]
  match:                          # the first that fits; every key here can also stand at the top
    "envs/prod/**": { tool: tofu, version: "1.12.6", gate: always, approvers: ["@org/db"], workspaces: [blue, green] }
    "components/*": { var_files: ["../env/prod.tfvars"], backend_config: ["prod.s3.tfbackend"] }
waves: { canary: [envs/dev/network], after: { app: [database] }, jobs: 3 }
gate: on-destructive              # always (default) | on-destructive | never
confirm_destructive: true
approval: ledger                  # ledger (default) | pr-review | sealed
approvers: { four_eyes: true, count: 1 }
apply: { when: pull-request, requires: [approved, mergeable, undiverged], merge: auto }
locks: apply                      # apply (default) | plan
parallelism: 8
"#;

#[test]
fn the_whole_example_is_read() {
    let config = parse(EXAMPLE).expect("the design's own example");
    assert_eq!(config.ignore, ["sandbox/**"]);
    assert_eq!(config.matches[0].0, "envs/prod/**");
    assert_eq!((config.waves.jobs, config.parallelism, config.confirm_destructive), (3, 8, true));
    assert_eq!(config.waves.after["app"], ["database"]);
    assert_eq!((config.apply.merge, config.apply.requires.len()), (MergePolicy::Auto, 3));
    let prod = config.for_root("envs/prod");
    assert_eq!((prod.tool, prod.gate), (Some(ToolKind::Tofu), Some(GatePolicy::Always)));
    assert_eq!((prod.version.as_deref(), prod.workspaces.len()), (Some("1.12.6"), 2));
    let component = config.for_root("components/a");
    assert_eq!((component.gate, component.var_files.len()), (Some(GatePolicy::OnDestructive), 1));
    assert_eq!(config.for_root("elsewhere"), config.top);
    assert!(config.ignores("sandbox/x") && config.ignores("sandbox") && !config.ignores("envs/prod"));
}

#[test]
fn nothing_said_is_the_default() {
    for text in ["", "\n", "# only a comment\n", "---\n", "{}", "gate:\n", "roots:\n  match:\n", "\u{feff}"] {
        assert_eq!(parse(text), Ok(RepoConfig::default()), "{text:?}");
    }
}

#[test]
fn the_first_match_wins_key_by_key() {
    let text = "gate: never\ntool: tofu\nroots: {match: {'a/**': {gate: always}, 'a/b': {gate: on-destructive, version: '1.9'}}}";
    let settings = parse(text).expect("valid").for_root("a/b");
    assert_eq!(
        (settings.gate, settings.tool, settings.version),
        (Some(GatePolicy::Always), Some(ToolKind::Tofu), None)
    );
}

#[test]
fn require_approval_is_a_gate_and_approvers_have_two_forms() {
    let gate = |text: &str| parse(text).expect("valid").top.gate;
    assert_eq!(gate("require_approval: true"), Some(GatePolicy::Always));
    assert_eq!(gate("require_approval: false"), Some(GatePolicy::Never));
    let list = parse("approvers: [lin, '@org/db']").expect("valid");
    assert_eq!((list.top.approvers.len(), list.approvers), (2, Approvers::default()));
    let map = parse("approvers: {count: 2, four_eyes: false, names: [lin]}").expect("valid");
    assert_eq!((map.top.approvers, map.approvers), (vec!["lin".to_owned()], Approvers { four_eyes: false, count: 2 }));
}

#[test]
fn every_problem_is_said_at_its_place() {
    for (text, problems) in [
        ("gaet: always", vec!["1:1 the file has no key `gaet`; did you mean `gate`?"]),
        (
            "gate: alway\nlocks: 3\n",
            vec![
                "1:7 `gate` cannot be `alway`; did you mean `always`?",
                "2:8 `locks` must be one of `apply`, `plan`, not a number.",
            ],
        ),
        (
            "waves:\n  canry: []\n  after: {app: database}\nparallelism: -1\nfoo: 1\n",
            vec![
                "2:3 `waves` has no key `canry`; did you mean `canary`?",
                "3:16 `waves.after.app` must be a list, not a text; write `[…]`.",
                "4:14 `parallelism` must be a whole number from 1 to 1000.",
                "5:1 the file has no key `foo`; these are known: ",
            ],
        ),
        ("roots:\n  match:\n    'a/*': {version: 1.10}\n", vec!["3:22 `version` must be a text; put it in quotes."]),
        (
            "roots: {match: {'a': {approvers: {count: 1}}}}",
            vec!["1:34 `approvers` must be a list, not a map; write `[…]`."],
        ),
        ("roots: {match: {'a': {locks: plan}}}", vec!["1:23 `a` has no key `locks`"]),
        ("roots: {ignore: ['a/{b']}", vec!["1:17 `a/{b` is no pattern: "]),
        ("confirm_destructive: maybe", vec!["1:22 `confirm_destructive` must be `true` or `false`, not a text."]),
        ("approvers: {count: 0}", vec!["1:20 `approvers.count` must be a whole number from 1 to 1000."]),
        (
            "gate: never\nrequire_approval: true",
            vec!["2:19 `gate` and `require_approval` say the same thing twice; keep `gate`."],
        ),
        ("- a", vec!["1:1 the file must be a map, not a list."]),
        ("a: [", vec!["This is no YAML that can be read: "]),
        ("gate: never\ngate: always", vec!["This is no YAML that can be read: "]),
    ] {
        let found = parse(text).expect_err(text);
        let said: Vec<String> = found.iter().map(|p| format!("{}:{} {}", p.line, p.column, p.what)).collect();
        assert_eq!(said.len(), problems.len(), "{text:?}: {said:#?}");
        for (said, expected) in said.iter().zip(problems) {
            assert!(said.contains(expected), "{text:?}: {said}");
            assert!(!said.starts_with("0:"), "{said}");
        }
    }
}

#[test]
fn a_yaml_bomb_is_a_problem_and_not_a_wait() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..10 {
        let last = format!("*a{}", n - 1);
        bomb = format!("{bomb}a{n}: &a{n} [{}]\n", vec![last; 9].join(", "));
    }
    assert_eq!(parse(&bomb).expect_err("too much").len(), 1);
}

fn schema() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../docs/tidegate.schema.json")).expect("the schema is JSON")
}

fn keys(schema: &serde_json::Value, pointer: &str) -> Vec<String> {
    let properties = schema.pointer(pointer).and_then(serde_json::Value::as_object);
    let mut keys: Vec<String> = properties.unwrap_or_else(|| panic!("{pointer}")).keys().cloned().collect();
    keys.sort();
    keys
}

#[test]
fn the_schema_and_the_parser_know_the_same_keys_and_choices() {
    let schema = schema();
    let known = |names: &[&str]| {
        let mut names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        names.sort();
        names
    };
    let top: Vec<&str> = ROOT_KEYS.iter().chain(&TOP_KEYS).copied().collect();
    for (pointer, expected) in [
        ("/properties", &top[..]),
        ("/properties/roots/properties", &ROOTS_KEYS),
        ("/properties/roots/properties/match/additionalProperties/properties", &ROOT_KEYS),
        ("/properties/waves/properties", &WAVES_KEYS),
        ("/properties/approvers/oneOf/1/properties", &APPROVERS_KEYS),
        ("/properties/apply/properties", &APPLY_KEYS),
    ] {
        assert_eq!(keys(&schema, pointer), known(expected), "{pointer}");
    }
    fn choices<T>(pairs: &[(&'static str, T)]) -> Vec<&'static str> {
        pairs.iter().map(|(name, _)| *name).collect()
    }
    for (pointer, expected) in [
        ("/$defs/tool/enum", choices(&TOOLS)),
        ("/$defs/gate/enum", choices(&GATES)),
        ("/properties/approval/enum", choices(&APPROVALS)),
        ("/properties/locks/enum", choices(&LOCKS)),
        ("/properties/apply/properties/when/enum", choices(&WHENS)),
        ("/properties/apply/properties/merge/enum", choices(&MERGES)),
        ("/properties/apply/properties/requires/items/enum", choices(&REQUIREMENTS)),
    ] {
        assert_eq!(schema.pointer(pointer), Some(&serde_json::json!(expected)), "{pointer}");
    }
}

#[test]
fn the_schema_takes_what_the_parser_takes() {
    let schema = jsonschema::validator_for(&schema()).expect("a valid schema");
    let value = |text: &str| serde_saphyr::from_str::<serde_json::Value>(text).expect("YAML");
    for text in [EXAMPLE, "{}", "approvers: [lin]", "require_approval: false"] {
        assert!(schema.is_valid(&value(text)) && parse(text).is_ok(), "{text}");
    }
    for text in [
        "gaet: never",
        "gate: alway",
        "parallelism: 0",
        "roots: {match: {a: {locks: plan}}}",
        "gate: never\nrequire_approval: true",
        "version: 1.10",
    ] {
        assert!(!schema.is_valid(&value(text)) && parse(text).is_err(), "{text}");
    }
}

#[test]
fn each_key_of_a_wrong_type_is_said_and_nothing_else_is_lost() {
    let keys = [
        "roots",
        "waves",
        "confirm_destructive",
        "approval",
        "approvers",
        "apply",
        "locks",
        "parallelism",
        "prune",
        "tool",
        "version",
        "gate",
        "require_approval",
        "workspaces",
        "var_files",
        "backend_config",
    ];
    // None of these fits any key.
    for wrong in ["2024-13-45T99", "-7.5", "{zzz: 1}", "[[a]]"] {
        for key in keys {
            let text = format!("{key}: {wrong}\n");
            assert!(parse(&text).is_err(), "{text}");
        }
        // All at once: each is said once, in the order of the file.
        let all: String =
            keys.iter().filter(|key| **key != "require_approval").map(|key| format!("{key}: {wrong}\n")).collect();
        let found = parse(&all).expect_err("all are wrong");
        let lines: Vec<usize> = found.iter().map(|problem| problem.line).collect();
        let mut sorted = lines.clone();
        sorted.sort_unstable();
        assert!(lines == sorted && lines.len() >= keys.len() - 1, "{wrong}: {found:#?}");
    }
}

#[test]
fn odd_forms_of_yaml_are_read_or_said() {
    for text in [
        "\u{feff}gate: never\n",
        "gate: never\r\n",
        "# words\n---\ngate: never\n",
        "top: &x never\ngate: *x\n",
        "\tgate: never\n",
        "gate: never\n---\ngate: always\n",
        "gate: !!str never\n",
        "<<: {gate: never}\n",
        "gate: \"never\n",
        "gate\n",
        "? [a]\n: b\n",
        "gate: \0never\n",
    ] {
        match parse(text) {
            Ok(config) => assert_eq!(config.top.gate, Some(GatePolicy::Never), "{text:?} is read as it says"),
            Err(problems) => {
                assert!(
                    problems.iter().all(|problem| problem.what.ends_with('.') && problem.what.len() < 400),
                    "{problems:?}"
                );
            }
        }
    }
    for (text, read) in [("\u{feff}gate: never\n", true), ("gate: never\r\n", true), ("\tgate: never\n", false)] {
        assert_eq!(parse(text).is_ok(), read, "{text:?}");
    }
}
