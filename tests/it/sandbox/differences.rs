//! Where a naive fake differs from GitHub, as tables: number, who asks what with which body, GitHub's answer. Deliveries and GraphQL
//! have files of their own.

use serde_json::{Value, json};
use tidegate::sandbox::{Origin, Protection, PullState, Role, Verdict};

use super::{REPO, Stage};

struct Asking<'a> {
    stage: &'a Stage,
    mira: String,
    app: String,
    /// What a `$name` in a table stands for.
    words: Vec<(&'static str, String)>,
}

impl<'a> Asking<'a> {
    async fn new(stage: &'a Stage) -> Self {
        let words = vec![("$home", stage.sandbox.url().to_owned()), ("$repo", at(""))];
        Self { stage, mira: stage.sandbox.token_for("mira"), app: stage.installation_token().await, words }
    }

    fn token(&self, who: &str) -> String {
        match who {
            "mira" => self.mira.clone(),
            "app" => self.app.clone(),
            "nobody" => String::new(),
            known @ ("lin" | "reader") => self.stage.sandbox.token_for(known),
            token => token.to_owned(),
        }
    }

    /// Rows of `number | who | METHOD path | body | status | place = value; place = value`.
    async fn all(&self, table: &str) {
        let filled = self.words.iter().fold(table.to_owned(), |text, (name, value)| text.replace(name, value));
        for row in filled.lines().filter(|row| !row.trim().is_empty()) {
            let [number, who, what, body, status, says] = row.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
                panic!("six columns: {row}");
            };
            let (method, path) = what.split_once(' ').unwrap();
            let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
            let (code, said) = self.stage.raw(method, path, &self.token(who), &body).await;
            assert_eq!(code.to_string(), status, "{number} {what}: {said}");
            for (place, wanted) in says.split(';').filter_map(|one| one.split_once('=')) {
                let found = said.pointer(place.trim()).unwrap_or(&Value::Null);
                let wanted: Value = serde_json::from_str(wanted.trim()).unwrap();
                assert_eq!(*found, wanted, "{number} {what}: {place} in {said:.2000}");
            }
        }
    }
}

fn at(tail: &str) -> String {
    format!("/repos/{REPO}{tail}")
}

const OPEN: &str = r#"
5 unknown first | mira | GET $repo/pulls/1 | | 200 | /mergeable = null; /mergeable_state = "unknown"; /merged = false
32 no text | mira | GET $repo/pulls/1 | | 200 | /body = null; /number = 1
5 then known | mira | GET $repo/pulls/1 | | 200 | /mergeable = true; /mergeable_state = "clean"; /rebaseable = true
5 lists know neither | mira | GET $repo/pulls | | 200 | /0/mergeable = null; /0/commits = null; /0/number = 1
10 a second pull | mira | POST $repo/pulls | {"head": "feature/net", "base": "main", "title": "x"} | 422 | /errors/0 = {"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for acme:feature/net."}
10 nothing between | mira | POST $repo/pulls | {"head": "main", "base": "main", "title": "x"} | 422 | /message = "Validation Failed"; /errors/0/message = "No commits between main and main"
10 no such branch | mira | POST $repo/pulls | {"head": "gone", "base": "main", "title": "x"} | 422 | /errors/0 = {"resource": "PullRequest", "code": "invalid", "field": "head"}
10 one's own | mira | POST $repo/pulls/1/reviews | {"event": "APPROVE"} | 422 | /message = "Unprocessable Entity"; /errors/0 = "Can not approve your own pull request"
19 as an issue | mira | GET $repo/issues/1 | | 200 | /pull_request/merged_at = null; /number = 1
25 words are needed | lin | POST $repo/pulls/1/reviews | {"event": "REQUEST_CHANGES"} | 422 |
25 not sent yet | lin | POST $repo/pulls/1/reviews | {"comments": []} | 200 | /state = "PENDING"
25 sent | lin | POST $repo/pulls/1/reviews | {"event": "APPROVE"} | 200 | /state = "APPROVED"; /commit_id = "$head"
8 not merged | mira | GET $repo/pulls/1/merge | | 404 |
8 another head | mira | PUT $repo/pulls/1/merge | {"sha": "0000000000000000000000000000000000000000"} | 409 | /message = "Head branch was modified. Review and try the merge again."
36 no such way | mira | PUT $repo/pulls/1/merge | {"merge_method": "octopus"} | 422 |
"#;

const DRAFT: &str = r#"
7 draft first | mira | GET $repo/pulls/1 | | 200 | /mergeable_state = "draft"
8 a draft | mira | PUT $repo/pulls/1/merge | {} | 405 | /message = "Pull Request is still a draft"
"#;

