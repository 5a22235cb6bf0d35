//! Whether the forge answers, what we can see there, and whether its webhooks arrive. It only reads.

use super::Line;
use super::database::Known;
use crate::app::setup::FORGE;
use crate::config::{GitHubAuth as AuthSettings, Settings};
use crate::domain::setup::{Seen, hook, missing, page};
use crate::forge::github::{GitHub, GitHubAuth, GitHubConfig};
use crate::ports::forge::{Forge, ForgeError};
use crate::serve::from_settings;

/// What kind of identity we have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    App,
    Token,
}

/// Signs in and looks around.
pub(super) async fn look(settings: Settings, known: Known, lines: &mut Vec<Line>) {
    let url = settings.url.to_string();
    let web = settings.github.web_url.as_str().trim_end_matches('/').to_owned();
    let Some((kind, config)) = identity(settings, &known) else {
        let way_out = format!("Start the server, open {} and give it the token from the server's log.", page(&url));
        lines.push(Line::bad("App", "neither the settings nor the database have one", way_out));
        return;
    };
    let github = match GitHub::new(config) {
        Ok(github) => github,
        Err(error) => {
            lines.push(Line::bad("forge", error.to_string(), "Correct it in the settings."));
            return;
        }
    };
    match github.login().await {
        Ok(login) => lines.push(Line::good("forge", format!("{web} answers; we are {login}"))),
        Err(error) => {
            lines.push(Line::bad("forge", error.to_string(), way_out(&error)));
            return;
        }
    }
    let repos = github.repos().await.map(|repos| repos.into_iter().map(|repo| repo.name).collect::<Vec<_>>());
    lines.push(repositories(&repos, kind, known.app.as_ref().map(|app| app.page.as_str())));
    webhooks(
        &github,
        kind,
        &Webhooks { url: &url, known: &known, repos: repos.map_err(|error| error.to_string()) },
        lines,
    )
    .await;
}

fn identity(settings: Settings, known: &Known) -> Option<(Kind, GitHubConfig)> {
    let place = from_settings::place(&settings.github);
    let (kind, auth, webhook_secret) = match (settings.github.identity, &known.app) {
        (Some(given), _) => match given.auth {
            AuthSettings::App { id, private_key } => {
                (Kind::App, GitHubAuth::App { id, private_key_pem: private_key }, given.webhook_secret)
            }
            AuthSettings::Token(token) => (Kind::Token, GitHubAuth::Token(token), given.webhook_secret),
        },
        (None, Some(app)) => {
            let auth = GitHubAuth::App { id: app.id, private_key_pem: app.private_key.clone() };
            (Kind::App, auth, app.webhook_secret.clone())
        }
        (None, None) => return None,
    };
    let config =
        GitHubConfig { api_url: place.api_url, web_url: Some(place.web_url), auth, webhook_secret, forge: place.forge };
    Some((kind, config))
}

fn way_out(error: &ForgeError) -> &'static str {
    match error {
        ForgeError::Unavailable(_) => "Look at `github.url`, the network and the proxy between here and the forge.",
        ForgeError::Unreadable(_) => {
            "What answers at `github.url` is no GitHub: look at the address, and at a proxy before it."
        }
        ForgeError::RateLimited { .. } => "Wait; the limit is the forge's.",
        _ => {
            "The App or token is not known there: look at `github.app_id`, its private key, and whether the App still exists."
        }
    }
}

fn repositories(repos: &Result<Vec<String>, ForgeError>, kind: Kind, page: Option<&str>) -> Line {
    const WHAT: &str = "repositories";
    match repos {
        Err(error) => Line::bad(WHAT, error.to_string(), way_out(error)),
        Ok(repos) if repos.is_empty() && kind == Kind::App => {
            let at =
                page.map_or_else(|| "from the App's page".to_owned(), |page| format!("at {page}/installations/new"));
            Line::bad(WHAT, "the App sees none", format!("Install it {at}."))
        }
        Ok(repos) if repos.is_empty() => {
            Line::look(WHAT, "the token lists none", "Give its account write access to the repositories.")
        }
        Ok(repos) => {
            let named: Vec<&str> = repos.iter().take(5).map(String::as_str).collect();
            let more = if repos.len() > 5 { format!(" and {} more", repos.len() - 5) } else { String::new() };
            Line::good(WHAT, format!("{}{more}", named.join(", ")))
        }
    }
}

struct Webhooks<'a> {
    url: &'a str,
    known: &'a Known,
    repos: Result<Vec<String>, String>,
}

async fn webhooks(github: &GitHub, kind: Kind, around: &Webhooks<'_>, lines: &mut Vec<Line>) {
    const WHAT: &str = "webhooks";
    let hook = hook(around.url);
    let taken = &around.known.taken;
    if let Some((event, at)) = taken {
        lines.push(Line::good(WHAT, format!("the newest that was taken is {event}, {}", date(at.0))));
    }
    if kind == Kind::Token {
        if taken.is_none() {
            let way_out = format!(
                "Add one to each repository: address {hook}, content type application/json, the secret of `github.webhook_secret`, and the \
                 events of app-manifest.json."
            );
            lines.push(Line::bad(WHAT, "none was ever taken", way_out));
        }
        return;
    }
    let sent = github.sent().await.map_err(|error| error.to_string());
    if let (Some(_), Ok(sent)) = (taken, &sent) {
        if let Some(newest) = sent.first().filter(|newest| !(200..300).contains(&newest.code)) {
            lines.push(Line::look(
                WHAT,
                format!("the forge's newest, {} at {}, was not taken", newest.event, newest.at),
                newest.problem(&hook).unwrap_or_default(),
            ));
        }
        return;
    }
    if taken.is_none() {
        let seen = Seen {
            name: String::new(),
            owner: String::new(),
            page: String::new(),
            settings: String::new(),
            hook,
            repos: around.repos.clone(),
            taken: None,
            refused: None,
            sent,
        };
        lines.push(Line::bad(WHAT, format!("none of {FORGE} was ever taken"), missing(&seen).join(" ")));
    }
}

/// `2026-12-01 02:10 UTC`
fn date(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default()
}
