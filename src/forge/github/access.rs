//! Clients and tokens: one token client per installation, made once for all who ask, dropped on a 401.
//! Tokens stay in memory and are never logged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::future::Cache;
use octocrab::Octocrab;
use octocrab::models::AppId;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::paging;
use super::refusal::date;
use super::request::{Answer, Ask, Whose, repo_path, send};
use super::wire;
use super::{GitHubAuth, SetupError};
use crate::domain::secret::{MASK, shapeless};
use crate::ports::forge::ForgeError;

const CONNECT: Duration = Duration::from_secs(10);
const READ_OR_WRITE: Duration = Duration::from_secs(30);

/// How long a token is used at most; GitHub's live an hour.
const LONGEST_USE: Duration = Duration::from_secs(50 * 60);

/// How long we believe which installation an account has.
const INSTALLATION_BELIEVED: Duration = Duration::from_secs(60 * 60);

/// Everything that opens GitHub to us.
pub(super) struct Access {
    root: Url,
    kind: Kind,
}

enum Kind {
    Token(Arc<Session>),
    App(Box<AppAccess>),
}

struct AppAccess {
    as_app: Arc<Session>,
    /// Account, in lower case, to installation: an App has one installation per account.
    installations: Cache<String, u64>,
    sessions: Cache<u64, Arc<Session>>,
    /// Tokens for git, by repository: they can read this one repository and do nothing else.
    git: Cache<String, Minted>,
}

/// A client with its credential.
pub(super) struct Session {
    crab: Octocrab,
    /// None for the App itself, which signs each call anew.
    minted: Option<Minted>,
}

/// A token and how long to use it.
#[derive(Clone)]
struct Minted {
    token: SecretString,
    keep: Duration,
}

/// Lets the caches drop a token before it dies.
struct Life;

impl Expiry<u64, Arc<Session>> for Life {
    fn expire_after_create(&self, _: &u64, session: &Arc<Session>, _: Instant) -> Option<Duration> {
        session.minted.as_ref().map(|minted| minted.keep)
    }
}

impl Expiry<String, Minted> for Life {
    fn expire_after_create(&self, _: &String, minted: &Minted, _: Instant) -> Option<Duration> {
        Some(minted.keep)
    }
}

impl Session {
    fn with_token(root: &Url, minted: Minted) -> Result<Self, SetupError> {
        let token = minted.token.expose_secret().to_owned();
        let crab = builder(root)?.personal_token(token).build().map_err(|error| client_error(&error))?;
        Ok(Self { crab, minted: Some(minted) })
    }

    fn as_app(root: &Url, id: u64, pem: &SecretString) -> Result<Self, SetupError> {
        let builder = builder(root)?
            .app_from_rsa_pem(AppId(id), pem.expose_secret())
            .map_err(|error| SetupError::Key(error.to_string()))?;
        Ok(Self { crab: builder.build().map_err(|error| client_error(&error))?, minted: None })
    }

    /// The answer without our token, should a refusal repeat it.
    pub fn without_token(&self, mut answer: Answer) -> Answer {
        if let (Some(minted), false) = (&self.minted, answer.status.is_success()) {
            answer.body = answer.body.replace(minted.token.expose_secret(), MASK);
        }
        answer
    }

    /// The client.
    pub fn crab(&self) -> &Octocrab {
        &self.crab
    }
}

impl Access {
    pub fn new(api_url: &str, auth: &GitHubAuth) -> Result<Self, SetupError> {
        // Whoever was first wins; two providers in one program make rustls panic.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let root = api_root(api_url)?;
        let kind = match auth {
            GitHubAuth::Token(token) if token.expose_secret().trim().is_empty() => return Err(SetupError::EmptyToken),
            GitHubAuth::Token(token) => {
                let minted = Minted { token: token.clone(), keep: LONGEST_USE };
                Kind::Token(Arc::new(Session::with_token(&root, minted)?))
            }
            GitHubAuth::App { id, private_key_pem } => Kind::App(Box::new(AppAccess {
                as_app: Arc::new(Session::as_app(&root, *id, private_key_pem)?),
                installations: Cache::builder().max_capacity(10_000).time_to_live(INSTALLATION_BELIEVED).build(),
                sessions: Cache::builder().max_capacity(10_000).expire_after(Life).build(),
                git: Cache::builder().max_capacity(10_000).expire_after(Life).build(),
            })),
        };
        Ok(Self { root, kind })
    }

