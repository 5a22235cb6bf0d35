//! JSON of comments, reviews and reactions. Never changes anything.

use serde_json::{Value, json};

use super::{Base, app, login, node};
use crate::sandbox::world::{BOT, Comment, Pull, Reaction, Repo, Review, State};

/// The contents that GitHub knows.
pub const CONTENTS: [&str; 8] = ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"];

/// Counts of reactions.
pub fn rollup(url: &str, reactions: &[Reaction]) -> Value {
    let mut value = json!({"url": url, "total_count": reactions.len()});
    for content in CONTENTS {
        value[content] = json!(reactions.iter().filter(|reaction| reaction.content == content).count());
    }
    value
}

/// A reaction.
pub fn reaction(state: &State, base: &Base, reaction: &Reaction) -> Value {
    json!({
        "id": reaction.id, "node_id": node("REA", reaction.id), "user": login(state, base, &reaction.login),
        "content": reaction.content, "created_at": reaction.at,
    })
}

/// A comment.
pub fn comment(state: &State, base: &Base, repo: &Repo, comment: &Comment) -> Value {
    let api = base.repo(repo);
    let url = format!("{api}/issues/comments/{}", comment.id);
    json!({
        "url": url,
        "html_url": format!("{}/pull/{}#issuecomment-{}", base.page(repo), comment.number, comment.id),
        "issue_url": format!("{api}/issues/{}", comment.number),
        "id": comment.id,
        "node_id": node("IC", comment.id),
        "user": login(state, base, &comment.author),
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
        "author_association": super::pull::author_association(repo, &comment.author),
        "body": comment.body,
        "reactions": rollup(&format!("{url}/reactions"), &comment.reactions),
        "performed_via_github_app": if comment.author == BOT { app(state, base) } else { Value::Null },
    })
}

/// A review.
pub fn review(state: &State, base: &Base, repo: &Repo, pull: &Pull, review: &Review) -> Value {
    let page = format!("{}/pull/{}#pullrequestreview-{}", base.page(repo), pull.number, review.id);
    let url = format!("{}/pulls/{}", base.repo(repo), pull.number);
    json!({
        "id": review.id,
        "node_id": node("PRR", review.id),
        "user": login(state, base, &review.author),
        "body": review.body,
        "state": review.state,
        "html_url": page,
        "pull_request_url": url,
        "author_association": super::pull::author_association(repo, &review.author),
        "_links": {"html": {"href": page}, "pull_request": {"href": url}},
        "submitted_at": review.at,
        "updated_at": review.at,
        "commit_id": review.sha,
    })
}
