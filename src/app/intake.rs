//! From a raw delivery to queued events: signature first, then the durable inbox, once per delivery id. Nothing is worked
//! off here; a kill right after the answer loses nothing.

use http::HeaderMap;

use super::{App, index};
use crate::domain::approval::{Review, Verdict};
use crate::domain::command::{self, Reading};
use crate::domain::event::{AuthorKind, Comment, CommentKind, Event, Incoming, What};
use crate::domain::ids::{Login, PullKey, RepoKey};
use crate::domain::pull::{PullState, REVIEW_TEXT};
use crate::domain::setup::{Refusal, Refused};
use crate::ports::forge::{HookError, RepoRef};
use crate::ports::store::{Accepted, Received, StoreError};

/// Why a delivery was not taken.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// It is not the forge's, or no delivery at all.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// It could not be stored: the forge should know that we do not have it.
    #[error("the inbox cannot be written")]
    Store(#[from] StoreError),
    /// No such forge.
    #[error("no forge `{0}` is in the settings")]
    UnknownForge(String),
    /// No forge at all: nothing can be checked, so nothing is taken.
    #[error("this server is not set up yet: open its page /setup/github")]
    NotSetUp,
}

/// Takes a delivery.
pub async fn receive(app: &App, forge: &str, headers: &HeaderMap, body: &[u8]) -> Result<Accepted, IntakeError> {
    let Some(connection) = app.forges.get(forge) else {
        return Err(if app.forges.is_empty() {
            IntakeError::NotSetUp
        } else {
            IntakeError::UnknownForge(forge.to_owned())
        });
    };
    let delivery = connection.hooks.verify(headers, body).inspect_err(|error| {
        app.forges.refuse(forge, Refused { at: app.clock.now(), why: refusal(error) });
    })?;
    let mut events = Vec::new();
    for incoming in &delivery.incoming {
        events.extend(events_of(app, forge, incoming).await?);
        let key = RepoKey { forge: forge.to_owned(), id: incoming.repo_id };
        let pushed = if let What::Push { branch, .. } = &incoming.what { Some(branch.as_str()) } else { None };
        index::heard(app, &RepoRef { key, name: incoming.repo.clone() }, pushed).await?;
    }
    let received = Received {
        forge: forge.to_owned(),
        id: delivery.id,
        name: delivery.event,
        ignored: delivery.ignored,
        events,
        at: app.clock.now(),
    };
    let accepted = app.store.accept(&received).await?;
    app.ring();
    Ok(accepted)
}

fn refusal(error: &HookError) -> Refusal {
    match error {
        HookError::Forged => Refusal::Signature,
        HookError::Missing(_) => Refusal::Header,
        HookError::Malformed(_) => Refusal::Body,
    }
}

/// The events that something incoming makes, each with the pull that it concerns.
pub async fn events_of(app: &App, forge: &str, incoming: &Incoming) -> Result<Vec<(PullKey, Event)>, StoreError> {
    let repo = RepoKey { forge: forge.to_owned(), id: incoming.repo_id };
    let key = |number: &u64| PullKey { repo: repo.clone(), number: *number };
    let login = &app.forges.get(forge).map(|connection| connection.login).unwrap_or_default();
    Ok(match &incoming.what {
        What::Pull { number, seen: Some(seen) } => vec![(key(number), Event::Seen(Box::new(seen.clone())))],
        What::Pull { number, seen: None } => vec![(key(number), Event::Look(incoming.repo.clone()))],
        // Prose makes no event: most comments are, and a turn for each would only say that it is prose.
        What::Comment { comment, .. } if !is_for_us(app, comment, login) => Vec::new(),
        What::Comment { number, comment } => {
            vec![(key(number), Event::Comment(incoming.repo.clone(), comment.clone()))]
        }
        What::Review { number, review, body } => {
            let mut events = vec![(key(number), Event::Review(incoming.repo.clone(), review.clone()))];
            events.extend(
                words_of(review, body, login)
                    .filter(|words| is_for_us(app, words, login))
                    .map(|comment| (key(number), Event::Comment(incoming.repo.clone(), comment))),
            );
            events
        }
        What::Recheck { head, pulls } => {
            pulls.iter().map(|number| (key(number), Event::Recheck(head.clone()))).collect()
        }
        What::Push { branch, tip } => app
            .store
            .open_pulls(&repo)
            .await?
            .into_iter()
            .filter(|pull| {
                pull.seen.as_ref().is_some_and(|seen| seen.state == PullState::Open && seen.base_ref == *branch)
            })
            .map(|pull| (pull.key, Event::BaseMoved { branch: branch.clone(), tip: tip.clone() }))
            .collect(),
    })
}

/// Whether a comment asks us for something, or has to be answered.
fn is_for_us(app: &App, comment: &Comment, login: &str) -> bool {
    app.managed.reads(comment) && command::read(&comment.body, login) != Reading::NotForUs
}

/// Who wrote a review, by the login alone: programs have the forge's own ending, which no person can take.
fn author_of(by: &Login, login: &str) -> AuthorKind {
    if by.same(&login.into()) {
        AuthorKind::Ourselves
    } else if by.as_str().ends_with("[bot]") {
        AuthorKind::Bot
    } else {
        AuthorKind::Person
    }
}

/// The text of a review is read like a comment.
fn words_of(review: &Review, body: &str, login: &str) -> Option<Comment> {
    if body.trim().is_empty() || review.verdict == Verdict::Dismissed {
        return None;
    }
    Some(Comment {
        id: REVIEW_TEXT | review.id,
        by: review.by.clone(),
        author: author_of(&review.by, login),
        body: body.to_owned(),
        at: review.at,
        kind: CommentKind::Review,
    })
}
