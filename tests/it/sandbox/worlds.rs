//! Ways to merge, names that change, git's objects, and a sandbox that begins with a file.

use std::net::SocketAddr;

use base64::Engine;
use serde_json::{Value, json};
use tidegate::demo::alone::{self, Alone, Encryption};
use tidegate::sandbox::MergeMethod;

use super::{REPO, Stage, contract};

#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_merge_makes_its_own_commits() {
    let stage = Stage::new().await;
    for (name, method) in [("a", MergeMethod::Merge), ("b", MergeMethod::Squash), ("c", MergeMethod::Rebase)] {
        let file = format!("{name}.txt");
        stage.sandbox.commit(REPO, name, &[(&file, Some("1\n"))], "First", "mira").unwrap();
        let head = stage.sandbox.commit(REPO, name, &[(&file, Some("2\n"))], "Second", "mira").unwrap();
        let number = stage.sandbox.open_pull(REPO, name, "Both", "mira").unwrap();
        stage.sandbox.commit(REPO, "main", &[("base.txt", Some(name))], "Base moves", "lin").unwrap();
        let before = stage.sandbox.tip(REPO, "main").unwrap();
        let sha = stage.sandbox.merge_by(REPO, number, "lin", method).unwrap();
        let mira = stage.sandbox.token_for("mira");
        let (_, commit) = stage.call("GET", &format!("/repos/{REPO}/commits/{sha}"), &mira, Value::Null).await;
        let parents: Vec<&str> =
            commit["parents"].as_array().unwrap().iter().filter_map(|one| one["sha"].as_str()).collect();
        let message = commit["commit"]["message"].as_str().unwrap();
        match method {
            MergeMethod::Merge => {
                assert_eq!(parents, [before.as_str(), head.as_str()]);
                assert!(message.starts_with(&format!("Merge pull request #{number} from acme/a")), "{message}");
            }
            MergeMethod::Squash => {
                assert_eq!((parents, message), (vec![before.as_str()], format!("Both (#{number})").as_str()));
            }
            MergeMethod::Rebase => {
                assert_eq!(message, "Second");
                let range = format!("/repos/{REPO}/compare/{before}...{sha}");
                let (_, compare) = stage.call("GET", &range, &mira, Value::Null).await;
                assert_eq!((&compare["ahead_by"], &compare["behind_by"]), (&json!(2), &json!(0)));
                assert_eq!(commit["commit"]["author"]["name"], "mira");
                assert_eq!(commit["commit"]["committer"]["name"], "lin");
            }
        }
        let pull = stage.sandbox.pull(REPO, number).unwrap();
        assert_eq!(pull.merged.unwrap().sha, sha);
        let (_, text) = stage.call("GET", &format!("/repos/{REPO}/contents/{file}"), &mira, Value::Null).await;
        assert_eq!(text["size"], 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_name_leads_to_the_new_one() {
    let stage = Stage::new().await;
    let (number, _) = stage.open();
    stage.sandbox.rename_repo(REPO, "acme/platform").unwrap();
    let mira = stage.sandbox.token_for("mira");
    let still = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let old = |tail: &str| format!("{}/api/v3/repos/{REPO}{tail}", stage.sandbox.url());
    let read = still.get(old("/pulls/1")).bearer_auth(&mira).send().await.unwrap();
    assert_eq!(read.status(), 301);
    let to = read.headers()["location"].to_str().unwrap().to_owned();
    assert!(to.contains("/api/v3/repositories/") && to.ends_with("/pulls/1"), "{to}");
    let said: Value = read.json().await.unwrap();
    assert_eq!((&said["message"], &said["url"]), (&json!("Moved Permanently"), &json!(to)));
    let written =
        still.post(old("/issues/1/comments")).bearer_auth(&mira).json(&json!({"body": "x"})).send().await.unwrap();
    assert_eq!(written.status(), 307);
    // A client that follows arrives.
    let followed = stage.http.get(old("/pulls/1")).bearer_auth(&mira).send().await.unwrap();
    let pull: Value = followed.json().await.unwrap();
    assert_eq!(pull["base"]["repo"]["full_name"], "acme/platform");
    let address = stage.sandbox.url().trim_start_matches("http://").to_owned();
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("mira:{mira}"));
    let header = format!("http.extraHeader=Authorization: Basic {basic}");
    let (cloned, said) = stage.git(&["-c", &header, "clone", "-q", &format!("http://{address}/{REPO}.git"), "old"]);
    assert!(cloned, "{said}");
    stage.events().await;
    stage.sandbox.comment("acme/platform", number, "lin", "hello").unwrap();
    assert_eq!(stage.events().await[0].1["repository"]["full_name"], "acme/platform");
}

#[tokio::test(flavor = "multi_thread")]
async fn git_objects_are_shown() {
    let stage = Stage::new().await;
    let (_, head) = stage.open();
    let mira = stage.sandbox.token_for("mira");
    let get = async |tail: &str| stage.raw("GET", &format!("/repos/{REPO}{tail}"), &mira, &Value::Null).await;
    let (_, file) = get("/contents/network/main.tf").await;
    let (code, blob) = get(&format!("/git/blobs/{}", file["sha"].as_str().unwrap())).await;
    assert_eq!((code, &blob["content"], &blob["size"]), (200, &file["content"], &file["size"]));
    let decoded = blob["content"].as_str().unwrap().replace('\n', "");
    assert!(base64::engine::general_purpose::STANDARD.decode(decoded).unwrap().starts_with(b"terraform"));
    let (_, tree) = get(&format!("/git/trees/{head}?recursive=1")).await;
    let paths: Vec<&str> = tree["tree"].as_array().unwrap().iter().filter_map(|row| row["path"].as_str()).collect();
    assert_eq!(paths, ["README.md", "network", "network/main.tf"]);
    assert_eq!(get(&format!("/git/trees/{head}")).await.1["tree"].as_array().unwrap().len(), 2);
    assert_eq!(get(&format!("/git/commits/{head}")).await.1["message"], "Move the state");
    assert_eq!(get("/git/ref/heads/feature/net").await.1["object"]["sha"], json!(head));
    assert_eq!(get("/git/ref/pull/1/head").await.1["object"]["sha"], json!(head));
    assert_eq!(get("/git/matching-refs/heads/feature").await.1[0]["ref"], "refs/heads/feature/net");
    for gone in ["/git/blobs/none", "/git/trees/none", "/git/ref/heads/none", "/git/commits/none"] {
        assert_eq!(get(gone).await.0, 404, "{gone}");
    }
    let forced = json!({"sha": stage.sandbox.tip(REPO, "main").unwrap()});
    let back = format!("/repos/{REPO}/git/refs/heads/feature/net");
    assert_eq!(stage.raw("PATCH", &back, &mira, &forced).await.0, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_app_finds_its_installation_by_account() {
    let stage = Stage::new().await;
    let token = jwt(&stage);
    for (path, status) in [
        ("/orgs/acme/installation", 200),
        ("/users/acme/installation", 200),
        ("/users/mira/installation", 404),
        ("/orgs/nobody/installation", 404),
    ] {
        let (code, said) = stage.raw("GET", path, &token, &Value::Null).await;
        assert_eq!(code, status, "{path}: {said}");
    }
    let app = stage.installation_token().await;
    let (_, shown) = stage.raw("GET", "/apps/tidegate", &app, &Value::Null).await;
    assert_eq!(shown["slug"], "tidegate");
    assert_eq!(stage.raw("GET", "/orgs/acme/installation", &app, &Value::Null).await.0, 401);
}

fn jwt(stage: &Stage) -> String {
    let app = stage.sandbox.app_credentials();
    let now = jiff::Timestamp::now().as_second();
    let claims = json!({"iss": app.app_id.to_string(), "iat": now - 30, "exp": now + 300});
    let key = jsonwebtoken::EncodingKey::from_rsa_pem(app.private_key.as_bytes()).unwrap();
    jsonwebtoken::encode(&jsonwebtoken::Header::new(jsonwebtoken::Algorithm::RS256), &claims, &key).unwrap()
}

const SEED: &str = r#"
users:
  ana: { token: ghp_ana }
teams:
  acme/ops: [ana, bo]
repositories:
  acme/estate:
    private: true
    folder: estate
    files: { NOTES.md: "hello\n" }
    roles: { ana: admin, bo: write, cy: read }
    protection:
      main: { checks: [plan], reviews: 1, strict: true }
  acme/empty: {}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_begins_with_a_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("estate/net/.terraform")).unwrap();
    std::fs::write(dir.path().join("estate/net/main.tf"), "# net\n").unwrap();
    std::fs::write(dir.path().join("estate/net/.terraform/cache"), "no\n").unwrap();
    let file = dir.path().join("seed.yaml");
    std::fs::write(&file, SEED).unwrap();
    let options = Alone {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data: None,
        encryption: Encryption::Plain,
        plain: None,
        hook: None,
        seed: Some(file.clone()),
        rate_limit: None,
    };
    let standing = alone::start(&options, dir.path()).await.unwrap();
    assert_eq!(standing.facts["repositories"], json!(["acme/empty", "acme/estate"]));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = async |path: &str, token: &str| {
        let answer = http.get(format!("{}{path}", standing.sandbox.url())).bearer_auth(token).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.unwrap_or_default())
    };
    let rows = get("/repos/acme/estate/git/trees/main?recursive=1", "ghp_ana").await.1;
    let paths: Vec<&str> = rows["tree"].as_array().unwrap().iter().filter_map(|row| row["path"].as_str()).collect();
    assert_eq!(paths, ["NOTES.md", "net", "net/main.tf"]);
    let rule = get("/repos/acme/estate/branches/main/protection", "ghp_ana").await;
    assert_eq!((rule.0, &rule.1["required_status_checks"]["strict"]), (200, &json!(true)));
    contract::response("GET", "/repos/acme/estate/branches/main/protection", 200, &rule.1);
    assert_eq!(get("/orgs/acme/teams/ops/memberships/bo", "ghp_ana").await.0, 200);
    let cy = standing.facts["tokens"]["cy"].as_str().unwrap();
    assert_eq!(get("/repos/acme/estate/collaborators/cy/permission", "ghp_ana").await.1["permission"], "read");
    assert_eq!(get("/repos/acme/estate", cy).await.0, 200);

    for (text, named) in
        [("repositories: {}", "repository"), ("repositories: {acme/x: {nonsense: 1}}", "nonsense"), ("[", "seed")]
    {
        std::fs::write(&file, text).unwrap();
        let error = alone::start(&options, &dir.path().join("again")).await.err().unwrap();
        assert!(format!("{error:#}").contains(named), "{text}: {error:#}");
    }
}
