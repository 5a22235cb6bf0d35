//! The App's keys as they are kept: sealed under the forge's name, written once, forgotten only on an operator's word. It calls
//! no forge.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::app::vault::Vault;
use crate::domain::ids::Timestamp;
use crate::ports::kept::Kept;
use crate::ports::registration::AppKeys;
use crate::ports::store::StoreError;

/// Why a kept App cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// Another key, or changed bytes.
    #[error(
        "The App in the database was sealed with another encryption key. Put that key back (`keys.encryption`, or `keys/encryption` in the data \
         folder), or run `tidegate forget-app` and set up an App again."
    )]
    NotOurs,
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The sealed text. A field that is added later must have a default.
#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
struct Text {
    id: u64,
    slug: String,
    name: String,
    page: String,
    settings: String,
    owner: String,
    private_key: String,
    webhook_secret: String,
    client_id: String,
    client_secret: String,
    made: i64,
}

/// The name under which a forge's App is kept.
pub fn name_of(forge: &str) -> String {
    format!("app:{forge}")
}

/// The App that is kept for this forge.
pub async fn read(kept: &dyn Kept, vault: &Vault, forge: &str) -> Result<Option<AppKeys>, KeysError> {
    let name = name_of(forge);
    let Some(sealed) = kept.kept(&name).await? else { return Ok(None) };
    let mut bytes = vault.open_kept(&name, &sealed).map_err(|_| KeysError::NotOurs)?;
    let text = serde_json::from_slice::<Text>(&bytes);
    bytes.zeroize();
    let text = text.map_err(|error| StoreError::Broken(format!("the kept App: {error}")))?;
    Ok(Some(AppKeys {
        id: text.id,
        slug: text.slug.clone(),
        name: text.name.clone(),
        page: text.page.clone(),
        settings: text.settings.clone(),
        owner: text.owner.clone(),
        private_key: SecretString::from(text.private_key.as_str()),
        webhook_secret: SecretString::from(text.webhook_secret.as_str()),
        client_id: text.client_id.clone(),
        client_secret: SecretString::from(text.client_secret.as_str()),
        made: Timestamp(text.made),
    }))
}

/// Keeps the App unless one is kept; says whether it did.
pub async fn keep_first(kept: &dyn Kept, vault: &Vault, forge: &str, keys: &AppKeys) -> Result<bool, StoreError> {
    let text = Text {
        id: keys.id,
        slug: keys.slug.clone(),
        name: keys.name.clone(),
        page: keys.page.clone(),
        settings: keys.settings.clone(),
        owner: keys.owner.clone(),
        private_key: keys.private_key.expose_secret().to_owned(),
        webhook_secret: keys.webhook_secret.expose_secret().to_owned(),
        client_id: keys.client_id.clone(),
        client_secret: keys.client_secret.expose_secret().to_owned(),
        made: keys.made.0,
    };
    let mut bytes = serde_json::to_vec(&text).map_err(|error| StoreError::Broken(error.to_string()))?;
    let name = name_of(forge);
    let sealed = vault.seal_kept(&name, &bytes);
    bytes.zeroize();
    kept.keep_first(&name, &sealed, keys.made).await
}

/// Forgets the App and the session that made it; says whether there was one.
pub async fn forget(kept: &dyn Kept, forge: &str) -> Result<bool, StoreError> {
    kept.forget(super::SESSION).await?;
    kept.forget(&name_of(forge)).await
}
