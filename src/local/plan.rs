//! `tidegate plan`: the roots that the working tree reaches beyond its base, planned by the tool itself in a copy, and the note as a pull
//! request would get it. It takes no lock, applies nothing and never writes into the user's tree.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tree::Ground;
use super::{LocalError, parse, walk, worktree};
use crate::domain::config::{self, RepoConfig};
use crate::domain::decide::{Facts, Server, decide};
use crate::domain::digest::{self, Bound};
use crate::domain::estate::Estate;
use crate::domain::event::{Event, Inspection, Outcome};
use crate::domain::ids::{PullKey, RepoKey, Sha, Timestamp};
use crate::domain::inspect::{Trees, inspect};
use crate::domain::job::{Failure, JobSpec, StateLeft};
use crate::domain::lock::LockTable;
use crate::domain::managed::Managed;
use crate::domain::note::{self, Context};
use crate::domain::page::Pages;
use crate::domain::plan;
use crate::domain::pull::{Pull, PullState, Seen};
use crate::domain::rollout::{PlanRun, Planned, Rollout, Tool};
use crate::domain::secret::Secrets;
use crate::domain::tree::{Entry, EntryKind, Listing};
use crate::ports::clock::{Clock, SystemClock};
use crate::runner;

/// What to plan.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// Where the user stands.
    pub here: &'a Path,
    /// What the work is compared with; by default the default branch.
    pub base: Option<&'a str>,
    /// The user's environment, credentials included.
    pub environment: BTreeMap<String, String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The note, in Markdown.
    pub note: String,
    /// Whether every root could be planned.
    pub complete: bool,
}

/// Plans; `tell` hears what is being planned.
pub async fn plan(wish: &Wish<'_>, tell: &mut (dyn FnMut(&str) + Send)) -> Result<Answer, LocalError> {
    let top = walk::top(wish.here).ok_or_else(|| {
        LocalError::Git(
            "`plan` compares with a commit, and this is no git repository. `tidegate graph` needs none.".to_owned(),
        )
    })?;
    let work = tempfile::Builder::new().prefix("tidegate-plan-").tempdir();
    let work = work.map_err(|error| LocalError::Io("no temporary directory can be made", error))?;
    let base = worktree::merge_base(&top, wish.base)?;
    let mut ground = Ground::of(&top)?;
    // As on a pull request: a change cannot loosen its own rule.
    ground.config = config_at(&top, &base)?;
    let estate = ground.survey();
    let (head, changed) = (worktree::head(&top)?, worktree::changed(&top, &base)?);
    let base_estate = base_estate(&top, &base, &work.path().join("base"), &ground.config);
    let (head, base) = (Sha::new(head), Sha::new(base));
    let trees = Trees {
        head: &head,
        base: &base,
        tree: &head,
        undiverged: true,
        committers: Vec::new(),
        listing: &ground.listing,
        base_listing: &before(&ground.listing, &changed),
        estate: &estate,
        base_estate: &base_estate,
    };
    let inspection = match inspect(&trees, &ground.config) {
        Ok(inspection) => inspection,
        Err(refusal) => {
            return Ok(Answer { note: format!("### {}\n\n{}\n", refusal.title, refusal.text), complete: false });
        }
    };
    if inspection.roots.is_empty() {
        return Ok(Answer { note: nothing(&inspection, changed.len()), complete: true });
    }
    let copy = work.path().join("tree");
    copy_tree(&ground, &estate, &copy)?;
    let session = Session { wish, copy, scratch: work.path().to_owned(), estate: Arc::new(estate) };
    session.run(inspection, tell).await
}

fn config_at(top: &Path, commit: &str) -> Result<RepoConfig, LocalError> {
    let Some(bytes) = worktree::file_at(top, commit, config::FILE) else { return Ok(RepoConfig::default()) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    config::parse(&text).map_err(|problems| {
        let all: Vec<String> =
            problems.iter().map(|problem| format!("line {}: {}", problem.line, problem.what)).collect();
        LocalError::Config(format!("{} (as it is in the base commit)", all.join(" ")))
    })
}

/// The estate of the base, for roots that leave. Without it nothing is said of them, and all else stays.
fn base_estate(top: &Path, commit: &str, place: &Path, config: &RepoConfig) -> Estate {
    if worktree::check_out(top, commit, place).is_err() {
        return Estate::default();
    }
    let Ok(mut base) = Ground::of(place) else { return Estate::default() };
    base.config = config.clone();
    base.survey()
}

/// A listing that differs from this one in exactly these paths.
fn before(listing: &Listing, changed: &[String]) -> Listing {
    let mut base = listing.clone();
    for path in changed {
        let other = Entry { kind: EntryKind::File, blob: "another".to_owned(), size: 0 };
        base.entries.insert(path.clone(), other);
    }
    base
}

fn nothing(inspection: &Inspection, changed: usize) -> String {
    let mut note = format!("### No root is reached by {}\n", super::files(changed));
    for notice in &inspection.notices {
        note.push('\n');
        note.push_str(notice);
        note.push('\n');
    }
    note
}

/// Copies what git would keep, and the local states that roots own, so that the tool works on the applied state.
fn copy_tree(ground: &Ground, estate: &Estate, copy: &Path) -> Result<(), LocalError> {
    let failed = |error| LocalError::Io("the tree cannot be copied", error);
    for (path, entry) in &ground.listing.entries {
        let (from, to) = (ground.top.join(path), copy.join(path));
        if entry.kind == EntryKind::Submodule {
            continue;
        }
        if let Some(dir) = to.parent() {
            std::fs::create_dir_all(dir).map_err(failed)?;
        }
        if entry.kind == EntryKind::Link {
            let Ok(target) = std::fs::read_link(&from) else { continue };
            std::os::unix::fs::symlink(target, &to).map_err(failed)?;
        } else {
            // A file that cannot be read is a hole already, and the tool will say what it misses.
            let _ = std::fs::copy(&from, &to);
        }
    }
    let states = estate.roots.iter().filter_map(|root| root.state.as_str().strip_prefix("local:"));
    for state in states.filter(|state| !state.starts_with('/') && !state.starts_with("..")) {
        let (from, to) = (ground.top.join(state), copy.join(state));
        if from.is_file() && !to.exists() {
            std::fs::create_dir_all(to.parent().unwrap_or(copy)).map_err(failed)?;
            std::fs::copy(&from, &to).map_err(failed)?;
        }
    }
    Ok(())
}

/// The turns of a pull request that never was: the same decisions, on the results of the tool.
struct Session<'a> {
    wish: &'a Wish<'a>,
    copy: PathBuf,
    scratch: PathBuf,
    estate: Arc<Estate>,
}

