//! Making the App in the browser: a one-time token opens a session, the session begins a set-up, the forge's code becomes the
//! App's keys, which are sealed and kept. It never shows a secret, never replaces an App that is kept, and holds no rule of
//! what is missing: those are in `domain::setup`.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::App;
use crate::domain::ids::Timestamp;
use crate::domain::setup::{self, Reachable, Seen};
use crate::ports::forge::ForgeError;
use crate::ports::kept::Kept;
use crate::ports::registration::{AppKeys, RedeemError, Registration};
use crate::ports::store::StoreError;

pub mod keys;

pub use keys::KeysError;

/// The forge that this makes an App on.
pub const FORGE: &str = "github";
/// The name under which the session is kept.
const SESSION: &str = "setup-session";
/// A browser may look at the set-up for so long, milliseconds.
pub const SESSION_MS: i64 = 24 * 3_600_000;
/// A set-up must end within this, as the forge's code must, milliseconds.
const BEGUN_MS: i64 = 3_600_000;
/// Longer than any code that a forge gives.
const LONGEST_CODE: usize = 200;

/// The set-up of a server whose settings name no App.
pub struct Setup {
    app: Arc<App>,
    kept: Arc<dyn Kept>,
    place: Arc<dyn Registration>,
    url: String,
    token: Mutex<Token>,
    keys: RwLock<Option<Arc<AppKeys>>>,
    /// One set-up ends at a time, so of two tabs the second finds what the first made; with the digest of the code that did.
    ending: tokio::sync::Mutex<Option<String>>,
}

/// The token that this start of the server printed.
enum Token {
    Open(SecretString),
    Used,
}

#[derive(Serialize, Deserialize)]
struct Session {
    digest: String,
    since: i64,
}

/// Where a browser posts the manifest, and what.
#[derive(Clone, Debug)]
pub struct Form {
    /// The address, with the state in it.
    pub action: String,
    /// The manifest.
    pub manifest: Value,
}

/// How a set-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The App is kept.
    Made,
    /// It was made before, perhaps by the same code a moment ago.
    Before,
}

