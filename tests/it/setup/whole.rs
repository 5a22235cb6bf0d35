//! The way that ends well, and what it leaves behind.

use super::{REPO, ROOT, Stage, client, seen};

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_made_installed_and_at_work_and_nothing_was_copied() {
    let mut stage = Stage::new().await;
    let health = stage.get(&format!("http://{}/healthz", stage.address), "").await;
    assert_eq!(health.status, 200);
    let hook = seen(client().post(format!("http://{}/webhooks/github", stage.address)).body("{}")).await;
    hook.says(503, &["not set up yet", "/setup/github"]);

    let token = stage.token().unwrap();
    let mut pages = vec![stage.get(&stage.page(), "").await];
    pages[0].says(200, &["printed a token", "type=\"password\""]);
    let cookie = stage.enter().await;
    assert_eq!(stage.token(), None, "it is dead");
    pages.push(stage.get(&stage.page(), &cookie).await);
    pages[1].says(200, &["Who shall own the App?"]);
    let back = stage.made(&cookie).await;
    stage.sandbox.deliveries_idle().await;
    let ping = stage.sandbox.hooks().delivered().pop().unwrap();
    assert_eq!((ping.event.as_str(), ping.answered), ("ping", Some(503)), "it comes before the secret can be known");
    let ended = stage.get(&back, &cookie).await;
    assert_eq!((ended.status, ended.location), (303, stage.page()), "the code leaves the address");
    pages.push(stage.get(&stage.page(), &cookie).await);
    pages[2].says(
        200,
        &["The App is created", "Tidegate acme belongs to acme", "Install it on repositories", "content=\"5\""],
    );
    assert!(pages[2].text.contains(&format!("{}/apps/tidegate/installations/new", stage.sandbox.url())));
    let back = stage.install().await;
    assert_eq!(back, format!("{}?installation_id=7002&setup_action=install", stage.page()));
    pages.push(stage.get(&back, &cookie).await);
    pages[3].says(
        200,
        &[
            "It is installed",
            "On 1 repository: acme/infra.",
            "Webhooks arrive",
            "taken is installation",
            "What to do next",
        ],
    );
    assert!(!pages[3].text.contains("http-equiv=\"refresh\""), "it is done");

    stage.sandbox.commit(REPO, "one", &[("net/main.tf", Some(ROOT))], "One", "mira").unwrap();
    let pull = stage.sandbox.open_pull(REPO, "one", "One", "mira").unwrap();
    noted(&stage, pull).await;

    stage.kill();
    stage.start().await.unwrap();
    assert_eq!(stage.token(), None, "it is set up");
    pages.push(stage.get(&stage.page(), "").await);
    pages[4].says(200, &["set up, and webhooks arrive"]);
    stage.sandbox.commit(REPO, "two", &[("net/main.tf", Some(ROOT))], "Two", "mira").unwrap();
    let pull = stage.sandbox.open_pull(REPO, "two", "Two", "mira").unwrap();
    noted(&stage, pull).await;

    let mut secrets = vec![token, cookie.split('=').nth(1).unwrap().to_owned(), stage.sandbox.made_secret().unwrap()];
    let key = stage.sandbox.app_credentials().private_key;
    secrets.extend(key.lines().filter(|line| line.len() > 40).map(str::to_owned));
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(stage.dir.path().join("server")).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_file() {
            kept.push(String::from_utf8_lossy(&std::fs::read(entry).unwrap()).into_owned());
        }
    }
    assert!(!kept.is_empty());
    for secret in secrets {
        assert!(pages.iter().all(|page| !page.text.contains(&secret)), "{secret} is on a page");
        assert!(kept.iter().all(|text| !text.contains(&secret)), "{secret} lies open in the database");
    }
}

async fn noted(stage: &Stage, pull: u64) {
    let wait = async {
        while !stage.sandbox.comments(REPO, pull).unwrap().iter().any(|comment| comment.author == "tidegate[bot]") {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait).await.expect("a note");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_owns_it_alone_and_names_that_are_none() {
    let stage = Stage::new().await;
    let cookie = stage.enter().await;
    let create = format!("{}/create", stage.page());
    let own = stage.post(&create, &cookie, &[("kind", "own"), ("organization", "ignored")]).await;
    own.says(200, &["your own account"]);
    assert!(
        own.after("method=\"post\" action=\"")
            .starts_with(&format!("{}/settings/apps/new?state=", stage.sandbox.url()))
    );
    for name in ["", "  ", "a/b", "<script>", "a?x"] {
        let refused = stage.post(&create, &cookie, &[("kind", "organization"), ("organization", name)]).await;
        refused.says(400, &["cannot be an organization", "Who shall own the App?"]);
        assert!(!refused.text.contains("<script"));
    }
}
