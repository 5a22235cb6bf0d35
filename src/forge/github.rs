//! GitHub as a forge: github.com, an enterprise server, or anything that speaks its API, as an App or with a token.
//! It never retries a call (except once after a 401, with a new token) and never decides anything.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use moka::future::Cache;
use secrecy::{ExposeSecret, SecretString};

use crate::domain::approval::{Permission, Review};
use crate::domain::effect::{CheckReport, Reaction};
use crate::domain::event::Incoming;
use crate::domain::ids::{Login, Sha};
use crate::domain::pull::Seen;
use crate::ports::forge::{CommentDraft, Forge, ForgeError, GitAccess, PullRef, Receipt, RepoRef};

mod access;
mod checks;
mod comments;
mod delivery;
mod identity;
mod paging;
mod people;
mod pulls;
mod refusal;
mod registration;
mod repos;
mod request;
mod wire;

pub use delivery::EVENTS;
pub use registration::{GitHubPlace, Registrar};

use access::Access;
use identity::Identity;
use request::{Answer, Ask, Whose, send};

/// What GitHub allows in one comment, in characters.
const COMMENT_LIMIT: usize = 65_536;

/// How long we believe where a repository is cloned from.
const CLONE_URL_BELIEVED: Duration = Duration::from_secs(50 * 60);

/// Where GitHub is and who we are there.
#[derive(Clone)]
pub struct GitHubConfig {
    /// The root of the REST API: `https://api.github.com`, `https://host/api/v3`, `http://127.0.0.1:PORT`.
    pub api_url: String,
    /// The root of the clone URLs; `None` takes what the API says of each repository.
    pub web_url: Option<String>,
    /// Who we are.
    pub auth: GitHubAuth,
    /// Signs the webhooks.
    pub webhook_secret: SecretString,
    /// The name of this forge in the settings, part of every [`crate::domain::ids::RepoKey`].
    pub forge: String,
}

/// Who we are on GitHub.
#[derive(Clone)]
pub enum GitHubAuth {
    /// A GitHub App: check runs, and a short-lived token per installation. `app-manifest.json` has what it needs;
    /// `contents: write` must be added to it only where a repository sets `merge: auto`.
    App {
        /// The App's id.
        id: u64,
        /// Its private key, in PEM.
        private_key_pem: SecretString,
    },
    /// A plain token: commit statuses. Its account must be ours alone: what it writes is never read as a command.
    Token(SecretString),
}

/// Why GitHub cannot be set up like this.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The API URL is unusable.
    #[error("the GitHub API URL `{url}` cannot be used ({why}); write it like `https://api.github.com`")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The private key is unusable.
    #[error("the GitHub App's private key cannot be read ({0}); give the whole PEM file that GitHub made")]
    Key(String),
    /// Anybody could sign a webhook.
    #[error("the GitHub webhook secret is empty, so anybody could sign a webhook; set the one that the webhook has")]
    EmptySecret,
    /// The token is empty.
    #[error("the GitHub token is empty; set one, or set an App")]
    EmptyToken,
    /// The HTTP client cannot be built.
    #[error("the HTTP client for GitHub cannot be built: {0}")]
    Client(String),
}

/// A GitHub, its calls and its webhooks.
pub struct GitHub {
    forge: String,
    web_url: Option<String>,
    webhook_secret: SecretString,
    identity: Identity,
    access: Access,
    /// Repository name to clone URL, so that a push costs no look-up.
    clone_urls: Cache<String, String>,
}

impl fmt::Debug for GitHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitHub").field("forge", &self.forge).finish_non_exhaustive()
    }
}

impl GitHub {
    /// Makes the clients; asks nothing of the network. Needs a tokio runtime, because each client has a worker task.
    pub fn new(config: GitHubConfig) -> Result<Self, SetupError> {
        if config.webhook_secret.expose_secret().trim().is_empty() {
            return Err(SetupError::EmptySecret);
        }
        let app_id = match &config.auth {
            GitHubAuth::App { id, .. } => Some(*id),
            GitHubAuth::Token(_) => None,
        };
        Ok(Self {
            access: Access::new(&config.api_url, &config.auth)?,
            identity: Identity::new(app_id),
            clone_urls: Cache::builder().max_capacity(10_000).time_to_live(CLONE_URL_BELIEVED).build(),
            forge: config.forge,
            web_url: config.web_url.map(|url| url.trim_end_matches('/').to_owned()),
            webhook_secret: config.webhook_secret,
        })
    }

    /// Finds out who we are, so that webhooks can tell our own comments. Call it before webhooks are taken, and
    /// again later if GitHub was away.
    pub async fn connect(&self) -> Result<(), ForgeError> {
        self.login().await.map(drop)
    }

    /// Sends a call. After a 401, once more with a new token: GitHub has done nothing then.
    async fn ask(&self, whose: Whose<'_>, ask: &Ask) -> Result<Answer, ForgeError> {
        let session = self.access.session(whose).await?;
        let answer = send(session.crab(), ask).await?;
        if answer.status == StatusCode::UNAUTHORIZED && self.access.renews(&session).await {
            let session = self.access.session(whose).await?;
            return session.without_token(send(session.crab(), ask).await?).accepted(ask);
        }
        session.without_token(answer).accepted(ask)
    }
}

#[async_trait]
impl Forge for GitHub {
    async fn pull(&self, pull: &PullRef) -> Result<Seen, ForgeError> {
        self.get_pull(pull).await
    }

    async fn open_pulls(&self, repo: &RepoRef) -> Result<Vec<(u64, Seen)>, ForgeError> {
        self.list_open_pulls(repo).await
    }

    async fn repos(&self) -> Result<Vec<RepoRef>, ForgeError> {
        self.list_repos().await
    }

    async fn repo(&self, name: &str) -> Result<RepoRef, ForgeError> {
        self.get_repo(name).await
    }

    async fn permission(&self, repo: &RepoRef, login: &Login) -> Result<Permission, ForgeError> {
        self.get_permission(repo, login).await
    }

    async fn reviews(&self, pull: &PullRef) -> Result<Vec<Review>, ForgeError> {
        self.newest_reviews(pull).await
    }

    async fn committers(&self, pull: &PullRef) -> Result<Vec<Login>, ForgeError> {
        self.list_committers(pull).await
    }

    async fn team(&self, org: &str, slug: &str) -> Result<Vec<Login>, ForgeError> {
        self.list_team(org, slug).await
    }

    async fn comments(&self, pull: &PullRef) -> Result<Vec<Incoming>, ForgeError> {
        self.list_comments(pull).await
    }

    async fn put_check(
        &self,
        repo: &RepoRef,
        report: &CheckReport,
        receipt: Option<&Receipt>,
    ) -> Result<Receipt, ForgeError> {
        self.write_check(repo, report, receipt).await
    }

    async fn put_comment(&self, pull: &PullRef, comment: &CommentDraft<'_>) -> Result<Receipt, ForgeError> {
        self.write_comment(pull, comment).await
    }

    async fn react(&self, pull: &PullRef, comment: u64, reaction: Reaction) -> Result<(), ForgeError> {
        self.add_reaction(pull, comment, reaction).await
    }

    async fn merge(&self, pull: &PullRef, head: &Sha) -> Result<(), ForgeError> {
        self.merge_pull(pull, head).await
    }

    async fn git_access(&self, repo: &RepoRef) -> Result<GitAccess, ForgeError> {
        self.open_git(repo).await
    }

    fn comment_limit(&self) -> usize {
        COMMENT_LIMIT
    }
}
