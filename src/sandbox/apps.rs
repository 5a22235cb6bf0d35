//! The App as the sandbox knows it: made from a manifest by a person's confirmation, given to whoever has the code, installed.
//! The sandbox plays one App; what is made beside it has a name and an id, and opens nothing.

use serde_json::{Value, json};

use super::auth::{self, Who};
use super::http::{Call, Reply};
use super::refusal::{Answer, Refusal};
use super::shape;
use super::world::{APP_ID, INSTALLATION_ID, Role, State, seconds};

/// A code is good for so long, seconds.
const CODE_LIFE: i64 = 3600;
/// The longest name of an App.
const LONGEST_NAME: usize = 34;

/// How far the App is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nobody made it.
    Unknown,
    /// It is there, and sees no repository.
    Made,
    /// It sees every repository.
    Installed,
}

/// The App, and codes that are worth one.
#[derive(Debug)]
pub struct Apps {
    /// How far the App is.
    pub standing: Standing,
    /// Its name.
    pub name: String,
    /// Where a browser goes after the installation.
    pub setup_url: Option<String>,
    /// What signs its webhooks, when it was made from a manifest.
    pub secret: Option<String>,
    waiting: Vec<Waiting>,
}

/// A code that nobody used yet.
#[derive(Debug)]
struct Waiting {
    code: String,
    since: i64,
    id: u64,
    name: String,
    owner: String,
    secret: String,
}

impl Default for Apps {
    /// An App that was made and installed long ago.
    fn default() -> Self {
        Self {
            standing: Standing::Installed,
            name: "Tidegate".to_owned(),
            setup_url: None,
            secret: None,
            waiting: Vec::new(),
        }
    }
}

impl Apps {
    /// Every code is older than it may be from now on.
    pub fn age(&mut self) {
        self.waiting.iter_mut().for_each(|waiting| waiting.since -= CODE_LIFE);
    }
}

/// A manifest that GitHub would take.
pub struct Manifest(Value);

impl Manifest {
    /// Reads it, and refuses what GitHub refuses.
    pub fn read(text: &str) -> Answer<Self> {
        let refuse = |message: &str| Err(Refusal::unprocessable(message));
        let Ok(manifest) = serde_json::from_str::<Value>(text) else { return refuse("The manifest is no JSON") };
        let is_url =
            |value: &Value| value.as_str().is_some_and(|url| url.starts_with("http://") || url.starts_with("https://"));
        if !is_url(&manifest["url"]) {
            return refuse("\"url\" wasn't supplied");
        }
        if !is_url(&manifest["redirect_url"]) {
            return refuse("\"redirect_url\" wasn't supplied");
        }
        if !is_url(&manifest["hook_attributes"]["url"]) {
            return refuse("Hook url is not a valid URL");
        }
        if manifest["name"].as_str().is_some_and(|name| name.chars().count() > LONGEST_NAME) {
            return refuse("Name is too long (maximum is 34 characters)");
        }
        let may = |name: &str| manifest["default_permissions"][name].is_string();
        for event in manifest["default_events"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let needs: &[&str] = match event {
                "check_run" | "check_suite" => &["checks"],
                "issue_comment" => &["issues", "pull_requests"],
                "pull_request" | "pull_request_review" => &["pull_requests"],
                "push" => &["contents"],
                _ => &[],
            };
            if !needs.iter().any(|permission| may(permission)) {
                return refuse("Default events are not supported by permissions");
            }
        }
        Ok(Self(manifest))
    }

    /// The name that it proposes.
    pub fn name(&self) -> &str {
        self.0["name"].as_str().unwrap_or_default()
    }

    /// Where the browser goes back to.
    pub fn redirect_url(&self) -> &str {
        self.0["redirect_url"].as_str().unwrap_or_default()
    }
}