const MERGED: &str = r#"
8 merged | mira | PUT $repo/pulls/1/merge | {} | 200 | /merged = true; /message = "Pull Request successfully merged"
8 again | mira | PUT $repo/pulls/1/merge | {} | 405 | /message = "Pull Request is not mergeable"
8 now it is | mira | GET $repo/pulls/1/merge | | 204 |
5 merged | mira | GET $repo/pulls/1 | | 200 | /mergeable = null; /mergeable_state = "unknown"; /state = "closed"; /merged_by/login = "mira"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn pulls_and_merges() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let mut ask = Asking::new(&stage).await;
    ask.words.push(("$head", head));
    ask.all(OPEN).await;
    stage.sandbox.set_draft(REPO, number, "mira", PullState::Draft).unwrap();
    ask.all(DRAFT).await;
    stage.sandbox.set_draft(REPO, number, "mira", PullState::Open).unwrap();
    ask.all(MERGED).await;
}

const SAID: &str = r#"
9 the status is a text | mira | GET $repo/pulls/99 | | 404 | /status = "404"; /message = "Not Found"
11 empty | mira | POST $repo/issues/1/comments | {"body": ""} | 422 | /errors/0/code = "missing_field"
11 the last that fits | mira | POST $repo/issues/1/comments | {"body": "$fits"} | 201 |
11 too long | mira | POST $repo/issues/1/comments | {"body": "$fitsx"} | 422 | /errors/0 = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is too long (maximum is 65536 characters)"}
12 not seen, not there | reader | GET $repo | | 404 |
12 a bad token | ghp_nobody | GET $repo | | 401 | /message = "Bad credentials"
12 the App is nobody | app | GET /user | | 403 | /message = "Resource not accessible by integration"
12 only a JWT | mira | GET /app | | 401 |
12 only a JWT | app | GET $repo/installation | | 401 |
13 a person's check | mira | POST $repo/check-runs | {"name": "x", "head_sha": "$head"} | 403 | /message = "You must authenticate via a GitHub App."
14 a conclusion completes | app | POST $repo/check-runs | {"name": "x", "head_sha": "$head", "conclusion": "success"} | 201 | /status = "completed"; /pull_requests/0/number = 1; /app/slug = "tidegate"
14 its suite | app | GET $repo/commits/$head/check-suites | | 200 | /total_count = 1; /check_suites/0/latest_check_runs_count = 1
15 none is pending | mira | GET $repo/commits/$head/status | | 200 | /state = "pending"; /total_count = 0
15 appended | mira | POST $repo/statuses/$head | {"state": "failure", "context": "a", "target_url": ""} | 201 |
15 appended | mira | POST $repo/statuses/$head | {"state": "success", "context": "a"} | 201 |
15 newest counts | mira | GET $repo/commits/$head/status | | 200 | /state = "success"; /total_count = 1
15 newest first | mira | GET $repo/statuses/$head | | 200 | /0/state = "success"; /1/state = "failure"
17 a bare list | app | GET $repo/issues/1/comments | | 200 | /0/user/login = "mira"
17 a wrapped one | app | GET /installation/repositories | | 200 | /total_count = 1
26 unprotected | app | GET $repo/rules/branches/main | | 200 | = []
26 not the App's | app | GET $repo/branches/main/protection | | 403 |
26 not a writer's | mira | GET $repo/branches/main/protection | | 404 | /message = "Not Found"
31 in any case | mira | GET /repos/ACME/Infra | | 200 | /full_name = "acme/infra"
36 unknown keys | mira | POST $repo/issues/1/comments | {"body": "b", "nonsense": 1} | 201 |
36 a wrong type | mira | POST $repo/issues/1/comments | {"body": 5} | 422 |
36 no object | mira | POST $repo/issues/1/comments | "text" | 400 | /message = "Body should be a JSON object"
38 REST has no data | mira | GET $repo | | 200 | /data = null
"#;

const OWNER: &str = r#"
26 an owner is told | lin | GET $repo/branches/main/protection | | 404 | /message = "Branch not protected"
26 an owner is told | lin | GET $repo/branches/gone/protection | | 404 | /message = "Branch not found"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn who_may_and_what_is_said() {
    let stage = Stage::new().await;
    let (_, head) = stage.open();
    let mut ask = Asking::new(&stage).await;
    ask.words.extend([("$head", head), ("$fits", "é".repeat(65_536))]);
    ask.all(SAID).await;
    stage.sandbox.set_role(REPO, "lin", Role::Admin).unwrap();
    ask.all(OWNER).await;
    let broken = stage.http.post(format!("{}{}", stage.sandbox.url(), at("/issues/1/comments")));
    let answer = broken.bearer_auth(&ask.mira).body("{").send().await.unwrap();
    assert_eq!(answer.status(), 400, "36 broken JSON");
    let said: Value = answer.json().await.unwrap();
    assert_eq!(said["message"], "Problems parsing JSON");
}

