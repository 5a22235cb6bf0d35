//! Every world of the notes as a report, against the published schema. It renders nothing.

use std::sync::LazyLock;

use super::world::World;
use crate::domain::report::report;
use crate::domain::rollout::Standing;

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let text = include_str!("../../../../docs/report.schema.json");
    let schema: serde_json::Value = serde_json::from_str(text).expect("JSON");
    jsonschema::validator_for(&schema).expect("a valid schema")
});

/// Fails when the world's report does not fit `docs/report.schema.json`.
pub(super) fn check(world: &World) {
    let mut rollout = world.rollout.clone();
    let states = world.context.waves.iter().zip(&world.context.waits);
    rollout.standing = states.map(|(state, waits)| Standing { state: state.clone(), waits: waits.clone() }).collect();
    let value = serde_json::to_value(report(&world.pull, &rollout)).expect("JSON");
    let wrong: Vec<String> =
        SCHEMA.iter_errors(&value).map(|error| format!("{} at {}", error, error.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{value:#}");
    assert!(value["holes"].is_array());
}
