//! A forge on which an App of ours can be made in the browser: where the browser goes, what the code that it brings back is
//! worth, and what the forge says of its deliveries. It keeps nothing and decides nothing.

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;

use super::forge::{Forge, ForgeError, Hooks};
use crate::domain::ids::Timestamp;
use crate::domain::setup::Sent;

/// An App and everything that opens it. Its secrets are never shown.
#[derive(Clone, Debug)]
pub struct AppKeys {
    /// Its id.
    pub id: u64,
    /// Its name in addresses.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// Its page.
    pub page: String,
    /// Its settings.
    pub settings: String,
    /// Whose it is.
    pub owner: String,
    /// Its private key, PEM.
    pub private_key: SecretString,
    /// Signs webhooks.
    pub webhook_secret: SecretString,
    /// Names it where people sign in.
    pub client_id: String,
    /// Proves it where people sign in.
    pub client_secret: SecretString,
    /// When we got it.
    pub made: Timestamp,
}

/// A forge that answers.
#[derive(Clone)]
pub struct Connected {
    /// Its calls.
    pub forge: Arc<dyn Forge>,
    /// Its webhooks.
    pub hooks: Arc<dyn Hooks>,
    /// Our own login there.
    pub login: String,
}

/// Why a code gives no App.
#[derive(Debug, thiserror::Error)]
pub enum RedeemError {
    /// The forge knows no such code: used, too old, or never given.
    #[error("the forge does not know the code")]
    Unknown,
    /// The App came without a webhook secret: nobody could tell its webhooks from a stranger's.
    #[error("the App at {0} came without a webhook secret")]
    NoSecret(String),
    /// Anything else.
    #[error(transparent)]
    Forge(#[from] ForgeError),
}

/// Makes Apps.
#[async_trait]
pub trait Registration: Send + Sync {
    /// Where a browser posts the manifest: for an organization, or for whoever is signed in.
    fn form(&self, organization: Option<&str>) -> String;
    /// The base of the forge's pages.
    fn home(&self) -> &str;
    /// Changes the code of the browser for the App; a code works once.
    async fn redeem(&self, code: &str, now: Timestamp) -> Result<AppKeys, RedeemError>;
    /// Signs in as the App.
    async fn connect(&self, keys: &AppKeys) -> Result<Connected, ForgeError>;
    /// The newest deliveries as the forge saw them end, newest first.
    async fn sent(&self, keys: &AppKeys) -> Result<Vec<Sent>, ForgeError>;
}
