//! The sandbox's pages: repositories, pulls, files, for a person who tries the product. They work without JavaScript.
//! Never offers a deed that the API would refuse to the same person.

use askama::Template;

use super::act::pull::MergeMethod;
use super::act::talk::Verdict;
use super::http::{Call, Reply};
use super::refusal::{Answer, Refusal};
use super::world::{PullState, Role, State, World};

mod apps;
mod markdown;
mod talk;
mod view;

use view::{FilesPage, HomePage, PullPage, RepoPage, RunPage, Shell, TextPage};

const API_WORDS: [&str; 14] = [
    "repositories",
    "meta",
    "zen",
    "app-manifests",
    "repos",
    "user",
    "users",
    "app",
    "apps",
    "orgs",
    "installation",
    "rate_limit",
    "graphql",
    "search",
];

/// Whether a call wants a page.
pub fn fits(call: &Call) -> bool {
    let plain = !call.base.api.ends_with("/api/v3") && !call.base.api.ends_with("/api");
    match call.parts.first() {
        None => plain && call.header("accept").is_some_and(|kinds| kinds.contains("text/html")),
        Some(_) if apps::fits(&call.parts) => plain,
        Some(first) => plain && !API_WORDS.contains(&first.as_str()),
    }
}

/// Answers with a page.
pub fn serve(world: &World, call: &Call) -> Reply {
    let mut state = world.lock();
    let shell = Shell::new(&state, call);
    let parts: Vec<&str> = call.parts.iter().map(String::as_str).collect();
    let answer = match call.method.as_str() {
        _ if apps::fits(&call.parts) => apps::serve(&mut state, call, &shell, &parts),
        "POST" => post(&mut state, call, &shell, &parts),
        _ => get(&mut state, call, &shell, &parts),
    };
    answer.unwrap_or_else(|refusal| {
        let page = TextPage { shell, title: format!("{} {}", refusal.status, refusal.message), html: String::new() };
        let mut reply = html(&page);
        reply.status = refusal.status;
        reply
    })
}

fn html(page: &impl Template) -> Reply {
    match page.render() {
        Ok(text) => Reply::text("text/html; charset=utf-8", text).with("cache-control", "no-store").with(
            "content-security-policy",
            "default-src 'none'; img-src 'self' https: data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
             connect-src 'self'; form-action 'self'; base-uri 'none'",
        ),
        Err(error) => Reply::from(Refusal::new(500, error.to_string())),
    }
}

fn get(state: &mut State, call: &Call, shell: &Shell, parts: &[&str]) -> Answer<Reply> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| Refusal::not_found());
    match parts {
        [] => Ok(html(&HomePage::new(state, shell))),
        ["avatars", id] => avatar(state, number(id)?),
        [owner, name, rest @ ..] => {
            let full = format!("{owner}/{name}");
            if state.repo(&full)?.role(&shell.viewer) < Role::Read {
                return Err(Refusal::not_found());
            }
            match rest {
                [] => Ok(html(&RepoPage::new(
                    state,
                    shell,
                    &full,
                    call.query.get("state").map_or("open", String::as_str),
                )?)),
                ["pull", n, "version"] => {
                    state.repo(&full)?.pull(number(n)?)?;
                    Ok(Reply::text("text/plain", state.revision.to_string()).with("cache-control", "no-store"))
                }
                ["pull", n, "files"] => Ok(html(&FilesPage::new(state, shell, &full, number(n)?)?)),
                ["pull", n] => Ok(html(&PullPage::new(state, shell, &full, number(n)?)?)),
                ["runs", id] => Ok(html(&RunPage::new(state, shell, &full, number(id)?)?)),
                ["blob", branch, path @ ..] => {
                    let git = &state.repo(&full)?.git;
                    let sha = git.resolve(branch).ok_or_else(Refusal::not_found)?;
                    let bytes = git.read(&sha, &path.join("/")).ok_or_else(Refusal::not_found)?;
                    let text = view::escape(&String::from_utf8_lossy(&bytes));
                    let title = format!("{full} / {}", path.join("/"));
                    Ok(html(&TextPage { shell: shell.clone(), title, html: format!("<pre>{text}</pre>") }))
                }
                _ => Err(Refusal::not_found()),
            }
        }
        _ => Err(Refusal::not_found()),
    }
}

