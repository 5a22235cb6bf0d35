//! From the server's settings to its parts: the key is read or made, the jobs' environment is picked. It starts nothing.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use globset::Glob;
use secrecy::ExposeSecret;

use super::Parts;
use crate::app::Limits;
use crate::app::setup::FORGE;
use crate::config::{Executor, GitHub as GitHubSettings, GitHubAuth as AuthSettings, GitHubIdentity, Settings, Tools};
use crate::forge::github::{GitHubAuth, GitHubConfig, GitHubPlace};
use crate::ports::clock::SystemClock;

/// Edits of one comment keep this distance: GitHub counts writes against a secondary limit.
const EDIT_GAP_MS: i64 = 2_000;
/// Time between two sweeps.
const SWEEP_MS: i64 = 60_000;

/// The parts of the server that these settings describe. `program` is our own executable.
pub fn parts(settings: Settings, program: PathBuf, environment: &BTreeMap<String, String>) -> Result<Parts> {
    let key = key(&settings)?;
    let heartbeat_timeout_ms = i64::try_from(settings.executor.heartbeat_timeout.as_millis()).unwrap_or(i64::MAX);
    Ok(Parts {
        listen: settings.listen,
        url: Some(settings.url.to_string()),
        store: Some(settings.store.expose_secret().to_owned()),
        key,
        forges: forges(settings.github),
        program,
        parallelism: settings.executor.parallelism,
        job_environment: {
            let mut passed = job_environment(&settings.executor, &settings.data_dir, environment)?;
            passed.extend(release_sites(settings.tools.as_ref())?);
            passed
        },
        limits: Limits {
            edit_gap_ms: EDIT_GAP_MS,
            parallelism: settings.executor.parallelism,
            heartbeat_timeout_ms,
            sweep_ms: SWEEP_MS,
        },
        managed: settings.pulls,
        webhook_bytes: settings.webhook_bytes,
        cross_repo: settings.cross_repo,
        clock: Arc::new(SystemClock),
        decorate: None,
        data_dir: settings.data_dir,
    })
}

/// The installation's key: the one in the settings, or the one in the data folder, made when there is none.
pub fn key(settings: &Settings) -> Result<[u8; 32]> {
    std::fs::create_dir_all(&settings.data_dir)
        .with_context(|| format!("the data folder {} cannot be made", settings.data_dir.display()))?;
    match existing_key(settings)? {
        Some(key) => Ok(key),
        None => generated_key(&settings.data_dir),
    }
}

/// The installation's key, where there is one already.
pub fn existing_key(settings: &Settings) -> Result<Option<[u8; 32]>> {
    match &settings.encryption_key {
        Some(key) => Ok(Some(*key.expose_secret())),
        None if key_file(&settings.data_dir).exists() => generated_key(&settings.data_dir).map(Some),
        None => Ok(None),
    }
}

fn key_file(data_dir: &Path) -> PathBuf {
    data_dir.join("keys/encryption")
}

/// Where an App of this server is, or will be.
pub fn place(github: &GitHubSettings) -> GitHubPlace {
    GitHubPlace { api_url: github.url.to_string(), web_url: github.web_url.to_string(), forge: FORGE.to_owned() }
}

/// The forge, when the settings say who we are on it.
fn forges(github: GitHubSettings) -> Vec<(String, GitHubConfig)> {
    let GitHubPlace { api_url, web_url, forge } = place(&github);
    let connect = |identity: GitHubIdentity| GitHubConfig {
        api_url,
        web_url: Some(web_url),
        auth: match identity.auth {
            AuthSettings::App { id, private_key } => GitHubAuth::App { id, private_key_pem: private_key },
            AuthSettings::Token(token) => GitHubAuth::Token(token),
        },
        webhook_secret: identity.webhook_secret,
        forge,
    };
    github.identity.map(|identity| (FORGE.to_owned(), connect(identity))).into_iter().collect()
}

