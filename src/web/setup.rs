//! `/setup/github`: the token, the form that goes to GitHub, what comes back, and what is missing until the first webhook. It shows
//! no secret and decides nothing. Cookies, addresses and words only.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, Query, State};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{CONTENT_SECURITY_POLICY, COOKIE, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;

use crate::app::setup::{self, SESSION_MS, Setup, SetupError};
use crate::domain::setup::{Mark, Part, Reachable, is_complete, page, parts};

const COOKIE_NAME: &str = "tidegate_setup";
/// A token and a name; nothing here is long.
const FORM_LIMIT: usize = 16 << 10;

/// The routes while the App is, or was, made in the browser.
pub(super) fn routes(setup: Arc<Setup>) -> Router {
    Router::new()
        .route("/setup", get(to_the_page))
        .route("/setup/github", get(show).post(enter))
        .route("/setup/github/create", post(create).get(to_the_page))
        .layer(DefaultBodyLimit::max(FORM_LIMIT))
        .with_state(setup)
}

/// The routes of a server whose settings say who it is.
pub(super) fn closed() -> Router {
    const SAYS: &str = "This server is set up: its settings say who it is on the forge.\n";
    Router::new().route("/setup", get(|| async { SAYS })).route("/setup/github", get(|| async { SAYS }))
}

#[derive(Template)]
#[template(path = "pages/setup.html")]
struct Page {
    title: &'static str,
    /// Why the last step was refused.
    refused: String,
    /// What may go wrong, said before it does.
    warning: String,
    refresh: bool,
    /// Where our own forms go: the public address, so that the cookie is of the host to which the forge sends the browser back.
    here: String,
    forge: String,
    body: Body,
}

