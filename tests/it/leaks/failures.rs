//! Plans that fail: the tool quotes what it could not use, often before any plan could tell what is secret.

use super::{Case, Then, core, no_leak, run};

const fn failing(name: &'static str, files: &'static [(&'static str, &'static str)]) -> Case {
    Case { name, before: None, files }
}

const CASES: &[Case] = &[
    failing(
        "validation",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n  validation {\n    condition = var.s == \"\"\n    error_message = \"It is wrong.\"\n  }\n}\n",
        )],
    ),
    failing(
        "validationsays",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n  validation {\n    condition = var.s == \"\"\n    error_message = \"Not ${nonsensitive(var.s)}\"\n  }\n}\n",
        )],
    ),
    failing(
        "validationfile",
        &[
            (
                "main.tf",
                "variable \"s\" {\n  sensitive = true\n  validation {\n    condition = var.s == \"\"\n    error_message = \"Not ${nonsensitive(var.s)}\"\n  }\n}\n",
            ),
            ("x.auto.tfvars", "s = \"@X@\"\n"),
        ],
    ),
    failing(
        "validationenv",
        &[(
            "main.tf",
            "variable \"envpw\" {\n  sensitive = true\n  validation {\n    condition = var.envpw.pw == \"\"\n    error_message = \"Not ${nonsensitive(var.envpw.pw)}\"\n  }\n}\n",
        )],
    ),
    failing(
        "precondition",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  lifecycle {\n    precondition {\n      condition = var.s == \"\"\n      error_message = \"Not ${nonsensitive(var.s)}\"\n    }\n  }\n}\n",
        )],
    ),
    failing(
        "missingfile",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = file(nonsensitive(var.s)) }\n",
        )],
    ),
    failing(
        "badnumber",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = tonumber(nonsensitive(var.s)) }\n",
        )],
    ),
    failing(
        "badindex",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = { a = 1 }[nonsensitive(var.s)] }\n",
        )],
    ),
    failing(
        "badparse",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = parseint(nonsensitive(var.s), 10) }\n",
        )],
    ),
    failing(
        "foreachmarked",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { for_each = toset([var.s]) }\n",
        )],
    ),
    failing(
        "literalline",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { inputt = \"@X@\" }\n",
        )],
    ),
    failing(
        "moduleuser",
        &[("main.tf", "module \"m\" { source = \"git::http://oauth2:@X@@127.0.0.1:1/m.git?ref=v1\" }\n")],
    ),
    failing("modulelone", &[("main.tf", "module \"m\" { source = \"git::http://@X@@127.0.0.1:1/m.git?ref=v1\" }\n")]),
    failing("modulequery", &[("main.tf", "module \"m\" { source = \"http://127.0.0.1:1/m.zip?token=@X@\" }\n")]),
    failing(
        "backendquery",
        &[(
            "main.tf",
            "terraform {\n  backend \"http\" {\n    address = \"http://127.0.0.1:1/state?token=@X@\"\n    retry_max = 0\n  }\n}\n",
        )],
    ),
    failing(
        "backendpassword",
        &[(
            "main.tf",
            "terraform {\n  backend \"http\" {\n    address = \"http://app:@X@@127.0.0.1:1/state\"\n    password = \"@X@\"\n    retry_max = 0\n  }\n}\n",
        )],
    ),
    failing(
        "backendconn",
        &[(
            "main.tf",
            "terraform {\n  backend \"pg\" { conn_str = \"postgres://app:@X@@127.0.0.1:1/db?sslmode=disable\" }\n}\n",
        )],
    ),
    failing(
        "wrapped",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"/nowhere/a quite long phrase of many words that the tool breaks @X@ somewhere between two of its many words\"\n}\nmodule \"m\" { source = \"/nowhere/a quite long phrase of many words that the tool breaks @X@ somewhere between two of its many words\" }\n",
        )],
    ),
    failing(
        "keyfile",
        &[(
            "main.tf",
            "output \"o\" { value = file(\"-----BEGIN RSA PRIVATE KEY-----\\nMII@X@\\n-----END RSA PRIVATE KEY-----\") }\n",
        )],
    ),
    failing(
        "secondline",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"first line\\nsecond-@X@\\n\"\n  validation {\n    condition = var.s == \"\"\n    error_message = \"Not ${nonsensitive(var.s)}\"\n  }\n}\n",
        )],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_failing_plan_shows_it() {
    let environment = [("TF_VAR_envpw", format!("{{ pw = \"{}\" }}", core("validationenv")))];
    let (ctx, pull) = run(CASES, &environment, Then::Nothing).await;
    no_leak(&ctx, CASES).await;
    let note = ctx.note(pull).expect("a note");
    for case in CASES {
        assert!(ctx.plan_check(pull).starts_with("failure"), "{}: {note}", case.name);
    }
}