fn avatar(state: &State, id: u64) -> Answer<Reply> {
    let account = state.accounts.values().find(|account| account.id == id).ok_or_else(Refusal::not_found)?;
    let letter = view::escape(&account.login.chars().take(1).collect::<String>().to_uppercase());
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 40 40\"><rect width=\"40\" height=\"40\" \
         fill=\"hsl({} 45% 45%)\"/><text x=\"20\" y=\"27\" font-size=\"20\" font-family=\"sans-serif\" fill=\"#fff\" \
         text-anchor=\"middle\">{letter}</text></svg>",
        view::hue(&account.login)
    );
    Ok(Reply::text("image/svg+xml", svg))
}

fn back(to: &str) -> Reply {
    Reply::empty(303).with("location", to)
}

fn post(state: &mut State, call: &Call, shell: &Shell, parts: &[&str]) -> Answer<Reply> {
    let form = call.form();
    let field = |key: &str| form.get(key).map_or("", String::as_str);
    if parts == ["switch"] {
        let login = state.account(field("login"))?.login.clone();
        let to = Some(field("back")).filter(|to| to.starts_with('/') && !to.starts_with("//")).unwrap_or("/");
        return Ok(back(to).with("set-cookie", &format!("viewer={login}; Path=/; HttpOnly; SameSite=Strict")));
    }
    let [owner, name, kind, id, deed] = parts else { return Err(Refusal::not_found()) };
    let full = format!("{owner}/{name}");
    let id = id.parse::<u64>().map_err(|_| Refusal::not_found())?;
    let role = state.repo(&full)?.role(&shell.viewer);
    if role < Role::Read {
        return Err(Refusal::not_found());
    }
    if *kind == "runs" && *deed == "rerequest" && role >= Role::Write {
        state.rerequest_run(&full, id, &shell.viewer)?;
        return Ok(back(&format!("/{full}/runs/{id}")));
    }
    // Line ends of a form are CRLF; a comment's are not.
    let body = field("body").replace("\r\n", "\n");
    match act(state, &full, id, &shell.viewer, deed, &body) {
        Ok(()) => Ok(back(&format!("/{full}/pull/{id}#end"))),
        Err(refusal) => {
            let mut page = PullPage::new(state, shell, &full, id)?;
            page.flash = view::words(&refusal);
            page.draft_text = body;
            let mut reply = html(&page);
            reply.status = refusal.status;
            Ok(reply)
        }
    }
}

fn act(state: &mut State, repo: &str, number: u64, viewer: &str, deed: &str, body: &str) -> Answer<()> {
    let found = state.repo(repo)?;
    let may = found.role(viewer) >= Role::Write || found.pull(number)?.author == viewer;
    let writes = found.role(viewer) >= Role::Write;
    let refuse = || Err(Refusal::new(403, "You need write access to do this."));
    match deed {
        "comment" => state.comment(repo, number, viewer, body).map(drop),
        "approve" => state.review(repo, number, viewer, Verdict::Approve, body).map(drop),
        "reject" => state.review(repo, number, viewer, Verdict::RequestChanges, body).map(drop),
        "merge" if writes => state.merge(repo, number, viewer, MergeMethod::Merge, None).map(drop),
        "close" | "reopen" | "ready" | "draft" if may => {
            if !body.trim().is_empty() {
                state.comment(repo, number, viewer, body)?;
            }
            match deed {
                "close" => state.close(repo, number, viewer),
                "reopen" => state.reopen(repo, number, viewer),
                "ready" => state.set_draft(repo, number, viewer, PullState::Open),
                _ => state.set_draft(repo, number, viewer, PullState::Draft),
            }
        }
        "merge" | "close" | "reopen" | "ready" | "draft" => refuse(),
        _ => Err(Refusal::not_found()),
    }
}
