//! The by-resource list on small estates.

use super::super::roots::tests::plan;
use super::*;
use crate::domain::config::RepoConfig;
use crate::domain::estate::fixture::{estate, read, s3};

fn lines(found: &[ResourceReach]) -> Vec<String> {
    let through = |reached: &Reached| match &reached.through {
        Some(through) => {
            let planned = if reached.planned { "" } else { ", not planned" };
            format!(
                " in {} through {:?} of {} {:?}{planned}",
                reached.root, through.output, through.root, through.class
            )
        }
        None => String::new(),
    };
    found
        .iter()
        .flat_map(|reach| {
            let head = format!("{} in {} ({})", reach.address, reach.root, reach.action.word());
            std::iter::once(head)
                .chain(reach.reaches.iter().map(|reached| format!("  {}{}", reached.address, through(reached))))
        })
        .collect()
}

fn list(files: &[(&str, String)], plans: &[(&str, Plan)]) -> Vec<String> {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let (_, estate) = estate(&files, &RepoConfig::default());
    let plans: Vec<(RootKey, &Plan)> = plans.iter().map(|(key, plan)| (RootKey::new(*key), plan)).collect();
    let waves = estate.layers(&plans.iter().map(|(key, _)| key.clone()).collect(), &RepoConfig::default());
    lines(&resources(&estate, &waves.expect("no cycle"), &plans))
}

const QUEUE: &str = r#"
resource "aws_sqs_queue" "jobs" {}
resource "aws_sqs_queue_policy" "jobs" {
  queue_url = local.url
}
resource "aws_sqs_queue" "apart" {}
locals {
  url = aws_sqs_queue.jobs.url
}
output "jobs_arn" {
  value = aws_sqs_queue.jobs.arn
}
output "apart" {
  value = aws_sqs_queue.apart.arn
}
"#;

const WORKER: &str = r#"
locals {
  net = data.terraform_remote_state.net.outputs
}
resource "aws_lambda_function" "worker" {
  arn = local.net.jobs_arn
}
resource "aws_lambda_event_source_mapping" "jobs" {
  depends_on = [aws_lambda_function.worker]
}
resource "aws_x" "apart" {
  arn = local.net["apart"]
}
"#;

#[test]
fn a_change_crosses_only_by_the_outputs_that_it_reaches() {
    let files = [
        ("queue/m.tf", format!("{}{QUEUE}", s3("queue"))),
        ("worker/m.tf", format!("{}{}{WORKER}", s3("worker"), read("queue"))),
    ];
    let queue = plan(&[("aws_sqs_queue.jobs", Action::Update)], &[("jobs_arn", true)]);
    let wanted = [
        "aws_sqs_queue.jobs in queue (update)",
        "  aws_sqs_queue_policy.jobs",
        "  aws_lambda_event_source_mapping.jobs in worker through Some(\"jobs_arn\") of queue MayChange",
        "  aws_lambda_function.worker in worker through Some(\"jobs_arn\") of queue MayChange",
    ];
    assert_eq!(list(&files, &[("queue", queue.clone()), ("worker", plan(&[], &[]))]), wanted);
    let unplanned: Vec<String> = list(&files, &[("queue", queue)]);
    assert_eq!(unplanned[..2], wanted[..2]);
    let said: Vec<String> = wanted[2..].iter().map(|line| format!("{line}, not planned")).collect();
    assert_eq!(unplanned[2..], said, "a root that was not planned is followed by its configuration");
    let same = plan(&[("aws_sqs_queue.jobs", Action::Update)], &[]);
    assert_eq!(list(&files, &[("queue", same)]), wanted[..2], "but not where what it reads stays as it is");
}

#[test]
fn a_whole_object_is_read_by_no_name() {
    let whole = "resource \"a\" \"all\" {\n  x = data.terraform_remote_state.net.outputs\n}\nresource \"a\" \"one\" {\n  x = data.terraform_remote_state.net.outputs.apart\n}\n";
    let files =
        [("queue/m.tf", format!("{}{QUEUE}", s3("queue"))), ("w/m.tf", format!("{}{}{whole}", s3("w"), read("queue")))];
    let queue = plan(&[("aws_sqs_queue.jobs", Action::Update)], &[("jobs_arn", false)]);
    let found = list(&files, &[("queue", queue), ("w", plan(&[], &[]))]);
    assert_eq!(found[2..], ["  a.all in w through None of queue MayChange"]);
}

