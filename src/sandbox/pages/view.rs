//! What the pages show, as values for the templates. Never changes anything but what a look at a pull computes.

use askama::Template;

use super::markdown;
use super::talk::{Check, Item, checks, conversation, kind_of};
use crate::sandbox::act::pull::missing;
use crate::sandbox::git::Entry;
use crate::sandbox::http::Call;
use crate::sandbox::refusal::{Answer, Refusal};
use crate::sandbox::world::{Pull, PullState, Repo, Role, State};

/// The header of every page.
#[derive(Clone, Debug)]
pub struct Shell {
    /// Who looks.
    pub viewer: String,
    /// Who else could.
    pub people: Vec<String>,
    /// The path, to come back to.
    pub here: String,
}

impl Shell {
    /// Reads the viewer from the cookie; without one the first person looks.
    pub fn new(state: &State, call: &Call) -> Self {
        let people: Vec<String> = state.people().map(|account| account.login.clone()).collect();
        let cookies = call.header("cookie").unwrap_or("");
        let named = cookies.split(';').filter_map(|pair| pair.trim().strip_prefix("viewer=")).next();
        let viewer = named.filter(|name| people.iter().any(|person| person == name));
        let viewer = viewer.map(str::to_owned).or_else(|| people.first().cloned()).unwrap_or_default();
        let here = if call.method == "GET" { call.path.clone() } else { "/".to_owned() };
        Self { viewer, people, here }
    }
}

/// A number for a colour, always the same for a login.
pub fn hue(login: &str) -> u32 {
    login.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 360
}

/// Text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A refusal as a sentence.
pub fn words(refusal: &Refusal) -> String {
    let detail = refusal
        .errors
        .first()
        .map(|error| error.as_str().or_else(|| error["message"].as_str()).unwrap_or("").to_owned());
    detail.filter(|text| !text.is_empty()).unwrap_or_else(|| refusal.message.clone())
}

/// How long ago, in words.
pub fn ago(at: &str) -> String {
    let Ok(then) = at.parse::<jiff::Timestamp>() else { return at.to_owned() };
    let seconds = jiff::Timestamp::now().as_second() - then.as_second();
    match seconds {
        ..=9 => "just now".into(),
        10..=59 => format!("{seconds} seconds ago"),
        60..=119 => "1 minute ago".into(),
        120..=3599 => format!("{} minutes ago", seconds / 60),
        3600..=7199 => "1 hour ago".into(),
        7200..=86_399 => format!("{} hours ago", seconds / 3600),
        _ => at.get(..10).unwrap_or(at).to_owned(),
    }
}

