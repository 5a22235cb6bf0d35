//! GitHub's REST API: finds the endpoint of a call. Each folder of the address has a file of its own; none of them
//! holds a rule of the forge, those are in `act`.

use serde_json::{Value, json};

use super::apps;
use super::auth::{Token, Who, mint};
use super::graphql;
use super::http::{Call, Reply};
use super::refusal::{Answer, Refusal};
use super::shape;
use super::world::{INSTALLATION_ID, Role, State, World, seconds};

mod around;
mod checks;
mod contents;
mod issues;
mod objects;
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

/// Whose requests a call is counted with.
pub fn asker(world: &World, call: &Call) -> String {
    let state = world.lock();
    Who::read(&state, call.header("authorization")).map(|who| who.counted_as()).unwrap_or_default()
}

/// Answers a call.
pub fn serve(world: &World, call: &Call) -> Answer<Reply> {
    let parts: Vec<&str> = call.parts.iter().map(String::as_str).collect();
    let mut state = world.lock();
    let who = apps::admit(&state, Who::read(&state, call.header("authorization"))?)?;
    match parts.as_slice() {
        ["repos", owner, name, rest @ ..] => {
            let name = format!("{owner}/{name}");
            if let Some(id) = state.moved(&name) {
                let rest = rest.iter().fold(String::new(), |path, part| path + "/" + part);
                return Err(Refusal::moved(&call.method, &format!("{}/repositories/{id}{rest}", call.base.api)));
            }
            let full = state.repo(&name)?.full_name();
            return of_repo(&mut state, call, who, full, rest);
        }
        ["repositories", id, rest @ ..] => {
            let full = state.repo_of_id(id.parse().map_err(|_| Refusal::not_found())?)?.full_name();
            return of_repo(&mut state, call, who, full, rest);
        }
        _ => {}
    }
    match (call.method.as_str(), parts.as_slice()) {
        ("GET", ["app" | "installation", ..]) | ("POST", ["app", ..]) => of_app(&mut state, call, &who, &parts),
        ("POST", ["app-manifests", code, "conversions"]) => apps::convert(&mut state, call, code),
        ("POST", ["graphql"]) => graphql::serve(&mut state, call, &who),
        ("GET", _) => around::serve(world, &state, call, &who),
        _ => Err(Refusal::not_found()),
    }
}

fn of_repo(state: &mut State, call: &Call, who: Who, repo: String, rest: &[&str]) -> Answer<Reply> {
    if rest == ["installation"] {
        return installation(&who, state, call);
    }
    if matches!(who, Who::App) {
        return Err(Refusal::new(401, "A JSON web token could not be decoded"));
    }
    let mut desk = Desk { state, call, who, repo };
    desk.require(Role::Read)?;
    in_repo(&mut desk, rest)
}

fn installation(who: &Who, state: &State, call: &Call) -> Answer<Reply> {
    if !matches!(who, Who::App) {
        return Err(Refusal::new(401, "A JSON web token could not be decoded"));
    }
    let one = apps::installations(state, call).pop().ok_or_else(Refusal::not_found)?;
    Ok(Reply::json(200, &one))
}

/// The installation of an account: it is on everything that somebody owns.
fn installed(who: &Who, state: &State, call: &Call, login: &str) -> Answer<Reply> {
    let owns = state.repos.values().any(|repo| repo.owner.eq_ignore_ascii_case(login));
    if matches!(who, Who::App) && !owns {
        return Err(Refusal::not_found());
    }
    installation(who, state, call)
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
        Some("git") => objects::serve(desk, &rest[1..]),
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
        ("GET", ["app", "hook", "deliveries", one]) => {
            let all = state.hooks.delivered();
            let found = one.parse().ok().and_then(|id: u64| all.iter().find(|delivery| delivery.id == id));
            let found = found.ok_or_else(Refusal::not_found)?;
            let payload: Value = serde_json::from_str(&found.body).unwrap_or_default();
            let mut shown = delivery(found);
            shown["url"] = json!(state.hooks.url());
            shown["request"] = json!({"headers": {"X-GitHub-Event": found.event, "X-GitHub-Delivery": found.guid}, "payload": payload});
            shown["response"] = json!({"headers": {}, "payload": ""});
            Ok(Reply::json(200, &shown))
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
