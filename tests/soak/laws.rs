//! What must hold whenever all is at rest, read from what people see and from what is kept. It changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use tidegate::domain::ids::JobId;
use tidegate::domain::job::Phase;
use tidegate::domain::lock::{Cause, LockTable};
use tidegate::domain::pull::Pull;
use tidegate::domain::rollout::{ApplyRun, ApplyStage, PlanRun};
use tidegate::sandbox::PullState;

use crate::ctx::{KIM, LIN, REPO};
use crate::world::World;

const CHECKS: [&str; 2] = ["tidegate/plan", "tidegate/apply"];
/// What an apply check that is not over may wait for: somebody, or somebody else's pull.
const WAITS: [&str; 3] = ["waits for an approval", "is not typed yet", "Waits for the plan"];

/// Every law that does not hold.
pub async fn broken(world: &World) -> Vec<String> {
    let store = &world.ctx.app().store;
    let pulls = store.pulls().await.expect("pulls");
    let mut broken = Vec::new();
    for number in world.heads.keys() {
        notes(world, *number, &mut broken);
    }
    checks(world, &pulls, &mut broken);
    answers(world, &pulls, &mut broken);
    if let Some(pull) = pulls.first() {
        let table = store.locks(&pull.key.repo).await.expect("locks");
        locks(world, &table, &pulls, &mut broken);
    }
    for pull in &pulls {
        knows_its_head(world, pull, &mut broken);
        rests(pull, &mut broken);
        let ledger = store.ledger(&pull.key).await.expect("a ledger");
        approvals(world, pull, &ledger.into_iter().map(|(_, line)| line).collect::<Vec<_>>(), &mut broken);
    }
    applies(world, &mut broken).await;
    leftovers(world, &mut broken).await;
    broken
}

/// Everything that people see, one text each.
pub fn shown(world: &World) -> Vec<String> {
    let mut shown = Vec::new();
    for (number, heads) in &world.heads {
        for comment in world.ctx.sandbox.comments(REPO, *number).expect("comments") {
            shown.push(format!("#{number} {} {:?}", comment.body, comment.updated_at));
        }
        for head in heads {
            for run in world.ctx.sandbox.checks(REPO, head).expect("checks") {
                shown.push(format!("{head} {run:?}"));
            }
        }
    }
    shown
}

fn notes(world: &World, number: u64, broken: &mut Vec<String>) {
    let comments = world.ctx.sandbox.comments(REPO, number).expect("comments");
    let ours: Vec<&str> = comments
        .iter()
        .filter(|comment| comment.author.starts_with("tidegate"))
        .filter_map(|comment| comment.body.rfind("<!-- tidegate").map(|at| comment.body[at..].trim()))
        .collect();
    let each: BTreeSet<&str> = ours.iter().copied().collect();
    if each.len() != ours.len() {
        broken.push(format!("#{number} was told something twice: {ours:?}"));
    }
}

/// No check is left running, and none pending but where the pull waits for people.
fn checks(world: &World, pulls: &[Pull], broken: &mut Vec<String>) {
    for (number, heads) in &world.heads {
        let pull = world.ctx.sandbox.pull(REPO, *number).expect("a pull");
        for head in heads {
            let open = pull.is_open() && pull.head_sha == *head;
            for name in CHECKS {
                let shown = world.ctx.check_of(head, name);
                let pending = ["queued", "in_progress", "pending"].iter().any(|state| shown.starts_with(state));
                let blocked = shown.contains(" waits for #");
                let waits = open
                    && shown.starts_with("queued")
                    && (blocked || name == CHECKS[1] && WAITS.iter().any(|words| shown.contains(words)));
                let applied_in_part = open && name == CHECKS[1] && shown.ends_with(" applied");
                if pending && !waits && !applied_in_part || open && shown == "none" {
                    let known = pulls.iter().find(|known| known.key.number == *number);
                    let runs = known.and_then(|known| known.rollout.as_ref()).map(|rollout| &rollout.runs);
                    broken.push(format!("#{number} {head} {:?}: {name} is `{shown}`: {runs:#?}", pull.state));
                }
            }
        }
    }
}