impl Session<'_> {
    async fn run(&self, inspection: Inspection, tell: &mut (dyn FnMut(&str) + Send)) -> Result<Answer, LocalError> {
        let mut pull =
            Pull::unseen(PullKey { repo: RepoKey { forge: "local".to_owned(), id: 0 }, number: 0 }, "local", now());
        let seen = self.seen(&inspection);
        let mut jobs = VecDeque::new();
        // What is a secret in one root is one in those that read it, where it bears no mark.
        let mut known = Secrets::default();
        let mut events = VecDeque::from([Event::Seen(Box::new(seen)), Event::Inspected(Box::new(inspection))]);
        loop {
            while let Some(event) = events.pop_front() {
                let decision = decide(&pull, &self.facts(), &event);
                pull = decision.pull;
                jobs.extend(decision.jobs);
            }
            let Some(job) = jobs.pop_front() else { break };
            tell(&format!("planning {}", job.root));
            let outcome = Box::new(self.plan(&job, &mut known).await);
            events.push_back(Event::JobEnded { job: job.id, outcome });
        }
        let rollout = pull.rollout.clone().ok_or_else(|| LocalError::Git("nothing was decided".to_owned()))?;
        let complete = !rollout.runs.values().any(|run| matches!(run.plan, PlanRun::Failed { .. }));
        Ok(Answer { note: written(&pull, &rollout), complete })
    }

    fn seen(&self, inspection: &Inspection) -> Seen {
        Seen {
            repo: "local".to_owned(),
            head: inspection.head.clone(),
            base_ref: self.wish.base.unwrap_or("base").to_owned(),
            base: inspection.base.clone(),
            author: "you".into(),
            title: String::new(),
            state: PullState::Open,
            draft: false,
            fork: false,
            mergeable: None,
            updated: now(),
        }
    }

    fn facts(&self) -> Facts {
        Facts {
            interested: Vec::new(),
            foreign: Vec::new(),
            now: now(),
            locks: LockTable::default(),
            fresh: None,
            permission: None,
            base_tip: None,
            teams: BTreeMap::new(),
            reviews: None,
            estate: Some(Arc::clone(&self.estate)),
            server: Server {
                login: "tidegate".to_owned(),
                pages: Pages::new("", b"local"),
                comment_limit: usize::MAX,
                edit_gap_ms: 1,
                parallelism: 1,
                // Who plans on one's own machine manages it.
                managed: Managed::default(),
                cross_repo: crate::domain::outside::CrossRepo::Off,
            },
        }
    }

    async fn plan(&self, spec: &JobSpec, known: &mut Secrets) -> Outcome {
        let bench =
            runner::local::Bench { tree: &self.copy, scratch: &self.scratch, environment: &self.wish.environment };
        let mut secrets = known.clone();
        let planned = runner::local::plan(spec, &bench, &mut secrets).await;
        known.extend_from_abroad(&secrets);
        match planned {
            Ok((tool, json)) => read(spec, tool, &json, &secrets),
            Err(failure) => failed(failure),
        }
    }
}

fn read(spec: &JobSpec, tool: Tool, json: &[u8], secrets: &Secrets) -> Outcome {
    let bound = Bound { root: &spec.root, tool: &tool, source: &spec.source, args: &spec.args };
    // The digest approves nothing here; it only has to differ from root to root.
    let digest = digest::of_plan(json, &bound, b"local");
    let made = plan::parse_knowing(json, secrets).and_then(|plan| Ok((plan, digest?)));
    match made {
        Ok((plan, digest)) => Outcome::Planned(Planned {
            job: spec.id.clone(),
            plan,
            digest,
            tool,
            at: now(),
            took_ms: 0,
            fell_back: Vec::new(),
            since: None,
        }),
        Err(error) => failed(Failure {
            step: "show".to_owned(),
            summary: "The plan cannot be read".to_owned(),
            detail: error.to_string(),
            ..Failure::default()
        }),
    }
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed { failure, resources: Vec::new(), errored_state: StateLeft::Nothing }
}

/// The note without what only a server has: the link to a page, and what to type next.
fn written(pull: &Pull, rollout: &Rollout) -> String {
    let (waves, waits) =
        rollout.standing.iter().map(|standing| (standing.state.clone(), standing.waits.clone())).unzip();
    let context = Context { url: String::new(), limit: usize::MAX, now: now(), waves, waits };
    let note = parse::deep(|| note::note(pull, rollout, &context)).unwrap_or_default();
    // The last block says what to type on a pull request.
    let note = note.rfind("\n\n**Next:** ").map_or(note.as_str(), |at| &note[..at]);
    format!("{}\n", note.replace(" · [run]()", "").replace("[full log]()", ""))
}

fn now() -> Timestamp {
    SystemClock.now()
}
