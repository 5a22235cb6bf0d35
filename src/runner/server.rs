//! The server as a job sees it: its routes behind one token. Every call is repeated until it is answered or its time is
//! over; an answer of 4xx is final.

use std::path::Path;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::RunnerError;
use super::failure::Broken;
use crate::domain::job::{JobLine, JobResult, JobSpec, Phase};
use crate::domain::linked::Source;

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long a plan, and everything before a job knows what it is, waits for a server that is away.
const PATIENCE_OF_A_PLAN: Duration = Duration::from_secs(10 * 60);
/// How long an apply does: what it did must not be lost with a server.
const PATIENCE_OF_AN_APPLY: Duration = Duration::from_secs(24 * 60 * 60);

/// The server.
#[derive(Clone)]
pub(super) struct Server {
    client: Client,
    url: String,
    token: SecretString,
    patience: Duration,
}

/// What the server made of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Taken.
    Taken,
    /// The job is unknown or superseded.
    Gone,
    /// Refused for good, or not reached in all the time there was.
    Refused(String),
}

/// What the server makes of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing more to say.
    Taken,
    /// It wants one interrupt.
    Cancel,
    /// The job is unknown, superseded, or the server was away for longer than anybody waits.
    Gone,
}

/// Why a call failed for good.
#[derive(Debug)]
enum CallError {
    Status(StatusCode, String),
    Unreachable(String),
}

#[derive(Deserialize)]
struct LinesAnswer {
    #[serde(default)]
    cancel: bool,
}