/// Why a step of the set-up is refused.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Not the token.
    #[error(
        "This is not the token of this start of the server. It is the last one in its log; each start makes a new one."
    )]
    WrongToken,
    /// It was used.
    #[error("The token was used: another browser holds the set-up. Start the server again for a new token.")]
    UsedToken,
    /// No session, or one that is over.
    #[error(
        "This browser has no session here, or it is over. Give the token from the server's log; each start of the server makes a new one."
    )]
    NoSession,
    /// An App is kept already.
    #[error(
        "An App is set up already, and is never replaced. To set up another, stop the server, run `tidegate forget-app`, and start it again."
    )]
    Done,
    /// A second App was made while the first was.
    #[error(
        "An App was set up a moment ago in another tab. The one that was made now is not used: delete it on the forge."
    )]
    Second,
    /// No login.
    #[error("This cannot be an organization's name: letters, digits and hyphens, at most 39.")]
    NoLogin,
    /// The forge could never call us.
    #[error("{0}")]
    Unreachable(String),
    /// A state that this session did not begin.
    #[error(
        "This answer belongs to no set-up that this browser began, so its App was not taken. Begin again here; if an App was made, delete it on the forge."
    )]
    WrongState,
    /// It began too long ago.
    #[error(
        "This set-up began more than an hour ago, so its code is worth nothing any more. Begin again; delete the App that was made on the forge."
    )]
    TooLate,
    /// The forge does not know the code.
    #[error(
        "The forge does not know this code: it was used, or is older than an hour. If the App is in the list of your Apps there, delete it, and begin again."
    )]
    UnknownCode,
    /// No webhook secret.
    #[error(
        "The App at {0} came without a webhook secret, so anybody could send its webhooks. It was not taken: delete it, and begin again."
    )]
    NoSecret(String),
    /// Somebody else's App was kept first.
    #[error("Another App was kept first. The one at {0} is not used: delete it.")]
    Late(String),
    /// The forge.
    #[error(
        "The forge did not give the App: {0}. Load this page again within the hour; the code is still good unless the forge used it up."
    )]
    Forge(ForgeError),
    /// The database.
    #[error("The database does not answer now. Nothing was changed; load this page again.")]
    Store(#[from] StoreError),
    /// The kept App cannot be opened.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

impl Setup {
    /// The set-up at this forge: of the App that is kept, or, without one, open to whoever has the token.
    pub async fn open(app: Arc<App>, kept: Arc<dyn Kept>, place: Arc<dyn Registration>) -> Result<Self, SetupError> {
        let keys = keys::read(kept.as_ref(), &app.vault, FORGE).await?.map(Arc::new);
        let token = match &keys {
            Some(_) => Token::Used,
            None => Token::Open(secret()),
        };
        let url = app.pages.base().to_owned();
        Ok(Self {
            app,
            kept,
            place,
            url,
            token: Mutex::new(token),
            keys: RwLock::new(keys),
            ending: tokio::sync::Mutex::default(),
        })
    }

    /// The token, while it is good, for the terminal and nothing else.
    pub fn token(&self) -> Option<SecretString> {
        match &*self.token.lock().unwrap_or_else(PoisonError::into_inner) {
            Token::Open(token) => Some(token.clone()),
            Token::Used => None,
        }
    }

    /// The App, once it is kept.
    pub fn keys(&self) -> Option<Arc<AppKeys>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The public address of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The base of the forge's pages.
    pub fn forge(&self) -> &str {
        self.place.home()
    }

    /// Changes the token for a session; the token is dead then.
    pub async fn enter(&self, given: &str) -> Result<String, SetupError> {
        if self.keys().is_some() {
            return Err(SetupError::Done);
        }
        let token = {
            let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
            let Token::Open(right) = &*token else { return Err(SetupError::UsedToken) };
            if !bool::from(right.expose_secret().as_bytes().ct_eq(given.trim().as_bytes())) {
                return Err(SetupError::WrongToken);
            }
            std::mem::replace(&mut *token, Token::Used)
        };
        let session = secret();
        match self.keep_session(session.expose_secret()).await {
            Ok(()) => Ok(session.expose_secret().to_owned()),
            Err(error) => {
                *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
                Err(error.into())
            }
        }
    }

    /// Only a digest is kept: who reads the database opens no session.
    async fn keep_session(&self, session: &str) -> Result<(), StoreError> {
        let now = self.app.clock.now();
        let kept = Session { digest: digest(session), since: now.0 };
        let bytes = serde_json::to_vec(&kept).map_err(|error| StoreError::Broken(error.to_string()))?;
        self.kept.keep(SESSION, &self.app.vault.seal_kept(SESSION, &bytes), now).await
    }

    /// Whether this is the session that the token opened.
    pub async fn is_session(&self, given: &str) -> Result<bool, SetupError> {
        let Some(sealed) = self.kept.kept(SESSION).await? else { return Ok(false) };
        // Sealed with another key, or by a newer program: the token opens a new one.
        let Ok(bytes) = self.app.vault.open_kept(SESSION, &sealed) else { return Ok(false) };
        let Ok(kept) = serde_json::from_slice::<Session>(&bytes) else { return Ok(false) };
        let young = self.app.clock.now().since_ms(Timestamp(kept.since)) < SESSION_MS;
        Ok(young && bool::from(kept.digest.as_bytes().ct_eq(digest(given).as_bytes())))
    }

    /// Whether the forge can call us.
    pub fn reachable(&self) -> Reachable {
        setup::reachable(&self.url, self.place.home())
    }

    /// The form for an organization, or for whoever is signed in there.
    pub async fn begin(&self, session: &str, organization: &str) -> Result<Form, SetupError> {
        self.admit(session).await?;
        if let Reachable::No(why) = self.reachable() {
            return Err(SetupError::Unreachable(why));
        }
        let organization = Some(organization.trim()).filter(|name| !name.is_empty());
        if organization.is_some_and(|name| !setup::is_login(name)) {
            return Err(SetupError::NoLogin);
        }
        let state = self.app.vault.setup_state(session, self.app.clock.now());
        let action = format!("{}?state={state}", self.place.form(organization));
        Ok(Form { action, manifest: setup::manifest(&self.url, organization) })
    }

    async fn admit(&self, session: &str) -> Result<(), SetupError> {
        if !self.is_session(session).await? {
            return Err(SetupError::NoSession);
        }
        if self.keys().is_some() { Err(SetupError::Done) } else { Ok(()) }
    }

    /// Takes what the forge sent the browser back with. The code is not touched unless state and session are right.
    pub async fn end(&self, session: &str, code: &str, state: &str) -> Result<Ended, SetupError> {
        if !self.is_session(session).await? {
            return Err(SetupError::NoSession);
        }
        let begun = self.app.vault.setup_begun(session, state).ok_or(SetupError::WrongState)?;
        let now = self.app.clock.now();
        if now.since_ms(begun) >= BEGUN_MS {
            return Err(SetupError::TooLate);
        }
        if code.is_empty() || code.len() > LONGEST_CODE {
            return Err(SetupError::UnknownCode);
        }
        let mut ended_by = self.ending.lock().await;
        if self.keys().is_some() {
            // The same address loaded again is no mistake; the code of another App is.
            let same = ended_by.as_ref().is_none_or(|ended| *ended == digest(code));
            return if same { Ok(Ended::Before) } else { Err(SetupError::Second) };
        }
        let keys = self.place.redeem(code, now).await.map_err(|error| match error {
            RedeemError::Unknown => SetupError::UnknownCode,
            RedeemError::NoSecret(page) => SetupError::NoSecret(page),
            RedeemError::Forge(error) => SetupError::Forge(error),
        })?;
        if !keys::keep_first(self.kept.as_ref(), &self.app.vault, FORGE, &keys).await? {
            return Err(SetupError::Late(keys.page));
        }
        tracing::info!(app = keys.slug, id = keys.id, owner = keys.owner, "the App was made and is kept");
        *ended_by = Some(digest(code));
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(keys));
        if let Err(error) = self.connect().await {
            tracing::warn!(why = %super::turn::chain(&error), "the new App cannot sign in yet; its page tries again");
        }
        Ok(Ended::Made)
    }

    /// Signs in as the kept App, once; from then on the server works for it.
    pub async fn connect(&self) -> Result<(), ForgeError> {
        let Some(keys) = self.keys() else { return Ok(()) };
        if self.app.forges.get(FORGE).is_none() {
            let connected = self.place.connect(&keys).await?;
            self.app.forges.add(FORGE, connected.into());
            self.app.ring();
            tracing::info!(app = keys.slug, "the server works as this App now");
        }
        Ok(())
    }

    /// Whether a webhook was taken since the App was made.
    pub async fn taken(&self) -> Result<Option<(String, Timestamp)>, SetupError> {
        let Some(keys) = self.keys() else { return Ok(None) };
        Ok(self.kept.last_delivery(FORGE).await?.filter(|(_, at)| *at >= keys.made))
    }

    /// What is known of the App that is kept.
    pub async fn look(&self) -> Result<Option<Seen>, SetupError> {
        let Some(keys) = self.keys() else { return Ok(None) };
        let repos = match self.connect().await {
            Ok(()) => self.repos().await,
            Err(error) => Err(error),
        };
        let taken = self.taken().await?;
        // The forge's own list is only worth a call while nothing came.
        let sent = match (&taken, &repos) {
            (None, Ok(repos)) if !repos.is_empty() => self.place.sent(&keys).await.map_err(|error| error.to_string()),
            _ => Ok(Vec::new()),
        };
        Ok(Some(Seen {
            name: keys.name.clone(),
            owner: keys.owner.clone(),
            page: keys.page.clone(),
            settings: keys.settings.clone(),
            hook: setup::hook(&self.url),
            repos: repos.map_err(|error| error.to_string()),
            taken,
            refused: self.app.forges.refused(FORGE),
            sent,
        }))
    }

    async fn repos(&self) -> Result<Vec<String>, ForgeError> {
        let Some(connection) = self.app.forges.get(FORGE) else { return Ok(Vec::new()) };
        Ok(connection.forge.repos().await?.into_iter().map(|repo| repo.name).collect())
    }
}

/// 256 bits that nobody can guess.
fn secret() -> SecretString {
    hex::encode(rand::random::<[u8; 32]>()).into()
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
