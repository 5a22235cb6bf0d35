//! What we read: pulls, people, comments, repositories, page by page.

use serde_json::{Value, json};
use tidegate::domain::approval::{Permission, Verdict};
use tidegate::domain::event::{AuthorKind, CommentKind, What};
use tidegate::domain::ids::Login;
use tidegate::domain::pull::PullState;
use tidegate::forge::github::GitHub;
use tidegate::ports::forge::{Forge, ForgeError};

use super::fake::{Fake, Reply};
use super::{APP_ID, app, pull, repo, with_token};

fn pull_json(number: u64) -> Value {
    json!({
        "number": number, "title": "More nets", "state": "open", "draft": true, "mergeable": null, "merged": false,
        "head": {"ref": "nets", "sha": "abc", "repo": {"id": 1, "full_name": "acme/infra"}},
        "base": {"ref": "main", "sha": "def", "repo": {"id": 1, "full_name": "acme/infra"}},
        "user": {"login": "ann", "type": "User"}, "updated_at": "2026-11-30T12:00:00Z",
    })
}

fn logins(found: &[Login]) -> Vec<&str> {
    found.iter().map(Login::as_str).collect()
}

#[tokio::test]
async fn a_pull_is_read_under_every_root_of_the_api() {
    let fake = Fake::with_app().await;
    fake.on("GET /repos/acme/infra/pulls/7", Reply::json(200, &pull_json(7)));
    let seen = app(&fake.url).pull(&pull()).await.unwrap();
    assert_eq!((seen.head.as_str(), seen.base_ref.as_str(), seen.base.as_str()), ("abc", "main", "def"));
    assert_eq!((seen.state, seen.draft, seen.fork, seen.mergeable), (PullState::Open, true, false, None));
    assert_eq!((seen.author.as_str(), seen.updated.0), ("ann", 1_796_040_000_000));

    let fake = Fake::start().await;
    fake.on("GET /api/v3/repos/acme/infra/pulls/7", Reply::json(200, &pull_json(7)));
    let enterprise = with_token(&format!("{}/api/v3/", fake.url));
    assert_eq!(enterprise.pull(&pull()).await.unwrap(), seen);
}

#[tokio::test]
async fn every_page_is_read_with_the_token() {
    for prefix in ["", "/api/v3"] {
        let fake = Fake::start().await;
        let page =
            |number| format!("{}{prefix}/repos/acme/infra/pulls?state=open&per_page=100&page={number}", fake.url);
        let first = Reply::json(200, &json!([pull_json(1), pull_json(2)]));
        let more = format!("<{}>; rel=\"next\", <{}>; rel=\"last\"", page(2), page(2));
        fake.on(&format!("GET {prefix}/repos/acme/infra/pulls?state=open&per_page=100"), first.header("link", more));
        let last = Reply::json(200, &json!([pull_json(3)])).header("link", format!("<{}>; rel=\"first\"", page(1)));
        fake.on(&format!("GET {prefix}/repos/acme/infra/pulls?state=open&per_page=100&page=2"), last);
        let found = with_token(&format!("{}{prefix}", fake.url)).open_pulls(&repo()).await.unwrap();
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3]);
        let tokens: Vec<String> = fake.asked().into_iter().map(|asked| asked.authorization).collect();
        assert_eq!(tokens, ["Bearer pat", "Bearer pat"]);
    }
}

#[tokio::test]
async fn a_permission_that_github_does_not_tell_is_none() {
    let fake = Fake::with_app().await;
    let path = "/repos/acme/infra/collaborators";
    fake.on(&format!("GET {path}/ann/permission"), Reply::json(200, &json!({"permission": "write"})));
    fake.on(&format!("GET {path}/renovate%5Bbot%5D/permission"), Reply::json(200, &json!({"permission": "read"})));
    let github = app(&fake.url);
    for (login, allowed) in
        [("ann", Permission::Write), ("renovate[bot]", Permission::Read), ("nobody", Permission::None)]
    {
        assert_eq!(github.permission(&repo(), &Login::from(login)).await.unwrap(), allowed, "{login}");
    }
}

#[tokio::test]
async fn reviews_are_the_newest_verdicts() {
    let review = |id: u64, login: &str, state: &str, minute: u32| {
        json!({"id": id, "user": {"login": login}, "state": state, "commit_id": "abc", "body": "",
            "submitted_at": format!("2026-11-30T12:{minute:02}:00Z")})
    };
    let fake = Fake::with_app().await;
    let mut gone = review(6, "x", "APPROVED", 6);
    gone["user"] = Value::Null;
    let given = json!([
        review(1, "bob", "APPROVED", 1),
        review(2, "bob", "CHANGES_REQUESTED", 2),
        review(3, "bob", "COMMENTED", 3),
        review(4, "cy", "DISMISSED", 4),
        review(5, "di", "PENDING", 5),
        gone,
    ]);
    fake.on("GET /repos/acme/infra/pulls/7/reviews", Reply::json(200, &given));
    let found = app(&fake.url).reviews(&pull()).await.unwrap();
    let found: Vec<(u64, Verdict)> = found.iter().map(|review| (review.id, review.verdict)).collect();
    assert_eq!(found, [(2, Verdict::ChangesRequested), (4, Verdict::Dismissed)]);
}

