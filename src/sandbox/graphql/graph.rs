//! The things of the graph, and the edges between those that every type shares: nodes, pages, searches. Never writes.

use serde_json::{Map, Value, json};

use super::{Arguments, Fault, Resolved, Run, actor, checks, mutation, pull, repo};
use crate::sandbox::auth::Who;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::{Kind, PullState, Role, State, seconds};

/// What a field gives.
pub(super) enum Out {
    /// A value without fields.
    Leaf(Value),
    /// An object.
    One(Thing),
    /// A list of objects.
    Many(Vec<Thing>),
}

impl Out {
    /// An object, or null.
    pub fn perhaps(thing: Option<Thing>) -> Self {
        thing.map_or(Self::Leaf(Value::Null), Self::One)
    }
}

/// A leaf.
pub(super) fn leaf(value: impl Into<Value>) -> Resolved {
    Ok(Out::Leaf(value.into()))
}

/// Something with fields. A repository is named by `owner/name`.
#[derive(Clone, Debug)]
pub(super) enum Thing {
    Query,
    Mutation,
    Repo(String),
    Pull(String, u64),
    Actor(String),
    Comment(String, u64),
    Review(String, u64, u64),
    Commit(String, String),
    PullCommit(String, String),
    Branch(String, String),
    Rollup(String, String),
    CheckRun(String, u64),
    Status(String, u64),
    Team(String),
    /// A page of things, with the name of its type.
    Page(&'static str, Page),
    /// A place in a page.
    Edge(String, Box<Thing>),
    /// Something whose fields are all known: values, and things by name.
    Known(&'static str, Map<String, Value>, Vec<(&'static str, Option<Thing>)>),
}

/// A page of a longer list.
#[derive(Clone, Debug)]
pub(super) struct Page {
    items: Vec<Thing>,
    first: usize,
    total: usize,
}

impl Thing {
    /// Something with these values.
    pub fn known(kind: &'static str, values: Value) -> Self {
        let values = if let Value::Object(values) = values { values } else { Map::new() };
        Self::Known(kind, values, Vec::new())
    }

    /// The name of its type.
    pub fn kind(&self, state: &State) -> String {
        match self {
            Self::Query => "Query",
            Self::Mutation => "Mutation",
            Self::Repo(_) => "Repository",
            Self::Pull(..) => "PullRequest",
            Self::Actor(login) => match state.account(login).map(|account| account.kind) {
                Ok(Kind::Organization) => "Organization",
                Ok(Kind::Bot) => "Bot",
                _ => "User",
            },
            Self::Comment(..) => "IssueComment",
            Self::Review(..) => "PullRequestReview",
            Self::Commit(..) => "Commit",
            Self::PullCommit(..) => "PullRequestCommit",
            Self::Branch(..) => "Ref",
            Self::Rollup(..) => "StatusCheckRollup",
            Self::CheckRun(..) => "CheckRun",
            Self::Status(..) => "StatusContext",
            Self::Team(_) => "Team",
            Self::Edge(..) => "Edge",
            Self::Page(kind, _) | Self::Known(kind, ..) => kind,
        }
        .to_owned()
    }
}

/// Cuts a list as `first`, `last`, `after` and `before` say.
pub(super) fn page(kind: &'static str, items: Vec<Thing>, arguments: &Arguments) -> Resolved {
    let place = |name: &str| {
        let text = arguments.get(name)?.as_str()?.strip_prefix("cursor:")?;
        text.parse::<usize>().ok()
    };
    let count = |name: &str| {
        let count = arguments.get(name).and_then(Value::as_u64)?;
        usize::try_from(count).ok()
    };
    for name in ["first", "last"] {
        if count(name).is_some_and(|count| count > 100) {
            let message = format!(
                "Requesting {} records on the `connection` exceeds the `{name}` limit of 100 records.",
                count(name).unwrap_or(0)
            );
            return Err(Refusal::new(422, message).into());
        }
    }
    let total = items.len();
    let mut start = place("after").unwrap_or(0).min(total);
    let mut end = place("before").map_or(total, |before| before.saturating_sub(1)).clamp(start, total);
    if let Some(first) = count("first") {
        end = end.min(start + first);
    }
    if let Some(last) = count("last") {
        start = start.max(end.saturating_sub(last));
    }
    let items = items.into_iter().skip(start).take(end - start).collect();
    Ok(Out::One(Thing::Page(kind, Page { items, first: start, total })))
}

/// An empty page of what the sandbox does not have.
pub(super) fn nothing(kind: &'static str) -> Resolved {
    page(kind, Vec::new(), &Map::new())
}

