//! `tidegate forget-app`: the App that was made in the browser is deleted from the database, on the word of whoever can read the
//! settings. It changes nothing on the forge, and nothing that a running server knows already.

use anyhow::Result;
use secrecy::ExposeSecret;

use super::from_settings;
use crate::app::setup::{FORGE, keys};
use crate::app::vault::Vault;
use crate::config::Settings;
use crate::store::SqlStore;

/// Forgets it, and says what that means.
pub async fn app(settings: Settings) -> Result<String> {
    let vault = Vault::new(from_settings::key(&settings)?);
    let store = SqlStore::open(settings.store.expose_secret()).await?;
    // Keys that do not open are forgotten all the same: that may be why somebody wants to.
    let kept = keys::read(&store, &vault, FORGE).await.ok().flatten();
    let was_there = keys::forget(&store, FORGE).await?;
    store.close().await;
    Ok(match (was_there, kept) {
        (false, _) => "No App was made at /setup/github; nothing was forgotten.\n".to_owned(),
        (true, kept) => {
            let (name, page) = kept.map_or_else(
                || ("The App".to_owned(), "in the list of your Apps on the forge".to_owned()),
                |kept| (format!("{} (id {})", kept.name, kept.id), format!("at {}", kept.settings)),
            );
            format!(
                "{name} is forgotten. A server that runs works as it until it stops; the next start offers /setup/github again.\n\
                 The App is still on the forge: delete it there, {page}.\n"
            )
        }
    })
}
