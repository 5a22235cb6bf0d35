//! What every store must do, as functions over an open store: the same on each engine. It opens no
//! database itself.

use std::sync::Arc;

mod beside;
mod jobs;
mod kept;
mod outbox;

pub use beside::*;
pub use jobs::*;
pub use kept::*;
pub use outbox::*;

use tidegate::domain::config::ToolKind;
use tidegate::domain::effect::{Act, Effect, Reaction};
use tidegate::domain::event::Event;
use tidegate::domain::ids::{JobId, Login, PullKey, RepoKey, RootKey, Sha, StateKey, Timestamp};
use tidegate::domain::job::{JobSpec, Phase, StateLock, VERSION};
use tidegate::domain::lock::{Cause, Holder, Lock, LockTable, Unsaved};
use tidegate::domain::pull::Pull;
use tidegate::ports::store::{Accepted, Commit, Next, Pending, Queued, Received, Store, StoreError};
use tidegate::store::SqlStore;

/// Makes one test of each function, each on a database of its own.
#[macro_export]
macro_rules! store_contract {
    ($open:path) => {
        $crate::store_contract!(@ $open;
            prepares_every_text, loads_what_it_committed, lets_one_of_two_writers_win, refuses_moved_locks,
            commits_nothing_of_a_moved_turn, ends_an_event_once, takes_a_delivery_once, keeps_the_order_of_a_pull,
            keeps_lanes_apart, replaces_what_is_not_done, reopens_what_is_done, keeps_a_receipt_for_newer_content,
            skips_what_is_done_already, waits_as_told, never_waits_longer_for_each_edit, gives_a_job_to_one_process,
            ends_a_job_once, keeps_logs_once, keeps_binaries, keeps_the_ledger, sweeps_what_is_over,
            finds_pulls_by_the_states_they_have_to_do_with, finds_open_pulls_of_a_repository,
            finds_readers_in_other_repositories, looks_again_at_reads_after_a_push,
            keeps_what_the_installation_has, knows_the_newest_delivery_of_a_forge);
    };
    (@ $open:path; $($name:ident),*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let opened = $open().await;
                $crate::contract::$name(opened.store()).await;
            }
        )*
    };
}

/// An open store and what must stay alive with it.
pub struct Opened<G> {
    store: Arc<SqlStore>,
    _guard: G,
}

impl<G> Opened<G> {
    /// Opens `url`.
    pub async fn at(url: &str, guard: G) -> Self {
        Self { store: Arc::new(SqlStore::open(url).await.expect("the store opens")), _guard: guard }
    }

    /// The store.
    pub fn store(&self) -> Arc<SqlStore> {
        self.store.clone()
    }
}

/// A pull's key.
pub fn key(number: u64) -> PullKey {
    PullKey { repo: RepoKey { forge: "github".to_owned(), id: 12 }, number }
}

/// A time.
pub fn at(ms: i64) -> Timestamp {
    Timestamp(ms)
}

/// A turn of the pull that writes nothing but the pull.
pub fn turn(number: u64, version: i64) -> Commit {
    Commit {
        pull: Pull::unseen(key(number), "org/infra", at(0)),
        version,
        locks: None,
        locks_version: 0,
        event: None,
        effects: Vec::new(),
        events: Vec::new(),
        ledger: Vec::new(),
        jobs: Vec::new(),
        interests: None,
        at: at(100),
    }
}

pub(crate) fn look(what: &str) -> Event {
    Event::Look(what.to_owned())
}

/// A comment of ours in its slot.
pub fn say(slot: &str, body: &str) -> Effect {
    Effect {
        slot: slot.to_owned(),
        not_before: None,
        act: Act::Comment { marker: "<!-- m -->".to_owned(), body: body.to_owned() },
    }
}

pub(crate) fn start(job: &str) -> Effect {
    Effect { slot: format!("job:{job}"), not_before: None, act: Act::StartJob { job: JobId::new(job) } }
}

