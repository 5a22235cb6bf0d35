//! What moves a digest and what does not.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn plan() -> Value {
    json!({
        "format_version": "1.2",
        "terraform_version": "1.11.4",
        "timestamp": "2026-11-30T12:00:00Z",
        "variables": { "size": { "value": 3 }, "pw": { "value": "hunter2" } },
        "prior_state": { "values": {} },
        "planned_values": {},
        "relevant_attributes": [ { "resource": "a.b" } ],
        "resource_drift": [ { "address": "a.c", "change": { "actions": ["update"] } } ],
        "resource_changes": [
            { "address": "a.b", "provider_name": "p", "deposed": null, "change": {
                "actions": ["update"], "before": { "x": 1, "y": "z" }, "after": { "x": 2, "y": "z" },
                "after_unknown": { "id": true }, "before_sensitive": false, "after_sensitive": { "y": true }
            } },
            { "address": "a.d", "provider_name": "p", "change": {
                "actions": ["delete", "create"], "before": {}, "after": {}, "replace_paths": [["x"]]
            } },
            { "address": "a.e", "provider_name": "p", "change": { "actions": ["no-op"], "before": {}, "after": {} } }
        ],
        "output_changes": { "o": { "actions": ["create"], "before": null, "after": 1.5, "after_unknown": false } },
        "configuration": { "root_module": {} }
    })
}

fn bound_digest(json: &str, root: &RootKey, tool: &Tool, source: &str, args: &[&str], key: &[u8]) -> String {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let bound = Bound { root, tool, source, args: &args };
    of_plan(json.as_bytes(), &bound, key).expect("a digest").as_str().to_owned()
}

fn terraform(version: &str) -> Tool {
    Tool { kind: ToolKind::Terraform, version: version.to_owned() }
}

fn of(plan: &Value) -> String {
    bound_digest(&plan.to_string(), &RootKey::new("app"), &terraform("1.11.4"), "src", &[], b"key")
}

fn with(pointer: &str, value: Value) -> Value {
    let mut plan = plan();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    plan.pointer_mut(parent).unwrap()[field] = value;
    plan
}

#[test]
fn every_field_that_decides_the_apply_moves_it() {
    let change = "/resource_changes/0/change";
    let moved = [
        with("/terraform_version", json!("1.11.5")),
        with("/complete", json!(false)),
        with("/variables/size", json!({ "value": 4 })),
        with("/variables/pw", json!({ "value": "hunter3" })),
        with("/variables/new", json!({ "value": null })),
        with("/resource_changes/0/address", json!("a.bb")),
        with("/resource_changes/0/deposed", json!("b6929b28")),
        with("/resource_changes/0/previous_address", json!("a.old")),
        with("/resource_changes/0/provider_name", json!("q")),
        with(&format!("{change}/actions"), json!(["create"])),
        with(&format!("{change}/before"), json!({ "x": 0, "y": "z" })),
        with(&format!("{change}/after"), json!({ "x": "2", "y": "z" })),
        with(&format!("{change}/after_unknown"), json!({ "id": true, "arn": true })),
        with(&format!("{change}/importing"), json!({ "id": "i" })),
        with("/resource_changes/1/change/replace_paths", json!([["y"]])),
        with("/resource_changes/1/change/actions", json!(["create", "delete"])),
        with("/resource_changes/2/previous_address", json!("a.moved")),
        with("/output_changes/o/after", json!(1.25)),
        with("/output_changes/o/after_unknown", json!(true)),
        with("/output_changes/p", json!({ "actions": ["delete"] })),
        with("/action_invocations", json!([{ "address": "action.x.y" }])),
    ];
    let all: std::collections::BTreeSet<String> = moved.iter().map(of).chain([of(&plan())]).collect();
    assert_eq!(all.len(), moved.len() + 1, "each change has a digest of its own");
}

#[test]
fn what_says_nothing_about_the_apply_does_not_move_it() {
    let mut reordered = plan();
    reordered["resource_changes"].as_array_mut().unwrap().reverse();
    let mut keys = plan();
    let entries: Vec<_> = keys.as_object().unwrap().clone().into_iter().rev().collect();
    keys = Value::Object(entries.into_iter().collect());
    for same in [
        reordered,
        keys,
        with("/timestamp", json!("2027-01-01T00:00:00Z")),
        with("/prior_state", json!({ "values": { "outputs": {} } })),
        with("/planned_values", json!({ "x": 1 })),
        with("/configuration", json!(null)),
        with("/relevant_attributes", json!([])),
        with("/checks", json!([{ "status": "pass" }])),
        with("/resource_drift", json!([])),
        with("/applyable", json!(true)),
        with("/resource_changes/0/action_reason", json!("replace_by_request")),
        with("/resource_changes/0/change/after_sensitive", json!(true)),
        with("/resource_changes/2/change/after", json!({ "n": 1 })),
        with("/output_changes/q", json!({ "actions": ["no-op"], "after": 1 })),
    ] {
        assert_eq!(of(&same), of(&plan()), "{same}");
    }
}

