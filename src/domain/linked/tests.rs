//! Expressions of planned outputs, and references replaced with every other byte kept.

use super::*;

fn names() -> BTreeSet<&'static str> {
    BTreeSet::from(["net", "db"])
}

fn native_of(text: &str) -> Option<String> {
    native::rewrite(text, &names()).expect("it parses")
}

const REF: &str = "data.terraform_remote_state.net";

/// Each `@` is a reference that is replaced; `¤` is one that stays.
const NATIVE: &[&str] = &[
    "x = @.outputs.id\n",
    "x = @.outputs[\"id\"]\n",
    "x = @[\"outputs\"].id\n",
    "x = \"a-${@.outputs.id}-b\"\n",
    "x = \"${ @.outputs.id }\" # data.terraform_remote_state.net.outputs\n",
    "x = \"$${¤.outputs.id}\"\n",
    "x = <<EOT\nid ${@.outputs.id}\n  %{ if @.outputs.on ~}\nyes $${¤}\n%{ endif }\nEOT\n",
    "x = <<-EOT\n    id ${@.outputs.id}\n    \"quoted\"\n    EOT\n",
    "x = \"%{ for v in @.outputs.list }${v}%{ endfor }\"\n",
    "x = <<EOT\n%{ for k, v in @.outputs.map ~}\n${k}=${v} ${@.outputs.id}\n%{ endfor ~}\nEOT\n",
    "x = [for v in @.outputs.list : upper(v) if v != @.outputs.id]\n",
    "x = { for k, v in @.outputs.map : k => \"${v}${@.outputs.id}\" }\n",
    "x = @.outputs.list[*].id\n",
    "x = keys(@.outputs)\n",
    "x = try(@.outputs.nope, null)\n",
    "x = @\n",
    "x = (@).outputs\n",
    "x = @.outputs.map[@.outputs.id]\n",
    "x = @.outputs.a && (\n  !@.outputs.b || // why\n  @.outputs.c > -1\n)\n",
    "x = @.outputs.on ? @.outputs.a : \"${\"${@.outputs.b}\"}\"\n",
    "x = ¤.config.path\n",
    "x = ¤.backend\n",
    "x = data.terraform_remote_state.other.outputs.id\n",
    "x = data.terraform_remote_state.network.outputs.id\n",
    "x = module.data.terraform_remote_state.net\n",
    "resource \"a\" \"b\" {\n  depends_on = [¤, a.c]\n  x = @.outputs.id\n  nested {\n    depends_on = [@.outputs.id]\n  }\n}\n",
    "resource \"a\" \"b\" {\r\n  x = @.outputs.id\r\n  é = \"\\u00e9 ${@.outputs.id}\" # ü\r\n}\r\n",
    "\u{feff}x = @.outputs.id\n",
    "provider \"p\" {\n  x = @.outputs.id\n}\noutput \"o\" { value = @.outputs }\nmodule \"m\" {\n  source = \"./m\"\n  x = provider::a::b(@.outputs.id)\n}\n",
    "check \"c\" {\n  assert {\n    condition = @.outputs.id != \"\"\n    error_message = \"bad ${@.outputs.id}\"\n  }\n}\n",
    "x = { (@.outputs.id) = 1, \"k-${@.outputs.id}\" = 2, data = 3 }\n",
];

