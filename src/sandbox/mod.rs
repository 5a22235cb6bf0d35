//! A small forge of our own, speaking GitHub's REST API, webhooks and git over real bare repositories: the default
//! behind `tidegate demo`, and the world in which the stories are tested. Knows nothing of Tidegate's own layers, and
//! keeps nothing but git on disk.

pub mod act;
mod api;
pub mod apps;
pub mod auth;
pub mod faults;
pub mod git;
mod graphql;
pub mod hooks;
mod http;
mod pages;
mod rate;
pub mod refusal;
mod shape;
mod smart;
pub mod tls;
pub mod world;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinHandle;

pub use act::pull::{MergeMethod, NewPull};
pub use act::talk::Verdict;
pub use faults::{Fault, Faults};
pub use hooks::{Delivery, Hooks, Receiver};
pub use refusal::{Answer, Refusal};
pub use tls::Identity;
pub use world::{CheckRun, Comment, Origin, Protection, Pull, PullState, Reaction, Role, Status, Visibility};

use world::{APP_ID, INSTALLATION_ID, Kind, World};

/// How to start.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// Where the bare repositories go.
    pub data_dir: PathBuf,
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// What it speaks.
    pub wire: Wire,
}

/// What the sandbox speaks on its one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// HTTP.
    #[default]
    Plain,
    /// HTTPS only, as this one. Its addresses then say `localhost`, which certificates can name.
    Tls(Identity),
    /// HTTPS as this one, and HTTP on another port. Webhooks tell the address of the first.
    Both(Identity, SocketAddr),
}

impl Wire {
    /// The certificate that a client has to trust.
    pub fn certificate(&self) -> Option<&std::path::Path> {
        match self {
            Self::Plain => None,
            Self::Tls(identity) | Self::Both(identity, _) => Some(&identity.certificate),
        }
    }
}

impl SandboxConfig {
    /// On a free port of this machine.
    pub fn local(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into(), listen: SocketAddr::from(([127, 0, 0, 1], 0)), wire: Wire::Plain }
    }
}

async fn answer<L: axum::serve::Listener<Addr = SocketAddr>>(listener: L, router: axum::Router) {
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the sandbox stopped");
    }
}

/// What the App needs to sign in.
#[derive(Clone, Debug)]
pub struct AppCredentials {
    /// The App's id.
    pub app_id: u64,
    /// The id of its one installation.
    pub installation_id: u64,
    /// Its private key.
    pub private_key: &'static str,
    /// What signs webhooks, unless [`Sandbox::set_hook`] named another.
    pub webhook_secret: &'static str,
}

