//! GitHub's REST API: finds the endpoint of a call. Each folder of the address has a file of its own; none of them
//! holds a rule of the forge, those are in `act`.

use serde_json::{Value, json};

use super::apps;
use super::auth::{Token, Who, mint};
use super::http::{Call, Reply};
use super::refusal::{Answer, Refusal};
use super::shape;
use super::world::{INSTALLATION_ID, Role, SLUG, State, World, seconds};

mod checks;
mod contents;
mod issues;
mod pulls;

/// What an endpoint has at hand.
pub(super) struct Desk<'a> {
    state: &'a mut State,
    call: &'a Call,
    who: Who,
    /// `owner/name`, as the repository spells it.
    repo: String,
}

impl Desk<'_> {
    fn login(&self) -> Answer<String> {
        self.who.login().map(str::to_owned)
    }
    fn require(&self, least: Role) -> Answer<()> {
        self.who.require(self.state.repo(&self.repo)?, least)
    }
    /// Writing needs someone, even where everybody may read.
    fn require_someone(&self, least: Role) -> Answer<String> {
        self.require(least)?;
        self.login()
    }
}

/// Answers a call.
pub fn serve(world: &World, call: &Call) -> Answer<Reply> {
    let parts: Vec<&str> = call.parts.iter().map(String::as_str).collect();
    let mut state = world.lock();
    let who = apps::admit(&state, Who::read(&state, call.header("authorization"))?)?;
    if let ["repos", owner, name, rest @ ..] = parts.as_slice() {
        if matches!(who, Who::App) && rest != ["installation"] {
            return Err(Refusal::new(401, "A JSON web token could not be decoded"));
        }
        let repo = state.repo(&format!("{owner}/{name}"))?.full_name();
        let mut desk = Desk { state: &mut state, call, who, repo };
        if rest == ["installation"] {
            return installation(&desk.who, desk.state, call);
        }
        desk.require(Role::Read)?;
        return in_repo(&mut desk, rest);
    }
    match (call.method.as_str(), parts.as_slice()) {
        ("GET", ["app" | "installation", ..]) | ("POST", ["app", ..]) => of_app(&mut state, call, &who, &parts),
        ("POST", ["app-manifests", code, "conversions"]) => apps::convert(&mut state, call, code),
        ("POST", ["graphql"]) => graphql(&mut state, call, &who),
        ("GET", _) => around(&state, call, &who, &parts),
        _ => Err(Refusal::not_found()),
    }
}

fn installation(who: &Who, state: &State, call: &Call) -> Answer<Reply> {
    if !matches!(who, Who::App) {
        return Err(Refusal::new(401, "A JSON web token could not be decoded"));
    }
    let one = apps::installations(state, call).pop().ok_or_else(Refusal::not_found)?;
    Ok(Reply::json(200, &one))
}

fn in_repo(desk: &mut Desk<'_>, rest: &[&str]) -> Answer<Reply> {
    match rest.first().copied() {
        None => {
            let repo = desk.state.repo(&desk.repo)?;
            Ok(Reply::json(200, &shape::repo(desk.state, &desk.call.base, repo, desk.who.role(repo))))
        }
        Some("pulls") => pulls::serve(desk, &rest[1..]),
        Some("issues") => issues::serve(desk, &rest[1..]),
        Some("check-runs" | "check-suites" | "statuses") => checks::serve(desk, rest),
        Some("commits") => match rest.last().copied() {
            Some("check-runs" | "check-suites" | "status" | "statuses") if rest.len() > 2 => {
                checks::of_commit(desk, rest)
            }
            _ => contents::serve(desk, rest),
        },
        Some("collaborators") => collaborators(desk, &rest[1..]),
        _ => contents::serve(desk, rest),
    }
}

