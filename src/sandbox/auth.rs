//! Who a request comes from. Tokens live in memory only; the App's key is the sandbox's own throwaway.

use base64::Engine;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;
use serde_json::Value;

use super::refusal::{Answer, Refusal};
use super::world::{APP_ID, BOT, Repo, Role, State, seconds};

/// The App's private key. For the sandbox only: everybody can read it here.
pub const APP_KEY: &str = include_str!("app-key.pem");
const APP_PUBLIC_KEY: &str = include_str!("app-key.pub.pem");

/// What a token opens.
#[derive(Clone, Debug)]
pub enum Token {
    /// A person's own.
    Personal(String),
    /// One of the installation, until this second, for these repositories (all when `None`).
    Installation {
        /// The second it dies.
        until: i64,
        /// Repository ids.
        repos: Option<Vec<u64>>,
    },
}

/// Who asks.
#[derive(Clone, Debug)]
pub enum Who {
    /// Nobody said.
    Anonymous,
    /// A person, by login.
    Person(String),
    /// The App itself, by JWT.
    App,
    /// The App's installation, perhaps only for some repositories.
    Installation(Option<Vec<u64>>),
}

#[derive(Deserialize)]
struct Claims {
    iss: Value,
    iat: i64,
    exp: i64,
}

impl Who {
    /// Reads an `Authorization` header.
    pub fn read(state: &State, header: Option<&str>) -> Answer<Self> {
        let Some((scheme, value)) = header.and_then(|header| header.trim().split_once(' ')) else {
            return Ok(Self::Anonymous);
        };
        let secret = match scheme.to_ascii_lowercase().as_str() {
            "token" | "bearer" => value.trim().to_owned(),
            "basic" => password(value).ok_or_else(Refusal::bad_credentials)?,
            _ => return Err(Refusal::bad_credentials()),
        };
        if secret.matches('.').count() == 2 {
            return app(&secret);
        }
        match state.tokens.get(&secret) {
            Some(Token::Personal(login)) => Ok(Self::Person(login.clone())),
            Some(Token::Installation { until, repos }) if *until > seconds() => Ok(Self::Installation(repos.clone())),
            _ => Err(Refusal::bad_credentials()),
        }
    }

    /// The login that its writes carry.
    pub fn login(&self) -> Answer<&str> {
        match self {
            Self::Person(login) => Ok(login),
            Self::Installation(_) => Ok(BOT),
            Self::App => Err(Refusal::forbidden()),
            Self::Anonymous => Err(Refusal::new(401, "Requires authentication")),
        }
    }

    /// Whose requests are counted together: GitHub counts people, not tokens.
    pub fn counted_as(&self) -> String {
        match self {
            Self::Anonymous => String::new(),
            Self::Person(login) => format!("user {login}"),
            Self::App => "app".to_owned(),
            Self::Installation(_) => "installation".to_owned(),
        }
    }

    /// What it may do with a repository. The App may write, never administer.
    pub fn role(&self, repo: &Repo) -> Role {
        match self {
            Self::Person(login) => repo.role(login),
            Self::Installation(None) => Role::Write,
            Self::Installation(Some(ids)) if ids.contains(&repo.id) => Role::Write,
            _ => repo.role(""),
        }
    }

    /// Refuses as GitHub does: what one may not see is not there.
    pub fn require(&self, repo: &Repo, least: Role) -> Answer<()> {
        let role = self.role(repo);
        if role < Role::Read {
            return Err(Refusal::not_found());
        }
        if role >= least {
            return Ok(());
        }
        Err(match self {
            Self::Anonymous => Refusal::new(401, "Requires authentication"),
            Self::Installation(_) | Self::App => Refusal::forbidden(),
            Self::Person(_) => Refusal::new(403, "Must have write access to this repository."),
        })
    }
}

fn password(basic: &str) -> Option<String> {
    let text = String::from_utf8(base64::engine::general_purpose::STANDARD.decode(basic.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    // A token may also stand where the user name goes.
    Some(if password.is_empty() || password == "x-oauth-basic" { user } else { password }.to_owned())
}

fn app(jwt: &str) -> Answer<Who> {
    let broken = || Refusal::new(401, "A JSON web token could not be decoded");
    let key = DecodingKey::from_rsa_pem(APP_PUBLIC_KEY.as_bytes()).map_err(|_| broken())?;
    let mut rules = Validation::new(Algorithm::RS256);
    rules.leeway = 0;
    let claims = jsonwebtoken::decode::<Claims>(jwt, &key, &rules).map_err(|_| broken())?.claims;
    let issuer = claims.iss.as_u64().or_else(|| claims.iss.as_str().and_then(|text| text.parse().ok()));
    if issuer != Some(APP_ID) {
        return Err(Refusal::new(404, "Integration not found"));
    }
    if claims.iat > seconds() + 1 {
        return Err(Refusal::new(401, "'Issued at' claim ('iat') must be an Integer representing a time in the past"));
    }
    if claims.exp > seconds() + 601 {
        return Err(Refusal::new(401, "'Expiration time' claim ('exp') is too far in the future"));
    }
    Ok(Who::App)
}

/// A new token text.
pub fn mint(prefix: &str) -> String {
    format!("{prefix}_{:032x}", rand::random::<u128>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_takes_the_token_on_either_side() {
        let basic = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        for text in ["x-access-token:ghp_1", "anyone:ghp_1", "ghp_1:", "ghp_1:x-oauth-basic"] {
            assert_eq!(password(&basic(text)).as_deref(), Some("ghp_1"), "{text}");
        }
        assert_eq!(password("%%"), None);
    }
}