/// A running sandbox. It stops when dropped. Its methods block for the milliseconds that git takes.
#[derive(Debug)]
pub struct Sandbox {
    world: Arc<World>,
    url: String,
    plain_url: Option<String>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Sandbox {
    /// Listens and answers from now on. Needs a tokio runtime.
    pub async fn start(config: SandboxConfig) -> std::io::Result<Self> {
        // Two providers may be linked in; the first choice stands.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        std::fs::create_dir_all(&config.data_dir)?;
        let listener = tokio::net::TcpListener::bind(config.listen).await?;
        let local = listener.local_addr()?;
        let url = match &config.wire {
            Wire::Plain => format!("http://{local}"),
            Wire::Tls(_) | Wire::Both(..) => format!("https://localhost:{}", local.port()),
        };
        let world = Arc::new(World::new(config.data_dir, url.clone()));
        let router = |scheme| axum::Router::new().fallback(http::serve).with_state((Arc::clone(&world), scheme));
        let clients = hooks::Clients::new().map_err(std::io::Error::other)?;
        let mut tasks = vec![tokio::spawn(Arc::clone(&world.hooks).run(clients))];
        let mut plain_url = None;
        match &config.wire {
            Wire::Plain => tasks.push(tokio::spawn(answer(listener, router("http")))),
            Wire::Tls(identity) => {
                tasks.push(tokio::spawn(answer(tls::TlsListener::over(listener, identity)?, router("https"))));
            }
            Wire::Both(identity, address) => {
                let plain = tokio::net::TcpListener::bind(address).await?;
                plain_url = Some(format!("http://{}", plain.local_addr()?));
                tasks.push(tokio::spawn(answer(tls::TlsListener::over(listener, identity)?, router("https"))));
                tasks.push(tokio::spawn(answer(plain, router("http"))));
            }
        }
        Ok(Self { world, url, plain_url, tasks })
    }

    /// The address that speaks HTTP, where another speaks HTTPS.
    pub fn plain_url(&self) -> Option<&str> {
        self.plain_url.as_deref()
    }
    /// The address, without a slash at the end. The API is there and under `/api/v3`.
    pub fn url(&self) -> &str {
        &self.url
    }
    /// What the App needs to sign in.
    pub fn app_credentials(&self) -> AppCredentials {
        AppCredentials {
            app_id: APP_ID,
            installation_id: INSTALLATION_ID,
            private_key: auth::APP_KEY,
            webhook_secret: "sandbox-webhook-secret",
        }
    }
    /// The delivery queue and its switches.
    pub fn hooks(&self) -> &Hooks {
        &self.world.hooks
    }
    /// Keeps every request that writes, from now on.
    pub fn record(&self) {
        *self.world.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Vec::new());
    }
    /// The requests that were kept: method, path and body of each.
    pub fn heard(&self) -> Vec<String> {
        self.world.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone().unwrap_or_default()
    }
    /// Every token that was ever given and is still known.
    pub fn tokens(&self) -> Vec<String> {
        self.world.lock().tokens.keys().cloned().collect()
    }
    /// What shall go wrong.
    pub fn faults(&self) -> &Faults {
        &self.world.faults
    }
    /// Resolves when no delivery waits or is in flight.
    pub async fn deliveries_idle(&self) {
        self.world.hooks.idle().await;
    }
    /// Sends the App's webhooks there from now on, beginning with a ping.
    pub fn set_hook(&self, url: &str, secret: &str) {
        self.set_receiver(Receiver::json(url, secret));
    }
    /// The same, in every way that GitHub sends them.
    pub fn set_receiver(&self, receiver: Receiver) {
        self.world.hooks.set_receiver(receiver);
        self.world.lock().ping();
    }
    /// Gives each asker so many requests in an hour, from now on; `None` refuses nobody, which is how it starts.
    pub fn set_rate_limit(&self, limit: Option<u64>) {
        self.world.rates.set_limit(limit);
    }
    /// Gives a repository another name or owner. Its old name leads there.
    pub fn rename_repo(&self, from: &str, to: &str) -> Answer<()> {
        self.world.lock().rename_repo(from, to)
    }

    /// As if nobody had made the App yet: it is made from a manifest, and then installed.
    pub fn forget_app(&self) {
        self.world.lock().apps.standing = apps::Standing::Unknown;
    }
    /// Lets every code of an App that was made grow too old.
    pub fn age_codes(&self) {
        self.world.lock().apps.age();
    }
    /// What signs webhooks since the App was made from a manifest.
    pub fn made_secret(&self) -> Option<String> {
        self.world.lock().apps.secret.clone()
    }

