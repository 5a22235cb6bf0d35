//! GitHub's own description of its API as a judge of the bodies that we send.

use std::sync::LazyLock;

use jsonschema::{Draft, Registry};
use serde_json::{Value, json};

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let mut value = serde_json::from_str(include_str!("../../../fixtures/github/openapi.json")).expect("it is JSON");
    say_nullable_as_json_schema_does(&mut value);
    value
});

static REGISTRY: LazyLock<Registry<'static>> = LazyLock::new(|| {
    let registry = Registry::new().draft(Draft::Draft202012);
    let registry = registry.add("https://gh/openapi", &*DESCRIPTION).expect("a valid address");
    registry.prepare().expect("all references resolve")
});

/// Panics unless GitHub takes this body for `METHOD /path`.
pub fn check(what: &str, body: &Value) {
    let (method, target) = what.split_once(' ').expect("METHOD /path");
    let path = target.split('?').next().unwrap_or(target);
    let template = template(path).unwrap_or_else(|| panic!("{path} is not in GitHub's description"));
    let pointer = template.replace('/', "~1").replace('{', "%7B").replace('}', "%7D");
    let method = method.to_lowercase();
    let place = format!("#/paths/{pointer}/{method}/requestBody/content/application~1json/schema");
    let schema = json!({ "$ref": format!("https://gh/openapi{place}") });
    let options = jsonschema::options().with_draft(Draft::Draft202012).with_registry(&REGISTRY).offline();
    let validator = options.build(&schema).unwrap_or_else(|error| panic!("{what}: {error}"));
    let faults: Vec<String> = validator.iter_errors(body).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{what} {body}: {faults:?}");
}

fn template(path: &str) -> Option<&'static str> {
    let fits = |template: &str| {
        let (ours, theirs) = (path.split('/'), template.split('/'));
        ours.clone().count() == theirs.clone().count() && ours.zip(theirs).all(|(a, b)| a == b || b.starts_with('{'))
    };
    let paths = DESCRIPTION["paths"].as_object()?;
    // The one with the fewest holes: `comments/{id}` before `{number}/comments`.
    paths
        .keys()
        .map(String::as_str)
        .filter(|template| fits(template))
        .min_by_key(|template| template.matches('{').count())
}

/// OpenAPI 3.0 says `nullable`, JSON Schema lists `null` among the types.
fn say_nullable_as_json_schema_does(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.remove("nullable") == Some(Value::Bool(true)) {
                if let Some(kind) = map.get("type").cloned() {
                    map.insert("type".to_owned(), json!([kind, "null"]));
                    if let Some(Value::Array(words)) = map.get_mut("enum") {
                        words.push(Value::Null);
                    }
                } else {
                    let inner = Value::Object(std::mem::take(map));
                    map.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
                }
            }
            let parts = map.iter_mut().filter(|(key, _)| *key != "example" && *key != "examples");
            parts.for_each(|(_, part)| say_nullable_as_json_schema_does(part));
        }
        Value::Array(list) => list.iter_mut().for_each(say_nullable_as_json_schema_does),
        _ => {}
    }
}

#[test]
fn the_judge_is_no_rubber_stamp() {
    let run = json!({"name": "tidegate/plan", "head_sha": "aa", "status": "queued"});
    check("POST /repos/o/r/check-runs", &run);
    let refused = |body: Value| std::panic::catch_unwind(move || check("POST /repos/o/r/check-runs", &body)).is_err();
    assert!(refused(json!({"name": "tidegate/plan"})));
    assert!(refused(json!({"name": "tidegate/plan", "head_sha": "aa", "status": "waiting"})));
}