/// The first page.
#[derive(Template)]
#[template(path = "sandbox/home.html")]
pub struct HomePage {
    shell: Shell,
    repos: Vec<(String, usize, &'static str)>,
}

impl HomePage {
    /// The repositories that the viewer sees.
    pub fn new(state: &State, shell: &Shell) -> Self {
        let seen = state.repos.values().filter(|repo| repo.role(&shell.viewer) >= Role::Read);
        let row = |repo: &Repo| {
            let open = repo.pulls.values().filter(|pull| pull.is_open()).count();
            (repo.full_name(), open, repo.role(&shell.viewer).word())
        };
        Self { shell: shell.clone(), repos: seen.map(row).collect() }
    }
}

/// One pull in a list.
pub struct Row {
    number: u64,
    title: String,
    badge: (&'static str, &'static str),
    author: String,
    when: String,
    comments: usize,
}

fn badge(pull: &Pull) -> (&'static str, &'static str) {
    match (pull.state, &pull.merged) {
        (_, Some(_)) => ("merged", "Merged"),
        (PullState::Draft, _) => ("draft", "Draft"),
        (PullState::Open, _) => ("open", "Open"),
        (PullState::Closed, _) => ("closed", "Closed"),
    }
}

/// A repository.
#[derive(Template)]
#[template(path = "sandbox/repo.html")]
pub struct RepoPage {
    shell: Shell,
    full: String,
    tab: String,
    open: usize,
    closed: usize,
    rows: Vec<Row>,
    files: Vec<Entry>,
}

impl RepoPage {
    /// Its pulls, open or closed, and the files of `main`.
    pub fn new(state: &State, shell: &Shell, full: &str, tab: &str) -> Answer<Self> {
        let repo = state.repo(full)?;
        let open = repo.pulls.values().filter(|pull| pull.is_open()).count();
        let shown = repo.pulls.values().rev().filter(|pull| pull.is_open() == (tab != "closed"));
        let rows = shown.map(|pull| Row {
            number: pull.number,
            title: pull.title.clone(),
            badge: badge(pull),
            author: pull.author.clone(),
            when: ago(&pull.created_at),
            comments: repo.comments.iter().filter(|comment| comment.number == pull.number).count(),
        });
        let rows = rows.collect();
        let list = repo.git.output(&["ls-tree", "-r", "-z", "-l", "main"], b"")?;
        let text = String::from_utf8_lossy(&list.stdout).into_owned();
        let files = text.split('\0').filter_map(|line| Entry::read(line, "")).collect();
        Ok(Self {
            shell: shell.clone(),
            full: repo.full_name(),
            tab: tab.to_owned(),
            open,
            closed: repo.pulls.len() - open,
            rows,
            files,
        })
    }
}

/// The head of a pull's pages.
pub struct Head {
    full: String,
    number: u64,
    title: String,
    badge: (&'static str, &'static str),
    author: String,
    base: String,
    branch: String,
    commits: usize,
    files: usize,
    talk: usize,
    revision: u64,
}

impl Head {
    fn new(state: &State, full: &str, number: u64) -> Answer<Self> {
        let repo = state.repo(full)?;
        let pull = repo.pull(number)?;
        let from = repo.git.merge_base(&pull.base_sha, &pull.head_sha).unwrap_or_else(|| pull.base_sha.clone());
        Ok(Self {
            full: repo.full_name(),
            number,
            title: pull.title.clone(),
            badge: badge(pull),
            author: pull.author.clone(),
            base: pull.base.clone(),
            branch: pull.head.clone(),
            commits: repo.git.between(&from, &pull.head_sha)?.len(),
            files: repo.git.changed(&from, &pull.head_sha)?.len(),
            talk: repo.comments.iter().filter(|comment| comment.number == number).count(),
            revision: state.revision,
        })
    }
}

/// A pull's conversation.
#[derive(Template)]
#[template(path = "sandbox/pull.html")]
pub struct PullPage {
    shell: Shell,
    head: Head,
    items: Vec<Item>,
    checks: Vec<Check>,
    reasons: Vec<String>,
    writes: bool,
    own: bool,
    /// What went wrong with the last deed.
    pub flash: String,
    /// What stood in the text box.
    pub draft_text: String,
}

impl PullPage {
    /// Everything about a pull.
    pub fn new(state: &mut State, shell: &Shell, full: &str, number: u64) -> Answer<Self> {
        // A person who looks should not have to look twice for the answer.
        state.depth(full, number)?;
        let depth = state.depth(full, number)?;
        let repo = state.repo(full)?;
        let pull = repo.pull(number)?;
        let mut reasons = missing(repo, pull);
        if depth.mergeable == Some(false) {
            reasons.insert(0, format!("This branch has conflicts with {} that must be resolved.", pull.base));
        }
        if pull.state == PullState::Draft {
            reasons.insert(0, "This pull is still a draft.".into());
        }
        let writes = repo.role(&shell.viewer) >= Role::Write;
        if !writes {
            reasons.push("Only those with write access can merge.".into());
        }
        Ok(Self {
            shell: shell.clone(),
            head: Head::new(state, full, number)?,
            items: conversation(repo, pull),
            checks: checks(repo, pull),
            reasons,
            writes,
            own: pull.author == shell.viewer,
            flash: String::new(),
            draft_text: String::new(),
        })
    }
    fn open(&self) -> bool {
        self.draft() || self.head.badge.0 == "open"
    }
    fn draft(&self) -> bool {
        self.head.badge.0 == "draft"
    }
    fn merged(&self) -> bool {
        self.head.badge.0 == "merged"
    }
    fn fails(&self) -> usize {
        self.checks.iter().filter(|check| check.kind == "bad").count()
    }
    fn waits(&self) -> usize {
        self.checks.iter().filter(|check| check.kind == "wait").count()
    }
}

/// The files that a pull changes.
#[derive(Template)]
#[template(path = "sandbox/files.html")]
pub struct FilesPage {
    shell: Shell,
    head: Head,
    files: Vec<(String, u64, u64, String)>,
}

impl FilesPage {
    /// From the merge base to the head.
    pub fn new(state: &State, shell: &Shell, full: &str, number: u64) -> Answer<Self> {
        let repo = state.repo(full)?;
        let pull = repo.pull(number)?;
        let from = repo.git.merge_base(&pull.base_sha, &pull.head_sha).unwrap_or_else(|| pull.base_sha.clone());
        let changed = repo.git.changed(&from, &pull.head_sha)?;
        let show = |file: &crate::sandbox::git::diff::Changed| {
            let name = file.previous.as_ref().map_or_else(|| file.path.clone(), |old| format!("{old} → {}", file.path));
            let lines = file.patch.as_deref().map(|patch| markdown::diff_lines(&escape(patch))).unwrap_or_default();
            (name, file.additions, file.deletions, lines)
        };
        Ok(Self {
            shell: shell.clone(),
            head: Head::new(state, full, number)?,
            files: changed.iter().map(show).collect(),
        })
    }
}

/// A check run.
#[derive(Template)]
#[template(path = "sandbox/run.html")]
pub struct RunPage {
    shell: Shell,
    full: String,
    id: u64,
    name: String,
    kind: &'static str,
    word: String,
    title: String,
    summary: String,
    text: String,
    writes: bool,
}

impl RunPage {
    /// With what the App said about it.
    pub fn new(state: &State, shell: &Shell, full: &str, id: u64) -> Answer<Self> {
        let repo = state.repo(full)?;
        let run = repo.runs.iter().find(|run| run.id == id).ok_or_else(Refusal::not_found)?;
        let [title, summary, text] = run.output.clone().map(Option::unwrap_or_default);
        Ok(Self {
            shell: shell.clone(),
            full: repo.full_name(),
            id,
            name: run.name.clone(),
            kind: kind_of(run),
            word: run.conclusion.clone().unwrap_or_else(|| run.status.clone()),
            title,
            summary: markdown::render(&summary),
            text: markdown::render(&text),
            writes: repo.role(&shell.viewer) >= Role::Write,
        })
    }
}

/// A page with a title and something below it.
#[derive(Template)]
#[template(path = "sandbox/text.html")]
pub struct TextPage {
    /// The header.
    pub shell: Shell,
    /// The title.
    pub title: String,
    /// Escaped HTML.
    pub html: String,
}
