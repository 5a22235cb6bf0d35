//! What the database knows: the App that was made in the browser, and when a webhook was last taken. It brings no schema up to
//! date and writes nothing.

use secrecy::ExposeSecret;

use super::Line;
use crate::app::setup::{FORGE, keys};
use crate::app::vault::Vault;
use crate::config::Settings;
use crate::domain::ids::Timestamp;
use crate::ports::kept::Kept;
use crate::ports::registration::AppKeys;
use crate::serve::from_settings;
use crate::store::SqlStore;

const WHAT: &str = "database";

/// What the forge's part needs of it.
#[derive(Default)]
pub(super) struct Known {
    /// The App that was made in the browser.
    pub app: Option<AppKeys>,
    /// The newest delivery that was taken.
    pub taken: Option<(String, Timestamp)>,
}

/// Opens it as it is.
pub(super) async fn look(settings: &Settings, lines: &mut Vec<Line>) -> Known {
    let url = settings.store.expose_secret();
    let kind = if url.starts_with("sqlite:") { "SQLite" } else { "PostgreSQL" };
    let store = match SqlStore::open_as_it_is(url).await {
        Ok(Some(store)) => store,
        Ok(None) => {
            lines.push(Line::look(
                WHAT,
                format!("the {kind} file is not there yet"),
                "The first start of the server makes it.",
            ));
            return Known::default();
        }
        Err(error) => {
            // What a driver says of an address may hold its password.
            let why = format!("{kind} cannot be opened: {error}");
            lines.push(Line::bad(WHAT, why, "Look at `store.url`, and whether the database runs and lets us in."));
            return Known::default();
        }
    };
    let taken = match store.last_delivery(FORGE).await {
        Ok(taken) => taken,
        Err(error) => {
            lines.push(Line::bad(
                WHAT,
                format!("{kind} answers, but not as a database of ours: {error}"),
                "The next start of the server brings its schema up to date.",
            ));
            return Known::default();
        }
    };
    lines.push(Line::good(WHAT, format!("{kind} answers")));
    let app = match app(settings, &store, lines).await {
        Ok(app) => app,
        Err(why) => {
            lines.push(Line::bad("App", why, ""));
            None
        }
    };
    store.close().await;
    Known { app, taken }
}

async fn app(settings: &Settings, store: &SqlStore, lines: &mut Vec<Line>) -> Result<Option<AppKeys>, String> {
    let sealed = store.kept(&keys::name_of(FORGE)).await.map_err(|error| error.to_string())?;
    if sealed.is_none() {
        return Ok(None);
    }
    let Some(key) = from_settings::existing_key(settings).map_err(|error| format!("{error:#}"))? else {
        return Err(
            "it was made in the browser, and the key that opens it is gone: put it back, or run tidegate forget-app"
                .to_owned(),
        );
    };
    let app = keys::read(store, &Vault::new(key), FORGE).await.map_err(|error| error.to_string())?;
    if let (Some(app), true) = (&app, settings.github.identity.is_some()) {
        let way_out = "The settings win. tidegate forget-app forgets the other one.";
        lines.push(Line::look("App", format!("{} was made in the browser and is not used", app.name), way_out));
    }
    Ok(app)
}
