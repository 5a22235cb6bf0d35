//! What an operator gets back by hand: the states that applies could not save. It opens them with the installation's key, beside or
//! without a running server, and changes nothing.

use anyhow::{Context, Result};
use secrecy::ExposeSecret;

use super::from_settings::existing_key;
use crate::app::{reports, vault::Vault};
use crate::config::Settings;
use crate::domain::ids::{JobId, Timestamp};
use crate::ports::store::Store;
use crate::store::SqlStore;

/// The state that this job left.
pub async fn errored_state(settings: &Settings, job: &str) -> Result<Vec<u8>> {
    let key =
        existing_key(settings)?.context("there is no key: neither `keys.encryption` nor one in the data folder")?;
    let vault = Vault::new(key);
    let store = SqlStore::open(settings.store.expose_secret()).await.context("the database cannot be opened")?;
    Ok(reports::errored_state(&store, &vault, &JobId::new(job)).await?)
}

/// The states that wait to be saved, one a line; empty when none does.
pub async fn waiting(settings: &Settings) -> Result<String> {
    let store = SqlStore::open(settings.store.expose_secret()).await.context("the database cannot be opened")?;
    let mut repos = Vec::new();
    let mut lines = String::new();
    for pull in store.pulls().await? {
        if repos.contains(&pull.key.repo) {
            continue;
        }
        repos.push(pull.key.repo.clone());
        for unsaved in store.locks(&pull.key.repo).await?.unsaved.into_values() {
            let since = time(unsaved.since);
            let line = format!("{}  {}  {}#{}  {since}\n", unsaved.job, unsaved.root, pull.repo, unsaved.pull);
            lines.push_str(&line);
        }
    }
    Ok(lines)
}

fn time(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default()
}
