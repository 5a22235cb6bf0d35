//! Pulls, comments and reviews of the graph. Never decides what may be merged.

use serde_json::{Value, json};

use super::graph::{Out, Thing, leaf, nothing, page};
use super::{Arguments, Fault, Resolved, Run, checks, repo};
use crate::sandbox::refusal::Refusal;
use crate::sandbox::shape;
use crate::sandbox::shape::pull::author_association;
use crate::sandbox::shape::talk::CONTENTS;
use crate::sandbox::world::{Origin, Pull, PullState, Reaction, Repo, Review};

/// The fields of a pull, as introspection names them. There is no merge queue here, so its two fields are missing.
pub(super) const FIELDS: &[&str] = &[
    "additions",
    "assignees",
    "author",
    "authorAssociation",
    "autoMergeRequest",
    "baseRef",
    "baseRefName",
    "baseRefOid",
    "baseRepository",
    "body",
    "bodyText",
    "changedFiles",
    "closed",
    "closedAt",
    "closingIssuesReferences",
    "comments",
    "commits",
    "createdAt",
    "databaseId",
    "deletions",
    "files",
    "fullDatabaseId",
    "headRef",
    "headRefName",
    "headRefOid",
    "headRepository",
    "headRepositoryOwner",
    "id",
    "isCrossRepository",
    "isDraft",
    "labels",
    "latestOpinionatedReviews",
    "latestReviews",
    "locked",
    "maintainerCanModify",
    "mergeCommit",
    "mergeStateStatus",
    "mergeable",
    "merged",
    "mergedAt",
    "mergedBy",
    "milestone",
    "number",
    "permalink",
    "potentialMergeCommit",
    "projectCards",
    "projectItems",
    "reactionGroups",
    "repository",
    "reviewDecision",
    "reviewRequests",
    "reviewThreads",
    "reviews",
    "state",
    "statusCheckRollup",
    "title",
    "updatedAt",
    "url",
    "viewerCanUpdate",
    "viewerDidAuthor",
];

/// A field of a pull.
pub(super) fn field(run: &mut Run<'_>, at: (&str, u64), field: &str, arguments: &Arguments) -> Resolved {
    let (name, number) = at;
    if matches!(field, "mergeable" | "mergeStateStatus") {
        let depth = run.state.depth(name, number)?;
        return leaf(match (field, depth.mergeable) {
            ("mergeable", Some(true)) => json!("MERGEABLE"),
            ("mergeable", Some(false)) => json!("CONFLICTING"),
            ("mergeable", None) => json!("UNKNOWN"),
            _ => json!(depth.mergeable_state.to_uppercase()),
        });
    }
    let of = run.state.repo(name)?;
    let pull = of.pull(number)?;
    if let Some(resolved) = plain(run, of, pull, field) {
        return resolved;
    }
    if let Some(resolved) = people(run, of, pull, (field, arguments)) {
        return resolved;
    }
    tree(of, pull, field, arguments)
}

/// What is a value.
fn plain(run: &Run<'_>, of: &Repo, pull: &Pull, field: &str) -> Option<Resolved> {
    let page = format!("{}/pull/{}", run.base.page(of), pull.number);
    Some(leaf(match field {
        "id" => json!(shape::node("PR", pull.id)),
        "databaseId" => json!(pull.id),
        "fullDatabaseId" => json!(pull.id.to_string()),
        "number" => json!(pull.number),
        "title" => json!(pull.title),
        "state" => json!(repo::state(pull)),
        "url" | "permalink" => json!(page),
        // Null in REST, empty here.
        "body" | "bodyText" => json!(pull.body.as_deref().unwrap_or_default()),
        "isDraft" => json!(pull.state == PullState::Draft),
        "closed" => json!(!pull.is_open()),
        "merged" => json!(pull.merged.is_some()),
        "mergedAt" => json!(pull.merged.as_ref().map(|merge| &merge.at)),
        "closedAt" => json!(pull.closed_at),
        "createdAt" => json!(pull.created_at),
        "updatedAt" => json!(pull.updated_at),
        "baseRefName" => json!(pull.base),
        "baseRefOid" => json!(pull.base_sha),
        "headRefName" => json!(pull.head),
        "headRefOid" => json!(pull.head_sha),
        "isCrossRepository" => json!(of.forks.contains_key(&pull.head)),
        "locked" | "maintainerCanModify" | "viewerCanUpdate" => json!(false),
        "viewerDidAuthor" => json!(pull.author == run.login),
        "authorAssociation" => author_association(of, &pull.author),
        "milestone" | "autoMergeRequest" => Value::Null,
        "reviewDecision" => decision(of, pull),
        "reactionGroups" => groups(&[]),
        _ => return None,
    }))
}