fn collaborators(desk: &Desk<'_>, rest: &[&str]) -> Answer<Reply> {
    let ["GET", login, "permission"] =
        [desk.call.method.as_str(), rest.first().copied().unwrap_or(""), rest.get(1).copied().unwrap_or("")]
    else {
        return Err(Refusal::not_found());
    };
    desk.require_someone(Role::Write)?;
    let (state, base) = (&*desk.state, &desk.call.base);
    let repo = state.repo(&desk.repo)?;
    let account = state.account(login)?;
    let role = repo.role(login);
    let mut user = shape::account(base, account);
    user["permissions"] = shape::repo(state, base, repo, role)["permissions"].clone();
    user["role_name"] = json!(role.word());
    Ok(Reply::json(200, &json!({"permission": role.word(), "role_name": role.word(), "user": user})))
}

fn of_app(state: &mut State, call: &Call, who: &Who, parts: &[&str]) -> Answer<Reply> {
    if parts == ["installation", "repositories"] {
        let Who::Installation(only) = who else { return Err(Refusal::forbidden()) };
        let repos = state.repos.values().filter(|repo| only.as_ref().is_none_or(|ids| ids.contains(&repo.id)));
        let shown = repos.map(|repo| shape::repo(state, &call.base, repo, Role::Write)).collect();
        return Ok(call.page(shown, Some("repositories")));
    }
    if !matches!(who, Who::App) {
        return Err(Refusal::new(401, "A JSON web token could not be decoded"));
    }
    let id = INSTALLATION_ID.to_string();
    match (call.method.as_str(), parts) {
        ("GET", ["app"]) => Ok(Reply::json(200, &shape::app(state, &call.base))),
        ("GET", ["app", "installations"]) => Ok(call.page(apps::installations(state, call), None)),
        ("GET", ["app", "installations", one]) if *one == id => installation(who, state, call),
        ("POST", ["app", "installations", one, "access_tokens"]) if *one == id => token(state, call),
        ("GET", ["app", "hook", "deliveries"]) => {
            let shown = state.hooks.delivered().iter().rev().map(delivery).collect();
            Ok(call.page(shown, None))
        }
        ("POST", ["app", "hook", "deliveries", one, "attempts"]) => {
            let again = one.parse().ok().and_then(|id| state.hooks.redeliver(id));
            again.map(|_| Reply::json(202, &json!({}))).ok_or_else(Refusal::not_found)
        }
        _ => Err(Refusal::not_found()),
    }
}

fn delivery(one: &super::hooks::Delivery) -> Value {
    let code = one.answered.unwrap_or(0);
    json!({
        "id": one.id, "guid": one.guid, "delivered_at": super::world::now(),
        "redelivery": one.redelivery == super::hooks::Redelivery::Again, "duration": 0.1,
        "status": if (200..300).contains(&code) { "OK" } else { "Invalid HTTP Response" }, "status_code": code,
        "event": one.event, "action": Some(&one.action).filter(|action| !action.is_empty()),
        "installation_id": INSTALLATION_ID, "repository_id": null, "throttled_at": null,
    })
}

fn token(state: &mut State, call: &Call) -> Answer<Reply> {
    let body = call.json()?;
    let mut repos = None;
    if let Some(names) = body["repositories"].as_array() {
        let find = |name: &Value| state.repos.values().find(|repo| Some(repo.name.as_str()) == name.as_str());
        let ids: Option<Vec<u64>> = names.iter().map(|name| find(name).map(|repo| repo.id)).collect();
        repos = Some(ids.ok_or_else(|| {
            Refusal::new(
                422,
                "There is at least one repository that does not exist or is not accessible to the parent installation.",
            )
        })?);
    }
    if let Some(ids) = body["repository_ids"].as_array() {
        repos = Some(ids.iter().filter_map(Value::as_u64).collect());
    }
    let text = mint("ghs");
    let until = seconds() + 3600;
    let expires = jiff::Timestamp::from_second(until).map_err(|error| Refusal::new(500, error.to_string()))?;
    let mut shown = json!({
        "token": text,
        "expires_at": expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "permissions": shape::token_permissions(),
        "repository_selection": if repos.is_some() { "selected" } else { "all" },
    });
    if let Some(ids) = &repos {
        let chosen = state.repos.values().filter(|repo| ids.contains(&repo.id));
        shown["repositories"] = chosen.map(|repo| shape::repo(state, &call.base, repo, Role::Write)).collect();
    }
    state.tokens.insert(text, Token::Installation { until, repos });
    Ok(Reply::json(201, &shown))
}