/// What was asked for on an open pull was answered, by a reaction or by words.
fn answers(world: &World, pulls: &[Pull], broken: &mut Vec<String>) {
    for (id, number, by, text) in &world.commands {
        let known = pulls.iter().find(|pull| pull.key.number == *number);
        if !known.is_some_and(Pull::is_open) {
            continue;
        }
        let reactions = world.ctx.sandbox.reactions(REPO, *id).expect("reactions");
        if !reactions.iter().any(|reaction| reaction.login.starts_with("tidegate")) {
            broken.push(format!("#{number} {by}: `{text}` was not heard"));
        }
    }
}

fn knows_its_head(world: &World, pull: &Pull, broken: &mut Vec<String>) {
    let number = pull.key.number;
    let shown = world.ctx.sandbox.pull(REPO, number).expect("a pull");
    let Some(seen) = &pull.seen else { return broken.push(format!("#{number} was never looked at")) };
    if pull.is_open() != shown.is_open() {
        broken.push(format!("#{number} is {:?} and taken for {:?}", shown.state, seen.state));
    }
    if !pull.is_open() {
        return;
    }
    if seen.draft != (shown.state == PullState::Draft) || seen.head.as_str() != shown.head_sha {
        broken.push(format!("#{number} is {:?} at {}, and {seen:?}", shown.state, shown.head_sha));
    }
    let planned = pull.rollout.as_ref().map(|rollout| rollout.head.as_str());
    if planned != Some(&shown.head_sha) {
        broken.push(format!("#{number}: {planned:?} is planned, the head is {}", shown.head_sha));
    }
}

/// Nothing is under way.
fn rests(pull: &Pull, broken: &mut Vec<String>) {
    let number = pull.key.number;
    if !pull.retired.is_empty() {
        broken.push(format!("#{number}: an earlier head is kept"));
    }
    let Some(rollout) = &pull.rollout else { return };
    for run in rollout.runs.values() {
        if matches!(run.plan, PlanRun::Running { .. }) || matches!(run.apply, ApplyRun::Running { .. }) {
            broken.push(format!("#{number} {}: a job runs at rest", run.root));
        }
    }
    let stage = rollout.apply.as_ref().map(|apply| &apply.stage);
    if matches!(stage, Some(ApplyStage::Applying | ApplyStage::Planning))
        && !rollout.runs.values().any(|run| matches!(run.plan, PlanRun::Blocked(_)))
    {
        broken.push(format!("#{number}: {stage:?} at rest: {:?}", rollout.apply));
    }
}

/// Each lock has a reason, and whoever waits waits for somebody.
fn locks(world: &World, table: &LockTable, pulls: &[Pull], broken: &mut Vec<String>) {
    let known = |number: u64| pulls.iter().find(|pull| pull.key.number == number);
    for (state, lock) in &table.locks {
        let Some(holder) = &lock.holder else {
            broken.push(format!("{} is held by nobody and {:?} wait for it", lock.root, lock.queue));
            continue;
        };
        let Some(pull) = known(holder.pull).filter(|pull| pull.is_open()) else {
            broken.push(format!("{} is locked by #{}, which is over", lock.root, holder.pull));
            continue;
        };
        let rollout = pull.rollout.as_ref();
        let run = rollout.and_then(|rollout| rollout.runs.values().find(|run| run.state == *state));
        let reason = match &holder.cause {
            Cause::Asked(_) => true,
            Cause::Apply => {
                pull.touched.contains(state)
                    || rollout.and_then(|it| it.apply.as_ref()).is_some_and(|apply| apply.stage != ApplyStage::Done)
                    // An apply of an earlier head took it, and this head has something to apply as well.
                    || run.is_some_and(|run| run.lacks_plan() || run.changes_something())
            }
            Cause::Plan => {
                let draft = pull.seen.as_ref().is_some_and(|seen| seen.draft);
                let works =
                    run.is_some_and(|run| run.lacks_plan() || run.changes_something() || !run.replans_after.is_empty());
                world.config.contains("locks: plan") && !draft && (works || pull.touched.contains(state))
            }
        };
        if !reason {
            broken.push(format!(
                "{} is locked by {holder:?} without a reason: {:?}",
                lock.root,
                run.map(|run| &run.plan)
            ));
        }
        for waiting in &lock.queue {
            let waits = known(*waiting).filter(|pull| pull.is_open()).and_then(|pull| pull.rollout.as_ref());
            let run = waits.and_then(|rollout| rollout.runs.values().find(|run| run.state == *state));
            if !run
                .is_some_and(|run| matches!(run.plan, PlanRun::Blocked(_) | PlanRun::Queued) || run.changes_something())
            {
                broken.push(format!("#{waiting} stands in the line for {} and does not want it: {run:?}", lock.root));
            }
        }
    }
    for pull in pulls.iter().filter(|pull| pull.is_open()) {
        for run in pull.rollout.iter().flat_map(|rollout| rollout.runs.values()) {
            let blocked = matches!(run.plan, PlanRun::Blocked(_));
            if blocked && table.blocked(pull.key.number, std::slice::from_ref(&run.state)).is_empty() {
                broken.push(format!("#{} {} waits, and nobody is in the way", pull.key.number, run.root));
            }
        }
    }
}