/// Nothing unless reviews are required.
fn decision(of: &Repo, pull: &Pull) -> Value {
    let Some(rule) = of.protections.get(&pull.base).filter(|rule| rule.reviews > 0) else { return Value::Null };
    let newest = opinions(pull);
    if newest.iter().any(|review| review.state == "CHANGES_REQUESTED") {
        return json!("CHANGES_REQUESTED");
    }
    let approvals = newest.iter().filter(|review| review.state == "APPROVED").count();
    json!(if approvals >= rule.reviews as usize { "APPROVED" } else { "REVIEW_REQUIRED" })
}

/// Each reviewer's newest verdict that still counts.
fn opinions(pull: &Pull) -> Vec<&Review> {
    let mut newest: Vec<&Review> = Vec::new();
    for review in pull.reviews.iter().rev() {
        let counts = matches!(review.state.as_str(), "APPROVED" | "CHANGES_REQUESTED" | "DISMISSED");
        if counts && newest.iter().all(|other| other.author != review.author) {
            newest.push(review);
        }
    }
    newest.reverse();
    newest
}

/// What people did and said.
fn people(run: &Run<'_>, of: &Repo, pull: &Pull, (field, arguments): (&str, &Arguments)) -> Option<Resolved> {
    let name = of.full_name();
    let of_reviews = |reviews: Vec<&Review>| {
        let all = reviews.into_iter().map(|review| Thing::Review(name.clone(), pull.number, review.id)).collect();
        page("PullRequestReviewConnection", all, arguments)
    };
    let sent = || pull.reviews.iter().filter(|review| review.state != "PENDING");
    Some(match field {
        "author" => Ok(Out::One(Thing::Actor(pull.author.clone()))),
        "mergedBy" => Ok(Out::perhaps(pull.merged.as_ref().map(|merge| Thing::Actor(merge.by.clone())))),
        "comments" => {
            let own = of.comments.iter().filter(|comment| comment.number == pull.number);
            page("IssueCommentConnection", own.map(|one| Thing::Comment(name.clone(), one.id)).collect(), arguments)
        }
        "reviews" => {
            let states = arguments.get("states").and_then(Value::as_array);
            let author = arguments.get("author").and_then(Value::as_str);
            let fitting = sent().filter(|review| {
                states.is_none_or(|states| states.iter().any(|state| *state == review.state))
                    && author.is_none_or(|author| review.author.eq_ignore_ascii_case(author))
            });
            of_reviews(fitting.collect())
        }
        "latestOpinionatedReviews" => of_reviews(opinions(pull)),
        "latestReviews" => {
            let mut newest: Vec<&Review> = Vec::new();
            for review in sent().rev() {
                if newest.iter().all(|other| other.author != review.author) {
                    newest.push(review);
                }
            }
            of_reviews(newest)
        }
        "labels" => {
            let one = |(at, label): (usize, &String)| {
                let id = shape::node("LA", pull.id * 100 + at as u64);
                Thing::known("Label", json!({"id": id, "name": label, "color": "ededed", "description": null}))
            };
            page("LabelConnection", pull.labels.iter().enumerate().map(one).collect(), arguments)
        }
        "headRepositoryOwner" => Ok(Out::perhaps(match of.forks.get(&pull.head) {
            None => Some(Thing::Actor(of.owner.clone())),
            Some(Origin::Gone) => None,
            Some(Origin::Fork(_, owner)) => {
                run.state.account(owner).ok().map(|found| Thing::Actor(found.login.clone()))
            }
        })),
        "reviewRequests"
        | "assignees"
        | "projectCards"
        | "projectItems"
        | "closingIssuesReferences"
        | "reviewThreads" => nothing("EmptyConnection"),
        _ => return None,
    })
}

/// What git knows of it.
fn tree(of: &Repo, pull: &Pull, field: &str, arguments: &Arguments) -> Resolved {
    let name = of.full_name();
    let from = || of.git.merge_base(&pull.base_sha, &pull.head_sha).unwrap_or_else(|| pull.base_sha.clone());
    let branch = |branch: &String| {
        let there = of.branches.contains_key(branch);
        Ok(Out::perhaps(there.then(|| Thing::Branch(name.clone(), branch.clone()))))
    };
    match field {
        "additions" | "deletions" | "changedFiles" | "files" => {
            let files = of.git.changed(&from(), &pull.head_sha)?;
            match field {
                "additions" => leaf(files.iter().map(|file| file.additions).sum::<u64>()),
                "deletions" => leaf(files.iter().map(|file| file.deletions).sum::<u64>()),
                "changedFiles" => leaf(files.len()),
                _ => {
                    let one = |file: &crate::sandbox::git::diff::Changed| {
                        let kind =
                            if file.status == "removed" { "DELETED".to_owned() } else { file.status.to_uppercase() };
                        Thing::known(
                            "PullRequestChangedFile",
                            json!({"path": file.path, "additions": file.additions, "deletions": file.deletions, "changeType": kind}),
                        )
                    };
                    page("PullRequestChangedFileConnection", files.iter().map(one).collect(), arguments)
                }
            }
        }
        "commits" => {
            let commits = of.git.between(&from(), &pull.head_sha)?;
            let all = commits.into_iter().map(|commit| Thing::PullCommit(name.clone(), commit.sha)).collect();
            page("PullRequestCommitConnection", all, arguments)
        }
        "baseRef" => branch(&pull.base),
        "headRef" => branch(&pull.head),
        "repository" | "baseRepository" => Ok(Out::One(Thing::Repo(name))),
        "headRepository" => Ok(Out::perhaps((!of.forks.contains_key(&pull.head)).then_some(Thing::Repo(name)))),
        "mergeCommit" => Ok(Out::perhaps(pull.merged.as_ref().map(|merge| Thing::Commit(name, merge.sha.clone())))),
        "potentialMergeCommit" => {
            let test = pull.test_merge.as_ref().filter(|_| pull.is_open());
            Ok(Out::perhaps(test.map(|sha| Thing::Commit(name, sha.clone()))))
        }
        "statusCheckRollup" => Ok(Out::perhaps(checks::rollup_of(of, &pull.head_sha))),
        _ => Err(Fault::Undefined),
    }
}

