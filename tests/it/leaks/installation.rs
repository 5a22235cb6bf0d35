//! The installation's own secrets, hostile requests, and what a browser is told about every page.

use super::{Case, Then, core, logs, places, run, surfaces};
use crate::ctx::Ctx;
use crate::stories::{ESTATE, solo};

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_or_token_of_ours_is_anywhere() {
    // A provisioner that looks at the environment of the job itself, two processes up.
    const NOSY: &[Case] = &[Case {
        name: "nosy",
        before: None,
        files: &[(
            "main.tf",
            "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"p=$(awk '/^PPid/{print $2}' /proc/$PPID/status); tr '\\\\0' '\\\\n' < /proc/$p/environ; tr '\\\\0' '\\\\n' < /proc/$p/environ | base64 -w0; exit 3\" }\n}\n",
        )],
    }];
    let (ctx, pull) = run(NOSY, &[], Then::Apply).await;
    ctx.sandbox.expire_tokens();
    ctx.comment(pull, crate::ctx::MIRA, "plan").await;
    let found = surfaces(&ctx).await;
    let app = ctx.sandbox.app_credentials();
    let mut secrets: Vec<String> = ctx.sandbox.tokens();
    secrets.push(app.webhook_secret.to_owned());
    secrets.extend(app.private_key.lines().filter(|line| line.len() > 40).map(str::to_owned));
    secrets.push(hex::encode([7; 32]));
    for (place, _) in found.iter().filter(|(place, _)| place.starts_with("log ")) {
        let job = place.split("/log/").nth(1).and_then(|rest| rest.split('?').next()).unwrap();
        secrets.push(ctx.app().vault.job_token(&job.into()));
    }
    assert!(secrets.len() > 20, "{}", secrets.len());
    for secret in secrets {
        let shown = places(&found, &secret);
        assert!(shown.is_empty(), "{}", shown.join("\n\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stranger_sends_is_neither_answered_nor_logged() {
    logs();
    let ctx = Ctx::with(ESTATE).await;
    let word = core("stranger");
    let signature = format!("sha256={}", hex::encode([1; 32]));
    for path in ["webhooks/github", "webhooks/x%0Aforged%20line", "nowhere", "r/x?k=1", "jobs/x/claim", "jobs/x/lines"]
    {
        for body in [format!("{{\"{word}\": 1}}"), word.clone(), format!("<script>{word}</script>")] {
            let request = client()
                .post(format!("{}/{path}", ctx.url()))
                .header("x-github-event", "issue_comment")
                .header("x-github-delivery", "1")
                .header("x-hub-signature-256", &signature)
                .header("authorization", format!("Bearer {word}"))
                .body(body);
            let answer = request.send().await.unwrap();
            assert!(answer.status().is_client_error(), "{path}: {}", answer.status());
            let text = answer.text().await.unwrap();
            assert!(!text.contains(&word) && !text.contains("forged"), "{path}: {text}");
        }
    }
    let logged = logs().lock().unwrap().clone();
    let logged = String::from_utf8_lossy(&logged);
    assert!(!logged.contains(&word));
    assert!(!logged.contains("\nforged"));
    assert!(places(&surfaces(&ctx).await, &word).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_runs_nothing_tells_nobody_its_key_and_is_shown_to_nobody_without_it() {
    let ctx = Ctx::with(ESTATE).await;
    let pull = ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
    ctx.settle().await;
    let note = ctx.note(pull).unwrap();
    let page = super::links(&note).into_iter().next().expect("a link");
    let html = client().get(&page).send().await.unwrap().text().await.unwrap();
    let log = html.split('"').find(|part| part.contains("/log/")).expect("a log").replace("&amp;", "&");
    let log = format!("{}{log}", ctx.url());
    assert!(!html.contains("<script") && !html.contains(" onclick=") && !html.contains("javascript:"), "{html}");
    for address in [page.clone(), log.clone(), format!("{}/", ctx.url()), format!("{}/nowhere", ctx.url())] {
        let answer = client().get(&address).send().await.unwrap();
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("script"), "{policy}");
        assert_eq!(
            [header("referrer-policy"), header("cache-control"), header("x-content-type-options")],
            ["no-referrer", "no-store", "nosniff"],
            "{address}"
        );
        if !address.contains("k=") || address == log {
            assert!(header("content-type").starts_with("text/plain"), "{address}: {}", header("content-type"));
        }
    }
    for address in [page, log] {
        let (bare, key) = address.split_once("k=").unwrap();
        let other = key.replace(|c: char| c.is_ascii_digit(), "f");
        for without in [bare.to_owned(), format!("{bare}k="), format!("{bare}k={other}"), format!("{bare}k={key}0")] {
            let answer = client().get(&without).send().await.unwrap();
            assert_eq!(answer.status(), 404, "{without}");
        }
    }
}