#[test]
fn modules_providers_and_lifecycles_are_followed() {
    let root = r#"
resource "a_seed" "s" {}
resource "b_seed" "p" {}
module "m" {
  for_each = { x = 1 }
  source = "../m"
  in     = a_seed.s.id
}
module "late" {
  source     = "../late"
  depends_on = [b_seed.p]
}
provider "c" {
  host = b_seed.p.host
}
resource "a_user" "out" {
  x = module.m["x"].out
}
resource "a_user" "rtb" {
  lifecycle {
    replace_triggered_by = [a_seed.s]
  }
}
resource "c_thing" "t" {}
"#;
    let module = "variable \"in\" {}\nresource \"a_inner\" \"i\" {\n  x = var.in\n}\noutput \"out\" {\n  value = a_inner.i.id\n}\n";
    let late = "resource \"a_late\" \"l\" {}\nresource \"c_thing\" \"inherits\" {}\n";
    let files =
        [("r/m.tf", format!("{}{root}", s3("r"))), ("m/m.tf", module.to_owned()), ("late/m.tf", late.to_owned())];
    let changes = plan(
        &[
            ("a_seed.s", Action::DeleteThenCreate),
            ("b_seed.p", Action::Delete),
            ("module.m[\"x\"].a_inner.i[0]", Action::Update),
            ("module.m[\"x\"].a_inner.i[1]", Action::Create),
            ("data.x.y", Action::Read),
        ],
        &[],
    );
    assert_eq!(
        list(&files, &[("r", changes)]),
        [
            "b_seed.p in r (delete)",
            "  c_thing.t",
            "  module.late.a_late.l",
            "  module.late.c_thing.inherits",
            "a_seed.s in r (replace)",
            "  a_user.out",
            "  a_user.rtb",
            "  module.m.a_inner.i",
            "module.m[\"x\"].a_inner.i[0] in r (update)",
            "  a_user.out",
            "module.m[\"x\"].a_inner.i[1] in r (create)",
            "  a_user.out",
        ]
    );
}

#[test]
fn keys_are_cut_whatever_they_hold() {
    for (address, plain) in [("a.b[0]", "a.b"), ("module.m[\"x.]\\\"[\"].a.b[\"k\"]", "module.m.a.b"), ("a.b", "a.b")] {
        assert_eq!(without_keys(address), plain);
    }
}

#[test]
fn deletes_come_first_then_earlier_waves() {
    let body = "resource \"a\" \"x\" {}\nresource \"a\" \"y\" {\n  v = a.x.id\n}\n";
    let files = [("b/m.tf", format!("{}{body}", s3("b"))), ("a/m.tf", format!("{}{}{body}", s3("a"), read("b")))];
    let update = || plan(&[("a.x", Action::Update)], &[]);
    let heads = |plans: &[(&str, Plan)]| -> Vec<String> {
        list(&files, plans).into_iter().filter(|line| !line.starts_with(' ')).collect()
    };
    assert_eq!(heads(&[("a", update()), ("b", update())]), ["a.x in b (update)", "a.x in a (update)"]);
    let delete = plan(&[("a.x", Action::Delete)], &[]);
    assert_eq!(heads(&[("a", delete), ("b", update())]), ["a.x in a (delete)", "a.x in b (update)"]);
}

#[test]
fn what_depended_on_a_deleted_resource_is_told_by_the_state_before() {
    let body = "resource \"a\" \"kept\" {}\nresource \"a\" \"user\" {\n  v = a.kept.id\n}\noutput \"o\" {\n  value = a.user.id\n}\n";
    let reader = "resource \"a\" \"far\" {\n  v = data.terraform_remote_state.net.outputs.o\n}\n";
    let files = [("b/m.tf", format!("{}{body}", s3("b"))), ("c/m.tf", format!("{}{}{reader}", s3("c"), read("b")))];
    let mut deleted = plan(&[("a.gone[0]", Action::Delete), ("a.old", Action::Update)], &[("o", true)]);
    for used in ["a.gone", "a.old"] {
        deleted.dependents.insert(used.to_owned(), ["a.kept".to_owned(), "module.m.a.gone_too".to_owned()].into());
    }
    let wanted = [
        "a.gone in b (delete)",
        "  a.kept",
        "  a.user",
        "  module.m.a.gone_too",
        "  a.far in c through Some(\"o\") of b MayChange",
    ];
    assert_eq!(list(&files, &[("b", deleted), ("c", plan(&[], &[]))]), wanted, "and only for what is deleted");
}