/// No apply without an approval that stood when it began, by somebody who may give it.
fn approvals(world: &World, pull: &Pull, ledger: &[String], broken: &mut Vec<String>) {
    let number = pull.key.number;
    let author = world.ctx.sandbox.pull(REPO, number).expect("a pull").author;
    let mut standing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in ledger {
        if let Some((by, rest)) = line.split_once(" approves ") {
            let digest = rest.split(' ').nth(1).unwrap_or_default();
            standing.entry(digest.to_owned()).or_default().insert(by.to_owned());
        } else if let Some((by, _)) = line.split_once(" takes back ") {
            standing.values_mut().for_each(|names| {
                names.remove(by);
            });
        } else if let Some((_, rest)) = line.split_once(" uses ") {
            let (digest, by) = rest.split_once(" on the approval of ").unwrap_or_default();
            if by.starts_with("the policy") {
                if !world.config.contains("gate:") {
                    broken.push(format!("#{number} applied without an approval: {line}"));
                }
                continue;
            }
            for name in by.split(", ") {
                let stands = standing.get(digest).is_some_and(|names| names.contains(name));
                if !stands && !world.config.contains("pr-review") {
                    broken.push(format!("#{number}: {line}, which was never given: {ledger:#?}"));
                }
                if ![LIN, KIM].contains(&name) || name == author {
                    broken.push(format!("#{number} of {author}: {line}"));
                }
            }
        }
    }
}

/// Each apply job ran its root once.
async fn applies(world: &World, broken: &mut Vec<String>) {
    let log = std::fs::read_to_string(world.ctx.states().join("applied.log")).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let store = &world.ctx.app().store;
    for line in log.lines() {
        let job = line.split('/').find_map(|part| part.strip_suffix(".job"));
        let Some(id) = job else { return broken.push(format!("no job applied {line}")) };
        if !seen.insert(id) {
            broken.push(format!("job {id} applied twice"));
        }
        let Some(job) = store.job(&JobId::new(id)).await.expect("a job") else {
            broken.push(format!("job {id} is unknown"));
            continue;
        };
        let ledger = store.ledger(&job.pull).await.expect("a ledger");
        if job.spec.phase != Phase::Apply || !ledger.iter().any(|(_, line)| line.contains(" uses ")) {
            broken.push(format!("job {id} had no leave to apply: {:?}, {ledger:?}", job.spec.phase));
        }
    }
}

/// A job that ended leaves nothing behind. The one that an earlier server started is looked at now and then.
async fn leftovers(world: &World, broken: &mut Vec<String>) {
    let dir = world.ctx.data_dir().join("jobs/work");
    let left =
        || std::fs::read_dir(&dir).expect("a folder").filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>();
    for _ in 0..500 {
        if left().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    broken.push(format!("{:?} was left behind", left()));
}