    /// The path of an absolute link of the API.
    pub fn below_root(&self, link: &str) -> Result<String, ForgeError> {
        paging::below(&self.root, link)
    }

    /// Whether we are an App.
    pub fn is_app(&self) -> bool {
        matches!(self.kind, Kind::App(_))
    }

    /// The client for a call.
    pub async fn session(&self, whose: Whose<'_>) -> Result<Arc<Session>, ForgeError> {
        let app = match &self.kind {
            Kind::Token(session) => return Ok(Arc::clone(session)),
            Kind::App(app) => app,
        };
        let (account, id) = match whose {
            Whose::App => return Ok(Arc::clone(&app.as_app)),
            Whose::Installation(id) => return app.session(&self.root, id).await,
            Whose::Repo(name) => (account_of(name), app.installation_for(name).await?),
            Whose::Account(account) => (account.to_lowercase(), app.installation_of(account).await?),
        };
        match app.session(&self.root, id).await {
            // The App was removed and installed again: look once more which installation it is now.
            Err(ForgeError::NotFound(_)) => {
                app.installations.invalidate(&account).await;
                let id = match whose {
                    Whose::Repo(name) => app.installation_for(name).await?,
                    _ => app.installation_of(&account).await?,
                };
                app.session(&self.root, id).await
            }
            other => other,
        }
    }

    /// Drops a session that GitHub called unauthorized; whether a new one can be made.
    pub async fn renews(&self, refused: &Arc<Session>) -> bool {
        let Kind::App(app) = &self.kind else { return false };
        if refused.minted.is_none() {
            return false;
        }
        // By identity: somebody else may have put a fresh one there meanwhile.
        let stale = app.sessions.iter().find(|(_, session)| Arc::ptr_eq(session, refused)).map(|(id, _)| *id);
        if let Some(id) = stale {
            app.sessions.invalidate(&id).await;
            // What ended one token before its time (a revocation, a suspension) ended those that git was given as well.
            app.git.invalidate_all();
        }
        true
    }

    /// A token for git to read this repository.
    pub async fn git_token(&self, name: &str) -> Result<SecretString, ForgeError> {
        let app = match &self.kind {
            Kind::Token(session) => {
                return session.minted.as_ref().map(|minted| minted.token.clone()).ok_or_else(no_token);
            }
            Kind::App(app) => app,
        };
        match app.minted_for_git(name).await {
            // As above: the installation may be another one by now.
            Err(ForgeError::NotFound(_)) => {
                app.installations.invalidate(&account_of(name)).await;
                app.minted_for_git(name).await
            }
            other => other,
        }
    }

    /// Notes which installation an account has.
    pub async fn learn(&self, account: &str, installation: u64) {
        if let Kind::App(app) = &self.kind {
            app.installations.insert(account.to_lowercase(), installation).await;
        }
    }
}

impl AppAccess {
    async fn session(&self, root: &Url, id: u64) -> Result<Arc<Session>, ForgeError> {
        let making = async {
            let minted = self.mint(id, json!({})).await?;
            let session = Session::with_token(root, minted);
            session.map(Arc::new).map_err(|error| ForgeError::Unavailable(error.to_string()))
        };
        self.sessions.try_get_with(id, making).await.map_err(|error| again(&error))
    }

    async fn minted_for_git(&self, name: &str) -> Result<SecretString, ForgeError> {
        let minting = async {
            let id = self.installation_for(name).await?;
            let bare = name.split_once('/').map_or(name, |(_, repo)| repo);
            self.mint(id, json!({ "repositories": [bare], "permissions": { "contents": "read" } })).await
        };
        let minted = self.git.try_get_with(name.to_lowercase(), minting).await.map_err(|error| again(&error))?;
        Ok(minted.token)
    }

