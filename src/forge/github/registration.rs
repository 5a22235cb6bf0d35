//! GitHub's manifest flow: the address of its form, and the change of a code for an App. The code and what it gives are never
//! logged. It keeps nothing.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use http::StatusCode;
use secrecy::SecretString;
use serde::Deserialize;

use super::access::{api_root, builder};
use super::refusal::refusal;
use super::request::{Ask, Whose, segment, send};
use super::{GitHub, GitHubAuth, GitHubConfig};
use crate::domain::ids::Timestamp;
use crate::domain::setup::Sent;
use crate::ports::forge::ForgeError;
use crate::ports::registration::{AppKeys, Connected, RedeemError, Registration};

/// The newest deliveries that are asked for: one page.
const DELIVERIES: &str = "/app/hook/deliveries?per_page=30";

/// A GitHub on which an App can be made.
#[derive(Clone, Debug)]
pub struct GitHubPlace {
    /// The root of the REST API.
    pub api_url: String,
    /// The root of the pages.
    pub web_url: String,
    /// The name of this forge in the settings.
    pub forge: String,
}

/// Makes Apps on a GitHub.
pub struct Registrar {
    place: GitHubPlace,
    /// The GitHub that the App of this server signed in to.
    connected: Mutex<Option<Arc<GitHub>>>,
}

#[derive(Deserialize)]
struct Made {
    id: u64,
    slug: Option<String>,
    name: String,
    html_url: String,
    owner: Owner,
    client_id: String,
    client_secret: String,
    webhook_secret: Option<String>,
    pem: String,
}

#[derive(Deserialize)]
struct Owner {
    login: Option<String>,
    slug: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct HookDelivery {
    event: String,
    delivered_at: String,
    status: String,
    status_code: u16,
}

impl Registrar {
    /// Asks nothing of the network.
    pub fn new(place: GitHubPlace) -> Self {
        let web_url = place.web_url.trim_end_matches('/').to_owned();
        Self { place: GitHubPlace { web_url, ..place }, connected: Mutex::new(None) }
    }

    fn keys(&self, made: Made, now: Timestamp) -> Result<AppKeys, RedeemError> {
        let web = &self.place.web_url;
        let slug = made.slug.or_else(|| made.html_url.rsplit('/').next().map(str::to_owned)).unwrap_or_default();
        // A link of ours goes to the forge that the settings name, whatever an answer says.
        let page = format!("{web}/apps/{}", segment(&slug));
        let Some(webhook_secret) = made.webhook_secret.filter(|secret| !secret.trim().is_empty()) else {
            return Err(RedeemError::NoSecret(page));
        };
        let owner = made.owner.login.or(made.owner.slug).unwrap_or_default();
        let settings = match made.owner.kind.as_deref() {
            Some("Organization") => format!("{}/{}", form(web, Some(&owner)).trim_end_matches("/new"), segment(&slug)),
            _ => format!("{}/{}", form(web, None).trim_end_matches("/new"), segment(&slug)),
        };
        Ok(AppKeys {
            id: made.id,
            slug,
            name: made.name,
            page,
            settings,
            owner,
            private_key: SecretString::from(made.pem),
            webhook_secret: SecretString::from(webhook_secret),
            client_id: made.client_id,
            client_secret: SecretString::from(made.client_secret),
            made: now,
        })
    }

    fn github(&self, keys: &AppKeys) -> Result<Arc<GitHub>, ForgeError> {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(github) = &*connected {
            return Ok(Arc::clone(github));
        }
        let config = GitHubConfig {
            api_url: self.place.api_url.clone(),
            web_url: Some(self.place.web_url.clone()),
            auth: GitHubAuth::App { id: keys.id, private_key_pem: keys.private_key.clone() },
            webhook_secret: keys.webhook_secret.clone(),
            forge: self.place.forge.clone(),
        };
        let github = Arc::new(GitHub::new(config).map_err(|error| ForgeError::Invalid(error.to_string()))?);
        *connected = Some(Arc::clone(&github));
        Ok(github)
    }
}

fn form(web: &str, organization: Option<&str>) -> String {
    match organization {
        Some(name) => format!("{web}/organizations/{}/settings/apps/new", segment(name)),
        None => format!("{web}/settings/apps/new"),
    }
}

#[async_trait]
impl Registration for Registrar {
    fn form(&self, organization: Option<&str>) -> String {
        form(&self.place.web_url, organization)
    }

    fn home(&self) -> &str {
        &self.place.web_url
    }

