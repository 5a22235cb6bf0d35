//! Webhook deliveries: queue, signature, sending, and the switches with which tests lose, double or hold them.
//! As on GitHub, nothing is sent twice by itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha1::Sha1;
use sha2::Sha256;
use tokio::sync::Notify;

use super::world::{APP_ID, INSTALLATION_ID};

/// One delivery, sent or waiting.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The number of the attempt.
    pub id: u64,
    /// The same for every attempt at one event.
    pub guid: String,
    /// `pull_request`, `push`, …
    pub event: String,
    /// `opened`, …; empty for events without one.
    pub action: String,
    /// The body.
    pub body: Arc<str>,
    /// Whether it was sent before.
    pub redelivery: Redelivery,
    /// The receiver's answer: a status, or 0 when there was none. `None` while it waits.
    pub answered: Option<u16>,
}

/// Whether an event was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redelivery {
    /// The first attempt.
    First,
    /// Sent again on request.
    Again,
}

/// How the body of a webhook is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// As it is.
    #[default]
    Json,
    /// In the field `payload` of a form.
    Form,
}

/// Which receivers of HTTPS are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those whose certificate holds.
    #[default]
    Certified,
    /// Any: GitHub's `insecure_ssl`.
    Any,
}

/// Where webhooks go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its address.
    pub url: String,
    /// What signs them; without one they carry no signature.
    pub secret: Option<String>,
    /// How the body is sent.
    pub content: Content,
    /// Whether its certificate is looked at.
    pub trust: Trust,
}

impl Receiver {
    /// JSON, signed.
    pub fn json(url: &str, secret: &str) -> Self {
        let secret = Some(secret.to_owned());
        Self { url: url.to_owned(), secret, content: Content::Json, trust: Trust::Certified }
    }
}

#[derive(Debug, Default)]
struct Inner {
    target: Option<Receiver>,
    queue: VecDeque<Delivery>,
    done: Vec<Delivery>,
    flying: usize,
    last: u64,
    held: bool,
    drop: usize,
    double: usize,
}

/// The queue and its switches.
#[derive(Debug, Default)]
pub struct Hooks {
    inner: Mutex<Inner>,
    moved: Notify,
    settled: Notify,
}

impl Hooks {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where deliveries go and what signs them.
    pub fn set(&self, url: &str, secret: &str) {
        self.set_receiver(Receiver::json(url, secret));
    }
    /// Says where deliveries go, and how.
    pub fn set_receiver(&self, receiver: Receiver) {
        self.lock().target = Some(receiver);
    }
    /// Where deliveries go.
    pub fn url(&self) -> Option<String> {
        self.lock().target.as_ref().map(|target| target.url.clone())
    }
    /// Turns the order of what waits around: no order is promised.
    pub fn reverse(&self) {
        self.lock().queue.make_contiguous().reverse();
    }
    /// Holds everything back.
    pub fn pause(&self) {
        self.lock().held = true;
    }
    /// Lets what was held go.
    pub fn resume(&self) {
        self.lock().held = false;
        self.moved.notify_one();
    }
    /// Loses the next `n` events.
    pub fn drop_next(&self, n: usize) {
        self.lock().drop = n;
    }
    /// Sends the next `n` events twice.
    pub fn duplicate_next(&self, n: usize) {
        self.lock().double = n;
    }
    /// All deliveries that were tried or lost, oldest first. A lost one has no answer.
    pub fn delivered(&self) -> Vec<Delivery> {
        self.lock().done.clone()
    }

    /// Sends a delivery once more, under the same GUID.
    pub fn redeliver(&self, id: u64) -> Option<u64> {
        let mut inner = self.lock();
        let mut again = inner.done.iter().find(|delivery| delivery.id == id)?.clone();
        inner.last += 1;
        again.id = inner.last;
        again.redelivery = Redelivery::Again;
        again.answered = None;
        let id = again.id;
        inner.queue.push_back(again);
        drop(inner);
        self.moved.notify_one();
        Some(id)
    }

    /// Queues an event. Without a receiver it goes nowhere.
    pub fn push(&self, event: &str, action: &str, body: &Value) {
        let mut inner = self.lock();
        if inner.target.is_none() {
            return;
        }
        inner.last += 1;
        let delivery = Delivery {
            id: inner.last,
            guid: guid(),
            event: event.to_owned(),
            action: action.to_owned(),
            body: body.to_string().into(),
            redelivery: Redelivery::First,
            answered: None,
        };
        if inner.drop > 0 {
            inner.drop -= 1;
            inner.done.push(delivery);
            return;
        }
        if inner.double > 0 {
            inner.double -= 1;
            let mut twin = delivery.clone();
            inner.last += 1;
            twin.id = inner.last;
            inner.queue.push_back(twin);
        }
        inner.queue.push_back(delivery);
        drop(inner);
        self.moved.notify_one();
    }

