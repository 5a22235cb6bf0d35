//! Jobs from the claim to the result, with the real tool and a small server of their own.

use std::collections::BTreeMap;
use std::path::Path;

use tidegate::domain::ids::RootKey;
use tidegate::domain::job::{JobResult, JobSpec, Phase, ResourceStage, StateLeft, StateLock, VERSION};

mod executor;
mod packages;
mod registry;
mod releases;
mod server;
mod tools;

use server::{Kept, Trouble, World};

fn backend(states: &Path) -> String {
    format!("terraform {{\n  backend \"local\" {{ path = \"{}/s.tfstate\" }}\n}}\n", states.display())
}

fn spec(phase: Phase) -> JobSpec {
    JobSpec {
        version: VERSION,
        id: "1-2-3-plan".into(),
        phase,
        root: RootKey::new("envs/dev"),
        head: "h".into(),
        tree: "t".into(),
        tool: None,
        tool_version: None,
        asked_by: Default::default(),
        var_files: Vec::new(),
        backend_config: Vec::new(),
        args: Vec::new(),
        plan_of: None,
        source: String::new(),
        linked: vec![],
        sources: vec![],
        state_lock: match phase {
            Phase::Plan => StateLock::Off,
            Phase::Apply => StateLock::Wait,
        },
    }
}

/// Runs a job of a root whose only file is `body` behind a backend in `states`.
async fn job(states: &Path, body: &str, spec: JobSpec, kept: Option<&Kept>, trouble: Trouble) -> Kept {
    let files = [("envs/dev/main.tf".to_owned(), format!("{}{body}", backend(states)))];
    let world = World::start(&files, spec, kept, trouble).await;
    world.run(&environment(states)).await.expect("the job ends");
    world.kept()
}

fn environment(states: &Path) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> =
        ["PATH", "HOME"].iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    environment.insert("TIDEGATE_JOB_DIR".into(), states.join("jobs").display().to_string());
    environment.insert("TF_VAR_password".into(), "hush-hush-4711".into());
    environment.insert("TF_CLI_ARGS_plan".into(), "-destroy".into());
    environment
}

fn nothing_left_in(states: &Path) -> bool {
    std::fs::read_dir(states.join("jobs")).unwrap().next().is_none()
}