    async fn redeem(&self, code: &str, now: Timestamp) -> Result<AppKeys, RedeemError> {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let invalid = |error: &dyn std::fmt::Display| ForgeError::Invalid(error.to_string());
        let root = api_root(&self.place.api_url).map_err(|error| invalid(&error))?;
        let crab =
            builder(&root).and_then(|builder| builder.build().map_err(|error| super::access::client_error(&error)));
        let crab = crab.map_err(|error| invalid(&error))?;
        let ask = Ask {
            body: None,
            ..Ask::post(format!("/app-manifests/{}/conversions", segment(code)), serde_json::Value::Null)
        };
        let answer = send(&crab, &ask).await?;
        match answer.status {
            StatusCode::CREATED => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(RedeemError::Unknown),
            _ => return Err(RedeemError::Forge(refusal(&ask, &answer))),
        }
        // An error of the reader could quote what it read.
        let made = serde_json::from_str::<Made>(&answer.body).map_err(|error| {
            ForgeError::Unreadable(format!(
                "the App in the answer cannot be read ({:?} at column {})",
                error.classify(),
                error.column()
            ))
        })?;
        self.keys(made, now)
    }

    async fn connect(&self, keys: &AppKeys) -> Result<Connected, ForgeError> {
        let github = self.github(keys)?;
        github.connect().await?;
        let login = github.login().await?;
        Ok(Connected { forge: github.clone(), hooks: github, login })
    }

    async fn sent(&self, keys: &AppKeys) -> Result<Vec<Sent>, ForgeError> {
        self.github(keys)?.sent().await
    }
}

impl GitHub {
    /// The newest deliveries to our webhook as GitHub saw them end, newest first; an App only.
    pub async fn sent(&self) -> Result<Vec<Sent>, ForgeError> {
        let answer = self.ask(Whose::App, &Ask::get(DELIVERIES)).await?;
        let all: Vec<HookDelivery> = answer.read()?;
        let sent = |one: HookDelivery| Sent {
            event: one.event,
            at: one.delivered_at,
            code: one.status_code,
            status: one.status,
        };
        Ok(all.into_iter().map(sent).collect())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use serde_json::{Value, json};

    use super::*;

    fn registrar() -> Registrar {
        Registrar::new(GitHubPlace {
            api_url: "https://api.github.com".to_owned(),
            web_url: "https://github.com/".to_owned(),
            forge: "github".to_owned(),
        })
    }

    fn made(owner: &Value, secret: &Value) -> Made {
        let answer = json!({
            "id": 7, "slug": "tidegate-acme", "node_id": "A", "owner": owner, "name": "Tidegate acme", "description": null,
            "external_url": "https://t", "html_url": "javascript:alert(1)//tidegate-acme", "created_at": "x", "updated_at": "x",
            "permissions": {}, "events": [], "client_id": "Iv1.x", "client_secret": "cs", "webhook_secret": secret, "pem": "-----BEGIN",
        });
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn forms_are_for_an_organization_or_for_oneself() {
        assert_eq!(registrar().form(None), "https://github.com/settings/apps/new");
        assert_eq!(registrar().form(Some("acme")), "https://github.com/organizations/acme/settings/apps/new");
        assert_eq!(registrar().form(Some("a/../b")), "https://github.com/organizations/a%2F..%2Fb/settings/apps/new");
    }

    #[test]
    fn links_stay_on_the_forge_and_secrets_out_of_what_is_printed() {
        let org = json!({"login": "acme", "type": "Organization"});
        let keys = registrar().keys(made(&org, &json!("hook-secret")), Timestamp(3)).unwrap();
        assert_eq!(keys.page, "https://github.com/apps/tidegate-acme");
        assert_eq!(keys.settings, "https://github.com/organizations/acme/settings/apps/tidegate-acme");
        assert_eq!((keys.webhook_secret.expose_secret(), keys.made), ("hook-secret", Timestamp(3)));
        let printed = format!("{keys:?}");
        assert!(["hook-secret", "BEGIN", "\"cs\""].iter().all(|secret| !printed.contains(secret)), "{printed}");
        let user = json!({"login": "mira", "type": "User"});
        let keys = registrar().keys(made(&user, &json!("s")), Timestamp(0)).unwrap();
        assert_eq!(keys.settings, "https://github.com/settings/apps/tidegate-acme");
    }

    #[test]
    fn an_app_without_a_webhook_secret_is_not_taken() {
        for none in [Value::Null, json!(""), json!(" ")] {
            let refused = registrar().keys(made(&json!({"login": "mira"}), &none), Timestamp(0));
            assert!(matches!(refused, Err(RedeemError::NoSecret(_))), "{none}");
        }
    }

    #[test]
    fn a_code_is_in_no_log_and_no_error() {
        let ask = Ask::post("/app-manifests/s3cret/conversions", Value::Null);
        assert_eq!(ask.shown(), "/app-manifests/…/conversions");
    }
}
