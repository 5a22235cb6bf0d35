//! The follower against recorded and hand-made streams.

use super::*;
use crate::domain::plan::Change;

const REPLACEMENTS: &str = include_str!("../../../fixtures/streams/replacements.ndjson");
const FAILING: &str = include_str!("../../../fixtures/streams/failing-provisioner.ndjson");
const INTERRUPTED: &str = include_str!("../../../fixtures/streams/interrupted.ndjson");

fn change(address: &str, action: Action) -> Change {
    Change {
        address: address.to_owned(),
        resource_type: "terraform_data".to_owned(),
        action,
        deposed: None,
        previous_address: None,
        importing: false,
        replaced_by: Vec::new(),
        reason: None,
        attributes: Vec::new(),
    }
}

fn deposed(address: &str, key: &str) -> Change {
    Change { deposed: Some(key.to_owned()), ..change(address, Action::Delete) }
}

fn follow(changes: &[Change]) -> Follower {
    Follower::new(&Plan { changes: changes.to_vec(), ..Plan::default() })
}

fn event(kind: &str, address: &str, action: &str) -> String {
    serde_json::json!({
        "@message": "m", "type": kind,
        "hook": {"resource": {"addr": address, "resource": address}, "action": action, "elapsed_seconds": 2}
    })
    .to_string()
}

fn error(summary: &str, address: Option<&str>) -> String {
    serde_json::json!({
        "@message": summary, "type": "diagnostic",
        "diagnostic": {"severity": "error", "summary": summary, "detail": "", "address": address,
            "snippet": {"code": "x", "values": [{"traversal": "var.s", "statement": "is \"hidden\""}]}}
    })
    .to_string()
}

/// `address state[/stage…][!error]` of each resource.
fn picture(follower: &Follower) -> Vec<String> {
    let show = |resource: &ResourceState| {
        let stages: Vec<String> =
            resource.stages.iter().map(|stage| format!(" {}={:?}", stage.what, stage.state)).collect();
        let error = resource.error.as_deref().map(|error| format!(" !{error}")).unwrap_or_default();
        format!("{} {:?}{}{error}", resource.address, resource.state, stages.concat())
    };
    follower.resources().iter().map(show).collect()
}

#[test]
fn a_recorded_apply_with_both_kinds_of_replacement_ends_all_done() {
    let mut follower = follow(&[
        change("terraform_data.gone[0]", Action::Delete),
        change("terraform_data.ctd", Action::CreateThenDelete),
        change("terraform_data.dtc", Action::DeleteThenCreate),
        change("terraform_data.each[\"a\\\"b\"]", Action::Update),
        change("terraform_data.each[\"x y\"]", Action::Update),
        change("terraform_data.upd", Action::Update),
        change("terraform_data.new[0]", Action::Create),
    ]);
    let mut halfway = Vec::new();
    for line in REPLACEMENTS.lines() {
        follower.line(line);
        if line.contains("terraform_data.dtc: Destruction complete") {
            halfway = picture(&follower);
        }
    }
    assert!(halfway.contains(&"terraform_data.dtc Applying delete=Done create=Pending".to_owned()), "{halfway:?}");
    assert!(halfway.contains(&"terraform_data.ctd Applying create=Applying delete=Pending".to_owned()), "{halfway:?}");
    assert!(halfway.contains(&"terraform_data.new[0] Pending".to_owned()), "{halfway:?}");
    assert!(
        follower.resources().iter().all(|resource| resource.state == ResourceStage::Done),
        "before the end as well"
    );
    assert_eq!(follower.finish(Ended::Well), Vec::new());
    assert!(picture(&follower).contains(&"terraform_data.ctd Done create=Done delete=Done".to_owned()));
}

#[test]
fn a_recorded_failure_names_its_resource_and_leaves_its_dependants_not_applied() {
    let mut follower = follow(&[
        change("terraform_data.after_bad", Action::Create),
        change("terraform_data.after_ok", Action::Create),
        change("terraform_data.bad", Action::Create),
        change("terraform_data.ok", Action::Create),
    ]);
    for line in FAILING.lines() {
        follower.line(line);
    }
    assert_eq!(follower.finish(Ended::Badly), Vec::new());
    let bad = "terraform_data.bad Failed !local-exec provisioner error: \
               Error running command 'echo oops; exit 3': exit status 3. Output: oops";
    assert_eq!(
        picture(&follower),
        ["terraform_data.after_bad NotApplied", "terraform_data.after_ok Done", bad, "terraform_data.ok Done"]
    );
    assert_eq!(follower.resources()[3].seconds, 1);
}

#[test]
fn a_recorded_interrupt_is_the_runs_and_said_once() {
    let mut follower = follow(&[
        change("terraform_data.first", Action::Create),
        change("terraform_data.never", Action::Create),
        change("terraform_data.slow", Action::Create),
    ]);
    for line in INTERRUPTED.lines() {
        follower.line(line);
    }
    let rest: Vec<String> = follower.finish(Ended::Badly).into_iter().map(|error| error.summary).collect();
    assert_eq!(rest, [HALTED]);
    let states: Vec<ResourceStage> = follower.resources().iter().map(|resource| resource.state).collect();
    assert_eq!(states, [ResourceStage::Done, ResourceStage::NotApplied, ResourceStage::Failed]);
}

