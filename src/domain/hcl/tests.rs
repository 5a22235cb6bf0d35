//! Both syntaxes give the facts that an estate needs, and what cannot be read hides only itself.

use super::*;

#[test]
fn only_files_that_the_tools_read_are_wanted() {
    for path in [
        "a/main.tf",
        "x.tofu",
        "cdk.tf.json",
        "x.tofu.json",
        "e/dev.tfvars",
        "t.tfvars.json",
        "p.s3.tfbackend",
        "dev.net.backend",
    ] {
        assert!(is_wanted(path), "{path}");
    }
    for path in [
        "backend.tf.example",
        "main.tf.disabled",
        "x.tf.j2",
        "t.tftest.hcl",
        ".hidden.tf",
        "main.tf~",
        "#a.tf#",
        "p.tfvars.example",
        "README.md",
    ] {
        assert!(!is_wanted(path), "{path}");
    }
}

#[test]
fn references_are_whole_also_in_templates_directives_and_lifecycles() {
    let facts = parse(
        "main.tf",
        br#"resource "terraform_data" "a" {
  input      = "%{ for x in data.terraform_remote_state.net.outputs.ids ~}${x}%{ endfor }"
  other      = [for k, v in local.m : v if var.on]
  some       = module.m["one"].out
  each       = module.n[each.key].out
  depends_on = [terraform_data.b]
  lifecycle {
    replace_triggered_by = [terraform_data.c[0].id]
    precondition {
      condition = length(local.checked) > 0
    }
  }
  provisioner "local-exec" {
    command = terraform_data.d.output
  }
}
"#,
    );
    let references: Vec<String> = facts.resources[0].references.iter().map(|path| path.join(".")).collect();
    for wanted in [
        "data.terraform_remote_state.net.outputs.ids",
        "local.m",
        "var.on",
        "module.m.one.out",
        "module.n.*.out",
        "terraform_data.b",
        "terraform_data.c.0.id",
        "local.checked",
        "terraform_data.d.output",
    ] {
        assert!(references.iter().any(|path| path == wanted), "{wanted} in {references:?}");
    }
    assert!(facts.holes.is_empty());
}

#[test]
fn json_and_native_syntax_say_the_same() {
    let native = parse(
        "a.tf",
        br#"
terraform {
  backend "local" {
    path = "/home/dev/x.tfstate"
  }
}
data "terraform_remote_state" "n" {
  backend = "remote"
  config = { organization = "o", workspaces = { name = "w-${var.env}" } }
}
module "m" {
  source = "./m"
  depends_on = [terraform_data.a]
  providers = { aws = aws.west }
}
"#,
    );
    let mut json = parse("a.tf.json", br#"{"terraform":{"backend":{"local":{"path":"/home/dev/x.tfstate"}}},
      "data":{"terraform_remote_state":{"n":{"backend":"remote","config":{"organization":"o","workspaces":{"name":"w-${var.env}"}}}}},
      "module":{"m":{"//":"x","source":"./m","depends_on":["terraform_data.a"],"providers":{"aws":"aws.west"}}}}"#);
    json.backends[0].line = native.backends[0].line;
    json.reads[0].line = native.reads[0].line;
    json.modules[0].line = native.modules[0].line;
    assert_eq!(native.backends[0].line, 2);
    assert_eq!(native, json);
}

#[test]
fn a_bad_block_hides_itself_and_a_bad_file_is_a_hole() {
    let text = b"\xef\xbb\xbfterraform {\r\n  backend \"s3\" {}\r\n}\r\nresource \"a\" \"b\" {\r\n  \"Name\" = \r\n}\r\noutput \"o\" {\r\n  value = 1\r\n}\r\n";
    let facts = parse("main.tf", text);
    assert_eq!((facts.backends.len(), facts.outputs.len(), facts.holes.len()), (1, 1, 1));
    assert!((4..=6).contains(&facts.holes[0].line), "{:?}", facts.holes);
    assert_eq!(parse("terraform.tfvars", b"\0GITCRYPT\0xx").holes.len(), 1);
    assert_eq!(parse("x.tf.json", b"{").holes.len(), 1);
}

#[test]
fn file_calls_are_found_wherever_they_stand() {
    let facts = parse(
        "main.tf",
        br#"
locals {
  all = { for f in fileset("../env", "*.json") : f => jsondecode(file("../env/${f}")) }
  t   = templatefile("${path.module}/t.tpl", { a = filebase64(var.f) })
}
"#,
    );
    let functions: Vec<&str> = facts.files.iter().map(|call| call.function.as_str()).collect();
    assert_eq!(functions, ["fileset", "file", "templatefile", "filebase64"]);
}

#[test]
fn facts_survive_their_serialisation() {
    let facts = parse("main.tf", b"locals {\n  a = var.x == 1 ? [for v in var.l : v.*.id] : -2\n}\n");
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<FileFacts>(&text).unwrap(), facts);
}

#[test]
fn nesting_without_end_is_a_hole_and_no_overflow() {
    for (open, close) in [("[", "]"), ("(", ")"), ("{ a = ", "}"), ("!", ""), ("- ", ""), ("\"${", "}\"")] {
        let text = format!("locals {{\n  a = {}1{}\n}}\n", open.repeat(100_000), close.repeat(100_000));
        let facts = parse("a.tf", text.as_bytes());
        assert_eq!(facts.holes.len(), 1, "{open}");
    }
}

#[test]
fn of_a_key_that_is_written_twice_the_last_counts() {
    let text = "locals {\n  a = {\n    k = 1\n    k = 2\n    \"k\" = 3\n    \"k\" = 4\n    \"k\" = 5\n    k = 6\n  }\n}\nresource \"a\" \"b\" {\n  tags = { x = 1, y = 2, x = local.c }\n}\n";
    let facts = parse("m.tf", text.as_bytes());
    assert_eq!(facts.holes, []);
    let Some((_, Expr::Object(entries))) = facts.locals.first() else { panic!("{:?}", facts.locals) };
    assert_eq!(entries.len(), 6);
    assert_eq!(entries.last().map(|(key, _)| key.as_text()), Some(Some("k")));
    assert_eq!((facts.resources.len(), facts.resources[0].references.len()), (1, 1));
    let many: String = (0..500).map(|_| "k = 1\n").collect();
    assert_eq!(parse("m.tf", format!("a = {{\n{many}}}\n").as_bytes()).holes.len(), 1);
}