pub(crate) fn spec(id: &str) -> JobSpec {
    JobSpec {
        version: VERSION,
        id: JobId::new(id),
        phase: Phase::Plan,
        root: RootKey::in_workspace("envs/prod", "blue"),
        head: Sha::new("a".repeat(40)),
        tree: Sha::new("b".repeat(40)),
        tool: Some(ToolKind::Tofu),
        tool_version: None,
        asked_by: Default::default(),
        var_files: vec!["../é.tfvars".to_owned()],
        backend_config: Vec::new(),
        args: Vec::new(),
        plan_of: None,
        source: String::new(),
        state_lock: StateLock::Off,
        linked: vec![],
        sources: vec![],
    }
}

fn locks(pull: u64) -> LockTable {
    let holder = Holder { pull, by: Login::new("ann"), since: at(1), cause: Cause::Apply };
    let lock = Lock { root: RootKey::new("a"), holder: Some(holder), queue: vec![9] };
    let unsaved = Unsaved { root: RootKey::new("net"), job: "j".into(), pull, since: Timestamp(3) };
    LockTable {
        locks: [(StateKey::new("s3:b/k#default"), lock)].into(),
        unsaved: [(StateKey::new("http:x"), unsaved)].into(),
    }
}

pub(crate) async fn put(store: &SqlStore, version: i64, effects: Vec<Effect>) {
    store.commit(&Commit { effects, ..turn(1, version) }).await.expect("a commit");
}

pub(crate) async fn due(store: &SqlStore, now: i64) -> Vec<Pending> {
    store.due_effects(at(now)).await.expect("effects")
}

pub(crate) async fn slots(store: &SqlStore, now: i64) -> Vec<String> {
    due(store, now).await.into_iter().map(|pending| pending.effect.slot).collect()
}

/// The body of the comment to write.
pub fn body(pending: &Pending) -> &str {
    match &pending.effect.act {
        Act::Comment { body, .. } => body,
        other => panic!("no comment: {other:?}"),
    }
}

pub(crate) async fn done(store: &SqlStore, pending: &Pending, receipt: Option<&str>) {
    store.begin_effect(pending).await.expect("it begins");
    let next = Next::Done(receipt.map(str::to_owned));
    store.finish_effect(pending, &next, at(200)).await.expect("it ends");
}

pub(crate) async fn events(store: &SqlStore, now: i64) -> Vec<Queued> {
    store.due_events(at(now)).await.expect("events")
}

async fn heads(store: &SqlStore, now: i64) -> Vec<(u64, String)> {
    let found = events(store, now).await;
    found
        .into_iter()
        .map(|queued| match queued.event {
            Event::Look(what) => (queued.pull.number, what),
            other => panic!("unexpected {other:?}"),
        })
        .collect()
}

pub async fn prepares_every_text(store: Arc<SqlStore>) {
    assert!(store.check_statements().await.expect("every text fits the schema") > 30);
    store.ping().await.expect("it answers");
}

pub async fn loads_what_it_committed(store: Arc<SqlStore>) {
    let loaded = store.load(&key(1)).await.expect("nothing yet");
    assert!(loaded.pull.is_none());
    assert_eq!((loaded.version, loaded.locks_version), (0, 0));

    let mut commit = Commit { locks: Some(locks(1)), ..turn(1, 0) };
    commit.pull.comments = vec![u64::MAX, 7];
    store.commit(&commit).await.expect("the first");
    let loaded = store.load(&key(1)).await.expect("a pull");
    assert_eq!(loaded.pull.as_ref(), Some(&commit.pull));
    assert_eq!((loaded.version, loaded.locks, loaded.locks_version), (1, locks(1), 1));
    assert_eq!(store.locks(&key(1).repo).await.expect("locks"), locks(1));

    store.commit(&Commit { at: at(300), ..turn(2, 0) }).await.expect("another pull");
    store.commit(&Commit { locks: Some(locks(2)), locks_version: 1, ..turn(1, 1) }).await.expect("the second");
    let loaded = store.load(&key(1)).await.expect("a pull");
    assert_eq!((loaded.version, loaded.locks_version, loaded.locks), (2, 2, locks(2)));
    let numbers: Vec<u64> = store.pulls().await.expect("pulls").iter().map(|pull| pull.key.number).collect();
    assert_eq!(numbers, [2, 1]);
}