fn groups(reactions: &[Reaction]) -> Value {
    let word = |content: &str| match content {
        "+1" => "THUMBS_UP".to_owned(),
        "-1" => "THUMBS_DOWN".to_owned(),
        other => other.to_uppercase(),
    };
    let one = |content: &&str| {
        let count = reactions.iter().filter(|reaction| reaction.content == **content).count();
        json!({"content": word(content), "users": {"totalCount": count}, "reactors": {"totalCount": count}})
    };
    CONTENTS.iter().map(one).collect()
}

/// A field of a comment.
pub(super) fn comment(run: &Run<'_>, name: &str, id: u64, field: &str) -> Resolved {
    let of = run.state.repo(name)?;
    let one = of.comment(id)?;
    match field {
        "id" => leaf(shape::node("IC", one.id)),
        "databaseId" => leaf(one.id),
        "fullDatabaseId" => leaf(one.id.to_string()),
        "author" => Ok(Out::One(Thing::Actor(one.author.clone()))),
        "authorAssociation" => leaf(author_association(of, &one.author)),
        "body" | "bodyText" => leaf(one.body.as_str()),
        "createdAt" | "publishedAt" => leaf(one.created_at.as_str()),
        "updatedAt" => leaf(one.updated_at.as_str()),
        "includesCreatedEdit" => leaf(one.updated_at != one.created_at),
        "isMinimized" => leaf(one.minimized.is_some()),
        "minimizedReason" => leaf(one.minimized.as_deref().map_or_else(|| json!(""), |why| json!(why))),
        "reactionGroups" => leaf(groups(&one.reactions)),
        "url" => leaf(format!("{}/pull/{}#issuecomment-{}", run.base.page(of), one.number, one.id)),
        "viewerDidAuthor" => leaf(one.author == run.login),
        "viewerCanMinimize" | "viewerCanUpdate" | "viewerCanDelete" => leaf(true),
        "pullRequest" | "issue" => Ok(Out::One(Thing::Pull(name.to_owned(), one.number))),
        "repository" => Ok(Out::One(Thing::Repo(name.to_owned()))),
        _ => Err(Fault::Undefined),
    }
}

/// A field of a review.
pub(super) fn review(run: &Run<'_>, (name, number): (&str, u64), id: u64, field: &str) -> Resolved {
    let of = run.state.repo(name)?;
    let pull = of.pull(number)?;
    let one = pull.reviews.iter().find(|review| review.id == id).ok_or_else(Refusal::not_found)?;
    match field {
        "id" => leaf(shape::node("PRR", one.id)),
        "databaseId" => leaf(one.id),
        "fullDatabaseId" => leaf(one.id.to_string()),
        "author" => Ok(Out::One(Thing::Actor(one.author.clone()))),
        "authorAssociation" => leaf(author_association(of, &one.author)),
        "authorCanPushToRepository" => leaf(of.role(&one.author) >= crate::sandbox::world::Role::Write),
        "body" | "bodyText" => leaf(one.body.as_str()),
        "state" => leaf(one.state.as_str()),
        "submittedAt" | "createdAt" | "updatedAt" => leaf(one.at.as_str()),
        "includesCreatedEdit" => leaf(false),
        "reactionGroups" => leaf(groups(&[])),
        "url" => leaf(format!("{}/pull/{number}#pullrequestreview-{id}", run.base.page(of))),
        "commit" => Ok(Out::One(Thing::Commit(name.to_owned(), one.sha.clone()))),
        "pullRequest" => Ok(Out::One(Thing::Pull(name.to_owned(), number))),
        "comments" => nothing("PullRequestReviewCommentConnection"),
        _ => Err(Fault::Undefined),
    }
}
