//! Every setting of the server in one table: its key, its variable, its default and its meaning. Reading, the
//! "did you mean" and the README's table come from here; it holds no value.

/// A row of the settings table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// Its key in `tidegate.toml`, with the section in front.
    pub key: &'static str,
    /// Its environment variable.
    pub env: String,
    /// What holds when it is not set, in words.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Whether it can also be given as the path of a file: `<key>_file`, `<env>_FILE`.
    pub form: Form,
}

/// How a setting's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One value.
    Plain,
    /// A secret, also by the path of a file.
    Secret,
    /// Several texts; in the environment separated by commas.
    List,
}

use Form::{List, Plain, Secret};

const ROWS: [(&str, Form, &str, &str); 28] = [
    ("listen", Plain, "127.0.0.1:4141", "address and port of the server"),
    ("url", Plain, "http://<listen>", "where people and jobs reach the server"),
    ("data_dir", Plain, ".tidegate", "directory of the database, mirrors and generated keys"),
    ("store.url", Secret, "SQLite in data_dir", "database: `sqlite:…` or `postgres://…`"),
    (
        "cross_repo",
        Plain,
        "counts",
        "what a pull says of readers in other repositories: `names`, `counts`, or `off`, which matches nothing across them",
    ),
    ("github.url", Plain, "https://api.github.com", "base of GitHub's API"),
    ("github.web_url", Plain, "https://github.com", "base of GitHub's pages and of git over https"),
    ("github.app_id", Plain, "the App that `/setup/github` made", "id of the GitHub App"),
    ("github.private_key", Secret, "none", "the App's private key, PEM"),
    ("github.token", Secret, "none", "a token, where no App is used"),
    (
        "github.webhook_secret",
        Secret,
        "that of `/setup/github`",
        "secret that signs webhooks; must be set beside an App or a token",
    ),
    (
        "pulls.branches",
        List,
        "all",
        "names or patterns (`release/*`) of the branches into which pulls are planned; any other pull gets two green checks and nothing else",
    ),
    (
        "pulls.bots",
        List,
        "none",
        "logins (`renovate[bot]`) of programs whose comments are commands; none of them can approve",
    ),
    ("executor.kind", Plain, "local", "where jobs run: `local`, child processes on this machine"),
    ("executor.parallelism", Plain, "twice the cores", "jobs at once"),
    ("executor.env", List, "empty", "names or patterns (`AWS_*`) of variables that jobs may see"),
    ("executor.heartbeat_timeout", Plain, "10m", "a job silent for so long has failed"),
    ("executor.lock_timeout", Plain, "1m", "an apply waits so long for a state that somebody has locked"),
    ("executor.plan_timeout", Plain, "1h", "a plan that runs longer is interrupted; an apply never is"),
    ("executor.terraform", Plain, "from PATH", "the terraform program"),
    ("executor.tofu", Plain, "from PATH", "the tofu program"),
    (
        "tools.download",
        Plain,
        "on",
        "`on`: an exact version that is not installed is downloaded and its signature checked; `off`",
    ),
    ("tools.terraform_url", Plain, "https://releases.hashicorp.com/terraform", "where releases of Terraform lie"),
    ("tools.terraform_key", Plain, "HashiCorp's", "file of the public key that signs them"),
    (
        "tools.tofu_url",
        Plain,
        "https://github.com/opentofu/opentofu/releases/download",
        "where releases of OpenTofu lie",
    ),
    ("tools.tofu_key", Plain, "none: none is downloaded", "file of the public key that signs them"),
    ("keys.encryption", Secret, "generated in data_dir/keys", "32 bytes in base64 or hex that encrypt saved plans"),
    ("limits.webhook_bytes", Plain, "26214400", "largest webhook that is read"),
];

/// All settings.
pub fn table() -> Vec<SettingRow> {
    let row = |&(key, form, default, meaning): &(&'static str, Form, &'static str, &'static str)| SettingRow {
        key,
        env: format!("TIDEGATE_{}", key.replace('.', "_").to_uppercase()),
        default,
        meaning,
        form,
    };
    ROWS.iter().map(row).collect()
}
