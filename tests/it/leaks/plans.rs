//! Secrets in roots that plan and apply well: where they come from, where they stand, and how they are encoded there.

use super::{Case, Then, core, no_leak, run};

/// A sensitive variable whose mark is lost on the way.
macro_rules! lost {
    ($default:literal, $value:literal) => {
        concat!(
            "variable \"s\" {\n  sensitive = true\n  default = ",
            $default,
            "\n}\nresource \"terraform_data\" \"a\" { input = nonsensitive(",
            $value,
            ") }\noutput \"o\" { value = terraform_data.a.output }\n"
        )
    };
}

const fn plain(name: &'static str, files: &'static [(&'static str, &'static str)]) -> Case {
    Case { name, before: None, files }
}

const VARIABLE: &str = "variable \"s\" { sensitive = true }\nresource \"terraform_data\" \"a\" { input = var.s }\n";
const LOST: &str =
    "variable \"s\" { sensitive = true }\nresource \"terraform_data\" \"a\" { input = nonsensitive(var.s) }\n";

/// Where the value comes from, and where it stands.
const PLACES: &[Case] = &[
    plain(
        "default",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\n",
        )],
    ),
    plain("autotfvars", &[("main.tf", LOST), ("x.auto.tfvars", "s = \"@X@\"\n")]),
    plain("tfvarsjson", &[("main.tf", LOST), ("terraform.tfvars.json", "{\"s\": \"@X@\"}\n")]),
    plain(
        "tfjson",
        &[
            ("main.tf", "output \"n\" { value = 1 }\n"),
            (
                "b.tf.json",
                "{\"variable\": {\"s\": {\"sensitive\": true, \"default\": \"@X@\"}}, \"resource\": {\"terraform_data\": {\"b\": {\"input\": \"${nonsensitive(var.s)}\"}}}}\n",
            ),
        ],
    ),
    plain("nested", &[("main.tf", lost!("{ a = [\"x\", { b = \"@X@\" }] }", "var.s"))]),
    plain(
        "partial",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = { open = \"o\", list = [1, var.s], deep = { pw = var.s } } }\n",
        )],
    ),
    plain(
        "mapkey",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = { (var.s) = \"x\" } }\n",
        )],
    ),
    plain("mapkeylost", &[("main.tf", lost!("\"@X@\"", "{ (var.s) = \"x\", b = { (var.s) = { c = 1 } } }"))]),
    plain("url", &[("main.tf", lost!("\"@X@\"", "\"postgres://app:${var.s}@db.internal:5432/x?sslmode=require\""))]),
    plain(
        "literalurl",
        &[("main.tf", "resource \"terraform_data\" \"a\" { input = \"https://app:@X@@db.internal/x\" }\n")],
    ),
    plain("joined", &[("main.tf", lost!("\"@X@\"", "join(\",\", [\"a\", var.s, \"b\"])"))]),
    plain("setofit", &[("main.tf", lost!("\"@X@\"", "toset([var.s])"))]),
    plain("listofobjects", &[("main.tf", lost!("\"@X@\"", "[{ a = var.s }, { b = [var.s] }]"))]),
    plain(
        "function",
        &[(
            "main.tf",
            "resource \"terraform_data\" \"a\" { input = sensitive(\"@X@\") }\nresource \"terraform_data\" \"b\" { input = terraform_data.a.output }\n",
        )],
    ),
    plain(
        "outputsensitive",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\noutput \"o\" {\n  value = var.s\n  sensitive = true\n}\n",
        )],
    ),
    plain(
        "outputlost",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\noutput \"o\" { value = { a = nonsensitive(\"x-${var.s}\") } }\n",
        )],
    ),
    plain(
        "module",
        &[
            (
                "main.tf",
                "module \"m\" {\n  source = \"./m\"\n  key = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = module.m.open }\n",
            ),
            (
                "m/m.tf",
                "variable \"key\" { sensitive = true }\nresource \"terraform_data\" \"k\" { input = var.key }\noutput \"open\" { value = terraform_data.k.output }\n",
            ),
        ],
    ),
    plain(
        "moduleaddress",
        &[
            (
                "main.tf",
                "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nmodule \"m\" {\n  for_each = toset([nonsensitive(var.s)])\n  source = \"./m\"\n}\n",
            ),
            ("m/m.tf", "resource \"terraform_data\" \"k\" { input = \"1\" }\n"),
        ],
    ),
    plain(
        "foreachkey",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  for_each = toset([nonsensitive(var.s)])\n  input = each.key\n}\n",
        )],
    ),
    plain(
        "foreachmap",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = { one = \"@X@\", two = \"x@X@\" }\n}\nresource \"terraform_data\" \"a\" {\n  for_each = nonsensitive(var.s)\n  input = each.value\n}\noutput \"all\" {\n  value = { for key, one in terraform_data.a : key => one.output }\n}\n",
        )],
    ),
    plain(
        "description",
        &[(
            "main.tf",
            "variable \"s\" {\n  description = \"such as @X@\"\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\noutput \"o\" {\n  description = \"is @X@\"\n  value = nonsensitive(\"o-${var.s}\")\n}\n",
        )],
    ),
    plain(
        "connection",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  input = var.s\n  connection {\n    host = \"127.0.0.1\"\n    password = var.s\n  }\n}\n",
        )],
    ),
    plain(
        "unmarkedheader",
        &[(
            "main.tf",
            "resource \"terraform_data\" \"a\" { input = \"curl -H 'Authorization: Bearer @X@' https://h.internal\" }\n",
        )],
    ),
    plain(
        "import",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nimport {\n  to = terraform_data.a\n  id = nonsensitive(var.s)\n}\nresource \"terraform_data\" \"a\" { input = \"1\" }\n",
        )],
    ),
    plain(
        "check",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {}\ncheck \"c\" {\n  assert {\n    condition = var.s == \"\"\n    error_message = \"it is ${nonsensitive(var.s)}\"\n  }\n}\n",
        )],
    ),
    plain(
        "provisioner",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"echo ${nonsensitive(var.s)}; echo ${nonsensitive(var.s)} | base64\" }\n}\n",
        )],
    ),
];

