//! Repositories and branches of the graph. Never shows one that the asker may not see.

use serde_json::{Value, json};

use super::graph::{Out, Thing, leaf, nothing, page};
use super::{Arguments, Fault, Resolved, Run};
use crate::sandbox::refusal::Refusal;
use crate::sandbox::shape;
use crate::sandbox::world::{Pull, PullState, Role, Visibility};

/// Whether a pull is what the arguments of a list want.
fn fits(pull: &Pull, arguments: &Arguments) -> bool {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let state = state(pull);
    let states = arguments.get("states").and_then(|states| match states {
        Value::Array(all) => Some(all.clone()),
        Value::String(_) => Some(vec![states.clone()]),
        _ => None,
    });
    states.is_none_or(|states| states.iter().any(|one| one == state))
        && text("headRefName").is_none_or(|branch| pull.head == branch)
        && text("baseRefName").is_none_or(|branch| pull.base == branch)
}

/// GraphQL's word for how far a pull is.
pub(super) fn state(pull: &Pull) -> &'static str {
    match (&pull.merged, pull.state) {
        (Some(_), _) => "MERGED",
        (None, PullState::Closed) => "CLOSED",
        _ => "OPEN",
    }
}

/// A field of a repository.
pub(super) fn field(run: &Run<'_>, name: &str, field: &str, arguments: &Arguments) -> Resolved {
    let repo = run.state.repo(name)?;
    let role = run.who.role(repo);
    let number = || arguments.get("number").and_then(Value::as_u64).unwrap_or(0);
    match field {
        "id" => leaf(shape::node("R", repo.id)),
        "databaseId" => leaf(repo.id),
        "name" => leaf(repo.name.as_str()),
        "nameWithOwner" => leaf(name),
        "owner" => Ok(Out::One(Thing::Actor(repo.owner.clone()))),
        "url" => leaf(run.base.page(repo)),
        "sshUrl" => leaf(format!("git@sandbox.invalid:{name}.git")),
        "description" | "homepageUrl" | "parent" | "primaryLanguage" | "licenseInfo" | "latestRelease" => {
            leaf(Value::Null)
        }
        "isPrivate" => leaf(repo.visibility == Visibility::Private),
        "visibility" => leaf(if repo.visibility == Visibility::Private { "PRIVATE" } else { "PUBLIC" }),
        "isFork"
        | "isArchived"
        | "isEmpty"
        | "isTemplate"
        | "hasWikiEnabled"
        | "hasProjectsEnabled"
        | "hasDiscussionsEnabled"
        | "autoMergeAllowed"
        | "deleteBranchOnMerge" => leaf(false),
        "hasIssuesEnabled" | "mergeCommitAllowed" | "rebaseMergeAllowed" | "squashMergeAllowed" => leaf(true),
        "createdAt" | "updatedAt" | "pushedAt" => leaf(repo.created_at.as_str()),
        "viewerPermission" => leaf(match role {
            Role::Admin => json!("ADMIN"),
            Role::Write => json!("WRITE"),
            Role::Read => json!("READ"),
            Role::None => Value::Null,
        }),
        "viewerCanAdminister" => leaf(role >= Role::Admin),
        "viewerDefaultMergeMethod" => leaf("MERGE"),
        "defaultBranchRef" => Ok(Out::One(Thing::Branch(name.to_owned(), "main".to_owned()))),
        "ref" => {
            let wanted = arguments.get("qualifiedName").and_then(Value::as_str).unwrap_or_default();
            let branch = wanted.trim_start_matches("refs/heads/");
            let found = repo.branches.contains_key(branch);
            Ok(Out::perhaps(found.then(|| Thing::Branch(name.to_owned(), branch.to_owned()))))
        }
        "refs" => {
            let all = repo.branches.keys().map(|branch| Thing::Branch(name.to_owned(), branch.clone()));
            page("RefConnection", all.collect(), arguments)
        }
        "object" => {
            let wanted = arguments.get("oid").or_else(|| arguments.get("expression")).and_then(Value::as_str);
            let found = wanted.and_then(|wanted| repo.git.resolve(wanted));
            Ok(Out::perhaps(found.map(|sha| Thing::Commit(name.to_owned(), sha))))
        }
        "pullRequests" => {
            let mut all: Vec<&Pull> = repo.pulls.values().filter(|pull| fits(pull, arguments)).collect();
            if arguments.get("orderBy").is_some_and(|order| order["direction"] == "DESC") {
                all.reverse();
            }
            let all = all.iter().map(|pull| Thing::Pull(name.to_owned(), pull.number)).collect();
            page("PullRequestConnection", all, arguments)
        }
        "pullRequest" | "issueOrPullRequest" => {
            let kind = if field == "pullRequest" { "a PullRequest" } else { "an issue or pull request" };
            let missing = || Refusal::new(404, format!("Could not resolve to {kind} with the number of {}.", number()));
            repo.pull(number()).map_err(|_| missing())?;
            Ok(Out::One(Thing::Pull(name.to_owned(), number())))
        }
        "issue" => {
            Err(Refusal::new(404, format!("Could not resolve to an Issue with the number of {}.", number())).into())
        }
        "issues" | "milestones" | "assignableUsers" | "projects" | "projectsV2" | "forks" => nothing("EmptyConnection"),
        "labels" => nothing("LabelConnection"),
        "pullRequestTemplates" | "issueTemplates" => Ok(Out::Many(Vec::new())),
        _ => Err(Fault::Undefined),
    }
}

/// A field of a branch.
pub(super) fn branch(run: &Run<'_>, name: &str, branch: &str, field: &str, arguments: &Arguments) -> Resolved {
    let repo = run.state.repo(name)?;
    match field {
        "id" => leaf(format!("{}_{}", shape::node("REF", repo.id), hex::encode(branch))),
        "name" => leaf(branch),
        "prefix" => leaf("refs/heads/"),
        "target" => Ok(Out::perhaps(repo.branches.get(branch).map(|sha| Thing::Commit(name.to_owned(), sha.clone())))),
        "repository" => Ok(Out::One(Thing::Repo(name.to_owned()))),
        "refUpdateRule" => leaf(Value::Null),
        // What the sandbox protects is said by the rule below, as of a branch without rulesets.
        "rules" => nothing("RepositoryRuleConnection"),
        "associatedPullRequests" => {
            let of_head = repo.pulls.values().filter(|pull| pull.head == branch && fits(pull, arguments));
            let all = of_head.map(|pull| Thing::Pull(name.to_owned(), pull.number)).collect();
            page("PullRequestConnection", all, arguments)
        }
        "branchProtectionRule" => {
            let Some(rule) = repo.protections.get(branch) else { return leaf(Value::Null) };
            let checks: Vec<Value> = rule.checks.iter().map(|check| json!({"context": check, "app": null})).collect();
            Ok(Out::One(Thing::known(
                "BranchProtectionRule",
                json!({
                    "id": shape::node("BPR", repo.id), "pattern": branch, "requiredStatusCheckContexts": rule.checks,
                    "requiredStatusChecks": checks, "requiresStatusChecks": !rule.checks.is_empty(),
                    "requiresStrictStatusChecks": rule.strict, "requiresApprovingReviews": rule.reviews > 0,
                    "requiredApprovingReviewCount": rule.reviews, "isAdminEnforced": true,
                    "dismissesStaleReviews": false, "requiresCodeOwnerReviews": false,
                    "requiresConversationResolution": false, "allowsForcePushes": false,
                }),
            )))
        }
        _ => Err(Fault::Undefined),
    }
}
