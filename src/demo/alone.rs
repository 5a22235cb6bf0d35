//! `tidegate sandbox`: the small forge alone, for other clients: people with tokens, an App, the sample repository, webhooks to an
//! address of choice. It plans and applies nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::json;

use super::seed_file::Seed;
use super::{APPROVER, AUTHOR, READER, REPO, sample, seed};
use crate::sandbox::hooks::{Content, Trust};
use crate::sandbox::{Identity, Receiver, Sandbox, SandboxConfig, Wire};

/// How to run the sandbox alone.
#[derive(Clone, Debug)]
pub struct Alone {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where its repositories and `sandbox.json` go; by default a temporary folder.
    pub data: Option<PathBuf>,
    /// Plain or TLS.
    pub encryption: Encryption,
    /// With TLS: where it speaks plain HTTP as well.
    pub plain: Option<SocketAddr>,
    /// Where its webhooks go, and what signs them; nowhere without one.
    pub hook: Option<Hook>,
    /// What it holds, by a file, instead of the sample repository.
    pub seed: Option<PathBuf>,
    /// How many requests an asker has in an hour; nobody is refused without it.
    pub rate_limit: Option<u64>,
}

/// Plain or TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// HTTP.
    Plain,
    /// HTTPS with a certificate that is made in the data folder.
    Made,
    /// HTTPS with this one.
    Given(Identity),
}

/// A receiver of webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its address.
    pub url: String,
    /// The secret of the signatures; the sandbox's own when it is not given.
    pub secret: Option<String>,
    /// JSON or a form.
    pub content: Content,
    /// Whether its certificate is looked at.
    pub trust: Trust,
}

/// A sandbox that runs alone.
pub struct Standing {
    /// The forge.
    pub sandbox: Sandbox,
    /// Everything that a client needs, as `sandbox.json` has it.
    pub facts: serde_json::Value,
}

/// Starts the sandbox in `data`, which is there, and writes `sandbox.json` into it.
pub async fn start(options: &Alone, data: &Path) -> Result<Standing> {
    let wire = match &options.encryption {
        Encryption::Plain => Wire::Plain,
        Encryption::Given(identity) => Wire::Tls(identity.clone()),
        Encryption::Made => {
            Wire::Tls(Identity::made_in(&data.join("tls")).context("a certificate for TLS cannot be made")?)
        }
    };
    let wire = match (wire, options.plain) {
        (Wire::Tls(identity), Some(address)) => Wire::Both(identity, address),
        (wire, _) => wire,
    };
    let config = SandboxConfig { data_dir: data.join("forge"), listen: options.listen, wire: wire.clone() };
    let sandbox = Sandbox::start(config)
        .await
        .with_context(|| format!("the sandbox forge cannot start on {}", options.listen))?;
    sandbox.set_rate_limit(options.rate_limit);
    let (repositories, tokens) = plant(&sandbox, options.seed.as_deref(), data)?;
    let app = sandbox.app_credentials();
    let secret = options.hook.as_ref().and_then(|hook| hook.secret.clone()).unwrap_or(app.webhook_secret.to_owned());
    let key = data.join("app.pem");
    std::fs::write(&key, app.private_key)?;
    let facts = json!({
        "url": sandbox.url(),
        "plain_url": sandbox.plain_url(),
        "repository": repositories.first(),
        "repositories": repositories,
        "clone_url": repositories.first().map(|name| sandbox.clone_url(name)),
        "tokens": tokens,
        "app": { "id": app.app_id, "installation_id": app.installation_id, "private_key_file": key },
        "webhook": { "url": options.hook.as_ref().map(|hook| &hook.url), "secret": secret },
        "certificate": wire.certificate(),
    });
    std::fs::write(data.join("sandbox.json"), serde_json::to_vec_pretty(&facts)?)?;
    if let Some(hook) = &options.hook {
        sandbox.set_receiver(Receiver {
            url: hook.url.clone(),
            secret: Some(secret),
            content: hook.content,
            trust: hook.trust,
        });
    }
    Ok(Standing { sandbox, facts })
}

/// Fills the sandbox; gives its repositories and a token for each person.
fn plant(sandbox: &Sandbox, file: Option<&Path>, data: &Path) -> Result<(Vec<String>, BTreeMap<String, String>)> {
    if let Some(file) = file {
        let seed = Seed::read(file)?;
        return Ok((seed.repositories.keys().cloned().collect(), seed.plant(sandbox)?));
    }
    let states = data.join("states");
    std::fs::create_dir_all(&states)?;
    seed(sandbox, &sample::repository(&states))?;
    let token = |login: &&str| ((*login).to_owned(), sandbox.token_for(login));
    Ok((vec![REPO.to_owned()], [AUTHOR, APPROVER, READER].iter().map(token).collect()))
}

/// Runs it until interrupted.
#[expect(clippy::print_stdout, reason = "the terminal says what a client needs")]
pub async fn run(options: Alone) -> Result<ExitCode> {
    let temporary = tempfile::tempdir().context("no temporary folder can be made")?;
    let data = options.data.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&data).with_context(|| format!("the folder {} cannot be made", data.display()))?;
    let data = data.canonicalize()?;
    let standing = start(&options, &data).await?;
    println!("{:#}\n\nThe same is in {}. Ctrl-C ends it.", standing.facts, data.join("sandbox.json").display());
    tokio::signal::ctrl_c().await?;
    Ok(ExitCode::SUCCESS)
}