pub async fn lets_one_of_two_writers_win(store: Arc<SqlStore>) {
    for version in 0..3 {
        let racers = (0..4).map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(&turn(1, version)).await })
        });
        let mut won = 0;
        for racer in racers.collect::<Vec<_>>() {
            match racer.await.expect("no panic") {
                Ok(()) => won += 1,
                Err(StoreError::Moved) => {}
                Err(other) => panic!("unexpected {other:?}"),
            }
        }
        assert_eq!(won, 1, "at version {version}");
    }
}

pub async fn refuses_moved_locks(store: Arc<SqlStore>) {
    store.commit(&Commit { locks: Some(locks(1)), ..turn(1, 0) }).await.expect("the first");
    for stale in [0, 2] {
        let other = Commit { locks: Some(locks(2)), locks_version: stale, ..turn(2, 0) };
        assert!(matches!(store.commit(&other).await, Err(StoreError::Moved)), "at {stale}");
    }
    assert!(store.load(&key(2)).await.expect("loads").pull.is_none());
    assert_eq!(store.locks(&key(1).repo).await.expect("locks"), locks(1));
    store.commit(&turn(2, 0)).await.expect("who writes no locks does not mind");
}

pub async fn commits_nothing_of_a_moved_turn(store: Arc<SqlStore>) {
    store.commit(&turn(1, 0)).await.expect("the first");
    store.enqueue(&[(key(1), look("first"))], at(1)).await.expect("queued");
    let id = events(&store, 9).await[0].id;
    let stale = Commit {
        event: Some(id),
        effects: vec![say("note", "x")],
        events: vec![(key(2), look("other"))],
        ledger: vec!["line".to_owned()],
        jobs: vec![spec("j1")],
        ..turn(1, 0)
    };
    assert!(matches!(store.commit(&stale).await, Err(StoreError::Moved)));
    assert_eq!(heads(&store, 9).await, [(1, "first".to_owned())]);
    assert!(due(&store, 9).await.is_empty());
    assert!(store.ledger(&key(1)).await.expect("ledger").is_empty());
    assert!(store.job(&JobId::new("j1")).await.expect("job").is_none());
}

pub async fn ends_an_event_once(store: Arc<SqlStore>) {
    store.enqueue(&[(key(1), look("a")), (key(1), look("a"))], at(1)).await.expect("queued");
    let first = events(&store, 9).await.remove(0);
    store.commit(&Commit { event: Some(first.id), ..turn(1, 0) }).await.expect("done with the turn");
    assert_ne!(events(&store, 9).await[0].id, first.id, "the same text again is another event");
    let again = Commit { event: Some(first.id), ..turn(1, 1) };
    assert!(matches!(store.commit(&again).await, Err(StoreError::Moved)));
    let retry = Next::Retry { at: at(5), why: "late".to_owned() };
    store.finish_event(first.id, &retry).await.expect("ignored");
    assert_ne!(events(&store, 9).await[0].id, first.id, "what is done stays done");
}