impl State {
    /// Makes the App and gives the code that is worth it. As on GitHub, its hook is pinged before anybody can have its secret.
    pub fn make_app(&mut self, manifest: &Manifest, name: &str, owner: &str) -> Answer<String> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            return Err(Refusal::unprocessable("Name is too long (maximum is 34 characters), or blank"));
        }
        let owner = self.account(owner)?.login.clone();
        let first = self.apps.standing == Standing::Unknown;
        let waiting = Waiting {
            code: auth::mint("code").replace('_', ""),
            since: seconds(),
            id: if first { APP_ID } else { self.id() },
            name: name.to_owned(),
            owner,
            secret: auth::mint("hook"),
        };
        let code = waiting.code.clone();
        if first {
            self.apps.standing = Standing::Made;
            name.clone_into(&mut self.apps.name);
            self.apps.setup_url = manifest.0["setup_url"].as_str().map(str::to_owned);
            self.apps.secret = Some(waiting.secret.clone());
            self.hooks.set(manifest.0["hook_attributes"]["url"].as_str().unwrap_or_default(), &waiting.secret);
            self.ping();
        }
        self.apps.waiting.push(waiting);
        self.touch();
        Ok(code)
    }

    /// Installs the App on everything, with the webhook that says so.
    pub fn install_app(&mut self, by: &str) -> Answer<()> {
        if self.apps.standing == Standing::Unknown {
            return Err(Refusal::not_found());
        }
        self.apps.standing = Standing::Installed;
        let base = self.base();
        let repos: Vec<Value> = self
            .repos
            .values()
            .map(|repo| {
                let full = shape::repo(self, &base, repo, Role::Read);
                let keys = ["id", "node_id", "name", "full_name", "private"];
                Value::Object(keys.iter().map(|key| ((*key).to_owned(), full[*key].clone())).collect())
            })
            .collect();
        let payload = json!({
            "action": "created", "installation": shape::installation(self, &base), "repositories": repos,
            "requester": null, "sender": shape::login(self, &base, by),
        });
        self.hooks.push("installation", "created", &payload);
        self.touch();
        Ok(())
    }
}

/// `POST /app-manifests/{code}/conversions`: the App for its code, once.
pub fn convert(state: &mut State, call: &Call, code: &str) -> Answer<Reply> {
    let at =
        state.apps.waiting.iter().position(|waiting| waiting.code == code && waiting.since + CODE_LIFE > seconds());
    let waiting = state.apps.waiting.remove(at.ok_or_else(Refusal::not_found)?);
    let mut app = shape::app(state, &call.base);
    app["id"] = json!(waiting.id);
    app["node_id"] = json!(shape::node("A", waiting.id));
    app["name"] = json!(waiting.name);
    app["owner"] = shape::login(state, &call.base, &waiting.owner);
    app["client_secret"] = json!(auth::mint("client"));
    app["webhook_secret"] = json!(waiting.secret);
    app["pem"] = json!(auth::APP_KEY);
    Ok(Reply::json(201, &app))
}

/// Whether a token of the App itself still opens anything.
pub fn admit(state: &State, who: Who) -> Answer<Who> {
    match (&who, state.apps.standing) {
        (Who::App, Standing::Unknown) => Err(Refusal::new(404, "Integration not found")),
        _ => Ok(who),
    }
}

/// The App's installations: one, once somebody installed it.
pub fn installations(state: &State, call: &Call) -> Vec<Value> {
    let installed = state.apps.standing == Standing::Installed;
    installed.then(|| shape::installation(state, &call.base)).into_iter().collect()
}

/// Where the browser goes when the installation is done.
pub fn after_installation(state: &State) -> String {
    let to = state.apps.setup_url.clone();
    to.map_or_else(|| "/".to_owned(), |url| format!("{url}?installation_id={INSTALLATION_ID}&setup_action=install"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_refused_as_github_refuses_them() {
        let good = json!({
            "name": "Tidegate", "url": "https://t", "redirect_url": "https://t/setup", "hook_attributes": {"url": "https://t/h"},
            "default_permissions": {"checks": "write", "contents": "read"}, "default_events": ["check_run", "push"],
        });
        assert!(Manifest::read(&good.to_string()).is_ok());
        for (place, value) in [
            ("/name", json!("x".repeat(35))),
            ("/url", Value::Null),
            ("/redirect_url", json!("javascript:x")),
            ("/hook_attributes", json!({})),
            ("/default_events", json!(["pull_request"])),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(place).unwrap() = value;
            assert!(Manifest::read(&bad.to_string()).is_err(), "{place}");
        }
        assert!(Manifest::read("{").is_err());
    }
}