    /// Makes a person.
    pub fn create_user(&self, login: &str) {
        self.world.lock().add_account(login, Kind::User);
    }
    /// Makes a team of an organization.
    pub fn create_team(&self, org: &str, slug: &str, members: &[&str]) {
        let mut state = self.world.lock();
        state.add_account(org, Kind::Organization);
        state.teams.insert(format!("{org}/{slug}").to_lowercase(), members.iter().map(|m| (*m).to_owned()).collect());
    }
    /// A new token of a person's.
    pub fn token_for(&self, login: &str) -> String {
        let token = auth::mint("ghp");
        self.give_token(login, &token);
        token
    }
    /// A token of a person's that somebody chose.
    pub fn give_token(&self, login: &str, token: &str) {
        self.world.lock().tokens.insert(token.to_owned(), auth::Token::Personal(login.to_owned()));
    }
    /// Lets every installation token die now.
    pub fn expire_tokens(&self) {
        self.world.lock().tokens.retain(|_, token| matches!(token, auth::Token::Personal(_)));
    }
    /// Makes a public repository with a first commit on `main`. An owner that is nobody becomes an organization.
    pub fn create_repo(&self, owner: &str, name: &str, files: &[(&str, &str)]) -> Answer<()> {
        self.world.create_repo(owner, name, files)
    }
    /// Public or private.
    pub fn set_visibility(&self, repo: &str, visibility: Visibility) -> Answer<()> {
        self.world.lock().repo_mut(repo)?.visibility = visibility;
        Ok(())
    }
    /// Says what a person may do.
    pub fn set_role(&self, repo: &str, login: &str, role: Role) -> Answer<()> {
        self.world.lock().repo_mut(repo)?.roles.insert(login.to_owned(), role);
        Ok(())
    }
    /// Protects a branch: these checks must succeed before a merge.
    pub fn protect(&self, repo: &str, branch: &str, required_checks: &[&str]) -> Answer<()> {
        let checks = required_checks.iter().map(|check| (*check).to_owned()).collect();
        self.set_protection(repo, branch, Protection { checks, ..Protection::default() })
    }
    /// Protects a branch in every way that the sandbox knows.
    pub fn set_protection(&self, repo: &str, branch: &str, rule: Protection) -> Answer<()> {
        let mut state = self.world.lock();
        state.repo_mut(repo)?.protections.insert(branch.to_owned(), rule);
        state.touch();
        Ok(())
    }
    /// Commits files to a branch, made from `main` when missing; `None` deletes a file. Gives the commit.
    pub fn commit(
        &self,
        repo: &str,
        branch: &str,
        files: &[(&str, Option<&str>)],
        message: &str,
        author: &str,
    ) -> Answer<String> {
        let files: Vec<(&str, Option<&[u8]>)> = files.iter().map(|(p, c)| (*p, c.map(str::as_bytes))).collect();
        self.world.lock().commit(repo, branch, &files, message, author)
    }
    /// Points a branch at a commit, back as well as forward (a force-push).
    pub fn set_branch(&self, repo: &str, branch: &str, sha: &str, pusher: &str) -> Answer<()> {
        self.world.lock().set_branch(repo, branch, sha, pusher)
    }
    /// Deletes a branch, which closes its pull.
    pub fn delete_branch(&self, repo: &str, branch: &str, pusher: &str) -> Answer<()> {
        self.world.lock().delete_branch(repo, branch, pusher)
    }
    /// Shows pulls of this branch, from now on, as coming from another repository.
    pub fn set_origin(&self, repo: &str, branch: &str, origin: Origin) -> Answer<()> {
        self.world.lock().repo_mut(repo)?.forks.insert(branch.to_owned(), origin);
        Ok(())
    }
    /// Changes title, description or base.
    pub fn edit_pull(&self, repo: &str, number: u64, user: &str, change: &serde_json::Value) -> Answer<()> {
        self.world.lock().edit_pull(repo, number, user, change)
    }
    /// Opens a pull from a branch to `main`; gives its number.
    pub fn open_pull(&self, repo: &str, head: &str, title: &str, author: &str) -> Answer<u64> {
        let new = NewPull { head, base: "main", title, body: None, state: PullState::Open };
        self.open_pull_with(repo, author, &new)
    }
    /// Opens a pull in every way that there is.
    pub fn open_pull_with(&self, repo: &str, author: &str, new: &NewPull<'_>) -> Answer<u64> {
        self.world.lock().open_pull(repo, author, new)
    }
    /// Draft to ready, or back.
    pub fn set_draft(&self, repo: &str, number: u64, user: &str, to: PullState) -> Answer<()> {
        self.world.lock().set_draft(repo, number, user, to)
    }
    /// Comments; gives the comment's id.
    pub fn comment(&self, repo: &str, number: u64, user: &str, body: &str) -> Answer<u64> {
        self.world.lock().comment(repo, number, user, body)
    }
    /// Edits a comment.
    pub fn edit_comment(&self, repo: &str, id: u64, user: &str, body: &str) -> Answer<()> {
        self.world.lock().edit_comment(repo, id, user, body)
    }
    /// Deletes a comment.
    pub fn delete_comment(&self, repo: &str, id: u64, user: &str) -> Answer<()> {
        self.world.lock().delete_comment(repo, id, user)
    }
    /// Reviews the head; gives the review's id.
    pub fn review(&self, repo: &str, number: u64, user: &str, verdict: Verdict, body: &str) -> Answer<u64> {
        self.world.lock().review(repo, number, user, verdict, body)
    }
    /// Dismisses a review.
    pub fn dismiss(&self, repo: &str, number: u64, review: u64, user: &str) -> Answer<()> {
        self.world.lock().dismiss(repo, number, review, user)
    }
    /// Merges; gives the commit on the base.
    pub fn merge(&self, repo: &str, number: u64, user: &str) -> Answer<String> {
        self.merge_by(repo, number, user, MergeMethod::Merge)
    }
    /// Merges in one of the ways that there are.
    pub fn merge_by(&self, repo: &str, number: u64, user: &str, method: MergeMethod) -> Answer<String> {
        self.world.lock().merge(repo, number, user, method, None)
    }
    /// Closes without merging.
    pub fn close(&self, repo: &str, number: u64, user: &str) -> Answer<()> {
        self.world.lock().close(repo, number, user)
    }
    /// Opens again.
    pub fn reopen(&self, repo: &str, number: u64, user: &str) -> Answer<()> {
        self.world.lock().reopen(repo, number, user)
    }
    /// Asks the App to run one check again.
    pub fn rerequest_check(&self, repo: &str, id: u64, user: &str) -> Answer<()> {
        self.world.lock().rerequest_run(repo, id, user)
    }