#[tokio::test]
async fn committers_are_authors_and_committers_but_not_the_web_page() {
    let fake = Fake::with_app().await;
    let commit =
        |author: &str, committer: &str| json!({"author": {"login": author}, "committer": {"login": committer}});
    let commits = json!([commit("ann", "web-flow"), commit("bob", "ann"), {"author": null, "committer": null}]);
    fake.on("GET /repos/acme/infra/pulls/7/commits", Reply::json(200, &commits));
    assert_eq!(logins(&app(&fake.url).committers(&pull()).await.unwrap()), ["ann", "bob"]);
}

#[tokio::test]
async fn a_long_pull_hides_no_committer() {
    let fake = Fake::with_app().await;
    let commits = vec![json!({"author": {"login": "ann"}, "committer": {"login": "ann"}}); 250];
    fake.on("GET /repos/acme/infra/pulls/7/commits", Reply::json(200, &json!(commits)));
    fake.on("GET /repos/acme/infra/pulls/7", Reply::json(200, &pull_json(7)));
    let all = json!({"commits": [{"author": {"login": "mallory"}, "committer": null}]});
    fake.on("GET /repos/acme/infra/compare/def...abc", Reply::json(200, &all));
    assert_eq!(logins(&app(&fake.url).committers(&pull()).await.unwrap()), ["ann", "mallory"]);
}

#[tokio::test]
async fn a_team_has_members_or_is_not_there() {
    let fake = Fake::with_app().await;
    fake.on("GET /orgs/acme/installation", Reply::json(200, &json!({"id": 5})));
    fake.on("GET /orgs/acme/teams/db/members", Reply::json(200, &json!([{"login": "ann"}, {"login": "bob"}])));
    let github = app(&fake.url);
    assert_eq!(logins(&github.team("acme", "db").await.unwrap()), ["ann", "bob"]);
    assert!(matches!(github.team("acme", "nobody").await, Err(ForgeError::NotFound(_))));
}

const WRITTEN: &str = "2026-11-30T12:00:00Z";

fn comment(id: u64, login: &str, kind: &str, updated: &str) -> Value {
    json!({"id": id, "user": {"login": login, "type": kind}, "body": "apply", "performed_via_github_app": null,
        "created_at": WRITTEN, "updated_at": updated})
}

async fn authors(github: &GitHub) -> Vec<(AuthorKind, CommentKind)> {
    let found = github.comments(&pull()).await.expect("a list");
    let read = found.iter().map(|incoming| match &incoming.what {
        What::Comment { number: 7, comment } => (comment.author, comment.kind),
        other => panic!("{other:?}"),
    });
    read.collect()
}

#[tokio::test]
async fn comments_say_who_wrote_them_and_whether_they_were_edited() {
    let fake = Fake::with_app().await;
    let mut via = comment(3, "ann", "User", WRITTEN);
    via["performed_via_github_app"] = json!({ "id": APP_ID });
    let mut nobody = comment(5, "x", "User", WRITTEN);
    nobody["user"] = Value::Null;
    let list = json!([
        comment(1, "ann", "User", WRITTEN),
        comment(2, "tidegate[bot]", "Bot", WRITTEN),
        via,
        comment(4, "renovate[bot]", "Bot", "2026-11-30T12:30:00Z"),
        nobody,
    ]);
    fake.on("GET /repos/acme/infra/issues/7/comments", Reply::json(200, &list));
    let (new, edited) = (CommentKind::Created, CommentKind::Edited);
    let wanted = [
        (AuthorKind::Person, new),
        (AuthorKind::Ourselves, new),
        (AuthorKind::Ourselves, new),
        (AuthorKind::Bot, edited),
    ];
    assert_eq!(authors(&app(&fake.url)).await, wanted);

    let fake = Fake::start().await;
    fake.on("GET /user", Reply::json(200, &json!({"login": "Tide-Bot", "type": "User"})));
    let list = json!([comment(1, "tide-bot", "User", WRITTEN), comment(2, "ann", "User", WRITTEN)]);
    fake.on("GET /repos/acme/infra/issues/7/comments", Reply::json(200, &list));
    assert_eq!(authors(&with_token(&fake.url)).await, [(AuthorKind::Ourselves, new), (AuthorKind::Person, new)]);
}

#[tokio::test]
async fn repositories_are_those_of_every_installation_that_answers() {
    let fake = Fake::with_app().await;
    let installations = json!([
        {"id": 5, "account": {"login": "acme"}, "suspended_at": null},
        {"id": 6, "account": {"login": "gone"}, "suspended_at": null},
        {"id": 8, "account": {"login": "late"}, "suspended_at": "2026-01-01T00:00:00Z"},
    ]);
    fake.on("GET /app/installations", Reply::json(200, &installations));
    let suspended = json!({"message": "This installation has been suspended"});
    fake.on("POST /app/installations/6/access_tokens", Reply::json(403, &suspended));
    let list = json!({"total_count": 1, "repositories": [{"id": 1, "full_name": "acme/infra"}]});
    fake.on("GET /installation/repositories", Reply::json(200, &list));
    assert_eq!(app(&fake.url).repos().await.unwrap(), [repo()]);
    assert!(!fake.whats().iter().any(|what| what.contains("installations/8")));

    let fake = Fake::start().await;
    assert_eq!(with_token(&fake.url).repos().await.unwrap(), [], "a token whose account cannot be asked sees none");
    fake.on("GET /user/repos", Reply::json(200, &json!([{"id": 1, "full_name": "acme/infra"}])));
    assert_eq!(with_token(&fake.url).repos().await.unwrap(), [repo()]);
}