pub async fn takes_a_delivery_once(store: Arc<SqlStore>) {
    let received = Received {
        forge: "github".to_owned(),
        id: "d-1".to_owned(),
        name: "pull_request".to_owned(),
        ignored: None,
        events: vec![(key(1), look("a")), (key(2), look("b"))],
        at: at(1),
    };
    let tasks = (0..5).map(|_| {
        let (store, received) = (store.clone(), received.clone());
        tokio::spawn(async move { store.accept(&received).await })
    });
    let mut new = 0;
    for task in tasks.collect::<Vec<_>>() {
        new += usize::from(task.await.expect("no panic").expect("it answers") == Accepted::New);
    }
    assert_eq!(new, 1);
    assert_eq!(heads(&store, 9).await, [(1, "a".to_owned()), (2, "b".to_owned())]);
    let other = Received { forge: "other".to_owned(), ignored: Some("odd\0".to_owned()), events: vec![], ..received };
    assert_eq!(store.accept(&other).await.expect("another forge may use the same id"), Accepted::New);
}

pub async fn keeps_the_order_of_a_pull(store: Arc<SqlStore>) {
    let queue = [(key(1), look("1a")), (key(1), look("1b")), (key(2), look("2a"))];
    store.enqueue(&queue, at(1)).await.expect("queued");
    let head = events(&store, 10).await.remove(0);
    let retry = Next::Retry { at: at(50), why: "no answer".to_owned() };
    store.finish_event(head.id, &retry).await.expect("later");
    assert_eq!(heads(&store, 10).await, [(2, "2a".to_owned())], "the head holds up its own pull only");
    assert_eq!(store.next_due(at(10)).await.expect("a time"), Some(at(50)));
    let again = events(&store, 50).await.remove(0);
    assert_eq!((again.id, again.attempts), (head.id, 1));
    assert_eq!(store.next_due(at(50)).await.expect("no time"), None);
    store.finish_event(head.id, &Next::GaveUp("never".to_owned())).await.expect("given up");
    assert_eq!(heads(&store, 50).await, [(1, "1b".to_owned()), (2, "2a".to_owned())]);
    let next = events(&store, 50).await.remove(0);
    store.finish_event(next.id, &Next::Done(None)).await.expect("done");
    assert_eq!(heads(&store, 50).await, [(2, "2a".to_owned())]);
}

pub async fn keeps_the_ledger(store: Arc<SqlStore>) {
    let lines = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    store.commit(&Commit { ledger: lines(&["z", "a"]), ..turn(1, 0) }).await.expect("two lines");
    store.commit(&Commit { ledger: lines(&["other"]), ..turn(2, 0) }).await.expect("another pull's");
    store.commit(&Commit { ledger: lines(&["m"]), at: at(90), ..turn(1, 1) }).await.expect("a line");
    let found = store.ledger(&key(1)).await.expect("lines");
    let told: Vec<(i64, &str)> = found.iter().map(|(time, line)| (time.0, line.as_str())).collect();
    assert_eq!(told, [(100, "z"), (100, "a"), (90, "m")]);
}

pub async fn sweeps_what_is_over(store: Arc<SqlStore>) {
    let react = Effect {
        slot: "react:1".to_owned(),
        not_before: None,
        act: Act::React { comment: 1, reaction: Reaction::Eyes },
    };
    put(&store, 0, vec![react, say("note", "one"), say("reply", "open")]).await;
    for receipt in [None, Some("c1")] {
        let head = due(&store, 9).await.remove(0);
        done(&store, &head, receipt).await;
    }
    store.enqueue(&[(key(1), look("done")), (key(1), look("open"))], at(1)).await.expect("queued");
    let head = events(&store, 9).await.remove(0);
    store.finish_event(head.id, &Next::Done(None)).await.expect("done");
    assert_eq!(store.sweep_done(at(1)).await.expect("nothing is that old"), 0);
    assert_eq!(store.sweep_done(at(1_000)).await.expect("a sweep"), 2, "the reaction and the event");
    assert_eq!(heads(&store, 9).await, [(1, "open".to_owned())]);
    assert_eq!(slots(&store, 9).await, ["reply"]);
    put(&store, 1, vec![say("note", "two")]).await;
    let reply = due(&store, 9).await.remove(0);
    done(&store, &reply, None).await;
    assert_eq!(due(&store, 9).await[0].receipt.as_deref(), Some("c1"), "the note is still to be edited");
}
