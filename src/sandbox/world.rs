//! What the sandbox forge knows: people, repositories, pulls and what was said on them. In memory,
//! except for git. Never speaks HTTP; `act` changes it, `shape` shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::faults::Faults;
use super::git::Git;
use super::hooks::Hooks;
use super::rate::Rates;
use super::refusal::{Answer, Refusal};

mod pull;

pub use pull::*;

/// What an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A person.
    User,
    /// An owner that nobody signs in as.
    Organization,
    /// The App's own account.
    Bot,
}

/// What someone may do with a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Nothing.
    None,
    /// See it, and comment.
    Read,
    /// Push and merge.
    Write,
    /// Everything.
    Admin,
}

impl Role {
    /// GitHub's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// Who can see a repository without a role in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody.
    Public,
    /// Only those with a role.
    Private,
}

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its id.
    pub id: u64,
    /// Its login.
    pub login: String,
    /// What it is.
    pub kind: Kind,
}

impl Account {
    /// The address by which commits are recognised.
    pub fn email(&self) -> String {
        format!("{}@users.sandbox.invalid", self.login)
    }
}

/// What must hold before a branch takes a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Names of checks or statuses that must succeed.
    pub checks: Vec<String>,
    /// Approving reviews needed.
    pub reviews: u32,
    /// The branch must have everything that its base has.
    pub strict: bool,
}

/// A repository.
#[derive(Debug)]
pub struct Repo {
    /// Its id.
    pub id: u64,
    /// Its owner's login.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// Who sees it.
    pub visibility: Visibility,
    /// Who may do what.
    pub roles: BTreeMap<String, Role>,
    /// Branch tips as the forge last saw them.
    pub branches: BTreeMap<String, String>,
    /// Protected branches.
    pub protections: BTreeMap<String, Protection>,
    /// When it was made.
    pub created_at: String,
    /// Branches whose pulls are shown as coming from elsewhere.
    pub forks: BTreeMap<String, Origin>,
    /// Pulls by number.
    pub pulls: BTreeMap<u64, Pull>,
    /// Comments, oldest first.
    pub comments: Vec<Comment>,
    /// Check suites: id by commit.
    pub suites: BTreeMap<String, u64>,
    /// Check runs, oldest first.
    pub runs: Vec<CheckRun>,
    /// Statuses, oldest first.
    pub statuses: Vec<Status>,
    /// Its objects.
    pub git: Git,
}

impl Repo {
    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
    /// A pull.
    pub fn pull(&self, number: u64) -> Answer<&Pull> {
        self.pulls.get(&number).ok_or_else(Refusal::not_found)
    }
    /// A pull, to change it.
    pub fn pull_mut(&mut self, number: u64) -> Answer<&mut Pull> {
        self.pulls.get_mut(&number).ok_or_else(Refusal::not_found)
    }
    /// What a person may do here.
    pub fn role(&self, login: &str) -> Role {
        let named = self.roles.iter().find(|(name, _)| name.eq_ignore_ascii_case(login)).map(|(_, role)| *role);
        let floor = if self.visibility == Visibility::Public { Role::Read } else { Role::None };
        named.unwrap_or(floor).max(floor)
    }
}

/// Everything that can change.
#[derive(Debug)]
pub struct State {
    /// The last id given.
    pub last_id: u64,
    /// Moves with every change, so that a page knows when to draw itself anew.
    pub revision: u64,
    /// Accounts by lower-case login.
    pub accounts: BTreeMap<String, Account>,
    /// Repositories by lower-case `owner/name`.
    pub repos: BTreeMap<String, Repo>,
    /// Names that repositories had: lower-case `owner/name` to id.
    pub moved: BTreeMap<String, u64>,
    /// Members by `org/slug`.
    pub teams: BTreeMap<String, BTreeSet<String>>,
    /// The App.
    pub apps: super::apps::Apps,
    /// Tokens and what they open.
    pub tokens: BTreeMap<String, super::auth::Token>,
    /// Where webhooks go.
    pub hooks: Arc<Hooks>,
    /// The address of the sandbox, for links in webhooks.
    pub home: String,
}

