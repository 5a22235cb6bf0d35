//! Keeps what the default branch of each repository reads of states that others own, so that a change elsewhere can count its readers.
//! Pushes and first webhooks ask for a look, the sweep finds what no webhook told. It matches nothing; that is the plan's matter.

use std::collections::BTreeMap;

use super::{App, FlowError};
use crate::domain::config::{self, RepoConfig};
use crate::domain::ids::{RepoKey, Timestamp};
use crate::domain::outside::{CrossRepo, reads_of};
use crate::ports::forge::{ForgeError, RepoRef};
use crate::ports::source::SourceError;
use crate::ports::store::{BranchRead, StoreError};

/// What was looked at so long ago is looked at again without a push, milliseconds.
const LOOK_AGAIN_MS: i64 = 3_600_000;

/// A repository that could not be looked at is left alone for so long, milliseconds.
const REST_MS: i64 = 300_000;

/// Looks at repositories, and remembers which could not be looked at.
#[derive(Debug, Default)]
pub struct Index {
    failed: BTreeMap<RepoKey, Timestamp>,
}

impl Index {
    /// Looks at each repository whose reads are not known, were moved by a push, or are old.
    pub async fn refresh(&mut self, app: &App) -> Result<(), StoreError> {
        if app.cross_repo == CrossRepo::Off {
            return Ok(());
        }
        for known in app.store.branches_read().await? {
            let (now, key) = (app.clock.now(), &known.repo.key);
            let rests = self.failed.get(key).is_some_and(|at| now.since_ms(*at) < REST_MS);
            if rests || now.since_ms(known.at) < LOOK_AGAIN_MS {
                continue;
            }
            self.failed.remove(key);
            match look(app, &known).await {
                Ok(()) => {}
                Err(FlowError::Store(error)) => return Err(error),
                Err(FlowError::Forge(ForgeError::NotFound(_)) | FlowError::UnknownForge(_)) => {
                    app.store.forget_reads(key).await?;
                }
                Err(error) => {
                    tracing::warn!(repo = known.repo.name, why = %super::turn::chain(&error), "its reads cannot be looked at now");
                    self.failed.insert(key.clone(), now);
                }
            }
        }
        Ok(())
    }
}

async fn look(app: &App, known: &BranchRead) -> Result<(), FlowError> {
    let repo = &known.repo;
    let access = app.connection(&repo.key)?.forge.git_access(repo).await?;
    let at = app.clock.now();
    let read = |branch, tip| BranchRead { repo: repo.clone(), branch, tip, at };
    let (branch, tip) = match app.source.default_branch(repo, &access).await {
        Ok(found) => found,
        // A repository without a commit reads nothing.
        Err(SourceError::Gone(_)) => {
            app.store.put_reads(&read(None, None), known.at, &[]).await?;
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let text = app.source.read(repo, &tip, config::FILE).await?.unwrap_or_default();
    // A configuration that cannot be read stops plans, which say so; who reads what is known without it.
    let config = config::parse(&String::from_utf8_lossy(&text)).unwrap_or_else(|_| RepoConfig::default());
    let estate = app.source.estate(repo, &tip, &config).await?;
    app.store.put_reads(&read(Some(branch), Some(tip)), known.at, &reads_of(&estate)).await?;
    Ok(())
}

/// A repository is heard of; with a branch that was pushed, its reads may have moved.
pub(super) async fn heard(app: &App, repo: &RepoRef, branch: Option<&str>) -> Result<(), StoreError> {
    if app.cross_repo == CrossRepo::Off {
        return Ok(());
    }
    app.store.reads_moved(repo, branch).await?;
    app.index_bell.notify_one();
    Ok(())
}
