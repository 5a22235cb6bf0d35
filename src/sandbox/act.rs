//! What can be done to the sandbox forge, each deed with the webhook that GitHub would send. The Rust API, REST and
//! the pages all come through here. Checks the rules of the forge, never who holds which token.

use serde_json::{Value, json};

use super::git::{Git, Signature};
use super::refusal::{Answer, Refusal};
use super::shape::{self, Base};
use super::world::{APP_ID, Account, INSTALLATION_ID, Kind, Repo, Role, State, Visibility, World, now, seconds};

pub mod check;
pub mod pull;
pub mod push;
pub mod talk;

/// Files of a commit: path and contents, `None` deletes.
pub type Files<'a> = [(&'a str, Option<&'a [u8]>)];

impl State {
    /// Links as webhooks write them.
    pub fn base(&self) -> Base {
        Base::plain(&self.home)
    }

    /// Queues a webhook about a repository.
    pub fn emit(&mut self, repo: &str, event: &str, action: &str, sender: &str, mut payload: Value) {
        self.touch();
        let base = self.base();
        let Ok(found) = self.repo(repo) else { return };
        payload["repository"] = shape::repo(self, &base, found, Role::Read);
        payload["sender"] = shape::login(self, &base, sender);
        payload["installation"] = json!({"id": INSTALLATION_ID, "node_id": shape::node("MDIz", INSTALLATION_ID)});
        if let Ok(owner) = self.account(&found.owner)
            && owner.kind == Kind::Organization
        {
            payload["organization"] = organization(&base, owner.id, &owner.login);
        }
        if !action.is_empty() {
            payload["action"] = json!(action);
        }
        self.hooks.push(event, action, &payload);
    }

    /// Tells the receiver that it was set.
    pub fn ping(&mut self) {
        let base = self.base();
        let payload = json!({
            "zen": "Keep it logically awesome.",
            "hook_id": 7003,
            "hook": {
                "type": "App", "id": 7003, "name": "web", "active": true, "app_id": APP_ID,
                "events": ["pull_request"], "config": {"content_type": "json", "insecure_ssl": "0", "url": base.html},
                "updated_at": now(), "created_at": now(), "deliveries_url": format!("{}/app/hook/deliveries", base.api),
            },
        });
        self.hooks.push("ping", "", &payload);
    }

    /// Gives a repository another name or owner. Requests for the old name are sent on, by its id; webhooks say the new one.
    pub fn rename_repo(&mut self, from: &str, to: &str) -> Answer<()> {
        let (owner, name) = to.split_once('/').ok_or_else(Refusal::not_found)?;
        if self.repos.contains_key(&to.to_lowercase()) {
            return Err(Refusal::field("Repository", "custom", "name", "name already exists on this account"));
        }
        let mut repo = self.repos.remove(&from.to_lowercase()).ok_or_else(Refusal::not_found)?;
        self.moved.insert(from.to_lowercase(), repo.id);
        owner.clone_into(&mut repo.owner);
        name.clone_into(&mut repo.name);
        repo.roles.entry(owner.to_owned()).or_insert(Role::Admin);
        self.repos.insert(to.to_lowercase(), repo);
        self.add_account(owner, Kind::Organization);
        self.touch();
        Ok(())
    }

    /// A signature of an account's commits.
    pub fn signature(&self, login: &str) -> Signature {
        let email = self.account(login).map_or_else(|_| format!("{login}@users.sandbox.invalid"), Account::email);
        Signature { name: login.to_owned(), email, seconds: seconds() }
    }
}

fn organization(base: &Base, id: u64, login: &str) -> Value {
    let url = format!("{}/orgs/{login}", base.api);
    json!({
        "login": login, "id": id, "node_id": shape::node("O", id), "url": url, "repos_url": format!("{url}/repos"),
        "events_url": format!("{url}/events"), "hooks_url": format!("{url}/hooks"), "issues_url": format!("{url}/issues"),
        "members_url": format!("{url}/members{{/member}}"), "public_members_url": format!("{url}/public_members{{/member}}"),
        "avatar_url": format!("{}/avatars/{id}", base.html), "description": "",
    })
}

impl World {
    /// Makes a repository whose first commit holds the files.
    pub fn create_repo(&self, owner: &str, name: &str, files: &[(&str, &str)]) -> Answer<()> {
        let fine = |text: &str| {
            !text.is_empty()
                && !text.starts_with('.')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        if !fine(owner) || !fine(name) {
            return Err(Refusal::field("Repository", "custom", "name", "name is not a repository name"));
        }
        let mut state = self.lock();
        let full = format!("{owner}/{name}");
        if state.repo(&full).is_ok() {
            return Err(Refusal::field("Repository", "custom", "name", "name already exists on this account"));
        }
        state.add_account(owner, Kind::Organization);
        let dir = self.data_dir.join(owner.to_lowercase()).join(format!("{}.git", name.to_lowercase()));
        std::fs::create_dir_all(&dir).map_err(|error| Refusal::new(500, error.to_string()))?;
        let git = Git::create(&dir)?;
        let files: Vec<(&str, Option<&[u8]>)> = files.iter().map(|(p, c)| (*p, Some(c.as_bytes()))).collect();
        git.commit("main", None, &files, "Initial commit", &state.signature(owner))?;
        let branches = git.branches()?;
        let repo = Repo {
            forks: std::collections::BTreeMap::new(),
            id: state.id(),
            owner: owner.to_owned(),
            name: name.to_owned(),
            visibility: Visibility::Public,
            roles: [(owner.to_owned(), Role::Admin)].into(),
            branches,
            protections: Default::default(),
            created_at: now(),
            pulls: Default::default(),
            comments: Vec::new(),
            suites: Default::default(),
            runs: Vec::new(),
            statuses: Vec::new(),
            git,
        };
        state.repos.insert(full.to_lowercase(), repo);
        state.touch();
        Ok(())
    }
}
