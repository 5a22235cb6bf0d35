//! The pages on which a person confirms an App and installs it. As on GitHub, the form that brings a manifest may come from any
//! site, so nothing is made before somebody confirms it here.

use askama::Template;

use super::view::Shell;
use super::{back, html};
use crate::sandbox::apps::{Manifest, after_installation};
use crate::sandbox::http::{Call, Reply};
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::world::{SLUG, State};

#[derive(Template)]
#[template(path = "sandbox/app.html")]
struct AppPage {
    shell: Shell,
    title: String,
    words: String,
    action: String,
    manifest: Option<String>,
    name: String,
    state: String,
    button: String,
}

/// Whether a call is for one of these pages.
pub fn fits(parts: &[String]) -> bool {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    matches!(
        parts.as_slice(),
        ["settings", "apps", ..] | ["organizations", _, "settings", "apps", ..] | ["apps", _, "installations", "new"]
    )
}

/// Answers.
pub fn serve(state: &mut State, call: &Call, shell: &Shell, parts: &[&str]) -> Answer<Reply> {
    match (call.method.as_str(), parts) {
        ("POST", ["settings", "apps", "new"]) => ask(state, call, shell, &shell.viewer.clone()),
        ("POST", ["organizations", owner, "settings", "apps", "new"]) => ask(state, call, shell, owner),
        ("POST", ["settings", "apps", "confirm"]) => confirm(state, call, &shell.viewer),
        ("POST", ["organizations", owner, "settings", "apps", "confirm"]) => confirm(state, call, owner),
        ("GET", ["apps", SLUG, "installations", "new"]) => Ok(install(state, shell)),
        ("POST", ["apps", SLUG, "installations", "new"]) => {
            state.install_app(&shell.viewer)?;
            Ok(back(&after_installation(state)))
        }
        _ => Err(Refusal::not_found()),
    }
}

fn ask(state: &State, call: &Call, shell: &Shell, owner: &str) -> Answer<Reply> {
    let owner = state.account(owner)?.login.clone();
    let text = call.form().get("manifest").cloned().unwrap_or_default();
    let manifest = Manifest::read(&text)?;
    let reply = html(&AppPage {
        shell: shell.clone(),
        title: format!("Create GitHub App for {owner}"),
        words: "It gets the permissions and the webhook of the manifest. Its name must be free.".to_owned(),
        action: call.path.replace("/new", "/confirm"),
        name: manifest.name().to_owned(),
        state: call.query.get("state").cloned().unwrap_or_default(),
        manifest: Some(text.clone()),
        button: format!("Create GitHub App for {owner}"),
    });
    Ok(leading_to(reply, manifest.redirect_url()))
}

/// A browser holds the redirect after a form to what the page allows its forms to call.
fn leading_to(mut reply: Reply, address: &str) -> Reply {
    let origin = url::Url::parse(address).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    for (_, value) in reply.headers.iter_mut().filter(|(name, _)| name == "content-security-policy") {
        *value = value.replace("form-action 'self'", &format!("form-action 'self' {origin}"));
    }
    reply
}

fn confirm(state: &mut State, call: &Call, owner: &str) -> Answer<Reply> {
    let form = call.form();
    let field = |name: &str| form.get(name).map_or("", String::as_str);
    let manifest = Manifest::read(field("manifest"))?;
    let code = state.make_app(&manifest, field("name"), owner)?;
    let mut to = url::Url::parse(manifest.redirect_url()).map_err(|_| Refusal::unprocessable("redirect_url"))?;
    to.query_pairs_mut().append_pair("code", &code);
    if !field("state").is_empty() {
        to.query_pairs_mut().append_pair("state", field("state"));
    }
    Ok(back(to.as_str()))
}

fn install(state: &State, shell: &Shell) -> Reply {
    let reply = html(&AppPage {
        shell: shell.clone(),
        title: format!("Install {}", state.apps.name),
        words: format!("On all {} repositories of this sandbox.", state.repos.len()),
        action: format!("/apps/{SLUG}/installations/new"),
        manifest: None,
        name: String::new(),
        state: String::new(),
        button: "Install".to_owned(),
    });
    leading_to(reply, &after_installation(state))
}
