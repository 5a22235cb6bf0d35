//! Tokens and limits on the wire: one mint for all, one more after a 401, and never a second send of anything else.

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tidegate::forge::github::{GitHub, GitHubAuth, SetupError};
use tidegate::ports::forge::{CommentDraft, Forge, ForgeError, Tried};

use super::fake::{Fake, Reply};
use super::{APP_ID, app, config, pull, repo, with_token};

const MINT: &str = "POST /app/installations/5/access_tokens";
const COMMENTS: &str = "POST /repos/acme/infra/issues/7/comments";

fn count(fake: &Fake, what: &str) -> usize {
    fake.whats().iter().filter(|asked| *asked == what).count()
}

fn draft() -> CommentDraft<'static> {
    CommentDraft { body: "hello <!-- tg -->", marker: "<!-- tg -->", receipt: None, tried: Tried::Never }
}

#[tokio::test]
async fn callers_at_once_share_one_mint_and_the_jwt_is_dated_back() {
    let fake = Fake::with_app().await;
    fake.on("GET /repos/acme/infra", Reply::json(200, &json!({"id": 1, "full_name": "acme/infra"})));
    let github = app(&fake.url);
    let calls = (0..10).map(|_| github.repo("acme/infra"));
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(count(&fake, MINT), 1);
    assert_eq!(count(&fake, "GET /repos/acme/infra/installation"), 1);

    let asked = fake.asked();
    let jwt = asked.iter().find(|asked| asked.what == MINT).unwrap().authorization.replace("Bearer ", "");
    let key = DecodingKey::from_rsa_pem(include_bytes!("../../../fixtures/github/test-app-key.pub.pem")).unwrap();
    let claims = decode::<Value>(&jwt, &key, &Validation::new(Algorithm::RS256)).unwrap().claims;
    let (iat, exp) = (claims["iat"].as_u64().unwrap(), claims["exp"].as_u64().unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert_eq!(claims["iss"], APP_ID);
    assert!(iat + 50 <= now && exp - iat <= 600, "{claims}");
    let rest: Vec<_> = asked.iter().filter(|asked| asked.what == "GET /repos/acme/infra").collect();
    assert!(rest.len() == 10 && rest.iter().all(|asked| asked.authorization == "Bearer t1"));
}

#[tokio::test]
async fn a_401_makes_one_new_token_and_one_new_try() {
    let fake = Fake::with_app().await;
    fake.on(COMMENTS, Reply::json(401, &json!({"message": "Bad credentials"})));
    fake.on(COMMENTS, Reply::json(201, &json!({"id": 11})));
    let receipt = app(&fake.url).put_comment(&pull(), &draft()).await.unwrap();
    assert_eq!(receipt.0, "11");
    let tokens: Vec<String> =
        fake.asked().into_iter().filter(|asked| asked.what == COMMENTS).map(|asked| asked.authorization).collect();
    assert_eq!(tokens, ["Bearer t1", "Bearer t2"]);
    assert_eq!(count(&fake, MINT), 2);
}

#[tokio::test]
async fn a_lasting_401_ends_after_the_second_try() {
    let fake = Fake::with_app().await;
    fake.on(COMMENTS, Reply::json(401, &json!({"message": "Bad credentials"})));
    let error = app(&fake.url).put_comment(&pull(), &draft()).await.unwrap_err();
    assert!(matches!(&error, ForgeError::Denied(said) if said.contains("Bad credentials")), "{error}");
    assert_eq!(count(&fake, COMMENTS), 2);

    let fake = Fake::start().await;
    fake.on(COMMENTS, Reply::json(401, &json!({"message": "Bad credentials"})));
    assert!(matches!(with_token(&fake.url).put_comment(&pull(), &draft()).await, Err(ForgeError::Denied(_))));
    assert_eq!(count(&fake, COMMENTS), 1, "a plain token cannot be renewed");
}

#[tokio::test]
async fn no_failure_is_sent_twice() {
    for (status, headers, wanted) in [
        (502, vec![], "Unavailable"),
        (500, vec![], "Unavailable"),
        (403, vec![("retry-after", "60")], "RateLimited { wait_ms: 60000 }"),
        (429, vec![], "RateLimited { wait_ms: 60000 }"),
        (403, vec![], "Denied"),
        (404, vec![], "NotFound"),
        (409, vec![], "Conflict"),
        (422, vec![], "Invalid"),
        // A POST that was redirected as a GET looks like success.
        (200, vec![], "NotFound"),
    ] {
        let fake = Fake::with_app().await;
        let reply = headers
            .iter()
            .fold(Reply::json(status, &json!({"message": "no"})), |reply, (name, value)| reply.header(name, *value));
        fake.on(COMMENTS, reply);
        let error = app(&fake.url).put_comment(&pull(), &draft()).await.unwrap_err();
        assert!(format!("{error:?}").starts_with(wanted), "{status}: {error:?}");
        assert_eq!(count(&fake, COMMENTS), 1, "{status}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = with_token(&url).repo("acme/infra").await.unwrap_err();
    assert!(matches!(error, ForgeError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn an_installation_that_moved_is_looked_up_again() {
    let fake = Fake::start().await;
    for id in [4, 5] {
        fake.on("GET /repos/acme/infra/installation", Reply::json(200, &json!({ "id": id })));
    }
    fake.on(MINT, Reply::json(201, &json!({"token": "t1"})));
    fake.on("GET /repos/acme/infra", Reply::json(200, &json!({"id": 1, "full_name": "acme/infra"})));
    assert_eq!(app(&fake.url).repo("acme/infra").await.unwrap(), repo());
}

#[tokio::test]
async fn a_repository_without_the_app_says_so() {
    let fake = Fake::start().await;
    let error = app(&fake.url).repo("acme/infra").await.unwrap_err();
    assert!(matches!(&error, ForgeError::NotFound(said) if said.contains("not installed on `acme/infra`")), "{error}");
}

#[tokio::test]
async fn a_short_lived_token_is_not_kept() {
    let fake = Fake::start().await;
    fake.on("GET /repos/acme/infra/installation", Reply::json(200, &json!({"id": 5})));
    for token in ["t1", "t2"] {
        let dead = json!({"token": token, "expires_at": "2026-11-30T12:00:00Z"});
        fake.on(MINT, Reply::json(201, &dead).header("date", "Mon, 30 Nov 2026 12:00:00 GMT"));
    }
    let auth = GitHubAuth::App { id: APP_ID, private_key_pem: SecretString::from(super::KEY) };
    let mut known = config(&fake.url, auth);
    known.web_url = Some("https://github.com/".to_owned());
    let github = GitHub::new(known).unwrap();
    for _ in 0..2 {
        assert_eq!(github.git_access(&repo()).await.unwrap().url, "https://github.com/acme/infra.git");
    }
    assert_eq!(count(&fake, MINT), 2, "each was dead when it came");
}

#[tokio::test]
async fn git_gets_a_token_for_one_repository_that_can_only_read() {
    let fake = Fake::with_app().await;
    let clone = json!({"id": 1, "full_name": "acme/infra", "clone_url": "https://github.com/acme/infra.git"});
    fake.on("GET /repos/acme/infra", Reply::json(200, &clone));
    let github = app(&fake.url);
    let access = github.git_access(&repo()).await.unwrap();
    assert_eq!(access.url, "https://github.com/acme/infra.git");
    // x-access-token:t1
    assert_eq!(access.authorization.unwrap().expose_secret(), "Basic eC1hY2Nlc3MtdG9rZW46dDE=");
    assert_eq!(fake.bodies(MINT)[0], json!({"repositories": ["infra"], "permissions": {"contents": "read"}}));
    let asked = fake.whats().len();
    github.git_access(&repo()).await.unwrap();
    assert_eq!(fake.whats().len(), asked, "the second costs no call");
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_at_the_start() {
    let key = |pem: &str| GitHubAuth::App { id: 1, private_key_pem: SecretString::from(pem) };
    let url = "https://api.github.com";
    assert!(matches!(GitHub::new(config(url, key("no key"))), Err(SetupError::Key(_))));
    assert!(matches!(
        GitHub::new(config(url, GitHubAuth::Token(SecretString::from(" ")))),
        Err(SetupError::EmptyToken)
    ));
    for bad in ["api.github.com", "ftp://host", "https://user:pass@host"] {
        assert!(matches!(GitHub::new(config(bad, key(super::KEY))), Err(SetupError::Url { .. })), "{bad}");
    }
    let mut unsigned = config(url, key(super::KEY));
    unsigned.webhook_secret = SecretString::from("");
    assert!(matches!(GitHub::new(unsigned), Err(SetupError::EmptySecret)));
}