#[test]
fn only_references_change_in_native_files() {
    for case in NATIVE {
        let text = case.replace(['@', '¤'], REF);
        let wanted = case.replace('@', "local.tidegate_linked_net").replace('¤', REF);
        assert_eq!(native_of(&text).unwrap_or_else(|| text.clone()), wanted, "{case}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    #[test]
    fn only_references_change_whatever_stands_around_them(
        at in proptest::collection::vec((0..NATIVE.len(), 0..AROUND.len(), proptest::bool::ANY), 0..12),
    ) {
        let mut case = String::new();
        for (case_at, around, crlf) in at {
            let inner = NATIVE[case_at].trim_start_matches('\u{feff}');
            // What `depends_on` means rests on its place, so a case that is a block stays one.
            let inner = if inner.starts_with("x = ") { format!("b \"c\" {{\n{inner}}}\n") } else { inner.to_owned() };
            let crlf = crlf && !inner.contains("<<");
            let inner = if crlf { inner.replace("\r\n", "\n").replace('\n', "\r\n") } else { inner };
            case += AROUND[around];
            case += &inner;
        }
        let text = case.replace(['@', '¤'], REF);
        let wanted = case.replace('@', "local.tidegate_linked_net").replace('¤', REF);
        proptest::prop_assert_eq!(native_of(&text).unwrap_or_else(|| text.clone()), wanted);
    }
}

/// What stands between blocks and is nobody's business.
const AROUND: &[&str] = &[
    "",
    "\n\n\t# data.terraform_remote_state.net.outputs.id\n",
    "/* ¤.outputs\n   ¤ */\n",
    "// é 漢 😀 ${¤}\n",
    "d {\n  a = <<-E\n    %{ if true }¤%{ endif }\n    E\n}\n",
    "e { f = \"¤\" }\n",
];

#[test]
fn what_cannot_be_read_is_an_error_only_when_it_matters() {
    assert_eq!(native::rewrite("x = { a = 1, a = 2 }\n", &names()), Ok(None));
    let why = native::rewrite("x = data.terraform_remote_state.net.outputs.id\ny = {\n", &names());
    assert!(why.is_err_and(|why| why.starts_with("line ")));
}

#[test]
fn only_templates_change_in_json_files() {
    let text = "{ \"a\":  \"${data.terraform_remote_state.net.outputs.id}\",\n  \"depends_on\": [\"data.terraform_remote_state.net\"],\t\"b\": \"$${data.terraform_remote_state.net}\", \"c\\u0041\": \"x\\n${lookup(data.terraform_remote_state.net.outputs, \\\"k\\\")}%{ for v in data.terraform_remote_state.db.outputs.l }${v}%{ endfor }\", \"n\": 1.0e5 }";
    let new = json::rewrite(text, &names()).expect("it parses").expect("changed");
    let wanted = "{ \"a\":  \"${local.tidegate_linked_net.outputs.id}\",\n  \"depends_on\": [\"data.terraform_remote_state.net\"],\t\"b\": \"$${data.terraform_remote_state.net}\", \"c\\u0041\": \"x\\n${lookup(local.tidegate_linked_net.outputs, \\\"k\\\")}%{ for v in local.tidegate_linked_db.outputs.l }${v}%{ endfor }\", \"n\": 1.0e5 }";
    assert_eq!(new, wanted);
    assert_eq!(json::rewrite("{\"a\": \"plain \\\" ${b}\"}", &names()), Ok(None));
    assert!(json::rewrite("{\"a\": \"open", &names()).is_err());
}

#[test]
fn texts_are_no_templates() {
    for (text, wanted) in [
        ("plain", "\"plain\""),
        ("a\"b\\c\n\r\t", "\"a\\\"b\\\\c\\n\\r\\t\""),
        ("${x} %{if} $${y} $ % {", "\"\\u0024{x} \\u0025{if} $\\u0024{y} $ % {\""),
        ("\u{8}\u{c}\u{7f}é😀", "\"\\u0008\\u000c\\u007fé😀\""),
        ("", "\"\""),
    ] {
        assert_eq!(literal::quoted(text), wanted, "{text:?}");
    }
}

fn rendered(value: &str, unknown: &str, kind: &str) -> String {
    let json = |text: &str| Json::parse(text.as_bytes()).expect("JSON");
    literal::expression(&json(value), Some(&json(unknown)), Some(&json(kind)))
}

#[test]
fn values_keep_types_and_unknown_parts() {
    let unknown = "jsondecode(timestamp())";
    for (value, later, kind, wanted) in [
        ("\"a\"", "false", "\"string\"", "\"a\"".to_owned()),
        ("null", "true", "\"string\"", format!("tostring({unknown})")),
        ("null", "true", "\"dynamic\"", unknown.to_owned()),
        ("12345678901234567890.125", "false", "\"number\"", "12345678901234567890.125".to_owned()),
        ("[\"a\"]", "false", "[\"list\",\"string\"]", "tolist([\"a\"])".to_owned()),
        ("[\"a\",\"b\"]", "false", "[\"set\",\"string\"]", "toset([\"a\", \"b\"])".to_owned()),
        ("[]", "false", "[\"list\",\"string\"]", "tolist([])".to_owned()),
        ("{\"k-1\":1}", "false", "[\"map\",\"number\"]", "tomap({ \"k-1\" = 1 })".to_owned()),
        (
            "{\"l\":[null,\"z\"],\"name\":\"n\"}",
            "{\"id\":true,\"l\":[true,false]}",
            "[\"object\",{\"id\":\"string\",\"l\":[\"list\",\"string\"],\"name\":\"string\"}]",
            format!(
                "{{ \"id\" = tostring({unknown}), \"l\" = tolist([tostring({unknown}), \"z\"]), \"name\" = \"n\" }}"
            ),
        ),
        ("[1,\"a\"]", "[]", "[\"tuple\",[\"number\",\"string\"]]", "[1, \"a\"]".to_owned()),
        ("{\"a\":null}", "{}", "[\"object\",{\"a\":\"string\"}]", "{ \"a\" = null }".to_owned()),
    ] {
        assert_eq!(rendered(value, later, kind), wanted, "{value} {later}");
    }
}

const PLAN: &str = r#"{ "output_changes": {
  "id": { "actions": ["update"], "before": "a", "after_unknown": true },
  "name": { "actions": ["no-op"], "after": "n", "after_unknown": false, "after_sensitive": false },
  "gone": { "actions": ["delete"], "before": 1, "after": null, "after_unknown": false },
  "pw": { "actions": ["update"], "before": { "a": "older11" }, "before_sensitive": true, "after": { "a": "hunter22", "n": 4711 }, "after_unknown": false, "after_sensitive": true }
}, "planned_values": { "outputs": { "name": { "type": "string", "value": "n" } } } }"#;

