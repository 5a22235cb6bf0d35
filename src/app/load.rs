//! The only reader of a turn: gathers what the decision about one event needs into a value. It reads; it never writes.

use std::collections::BTreeMap;

use super::{App, Connection, FlowError};
use crate::domain::approval::{Permission, Review, Verdict};
use crate::domain::command::{self, Command, Reading};
use crate::domain::config::{ApprovalSource, Requirement};
use crate::domain::decide::{Facts, is_merge_unsaid};
use crate::domain::event::{AuthorKind, Comment, CommentKind, Event};
use crate::domain::ids::{Login, Sha};
use crate::domain::pull::Pull;
use crate::domain::rollout::{Rollout, Stage};
use crate::ports::forge::{ForgeError, PullRef};
use crate::ports::source::Wanted;
use crate::ports::store::{Loaded, Queued};

mod beside;

/// How often an apply that asks whether the pull merges waits for a forge that is still working it out.
const UNSAID_TRIES: i64 = 6;

/// The pull as it was, or as it begins, and the facts for this event.
pub async fn facts(app: &App, queued: &Queued, loaded: &Loaded) -> Result<(Pull, Facts), FlowError> {
    let (key, event) = (&queued.pull, &queued.event);
    let connection = &app.connection(&key.repo)?;
    let now = app.clock.now();
    let pull = loaded.pull.clone().unwrap_or_else(|| Pull::unseen(key.clone(), repo_of(event), now));
    let at = app.pull_ref(key, &pull.repo);
    let command = command_of(app, event, &connection.login);
    let comment = command.as_ref().map(|(comment, _)| *comment);
    let mut facts = Facts {
        now,
        locks: loaded.locks.clone(),
        fresh: None,
        permission: None,
        base_tip: None,
        interested: Vec::new(),
        foreign: Vec::new(),
        teams: teams(app, connection, pull.rollout.as_ref()).await?,
        reviews: None,
        estate: None,
        server: app.server(connection),
    };
    if needs_look(&pull, event, comment) {
        let seen = connection.forge.pull(&at).await?;
        let is_unsaid = command.as_ref().is_some_and(|(_, command)| is_merge_unsaid(&pull, &seen, command));
        if is_unsaid && queued.attempts < UNSAID_TRIES {
            return Err(ForgeError::Unavailable("it does not say yet whether the pull merges".to_owned()).into());
        }
        facts.fresh = Some(seen);
    }
    if let Some(comment) = comment.filter(|comment| comment.author == AuthorKind::Person) {
        facts.permission = Some(connection.forge.permission(&at.repo, &comment.by).await?);
    }
    if let Some(rollout) = &pull.rollout {
        if let Some((_, Command::Apply(_) | Command::Approve { .. })) = &command {
            facts.base_tip = base_tip(app, connection, &at, rollout).await?;
        }
        if needs_reviews(rollout, event, command.as_ref().map(|(_, command)| command)) {
            facts.reviews = Some(reviews(connection, &at).await?);
        }
        if may_complete_plans(rollout, event, comment) {
            facts.estate = match app.source.estate(&at.repo, &rollout.tree, &rollout.config).await {
                Ok(estate) => Some(estate),
                Err(error) if matches!(event, Event::JobEnded { .. } | Event::Inspected(_)) => return Err(error.into()),
                // A mirror that is not there must not hold up what people type.
                Err(_) => None,
            };
        }
    }
    if let Event::Inspected(inspection) = event {
        facts.estate = Some(app.source.estate(&at.repo, &inspection.tree, &inspection.config).await?);
    }
    let asked = command.as_ref().map(|(_, command)| command);
    facts.interested = beside::interested(
        app,
        &pull,
        event,
        &beside::Asked { fresh: facts.fresh.as_ref(), command: asked, locks: &loaded.locks },
    )
    .await?;
    if facts.estate.is_some() {
        facts.foreign = beside::foreign(app, &pull, event).await?;
    }
    Ok((pull, facts))
}

/// The name of the repository, when the event is the first that we hear of a pull.
fn repo_of(event: &Event) -> String {
    match event {
        Event::Seen(seen) => seen.repo.clone(),
        Event::Look(repo) | Event::Comment(repo, _) | Event::Review(repo, _) => repo.clone(),
        _ => String::new(),
    }
}

