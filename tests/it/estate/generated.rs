//! Configurations made by chance, for comparison with the tool: resources that use earlier ones in every way that the language has. The
//! same number makes the same configuration. It runs nothing.

use std::fmt::Write as _;

/// A configuration of one root and one module that it calls several times.
pub struct Generated {
    chance: Chance,
    root: String,
    /// Expressions whose value depends on something.
    sources: Vec<String>,
    /// Resources alone, for `depends_on` and `replace_triggered_by`.
    resources: Vec<String>,
}

/// The files of a configuration with so many resources.
pub fn files(seed: u64, resources: usize) -> Vec<(String, String)> {
    let mut made = Generated { chance: Chance(seed), root: String::new(), sources: Vec::new(), resources: Vec::new() };
    made.sources.push("var.start".to_owned());
    made.root.push_str("terraform {\n  backend \"local\" {}\n}\nvariable \"start\" {\n  default = \"s\"\n}\n");
    for number in 0..resources {
        match made.chance.below(6) {
            0 => made.local(number),
            1 => made.module(number),
            _ => made.resource(number),
        }
    }
    vec![("r/main.tf".to_owned(), made.root), ("m/main.tf".to_owned(), MODULE.to_owned())]
}

const MODULE: &str = r#"
variable "in" {}
variable "aside" {
  default = null
}
locals {
  through = { value = var.in }
}
resource "terraform_data" "used" {
  input = local.through.value
}
resource "terraform_data" "second" {
  count = length(terraform_data.used.input) > 0 ? 1 : 0
  input = var.aside
}
output "direct" {
  value = var.in
}
output "made" {
  value = terraform_data.used.id
}
output "waited" {
  value      = "w"
  depends_on = [terraform_data.second]
}
"#;

impl Generated {
    fn source(&mut self) -> String {
        let at = self.chance.below(self.sources.len());
        self.sources[at].clone()
    }

    fn local(&mut self, number: usize) {
        let (a, b) = (self.source(), self.source());
        let value = match self.chance.below(4) {
            0 => format!("{{ a = {a}, b = [{b}] }}"),
            1 => format!("\"x-${{{a}}}-%{{ if true }}${{{b}}}%{{ endif }}\""),
            2 => format!("try([for it in [{a}] : {{ k = it, v = {b} }}], null)"),
            _ => format!("coalesce(jsonencode({a}), jsonencode({b}))"),
        };
        let _ = write!(self.root, "locals {{\n  l{number} = {value}\n}}\n");
        self.sources.push(format!("jsonencode(local.l{number})"));
    }

    fn module(&mut self, number: usize) {
        let (a, b) = (self.source(), self.source());
        let (many, key) = match self.chance.below(3) {
            0 => ("  count = 2\n", "[0]"),
            1 => ("  for_each = toset([\"k\"])\n", "[\"k\"]"),
            _ => ("", ""),
        };
        let aside = if self.chance.below(2) == 0 { format!("  aside = {b}\n") } else { String::new() };
        let waits = self.waits();
        let _ = write!(self.root, "module \"m{number}\" {{\n{many}  source = \"../m\"\n  in = {a}\n{aside}{waits}}}\n");
        for output in ["direct", "made", "waited"] {
            self.sources.push(format!("module.m{number}{key}.{output}"));
        }
        self.sources.push(format!("jsonencode(module.m{number})"));
    }

    fn waits(&mut self) -> String {
        if self.resources.is_empty() || self.chance.below(3) > 0 {
            return String::new();
        }
        let at = self.chance.below(self.resources.len());
        format!("  depends_on = [{}]\n", self.resources[at])
    }

    fn resource(&mut self, number: usize) {
        let (a, b) = (self.source(), self.source());
        let (body, key) = match self.chance.below(7) {
            0 => (format!("  count = length([{a}])\n  input = {b}\n"), "[0]"),
            1 => (
                format!("  for_each = {{ k = \"v\" }}\n  input = [each.value, {a}]\n  triggers_replace = {b}\n"),
                "[\"k\"]",
            ),
            2 => (
                format!(
                    "  lifecycle {{\n    precondition {{\n      condition = {a} != \"no\"\n      error_message = \"no ${{jsonencode({b})}}\"\n    }}\n  }}\n"
                ),
                "",
            ),
            3 => (
                format!(
                    "  provisioner \"local-exec\" {{\n    command = \"echo ${{jsonencode({a})}}\"\n    environment = {{ X = jsonencode({b}) }}\n  }}\n"
                ),
                "",
            ),
            4 => (
                format!(
                    "  input = <<-EOT\n    %{{ for x in [{a}] ~}}\n    ${{jsonencode(x)}} ${{jsonencode({b})}}\n    %{{ endfor ~}}\n  EOT\n"
                ),
                "",
            ),
            _ => (format!("  input = {a}\n"), ""),
        };
        let trigger = match self.chance.below(4) {
            0 if !self.resources.is_empty() => {
                let at = self.chance.below(self.resources.len());
                format!("  lifecycle {{\n    replace_triggered_by = [{}]\n  }}\n", self.resources[at])
            }
            _ => self.waits(),
        };
        // One `lifecycle` a resource.
        let trigger = if body.contains("lifecycle") { String::new() } else { trigger };
        let _ = write!(self.root, "resource \"terraform_data\" \"t{number}\" {{\n{body}{trigger}}}\n");
        self.sources.push(format!("terraform_data.t{number}{key}.id"));
        if !key.is_empty() {
            self.sources.push(format!("jsonencode(terraform_data.t{number})"));
        }
        self.resources.push(format!("terraform_data.t{number}"));
    }
}

/// Numbers that look like chance and are the same each time (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let most = u64::try_from(most.max(1)).unwrap_or(1);
        usize::try_from((mixed ^ (mixed >> 31)) % most).unwrap_or_default()
    }
}
