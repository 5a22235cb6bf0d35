//! What belongs to no repository: people, organizations, teams, the limits, the root. Reads only.

use serde_json::{Value, json};

use super::installed;
use crate::sandbox::auth::Who;
use crate::sandbox::http::{Call, Reply};
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::shape;
use crate::sandbox::world::{Kind, Role, SLUG, State, World};

/// What a person's token may do, as classic ones say it.
const SCOPES: &str = "repo, read:org, admin:repo_hook";

pub(super) fn serve(world: &World, state: &State, call: &Call, who: &Who) -> Answer<Reply> {
    let base = &call.base;
    let parts: Vec<&str> = call.parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => Ok(Reply::json(200, &root(&base.api)).with("x-oauth-scopes", SCOPES)),
        ["user"] => match who {
            Who::Person(login) => Ok(Reply::json(200, &person(state, call, login)?).with("x-oauth-scopes", SCOPES)),
            Who::Installation(_) | Who::App => Err(Refusal::forbidden()),
            Who::Anonymous => Err(Refusal::new(401, "Requires authentication")),
        },
        ["user", "repos"] => {
            let login = who.login()?;
            repos(state, call, who, |repo| repo.roles.keys().any(|name| name.eq_ignore_ascii_case(login)))
        }
        ["user", "orgs"] => {
            let login = who.login()?;
            let mine = state.teams.iter().filter(|(_, members)| members.iter().any(|m| m.eq_ignore_ascii_case(login)));
            let mut orgs: Vec<&str> = mine.filter_map(|(team, _)| Some(team.split_once('/')?.0)).collect();
            orgs.dedup();
            Ok(call.page(orgs.iter().map(|org| shape::login(state, base, org)).collect(), None))
        }
        ["users" | "orgs", login, "installation"] => installed(who, state, call, login),
        ["users", login] => Ok(Reply::json(200, &person(state, call, login)?)),
        ["users" | "orgs", login, "repos"] => repos(state, call, who, |repo| repo.owner.eq_ignore_ascii_case(login)),
        ["apps", SLUG] => Ok(Reply::json(200, &shape::app(state, base))),
        ["rate_limit"] => Ok(Reply::json(200, &limits(world, &who.counted_as()))),
        ["meta"] => {
            Ok(Reply::json(200, &json!({"verifiable_password_authentication": false, "installed_version": "3.20.0"})))
        }
        ["zen"] => Ok(Reply::text("text/plain;charset=utf-8", "Keep it logically awesome.")),
        ["orgs", org] => {
            let account = state.account(org).ok().filter(|account| account.kind == Kind::Organization);
            let account = account.ok_or_else(Refusal::not_found)?;
            let mut shown = person(state, call, &account.login)?;
            shown["url"] = json!(format!("{}/orgs/{}", base.api, account.login));
            Ok(Reply::json(200, &shown))
        }
        ["orgs", org, rest @ ..] => {
            who.login()?;
            of_org(state, call, org, rest)
        }
        _ => Err(Refusal::not_found()),
    }
}

fn root(api: &str) -> Value {
    json!({
        "current_user_url": format!("{api}/user"),
        "organization_url": format!("{api}/orgs/{{org}}"),
        "rate_limit_url": format!("{api}/rate_limit"),
        "repository_url": format!("{api}/repos/{{owner}}/{{repo}}"),
        "user_url": format!("{api}/users/{{user}}"),
    })
}

fn limits(world: &World, asker: &str) -> Value {
    let one = |resource| {
        let account = world.rates.look(asker, resource);
        json!({"limit": account.limit, "used": account.used, "remaining": account.remaining(), "reset": account.reset, "resource": resource})
    };
    json!({"resources": {"core": one("core"), "search": one("search"), "graphql": one("graphql")}, "rate": one("core")})
}

fn repos(state: &State, call: &Call, who: &Who, fits: impl Fn(&crate::sandbox::world::Repo) -> bool) -> Answer<Reply> {
    let seen = state.repos.values().filter(|repo| fits(repo) && who.role(repo) >= Role::Read);
    Ok(call.page(seen.map(|repo| shape::repo(state, &call.base, repo, who.role(repo))).collect(), None))
}

fn of_org(state: &State, call: &Call, org: &str, rest: &[&str]) -> Answer<Reply> {
    let base = &call.base;
    let of_org = || state.teams.iter().filter(|(team, _)| team.starts_with(&format!("{}/", org.to_lowercase())));
    let team = |slug: &str| state.teams.get(&format!("{org}/{slug}").to_lowercase()).ok_or_else(Refusal::not_found);
    match rest {
        ["teams"] => Ok(call.page(of_org().map(|(name, _)| shape::team(state, base, name)).collect(), None)),
        ["members", login] => {
            let is_member =
                of_org().any(|(_, members)| members.iter().any(|member| member.eq_ignore_ascii_case(login)));
            if is_member { Ok(Reply::empty(204)) } else { Err(Refusal::not_found()) }
        }
        ["teams", slug] => {
            team(slug)?;
            Ok(Reply::json(200, &shape::team(state, base, &format!("{org}/{slug}").to_lowercase())))
        }
        ["teams", slug, "members"] => {
            Ok(call.page(team(slug)?.iter().map(|login| shape::login(state, base, login)).collect(), None))
        }
        ["teams", slug, "memberships", login] if team(slug)?.iter().any(|one| one.eq_ignore_ascii_case(login)) => {
            let url = format!("{}{}", base.api, call.path);
            Ok(Reply::json(200, &json!({"url": url, "role": "member", "state": "active"})))
        }
        _ => Err(Refusal::not_found()),
    }
}

fn person(state: &State, call: &Call, login: &str) -> Answer<Value> {
    let account = state.account(login)?;
    let mut user = shape::account(&call.base, account);
    for key in ["name", "company", "location", "email", "hireable", "bio"] {
        user[key] = Value::Null;
    }
    user["name"] = json!(account.login);
    user["blog"] = json!("");
    for key in ["public_repos", "public_gists", "followers", "following"] {
        user[key] = json!(0);
    }
    for key in ["created_at", "updated_at"] {
        user[key] = json!("2026-01-01T00:00:00Z");
    }
    Ok(user)
}
