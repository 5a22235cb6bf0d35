//! Plans as the tools write them, and what people may see of them.

use serde_json::json;

use super::*;
use crate::domain::plan::AttributeChange;

fn plan(changes: &Value) -> Plan {
    let json = json!({ "format_version": "1.2", "terraform_version": "1.11.4", "resource_changes": changes });
    parse(json.to_string().as_bytes()).expect("a plan")
}

fn resource(address: &str, actions: &Value) -> Value {
    json!({ "address": address, "type": "t", "change": { "actions": actions, "before": {}, "after": {} } })
}

fn update(change: Value) -> Vec<(String, Shown, Shown)> {
    let mut change = change;
    change["actions"] = json!(["update"]);
    let mut plan = plan(&json!([{ "address": "a.b", "type": "a", "change": change }]));
    let found = plan.changes.remove(0).attributes;
    found.into_iter().map(|AttributeChange { path, before, after }| (path, before, after)).collect()
}

fn value(text: &str) -> Shown {
    Shown::Value(text.to_owned())
}

#[test]
fn changes_come_in_the_order_in_which_people_read_them() {
    let mut moved = resource("m.moved", &json!(["no-op"]));
    moved["previous_address"] = json!("m.old");
    let mut imported = resource("m.imported", &json!(["no-op"]));
    imported["change"]["importing"] = json!({ "id": "i" });
    let mut deposed = resource("z.cbd", &json!(["delete"]));
    deposed["deposed"] = json!("b6929b28");
    let plan = plan(&json!([
        resource("a.read", &json!(["read"])),
        resource("a.forget", &json!(["forget"])),
        resource("a.new", &json!(["create"])),
        resource("b.up", &json!(["update"])),
        resource("a.up", &json!(["update"])),
        resource("a.fc", &json!(["forget", "create"])),
        resource("a.cd", &json!(["create", "delete"])),
        resource("a.dc", &json!(["delete", "create"])),
        resource("z.del", &json!(["delete"])),
        resource("a.same", &json!(["no-op"])),
        deposed,
        moved,
        imported,
    ]));
    let order: Vec<(&str, Action)> = plan.changes.iter().map(|c| (c.address.as_str(), c.action)).collect();
    assert_eq!(
        order,
        [
            ("z.cbd", Action::Delete),
            ("z.del", Action::Delete),
            ("a.cd", Action::CreateThenDelete),
            ("a.dc", Action::DeleteThenCreate),
            ("a.fc", Action::ForgetThenCreate),
            ("a.up", Action::Update),
            ("b.up", Action::Update),
            ("a.new", Action::Create),
            ("a.forget", Action::Forget),
            ("m.imported", Action::Nothing),
            ("m.moved", Action::Nothing),
            ("a.read", Action::Read),
        ]
    );
    assert_eq!(plan.changes[0].deposed.as_deref(), Some("b6929b28"));
    assert!(plan.changes[9].importing);
}

#[test]
fn attributes_that_differ_are_named_by_path() {
    let found = update(json!({
        "before": { "same": 1, "size": 1, "tags": { "Name": "a", "odd key": "x" }, "gone": true,
                    "rules": [{ "port": 80 }, { "port": 81 }], "zones": ["a", "b"], "null": null },
        "after": { "same": 1, "size": 2, "tags": { "Name": "b", "odd key": "y" }, "gone": null,
                   "rules": [{ "port": 80 }, { "port": 82 }], "zones": ["a"], "null": null },
        "after_unknown": { "id": true, "tags": {} }
    }));
    let expected = [
        ("size", value("1"), value("2")),
        ("tags.Name", value("\"a\""), value("\"b\"")),
        ("tags[\"odd key\"]", value("\"x\""), value("\"y\"")),
        ("gone", value("true"), Shown::Absent),
        ("rules[1].port", value("81"), value("82")),
        ("zones", value("[\"a\",\"b\"]"), value("[\"a\"]")),
        ("id", Shown::Absent, Shown::Unknown),
    ];
    assert_eq!(found, expected.map(|(path, before, after)| (path.to_owned(), before, after)));
}

