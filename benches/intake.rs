//! Deliveries: 500 a second for a minute, inbox on disk, the slowest hundredth of the answers, and whether all are worked off; and
//! the memory of an idle server. Run by hand: `cargo bench --bench intake` (`TIDEGATE_BENCH_SECONDS` shortens it).

#[path = "../tests/it/ctx.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod ctx;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ctx::{Ctx, MIRA, REPO};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

/// Deliveries a second.
const RATE: u64 = 500;
/// Most comments are prose; one in so many asks for something, and must get its answer.
const ASKS: u64 = 100;

#[expect(clippy::print_stdout, reason = "it prints its figures")]
fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    print!("{}", runtime.block_on(deliver()));
}

async fn deliver() -> String {
    let seconds: u64 = std::env::var("TIDEGATE_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let root =
        "terraform {\n  backend \"local\" { path = \"$S/a.tfstate\" }\n}\nresource \"terraform_data\" \"a\" {}\n";
    let ctx = Ctx::with(&[("a/main.tf", root)]).await;
    let idle = resident_kb();
    let pull = ctx.open("one", &[("a/more.tf", Some("resource \"terraform_data\" \"b\" {}\n"))]);
    ctx.settle().await;
    let body = comment_on(&ctx, pull).await;
    let secret = ctx.sandbox.app_credentials().webhook_secret;
    let url = format!("http://{}/webhooks/github", ctx.app().job_url.trim_start_matches("http://"));
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(64).build().expect("a client");
    let refused = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..RATE * seconds {
        let due = started + Duration::from_micros(number * 1_000_000 / RATE);
        tokio::time::sleep_until(due.into()).await;
        let (client, url, refused) = (client.clone(), url.clone(), Arc::clone(&refused));
        let text = one(&body, number);
        let signature = sign(secret, &text);
        tasks.push(tokio::spawn(async move {
            let begun = Instant::now();
            let answer = client
                .post(url)
                .header("content-type", "application/json")
                .header("x-github-event", "issue_comment")
                .header("x-github-delivery", format!("bench-{number}"))
                .header("x-hub-signature-256", signature)
                .body(text)
                .send()
                .await;
            if !answer.is_ok_and(|answer| answer.status().is_success()) {
                refused.fetch_add(1, Ordering::Relaxed);
            }
            begun.elapsed()
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.push(task.await.expect("a delivery"));
    }
    let sent = started.elapsed();
    ctx.settle().await;
    let done = started.elapsed();
    report(&ctx, pull, times, &refused, (sent, done, idle)).await
}

async fn report(
    ctx: &Ctx,
    pull: u64,
    mut times: Vec<Duration>,
    refused: &AtomicU64,
    took: (Duration, Duration, u64),
) -> String {
    let (sent, done, idle) = took;
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    let asked = times.len() as u64 / ASKS;
    let answered = ctx.replies(pull).iter().filter(|reply| reply.contains("planned** at")).count();
    let mut text = String::new();
    let _ = writeln!(text, "{} deliveries at {RATE} a second, inbox on disk:", times.len());
    let _ = writeln!(
        text,
        "  answered in {:.2} ms (median), {:.2} ms (p99, aim < 10 ms), {:.2} ms (slowest)",
        ms(at(0.5)),
        ms(at(0.99)),
        ms(at(1.0))
    );
    let _ = writeln!(text, "  not taken: {}", refused.load(Ordering::Relaxed));
    let (sent_s, rest_s) = (sent.as_secs_f64(), (done - sent).as_secs_f64());
    let _ = writeln!(
        text,
        "  sent in {sent_s:.1} s, worked off {rest_s:.1} s later: {answered} of {asked} commands answered"
    );
    let _ = writeln!(
        text,
        "resident at rest, before any of it (server, sandbox and this bench in one process): {} MB",
        idle / 1024
    );
    text
}

/// Where the ids of these comments begin.
const FIRST: u64 = 1_000_000;

/// A real delivery of the sandbox, as a form for many.
async fn comment_on(ctx: &Ctx, pull: u64) -> Value {
    ctx.sandbox.comment(REPO, pull, MIRA, "words").expect("a comment");
    ctx.settle().await;
    let delivered = ctx.sandbox.hooks().delivered();
    let last = delivered.iter().rev().find(|delivery| delivery.event == "issue_comment").expect("a delivery");
    serde_json::from_str(&last.body).expect("a delivery is JSON")
}

fn one(form: &Value, number: u64) -> Vec<u8> {
    let mut body = form.clone();
    body["comment"]["id"] = json!(FIRST + number);
    body["comment"]["body"] = json!(if number.is_multiple_of(ASKS) { "tidegate status" } else { "just words" });
    serde_json::to_vec(&body).expect("JSON")
}

fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0)
}
