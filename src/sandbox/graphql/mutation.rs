//! The writes of the graph: the same deeds as REST's, by node id. No rule of the forge stands here.

use serde_json::{Value, json};

use super::graph::{Out, Thing, node};
use super::{Fault, Resolved, Run};
use crate::sandbox::act::pull::{MergeMethod, NewPull};
use crate::sandbox::act::talk::Verdict;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::world::{PullState, Role};

/// What a mutation gives: its things by name, beside the client's own mark.
fn payload(input: &Value, things: Vec<(&'static str, Option<Thing>)>) -> Resolved {
    let values = json!({"clientMutationId": input["clientMutationId"]});
    Ok(Out::One(Thing::Known("Payload", values.as_object().cloned().unwrap_or_default(), things)))
}

fn text<'v>(input: &'v Value, name: &str) -> &'v str {
    input[name].as_str().unwrap_or_default()
}

/// The pull that a field of the input names, to be changed by who has this role or made it.
fn pull(run: &Run<'_>, input: &Value, key: &str, least: Role) -> Answer<(String, u64)> {
    let id = text(input, key);
    match node(run, id)? {
        Thing::Pull(name, number) => {
            let repo = run.state.repo(&name)?;
            let own = least < Role::Admin && repo.pull(number)?.author == run.login;
            run.who.require(repo, if own { Role::Read } else { least })?;
            Ok((name, number))
        }
        _ => Err(Refusal::new(404, format!("Could not resolve to PullRequest node with the global id of '{id}'."))),
    }
}

/// Performs one.
pub(super) fn perform(run: &mut Run<'_>, name: &str, input: &Value) -> Resolved {
    match name {
        "minimizeComment" | "unminimizeComment" => minimize(run, name, input),
        "addComment" | "updateIssueComment" | "deleteIssueComment" => comment(run, name, input),
        "addPullRequestReview" | "dismissPullRequestReview" => review(run, name, input),
        "createPullRequest" => create(run, input),
        "mergePullRequest" => merge(run, input),
        "updatePullRequest" => {
            let (repo, number) = pull(run, input, "pullRequestId", Role::Write)?;
            let mut change = input.clone();
            change["base"] = input["baseRefName"].clone();
            run.state.edit_pull(&repo, number, &run.login, &change)?;
            match input["state"].as_str() {
                Some("CLOSED") => run.state.close(&repo, number, &run.login)?,
                Some("OPEN") => run.state.reopen(&repo, number, &run.login)?,
                _ => {}
            }
            payload(input, vec![("pullRequest", Some(Thing::Pull(repo, number)))])
        }
        "closePullRequest" | "reopenPullRequest" | "markPullRequestReadyForReview" | "convertPullRequestToDraft" => {
            let (repo, number) = pull(run, input, "pullRequestId", Role::Write)?;
            match name {
                "closePullRequest" => run.state.close(&repo, number, &run.login)?,
                "reopenPullRequest" => run.state.reopen(&repo, number, &run.login)?,
                "convertPullRequestToDraft" => run.state.set_draft(&repo, number, &run.login, PullState::Draft)?,
                _ => run.state.set_draft(&repo, number, &run.login, PullState::Open)?,
            }
            payload(input, vec![("pullRequest", Some(Thing::Pull(repo, number)))])
        }
        "addReaction" => react(run, input),
        "updatePullRequestBranch" => {
            let (repo, number) = pull(run, input, "pullRequestId", Role::Write)?;
            run.state.update_branch(&repo, number, &run.login, input["expectedHeadOid"].as_str())?;
            payload(input, vec![("pullRequest", Some(Thing::Pull(repo, number)))])
        }
        _ => Err(Fault::Undefined),
    }
}

fn minimize(run: &mut Run<'_>, name: &str, input: &Value) -> Resolved {
    let id = text(input, "subjectId");
    let Thing::Comment(repo, _) = node(run, id)? else {
        return Err(
            Refusal::new(404, format!("Could not resolve to Minimizable node with the global id of '{id}'.")).into()
        );
    };
    run.who.require(run.state.repo(&repo)?, Role::Write)?;
    if name == "unminimizeComment" {
        run.state.unminimize(id)?;
        return payload(input, vec![("unminimizedComment", Some(node(run, id)?))]);
    }
    run.state.minimize(id, text(input, "classifier"))?;
    payload(input, vec![("minimizedComment", Some(node(run, id)?))])
}