/// How it is encoded.
const ENCODINGS: &[Case] = &[
    plain(
        "multiline",
        &[(
            "main.tf",
            lost!(
                "\"-----BEGIN KEY-----\\nMIIEpA@X@\\nqqq@X@\\n-----END KEY-----\\n\"",
                "{ a = var.s, b = \"x ${var.s} y\" }"
            ),
        )],
    ),
    plain("heredoc", &[("main.tf", lost!("<<-EOT\n    line-one-@X@\n    line-two-@X@\n  EOT\n", "var.s"))]),
    plain("trailingnewline", &[("main.tf", lost!("\"@X@\\n\"", "trimspace(var.s)"))]),
    plain("quotes", &[("main.tf", lost!("\"a\\\"@X@\\\\b\"", "\"is ${var.s}\""))]),
    plain("unicode", &[("main.tf", lost!("\"ä@X@→\\u2028é\"", "{ v = \"is ${var.s}\", j = jsonencode([var.s]) }"))]),
    plain(
        "hex",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"printf %s '${nonsensitive(var.s)}' | od -An -tx1 | tr -d ' \\n'; printf 'k=%s' '${nonsensitive(var.s)}' | od -An -tx1 | tr -d ' \\n' | tr a-f A-F\" }\n}\n",
        )],
    ),
    plain(
        "encodedlines",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"0123456789abcdefghijklmnopqrstuvwxyz-@X@-ABCDEFGHIJKLMNOPQRSTUVWXYZ-9876543210-@X@-zyxwvutsrqponmlkjihgfedcba\"\n}\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"echo '${nonsensitive(var.s)}' | base64; echo 'PW=${nonsensitive(var.s)}' | base64 -w 64; echo '{\\\"a\\\": \\\"${nonsensitive(var.s)}\\\"}' | base64\" }\n}\n",
        )],
    ),
    plain(
        "urlsafe",
        &[(
            "main.tf",
            lost!("\"@X@?>~\"", "replace(replace(base64encode(\"x:${var.s}\"), \"/\", \"_\"), \"+\", \"-\")"),
        )],
    ),
    plain(
        "shared",
        &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"app:@X@\"\n}\nvariable \"t\" {\n  sensitive = true\n  default = \"@X@two\"\n}\nresource \"terraform_data\" \"a\" { input = nonsensitive(\"app:${var.t}\") }\n",
        )],
    ),
    plain("html", &[("main.tf", lost!("\"<@X@>&'\"", "{ v = var.s, j = jsonencode({ p = var.s }) }"))]),
    plain("template", &[("main.tf", lost!("\"a$${@X@}b%%{c\"", "\"is ${var.s}\""))]),
    plain("base64", &[("main.tf", lost!("\"@X@\"", "base64encode(var.s)"))]),
    plain("basicauth", &[("main.tf", lost!("\"@X@\"", "\"Basic ${base64encode(\"user:${var.s}\")}\""))]),
    plain(
        "base64json",
        &[("main.tf", lost!("\"@X@\"", "base64encode(jsonencode({ auths = { h = { password = var.s } } }))"))],
    ),
    plain("urlencode", &[("main.tf", lost!("\"a/@X@&b c\"", "\"https://h/x?v=${urlencode(var.s)}\""))]),
    plain("jsonencode", &[("main.tf", lost!("\"a\\\"@X@\"", "jsonencode({ p = var.s })"))]),
    plain("jsontwice", &[("main.tf", lost!("\"a\\\"@X@\\\\\"", "jsonencode({ p = jsonencode({ q = var.s }) })"))]),
    plain("yamlencode", &[("main.tf", lost!("\"line-1-@X@\\nline-2-@X@\\n\"", "yamlencode({ p = { q = var.s } })"))]),
    plain("yamlquotes", &[("main.tf", lost!("\"a: \\\"@X@\\\"\"", "yamlencode({ p = var.s })"))]),
    plain("longtext", &[("main.tf", lost!("\"@X@\"", "join(\" \", [for n in range(60) : \"${n}-${var.s}\"])"))]),
    plain("objectvariable", &[("main.tf", lost!("{ user = \"u\", password = \"@X@\" }", "jsonencode(var.s)"))]),
];