fn graphql(state: &mut State, call: &Call, who: &Who) -> Answer<Reply> {
    who.login()?;
    let body = call.json()?;
    let query = body["query"].as_str().unwrap_or("");
    let fail = |kind: &str, message: &str| {
        Reply::json(
            200,
            &json!({"data": null, "errors": [{"type": kind, "path": ["minimizeComment"], "message": message}]}),
        )
    };
    if !query.contains("minimizeComment") {
        return Ok(fail("UNPROCESSABLE", "The sandbox knows one GraphQL mutation: minimizeComment"));
    }
    let variables = &body["variables"];
    let input = if variables["input"].is_object() { &variables["input"] } else { variables };
    let named = |names: &[&str]| names.iter().find_map(|name| input[*name].as_str().map(str::to_owned));
    let subject = named(&["subjectId", "id", "subject"]).or_else(|| literal(query, "subjectId"));
    let why = named(&["classifier"]).or_else(|| literal(query, "classifier")).unwrap_or_else(|| "OUTDATED".into());
    match subject.map(|node| state.minimize(&node, &why)) {
        Some(Ok(())) => {
            let comment = json!({"isMinimized": true, "minimizedReason": why.to_lowercase()});
            Ok(Reply::json(
                200,
                &json!({"data": {"minimizeComment": {"clientMutationId": null, "minimizedComment": comment}}}),
            ))
        }
        _ => Ok(fail("NOT_FOUND", "Could not resolve to a node with the global id")),
    }
}

/// The value of an argument that was written into the query itself.
fn literal(query: &str, name: &str) -> Option<String> {
    let rest = query.split(name).nth(1)?.trim_start().strip_prefix(':')?.trim_start();
    let text = rest.strip_prefix('"').unwrap_or(rest);
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    text.get(..end).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn around(state: &State, call: &Call, who: &Who, parts: &[&str]) -> Answer<Reply> {
    let base = &call.base;
    match parts {
        [] => Ok(Reply::json(200, &json!({"current_user_url": format!("{}/user", base.api)}))
            .with("x-oauth-scopes", "repo, read:org")),
        ["user"] => match who {
            Who::Person(login) => {
                Ok(Reply::json(200, &person(state, call, login)?).with("x-oauth-scopes", "repo, read:org"))
            }
            Who::Installation(_) | Who::App => Err(Refusal::forbidden()),
            Who::Anonymous => Err(Refusal::new(401, "Requires authentication")),
        },
        ["users", login] => Ok(Reply::json(200, &person(state, call, login)?)),
        ["apps", SLUG] => Ok(Reply::json(200, &shape::app(state, base))),
        ["rate_limit"] => {
            let one = json!({"limit": 5000, "used": 1, "remaining": 4999, "reset": seconds() + 3600});
            Ok(Reply::json(200, &json!({"resources": {"core": one, "search": one, "graphql": one}, "rate": one})))
        }
        ["orgs", org, "teams", team, rest @ ..] => {
            who.login()?;
            let members = state.teams.get(&format!("{org}/{team}").to_lowercase()).ok_or_else(Refusal::not_found)?;
            match rest {
                ["members"] => {
                    Ok(call.page(members.iter().map(|login| shape::login(state, base, login)).collect(), None))
                }
                ["memberships", login] if members.iter().any(|member| member.eq_ignore_ascii_case(login)) => {
                    let url = format!("{}{}", base.api, call.path);
                    Ok(Reply::json(200, &json!({"url": url, "role": "member", "state": "active"})))
                }
                _ => Err(Refusal::not_found()),
            }
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