    /// Resolves when nothing waits and nothing is in flight. What `pause` holds back does not count.
    pub async fn idle(&self) {
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            {
                let inner = self.lock();
                if inner.flying == 0 && (inner.queue.is_empty() || inner.held) {
                    return;
                }
            }
            settled.await;
        }
    }

    fn take(&self) -> Option<(Delivery, Receiver)> {
        let mut inner = self.lock();
        if inner.held {
            return None;
        }
        let receiver = inner.target.clone()?;
        let delivery = inner.queue.pop_front()?;
        inner.flying += 1;
        Some((delivery, receiver))
    }

    fn finish(&self, mut delivery: Delivery, status: u16) {
        let mut inner = self.lock();
        delivery.answered = Some(status);
        inner.done.push(delivery);
        inner.flying -= 1;
    }

    /// Sends one after the other until its task is dropped.
    pub async fn run(self: Arc<Self>, clients: Clients) {
        loop {
            while let Some((delivery, receiver)) = self.take() {
                let status = send(&clients, &delivery, &receiver).await;
                self.finish(delivery, status);
            }
            self.settled.notify_waiters();
            self.moved.notified().await;
        }
    }
}

/// What webhooks are sent with.
#[derive(Debug)]
pub struct Clients {
    certified: reqwest::Client,
    any: reqwest::Client,
}

impl Clients {
    /// One client for each kind of trust. Neither goes through a proxy.
    pub fn new() -> reqwest::Result<Self> {
        let builder = || reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10));
        let any = builder().tls_danger_accept_invalid_certs(true).build()?;
        Ok(Self { certified: builder().build()?, any })
    }
}

async fn send(clients: &Clients, delivery: &Delivery, receiver: &Receiver) -> u16 {
    let (kind, body) = match receiver.content {
        Content::Json => ("application/json", delivery.body.to_string()),
        Content::Form => {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            ("application/x-www-form-urlencoded", form.append_pair("payload", &delivery.body).finish())
        }
    };
    let client = if receiver.trust == Trust::Any { &clients.any } else { &clients.certified };
    let mut request = client
        .post(&receiver.url)
        .header("accept", "*/*")
        .header("content-type", kind)
        .header("user-agent", "GitHub-Hookshot/sandbox")
        .header("x-github-event", &delivery.event)
        .header("x-github-delivery", &delivery.guid)
        .header("x-github-hook-id", "7003")
        .header("x-github-hook-installation-target-id", APP_ID.to_string())
        .header("x-github-hook-installation-target-type", "integration");
    if let Some(secret) = &receiver.secret {
        request = request
            .header("x-hub-signature", old_signature(secret, body.as_bytes()))
            .header("x-hub-signature-256", signature(secret, body.as_bytes()));
    }
    match request.body(body).send().await {
        Ok(answer) => answer.status().as_u16(),
        Err(error) => {
            tracing::warn!(%error, event = delivery.event, installation = INSTALLATION_ID, "a webhook was not taken");
            0
        }
    }
}

/// The value of `X-Hub-Signature-256`.
pub fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

/// The value of `X-Hub-Signature`, which older receivers still read.
pub fn old_signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(body);
    format!("sha1={}", hex::encode(mac.finalize().into_bytes()))
}

fn guid() -> String {
    let hex = hex::encode(rand::random::<u128>().to_be_bytes());
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_as_github_documents() {
        // The example of GitHub's own documentation.
        let expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(signature("It's a Secret to Everybody", b"Hello, World!"), expected);
        // RFC 2202, the second case for HMAC-SHA-1.
        let old = old_signature("Jefe", b"what do ya want for nothing?");
        assert_eq!(old, "sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    }

    #[test]
    fn drops_doubles_and_redelivers() {
        let hooks = Hooks::default();
        hooks.set("http://nobody.invalid", "s");
        hooks.drop_next(1);
        hooks.push("ping", "", &Value::Null);
        assert!(hooks.take().is_none(), "the first one is lost");
        hooks.duplicate_next(1);
        hooks.push("push", "", &Value::Null);
        let (one, _) = hooks.take().unwrap();
        let (two, _) = hooks.take().unwrap();
        assert_eq!(one.guid, two.guid);
        assert_ne!(one.id, two.id);
        hooks.finish(one.clone(), 200);
        assert!(hooks.redeliver(one.id).is_some());
        assert_eq!(hooks.take().unwrap().0.guid, one.guid);
    }
}
