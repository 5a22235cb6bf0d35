//! Setting an App up in the browser, as rules: the manifest with our addresses, whether a forge can reach them, and what is still
//! missing until the first webhook has come. It holds no secret and asks nobody.

use serde_json::{Value, json};
use url::{Host, Url};

use super::ids::Timestamp;

/// The manifest that the repository ships, with an example's addresses.
const MANIFEST: &str = include_str!("../../app-manifest.json");
/// The longest name that GitHub takes for an App.
const LONGEST_NAME: usize = 34;
/// The longest login.
const LONGEST_LOGIN: usize = 39;
/// Repositories that are named; the rest is counted.
const NAMED: usize = 5;

/// A delivery, as the forge saw it end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its event.
    pub event: String,
    /// When, as the forge writes it.
    pub at: String,
    /// The status that it got; 0 when there was no answer.
    pub code: u16,
    /// The forge's word for how it ended.
    pub status: String,
}

/// A delivery that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: Refusal,
}

/// Why a delivery was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its signature does not fit the secret.
    Signature,
    /// A header of the forge is missing.
    Header,
    /// Its body cannot be read.
    Body,
}

/// The manifest of an App of ours at this public address.
pub fn manifest(url: &str, organization: Option<&str>) -> Value {
    let url = url.trim_end_matches('/');
    let mut manifest: Value = serde_json::from_str(MANIFEST).unwrap_or_default();
    let name = organization.map_or_else(|| "Tidegate".to_owned(), |owner| format!("Tidegate {owner}"));
    manifest["name"] = json!(name.chars().take(LONGEST_NAME).collect::<String>());
    manifest["url"] = json!(url);
    manifest["hook_attributes"] = json!({ "url": hook(url), "active": true });
    manifest["redirect_url"] = json!(page(url));
    manifest["setup_url"] = json!(page(url));
    manifest
}

/// Where GitHub sends webhooks.
pub fn hook(url: &str) -> String {
    format!("{}/webhooks/github", url.trim_end_matches('/'))
}

/// The page of the set-up.
pub fn page(url: &str) -> String {
    format!("{}/setup/github", url.trim_end_matches('/'))
}

/// Whether this can be an account's login: what goes into an address must not be able to leave its place.
pub fn is_login(text: &str) -> bool {
    (1..=LONGEST_LOGIN).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Whether a forge can call our address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reachable {
    /// As far as can be told.
    Yes,
    /// It looks like an address of a private network.
    Unlikely(String),
    /// It cannot.
    No(String),
}

/// Whether the forge can call us at this address, from the addresses alone.
pub fn reachable(ours: &str, forge: &str) -> Reachable {
    let (Some(us), Some(them)) = (network(ours), network(forge)) else { return Reachable::Yes };
    match (us, them) {
        (Network::Machine, Network::Machine) | (Network::Private, Network::Machine | Network::Private) => {
            Reachable::Yes
        }
        (Network::Machine, _) => Reachable::No(format!(
            "`url` is {ours}, which only this machine can call. Set `url` (`TIDEGATE_URL`) to the address at which {forge} reaches this server, \
             and start it again."
        )),
        (Network::Private, Network::World) => Reachable::Unlikely(format!(
            "`url` is {ours}, which looks like an address of a private network. {forge} must be able to call it."
        )),
        (Network::World, _) => Reachable::Yes,
    }
}

#[derive(Clone, Copy)]
enum Network {
    Machine,
    Private,
    World,
}

fn network(address: &str) -> Option<Network> {
    let url = Url::parse(address).ok()?;
    let of = |machine: bool, private: bool| match (machine, private) {
        (true, _) => Network::Machine,
        (_, true) => Network::Private,
        _ => Network::World,
    };
    Some(match url.host()? {
        Host::Ipv4(ip) => of(ip.is_loopback() || ip.is_unspecified(), ip.is_private() || ip.is_link_local()),
        Host::Ipv6(ip) => {
            of(ip.is_loopback() || ip.is_unspecified(), ip.is_unique_local() || ip.is_unicast_link_local())
        }
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let private = [".local", ".internal", ".lan", ".home.arpa"].iter().any(|end| name.ends_with(end));
            of(name == "localhost" || name.ends_with(".localhost"), private || !name.contains('.'))
        }
    })
}

/// What is known of an App that was made.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// Its page.
    pub page: String,
    /// Its settings.
    pub settings: String,
    /// Where its webhooks go.
    pub hook: String,
    /// The repositories that it can see, or why that is not known.
    pub repos: Result<Vec<String>, String>,
    /// The newest delivery that was taken.
    pub taken: Option<(String, Timestamp)>,
    /// The newest delivery that was refused.
    pub refused: Option<Refused>,
    /// The newest deliveries as the forge saw them end, newest first, or why that is not known.
    pub sent: Result<Vec<Sent>, String>,
}

/// How far a part of the set-up is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Done.
    Done,
    /// This is what is missing now.
    Now,
    /// It comes after what is missing now.
    Later,
}