#[test]
fn all_that_is_bound_moves_it() {
    let json = plan().to_string();
    let (app, tool) = (RootKey::new("app"), terraform("1.11.4"));
    let tofu = Tool { kind: ToolKind::Tofu, version: "1.11.4".to_owned() };
    let all = [
        bound_digest(&json, &app, &tool, "src", &[], b"key"),
        bound_digest(&json, &RootKey::new("db"), &tool, "src", &[], b"key"),
        bound_digest(&json, &RootKey::in_workspace("app", "blue"), &tool, "src", &[], b"key"),
        bound_digest(&json, &app, &tofu, "src", &[], b"key"),
        bound_digest(&json, &app, &terraform("1.11.5"), "src", &[], b"key"),
        bound_digest(&json, &app, &tool, "src2", &[], b"key"),
        bound_digest(&json, &app, &tool, "src", &["-destroy"], b"key"),
        bound_digest(&json, &app, &tool, "src", &["a", "b"], b"key"),
        bound_digest(&json, &app, &tool, "src", &["ab"], b"key"),
        bound_digest(&json, &app, &tool, "src", &[], b"other"),
    ];
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    let without_drift = with("/resource_drift", json!([])).to_string();
    let refresh = |json: &str| bound_digest(json, &app, &tool, "src", &["-refresh-only"], b"key");
    assert_ne!(refresh(&json), refresh(&without_drift));
}

#[test]
fn numbers_that_a_float_cannot_tell_apart_differ() {
    let text = |number: &str| plan().to_string().replace("1.5", number);
    let digest = |json: &str| bound_digest(json, &RootKey::new("a"), &terraform("1"), "", &[], b"key");
    assert_ne!(digest(&text("100000000000000000000000001")), digest(&text("100000000000000000000000002")));
    assert_ne!(digest(&text("0.1")), digest(&text("0.10000000000000000001")));
}

#[test]
fn what_is_no_whole_plan_has_no_digest() {
    let (root, tool) = (RootKey::new("a"), terraform("1"));
    let bound = Bound { root: &root, tool: &tool, source: "", args: &[] };
    assert!(matches!(of_plan(b"{", &bound, b"k"), Err(PlanError::Malformed(_))));
    assert!(matches!(of_plan(b"{}", &bound, b"k"), Err(PlanError::Malformed(_))));
    let errored = with("/errored", json!(true)).to_string();
    assert_eq!(of_plan(errored.as_bytes(), &bound, b"k"), Err(PlanError::Errored));
}

#[test]
fn two_plans_of_the_same_thing_have_one_digest() {
    let first = include_str!("../../../fixtures/plans/terraform-1.11.4.json");
    let second = include_str!("../../../fixtures/plans/terraform-1.11.4-again.json");
    let digest = |json: &str| bound_digest(json, &RootKey::new("a"), &terraform("1.11.4"), "src", &[], b"key");
    assert_ne!(first, second);
    assert_eq!(digest(first), digest(second));
    assert_ne!(digest(first), digest(&second.replace("S3CRET-two", "S3CRET-too")));
}

proptest! {
    #[test]
    fn a_set_digest_knows_its_pairs_and_not_their_order(
        mut pairs in proptest::collection::btree_map("[a-z/]{1,6}", "[0-9a-f]{64}", 1..8)
            .prop_map(|map| map.into_iter().map(|(root, hex)| (RootKey::new(root), Digest::from_hex(&hex))).collect::<Vec<_>>()),
    ) {
        let digest = of_set(&pairs);
        pairs.reverse();
        prop_assert_eq!(of_set(&pairs), digest.clone());
        let removed = pairs.pop().expect("at least one");
        prop_assert_ne!(of_set(&pairs), digest.clone());
        pairs.push((removed.0, Digest::from_hex("00")));
        prop_assert_ne!(of_set(&pairs), digest);
    }

    #[test]
    fn any_other_value_moves_it(before in "\\PC{0,12}", after in "\\PC{0,12}") {
        let of_after = |text: &str| of(&with("/resource_changes/0/change/after", json!({ "x": text })));
        prop_assert_eq!(of_after(&before) == of_after(&after), before == after);
    }
}