const TALK: &str = r##"
20 links | mira | GET $note | | 200 | /html_url = "$home/acme/infra/pull/1#issuecomment-$id"; /issue_url = "$home/repos/acme/infra/issues/1"
20 the prefix stays | mira | GET /api/v3$note | | 200 | /url = "$home/api/v3$note"
21 the App's own | mira | GET $note | | 200 | /user/login = "tidegate[bot]"; /user/type = "Bot"; /performed_via_github_app/slug = "tidegate"
21 escaped | mira | GET /users/tidegate%5Bbot%5D | | 200 | /login = "tidegate[bot]"
24 new | mira | POST $note/reactions | {"content": "eyes"} | 201 |
24 again | mira | POST $note/reactions | {"content": "eyes"} | 200 | /content = "eyes"
24 unknown | mira | POST $note/reactions | {"content": "shrug"} | 422 |
22 edited | app | PATCH $note | {"body": "b"} | 200 | /id = $id; /created_at = "$born"
22 deleted | app | DELETE $note | | 204 |
22 gone | app | GET $note | | 404 |
4 labels bare | mira | POST $repo/issues/1/labels | ["x"] | 200 | /0/name = "x"
4 labels in an object | mira | POST $repo/issues/1/labels | {"labels": ["y"]} | 200 | /1/name = "y"
"##;