    /// A pull as it is now.
    pub fn pull(&self, repo: &str, number: u64) -> Answer<Pull> {
        self.world.lock().repo(repo)?.pull(number).cloned()
    }
    /// The comments of a pull, oldest first, with their reactions.
    pub fn comments(&self, repo: &str, number: u64) -> Answer<Vec<Comment>> {
        let state = self.world.lock();
        Ok(state.repo(repo)?.comments.iter().filter(|comment| comment.number == number).cloned().collect())
    }
    /// The reactions under a comment.
    pub fn reactions(&self, repo: &str, comment: u64) -> Answer<Vec<Reaction>> {
        Ok(self.world.lock().repo(repo)?.comment(comment)?.reactions.clone())
    }
    /// The check runs of a commit, oldest first.
    pub fn checks(&self, repo: &str, sha: &str) -> Answer<Vec<CheckRun>> {
        Ok(self.world.lock().repo(repo)?.runs.iter().filter(|run| run.sha == sha).cloned().collect())
    }
    /// The statuses of a commit, oldest first.
    pub fn statuses(&self, repo: &str, sha: &str) -> Answer<Vec<Status>> {
        Ok(self.world.lock().repo(repo)?.statuses.iter().filter(|status| status.sha == sha).cloned().collect())
    }
    /// The tip of a branch.
    pub fn tip(&self, repo: &str, branch: &str) -> Answer<String> {
        self.world.lock().repo(repo)?.branches.get(branch).cloned().ok_or_else(Refusal::not_found)
    }
    /// The clone address of a repository.
    pub fn clone_url(&self, repo: &str) -> String {
        format!("{}/{repo}.git", self.url)
    }
}
