//! Accounts, organizations and teams of the graph. Never says more of an account than GitHub shows everybody.

use serde_json::{Value, json};

use super::graph::{Out, Thing, leaf, nothing, page};
use super::{Arguments, Fault, Resolved, Run};
use crate::sandbox::refusal::Refusal;
use crate::sandbox::shape;
use crate::sandbox::world::{Kind, Role};

/// A field of an account.
pub(super) fn field(run: &Run<'_>, login: &str, field: &str, arguments: &Arguments) -> Resolved {
    let account = run.state.account(login)?;
    let rest = shape::account(&run.base, account);
    match (account.kind, field) {
        (_, "id") => leaf(rest["node_id"].clone()),
        // An App's account has no brackets here.
        (Kind::Bot, "login") => leaf(account.login.trim_end_matches("[bot]")),
        (_, "login") | (Kind::User | Kind::Organization, "name") => leaf(account.login.as_str()),
        (Kind::User | Kind::Organization, "email") => leaf(""),
        (_, "url") => leaf(rest["html_url"].clone()),
        (_, "databaseId") => leaf(account.id),
        (_, "avatarUrl") => leaf(rest["avatar_url"].clone()),
        (_, "resourcePath") => leaf(format!("/{}", account.login)),
        (Kind::User | Kind::Organization, "repositories") => {
            let own = run.state.repos.values().filter(|repo| repo.owner == account.login);
            let seen = own.filter(|repo| run.who.role(repo) >= Role::Read);
            page("RepositoryConnection", seen.map(|repo| Thing::Repo(repo.full_name())).collect(), arguments)
        }
        (Kind::User, "organizations") => nothing("OrganizationConnection"),
        (Kind::Organization, "teams") => {
            let start = format!("{}/", account.login.to_lowercase());
            let wanted: Option<Vec<&str>> = arguments
                .get("userLogins")
                .and_then(Value::as_array)
                .map(|all| all.iter().filter_map(Value::as_str).collect());
            let has = |members: &std::collections::BTreeSet<String>| {
                wanted.as_ref().is_none_or(|logins| {
                    logins.iter().any(|login| members.iter().any(|member| member.eq_ignore_ascii_case(login)))
                })
            };
            let teams = run.state.teams.iter().filter(|(name, members)| name.starts_with(&start) && has(members));
            page("TeamConnection", teams.map(|(name, _)| Thing::Team(name.clone())).collect(), arguments)
        }
        (Kind::Organization, "team") => {
            let slug = arguments.get("slug").and_then(Value::as_str).unwrap_or_default();
            let name = format!("{}/{slug}", account.login).to_lowercase();
            Ok(Out::perhaps(run.state.teams.contains_key(&name).then_some(Thing::Team(name))))
        }
        (Kind::Organization, "viewerCanAdminister") => leaf(false),
        _ => Err(Fault::Undefined),
    }
}

/// A field of a team. Teams have no children here.
pub(super) fn team(run: &Run<'_>, name: &str, field: &str, arguments: &Arguments) -> Resolved {
    let rest = shape::team(run.state, &run.base, name);
    match field {
        "id" => leaf(rest["node_id"].clone()),
        "name" | "slug" => leaf(rest[field].clone()),
        "databaseId" => leaf(rest["id"].clone()),
        "combinedSlug" => leaf(name),
        "url" => leaf(rest["html_url"].clone()),
        "childTeams" => nothing("TeamConnection"),
        "parentTeam" => leaf(Value::Null),
        "organization" => {
            let (org, _) = name.split_once('/').ok_or_else(Refusal::not_found)?;
            Ok(Out::One(Thing::Actor(run.state.account(org)?.login.clone())))
        }
        "members" => {
            let members = run.state.teams.get(name).ok_or_else(Refusal::not_found)?;
            page("TeamMemberConnection", members.iter().map(|login| Thing::Actor(login.clone())).collect(), arguments)
        }
        _ => Err(Fault::Undefined),
    }
}

/// An account that a commit names, with or without one behind it.
pub(super) fn git_actor(run: &Run<'_>, of: &[String; 3]) -> Thing {
    let account = run.state.by_email(&of[1]).map(|account| Thing::Actor(account.login.clone()));
    let values = json!({"name": of[0], "email": of[1], "date": of[2]});
    Thing::Known("GitActor", values.as_object().cloned().unwrap_or_default(), vec![("user", account)])
}