    async fn mint(&self, id: u64, scope: Value) -> Result<Minted, ForgeError> {
        let ask = Ask::post(format!("/app/installations/{id}/access_tokens"), scope);
        let answer = send(&self.as_app.crab, &ask).await?.accepted(&ask)?;
        let made: wire::Token = answer.read()?;
        let life = made.expires_at.as_deref().and_then(wire::millis).zip(date(&answer.headers));
        // Five sixths of its life: a fetch or a long list that starts now still ends in time.
        let keep = life.map(|(end, now)| u64::try_from(end - now * 1000).unwrap_or(0) / 6 * 5);
        let keep = keep.map_or(LONGEST_USE, |ms| Duration::from_millis(ms).min(LONGEST_USE));
        Ok(Minted { token: made.token, keep })
    }

    async fn installation_for(&self, name: &str) -> Result<u64, ForgeError> {
        let looking = async {
            let ask = Ask::get(format!("{}/installation", repo_path(name)?));
            let answer = send(&self.as_app.crab, &ask).await?.accepted(&ask).map_err(|error| match error {
                ForgeError::NotFound(said) => {
                    ForgeError::NotFound(format!("the App is not installed on `{name}`; install it there ({said})"))
                }
                other => other,
            })?;
            Ok(answer.read::<wire::Installation>()?.id)
        };
        self.installations.try_get_with(account_of(name), looking).await.map_err(|error: Arc<ForgeError>| again(&error))
    }

    async fn installation_of(&self, account: &str) -> Result<u64, ForgeError> {
        let looking = async {
            let ask = Ask::get(format!("/orgs/{}/installation", super::request::segment(account)));
            let answer = send(&self.as_app.crab, &ask).await?.accepted(&ask)?;
            Ok(answer.read::<wire::Installation>()?.id)
        };
        let account = account.to_lowercase();
        self.installations.try_get_with(account, looking).await.map_err(|error: Arc<ForgeError>| again(&error))
    }
}

fn account_of(name: &str) -> String {
    name.split_once('/').map_or(name, |(owner, _)| owner).to_lowercase()
}

pub(super) fn api_root(text: &str) -> Result<Url, SetupError> {
    let bad = |why: &str| SetupError::Url { url: shapeless(text), why: why.to_owned() };
    let root = Url::parse(text.trim_end_matches('/')).map_err(|error| bad(&error.to_string()))?;
    if !matches!(root.scheme(), "http" | "https") || !root.has_host() {
        return Err(bad("it is no http or https URL"));
    }
    if !root.username().is_empty() || root.password().is_some() || root.query().is_some() {
        return Err(bad("it has a user, a password or a query"));
    }
    Ok(root)
}

/// octocrab is compiled without its retries, which would send a POST again; it has no time-outs unless told.
pub(super) fn builder(root: &Url) -> Result<Builder, SetupError> {
    let builder = Octocrab::builder()
        .set_connect_timeout(Some(CONNECT))
        .set_read_timeout(Some(READ_OR_WRITE))
        .set_write_timeout(Some(READ_OR_WRITE));
    builder.base_uri(root.as_str()).map_err(|error| client_error(&error))
}

pub(super) type Builder = octocrab::OctocrabBuilder<
    octocrab::NoSvc,
    octocrab::DefaultOctocrabBuilderConfig,
    octocrab::NoAuth,
    octocrab::NotLayerReady,
>;

pub(super) fn client_error(error: &octocrab::Error) -> SetupError {
    SetupError::Client(error.to_string())
}

fn no_token() -> ForgeError {
    ForgeError::Denied("there is no token".to_owned())
}

/// The same error for each of those who waited for one call.
fn again(error: &ForgeError) -> ForgeError {
    match error {
        ForgeError::NotFound(text) => ForgeError::NotFound(text.clone()),
        ForgeError::Denied(text) => ForgeError::Denied(text.clone()),
        ForgeError::Conflict(text) => ForgeError::Conflict(text.clone()),
        ForgeError::Invalid(text) => ForgeError::Invalid(text.clone()),
        ForgeError::TooLong(text) => ForgeError::TooLong(text.clone()),
        ForgeError::Suspended(text) => ForgeError::Suspended(text.clone()),
        ForgeError::RateLimited { wait_ms } => ForgeError::RateLimited { wait_ms: *wait_ms },
        ForgeError::Unavailable(text) => ForgeError::Unavailable(text.clone()),
    }
}
