//! What the configuration itself calls sensitive: variables and outputs by name, and the values that stand in its files.
//! It is known before the tool has made any plan, so that an early error can be masked too. It evaluates nothing.

use std::collections::BTreeSet;

use super::Secrets;
use crate::domain::hcl::{self, Expr, FileFacts, Named};

/// Parts of the name of a backend's argument that make its value a secret.
const WORDS: [&str; 9] =
    ["password", "secret", "token", "access_key", "sas", "conn_str", "credentials", "encryption_key", "passphrase"];

/// What the files of a checkout call sensitive.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    variables: BTreeSet<String>,
    outputs: BTreeSet<String>,
    secrets: Secrets,
}

impl Declared {
    /// Learns names and defaults from configuration files, then what they pass to sensitive variables of modules.
    pub fn of(files: &[FileFacts]) -> Self {
        let mut declared = Self::default();
        for file in files {
            for variable in file.variables.iter().filter(|variable| variable.sensitive) {
                declared.variables.insert(variable.name.clone());
                if let Some(default) = &variable.default {
                    declared.take(default);
                }
            }
            declared.outputs.extend(file.outputs.iter().filter(|o| o.sensitive).map(|output| output.name.clone()));
            for backend in &file.backends {
                declared.add_backend(&backend.args);
            }
        }
        for module in files.iter().flat_map(|file| &file.modules) {
            declared.add_variables(&module.args);
        }
        declared
    }

    /// Learns the values of a var file.
    pub fn add_variables(&mut self, values: &[Named]) {
        for (name, value) in values {
            if self.variables.contains(name) {
                self.take(value);
            }
        }
    }

    /// Learns a value as `-var` or the environment gives it: a text, or an expression when the variable has another type.
    pub fn add_variable(&mut self, name: &str, value: &str) {
        if self.variables.contains(name) {
            self.secrets.add(value);
            self.add_variables(&hcl::parse("value.tfvars", format!("{name} = {value}\n").as_bytes()).values);
        }
    }

    /// Learns the arguments of a backend.
    pub fn add_backend(&mut self, args: &[Named]) {
        for (name, value) in args {
            if WORDS.iter().any(|word| name.contains(word)) {
                self.take(value);
            }
        }
    }

    /// Whether any root calls an output of this name sensitive.
    pub fn has_output(&self, name: &str) -> bool {
        self.outputs.contains(name)
    }

    /// The values.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    fn take(&mut self, value: &Expr) {
        let secrets = &mut self.secrets;
        value.visit(&mut |part| {
            if let Expr::Literal(json) = part {
                secrets.add_all(json);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_files_arguments_and_backends_are_known_without_a_plan() {
        let root = r#"
            terraform {
              backend "pg" { conn_str = "postgres-conn-1" }
            }
            variable "pw" {
              sensitive = true
              default   = { a = ["in-default-1"], b = <<-EOT
                in-heredoc-1
              EOT
              }
            }
            variable "open" { default = "plain-default" }
            module "m" {
              source = "./m"
              key    = "in-argument-1"
              size   = "plain-argument"
            }
            output "o" {
              value     = var.pw
              sensitive = true
            }
        "#;
        let module = "variable \"key\" {\n  sensitive = true\n}\n";
        let mut declared =
            Declared::of(&[hcl::parse("main.tf", root.as_bytes()), hcl::parse("m/v.tf", module.as_bytes())]);
        declared.add_variables(&hcl::parse("a.tfvars", b"pw = \"in-file-1\"\nopen = \"plain-file\"\n").values);
        declared.add_variable("pw", "{ x = \"in-environment-1\" }");
        declared.add_variable("open", "plain-environment");
        let secrets = declared.secrets();
        for value in "postgres-conn-1 in-default-1 in-heredoc-1 in-argument-1 in-file-1 in-environment-1".split(' ') {
            assert!(secrets.is_secret(value), "{value}");
        }
        for value in "plain-default plain-argument plain-file plain-environment".split(' ') {
            assert!(!secrets.is_secret(value), "{value}");
        }
        assert!(declared.has_output("o") && !declared.has_output("x"));
    }
}