fn of_page(page: &Page, field: &str) -> Resolved {
    let end = page.first + page.items.len();
    match field {
        "totalCount" | "issueCount" => leaf(page.total),
        "nodes" => Ok(Out::Many(page.items.clone())),
        "edges" => {
            let edge = |(at, item): (usize, &Thing)| {
                Thing::Edge(format!("cursor:{}", page.first + at + 1), Box::new(item.clone()))
            };
            Ok(Out::Many(page.items.iter().enumerate().map(edge).collect()))
        }
        "pageInfo" => {
            let is_empty = page.items.is_empty();
            Ok(Out::One(Thing::known(
                "PageInfo",
                json!({
                    "hasNextPage": end < page.total, "hasPreviousPage": page.first > 0,
                    "startCursor": if is_empty { Value::Null } else { json!(format!("cursor:{}", page.first + 1)) },
                    "endCursor": if is_empty { Value::Null } else { json!(format!("cursor:{end}")) },
                }),
            )))
        }
        _ => Err(Fault::Undefined),
    }
}

/// The value of a field of a thing.
pub(super) fn resolve(run: &mut Run<'_>, thing: &Thing, field: &str, arguments: &Arguments) -> Resolved {
    match thing {
        Thing::Query => query(run, field, arguments),
        Thing::Mutation => mutation::perform(run, field, &arguments.get("input").cloned().unwrap_or_default()),
        Thing::Repo(name) => repo::field(run, name, field, arguments),
        Thing::Branch(name, branch) => repo::branch(run, name, branch, field, arguments),
        Thing::Pull(name, number) => pull::field(run, (name, *number), field, arguments),
        Thing::Comment(name, id) => pull::comment(run, name, *id, field),
        Thing::Review(name, number, id) => pull::review(run, (name, *number), *id, field),
        Thing::Actor(login) => actor::field(run, login, field, arguments),
        Thing::Team(name) => actor::team(run, name, field, arguments),
        Thing::Commit(name, sha) => checks::commit(run, name, sha, field, arguments),
        Thing::PullCommit(name, sha) => match field {
            "commit" => Ok(Out::One(Thing::Commit(name.clone(), sha.clone()))),
            "id" => leaf(format!("PURC_kwSB{sha}")),
            _ => Err(Fault::Undefined),
        },
        Thing::Rollup(name, sha) => checks::rollup(run, name, sha, field, arguments),
        Thing::CheckRun(name, id) => checks::run(run, name, *id, field, arguments),
        Thing::Status(name, id) => checks::status(run, name, *id, field, arguments),
        Thing::Page(_, page) => of_page(page, field),
        Thing::Edge(cursor, item) => match field {
            "cursor" => leaf(cursor.as_str()),
            "node" => Ok(Out::One((**item).clone())),
            _ => Err(Fault::Undefined),
        },
        Thing::Known(_, values, things) => {
            if let Some((_, thing)) = things.iter().find(|(name, _)| *name == field) {
                return Ok(Out::perhaps(thing.clone()));
            }
            values.get(field).cloned().map_or(Err(Fault::Undefined), |value| Ok(Out::Leaf(value)))
        }
    }
}

fn query(run: &mut Run<'_>, field: &str, arguments: &Arguments) -> Resolved {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match field {
        "viewer" => viewer(run),
        "repository" => {
            let name = format!("{}/{}", text("owner"), text("name"));
            let seen = seen(run, &name)
                .map_err(|_| Refusal::new(404, format!("Could not resolve to a Repository with the name '{name}'.")))?;
            Ok(Out::One(Thing::Repo(seen)))
        }
        "organization" | "user" | "repositoryOwner" => {
            let login = text("login");
            let found = run.state.account(&login).ok().filter(|account| match field {
                "organization" => account.kind == Kind::Organization,
                "user" => account.kind == Kind::User,
                _ => true,
            });
            let what = if field == "organization" { "an Organization" } else { "a User" };
            let missing = || Refusal::new(404, format!("Could not resolve to {what} with the login of '{login}'."));
            Ok(Out::One(Thing::Actor(found.ok_or_else(missing)?.login.clone())))
        }
        "node" => Ok(Out::One(node(run, &text("id"))?)),
        "search" => search(run, arguments),
        "rateLimit" => Ok(Out::One(Thing::known(
            "RateLimit",
            json!({"limit": 5000, "cost": 1, "remaining": 4999, "used": 1, "nodeCount": 0, "resetAt": jiff::Timestamp::from_second(seconds() + 3600).map(|at| at.to_string()).unwrap_or_default()}),
        ))),
        "__type" => {
            let Some(names) = fields_of(&text("name")) else { return leaf(Value::Null) };
            let fields: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            Ok(Out::One(Thing::known("__Type", json!({"name": text("name"), "kind": "OBJECT", "fields": fields}))))
        }
        _ => Err(Fault::Undefined),
    }
}

