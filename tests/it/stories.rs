//! Stories: what people do on a pull request, from the first push to the merge, on the sandbox forge with real Terraform. Each
//! reads like a session; each looks only at what people see, and at the states.

mod abroad;
mod apply;
mod buglog;
mod buglog_comments;
mod buglog_forks;
mod buglog_heads;
mod buglog_locks;
mod buglog_managed;
mod buglog_output;
mod buglog_roots;
mod buglog_statuses;
mod commands;
mod crash;
mod disturbed;
mod faults;
mod hub;
mod killed;
mod linked;
mod locks;
mod neighbours;
mod notes;
mod plan;
mod report;
mod restart;
mod rows;
mod trouble;
mod unsaved;
mod waves;

/// The estate of most stories: `net` ← `app` by remote state, `solo` beside them.
pub(crate) const NET: &str = r#"terraform {
  backend "local" { path = "$S/net.tfstate" }
}
variable "cidr" { default = "10.0.0.0/16" }
resource "terraform_data" "vpc" {
  input            = var.cidr
  triggers_replace = [var.cidr]
}
output "cidr" { value = terraform_data.vpc.output }
output "vpc_id" { value = terraform_data.vpc.id }
"#;

/// Reads `net`.
pub(crate) const APP: &str = r#"terraform {
  backend "local" { path = "$S/app.tfstate" }
}
data "terraform_remote_state" "net" {
  backend = "local"
  config  = { path = "$S/net.tfstate" }
}
resource "terraform_data" "svc" { input = data.terraform_remote_state.net.outputs.vpc_id }
"#;

/// Depends on nothing.
pub(crate) const SOLO: &str = r#"terraform {
  backend "local" { path = "$S/solo.tfstate" }
}
resource "terraform_data" "a" { input = "1" }
"#;

/// All three.
pub(crate) const ESTATE: &[(&str, &str)] =
    &[("net/main.tf", NET), ("app/main.tf", APP), ("solo/main.tf", SOLO), ("README.md", "# estate\n")];

/// `solo` with another value.
pub(crate) fn solo(value: &str) -> String {
    SOLO.replace("\"1\"", &format!("\"{value}\""))
}

/// `net` with another address range: a replacement.
pub(crate) fn net(cidr: &str) -> String {
    NET.replace("10.0.0.0/16", cidr)
}
