//! GraphQL as `gh` and others ask it: aliases, fragments, pages, mutations, and GitHub's ways to refuse.

use serde_json::{Value, json};
use tidegate::sandbox::{Protection, Verdict};

use super::{REPO, Stage};

async fn ask(stage: &Stage, token: &str, query: &str, variables: Value) -> Value {
    let (status, said) =
        stage.raw("POST", "/api/graphql", token, &json!({"query": query, "variables": variables})).await;
    assert_eq!(status, 200, "{said}");
    said
}

const VIEW: &str = r#"
fragment comment on IssueComment { id author { login ...on User { id name } } body isMinimized minimizedReason
  reactionGroups { content users { totalCount } } url viewerDidAuthor }
query PullRequestByNumber($owner: String!, $repo: String!, $pr_number: Int!) {
  repository(owner: $owner, name: $repo) {
    pullRequest(number: $pr_number) {
      id url number title state body isDraft mergeable additions deletions baseRefName headRefName
      author { login ...on User { id name } }
      commits { totalCount }
      headRepository { id name } headRepositoryOwner { id login ...on User { name } } isCrossRepository
      reviews(first: 100) { nodes { author { login } state body commit { oid } } pageInfo { hasNextPage endCursor } totalCount }
      projectCards(first: 100) { nodes { id } totalCount }
      comments(first: 1) { nodes { ...comment } pageInfo { hasNextPage endCursor } totalCount }
      statusCheckRollup: commits(last: 1) { nodes { commit { statusCheckRollup { contexts(first: 100) { nodes {
        __typename
        ...on StatusContext { context state targetUrl createdAt }
        ...on CheckRun { name status conclusion startedAt completedAt detailsUrl checkSuite { workflowRun { workflow { name } } } }
      } pageInfo { hasNextPage } } } } } }
      reviewDecision mergeStateStatus labels(first: 10) { nodes { name } }
    }
  }
}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_is_viewed_as_gh_views_it() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let (mira, app) = (stage.sandbox.token_for("mira"), stage.installation_token().await);
    for text in ["one", "two"] {
        stage.raw("POST", &format!("/repos/{REPO}/issues/{number}/comments"), &app, &json!({"body": text})).await;
    }
    let variables = json!({"owner": "acme", "repo": "infra", "pr_number": number});
    let view = async || ask(&stage, &mira, VIEW, variables.clone()).await["data"]["repository"]["pullRequest"].clone();
    let bare = view().await;
    assert_eq!((&bare["mergeable"], &bare["body"]), (&json!("UNKNOWN"), &json!("")), "5, 32");
    assert_eq!(
        (&bare["reviewDecision"], &bare["statusCheckRollup"]["nodes"][0]["commit"]["statusCheckRollup"]),
        (&Value::Null, &Value::Null),
        "37"
    );
    let run = json!({"name": "tidegate/plan", "head_sha": head, "conclusion": "success"});
    stage.raw("POST", &format!("/repos/{REPO}/check-runs"), &app, &run).await;
    let status = json!({"state": "pending", "context": "ci"});
    stage.raw("POST", &format!("/repos/{REPO}/statuses/{head}"), &mira, &status).await;
    stage.sandbox.review(REPO, number, "lin", Verdict::Approve, "").unwrap();
    let rule = Protection { checks: vec!["ci".into()], reviews: 1, strict: false };
    stage.sandbox.set_protection(REPO, "main", rule).unwrap();
    let full = view().await;
    assert_eq!((&full["mergeable"], &full["mergeStateStatus"]), (&json!("MERGEABLE"), &json!("BLOCKED")));
    assert_eq!((&full["reviewDecision"], &full["commits"]["totalCount"]), (&json!("APPROVED"), &json!(1)));
    assert_eq!(
        full["comments"]["nodes"][0]["author"],
        json!({"login": "tidegate"}),
        "21: a bot is no user and has no brackets"
    );
    assert_eq!(
        (&full["comments"]["totalCount"], &full["comments"]["pageInfo"]["hasNextPage"]),
        (&json!(2), &json!(true))
    );
    let contexts = &full["statusCheckRollup"]["nodes"][0]["commit"]["statusCheckRollup"]["contexts"]["nodes"];
    assert_eq!((&contexts[0]["__typename"], &contexts[0]["conclusion"]), (&json!("CheckRun"), &json!("SUCCESS")));
    assert_eq!((&contexts[1]["__typename"], &contexts[1]["state"]), (&json!("StatusContext"), &json!("PENDING")));
    // The next page, by the node.
    let more = "query($id: ID!, $after: String) { node(id: $id) { ...on PullRequest { comments(first: 100, after: $after) { nodes { body } } } } }";
    let variables = json!({"id": full["id"], "after": full["comments"]["pageInfo"]["endCursor"]});
    let rest = ask(&stage, &mira, more, variables).await;
    assert_eq!(rest["data"]["node"]["comments"]["nodes"], json!([{"body": "two"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_answered_is_refused_as_github_refuses() {
    let stage = Stage::new().await;
    stage.open();
    let mira = stage.sandbox.token_for("mira");
    let reader = stage.sandbox.token_for("reader");
    for (token, query, kind, message) in [
        (
            &mira,
            "{ repository(owner: \"acme\", name: \"gone\") { id } }",
            "NOT_FOUND",
            "Could not resolve to a Repository with the name 'acme/gone'.",
        ),
        (
            &reader,
            "{ repository(owner: \"acme\", name: \"infra\") { id } }",
            "NOT_FOUND",
            "Could not resolve to a Repository with the name 'acme/infra'.",
        ),
        (
            &mira,
            "{ repository(owner: \"acme\", name: \"infra\") { pullRequest(number: 99) { id } } }",
            "NOT_FOUND",
            "Could not resolve to a PullRequest with the number of 99.",
        ),
        (
            &mira,
            "{ organization(login: \"gone\") { id } }",
            "NOT_FOUND",
            "Could not resolve to an Organization with the login of 'gone'.",
        ),
    ] {
        let said = ask(&stage, token, query, json!({})).await;
        assert_eq!(
            (&said["errors"][0]["type"], &said["errors"][0]["message"]),
            (&json!(kind), &json!(message)),
            "{said}"
        );
        assert!(said.get("data").is_some(), "{said}");
    }
    let unknown = ask(&stage, &mira, "query { viewer { login nonsense } }", json!({})).await;
    assert!(unknown.get("data").is_none(), "{unknown}");
    assert_eq!(
        unknown["errors"][0]["extensions"],
        json!({"code": "undefinedField", "typeName": "User", "fieldName": "nonsense"})
    );
    assert_eq!(unknown["errors"][0]["message"], "Field 'nonsense' doesn't exist on type 'User'");
    assert!(
        ask(&stage, &mira, "query {", json!({})).await["errors"][0]["message"]
            .as_str()
            .unwrap()
            .starts_with("Parse error")
    );
    let (code, said) = stage.raw("POST", "/graphql", &mira, &json!({})).await;
    assert_eq!((code, &said["message"]), (400, &json!("A query attribute must be specified and must be a string.")));
    assert_eq!(stage.raw("POST", "/graphql", "", &json!({"query": "{ viewer { login } }"})).await.0, 401);
    let looked =
        ask(&stage, &mira, "{ __type(name: \"PullRequest\") { fields(includeDeprecated: true) { name } } }", json!({}))
            .await;
    let fields = looked["data"]["__type"]["fields"].as_array().unwrap();
    assert!(fields.iter().all(|field| field["name"] != "isInMergeQueue") && fields.len() > 40);
    let app = stage.installation_token().await;
    assert_eq!(ask(&stage, &app, "{ viewer { login } }", json!({})).await["data"]["viewer"]["login"], "tidegate[bot]");
}

#[tokio::test(flavor = "multi_thread")]
async fn mutations_do_what_rest_does() {
    let stage = Stage::new().await;
    stage.sandbox.commit(REPO, "two", &[("x", Some("y\n"))], "Two", "mira").unwrap();
    let (mira, lin) = (stage.sandbox.token_for("mira"), stage.sandbox.token_for("lin"));
    let repo = ask(
        &stage,
        &mira,
        "{ repository(owner: \"acme\", name: \"infra\") { id viewerPermission defaultBranchRef { name } } }",
        json!({}),
    )
    .await;
    let create = "mutation PullRequestCreate($input: CreatePullRequestInput!) { createPullRequest(input: $input) { pullRequest { id url number } } }";
    let input = json!({"repositoryId": repo["data"]["repository"]["id"], "baseRefName": "main", "headRefName": "two", "title": "Two", "body": "", "draft": true});
    let made = ask(&stage, &mira, create, json!({"input": input})).await;
    let pull = &made["data"]["createPullRequest"]["pullRequest"];
    let (id, number) = (pull["id"].clone(), pull["number"].as_u64().unwrap());
    let draft = ask(
        &stage,
        &lin,
        "mutation($input: X!) { mergePullRequest(input: $input) { clientMutationId } }",
        json!({"input": {"pullRequestId": id}}),
    )
    .await;
    assert_eq!(
        (&draft["errors"][0]["type"], &draft["errors"][0]["message"]),
        (&json!("UNPROCESSABLE"), &json!("Pull Request is still a draft"))
    );
    for (who, mutation, input) in [
        (&mira, "markPullRequestReadyForReview(input: $input) { pullRequest { id } }", json!({"pullRequestId": id})),
        (
            &mira,
            "updatePullRequest(input: $input) { pullRequest { id url } }",
            json!({"pullRequestId": id, "title": "Another"}),
        ),
        (
            &lin,
            "addComment(input: $input) { commentEdge { node { url body } } }",
            json!({"subjectId": id, "body": "words"}),
        ),
        (
            &lin,
            "addPullRequestReview(input: $input) { clientMutationId }",
            json!({"pullRequestId": id, "event": "APPROVE", "body": ""}),
        ),
        (&mira, "closePullRequest(input: $input) { pullRequest { id } }", json!({"pullRequestId": id})),
        (&mira, "reopenPullRequest(input: $input) { pullRequest { id } }", json!({"pullRequestId": id})),
        (
            &lin,
            "mergePullRequest(input: $input) { clientMutationId }",
            json!({"pullRequestId": id, "mergeMethod": "SQUASH"}),
        ),
    ] {
        let said =
            ask(&stage, who, &format!("mutation M($input: AnyInput!) {{ {mutation} }}"), json!({"input": input})).await;
        assert!(said.get("errors").is_none(), "{mutation}: {said}");
    }
    let merged = stage.sandbox.pull(REPO, number).unwrap();
    assert_eq!((merged.title.as_str(), merged.merged.is_some(), merged.reviews.len()), ("Another", true, 1));
    assert_eq!(stage.sandbox.comments(REPO, number).unwrap()[0].body, "words");
}

/// What a client asks that gates on teams and on what a blocked pull still lacks.
#[tokio::test(flavor = "multi_thread")]
async fn teams_rules_and_dismissals_are_told() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let mira = stage.sandbox.token_for("mira");
    stage.sandbox.create_team("acme", "ops", &["mira"]);
    stage.sandbox.create_team("acme", "net", &["lin"]);
    let teams = "query($o: String!, $after: String, $logins: [String!]) { organization(login: $o) { teams(first: 100, after: $after, userLogins: $logins) { edges { node { name slug } } pageInfo { endCursor hasNextPage } } } }";
    let said = ask(&stage, &mira, teams, json!({"o": "acme", "after": null, "logins": ["mira"]})).await;
    assert_eq!(said["data"]["organization"]["teams"]["edges"], json!([{"node": {"name": "ops", "slug": "ops"}}]));
    let children =
        "{ organization(login: \"acme\") { team(slug: \"ops\") { childTeams(first: 10) { nodes { slug } } } } }";
    assert_eq!(
        ask(&stage, &mira, children, json!({})).await["data"]["organization"]["team"]["childTeams"]["nodes"],
        json!([])
    );

    let rule = Protection { checks: vec!["ci".into()], reviews: 1, strict: false };
    stage.sandbox.set_protection(REPO, "main", rule).unwrap();
    let review = stage.sandbox.review(REPO, number, "lin", Verdict::Approve, "").unwrap();
    let statuses = format!("/repos/{REPO}/statuses/{head}");
    stage.raw("POST", &statuses, &mira, &json!({"state": "success", "context": "ci"})).await;
    let lacking = r#"query($owner: String!, $name: String!, $number: Int!, $cursor: String) { repository(owner: $owner, name: $name) {
      pullRequest(number: $number) { reviewDecision latestOpinionatedReviews(first: 10) { nodes { id state } }
        reviews(first: 100, states: [APPROVED]) { nodes { id } }
        baseRef { branchProtectionRule { requiredStatusChecks { context } } rules(first: 100, after: $cursor) { nodes { type } pageInfo { endCursor hasNextPage } } }
        commits(last: 1) { nodes { commit { statusCheckRollup { contexts(first: 100) { nodes { __typename
          ... on CheckRun { name conclusion isRequired(pullRequestNumber: $number) checkSuite { conclusion workflowRun { id } } }
          ... on StatusContext { context state isRequired(pullRequestNumber: $number) } } } } } } } } } }"#;
    let variables = json!({"owner": "acme", "name": "infra", "number": number, "cursor": null});
    let said = ask(&stage, &mira, lacking, variables.clone()).await;
    let pull = &said["data"]["repository"]["pullRequest"];
    assert_eq!(pull["baseRef"]["branchProtectionRule"]["requiredStatusChecks"], json!([{"context": "ci"}]), "{said}");
    let contexts = &pull["commits"]["nodes"][0]["commit"]["statusCheckRollup"]["contexts"]["nodes"];
    assert_eq!(
        contexts[0],
        json!({"__typename": "StatusContext", "context": "ci", "state": "SUCCESS", "isRequired": true})
    );
    let dismiss = "mutation($input: DismissPullRequestReviewInput!) { dismissPullRequestReview(input: $input) { pullRequestReview { state } } }";
    let input = json!({"pullRequestReviewId": pull["reviews"]["nodes"][0]["id"], "message": "stale"});
    let said = ask(&stage, &mira, dismiss, json!({"input": input})).await;
    assert_eq!(said["data"]["dismissPullRequestReview"]["pullRequestReview"]["state"], "DISMISSED", "{said}");
    assert_eq!(
        stage.sandbox.pull(REPO, number).unwrap().reviews.iter().find(|one| one.id == review).unwrap().state,
        "DISMISSED"
    );
    let left = ask(&stage, &mira, lacking, variables).await;
    assert_eq!(left["data"]["repository"]["pullRequest"]["reviewDecision"], "REVIEW_REQUIRED");
}
