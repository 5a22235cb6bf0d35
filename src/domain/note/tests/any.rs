//! What holds for any note: the limit, whole blocks, and no secret.

use comrak::nodes::NodeValue;
use proptest::prelude::*;
use serde_json::json;

use super::world::World;
use crate::domain::plan;
use crate::domain::rollout::WaveState;

/// Within the limit, every fold closed outside of code, and no HTML but the folds.
pub(super) fn assert_sound(note: &str, limit: usize) {
    assert!(note.chars().count() <= limit, "{} of {limit}", note.chars().count());
    let arena = comrak::Arena::new();
    let mut options = comrak::Options::default();
    options.extension.table = true;
    options.extension.alerts = true;
    let root = comrak::parse_document(&arena, note, &options);
    let mut html = String::new();
    for node in root.descendants() {
        match &node.data.borrow().value {
            NodeValue::HtmlBlock(block) => html.push_str(&block.literal),
            NodeValue::HtmlInline(inline) => html.push_str(inline),
            NodeValue::CodeBlock(block) => assert!(block.closed || !block.fenced, "an open fence:\n{note}"),
            NodeValue::Image(_) => panic!("an image:\n{note}"),
            NodeValue::Link(link) => assert!(link.url.starts_with("https://tidegate.example/"), "{}", link.url),
            _ => {}
        }
    }
    let count = |tag: &str| html.matches(tag).count();
    assert_eq!(count("<details>"), count("</details>"), "{note}");
    assert_eq!(count("<summary>"), count("</summary>"), "{note}");
    let own = ["details", "/details", "summary", "/summary", "b", "/b", "code", "/code"];
    for tag in html.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
        assert!(own.contains(&tag), "<{tag}> in\n{note}");
    }
}

const SECRET: &str = "S3CRET-value";

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}",
        "[`~<>|@#*_\\[\\]\\\\!&a\\n-]{1,24}",
        Just(format!("x{SECRET}y")),
        Just("</details><script>@org #1".to_owned()),
        "[ä`]{300,900}",
    ]
}

fn any_resource() -> impl Strategy<Value = serde_json::Value> {
    let actions = prop_oneof![
        Just(json!(["create"])),
        Just(json!(["update"])),
        Just(json!(["delete"])),
        Just(json!(["delete", "create"])),
        Just(json!(["forget"])),
        Just(json!(["read"])),
    ];
    (any_text(), actions, any_text(), any_text()).prop_map(|(key, actions, before, after)| {
        json!({
            "address": format!("t.x[{}]", json!(key.replace(SECRET, ""))),
            "type": "t",
            "change": {
                "actions": actions,
                "before": { "pw": SECRET, "text": before, "copy": SECRET },
                "after": { "pw": "other-secret", "text": after, "copy": null },
                "before_sensitive": { "pw": true },
                "after_sensitive": { "pw": true }
            }
        })
    })
}

fn any_plans() -> impl Strategy<Value = Vec<Vec<serde_json::Value>>> {
    proptest::collection::vec(proptest::collection::vec(any_resource(), 0..12), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_note_is_sound(plans in any_plans(), limit in prop_oneof![Just(65_536_usize), 1_500..20_000_usize], hostile in any_text()) {
        let mut world = World::new();
        let names: Vec<String> = (0..plans.len()).map(|index| format!("r{index}/{}", hostile.replace(SECRET, ""))).collect();
        let roots: Vec<&str> = names.iter().map(String::as_str).collect();
        world.wave(&roots);
        for (root, resources) in roots.iter().zip(plans) {
            let json = json!({ "format_version": "1.2", "resource_changes": resources });
            let plan = plan::parse(json.to_string().as_bytes()).expect("a plan");
            world.plan(root, plan.changes);
        }
        world.hole(&hostile.replace(SECRET, ""), "Not read.");
        let digest = world.rollout.set_digest(1);
        world.state(WaveState::Waiting(digest));
        world.context.limit = limit;
        let note = world.note();
        assert_sound(&note, limit);
        prop_assert!(!note.contains(SECRET) && !note.contains("other-secret"), "{}", note);
        prop_assert!(note.starts_with("### "), "{}", note);
    }
}
