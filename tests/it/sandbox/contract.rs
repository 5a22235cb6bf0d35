//! GitHub's own API description as a judge of bodies. Never skips: a call that it does not know is an error.

use std::sync::OnceLock;

use jsonschema::{Draft, Registry, Validator};
use serde_json::{Value, json};

const HOME: &str = "https://gh/openapi";

struct Contract {
    doc: Value,
    registry: Registry<'static>,
}

fn contract() -> &'static Contract {
    static LOADED: OnceLock<Contract> = OnceLock::new();
    LOADED.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/github/openapi.json");
        let mut doc: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        allow_null(&mut doc);
        let registry = Registry::new().draft(Draft::Draft202012).add(HOME, doc.clone()).unwrap().prepare().unwrap();
        Contract { doc, registry }
    })
}

/// OpenAPI 3.0's `nullable` in JSON Schema's words.
fn allow_null(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.remove("nullable") == Some(Value::Bool(true)) {
                if let Some(kind) = map.get("type").cloned() {
                    map.insert("type".into(), json!([kind, "null"]));
                    if let Some(Value::Array(words)) = map.get_mut("enum") {
                        words.push(Value::Null);
                    }
                } else {
                    let inner = Value::Object(std::mem::take(map));
                    map.insert("anyOf".into(), json!([inner, {"type": "null"}]));
                }
            }
            map.iter_mut().filter(|(key, _)| *key != "example" && *key != "examples").for_each(|(_, v)| allow_null(v));
        }
        Value::Array(list) => list.iter_mut().for_each(allow_null),
        _ => {}
    }
}

fn escaped(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1").replace('{', "%7B").replace('}', "%7D")
}

fn validator(pointer: &str) -> Validator {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_registry(&contract().registry)
        .offline()
        .build(&json!({"$ref": format!("{HOME}#{pointer}")}))
        .unwrap()
}

fn judge(pointer: &str, what: &str, body: &Value) {
    let found: Vec<String> =
        validator(pointer).iter_errors(body).map(|error| format!("{}: {error:.300}", error.instance_path())).collect();
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

fn fits(template: &str, path: &str) -> bool {
    let (mut wants, mut parts) = (template.split('/').peekable(), path.split('/').peekable());
    loop {
        match (wants.next(), parts.next()) {
            (None, None) => return true,
            (Some(want), Some(part)) if want.starts_with('{') => {
                assert!(!part.is_empty(), "an empty part in {path}");
                // A path or ref at the end may span slashes.
                if wants.peek().is_none() && ["{path}", "{ref}", "{basehead}", "{branch}"].contains(&want) {
                    return true;
                }
            }
            (Some(want), Some(part)) if want == part => {}
            _ => return false,
        }
    }
}

/// Checks an answer against the description.
pub fn response(method: &str, path: &str, status: u16, body: &Value) {
    let paths = contract().doc["paths"].as_object().unwrap();
    let path = path.split('?').next().unwrap();
    let mut fitting: Vec<&String> = paths.keys().filter(|template| fits(template, path)).collect();
    fitting.sort_by_key(|template| (std::cmp::Reverse(template.matches('/').count()), template.matches('{').count()));
    let template = fitting.first().unwrap_or_else(|| panic!("{method} {path} is not described"));
    let method = method.to_lowercase();
    let described = &paths[*template][&method]["responses"][status.to_string()];
    assert!(!described.is_null(), "{method} {path}: {status} is not described; body {body}");
    let place = described["$ref"].as_str().map_or_else(
        || format!("/paths/{}/{method}/responses/{status}", escaped(template)),
        |reference| reference.trim_start_matches('#').to_owned(),
    );
    let inside = if described["$ref"].is_string() { contract().doc.pointer(&place).unwrap() } else { described };
    if inside["content"].is_null() {
        assert!(body.is_null(), "{method} {path}: {status} has no body, but got {body}");
        return;
    }
    judge(&format!("{place}/content/application~1json/schema"), &format!("{method} {path} {status}"), body);
}

/// Checks a webhook's body against the description.
pub fn webhook(event: &str, action: Option<&str>, body: &Value) {
    let name = action.map_or_else(|| event.to_owned(), |action| format!("{event}-{action}")).replace('_', "-");
    assert!(!contract().doc["x-webhooks"][&name].is_null(), "{name} is not described");
    judge(&format!("/x-webhooks/{name}/post/requestBody/content/application~1json/schema"), &name, body);
}