/// The fields that clients look for before they ask; a merge queue is none of them.
fn fields_of(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "PullRequest" => Some(pull::FIELDS),
        "StatusCheckRollupContextConnection" => Some(&["edges", "nodes", "pageInfo", "totalCount"]),
        "WorkflowRun" => Some(&["workflow"]),
        _ => None,
    }
}

fn viewer(run: &Run<'_>) -> Resolved {
    match &run.who {
        Who::Person(login) => Ok(Out::One(Thing::Actor(login.clone()))),
        _ => {
            let bot = run.state.account(&run.login).map_err(Fault::Refused)?;
            let id = shape::node("BOT", bot.id);
            Ok(Out::One(Thing::known(
                "User",
                json!({"login": bot.login, "id": id, "databaseId": bot.id, "name": null}),
            )))
        }
    }
}

/// The repository's own spelling, when the asker may see it.
pub(super) fn seen(run: &Run<'_>, name: &str) -> Answer<String> {
    let repo = run.state.repo(name)?;
    run.who.require(repo, Role::Read)?;
    Ok(repo.full_name())
}

/// The thing with a node id.
pub(super) fn node(run: &Run<'_>, id: &str) -> Answer<Thing> {
    let missing = || Refusal::new(404, format!("Could not resolve to a node with the global id of '{id}'."));
    let seen = |repo: &&crate::sandbox::world::Repo| run.who.role(repo) >= Role::Read;
    for repo in run.state.repos.values().filter(seen) {
        let name = repo.full_name();
        if shape::node("R", repo.id) == id {
            return Ok(Thing::Repo(name));
        }
        for pull in repo.pulls.values() {
            if shape::node("PR", pull.id) == id || shape::node("I", pull.issue_id) == id {
                return Ok(Thing::Pull(name, pull.number));
            }
            if let Some(review) = pull.reviews.iter().find(|review| shape::node("PRR", review.id) == id) {
                return Ok(Thing::Review(name, pull.number, review.id));
            }
        }
        if let Some(comment) = repo.comments.iter().find(|comment| shape::node("IC", comment.id) == id) {
            return Ok(Thing::Comment(name, comment.id));
        }
        if let Some(one) = repo.runs.iter().find(|one| shape::node("CR", one.id) == id) {
            return Ok(Thing::CheckRun(name, one.id));
        }
    }
    let of_account = |kind: &str, account: &crate::sandbox::world::Account| shape::node(kind, account.id) == id;
    let kinds = ["U", "O", "BOT"];
    let account = run.state.accounts.values().find(|account| kinds.iter().any(|kind| of_account(kind, account)));
    account.map(|account| Thing::Actor(account.login.clone())).ok_or_else(missing)
}

fn search(run: &Run<'_>, arguments: &Arguments) -> Resolved {
    let text = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
    let terms: Vec<(&str, &str)> = text.split_whitespace().filter_map(|term| term.split_once(':')).collect();
    let mut found = Vec::new();
    for repo in run.state.repos.values().filter(|repo| run.who.role(repo) >= Role::Read) {
        for one in repo.pulls.values().rev() {
            let fits = |(key, value): &(&str, &str)| {
                let value = if *value == "@me" { run.login.as_str() } else { value };
                match (*key, value) {
                    ("repo", name) => repo.full_name().eq_ignore_ascii_case(name),
                    ("org" | "user", owner) => repo.owner.eq_ignore_ascii_case(owner),
                    ("state" | "is", "open") => one.is_open(),
                    ("state" | "is", "closed") => !one.is_open(),
                    ("is", "merged") => one.merged.is_some(),
                    ("is", "draft") => one.state == PullState::Draft,
                    ("is" | "type", "issue") | ("review-requested" | "assignee" | "mentions", _) => false,
                    ("author", login) => one.author.eq_ignore_ascii_case(login),
                    ("head", branch) => one.head == branch,
                    ("base", branch) => one.base == branch,
                    ("label", label) => one.labels.iter().any(|own| own == label),
                    _ => true,
                }
            };
            if terms.iter().all(fits) {
                found.push(Thing::Pull(repo.full_name(), one.number));
            }
        }
    }
    page("SearchResultItemConnection", found, arguments)
}