const TWO: &str = "resource \"terraform_data\" \"a\" { input = \"1\" }\nresource \"terraform_data\" \"b\" {}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_made_shown_and_uploaded_then_applied_once() {
    let states = tempfile::tempdir().unwrap();
    let planned = job(states.path(), TWO, spec(Phase::Plan), None, Trouble::None).await;
    let Some(JobResult::Planned { tool, .. }) = &planned.result else { panic!("{:?}", planned.result) };
    assert!(tool.version.starts_with("1."), "{tool:?}");
    assert!(planned.plan.as_deref().is_some_and(|plan| plan.starts_with(b"PK")));
    let json: serde_json::Value = serde_json::from_slice(planned.plan_json.as_deref().unwrap()).unwrap();
    assert_eq!(json["resource_changes"].as_array().map(Vec::len), Some(2));
    assert_eq!(planned.steps(), ["checkout ok", "init ok", "plan ok", "show ok"]);
    assert!(planned.log("plan").contains("terraform_data.a: Plan to create"), "{}", planned.log("plan"));
    assert!(nothing_left_in(states.path()));

    let apply = JobSpec { tool: Some(tool.kind), tool_version: Some(tool.version.clone()), ..spec(Phase::Apply) };
    let applied = job(states.path(), TWO, apply.clone(), Some(&planned), Trouble::None).await;
    let Some(JobResult::Applied { resources }) = &applied.result else { panic!("{:?}", applied.result) };
    let done: Vec<&str> = resources.iter().map(|resource| resource.address.as_str()).collect();
    assert_eq!(done, ["terraform_data.a", "terraform_data.b"]);
    assert!(resources.iter().all(|resource| resource.state == ResourceStage::Done));
    assert_eq!(applied.steps(), ["checkout ok", "init ok", "show ok", "apply ok"]);
    assert_eq!(applied.last_resources(), *resources);

    let again = job(states.path(), TWO, apply, Some(&planned), Trouble::None).await;
    let Some(JobResult::Stale { failure }) = &again.result else { panic!("{:?}", again.result) };
    assert_eq!(failure.summary, "Saved plan is stale");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_provisioner_is_its_resources_error_and_shows_no_secret() {
    let states = tempfile::tempdir().unwrap();
    let body = "variable \"password\" {}\n\
        resource \"terraform_data\" \"ok\" {}\n\
        resource \"terraform_data\" \"bad\" {\n  depends_on = [terraform_data.ok]\n  \
          provisioner \"local-exec\" { command = \"echo ${var.password}; exit 3\" }\n}\n\
        resource \"terraform_data\" \"after\" { depends_on = [terraform_data.bad] }\n";
    let planned = job(states.path(), body, spec(Phase::Plan), None, Trouble::None).await;
    let applied = job(states.path(), body, spec(Phase::Apply), Some(&planned), Trouble::None).await;
    let Some(JobResult::Failed { failure, resources, errored_state: StateLeft::Nothing }) = &applied.result else {
        panic!("{:?}", applied.result)
    };
    let states_of: BTreeMap<&str, ResourceStage> =
        resources.iter().map(|resource| (resource.address.as_str(), resource.state)).collect();
    assert_eq!(states_of["terraform_data.ok"], ResourceStage::Done);
    assert_eq!(states_of["terraform_data.bad"], ResourceStage::Failed);
    assert_eq!(states_of["terraform_data.after"], ResourceStage::NotApplied);
    let bad = resources.iter().find(|resource| resource.address == "terraform_data.bad").unwrap();
    assert!(bad.error.as_deref().is_some_and(|error| error.contains("exit status 3")), "{bad:?}");
    assert_eq!(failure.summary, "local-exec provisioner error");
    assert_eq!((failure.file.as_deref(), failure.line), (Some("envs/dev/main.tf"), Some(8)));
    assert_eq!(failure.address.as_deref(), Some("terraform_data.bad"));
    assert!(applied.log("apply").contains("(sensitive)"), "{}", applied.log("apply"));
    assert!(!format!("{applied:?}").contains("hush-hush"));
    assert!(applied.steps().contains(&"apply failed".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_plan_names_file_and_line_and_uploads_nothing() {
    let states = tempfile::tempdir().unwrap();
    let table = [
        ("resource \"terraform_data\" \"a\" { input = var.nope }\n", "plan", "Reference to undeclared input variable"),
        ("resource \"terraform_data\" {}\n", "init", "Missing name for resource"),
    ];
    for (body, step, summary) in table {
        let planned = job(states.path(), body, spec(Phase::Plan), None, Trouble::None).await;
        let Some(JobResult::Failed { failure, .. }) = &planned.result else { panic!("{:?}", planned.result) };
        assert_eq!((failure.step.as_str(), failure.summary.as_str()), (step, summary));
        assert_eq!((failure.file.as_deref(), failure.line), (Some("envs/dev/main.tf"), Some(4)));
        assert_eq!((&planned.plan, &planned.plan_json), (&None, &None));
        assert!(planned.log(step).contains(summary), "{}", planned.log(step));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_the_tool_exactly_and_the_environment_injects_none() {
    let states = tempfile::tempdir().unwrap();
    let body = "resource \"terraform_data\" \"note\" {\n  for_each = toset([\"x y\", \"a\\\"b\"])\n}\n";
    let spec = JobSpec { args: vec!["-target=terraform_data.note[\"x y\"]".into()], ..spec(Phase::Plan) };
    let planned = job(states.path(), body, spec, None, Trouble::None).await;
    let json: serde_json::Value = serde_json::from_slice(planned.plan_json.as_deref().expect("a plan")).unwrap();
    let changes: Vec<&str> =
        json["resource_changes"].as_array().unwrap().iter().filter_map(|change| change["address"].as_str()).collect();
    assert_eq!(changes, ["terraform_data.note[\"x y\"]"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_for_a_while_loses_nothing() {
    let states = tempfile::tempdir().unwrap();
    let planned = job(states.path(), TWO, spec(Phase::Plan), None, Trouble::EveryOther503).await;
    assert!(matches!(planned.result, Some(JobResult::Planned { .. })), "{:?}", planned.result);
    assert_eq!(planned.steps(), ["checkout ok", "init ok", "plan ok", "show ok"]);
    assert!(planned.log("plan").contains("terraform_data.b: Plan to create"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_refused_ends_quietly() {
    let states = tempfile::tempdir().unwrap();
    let kept = job(states.path(), TWO, spec(Phase::Plan), None, Trouble::Claimed).await;
    assert_eq!(kept, Kept::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_canceled_by_the_servers_word() {
    let states = tempfile::tempdir().unwrap();
    // Planning waits for what this writes nobody: only the interrupt ends it.
    let body = format!(
        "data \"terraform_remote_state\" \"never\" {{\n  backend = \"http\"\n  config = {{ address = \"{}\" }}\n}}\n",
        server::deaf().await
    );
    let planned = job(states.path(), &body, spec(Phase::Plan), None, Trouble::CancelAtPlan).await;
    assert_eq!(planned.result, Some(JobResult::Canceled));
    assert_eq!((&planned.plan, &planned.plan_json), (&None, &None));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_apply_finishes_what_it_began_and_says_what_it_did_not() {
    let states = tempfile::tempdir().unwrap();
    let body = "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"exec sleep 600\" }\n}\n\
        resource \"terraform_data\" \"b\" { depends_on = [terraform_data.a] }\n";
    let planned = job(states.path(), body, spec(Phase::Plan), None, Trouble::None).await;
    let applied = job(states.path(), body, spec(Phase::Apply), Some(&planned), Trouble::CancelAtProvisioner).await;
    let Some(JobResult::Failed { failure, resources, .. }) = &applied.result else { panic!("{:?}", applied.result) };
    assert_eq!(failure.summary, "The apply was interrupted");
    let ends: Vec<ResourceStage> = resources.iter().map(|resource| resource.state).collect();
    assert_eq!(ends, [ResourceStage::Failed, ResourceStage::NotApplied]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superseded_apply_goes_on_to_its_end() {
    let states = tempfile::tempdir().unwrap();
    let planned = job(states.path(), TWO, spec(Phase::Plan), None, Trouble::None).await;
    let applied = job(states.path(), TWO, spec(Phase::Apply), Some(&planned), Trouble::LinesGone).await;
    assert!(matches!(applied.result, Some(JobResult::Applied { .. })), "{:?}", applied.result);
    let superseded = job(states.path(), TWO, spec(Phase::Plan), None, Trouble::LinesGone).await;
    assert_eq!(superseded.result, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_another_version_or_a_missing_tool_is_refused_before_anything_runs() {
    let states = tempfile::tempdir().unwrap();
    let planned = job(states.path(), TWO, spec(Phase::Plan), None, Trouble::None).await;
    let other = JobSpec { tool_version: Some("0.0.1".into()), ..spec(Phase::Apply) };
    let refused = job(states.path(), TWO, other, Some(&planned), Trouble::None).await;
    let Some(JobResult::Failed { failure, resources, .. }) = &refused.result else { panic!("{:?}", refused.result) };
    assert!(failure.summary.contains("0.0.1 is needed"), "{failure:?}");
    assert!(resources.is_empty() && refused.steps() == ["checkout failed"], "{:?}", refused.steps());

    let files = [("envs/dev/main.tf".to_owned(), backend(states.path()))];
    let world = World::start(&files, spec(Phase::Plan), None, Trouble::None).await;
    let mut nothing = environment(states.path());
    nothing.insert("PATH".into(), "/nowhere".into());
    world.run(&nothing).await.expect("the job ends");
    let Some(JobResult::Failed { failure, .. }) = world.kept().result else { panic!("it failed") };
    assert_eq!(failure.summary, "`terraform` or `tofu` is not installed where jobs run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_would_vanish_with_the_job_is_not_applied() {
    let states = tempfile::tempdir().unwrap();
    let files = [("envs/dev/main.tf".to_owned(), TWO.to_owned())];
    let plan = World::start(&files, spec(Phase::Plan), None, Trouble::None).await;
    plan.run(&environment(states.path())).await.expect("the job ends");
    let apply = World::start(&files, spec(Phase::Apply), Some(&plan.kept()), Trouble::None).await;
    apply.run(&environment(states.path())).await.expect("the job ends");
    let Some(JobResult::Failed { failure, .. }) = apply.kept().result else { panic!("it failed") };
    assert_eq!(failure.summary, "The state of `envs/dev` would be lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_its_backend_does_not_take_is_uploaded_or_left_where_it_is() {
    let states = tempfile::tempdir().unwrap();
    let url = server::forgetful_backend().await;
    let root =
        format!("terraform {{\n  backend \"http\" {{\n    address = \"{url}\"\n    retry_max = 0\n  }}\n}}\n{TWO}");
    let files = [("envs/dev/main.tf".to_owned(), root)];
    let plan = World::start(&files, spec(Phase::Plan), None, Trouble::None).await;
    plan.run(&environment(states.path())).await.expect("the job ends");
    for trouble in [Trouble::None, Trouble::StateRefused] {
        let apply = World::start(&files, spec(Phase::Apply), Some(&plan.kept()), trouble).await;
        apply.run(&environment(states.path())).await.expect("the job ends");
        let kept = apply.kept();
        let Some(JobResult::Failed { failure, resources, errored_state }) = &kept.result else {
            panic!("{:?}", kept.result)
        };
        assert!(resources.iter().all(|resource| resource.state == ResourceStage::Done), "{resources:?}");
        assert_eq!(failure.summary, "Failed to save state", "{failure:?}");
        let uploaded = trouble == Trouble::None;
        assert_eq!(kept.errored_state.is_some(), uploaded);
        match errored_state {
            StateLeft::Kept => assert!(uploaded),
            StateLeft::At(path) => {
                assert!(!uploaded && failure.others[0].contains(path.as_str()), "{failure:?}");
                assert!(std::fs::read_to_string(path).unwrap().contains("terraform_data"));
            }
            StateLeft::Nothing => panic!("{failure:?}"),
        }
        assert_eq!(nothing_left_in(states.path()), uploaded);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_no_file_takes_is_read_from_the_tools_last_words() {
    let states = tempfile::tempdir().unwrap();
    let url = server::forgetful_backend().await;
    let in_the_way = "resource \"terraform_data\" \"a\" {\n  input = \"left-behind\"\n  provisioner \"local-exec\" { command = \"mkdir errored.tfstate\" }\n}\n";
    let root = format!(
        "terraform {{\n  backend \"http\" {{\n    address = \"{url}\"\n    retry_max = 0\n  }}\n}}\n{in_the_way}"
    );
    let files = [("envs/dev/main.tf".to_owned(), root)];
    let plan = World::start(&files, spec(Phase::Plan), None, Trouble::None).await;
    plan.run(&environment(states.path())).await.expect("the job ends");
    for trouble in [Trouble::None, Trouble::StateRefused] {
        let apply = World::start(&files, spec(Phase::Apply), Some(&plan.kept()), trouble).await;
        apply.run(&environment(states.path())).await.expect("the job ends");
        let kept = apply.kept();
        let Some(JobResult::Failed { errored_state, .. }) = &kept.result else { panic!("{:?}", kept.result) };
        let state = match errored_state {
            StateLeft::Kept => String::from_utf8(kept.errored_state.clone().unwrap()).unwrap(),
            StateLeft::At(path) => std::fs::read_to_string(path).unwrap(),
            StateLeft::Nothing => panic!("{:?}", kept.result),
        };
        assert!(state.contains("left-behind") && state.contains("lineage"), "{state}");
        assert!(!kept.log("apply").contains("left-behind\"},"), "the dump is in no log: {}", kept.log("apply"));
    }
}