/// What changes and goes.
const CHANGES: &[Case] = &[
    Case {
        name: "update",
        before: Some(
            "variable \"s\" {\n  sensitive = true\n  default = \"old@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\noutput \"o\" { value = terraform_data.a.output }\n",
        ),
        files: &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"new@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\noutput \"o\" { value = terraform_data.a.output }\n",
        )],
    },
    Case {
        name: "replace",
        before: Some(
            "variable \"s\" {\n  sensitive = true\n  default = \"old@X@\"\n}\nresource \"terraform_data\" \"a\" { triggers_replace = { k = var.s } }\n",
        ),
        files: &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"new@X@\"\n}\nresource \"terraform_data\" \"a\" { triggers_replace = { k = var.s } }\n",
        )],
    },
    Case {
        name: "delete",
        before: Some(
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\nresource \"terraform_data\" \"k\" {\n  for_each = toset([nonsensitive(var.s)])\n  input = var.s\n}\noutput \"o\" {\n  value = var.s\n  sensitive = true\n}\n",
        ),
        files: &[("main.tf", "resource \"terraform_data\" \"z\" {}\n")],
    },
    Case {
        name: "moved",
        before: Some(
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" {\n  for_each = toset([nonsensitive(var.s)])\n  input = var.s\n}\n",
        ),
        files: &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"b\" { input = var.s }\nmoved {\n  from = terraform_data.a[\"@X@\"]\n  to = terraform_data.b\n}\n",
        )],
    },
    Case {
        name: "markcomes",
        before: Some("resource \"terraform_data\" \"a\" { input = \"@X@\" }\n"),
        files: &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"new@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\n",
        )],
    },
    Case {
        name: "unchangedlost",
        before: Some(
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\nresource \"terraform_data\" \"b\" { input = \"1-${terraform_data.a.output}\" }\n",
        ),
        files: &[(
            "main.tf",
            "variable \"s\" {\n  sensitive = true\n  default = \"@X@\"\n}\nresource \"terraform_data\" \"a\" { input = var.s }\nresource \"terraform_data\" \"b\" { input = \"2-${terraform_data.a.output}\" }\n",
        )],
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn no_place_of_a_root_shows_it() {
    let (ctx, pull) = run(PLACES, &[], Then::Apply).await;
    no_leak(&ctx, PLACES).await;
    assert!(ctx.apply_check(pull).starts_with("success"), "{} {}", ctx.apply_check(pull), ctx.plan_check(pull));
    assert!(ctx.note(pull).is_some_and(|note| note.contains("(sensitive)")));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_encoding_shows_it() {
    let (ctx, pull) = run(ENCODINGS, &[], Then::Apply).await;
    no_leak(&ctx, ENCODINGS).await;
    assert!(ctx.apply_check(pull).starts_with("success"), "{} {}", ctx.apply_check(pull), ctx.plan_check(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_change_or_end_of_it_shows_it() {
    let (ctx, pull) = run(CHANGES, &[], Then::Apply).await;
    no_leak(&ctx, CHANGES).await;
    assert!(ctx.apply_check(pull).starts_with("success"), "{} {}", ctx.apply_check(pull), ctx.plan_check(pull));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_variable_of_the_environment_shows_itself() {
    const PRINTED: &[Case] = &[
        plain("environment", &[("main.tf", VARIABLE)]),
        plain(
            "printenv",
            &[(
                "main.tf",
                "variable \"n\" { default = 1 }\nresource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"env; env | base64 -w0\" }\n}\n",
            )],
        ),
    ];
    let environment = [("TF_VAR_s", core("environment")), ("CLOUD_SECRET_KEY", core("printenv"))];
    let (ctx, pull) = run(PRINTED, &environment, Then::Apply).await;
    no_leak(&ctx, PRINTED).await;
    assert!(ctx.apply_check(pull).starts_with("success"), "{}", ctx.apply_check(pull));
}