/// A part of the set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// How far it is.
    pub mark: Mark,
    /// What it is.
    pub title: &'static str,
    /// What is known, and what to do.
    pub says: Vec<String>,
    /// Where to do it: words and address.
    pub link: Option<(&'static str, String)>,
}

/// The parts of the set-up after the App was made, in order.
pub fn parts(seen: &Seen) -> Vec<Part> {
    let made = Part {
        mark: Mark::Done,
        title: "The App is created",
        says: vec![format!(
            "{} belongs to {}. Its key and its webhook secret are stored here, sealed.",
            seen.name, seen.owner
        )],
        link: None,
    };
    vec![made, installed(seen), heard(seen)]
}

/// Whether nothing is missing.
pub fn is_complete(parts: &[Part]) -> bool {
    parts.iter().all(|part| part.mark == Mark::Done)
}

fn installed(seen: &Seen) -> Part {
    let install = Some(("Install the App", format!("{}/installations/new", seen.page)));
    match &seen.repos {
        Err(why) => Part {
            mark: Mark::Now,
            title: "The forge does not answer",
            says: vec![why.clone(), "Nothing is lost: this page asks again.".to_owned()],
            link: None,
        },
        Ok(repos) if repos.is_empty() => Part {
            mark: Mark::Now,
            title: "Install it on repositories",
            says: vec![
                "It sees no repository yet. Choose those that hold Terraform or OpenTofu; more can follow later."
                    .to_owned(),
            ],
            link: install,
        },
        Ok(repos) => {
            let mut says = repos.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            if repos.len() > NAMED {
                says = format!("{says} and {} more", repos.len() - NAMED);
            }
            let count =
                if repos.len() == 1 { "1 repository".to_owned() } else { format!("{} repositories", repos.len()) };
            Part { mark: Mark::Done, title: "It is installed", says: vec![format!("On {count}: {says}.")], link: None }
        }
    }
}

fn heard(seen: &Seen) -> Part {
    if let Some((event, at)) = &seen.taken {
        let says = vec![format!("The newest one that was taken is {event}, at {} UTC.", at.hour_minute())];
        return Part { mark: Mark::Done, title: "Webhooks arrive", says, link: None };
    }
    let title = "Waiting for the first webhook";
    if seen.repos.as_ref().map_or(true, Vec::is_empty) {
        let says = vec!["The installation sends it.".to_owned()];
        return Part { mark: Mark::Later, title, says, link: None };
    }
    let mut says = missing(seen);
    says.push(
        "Then have it sent again: open the App's settings, Advanced, and redeliver; or push to a pull request."
            .to_owned(),
    );
    Part { mark: Mark::Now, title, says, link: Some(("The App's settings", seen.settings.clone())) }
}

/// Why no webhook was taken yet, as far as both sides know.
pub fn missing(seen: &Seen) -> Vec<String> {
    let mut says = Vec::new();
    if let Some(refused) = seen.refused {
        says.push(format!(
            "A delivery came at {} UTC and was refused. {}",
            refused.at.hour_minute(),
            refused.why.way_out()
        ));
    }
    match &seen.sent {
        Err(why) => says.push(format!("What the forge sent is not known now: {why}")),
        Ok(sent) => says.extend(sent.iter().find(|sent| sent.counts()).map_or_else(
            || {
                says.is_empty()
                    .then(|| format!("The forge lists no delivery to {} yet. It takes some seconds.", seen.hook))
            },
            |sent| sent.problem(&seen.hook),
        )),
    }
    says
}

impl Refusal {
    /// What it means and what mends it.
    pub fn way_out(self) -> &'static str {
        match self {
            Self::Signature => {
                "Its signature does not fit the webhook secret: the App must have the very secret that is stored here. If it was changed in \
                 the App's settings, put the same one into the server's settings, or have this App forgotten (`tidegate forget-app`) and set up again."
            }
            Self::Header => {
                "It lacked one of GitHub's headers. It was not GitHub's, or a proxy in between drops `X-GitHub-Event`, `X-GitHub-Delivery` or \
                 `X-Hub-Signature-256`."
            }
            Self::Body => "Its body is no JSON. A proxy in between may change it; it must pass unchanged.",
        }
    }
}

impl Sent {
    /// The ping that greets a new App comes before we can have its secret, so it says nothing.
    fn counts(&self) -> bool {
        !(self.event == "ping" && self.code == 503)
    }

    /// What is wrong with how it ended, if anything.
    pub fn problem(&self, hook: &str) -> Option<String> {
        let Self { event, at, code, status } = self;
        match code {
            200..300 => Some(format!(
                "The forge delivered {event} at {at}, and it is not here: something else answers at {hook}."
            )),
            401 => Some(format!("The forge sent {event} at {at} and got 401. {}", Refusal::Signature.way_out())),
            0 => Some(format!(
                "The forge sent {event} at {at} and got no answer ({status}). It must reach {hook}: look at `url` in the settings, DNS, the \
                 certificate, and the firewall."
            )),
            _ => Some(format!(
                "The forge sent {event} at {at} and got {code} ({status}). What answers at {hook} must be this server: look at `url` in the \
                 settings, and at the proxy in between."
            )),
        }
    }
}

#[cfg(test)]
mod tests;