fn comment(run: &mut Run<'_>, name: &str, input: &Value) -> Resolved {
    if name == "addComment" {
        let (repo, number) = pull(run, input, "subjectId", Role::Read)?;
        let id = run.state.comment(&repo, number, &run.login, text(input, "body"))?;
        let edge = Thing::Edge(format!("cursor:{id}"), Box::new(Thing::Comment(repo.clone(), id)));
        return payload(input, vec![("commentEdge", Some(edge)), ("subject", Some(Thing::Pull(repo, number)))]);
    }
    let id = text(input, "id");
    let Thing::Comment(repo, comment) = node(run, id)? else {
        return Err(
            Refusal::new(404, format!("Could not resolve to IssueComment node with the global id of '{id}'.")).into()
        );
    };
    let found = run.state.repo(&repo)?;
    let own = found.comment(comment)?.author == run.login;
    run.who.require(found, if own { Role::Read } else { Role::Write })?;
    if name == "deleteIssueComment" {
        run.state.delete_comment(&repo, comment, &run.login)?;
        return payload(input, Vec::new());
    }
    run.state.edit_comment(&repo, comment, &run.login, text(input, "body"))?;
    payload(input, vec![("issueComment", Some(Thing::Comment(repo, comment)))])
}

fn review(run: &mut Run<'_>, name: &str, input: &Value) -> Resolved {
    if name == "dismissPullRequestReview" {
        let id = text(input, "pullRequestReviewId");
        let Thing::Review(repo, number, review) = node(run, id)? else {
            return Err(Refusal::new(
                404,
                format!("Could not resolve to PullRequestReview node with the global id of '{id}'."),
            )
            .into());
        };
        run.who.require(run.state.repo(&repo)?, Role::Write)?;
        run.state.dismiss(&repo, number, review, &run.login)?;
        return payload(input, vec![("pullRequestReview", Some(Thing::Review(repo, number, review)))]);
    }
    let (repo, number) = pull(run, input, "pullRequestId", Role::Read)?;
    let verdict = match text(input, "event") {
        "APPROVE" => Verdict::Approve,
        "REQUEST_CHANGES" => Verdict::RequestChanges,
        "COMMENT" => Verdict::Comment,
        _ => Verdict::Pending,
    };
    let id = run.state.review(&repo, number, &run.login, verdict, text(input, "body"))?;
    payload(input, vec![("pullRequestReview", Some(Thing::Review(repo, number, id)))])
}

fn create(run: &mut Run<'_>, input: &Value) -> Resolved {
    let id = text(input, "repositoryId");
    let Thing::Repo(repo) = node(run, id)? else {
        return Err(
            Refusal::new(404, format!("Could not resolve to Repository node with the global id of '{id}'.")).into()
        );
    };
    let new = NewPull {
        head: text(input, "headRefName").trim_start_matches("refs/heads/"),
        base: text(input, "baseRefName").trim_start_matches("refs/heads/"),
        title: text(input, "title"),
        body: input["body"].as_str(),
        state: if input["draft"] == true { PullState::Draft } else { PullState::Open },
    };
    let number = run.state.open_pull(&repo, &run.login, &new)?;
    payload(input, vec![("pullRequest", Some(Thing::Pull(repo, number)))])
}

fn merge(run: &mut Run<'_>, input: &Value) -> Resolved {
    let id = text(input, "pullRequestId");
    let Thing::Pull(repo, number) = node(run, id)? else {
        return Err(
            Refusal::new(404, format!("Could not resolve to PullRequest node with the global id of '{id}'.")).into()
        );
    };
    run.who.require(run.state.repo(&repo)?, Role::Write)?;
    let method = match text(input, "mergeMethod") {
        "SQUASH" => MergeMethod::Squash,
        "REBASE" => MergeMethod::Rebase,
        _ => MergeMethod::Merge,
    };
    run.state.merge(&repo, number, &run.login, method, input["expectedHeadOid"].as_str())?;
    payload(input, vec![("pullRequest", Some(Thing::Pull(repo, number)))])
}

fn react(run: &mut Run<'_>, input: &Value) -> Resolved {
    let id = text(input, "subjectId");
    let Thing::Comment(repo, comment) = node(run, id)? else {
        return Err(
            Refusal::new(404, format!("Could not resolve to Reactable node with the global id of '{id}'.")).into()
        );
    };
    let content = match text(input, "content") {
        "THUMBS_UP" => "+1".to_owned(),
        "THUMBS_DOWN" => "-1".to_owned(),
        other => other.to_lowercase(),
    };
    let (reaction, _) = run.state.react(&repo, comment, &run.login, &content)?;
    let values = json!({"content": text(input, "content"), "id": crate::sandbox::shape::node("REA", reaction.id)});
    payload(
        input,
        vec![("reaction", Some(Thing::known("Reaction", values))), ("subject", Some(Thing::Comment(repo, comment)))],
    )
}
