//! Git over HTTP: the smart protocol, by git's own programs. Never shows a repository to who may not read it.

use super::auth::Who;
use super::git::{command, feed};
use super::http::{Call, Reply};
use super::refusal::{Answer, Refusal};
use super::world::{Repo, Role, World};

/// Whether a request is git's.
pub fn fits(call: &Call) -> bool {
    let service = matches!(
        call.parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        [_, _, "info", "refs"] | [_, _, "git-upload-pack" | "git-receive-pack"]
    );
    service && call.parts.first().is_some_and(|owner| owner != "repos")
}

/// Answers git.
pub fn serve(world: &World, call: &Call) -> Answer<Reply> {
    let [owner, name, rest @ ..] = call.parts.as_slice() else { return Err(Refusal::not_found()) };
    let full = format!("{owner}/{}", name.strip_suffix(".git").unwrap_or(name));
    let advertise = rest.len() == 2;
    let service = if advertise { call.query.get("service").map_or("", String::as_str) } else { rest[0].as_str() };
    let least = match service {
        "git-upload-pack" => Role::Read,
        "git-receive-pack" => Role::Write,
        _ => return Err(Refusal::new(403, "Please upgrade your git client.")),
    };
    let (dir, login) = {
        let state = world.lock();
        if let Some(id) = state.moved(&full)
            && advertise
        {
            let now = state.repo_of_id(id)?.full_name();
            let to = format!("{}/{now}.git/info/refs?service={service}", call.base.html);
            return Ok(Reply::empty(301).with("location", &to));
        }
        let Ok(who) = Who::read(&state, call.header("authorization")) else { return Ok(challenge()) };
        match (state.repo(&full), &who) {
            (Ok(repo), who) if allowed(repo, who, least) => {
                (repo.git.dir().to_path_buf(), who.login().map(str::to_owned))
            }
            // Whether it is there is told to nobody who did not say who they are.
            (_, Who::Anonymous) => return Ok(challenge()),
            (Ok(repo), who) if who.role(repo) >= Role::Read => {
                return Err(Refusal::new(403, format!("Permission to {full}.git denied.")));
            }
            _ => return Err(Refusal::new(404, "Repository not found.")),
        }
    };
    let program = service.strip_prefix("git-").unwrap_or(service);
    let mut args = vec![program, "--stateless-rpc"];
    if advertise {
        args.push("--http-backend-info-refs");
    }
    let path = dir.to_string_lossy();
    args.push(&path);
    let mut git = command(&args);
    if let Some(version) = call.header("git-protocol") {
        git.env("GIT_PROTOCOL", version);
    }
    let body = unzip(call)?;
    let output =
        feed(git, if advertise { b"" } else { &body }).map_err(|error| Refusal::new(500, error.to_string()))?;
    if service == "git-receive-pack" && !advertise {
        let login = login.unwrap_or_default();
        world.lock().sync(&full, &login)?;
    }
    let kind = if advertise { "advertisement" } else { "result" };
    let mut bytes = Vec::new();
    // Version 2 needs no banner, and knows no pushes.
    let two = least == Role::Read && call.header("git-protocol").is_some_and(|version| version.contains("version=2"));
    if advertise && !two {
        let line = format!("# service={service}\n");
        bytes.extend_from_slice(format!("{:04x}{line}0000", line.len() + 4).as_bytes());
    }
    bytes.extend_from_slice(&output.stdout);
    Ok(Reply::text(&format!("application/x-{service}-{kind}"), bytes).with("cache-control", "no-cache"))
}

fn allowed(repo: &Repo, who: &Who, least: Role) -> bool {
    who.role(repo) >= least && !(least > Role::Read && matches!(who, Who::Anonymous))
}

fn challenge() -> Reply {
    Reply { status: 401, headers: Vec::new(), body: b"Repository not found.".to_vec() }
        .with("www-authenticate", "Basic realm=\"GitHub\"")
        .with("content-type", "text/plain")
}

/// Git compresses long requests; the system's gzip opens them.
fn unzip(call: &Call) -> Answer<Vec<u8>> {
    if call.header("content-encoding") != Some("gzip") {
        return Ok(call.body.clone());
    }
    let mut gzip = std::process::Command::new("gzip");
    gzip.arg("-dc");
    let output = feed(gzip, &call.body).map_err(|error| Refusal::new(500, error.to_string()))?;
    if output.status.success() { Ok(output.stdout) } else { Err(Refusal::new(400, "The body is no gzip")) }
}