#[test]
fn no_secret_enters_whether_marked_or_only_equal() {
    let found = update(json!({
        "before": { "pw": "S3CRET-old", "output": "S3CRET-old", "url": "db://u:S3CRET-old@h", "x": { "k": [1] } },
        "after": { "pw": "S3CRET-new", "output": "free", "url": "db://u:S3CRET-new@h",
                   "made": { "pw": "S3CRET-in", "n": 1 }, "x": { "k": [2] } },
        "after_unknown": { "made": { "arn": true } },
        "before_sensitive": { "pw": true },
        "after_sensitive": { "pw": true, "made": { "pw": true }, "x": { "k": true } }
    }));
    let expected = [
        ("pw", Shown::Sensitive, Shown::Sensitive),
        ("output", Shown::Sensitive, value("\"free\"")),
        ("url", value("\"db://u:(sensitive)@h\""), value("\"db://u:(sensitive)@h\"")),
        ("x.k", Shown::Sensitive, Shown::Sensitive),
        ("made", Shown::Absent, value("{\"pw\":(sensitive),\"n\":1,\"arn\":(known after apply)}")),
    ];
    assert_eq!(found, expected.map(|(path, before, after)| (path.to_owned(), before, after)));
}

#[test]
fn a_long_value_is_cut_on_a_character() {
    let found = update(json!({ "before": { "x": "short" }, "after": { "x": "ä".repeat(80_000) } }));
    let Shown::Value(text) = &found[0].2 else { panic!("{found:?}") };
    assert_eq!(text.chars().count(), 400);
    assert!(text.ends_with("… (80002 characters)"), "{text}");
}

#[test]
fn replacements_say_what_forces_them() {
    let mut replaced = resource("a.b", &json!(["delete", "create"]));
    replaced["action_reason"] = json!("replace_because_cannot_update");
    replaced["change"]["replace_paths"] = json!([["engine_version"], ["disk", 0, "size"]]);
    let plan = plan(&json!([replaced]));
    assert_eq!(plan.changes[0].replaced_by, ["engine_version", "disk[0].size"]);
    assert_eq!(plan.changes[0].reason.as_deref(), Some("replace_because_cannot_update"));
}

#[test]
fn outputs_and_drift_are_read() {
    let json = json!({
        "format_version": "1.2",
        "output_changes": {
            "b": { "actions": ["update"], "before": 1, "after": null, "after_unknown": true },
            "a": { "actions": ["create"], "before": null, "after": "S3CRET", "after_unknown": false,
                   "before_sensitive": true, "after_sensitive": true },
            "c": { "actions": ["no-op"], "before": 1, "after": 1 },
            "d": { "actions": ["delete"], "before": [1], "after": null, "after_unknown": false }
        },
        "resource_drift": [
            { "address": "z.z", "change": { "actions": ["update"] } },
            { "address": "a.a", "change": { "actions": ["delete"] } },
            { "address": "m.m", "change": { "actions": ["no-op"] } }
        ]
    });
    let plan = parse(json.to_string().as_bytes()).expect("a plan");
    let outputs: Vec<_> = plan.outputs.iter().map(|o| (o.name.as_str(), &o.before, &o.after, o.unknown)).collect();
    assert_eq!(
        outputs,
        [
            ("a", &Shown::Absent, &Shown::Sensitive, false),
            ("b", &value("1"), &Shown::Unknown, true),
            ("d", &value("[1]"), &Shown::Absent, false),
        ]
    );
    assert_eq!(plan.drift, ["a.a", "z.z"]);
    assert!(plan.changes_something());
}

