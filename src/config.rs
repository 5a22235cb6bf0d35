//! The server's settings: `tidegate.toml` and `TIDEGATE_…` variables, checked as a whole at the start so that all
//! that is wrong is said at once. It opens no connection and generates no key.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use secrecy::{SecretBox, SecretString};
use url::Url;

use crate::domain::managed::Managed;
use crate::domain::outside::CrossRepo;

mod given;
mod table;

use given::Given;
pub use table::{Form, SettingRow, table};

/// Everything the server must know at its start.
#[derive(Debug)]
pub struct Settings {
    /// Address and port of the server.
    pub listen: SocketAddr,
    /// Where people and jobs reach it.
    pub url: Url,
    /// Directory of the database, mirrors and generated keys.
    pub data_dir: PathBuf,
    /// The database's URL; it may hold a password.
    pub store: SecretString,
    /// GitHub.
    pub github: GitHub,
    /// Which pulls are planned, and which programs may command.
    pub pulls: Managed,
    /// Where and how jobs run.
    pub executor: Executor,
    /// Where versions of the tools come from; `None`: nothing is downloaded.
    pub tools: Option<Tools>,
    /// The key that encrypts saved plans; `None`: one generated in `data_dir/keys`.
    pub encryption_key: Option<SecretBox<[u8; 32]>>,
    /// The largest webhook that is read.
    pub webhook_bytes: usize,
    /// What a pull may say of other repositories.
    pub cross_repo: CrossRepo,
}

/// `[github]`.
#[derive(Debug)]
pub struct GitHub {
    /// Base of the API.
    pub url: Url,
    /// Base of the pages and of git over https.
    pub web_url: Url,
    /// As whom we act; `None`: as the App that `/setup/github` made, or will make.
    pub identity: Option<GitHubIdentity>,
}

/// Who we are on GitHub, as the settings say.
#[derive(Debug)]
pub struct GitHubIdentity {
    /// As whom we act.
    pub auth: GitHubAuth,
    /// Signs webhooks.
    pub webhook_secret: SecretString,
}

/// As whom we act on GitHub.
#[derive(Debug)]
pub enum GitHubAuth {
    /// A GitHub App.
    App {
        /// Its id.
        id: u64,
        /// Its private key, PEM.
        private_key: SecretString,
    },
    /// A user's token.
    Token(SecretString),
}

/// `[executor]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executor {
    /// Where jobs run.
    pub kind: ExecutorKind,
    /// Jobs at once.
    pub parallelism: usize,
    /// Names or patterns of the variables that jobs may see.
    pub env: Vec<String>,
    /// A job silent for so long has failed.
    pub heartbeat_timeout: Duration,
    /// How long an apply waits for a locked state.
    pub lock_timeout: Duration,
    /// A plan that runs longer is interrupted.
    pub plan_timeout: Duration,
    /// The terraform program, when it is not the one on the path.
    pub terraform: Option<PathBuf>,
    /// The tofu program, when it is not the one on the path.
    pub tofu: Option<PathBuf>,
}

/// `[tools]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// Releases of Terraform.
    pub terraform: ReleaseSite,
    /// Releases of OpenTofu.
    pub tofu: ReleaseSite,
}

/// A release site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseSite {
    /// Its address.
    pub url: Url,
    /// The file of the key that signs there, when it is not the one that we know.
    pub key: Option<PathBuf>,
}

/// Where jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorKind {
    /// Child processes on this machine.
    Local,
}

/// Something wrong in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `tidegate.toml:LINE`, a variable's name, or the key that is missing.
    pub place: String,
    /// What is wrong and what would be right: a whole sentence, no value of a secret in it.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Reads the file, when there is one, and the environment. `cores` sets the default of `executor.parallelism`.
pub fn load(path: Option<&Path>, env: &BTreeMap<String, String>, cores: usize) -> Result<Settings, Vec<Problem>> {
    let text = path.map_or_else(|| Ok(String::new()), std::fs::read_to_string).map_err(|error| {
        let place = path.unwrap_or(Path::new("tidegate.toml")).display().to_string();
        vec![Problem { place, what: format!("The file cannot be read: {error}.") }]
    })?;
    parse(&text, env, &|path| std::fs::read_to_string(path), cores)
}