fn a_source() -> Source {
    let link = Link { block: "net".into(), plan_of: "j".into(), root: RootKey::new("net") };
    source(&link, PLAN.as_bytes()).expect("outputs")
}

#[test]
fn a_source_gives_what_will_be_in_its_state() {
    let source = a_source();
    let names: Vec<&str> = source.outputs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["id", "name", "pw"]);
    assert_eq!(source.secrets, ["hunter22", "4711", "older11"]);
}

#[test]
fn a_block_that_cannot_be_linked_says_why() {
    let block = "data \"terraform_remote_state\" \"net\" {\n  backend = \"local\"\n EXTRA\n}\noutput \"o\" { value = data.terraform_remote_state.net.outputs.id }\n";
    for (name, extra, why) in [
        ("main.tf", "", None),
        ("main.tofu", "", None),
        ("main.tf", "count = 1", Some("its block has count or for_each")),
        ("main.tf", "for_each = {}", Some("its block has count or for_each")),
        ("main.tf", "defaults = {}", Some("its block has defaults")),
        ("tidegate_linked.tf", "", Some("the root has a file tidegate_linked.tf of its own")),
        ("main.txt", "", Some("its block is not in the root's own directory")),
    ] {
        let text = block.replace("EXTRA", extra);
        let rewritten = rewrite(&[(name.to_owned(), text.into_bytes())], &[a_source()]);
        assert_eq!(rewritten.left.first().map(|left| left.why.as_str()), why, "{name} {extra}");
        assert_eq!(rewritten.files.is_empty(), why.is_some(), "{name} {extra}");
    }
}

#[test]
fn the_outputs_are_a_file_of_their_own() {
    let files = [("main.tf".to_owned(), b"data \"terraform_remote_state\" \"net\" {}\n".to_vec())];
    let rewritten = rewrite(&files, &[a_source()]);
    let [(name, bytes)] = rewritten.files.as_slice() else { panic!("{rewritten:?}") };
    assert_eq!(name, FILE);
    let wanted = "locals {\n  tidegate_linked_net = {\n    outputs = {\n      \"id\" = jsondecode(timestamp())\n      \"name\" = \"n\"\n      \"pw\" = { \"a\" = \"hunter22\", \"n\" = 4711 }\n    }\n  }\n}\n";
    assert_eq!(String::from_utf8_lossy(bytes), wanted);
}