enum Body {
    Token,
    Owner,
    Create { action: String, manifest: String, owner: String, name: String },
    Parts { parts: Vec<Part>, complete: bool },
    Words(&'static str),
}

#[derive(Deserialize, Default)]
pub(super) struct Back {
    code: Option<String>,
    state: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Token {
    #[serde(default)]
    token: String,
}

#[derive(Deserialize)]
pub(super) struct Owner {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    organization: String,
}

async fn to_the_page(State(setup): State<Arc<Setup>>) -> Response {
    go(&setup)
}

/// The page as the set-up stands, or the end of the forge's redirect.
async fn show(State(setup): State<Arc<Setup>>, Query(back): Query<Back>, headers: HeaderMap) -> Response {
    let session = cookie(&headers);
    if let Some(code) = &back.code {
        return match setup.end(&session, code, back.state.as_deref().unwrap_or_default()).await {
            // The address with the code leaves the browser's bar.
            Ok(setup::Ended::Made | setup::Ended::Before) => go(&setup),
            Err(error) => refused(&setup, &session, &error).await,
        };
    }
    match body(&setup, &session).await {
        Ok(body) => render(&setup, StatusCode::OK, String::new(), body),
        Err(error) => refused(&setup, &session, &error).await,
    }
}

async fn enter(State(setup): State<Arc<Setup>>, Form(given): Form<Token>) -> Response {
    match setup.enter(&given.token).await {
        Ok(session) => {
            let secure = if setup.url().starts_with("https:") { "; Secure" } else { "" };
            // Lax, because the forge sends the browser back from another site.
            let cookie = format!(
                "{COOKIE_NAME}={session}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
                SESSION_MS / 1000
            );
            let mut response = go(&setup);
            if let Ok(value) = HeaderValue::from_str(&cookie) {
                response.headers_mut().insert(SET_COOKIE, value);
            }
            response
        }
        Err(error) => {
            tracing::warn!(why = %error, "the set-up was not opened");
            refused(&setup, "", &error).await
        }
    }
}

async fn create(State(setup): State<Arc<Setup>>, headers: HeaderMap, Form(owner): Form<Owner>) -> Response {
    let session = cookie(&headers);
    let organization = owner.organization.trim();
    let wanted = if owner.kind == "organization" { organization } else { "" };
    if owner.kind == "organization" && organization.is_empty() {
        return refused(&setup, &session, &SetupError::NoLogin).await;
    }
    match setup.begin(&session, wanted).await {
        Ok(form) => {
            let name = form.manifest["name"].as_str().unwrap_or_default().to_owned();
            let owner = if wanted.is_empty() { "your own account".to_owned() } else { wanted.to_owned() };
            let body = Body::Create { action: form.action, manifest: form.manifest.to_string(), owner, name };
            render(&setup, StatusCode::OK, String::new(), body)
        }
        Err(error) => refused(&setup, &session, &error).await,
    }
}

/// What there is to do now for this browser.
async fn body(setup: &Setup, session: &str) -> Result<Body, SetupError> {
    let known = setup.is_session(session).await?;
    match (setup.keys(), known) {
        (None, false) => Ok(Body::Token),
        (None, true) => Ok(Body::Owner),
        (Some(_), true) => {
            let parts = setup.look().await?.map(|seen| parts(&seen)).unwrap_or_default();
            Ok(Body::Parts { complete: is_complete(&parts), parts })
        }
        (Some(_), false) if setup.taken().await?.is_some() => {
            Ok(Body::Words("This server is set up, and webhooks arrive. Nothing can be changed here."))
        }
        (Some(_), false) => Ok(Body::Words(
            "The App of this server was made. What is missing until its first webhook is shown in the browser that made it; \
             `tidegate doctor` says it on the server.",
        )),
    }
}

async fn refused(setup: &Setup, session: &str, error: &SetupError) -> Response {
    let status = match error {
        SetupError::WrongToken | SetupError::UsedToken | SetupError::NoSession => StatusCode::FORBIDDEN,
        SetupError::Done | SetupError::Second | SetupError::Late(_) => StatusCode::CONFLICT,
        SetupError::NoLogin
        | SetupError::Unreachable(_)
        | SetupError::WrongState
        | SetupError::TooLate
        | SetupError::UnknownCode
        | SetupError::NoSecret(_) => StatusCode::BAD_REQUEST,
        SetupError::Forge(_) => StatusCode::BAD_GATEWAY,
        SetupError::Store(_) | SetupError::Keys(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let words = "The set-up cannot be shown now.";
    let body = body(setup, session).await.unwrap_or(Body::Words(words));
    render(setup, status, error.to_string(), body)
}

fn render(setup: &Setup, status: StatusCode, refused: String, body: Body) -> Response {
    let warning = match (&body, setup.reachable()) {
        (Body::Owner | Body::Create { .. } | Body::Token, Reachable::No(why) | Reachable::Unlikely(why)) => why,
        _ => String::new(),
    };
    let page = Page {
        title: match &body {
            Body::Parts { complete: true, .. } => "Tidegate is set up",
            _ => "Set Tidegate up for GitHub",
        },
        // A refusal is to be read, and must not vanish; a form must not either.
        refresh: refused.is_empty() && matches!(&body, Body::Parts { complete: false, .. }),
        refused,
        warning,
        here: page(setup.url()),
        forge: setup.forge().to_owned(),
        body,
    };
    match page.render() {
        Ok(html) => allowed(setup, (status, Html(html)).into_response()),
        Err(error) => {
            tracing::error!(%error, "a page cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// These pages have forms: to ourselves by the public address, and to the forge, which may send it on to its own log-in. The forge
/// may know which site sent the form; addresses here hold nothing.
fn allowed(setup: &Setup, mut response: Response) -> Response {
    let origin =
        |address: &str| url::Url::parse(address).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self' {} {}; base-uri 'none'; frame-ancestors 'none'",
        origin(setup.url()),
        origin(setup.forge())
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
    response
}

fn go(setup: &Setup) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(to) = HeaderValue::from_str(&page(setup.url())) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

fn cookie(headers: &HeaderMap) -> String {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|value| value.split(';'));
    let mut ours = pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| *name == COOKIE_NAME);
    ours.next().map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// Text between backticks is code, on a page as in a terminal.
fn pieces(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.split('`').enumerate().map(|(at, piece)| (at % 2 == 1, piece))
}

impl Part {
    /// The mark, for eyes.
    fn sign(&self) -> &'static str {
        match self.mark {
            Mark::Done => "✓",
            Mark::Now => "→",
            Mark::Later => "·",
        }
    }

    /// The mark, for ears.
    fn word(&self) -> &'static str {
        match self.mark {
            Mark::Done => "done",
            Mark::Now => "now",
            Mark::Later => "later",
        }
    }
}