/// The bot's login.
pub const BOT: &str = "tidegate[bot]";
/// The App's slug.
pub const SLUG: &str = "tidegate";
/// The App's id.
pub const APP_ID: u64 = 7001;
/// The id of its one installation.
pub const INSTALLATION_ID: u64 = 7002;

impl State {
    /// A fresh id.
    pub fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
    /// Says that something changed.
    pub fn touch(&mut self) {
        self.revision += 1;
    }
    /// An account by login, in any case.
    pub fn account(&self, login: &str) -> Answer<&Account> {
        self.accounts.get(&login.to_lowercase()).ok_or_else(Refusal::not_found)
    }
    /// Makes an account; one that is there stays as it is.
    pub fn add_account(&mut self, login: &str, kind: Kind) {
        if !self.accounts.contains_key(&login.to_lowercase()) {
            let account = Account { id: self.id(), login: login.to_owned(), kind };
            self.accounts.insert(login.to_lowercase(), account);
        }
    }
    /// A repository by `owner/name`, in any case, or by a name that it had.
    pub fn repo(&self, name: &str) -> Answer<&Repo> {
        match self.moved(name) {
            Some(id) => self.repo_of_id(id),
            None => self.repos.get(&name.to_lowercase()).ok_or_else(Refusal::not_found),
        }
    }
    /// A repository, to change it.
    pub fn repo_mut(&mut self, name: &str) -> Answer<&mut Repo> {
        let found = match self.moved(name) {
            Some(id) => self.repos.values_mut().find(|repo| repo.id == id),
            None => self.repos.get_mut(&name.to_lowercase()),
        };
        found.ok_or_else(Refusal::not_found)
    }
    /// A repository by its id.
    pub fn repo_of_id(&self, id: u64) -> Answer<&Repo> {
        self.repos.values().find(|repo| repo.id == id).ok_or_else(Refusal::not_found)
    }
    /// The id of the repository that had this name and has another now.
    pub fn moved(&self, name: &str) -> Option<u64> {
        let name = name.to_lowercase();
        if self.repos.contains_key(&name) { None } else { self.moved.get(&name).copied() }
    }
    /// The account that a commit's address belongs to.
    pub fn by_email(&self, email: &str) -> Option<&Account> {
        self.accounts.values().find(|account| account.email().eq_ignore_ascii_case(email))
    }
    /// People who can sign in.
    pub fn people(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values().filter(|account| account.kind == Kind::User)
    }
}

/// The state with what surrounds it.
#[derive(Debug)]
pub struct World {
    state: Mutex<State>,
    /// The delivery queue.
    pub hooks: Arc<Hooks>,
    /// What goes wrong next.
    pub faults: Faults,
    /// Who asked how often.
    pub rates: Rates,
    /// Where the repositories lie.
    pub data_dir: PathBuf,
    /// What was written through the API, once somebody asked to keep it.
    pub heard: Mutex<Option<Vec<String>>>,
}

impl World {
    /// A world with the App's account and nothing else.
    pub fn new(data_dir: PathBuf, home: String) -> Self {
        let hooks = Arc::new(Hooks::default());
        let mut state = State {
            last_id: 10_000,
            revision: 0,
            accounts: BTreeMap::new(),
            repos: BTreeMap::new(),
            moved: BTreeMap::new(),
            teams: BTreeMap::new(),
            apps: super::apps::Apps::default(),
            tokens: BTreeMap::new(),
            hooks: Arc::clone(&hooks),
            home,
        };
        state.add_account(BOT, Kind::Bot);
        let (faults, rates) = (Faults::default(), Rates::default());
        Self { state: Mutex::new(state), hooks, faults, rates, data_dir, heard: Mutex::default() }
    }
    /// Keeps a written request, when somebody wants them.
    pub fn hear(&self, method: &str, path: &str, body: &[u8]) {
        if let Some(heard) = self.heard.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            heard.push(format!("{method} {path}\n{}", String::from_utf8_lossy(body)));
        }
    }
    /// Locks the state. A panic elsewhere does not spoil it: each change is made whole before anything can fail.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time now, as GitHub writes it.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Seconds since 1970.
pub fn seconds() -> i64 {
    jiff::Timestamp::now().as_second()
}
