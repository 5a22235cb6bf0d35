//! Ephemeral variables: no plan has their values, so an apply gets exactly those that its plan was made with, or does not begin.

use std::collections::BTreeMap;
use std::path::Path;

use tidegate::domain::job::{JobResult, Phase};

use super::server::{Kept, Trouble, World};
use super::{backend, environment, spec};

const BODY: &str = "variable \"token\" {\n  type = string\n  ephemeral = true\n  default = \"none\"\n}\n\
    resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"test -n \\\"$TF_VAR_token\\\" && touch $S/given; true\" }\n}\n";

async fn job(states: &Path, phase: Phase, token: Option<&str>, before: Option<&Kept>) -> Kept {
    let body = BODY.replace("$S", &states.display().to_string());
    let files = [("envs/dev/main.tf".to_owned(), format!("{}{body}", backend(states)))];
    let world = World::start(&files, spec(phase), before, Trouble::None).await;
    let mut given: BTreeMap<String, String> = environment(states);
    given.extend(token.map(|token| ("TF_VAR_token".to_owned(), token.to_owned())));
    world.run(&given).await.expect("the job ends");
    world.kept()
}

fn is_applied(kept: &Kept) -> bool {
    matches!(kept.result, Some(JobResult::Applied { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_set_at_the_plan_has_to_be_set_at_the_apply() {
    let states = tempfile::tempdir().unwrap();
    let planned = job(states.path(), Phase::Plan, Some("one-4711"), None).await;
    assert_eq!(planned.inputs.as_deref(), Some(br#"["token"]"#.as_slice()), "the name, and no value");
    let refused = job(states.path(), Phase::Apply, None, Some(&planned)).await;
    let Some(JobResult::Failed { failure, resources, .. }) = &refused.result else { panic!("{:?}", refused.result) };
    assert_eq!(failure.summary, "The plan was made with `TF_VAR_token`, which jobs do not have any more");
    assert!(failure.detail.contains("Nothing was applied.") && resources.is_empty(), "{failure:?} {resources:?}");
    assert!(!states.path().join("s.tfstate").exists());
    // Another value is another token, and what such variables are for.
    let applied = job(states.path(), Phase::Apply, Some("two-4711"), Some(&planned)).await;
    assert!(is_applied(&applied), "{:?}", applied.result);
    assert!(states.path().join("given").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_plan_did_not_have_does_not_come_in_at_the_apply() {
    let states = tempfile::tempdir().unwrap();
    let planned = job(states.path(), Phase::Plan, None, None).await;
    assert_eq!(planned.inputs.as_deref(), Some(b"[]".as_slice()));
    let applied = job(states.path(), Phase::Apply, Some("one-4711"), Some(&planned)).await;
    assert!(is_applied(&applied), "{:?}", applied.result);
    assert!(!states.path().join("given").exists());
}