#[tokio::test(flavor = "multi_thread")]
async fn comments_reactions_and_links() {
    let stage = Stage::new().await;
    stage.open();
    let mut ask = Asking::new(&stage).await;
    let (_, made) = stage.raw("POST", &at("/issues/1/comments"), &ask.app, &json!({"body": "a note"})).await;
    let (id, born) = (made["id"].to_string(), made["created_at"].as_str().unwrap().to_owned());
    ask.words.extend([("$note", at(&format!("/issues/comments/{id}"))), ("$id", id), ("$born", born)]);
    ask.all(TALK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_tags_and_limits() {
    let stage = Stage::new().await;
    let (number, _) = stage.open();
    for at in 0..130 {
        stage.sandbox.comment(REPO, number, "lin", &format!("words {at}")).unwrap();
    }
    let mira = stage.sandbox.token_for("mira");
    let ask = |query: &str| {
        let url = format!("{}/repos/{REPO}/issues/{number}/comments{query}", stage.sandbox.url());
        stage.http.get(url).bearer_auth(&mira).send()
    };
    for (query, count, rels) in [
        ("", 30, vec!["next", "last"]),
        ("?per_page=300", 100, vec!["next", "last"]),
        ("?per_page=100&page=2&direction=asc", 30, vec!["prev", "first"]),
        ("?page=99", 0, vec!["prev", "first"]),
    ] {
        let answer = ask(query).await.unwrap();
        let link = answer.headers().get("link").map(|link| link.to_str().unwrap().to_owned()).unwrap_or_default();
        let list: Vec<Value> = answer.json().await.unwrap();
        assert_eq!(list.len(), count, "16 {query}");
        for rel in ["next", "last", "prev", "first"] {
            assert_eq!(link.contains(&format!("rel=\"{rel}\"")), rels.contains(&rel), "16 {query}: {rel} in {link}");
        }
        assert!(!query.contains("direction") || link.contains("direction=asc"), "16 {link}");
    }
    let header = |answer: &reqwest::Response, name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    // The page on which the next comment will stand.
    let url = format!("{}/repos/{REPO}/issues/{number}/comments?per_page=100&page=2", stage.sandbox.url());
    let first = ask("?per_page=100&page=2").await.unwrap();
    let (tag, used) = (header(&first, "etag"), header(&first, "x-ratelimit-used"));
    let again = stage.http.get(&url).bearer_auth(&mira).header("if-none-match", &tag).send().await.unwrap();
    assert_eq!(again.status(), 304, "34");
    assert_eq!(header(&again, "x-ratelimit-used"), used, "35 what is known costs nothing");
    stage.sandbox.comment(REPO, number, "lin", "more").unwrap();
    let changed = stage.http.get(&url).bearer_auth(&mira).header("if-none-match", &tag).send().await.unwrap();
    assert_eq!(changed.status(), 200, "34");

    stage.sandbox.set_rate_limit(Some(2));
    let left: Vec<(u16, String)> = [ask("").await, ask("").await, ask("").await]
        .into_iter()
        .map(|answer| answer.unwrap())
        .map(|answer| (answer.status().as_u16(), header(&answer, "x-ratelimit-remaining")))
        .collect();
    assert_eq!(left, [(200, "1".into()), (200, "0".into()), (403, "0".into())], "35");
    let (code, limits) = stage.raw("GET", "/rate_limit", &mira, &Value::Null).await;
    assert_eq!(
        (code, &limits["rate"]["remaining"], &limits["resources"]["graphql"]["used"]),
        (200, &json!(0), &json!(0)),
        "35"
    );
    let lin = stage.sandbox.token_for("lin");
    assert_eq!(stage.raw("GET", &at(""), &lin, &Value::Null).await.0, 200, "35 each asker alone");
}

const FORK: &str = r#"
14 a fork's pull is named nowhere | app | POST $repo/check-runs | {"name": "x", "head_sha": "$head"} | 201 | /pull_requests = []
29 files | mira | GET $repo/pulls/1/files?per_page=300 | | 200 | /0/filename = "network/main.tf"; /0/status = "modified"; /0/changes = 2
"#;

#[tokio::test(flavor = "multi_thread")]
async fn forks_heads_and_refs() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let mut ask = Asking::new(&stage).await;
    let pull = at(&format!("/pulls/{number}"));
    let none = || Value::Null;
    let clone = format!("http://mira:{}@{}/{REPO}", ask.mira, stage.sandbox.url().trim_start_matches("http://"));
    for _ in 0..2 {
        stage.raw("GET", &pull, &ask.mira, &none()).await;
    }
    let (_, open) = stage.raw("GET", &pull, &ask.mira, &none()).await;
    let (_, refs) = stage.git(&["ls-remote", &clone]);
    let test = open["merge_commit_sha"].as_str().unwrap();
    assert!(refs.contains(&format!("{head}\trefs/pull/{number}/head")), "30 {refs}");
    assert!(refs.contains(&format!("{test}\trefs/pull/{number}/merge")), "6, 30 {refs}");
    stage.git(&["init", "-q", "work"]);
    let (pushed, said) = stage.git(&["-C", "work", "push", &clone, &format!("HEAD:refs/pull/{number}/head")]);
    assert!(!pushed, "30 {said}");
    ask.words.push(("$head", head));
    stage.sandbox.set_origin(REPO, "feature/net", Origin::Gone).unwrap();
    ask.all("33 a deleted fork | mira | GET $repo/pulls/1 | | 200 | /head/repo = null; /base/repo/name = \"infra\"")
        .await;
    stage.sandbox.set_origin(REPO, "feature/net", Origin::Fork(99, "else".into())).unwrap();
    ask.all(FORK).await;
    stage.sandbox.delete_branch(REPO, "feature/net", "mira").unwrap();
    ask.all("27 no branch, no pull | mira | GET $repo/pulls/1 | | 200 | /state = \"closed\"; /merged = false").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_merged_has_its_word() {
    let stage = Stage::new().await;
    let (number, head) = stage.open();
    let ask = Asking::new(&stage).await;
    let pull = at(&format!("/pulls/{number}"));
    let state = async || {
        stage.raw("GET", &pull, &ask.mira, &Value::Null).await;
        stage.raw("GET", &pull, &ask.mira, &Value::Null).await.1["mergeable_state"].as_str().unwrap().to_owned()
    };
    let rule = Protection { checks: vec!["ci".into()], reviews: 0, strict: true };
    stage.sandbox.set_protection(REPO, "main", rule.clone()).unwrap();
    assert_eq!(state().await, "blocked");
    let merge = async || stage.raw("PUT", &format!("{pull}/merge"), &ask.mira, &json!({})).await;
    let expected = json!("Required status check \"ci\" is expected.");
    assert_eq!(merge().await.1["message"], expected);
    let status = |context: &str, state: &str| json!({"context": context, "state": state});
    let statuses = at(&format!("/statuses/{head}"));
    stage.raw("POST", &statuses, &ask.mira, &status("ci", "success")).await;
    assert_eq!(state().await, "clean");
    stage.raw("POST", &statuses, &ask.mira, &status("lint", "failure")).await;
    assert_eq!(state().await, "unstable");
    stage.sandbox.commit(REPO, "main", &[("other.txt", Some("x\n"))], "Another", "lin").unwrap();
    assert_eq!(state().await, "behind");
    let (code, said) = merge().await;
    assert_eq!((code, &said["message"]), (405, &expected), "a strict rule expects the check on what is up to date");
    let (code, _) =
        stage.raw("PUT", &format!("{pull}/update-branch"), &ask.mira, &json!({"expected_head_sha": head})).await;
    assert_eq!(code, 202);
    assert_eq!(state().await, "blocked", "a new head has no check");
    stage.sandbox.set_protection(REPO, "main", Protection { checks: vec![], ..rule }).unwrap();
    stage.sandbox.commit(REPO, "main", &[("other.txt", Some("y\n"))], "Another", "lin").unwrap();
    assert_eq!(merge().await.0, 409);
    stage.sandbox.review(REPO, number, "lin", Verdict::Comment, "fine").unwrap();
    stage.sandbox.commit(REPO, "main", &[("network/main.tf", Some("conflict\n"))], "Conflict", "lin").unwrap();
    assert_eq!(state().await, "dirty");
}
