//! Applies that fail: the tool prints the command and all that it said, in clear, also what was made a moment before.

use super::{Case, Then, core, no_leak, places, run, surfaces};

const fn failing(name: &'static str, text: &'static [(&'static str, &'static str)]) -> Case {
    Case { name, before: None, files: text }
}

const CASES: &[Case] = &[
    failing(
        "command",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"echo ${var.s}; exit 3\" }\n}\n",
        )],
    ),
    failing(
        "commandenv",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"env; echo $PW | base64; exit 3\"\n    environment = { PW = var.s }\n  }\n}\n",
        )],
    ),
    failing(
        "commandlines",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"BEGIN-KEY\\nline-@X@\\nEND-KEY\\n\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"cat <<E\\n${var.s}\\nE\\nexit 3\" }\n}\n",
        )],
    ),
    failing(
        "commandquoted",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"a\\\"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"echo '${jsonencode({ p = var.s })}'; exit 3\" }\n}\n",
        )],
    ),
    failing(
        "interpreter",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    interpreter = [\"/nowhere/${nonsensitive(var.s)}\", \"-c\"]\n    command = \"true\"\n  }\n}\n",
        )],
    ),
    failing(
        "workingdir",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    working_dir = \"/nowhere/${nonsensitive(var.s)}\"\n    command = \"true\"\n  }\n}\n",
        )],
    ),
    failing(
        "remote",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"remote-exec\" {\n    inline = [\"echo ${nonsensitive(var.s)}\"]\n    connection {\n      host = \"127.0.0.1\"\n      port = 1\n      user = \"u-${nonsensitive(var.s)}\"\n      password = var.s\n      timeout = \"1s\"\n    }\n  }\n}\n",
        )],
    ),
    failing(
        "filecontent",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"file\" {\n    content = nonsensitive(var.s)\n    destination = \"/tmp/${nonsensitive(var.s)}\"\n    connection {\n      host = \"${nonsensitive(var.s)}.invalid\"\n      password = var.s\n      timeout = \"1s\"\n    }\n  }\n}\n",
        )],
    ),
    failing(
        "postcondition",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  lifecycle {\n    postcondition {\n      condition = self.id == \"\"\n      error_message = \"Not ${nonsensitive(var.s)}\"\n    }\n  }\n}\n",
        )],
    ),
    failing(
        "keyfails",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  for_each = toset([nonsensitive(var.s)])\n  provisioner \"local-exec\" { command = \"exit 3\" }\n}\n",
        )],
    ),
    Case {
        name: "destroy",
        before: Some(
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  input = var.s\n  provisioner \"local-exec\" {\n    when = destroy\n    command = \"echo ${self.input}; exit 3\"\n  }\n}\n",
        ),
        files: &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  input = var.s\n  triggers_replace = [1]\n  provisioner \"local-exec\" {\n    when = destroy\n    command = \"echo ${self.input}; exit 3\"\n  }\n}\n",
        )],
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn no_failing_apply_shows_it() {
    let (ctx, pull) = run(CASES, &[], Then::Apply).await;
    no_leak(&ctx, CASES).await;
    assert!(ctx.apply_check(pull).starts_with("failure"), "{}", ctx.apply_check(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_a_moment_before_is_not_shown_by_the_error() {
    const MADE: &[Case] = &[failing(
        "made",
        &[(
            "main.tf",
            "resource \"terraform_data\" \"pw\" {}\nresource \"terraform_data\" \"user\" {\n  input = sensitive(terraform_data.pw.id)\n  provisioner \"local-exec\" { command = \"echo ${self.input}; exit 3\" }\n}\n",
        )],
    )];
    let (ctx, _) = run(MADE, &[], Then::Apply).await;
    let state: serde_json::Value = serde_json::from_str(&ctx.state("made")).unwrap();
    let resources = state["resources"].as_array().unwrap();
    let made = resources.iter().find(|resource| resource["name"] == "pw").unwrap();
    let secret = made["instances"][0]["attributes"]["id"].as_str().unwrap();
    let shown = places(&surfaces(&ctx).await, secret);
    assert!(shown.is_empty(), "{}", shown.join("\n\n"));
    assert!(!core("made").is_empty());
}
