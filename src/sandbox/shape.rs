//! JSON as GitHub's REST API and webhooks write it: accounts, repositories, the App. Never changes anything.

use serde_json::{Map, Value, json};

use super::world::{APP_ID, Account, INSTALLATION_ID, Kind, Repo, Role, SLUG, State, Visibility};

pub mod check;
pub mod commit;
pub mod pull;
pub mod talk;

/// The addresses that links are built from: the way that the request came.
#[derive(Clone, Debug)]
pub struct Base {
    /// Where the API is, without a slash at the end.
    pub api: String,
    /// Where the pages are.
    pub html: String,
}

impl Base {
    /// A base without a prefix.
    pub fn plain(home: &str) -> Self {
        Self { api: home.to_owned(), html: home.to_owned() }
    }
    /// The API address of a repository.
    pub fn repo(&self, repo: &Repo) -> String {
        format!("{}/repos/{}/{}", self.api, repo.owner, repo.name)
    }
    /// The page of a repository.
    pub fn page(&self, repo: &Repo) -> String {
        format!("{}/{}/{}", self.html, repo.owner, repo.name)
    }
}

/// A node id: one kind and one id, never shared.
pub fn node(kind: &str, id: u64) -> String {
    format!("{kind}_kwSB{id:08x}")
}

/// An account with all that clients insist on.
pub fn account(base: &Base, account: &Account) -> Value {
    let escaped = account.login.replace('[', "%5B").replace(']', "%5D");
    let url = format!("{}/users/{escaped}", base.api);
    let (kind, page, prefix) = match account.kind {
        Kind::User => ("User", format!("{}/{}", base.html, account.login), "U"),
        Kind::Organization => ("Organization", format!("{}/{}", base.html, account.login), "O"),
        Kind::Bot => ("Bot", format!("{}/apps/{SLUG}", base.html), "BOT"),
    };
    json!({
        "login": account.login,
        "id": account.id,
        "node_id": node(prefix, account.id),
        "avatar_url": format!("{}/avatars/{}", base.html, account.id),
        "gravatar_id": "",
        "url": url,
        "html_url": page,
        "followers_url": format!("{url}/followers"),
        "following_url": format!("{url}/following{{/other_user}}"),
        "gists_url": format!("{url}/gists{{/gist_id}}"),
        "starred_url": format!("{url}/starred{{/owner}}{{/repo}}"),
        "subscriptions_url": format!("{url}/subscriptions"),
        "organizations_url": format!("{url}/orgs"),
        "repos_url": format!("{url}/repos"),
        "events_url": format!("{url}/events{{/privacy}}"),
        "received_events_url": format!("{url}/received_events"),
        "type": kind,
        "user_view_type": "public",
        "site_admin": false,
    })
}

/// An account by login; a login that nobody has is shown as null.
pub fn login(state: &State, base: &Base, login: &str) -> Value {
    state.account(login).map_or(Value::Null, |found| account(base, found))
}

const REPO_LINKS: [(&str, &str); 38] = [
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
    ("url", ""),
    ("git_ref_url", "/git/ref{/ref}"),
];

/// A repository, with what the asker may do in it.
pub fn repo(state: &State, base: &Base, repo: &Repo, role: Role) -> Value {
    let page = base.page(repo);
    let open = repo.pulls.values().filter(|pull| pull.is_open()).count();
    let mut value = json!({
        "id": repo.id,
        "node_id": node("R", repo.id),
        "name": repo.name,
        "full_name": repo.full_name(),
        "private": repo.visibility == Visibility::Private,
        "owner": login(state, base, &repo.owner),
        "html_url": page,
        "description": null,
        "fork": false,
        "git_url": format!("{}.git", page.replacen("http", "git", 1)),
        "ssh_url": format!("git@sandbox.invalid:{}.git", repo.full_name()),
        "clone_url": format!("{page}.git"),
        "svn_url": page,
        "mirror_url": null,
        "homepage": null,
        "language": null,
        "license": null,
        "visibility": if repo.visibility == Visibility::Private { "private" } else { "public" },
        "default_branch": "main",
        "created_at": repo.created_at,
        "updated_at": repo.created_at,
        "pushed_at": repo.created_at,
        "open_issues": open,
        "open_issues_count": open,
        "topics": [],
        "permissions": {
            "admin": role >= Role::Admin, "maintain": role >= Role::Admin, "push": role >= Role::Write,
            "triage": role >= Role::Write, "pull": role >= Role::Read,
        },
    });
    if let Value::Object(map) = &mut value {
        plain_facts(map);
        for (key, tail) in REPO_LINKS {
            map.insert(key.to_owned(), json!(format!("{}{tail}", base.repo(repo))));
        }
    }
    value
}