impl Server {
    pub(super) fn new(url: &str, token: SecretString) -> Result<Self, RunnerError> {
        let mut client = Client::builder()
            .no_proxy()
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(Duration::from_secs(60))
            .redirect(reqwest::redirect::Policy::none());
        if url.starts_with("http://") {
            // Loading the system's certificates costs more than a small plan's whole overhead.
            client = client.tls_certs_only(Vec::new());
        }
        let client = client.build().map_err(|error| RunnerError::Broken(chain(&error)))?;
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { client, url, token, patience: PATIENCE_OF_A_PLAN })
    }

    /// The same server, waited for as long as this phase deserves.
    pub(super) fn for_phase(mut self, phase: Phase) -> Self {
        self.patience = match phase {
            Phase::Plan => PATIENCE_OF_A_PLAN,
            Phase::Apply => PATIENCE_OF_AN_APPLY,
        };
        self
    }

    /// Claims the job; `None` when another process has it or it ended.
    pub(super) async fn claim(&self) -> Result<Option<JobSpec>, RunnerError> {
        // One nonce for all tries: a claim whose answer was lost is still ours.
        let nonce = hex::encode(rand::random::<[u8; 16]>());
        match self.call(|| self.request(Method::POST, "claim").json(&json!({ "nonce": nonce }))).await {
            Ok(answer) => answer.json().await.map(Some).map_err(|error| RunnerError::Server(chain(&error))),
            Err(CallError::Status(StatusCode::CONFLICT, _)) => Ok(None),
            Err(error) => Err(RunnerError::Server(error.to_string())),
        }
    }

    /// Fetches the tar of the source tree into a file.
    pub(super) async fn source(&self, into: &Path) -> Result<(), Broken> {
        self.download("source", into).await
    }

    /// Fetches the planned outputs of the sources.
    pub(super) async fn linked(&self) -> Result<Vec<Source>, Broken> {
        let answer = self.call(|| self.request(Method::GET, "linked")).await;
        let answer = answer.map_err(|error| Broken::server("linked", &error.to_string()))?;
        answer.json().await.map_err(|error| Broken::server("linked", &chain(&error)))
    }

    /// Fetches the saved plan into a file.
    pub(super) async fn plan(&self, into: &Path) -> Result<(), Broken> {
        self.download("plan", into).await
    }

    /// The ephemeral variables that the saved plan was made with; `None` when its job kept no record.
    pub(super) async fn inputs(&self) -> Result<Option<Vec<String>>, Broken> {
        match self.call(|| self.request(Method::GET, "inputs")).await {
            Ok(answer) => answer.json().await.map(Some).map_err(|error| Broken::server("inputs", &chain(&error))),
            Err(CallError::Status(StatusCode::NOT_FOUND, _)) => Ok(None),
            Err(error) => Err(Broken::server("inputs", &error.to_string())),
        }
    }

    /// Sends lines.
    pub(super) async fn lines(&self, lines: &[JobLine]) -> Said {
        #[derive(Serialize)]
        struct Body<'a> {
            lines: &'a [JobLine],
        }
        match self.call(|| self.request(Method::POST, "lines").json(&Body { lines })).await {
            Ok(answer) => match answer.json::<LinesAnswer>().await {
                Ok(LinesAnswer { cancel: true }) => Said::Cancel,
                _ => Said::Taken,
            },
            Err(CallError::Status(status, _)) if is_gone(status) => Said::Gone,
            Err(CallError::Status(status, body)) if status.is_client_error() => {
                // These lines are lost, the job is not: its result matters more.
                tracing::warn!(%status, body, "the server refused lines of the log");
                Said::Taken
            }
            Err(_) => Said::Gone,
        }
    }

    /// Uploads a file of the job: `plan`, `plan.json`, `secrets`, `inputs`, `errored-state`.
    pub(super) async fn put(&self, what: &str, file: &Path) -> Result<(), Broken> {
        self.put_bytes(what, tokio::fs::read(file).await?).await
    }

    /// The same from memory.
    pub(super) async fn put_bytes(&self, what: &str, bytes: Vec<u8>) -> Result<(), Broken> {
        let bytes = tokio_util::bytes::Bytes::from(bytes);
        let sent = self.call(|| self.request(Method::PUT, what).body(bytes.clone())).await;
        sent.map(drop).map_err(|error| Broken::server(what, &error.to_string()))
    }

    /// Says how the job ended.
    pub(super) async fn result(&self, result: &JobResult) -> Result<Answer, RunnerError> {
        match self.call(|| self.request(Method::POST, "result").json(result)).await {
            Ok(_) => Ok(Answer::Taken),
            Err(CallError::Status(status, _)) if is_gone(status) => Ok(Answer::Gone),
            Err(error) => Ok(Answer::Refused(error.to_string())),
        }
    }

    async fn download(&self, what: &str, into: &Path) -> Result<(), Broken> {
        let until = Instant::now() + self.patience;
        loop {
            let answer = self.call(|| self.request(Method::GET, what)).await;
            let mut answer = answer.map_err(|error| Broken::server(what, &error.to_string()))?;
            let mut file = tokio::fs::File::create(into).await?;
            let broken = loop {
                match answer.chunk().await {
                    Ok(Some(chunk)) => file.write_all(&chunk).await?,
                    Ok(None) => break None,
                    Err(error) => break Some(chain(&error)),
                }
            };
            file.flush().await?;
            match broken {
                None => return Ok(()),
                Some(why) if Instant::now() > until => return Err(Broken::server(what, &why)),
                Some(_) => tokio::time::sleep(FIRST_WAIT).await,
            }
        }
    }

    fn request(&self, method: Method, what: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/{what}", self.url)).bearer_auth(self.token.expose_secret())
    }

    async fn call(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, CallError> {
        let until = Instant::now() + self.patience;
        let mut wait = FIRST_WAIT;
        loop {
            let error = match request().send().await {
                Ok(answer) if answer.status().is_success() => return Ok(answer),
                Ok(answer) => {
                    let status = answer.status();
                    let error = CallError::Status(status, answer.text().await.unwrap_or_default());
                    let again = status.is_server_error()
                        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
                    if !again {
                        return Err(error);
                    }
                    error
                }
                Err(error) if error.is_builder() => return Err(CallError::Unreachable(chain(&error))),
                Err(error) => CallError::Unreachable(chain(&error)),
            };
            if Instant::now() + wait > until {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CallError::Status(status, body) => {
                let body: String = body.trim().chars().take(300).collect();
                write!(f, "the server answered {status}: {body}")
            }
            CallError::Unreachable(why) => f.write_str(why),
        }
    }
}

fn is_gone(status: StatusCode) -> bool {
    matches!(status, StatusCode::GONE | StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
