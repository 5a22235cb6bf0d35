//! Performs effects after they were committed, at least once each. Every one is made so that a repeat is harmless; what
//! fails is tried later in its lane, and what can never work is put aside with the reason.

use secrecy::SecretString;

use super::turn::{TRIES_OF_A_DAY, backoff_ms, chain, is_away};
use super::{App, FlowError};
use crate::domain::config;
use crate::domain::effect::Act;
use crate::domain::event::{Event, Inspection, Reading};
use crate::domain::ids::{Login, Sha};
use crate::domain::inspect::{Trees, inspect, of_proposed_settings};
use crate::domain::note::{self, markdown::code};
use crate::domain::rollout::Refusal;
use crate::domain::tool;
use crate::domain::tree::Listing;
use crate::ports::executor::Launch;
use crate::ports::forge::{CommentDraft, ForgeError, PullRef, Receipt, Tried};
use crate::ports::source::{Merged, SourceError, Wanted};
use crate::ports::store::{Next, Pending, StoreError};

/// How often an effect is tried before it is put aside.
const TRIES: i64 = 60;
/// How often a head is fetched before the pull is told that it cannot be read.
const FETCHES: i64 = 6;

/// Performs one effect and marks it.
pub async fn perform(app: &App, pending: &Pending) -> Result<(), StoreError> {
    app.store.begin_effect(pending).await?;
    let next = match act(app, pending).await {
        Ok(receipt) => Next::Done(receipt),
        Err(FlowError::Store(error)) => return Err(error),
        Err(error) => put_off(app, pending, &error),
    };
    app.store.finish_effect(pending, &next, app.clock.now()).await?;
    app.ring();
    Ok(())
}

fn put_off(app: &App, pending: &Pending, error: &FlowError) -> Next {
    let why = chain(error);
    let never = match error {
        FlowError::Forge(
            ForgeError::Denied(_) | ForgeError::Invalid(_) | ForgeError::TooLong(_) | ForgeError::Conflict(_),
        ) => pending.attempts >= 2,
        error if is_away(error) => pending.attempts >= TRIES_OF_A_DAY,
        FlowError::Forge(ForgeError::NotFound(_)) => pending.attempts >= 8,
        FlowError::UnknownForge(_) => true,
        _ => pending.attempts >= TRIES,
    };
    if never {
        tracing::error!(pull = %pending.pull, slot = pending.effect.slot, %why, "effect put aside");
        return Next::GaveUp(why);
    }
    tracing::warn!(pull = %pending.pull, slot = pending.effect.slot, %why, "effect put off");
    let wait_ms = match error {
        FlowError::Forge(ForgeError::RateLimited { wait_ms }) => *wait_ms,
        _ => backoff_ms(pending.attempts),
    };
    Next::Retry { at: app.clock.now().plus_ms(wait_ms), why }
}

async fn act(app: &App, pending: &Pending) -> Result<Option<String>, FlowError> {
    let connection = app.connection(&pending.pull.repo)?;
    let pull = app.pull_ref(&pending.pull, &pending.repo);
    let receipt = pending.receipt.clone().map(Receipt);
    match &pending.effect.act {
        Act::Check(report) => {
            let receipt = connection.forge.put_check(&pull.repo, report, receipt.as_ref()).await?;
            Ok(Some(receipt.0))
        }
        Act::Comment { marker, body: text } => {
            let body = format!("{text}\n\n{marker}");
            let tried = if pending.attempts > 0 { Tried::Perhaps } else { Tried::Never };
            let draft = CommentDraft { body: &body, marker, receipt: receipt.as_ref(), tried };
            let receipt = match connection.forge.put_comment(&pull, &draft).await {
                // Its count differs from ours: less is said, rather than nothing.
                Err(ForgeError::TooLong(_)) => {
                    let body = format!("{}\n\n{marker}", note::shortened(text));
                    connection.forge.put_comment(&pull, &CommentDraft { body: &body, ..draft }).await?
                }
                other => other?,
            };
            Ok(Some(receipt.0))
        }
        Act::React { comment, reaction } => {
            connection.forge.react(&pull, *comment, *reaction).await?;
            Ok(None)
        }
        Act::Merge { head } => {
            connection.forge.merge(&pull, head).await?;
            Ok(None)
        }
        Act::Inspect { rollout, head, base_ref, base, reading } => {
            let wanted = Wanted { pull: pull.number, head: head.clone(), base_ref: base_ref.clone() };
            let reading = Reading { rollout: rollout.clone(), number: *reading };
            let tell = async |event: Event| {
                let event = event.of_reading(reading.clone());
                app.store.enqueue(&[(pending.pull.clone(), event)], app.clock.now()).await
            };
            let event = match look_into(app, &pull, &wanted, base).await {
                Err(FlowError::Source(SourceError::Gone(what))) if pending.attempts >= FETCHES => gone(head, &what),
                // People are told once; what could not be reached is reached for on.
                Err(error @ FlowError::Source(SourceError::Unavailable(_))) if pending.attempts == FETCHES => {
                    tell(unreadable(head, &error)).await?;
                    return Err(error);
                }
                Err(error @ FlowError::Source(SourceError::Broken(_))) if pending.attempts >= FETCHES => {
                    unreadable(head, &error)
                }
                other => other?,
            };
            tell(event).await?;
            Ok(None)
        }
        Act::StartJob { job } => {
            let token = SecretString::from(app.vault.job_token(job));
            app.executor.start(&Launch { id: job.clone(), url: app.url_of_job(job), token }).await?;
            Ok(None)
        }
        Act::CancelJob { job } => {
            app.executor.cancel(job).await?;
            Ok(None)
        }
    }
}