fn plain_facts(map: &mut Map<String, Value>) {
    let numbers = [
        "size",
        "stargazers_count",
        "watchers_count",
        "forks_count",
        "forks",
        "watchers",
        "network_count",
        "subscribers_count",
    ];
    for key in numbers {
        map.insert(key.to_owned(), json!(0));
    }
    for key in [
        "has_issues",
        "has_downloads",
        "allow_merge_commit",
        "allow_squash_merge",
        "allow_rebase_merge",
        "allow_forking",
    ] {
        map.insert(key.to_owned(), json!(true));
    }
    let not = [
        "has_projects",
        "has_wiki",
        "has_pages",
        "has_discussions",
        "archived",
        "disabled",
        "is_template",
        "web_commit_signoff_required",
        "allow_auto_merge",
        "delete_branch_on_merge",
    ];
    for key in not {
        map.insert(key.to_owned(), json!(false));
    }
}

fn permissions() -> Value {
    json!({
        "checks": "write", "contents": "write", "issues": "write", "members": "read", "metadata": "read",
        "pull_requests": "write", "statuses": "write",
    })
}

fn events() -> Value {
    json!(["check_run", "check_suite", "issue_comment", "pull_request", "pull_request_review", "push"])
}

const BIRTH: &str = "2026-01-01T00:00:00Z";

/// The App.
pub fn app(state: &State, base: &Base) -> Value {
    json!({
        "id": APP_ID,
        "slug": SLUG,
        "client_id": "Iv23.sandbox",
        "node_id": node("A", APP_ID),
        "owner": login(state, base, super::world::BOT),
        "name": "Tidegate",
        "description": "",
        "external_url": base.html,
        "html_url": format!("{}/apps/{SLUG}", base.html),
        "created_at": BIRTH,
        "updated_at": BIRTH,
        "permissions": permissions(),
        "events": events(),
        "installations_count": 1,
    })
}

/// The App's installation; its account is the owner of the first repository.
pub fn installation(state: &State, base: &Base) -> Value {
    let owner = state.repos.values().next().map_or(super::world::BOT, |repo| repo.owner.as_str());
    json!({
        "id": INSTALLATION_ID,
        "node_id": node("MDIz", INSTALLATION_ID),
        "client_id": "Iv23.sandbox",
        "account": login(state, base, owner),
        "repository_selection": "all",
        "access_tokens_url": format!("{}/app/installations/{INSTALLATION_ID}/access_tokens", base.api),
        "repositories_url": format!("{}/installation/repositories", base.api),
        "html_url": format!("{}/settings/installations/{INSTALLATION_ID}", base.html),
        "app_id": APP_ID,
        "app_slug": SLUG,
        "target_id": state.account(owner).map_or(0, |account| account.id),
        "target_type": state.account(owner).map_or("User", |a| if a.kind == Kind::Organization { "Organization" } else { "User" }),
        "permissions": permissions(),
        "events": events(),
        "created_at": BIRTH,
        "updated_at": BIRTH,
        "single_file_name": null,
        "has_multiple_single_files": false,
        "single_file_paths": [],
        "suspended_by": null,
        "suspended_at": null,
    })
}

/// A team by its lower-case `org/slug`.
pub fn team(state: &State, base: &Base, name: &str) -> Value {
    let (org, slug) = name.split_once('/').unwrap_or(("", name));
    let id = state.teams.keys().position(|other| other == name).map_or(0, |at| 500 + at as u64);
    let url = format!("{}/orgs/{org}/teams/{slug}", base.api);
    json!({
        "id": id, "node_id": node("T", id), "name": slug, "slug": slug, "description": null, "privacy": "closed",
        "notification_setting": "notifications_enabled", "permission": "pull", "type": "organization",
        "url": url, "html_url": format!("{}/orgs/{org}/teams/{slug}", base.html),
        "members_url": format!("{url}/members{{/member}}"), "repositories_url": format!("{url}/repos"), "parent": null,
    })
}

/// The permissions of an installation token.
pub fn token_permissions() -> Value {
    permissions()
}
