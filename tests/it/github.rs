//! The GitHub adapter against a recorder that answers canned JSON: what goes over the wire, and what comes of it.

mod answers;
mod calls;
mod fake;
mod hooks;
mod openapi;
mod tokens;
mod writes;

use secrecy::SecretString;
use tidegate::domain::ids::RepoKey;
use tidegate::forge::github::{GitHub, GitHubAuth, GitHubConfig};
use tidegate::ports::forge::{PullRef, RepoRef};

const APP_ID: u64 = 29_310;
const SECRET: &str = "swordfish";
const KEY: &str = include_str!("../../fixtures/github/test-app-key.pem");

fn config(api_url: &str, auth: GitHubAuth) -> GitHubConfig {
    GitHubConfig {
        api_url: api_url.to_owned(),
        web_url: None,
        auth,
        webhook_secret: SecretString::from(SECRET),
        forge: "github".to_owned(),
    }
}

fn app(api_url: &str) -> GitHub {
    let auth = GitHubAuth::App { id: APP_ID, private_key_pem: SecretString::from(KEY) };
    GitHub::new(config(api_url, auth)).expect("the test key is a key")
}

fn with_token(api_url: &str) -> GitHub {
    GitHub::new(config(api_url, GitHubAuth::Token(SecretString::from("pat")))).expect("a token needs no key")
}

fn repo() -> RepoRef {
    RepoRef { key: RepoKey { forge: "github".to_owned(), id: 1 }, name: "acme/infra".to_owned() }
}

fn pull() -> PullRef {
    PullRef { repo: repo(), number: 7 }
}