#[test]
fn errors_without_an_address_are_joined_only_when_there_is_one_of_each() {
    let two = [change("a.x", Action::Delete), change("a.y", Action::Delete)];
    let starts = [event("apply_start", "a.x", "delete"), event("apply_start", "a.y", "delete")];
    let table: [(&[String], &[&str], usize); 3] = [
        (
            &[event("apply_errored", "a.x", "delete"), event("apply_complete", "a.y", "delete"), error("boom", None)],
            &["a.x Failed !boom", "a.y Done"],
            0,
        ),
        (
            &[event("apply_errored", "a.x", "delete"), event("apply_errored", "a.y", "delete"), error("boom", None)],
            &["a.x Failed", "a.y Failed"],
            1,
        ),
        (
            &[
                event("apply_errored", "a.x", "delete"),
                event("apply_complete", "a.y", "delete"),
                error("bad login", Some("provider[\"p/q\"]")),
            ],
            &["a.x Failed", "a.y Done"],
            1,
        ),
    ];
    for (lines, expected, rest) in table {
        let mut follower = follow(&two);
        starts.iter().chain(lines).for_each(|line| {
            follower.line(line);
        });
        assert_eq!(follower.finish(Ended::Badly).len(), rest);
        assert_eq!(picture(&follower), expected);
    }
}

#[test]
fn replacements_that_stop_half_way_say_which_half() {
    let delete_first = [change("a.x", Action::DeleteThenCreate)];
    let create_first = [change("a.x", Action::CreateThenDelete)];
    let done = |action: &str| vec![event("apply_start", "a.x", action), event("apply_complete", "a.x", action)];
    let table = [
        (&delete_first, done("delete"), format!("a.x Failed delete=Done create=NotApplied !{GONE}")),
        (
            &delete_first,
            [done("delete"), vec![event("apply_start", "a.x", "create"), event("apply_errored", "a.x", "create")]]
                .concat(),
            "a.x Failed delete=Done create=Failed".to_owned(),
        ),
        // The second half of create-before-destroy: its failure is never reported, only an error without an address.
        (
            &create_first,
            [done("create"), vec![event("apply_start", "a.x", "delete"), error("still used", None)]].concat(),
            "a.x Failed create=Done delete=Failed !still used".to_owned(),
        ),
        (
            &create_first,
            vec![event("apply_start", "a.x", "create")],
            format!("a.x Failed create=Failed delete=NotApplied !{OPEN}"),
        ),
        (&create_first, Vec::new(), "a.x NotApplied create=NotApplied delete=NotApplied".to_owned()),
    ];
    for (plan, lines, expected) in table {
        let mut follower = follow(plan);
        for line in &lines {
            follower.line(line);
        }
        follower.finish(Ended::Badly);
        assert_eq!(picture(&follower), [expected]);
    }
}

#[test]
fn a_deposed_object_is_told_from_the_object_at_its_address() {
    let mut follower = follow(&[deposed("a.x", "b6929b28"), change("a.x", Action::Update)]);
    follower.line(&event("apply_start", "a.x", "delete"));
    follower.line(&event("apply_start", "a.x", "update"));
    follower.line(&event("apply_complete", "a.x", "update"));
    follower.line(&error("still used", None));
    assert!(follower.finish(Ended::Badly).is_empty());
    assert_eq!(picture(&follower), ["a.x Failed !still used", "a.x Done"]);
}

#[test]
fn what_sends_no_event_is_done_when_all_is_and_data_sources_are_no_resources() {
    let plan = [
        change("a.left", Action::Forget),
        change("a.moved", Action::Nothing),
        change("a.x", Action::ForgetThenCreate),
        change("data.b.c", Action::Read),
    ];
    let mut follower = follow(&plan);
    assert_eq!(follower.line(&event("apply_start", "data.b.c", "read")), Moved::No);
    assert_eq!(follower.line(&event("apply_start", "a.x", "create")), Moved::Yes);
    assert_eq!(follower.line(&event("apply_complete", "a.x", "create")), Moved::Yes);
    follower.finish(Ended::Well);
    assert_eq!(picture(&follower), ["a.left Done", "a.moved Done", "a.x Done forget=Done create=Done"]);
}

#[test]
fn lines_of_any_other_shape_move_nothing() {
    let mut follower = follow(&[change("a.x", Action::Create)]);
    for line in ["", "Warning: x", "{", "{}", "[1]", r#"{"type":"apply_start"}"#, r#"{"type":"apply_start","hook":7}"#]
    {
        assert_eq!(follower.line(line), Moved::No, "{line}");
    }
    assert_eq!(picture(&follower), ["a.x Pending"]);
}

#[test]
fn a_precondition_that_fails_during_the_apply_is_its_resources_error() {
    let mut follower = follow(&[change("a.x", Action::Create)]);
    follower.line(&error("Resource precondition failed", Some("a.x")));
    assert!(follower.finish(Ended::Badly).is_empty());
    assert_eq!(picture(&follower), ["a.x Failed !Resource precondition failed"]);
}

#[test]
fn values_that_a_snippet_shows_are_not_kept() {
    let mut follower = follow(&[]);
    follower.line(&error("no", None));
    assert!(!format!("{follower:?}").contains("hidden"));
}