/// The settings that a file's text and an environment give; only secret files are read, by the function passed in.
pub fn parse(
    text: &str,
    env: &BTreeMap<String, String>,
    read_secret_file: &dyn Fn(&str) -> io::Result<String>,
    cores: usize,
) -> Result<Settings, Vec<Problem>> {
    let mut problems = Vec::new();
    let given = given::collect(text, env, read_secret_file, &mut problems);
    let mut reader = Reader { given, problems };
    let settings = reader.settings(cores);
    match settings {
        Some(settings) if reader.problems.is_empty() => Ok(settings),
        _ => Err(reader.problems),
    }
}

struct Reader {
    given: BTreeMap<&'static str, Given>,
    problems: Vec<Problem>,
}

impl Reader {
    /// Every part is read before any is missed, so that all problems are found.
    fn settings(&mut self, cores: usize) -> Option<Settings> {
        let listen =
            self.value("listen", "an address and a port, `127.0.0.1:4141`", |text| SocketAddr::from_str(text).ok());
        let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 4141)));
        let url = self.url("url", &format!("http://{listen}"));
        let data_dir = self.text("data_dir").map_or_else(|| PathBuf::from(".tidegate"), PathBuf::from);
        let is_store =
            |text: &str| ["sqlite:", "postgres://", "postgresql://"].iter().any(|kind| text.starts_with(kind));
        let store = self.value("store.url", "a URL that begins with `sqlite:` or `postgres://`", |text| {
            is_store(text).then(|| text.to_owned())
        });
        let store = store.unwrap_or_else(|| format!("sqlite://{}", data_dir.join("tidegate.db").display()));
        let github = self.github();
        let pulls = self.pulls();
        let executor = self.executor(cores);
        let tools = self.tools();
        let encryption_key =
            self.value("keys.encryption", "32 bytes in base64 or hex", key).map(|key| SecretBox::new(Box::new(key)));
        let webhook_bytes = self.value("limits.webhook_bytes", "a number of bytes, at least 1024", |text| {
            text.parse().ok().filter(|n| *n >= 1024)
        });
        let cross_repo = self.value("cross_repo", "`names`, `counts` or `off`", |text| text.parse().ok());
        Some(Settings {
            listen,
            url: url?,
            data_dir,
            store: store.into(),
            github: github?,
            pulls,
            executor,
            tools,
            encryption_key,
            webhook_bytes: webhook_bytes.unwrap_or(26_214_400),
            cross_repo: cross_repo.unwrap_or_default(),
        })
    }

    fn github(&mut self) -> Option<GitHub> {
        let url = self.url("github.url", "https://api.github.com");
        let web_url = self.url("github.web_url", "https://github.com");
        let identity = self.identity();
        Some(GitHub { url: url?, web_url: web_url?, identity: identity? })
    }

    /// `Some(None)` when nothing of it is given: then the App is made in the browser.
    fn identity(&mut self) -> Option<Option<GitHubIdentity>> {
        let parts = ["github.app_id", "github.private_key", "github.token", "github.webhook_secret"];
        if parts.iter().all(|key| !self.given.contains_key(key)) {
            return Some(None);
        }
        let webhook_secret = self.text("github.webhook_secret");
        if webhook_secret.is_none() {
            self.missing("github.webhook_secret", "It must be set: without it anybody could send webhooks.");
        }
        let id = self.value("github.app_id", "the App's number", |text| text.parse::<u64>().ok().filter(|id| *id > 0));
        let pem = |text: &str| text.contains("-----BEGIN").then(|| text.replace("\\n", "\n"));
        let private_key = self.value("github.private_key", "a private key in PEM, with a line `-----BEGIN …`", pem);
        let token = self.text("github.token");
        let said = |key: &str| self.given.contains_key(key);
        let (has_id, has_key) = (said("github.app_id"), said("github.private_key"));
        match (has_id, has_key, token.is_some()) {
            (false, false, false) => {
                self.missing(
                    "github",
                    "Set `github.app_id` and `github.private_key` of an App, or `github.token`; or set nothing of an App, \
                     and make one in the browser at `/setup/github`.",
                );
            }
            (true, false, _) => self.missing("github.private_key", "It must be set together with `github.app_id`."),
            (false, true, _) => self.missing("github.app_id", "It must be set together with `github.private_key`."),
            (true, true, true) => self.missing("github", "Both an App and a token are set; keep one."),
            _ => {}
        }
        let auth = match (id, private_key, token) {
            (Some(id), Some(key), _) => GitHubAuth::App { id, private_key: key.into() },
            (_, _, Some(token)) => GitHubAuth::Token(token.into()),
            _ => return None,
        };
        Some(Some(GitHubIdentity { auth, webhook_secret: webhook_secret?.into() }))
    }

    fn pulls(&mut self) -> Managed {
        let branches = self.list("pulls.branches");
        for name in branches.iter().filter(|name| globset::Glob::new(name).is_err()) {
            self.missing("pulls.branches", &format!("`{name}` is no name or pattern of branches."));
        }
        let bots = self.list("pulls.bots").iter().map(|login| login.trim_start_matches('@').into()).collect();
        Managed { branches, bots }
    }

    /// The items of a list; none when it is not given.
    fn list(&self, key: &str) -> Vec<String> {
        let text = self.text(key).unwrap_or_default();
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    fn executor(&mut self, cores: usize) -> Executor {
        let kind = |text: &str| (text == "local").then_some(ExecutorKind::Local);
        let at_once = |text: &str| text.parse::<usize>().ok().filter(|n| (1..=1000).contains(n));
        let env = self.list("executor.env");
        for name in env.iter().filter(|name| globset::Glob::new(name).is_err()) {
            self.missing("executor.env", &format!("`{name}` is no name or pattern of variables."));
        }
        let time = "a time like `90s`, `10m` or `1h`";
        Executor {
            kind: self.value("executor.kind", "`local`", kind).unwrap_or(ExecutorKind::Local),
            parallelism: self
                .value("executor.parallelism", "a number from 1 to 1000", at_once)
                .unwrap_or(cores.max(1) * 2),
            env,
            heartbeat_timeout: self
                .value("executor.heartbeat_timeout", time, duration)
                .unwrap_or(Duration::from_secs(600)),
            lock_timeout: self.value("executor.lock_timeout", time, duration).unwrap_or(Duration::from_secs(60)),
            plan_timeout: self.value("executor.plan_timeout", time, duration).unwrap_or(Duration::from_secs(3600)),
            terraform: self.text("executor.terraform").map(PathBuf::from),
            tofu: self.text("executor.tofu").map(PathBuf::from),
        }
    }

    fn tools(&mut self) -> Option<Tools> {
        let on = |text: &str| match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        let download = self.value("tools.download", "`on` or `off`", on).unwrap_or(true);
        let terraform = self.url("tools.terraform_url", "https://releases.hashicorp.com/terraform");
        let tofu = self.url("tools.tofu_url", "https://github.com/opentofu/opentofu/releases/download");
        let key = |reader: &Self, name: &str| reader.text(name).map(PathBuf::from);
        let terraform = ReleaseSite { url: terraform?, key: key(self, "tools.terraform_key") };
        let tofu = ReleaseSite { url: tofu?, key: key(self, "tools.tofu_key") };
        download.then_some(Tools { terraform, tofu })
    }

    /// A value that is not blank.
    fn text(&self, key: &str) -> Option<String> {
        self.given.get(key).map(|given| given.text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The problem never repeats what was given: it may be a secret.
    fn value<T>(&mut self, key: &str, right: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let given = self.given.get(key)?;
        let value = read(given.text.trim());
        if value.is_none() {
            self.problems.push(given.problem(format!("`{key}` must be {right}.")));
        }
        value
    }

    fn url(&mut self, key: &str, default: &str) -> Option<Url> {
        let web =
            |text: &str| Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        // Links in notes begin with it, and everybody reads those.
        let bare = |text: &str| {
            web(text).filter(|url| url.username().is_empty() && url.password().is_none() && url.query().is_none())
        };
        if self.given.contains_key(key) {
            self.value(key, "a URL with `http://` or `https://`, without a user, a password or a query", bare)
        } else {
            web(default)
        }
    }

    fn missing(&mut self, key: &str, what: &str) {
        self.problems.push(Problem { place: key.to_owned(), what: what.to_owned() });
    }
}

fn key(text: &str) -> Option<[u8; 32]> {
    let bytes = hex::decode(text).ok().filter(|bytes| bytes.len() == 32);
    let bytes = bytes.or_else(|| base64::engine::general_purpose::STANDARD.decode(text).ok());
    bytes?.try_into().ok()
}

fn duration(text: &str) -> Option<Duration> {
    let (number, seconds) = match text.chars().last()? {
        's' => (&text[..text.len() - 1], 1),
        'm' => (&text[..text.len() - 1], 60),
        'h' => (&text[..text.len() - 1], 3600),
        _ => (text, 1),
    };
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests;