#[test]
fn what_is_no_whole_plan_is_refused() {
    assert!(matches!(parse(b"nope"), Err(PlanError::Malformed(_))));
    assert!(matches!(parse(b"{}"), Err(PlanError::Malformed(_))));
    assert_eq!(parse(br#"{"format_version":"1.2","errored":true}"#), Err(PlanError::Errored));
    let odd = json!({ "format_version": "1.2", "resource_changes": [resource("a.b", &json!(["explode"]))] });
    let error = parse(odd.to_string().as_bytes()).expect_err("an unknown verb");
    assert_eq!(error.to_string(), "this is no plan: `a.b` has actions that are not known: [\"explode\"]");
}

/// Written by the tool itself, with a secret that was changed and stands in places without a mark.
#[test]
fn a_plan_of_terraform_is_read_whole_and_without_its_secrets() {
    let plan = parse(include_bytes!("../../../../fixtures/plans/terraform-1.11.4.json")).expect("a plan");
    let lines: Vec<String> = plan.changes.iter().map(|c| format!("{} {}", c.action.word(), c.address)).collect();
    assert_eq!(
        lines,
        [
            "delete terraform_data.old[1]",
            "replace terraform_data.replaced",
            "update terraform_data.copy",
            "update terraform_data.many[\"</details>\"]",
            "update terraform_data.many[\"@octocat #12\"]",
            "update terraform_data.many[\"a\\\"b\"]",
            "update terraform_data.secret",
            "move terraform_data.to",
        ]
    );
    assert_eq!(plan.changes[1].replaced_by, ["triggers_replace"]);
    let secret: Vec<String> =
        plan.changes[6].attributes.iter().map(|a| format!("{} {:?} {:?}", a.path, a.before, a.after)).collect();
    assert_eq!(
        secret,
        [
            "input.list Value(\"[\\\"plain\\\",(sensitive)]\") Value(\"[\\\"plain\\\",(sensitive)]\")",
            "input.pw Sensitive Sensitive",
            "output Value(\"{\\\"list\\\":[\\\"plain\\\",(sensitive)],\\\"pw\\\":(sensitive)}\") Unknown",
        ]
    );
    let outputs: Vec<&str> = plan.outputs.iter().map(|output| output.name.as_str()).collect();
    assert_eq!(outputs, ["id", "pw", "size"]);
    let stored = serde_json::to_string(&plan).expect("JSON");
    assert!(!stored.contains("S3CRET"), "{stored}");
}

#[test]
fn addresses_show_no_secret_that_is_known() {
    let mut known = crate::domain::secret::Secrets::default();
    known.add("secret-key-1");
    let change = serde_json::json!({ "actions": ["create"], "before": null, "after": { "input": "x-secret-key-1" } });
    let json = serde_json::json!({
        "format_version": "1.2",
        "resource_changes": [{
            "address": "a.b[\"secret-key-1\"]", "previous_address": "a.c[\"secret-key-1\"]", "change": change,
        }],
        "resource_drift": [{ "address": "a.d[\"secret-key-1\"]", "change": { "actions": ["update"] } }],
    });
    let plan = parse_knowing(json.to_string().as_bytes(), &known).expect("a plan");
    assert!(!format!("{plan:?}").contains("secret-key-1"), "{plan:?}");
    assert_eq!(plan.changes[0].address, "a.b[\"(sensitive)\"]");
    let clear = parse(json.to_string().as_bytes()).expect("a plan");
    assert_eq!(clear.changes[0].address, "a.b[\"secret-key-1\"]");
}

#[test]
fn who_depends_on_what_dies_is_read_from_the_state_before() {
    let json = serde_json::json!({
        "format_version": "1.2",
        "resource_changes": [
            { "address": "module.m[\"k\"].a.gone[0]", "type": "a", "change": { "actions": ["delete"] } },
            { "address": "a.replaced", "type": "a", "change": { "actions": ["delete", "create"] } },
            { "address": "a.old", "type": "a", "deposed": "00000001", "change": { "actions": ["delete"] } },
        ],
        "prior_state": { "values": { "root_module": {
            "resources": [
                { "address": "a.user[\"x\"]", "mode": "managed", "depends_on": ["module.m.a.gone", "a.replaced", "a.old"] },
                { "address": "data.a.reader", "mode": "data", "depends_on": ["module.m.a.gone"] },
            ],
            "child_modules": [{ "resources": [
                { "address": "module.m[\"k\"].a.gone[0]", "mode": "managed", "depends_on": ["module.m.a.gone"] },
                { "address": "module.m[\"k\"].a.user", "mode": "managed", "depends_on": ["module.m.a.gone"] },
            ] }],
        } } },
    });
    let plan = parse(json.to_string().as_bytes()).expect("a plan");
    let users = ["a.user".to_owned(), "module.m.a.user".to_owned()];
    assert_eq!(plan.dependents, [("module.m.a.gone".to_owned(), users.into())].into());
}
