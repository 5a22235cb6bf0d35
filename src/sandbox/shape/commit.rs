//! JSON of commits, files and contents. Never reads more of git than it is handed.

use base64::Engine;
use serde_json::{Value, json};

use super::{Base, node};
use crate::sandbox::git::Entry;
use crate::sandbox::git::diff::Changed;
use crate::sandbox::git::log::Commit;
use crate::sandbox::world::{Repo, State};

fn person(of: &[String; 3]) -> Value {
    let [name, email, date] = of;
    json!({"name": name, "email": email, "date": date})
}

/// A commit as a suite carries it.
pub fn brief(commit: &Commit) -> Value {
    let short = |of: &[String; 3]| json!({"name": of[0], "email": of[1]});
    json!({
        "id": commit.sha, "tree_id": commit.tree, "message": commit.message, "timestamp": commit.author[2],
        "author": short(&commit.author), "committer": short(&commit.committer),
    })
}

/// A commit with the accounts behind it.
pub fn whole(state: &State, base: &Base, repo: &Repo, commit: &Commit) -> Value {
    let (api, sha) = (base.repo(repo), &commit.sha);
    let parents: Vec<Value> = commit
        .parents
        .iter()
        .map(|parent| {
            json!({
                "sha": parent, "url": format!("{api}/commits/{parent}"),
                "html_url": format!("{}/commit/{parent}", base.page(repo)),
            })
        })
        .collect();
    json!({
        "sha": sha,
        "node_id": format!("C_kwSB{sha}"),
        "commit": {
            "author": person(&commit.author),
            "committer": person(&commit.committer),
            "message": commit.message,
            "tree": {"sha": commit.tree, "url": format!("{api}/git/trees/{}", commit.tree)},
            "url": format!("{api}/git/commits/{sha}"),
            "comment_count": 0,
            "verification": {"verified": false, "reason": "unsigned", "signature": null, "payload": null, "verified_at": null},
        },
        "url": format!("{api}/commits/{sha}"),
        "html_url": format!("{}/commit/{sha}", base.page(repo)),
        "comments_url": format!("{api}/commits/{sha}/comments"),
        "author": super::pull::commit_user(state, base, &commit.author[1]),
        "committer": super::pull::commit_user(state, base, &commit.committer[1]),
        "parents": parents,
    })
}

/// A commit as a push carries it.
pub fn pushed(state: &State, base: &Base, repo: &Repo, commit: &Commit, files: &[Changed]) -> Value {
    let paths = |word: &str| -> Vec<&str> {
        files.iter().filter(|file| file.status == word).map(|file| file.path.as_str()).collect()
    };
    let person = |of: &[String; 3]| {
        let login = state.by_email(&of[1]).map(|account| account.login.clone());
        json!({"name": of[0], "email": of[1], "username": login})
    };
    json!({
        "id": commit.sha, "tree_id": commit.tree, "distinct": true, "message": commit.message,
        "timestamp": commit.author[2], "url": format!("{}/commit/{}", base.page(repo), commit.sha),
        "author": person(&commit.author), "committer": person(&commit.committer),
        "added": paths("added"), "removed": paths("removed"), "modified": paths("modified"),
    })
}

/// A changed file.
pub fn file(base: &Base, repo: &Repo, sha: &str, file: &Changed) -> Value {
    let page = base.page(repo);
    let mut value = json!({
        "sha": file.sha,
        "filename": file.path,
        "status": file.status,
        "additions": file.additions,
        "deletions": file.deletions,
        "changes": file.additions + file.deletions,
        "blob_url": format!("{page}/blob/{sha}/{}", file.path),
        "raw_url": format!("{page}/raw/{sha}/{}", file.path),
        "contents_url": format!("{}/contents/{}?ref={sha}", base.repo(repo), file.path),
    });
    if let Some(patch) = &file.patch {
        value["patch"] = json!(patch);
    }
    if let Some(previous) = &file.previous {
        value["previous_filename"] = json!(previous);
    }
    value
}

/// The most bytes of a file that the contents API shows.
const SHOWN: usize = 1 << 20;

/// Base64 in lines, as GitHub sends it.
pub fn lines(text: &str) -> String {
    let lines: Vec<&str> = text.as_bytes().chunks(60).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    lines.iter().fold(String::new(), |all, line| all + line + "\n")
}

/// A file or directory row of the contents API; `bytes` fills in the content.
pub fn content(base: &Base, repo: &Repo, reference: &str, entry: &Entry, bytes: Option<&[u8]>) -> Value {
    let api = base.repo(repo);
    let url = format!("{api}/contents/{}?ref={reference}", entry.path);
    let kind = if entry.kind == "dir" { "trees" } else { "blobs" };
    let git = format!("{api}/git/{kind}/{}", entry.sha);
    let page = format!("{}/blob/{reference}/{}", base.page(repo), entry.path);
    let mut value = json!({
        "name": entry.name(), "path": entry.path, "sha": entry.sha, "size": entry.size, "url": url, "html_url": page,
        "git_url": git, "type": entry.kind, "_links": {"self": url, "git": git, "html": page},
        "download_url": if entry.kind == "dir" { Value::Null } else { json!(page.replacen("/blob/", "/raw/", 1)) },
    });
    if let Some(bytes) = bytes {
        let is_shown = bytes.len() <= SHOWN;
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        value["content"] = json!(if is_shown { lines(&text) } else { String::new() });
        value["encoding"] = json!(if is_shown { "base64" } else { "none" });
    }
    value
}

/// A ref by its whole name.
pub fn reference(base: &Base, repo: &Repo, name: &str, sha: &str) -> Value {
    let api = base.repo(repo);
    json!({
        "ref": name, "node_id": format!("{}_{}", node("REF", repo.id), hex::encode(name)),
        "url": format!("{api}/git/{name}"),
        "object": {"type": "commit", "sha": sha, "url": format!("{api}/git/commits/{sha}")},
    })
}
