//! The sample repository of the demo: `network` → `database` → `app` by `terraform_remote_state`, `worker` beside them, one
//! shared module; and the changes of its pulls. Only `terraform_data`, so that nothing has to be downloaded.

use std::path::Path;

/// A file of a commit: its path, and its content or its removal.
pub type Change = (String, Option<String>);

/// The roots, in an order in which they can be applied for the first time.
pub const ROOTS: &[&str] = &["network", "database", "app", "worker"];

/// The repository before any pull. States lie in `states`, outside every checkout.
pub fn repository(states: &Path) -> Vec<(String, String)> {
    let root = |name: &str, body: &str| (format!("{name}/main.tf"), format!("{}\n{body}", backend(states, name)));
    vec![
        ("README.md".to_owned(), README.to_owned()),
        ("modules/labels/main.tf".to_owned(), LABELS.to_owned()),
        root("network", &network(&Network::default())),
        root("database", &database(states)),
        root("app", &app(states)),
        root("worker", WORKER),
    ]
}

/// The first pull: another address range replaces the VPC, a zone comes, the old gateway goes.
pub fn new_range(states: &Path) -> Vec<Change> {
    let changed = Network { range: "10.20.0.0/16", zones: r#""a", "b", "c""#, gateway: "" };
    vec![("network/main.tf".to_owned(), Some(format!("{}\n{}", backend(states, "network"), network(&changed))))]
}

/// The second pull: the same root, so that it waits for the first.
pub fn flow_log() -> Vec<Change> {
    vec![("network/flow_log.tf".to_owned(), Some(FLOW_LOG.to_owned()))]
}

fn backend(states: &Path, name: &str) -> String {
    format!(
        "terraform {{\n  backend \"local\" {{\n    path = \"{}\"\n  }}\n}}\n",
        states.join(format!("{name}.tfstate")).display()
    )
}

fn reads(states: &Path, name: &str) -> String {
    format!(
        "data \"terraform_remote_state\" \"{name}\" {{\n  backend = \"local\"\n  config = {{\n    path = \"{}\"\n  }}\n}}\n",
        states.join(format!("{name}.tfstate")).display()
    )
}

struct Network {
    range: &'static str,
    zones: &'static str,
    gateway: &'static str,
}

impl Default for Network {
    fn default() -> Self {
        Self { range: "10.0.0.0/16", zones: r#""a", "b""#, gateway: GATEWAY }
    }
}

const GATEWAY: &str = r#"
resource "terraform_data" "old_gateway" {
  input = "gateway of 2019"
}
"#;

fn network(network: &Network) -> String {
    format!(
        r#"module "labels" {{
  source = "../modules/labels"
  name   = "network"
}}

locals {{
  range = "{}"
  zones = toset([{}])
}}

resource "terraform_data" "vpc" {{
  input            = {{ range = local.range, labels = module.labels.all }}
  triggers_replace = [local.range]

  provisioner "local-exec" {{
    command = "sleep 1"
  }}
}}

resource "terraform_data" "subnet" {{
  for_each = local.zones
  input    = {{ vpc = terraform_data.vpc.id, zone = each.key }}
}}
{}
output "vpc_id" {{
  value = terraform_data.vpc.id
}}

output "zones" {{
  value = sort(local.zones)
}}
"#,
        network.range, network.zones, network.gateway
    )
}

fn database(states: &Path) -> String {
    format!(
        r#"{}
resource "terraform_data" "subnet_group" {{
  input = data.terraform_remote_state.network.outputs.vpc_id
}}

resource "terraform_data" "orders" {{
  input            = {{ engine = "postgres 16", group = terraform_data.subnet_group.id }}
  triggers_replace = [data.terraform_remote_state.network.outputs.vpc_id]

  provisioner "local-exec" {{
    command = "sleep 1"
  }}
}}

output "endpoint" {{
  value = "orders-${{substr(terraform_data.orders.id, 0, 8)}}.internal"
}}
"#,
        reads(states, "network")
    )
}

fn app(states: &Path) -> String {
    format!(
        r#"{}
module "labels" {{
  source = "../modules/labels"
  name   = "app"
}}

locals {{
  dsn = "postgres://${{data.terraform_remote_state.database.outputs.endpoint}}/orders"
}}

resource "terraform_data" "dsn" {{
  input = local.dsn
}}

resource "terraform_data" "service" {{
  input = {{ dsn = terraform_data.dsn.output, labels = module.labels.all }}
}}
"#,
        reads(states, "database")
    )
}

const WORKER: &str = r#"resource "terraform_data" "queue" {
  input = "jobs"
}

resource "terraform_data" "worker" {
  input = { queue = terraform_data.queue.id, count = 2 }
}
"#;

const LABELS: &str = r#"variable "name" {
  type = string
}

output "all" {
  value = { team = "shop", part = var.name }
}
"#;

const FLOW_LOG: &str = r#"resource "terraform_data" "flow_log" {
  input = terraform_data.vpc.id
}
"#;

const README: &str = "# infra

`network` → `database` → `app`, each reads the state of the one before; `worker` stands beside them.
";