/// What jobs see: the variables that the settings name, and a `PATH` that begins with the tools that they name.
fn job_environment(
    executor: &Executor,
    data_dir: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    let mut passed = BTreeMap::new();
    for pattern in &executor.env {
        let glob =
            Glob::new(pattern).with_context(|| format!("executor.env: `{pattern}` is no pattern"))?.compile_matcher();
        let fitting = environment.iter().filter(|(name, _)| glob.is_match(name) && !name.starts_with("TIDEGATE_"));
        passed.extend(fitting.map(|(name, value)| (name.clone(), value.clone())));
    }
    for (name, time) in [("LOCK", executor.lock_timeout), ("PLAN", executor.plan_timeout)] {
        passed.insert(format!("TIDEGATE_JOB_{name}_TIMEOUT"), time.as_secs().to_string());
    }
    let named = [("terraform", &executor.terraform), ("tofu", &executor.tofu)];
    if named.iter().all(|(_, path)| path.is_none()) {
        return Ok(passed);
    }
    // Beside the versions, which lie in `tools/<tool>/<version>`.
    let tools = data_dir.join("tools/bin");
    std::fs::create_dir_all(&tools)?;
    for (name, path) in named {
        let link = tools.join(name);
        if link.symlink_metadata().is_ok() {
            std::fs::remove_file(&link)?;
        }
        if let Some(path) = path {
            symlink(
                path.canonicalize().with_context(|| format!("executor.{name}: {} is not there", path.display()))?,
                &link,
            )?;
        }
    }
    let rest = environment.get("PATH").cloned().unwrap_or_default();
    passed.insert("PATH".to_owned(), format!("{}:{rest}", tools.canonicalize()?.display()));
    Ok(passed)
}

/// Where jobs find versions that are not installed.
fn release_sites(tools: Option<&Tools>) -> Result<BTreeMap<String, String>> {
    let mut passed = BTreeMap::new();
    let sites = tools.map(|tools| [("terraform", &tools.terraform), ("tofu", &tools.tofu)]);
    for (tool, site) in sites.into_iter().flatten() {
        let name = format!("TIDEGATE_JOB_RELEASES_{}", tool.to_uppercase());
        if let Some(key) = &site.key {
            let key =
                key.canonicalize().with_context(|| format!("tools.{tool}_key: {} is not there", key.display()))?;
            passed.insert(format!("{name}_KEY"), key.display().to_string());
        }
        passed.insert(name, site.url.to_string());
    }
    Ok(passed)
}

/// The key in the data folder, made at the first start. Whoever backs up the database must keep it as well, elsewhere.
fn generated_key(data_dir: &Path) -> Result<[u8; 32]> {
    let folder = data_dir.join("keys");
    let file = key_file(data_dir);
    if file.exists() {
        let text = std::fs::read_to_string(&file)?;
        let bytes = hex::decode(text.trim()).with_context(|| format!("{} is no key", file.display()))?;
        let Ok(key) = bytes.try_into() else { bail!("{} is no key of 32 bytes", file.display()) };
        return Ok(key);
    }
    std::fs::create_dir_all(&folder)?;
    let key: [u8; 32] = rand::random();
    let mut out = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
    out.write_all(hex::encode(key).as_bytes())?;
    out.sync_all()?;
    tracing::warn!(file = %file.display(), "no encryption key is set: one was made; without it saved plans cannot be applied");
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let key = generated_key(folder.path()).unwrap();
        assert_eq!(generated_key(folder.path()).unwrap(), key);
        std::fs::write(folder.path().join("keys/encryption"), "nonsense").unwrap();
        assert!(generated_key(folder.path()).is_err());
    }

    #[test]
    fn jobs_see_what_the_settings_name_and_nothing_of_ours() {
        let executor = Executor {
            kind: crate::config::ExecutorKind::Local,
            parallelism: 1,
            env: vec!["AWS_*".to_owned(), "TIDEGATE_*".to_owned(), "REGION".to_owned()],
            heartbeat_timeout: std::time::Duration::from_secs(1),
            lock_timeout: std::time::Duration::from_secs(60),
            plan_timeout: std::time::Duration::from_secs(3600),
            terraform: None,
            tofu: None,
        };
        let all =
            ["AWS_KEY", "REGION", "TIDEGATE_KEYS_ENCRYPTION", "HOME"].map(|name| (name.to_owned(), "x".to_owned()));
        let passed = job_environment(&executor, Path::new("."), &all.into()).unwrap();
        let ours = ["TIDEGATE_JOB_LOCK_TIMEOUT", "TIDEGATE_JOB_PLAN_TIMEOUT"];
        assert_eq!(passed.keys().collect::<Vec<_>>(), ["AWS_KEY", "REGION", ours[0], ours[1]]);
    }
}