/// Fetches, merges and reads a head.
async fn look_into(app: &App, pull: &PullRef, wanted: &Wanted, known_base: &Sha) -> Result<Event, FlowError> {
    let forge = app.connection(&pull.repo.key)?.forge;
    let access = forge.git_access(&pull.repo).await?;
    let (base, committers) =
        tokio::join!(app.source.fetch(&pull.repo, &access, wanted, Some(known_base)), forge.committers(pull));
    let (base, committers) = (base?, committers?);
    let head = &wanted.head;
    let config = match read_config(app, pull, &base).await? {
        Ok(config) => config,
        Err(refusal) => return Ok(Event::Refused { head: head.clone(), refusal, reading: None }),
    };
    let tree = match app.source.merge(&pull.repo, &base, head).await? {
        Merged::Tree(tree) => tree,
        Merged::Conflict(paths) => {
            return Ok(Event::Refused {
                head: head.clone(),
                refusal: conflict(&wanted.base_ref, &paths),
                reading: None,
            });
        }
    };
    match inspection(app, pull, &Read { base: &base, head, tree: &tree, committers }, &config).await? {
        Ok(inspection) => Ok(Event::Inspected(Box::new(inspection))),
        Err(refusal) => Ok(Event::Refused { head: head.clone(), refusal, reading: None }),
    }
}

/// Commits that were fetched and merged.
struct Read<'a> {
    base: &'a Sha,
    head: &'a Sha,
    tree: &'a Sha,
    committers: Vec<Login>,
}

async fn inspection(
    app: &App,
    pull: &PullRef,
    read: &Read<'_>,
    config: &config::RepoConfig,
) -> Result<Result<Inspection, Refusal>, FlowError> {
    let (listing, base_listing, estate, base_estate, undiverged) = tokio::try_join!(
        app.source.listing(&pull.repo, read.tree),
        app.source.listing(&pull.repo, read.base),
        app.source.estate(&pull.repo, read.tree, config),
        app.source.estate(&pull.repo, read.base, config),
        app.source.contains(&pull.repo, read.base, read.head),
    )?;
    let trees = Trees {
        head: read.head,
        base: read.base,
        tree: read.tree,
        undiverged,
        committers: read.committers.clone(),
        listing: &listing,
        base_listing: &base_listing,
        estate: &estate,
        base_estate: &base_estate,
    };
    let mut inspection = match inspect(&trees, config) {
        Ok(inspection) => inspection,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let settings = |listing: &Listing| listing.entries.get(config::FILE).map(|entry| entry.blob.clone());
    if settings(&listing) != settings(&base_listing)
        && let Some(text) = app.source.read(&pull.repo, read.tree, config::FILE).await?
    {
        let proposed = config::parse(&String::from_utf8_lossy(&text));
        inspection.notices.extend(of_proposed_settings(&proposed, &estate, &inspection));
    }
    let files = app.source.read_all(&pull.repo, read.tree, &tool::files_of(&inspection, &listing)).await?;
    let text = |(path, bytes): (String, Vec<u8>)| (path, String::from_utf8_lossy(&bytes).into_owned());
    let versions = files.into_iter().map(text).collect();
    tool::settle(&mut inspection, &estate, &listing, &versions);
    Ok(Ok(inspection))
}

/// The configuration at the base commit: a change cannot loosen its own rule.
async fn read_config(app: &App, pull: &PullRef, base: &Sha) -> Result<Result<config::RepoConfig, Refusal>, FlowError> {
    let Some(bytes) = app.source.read(&pull.repo, base, config::FILE).await? else {
        return Ok(Ok(config::RepoConfig::default()));
    };
    let text = String::from_utf8_lossy(&bytes);
    Ok(config::parse(&text).map_err(|problems| {
        let lines: Vec<String> = problems
            .iter()
            .map(|problem| format!("- line {}, column {}: {}", problem.line, problem.column, problem.what))
            .collect();
        Refusal {
            title: format!(
                "Not planned: `{}` has {}",
                config::FILE,
                if lines.len() == 1 { "an error".to_owned() } else { format!("{} errors", lines.len()) }
            ),
            text: format!(
                "It is read from the base, commit `{}`:\n\n{}\n\nMend it there; then push, or type `plan`.",
                base.short(),
                lines.join("\n")
            ),
        }
    }))
}

fn conflict(base_ref: &str, paths: &[String]) -> Refusal {
    let named: Vec<String> = paths.iter().take(10).map(|path| code(path)).collect();
    let more = paths.len().saturating_sub(10);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Refusal {
        title: format!("Not planned: it conflicts with {}", code(base_ref)),
        text: format!(
            "What would be planned is the merge of both, and these paths conflict: {}{more}. Merge {} into the branch, resolve them and push.",
            named.join(", "),
            code(base_ref)
        ),
    }
}

fn gone(head: &Sha, what: &str) -> Event {
    let refusal = Refusal {
        title: "Not planned: the commit is gone".to_owned(),
        text: format!("`{}` cannot be fetched any more ({what}). Push again, or type `plan`.", head.short()),
    };
    Event::Refused { head: head.clone(), refusal, reading: None }
}

fn unreadable(head: &Sha, error: &FlowError) -> Event {
    tracing::error!(head = %head, why = %chain(error), "a head cannot be read");
    let refusal = Refusal {
        title: "Not planned: the repository cannot be read".to_owned(),
        text: "Fetching it failed again and again; the server's log says why. It is tried on by itself; `plan` tries at once.".to_owned(),
    };
    Event::Refused { head: head.clone(), refusal, reading: None }
}
