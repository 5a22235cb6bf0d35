//! Secrets that cross a state: what a root reads from another bears no mark, at the first hop or at the second.

use super::{Case, Then, core, logs, no_leak, places, run, surfaces};
use crate::ctx::Ctx;

const OWNER: &str = "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\noutput \"token\" {\n  value = { deep = [var.s] }\n  sensitive = true\n}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_shows_no_sensitive_output_of_its_source() {
    const CASES: &[Case] = &[
        Case { name: "owner", before: Some(OWNER), files: &[] },
        Case {
            name: "reader",
            before: None,
            files: &[(
                "main.tf",
                "data \"terraform_remote_state\" \"o\" {\n  backend = \"local\"\n  config = { path = \"$S/owner.tfstate\" }\n}\nresource \"terraform_data\" \"r\" { input = \"t-${data.terraform_remote_state.o.outputs.token.deep[0]}\" }\noutput \"r\" { value = data.terraform_remote_state.o.outputs.token }\n",
            )],
        },
    ];
    let (ctx, pull) = run(CASES, &[], Then::Apply).await;
    no_leak(&ctx, CASES).await;
    assert!(ctx.apply_check(pull).starts_with("success"), "{}", ctx.apply_check(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_the_reader_shows_none_either() {
    logs();
    let owner = |more: &str| {
        let state = "terraform {\n  backend \"local\" { path = \"$S/first.tfstate\" }\n}\n";
        format!("{state}{}{more}", OWNER.replace("@X@", &core("first")))
    };
    let reader = |name: &str, of: &str, output: &str| {
        format!(
            "terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n}}\ndata \"terraform_remote_state\" \"o\" {{\n  \
             backend = \"local\"\n  config = {{ path = \"$S/{of}.tfstate\" }}\n}}\noutput \"plain\" {{ value = {output} }}\n"
        )
    };
    let second = reader("second", "first", "data.terraform_remote_state.o.outputs.token.deep[0]");
    let third = reader("third", "second", "\"x-${data.terraform_remote_state.o.outputs.plain}\"");
    let ctx = Ctx::with(&[("first/main.tf", &owner("")), ("second/main.tf", &second)]).await;
    ctx.sandbox.record();
    ctx.applied_before(&["first", "second"]).await;
    ctx.open("owner", &[("first/main.tf", Some(&owner("resource \"terraform_data\" \"z\" {}\n")))]);
    ctx.settle().await;
    let pull = ctx.open("third", &[("third/main.tf", Some(&third))]);
    ctx.settle().await;
    let shown = places(&surfaces(&ctx).await, &core("first"));
    assert!(shown.is_empty(), "{}", shown.join("\n\n"));
    assert!(ctx.note(pull).is_some_and(|note| note.contains("(sensitive)")), "{:?}", ctx.note(pull));
}