/// The command of a new comment by a person, or by a program that the settings name.
fn command_of<'a>(app: &App, event: &'a Event, login: &str) -> Option<(&'a Comment, Command)> {
    let Event::Comment(_, comment) = event else { return None };
    if !app.managed.reads(comment) || comment.kind == CommentKind::Edited {
        return None;
    }
    match command::read(&comment.body, login) {
        Reading::Command(command) => Some((comment, command)),
        _ => None,
    }
}

/// A command acts on the pull as it is now, and a pull of which we know nothing must be looked at.
fn needs_look(pull: &Pull, event: &Event, comment: Option<&Comment>) -> bool {
    match event {
        Event::Look(_) => true,
        Event::Comment(..) => comment.is_some(),
        Event::Review(..) => pull.seen.is_none(),
        _ => false,
    }
}

/// Whether the last plan that is waited for may be there after this event: the reach is read then, from the estate.
fn may_complete_plans(rollout: &Rollout, event: &Event, comment: Option<&Comment>) -> bool {
    let may = match event {
        Event::JobEnded { .. } | Event::Inspected(_) => true,
        Event::Progress { .. } => false,
        _ => comment.is_some() || rollout.reach.is_none(),
    };
    may && rollout.stage == Stage::Ready && rollout.tree != Sha::new("")
}

fn needs_reviews(rollout: &Rollout, event: &Event, command: Option<&Command>) -> bool {
    let by_review = rollout.config.approval == ApprovalSource::PrReview
        || rollout.config.apply.requires.contains(&Requirement::Approved);
    match event {
        Event::Review(..) => true,
        Event::Look(_) => by_review,
        _ => by_review && matches!(command, Some(Command::Apply(_) | Command::Approve { .. })),
    }
}

/// The base's tip as it is now: an apply must not run on plans that do not know it.
async fn base_tip(
    app: &App,
    connection: &Connection,
    at: &PullRef,
    rollout: &Rollout,
) -> Result<Option<Sha>, FlowError> {
    if rollout.stage != Stage::Ready {
        return Ok(None);
    }
    let access = connection.forge.git_access(&at.repo).await?;
    let wanted = Wanted { pull: at.number, head: rollout.head.clone(), base_ref: rollout.base_ref.clone() };
    Ok(Some(app.source.fetch(&at.repo, &access, &wanted, None).await?))
}

/// Reviews with what each reviewer may do; only verdicts that can count are asked about.
async fn reviews(connection: &Connection, at: &PullRef) -> Result<Vec<(Review, Permission)>, FlowError> {
    let mut known = Vec::new();
    for review in connection.forge.reviews(at).await? {
        let may = match review.verdict {
            Verdict::Approved | Verdict::ChangesRequested => connection.forge.permission(&at.repo, &review.by).await?,
            Verdict::Commented | Verdict::Dismissed => Permission::None,
        };
        known.push((review, may));
    }
    Ok(known)
}

/// Members of every team that the settings of reached roots name. A team that does not exist has none.
async fn teams(
    app: &App,
    connection: &Connection,
    rollout: Option<&Rollout>,
) -> Result<BTreeMap<String, Vec<Login>>, FlowError> {
    let mut teams = BTreeMap::new();
    let names = rollout.iter().flat_map(|rollout| rollout.runs.values()).flat_map(|run| &run.settings.approvers);
    for name in names {
        let bare = name.trim_start_matches('@');
        let Some((org, slug)) = bare.split_once('/') else { continue };
        if teams.contains_key(bare) {
            continue;
        }
        let key = (connection.login.clone(), bare.to_owned());
        let members = match app.teams.get(&key).await {
            Some(members) => members,
            None => {
                let members = match connection.forge.team(org, slug).await {
                    Ok(members) => members,
                    Err(ForgeError::NotFound(_)) => Vec::new(),
                    Err(error) => return Err(error.into()),
                };
                app.teams.insert(key, members.clone()).await;
                members
            }
        };
        teams.insert(bare.to_owned(), members);
    }
    Ok(teams)
}
