//! What every store must do, as functions over an open store: the same on each engine. It opens no
//! database itself.

use std::sync::Arc;

use tidegate::domain::config::ToolKind;
use tidegate::domain::effect::{Act, Effect, Reaction};
use tidegate::domain::event::Event;
use tidegate::domain::ids::{JobId, Login, PullKey, RepoKey, RootKey, Sha, StateKey, Timestamp};
use tidegate::domain::job::{JobSpec, Phase, StateLock, VERSION};
use tidegate::domain::lock::{Cause, Holder, Lock, LockTable};
use tidegate::domain::pull::Pull;
use tidegate::ports::store::{
    Accepted, Blob, Commit, JobState, LogLine, Next, Pending, Queued, Received, Store, StoreError,
};
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
            ends_a_job_once, keeps_logs_once, keeps_binaries, keeps_the_ledger, sweeps_what_is_over);
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
        pull: Pull::unseen(key(number), "org/infra"),
        version,
        locks: None,
        locks_version: 0,
        event: None,
        effects: Vec::new(),
        events: Vec::new(),
        ledger: Vec::new(),
        jobs: Vec::new(),
        at: at(100),
    }
}

fn look(what: &str) -> Event {
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

fn start(job: &str) -> Effect {
    Effect { slot: format!("job:{job}"), not_before: None, act: Act::StartJob { job: JobId::new(job) } }
}

fn spec(id: &str) -> JobSpec {
    JobSpec {
        version: VERSION,
        id: JobId::new(id),
        phase: Phase::Plan,
        root: RootKey::in_workspace("envs/prod", "blue"),
        head: Sha::new("a".repeat(40)),
        tree: Sha::new("b".repeat(40)),
        tool: Some(ToolKind::Tofu),
        tool_version: None,
        var_files: vec!["../é.tfvars".to_owned()],
        backend_config: Vec::new(),
        args: Vec::new(),
        state_lock: StateLock::Off,
    }
}

fn locks(pull: u64) -> LockTable {
    let holder = Holder { pull, by: Login::new("ann"), since: at(1), cause: Cause::Apply };
    let lock = Lock { root: RootKey::new("a"), holder: Some(holder), queue: vec![9] };
    LockTable { locks: [(StateKey::new("s3:b/k#default"), lock)].into() }
}

async fn put(store: &SqlStore, version: i64, effects: Vec<Effect>) {
    store.commit(&Commit { effects, ..turn(1, version) }).await.expect("a commit");
}

async fn due(store: &SqlStore, now: i64) -> Vec<Pending> {
    store.due_effects(at(now)).await.expect("effects")
}

async fn slots(store: &SqlStore, now: i64) -> Vec<String> {
    due(store, now).await.into_iter().map(|pending| pending.effect.slot).collect()
}

/// The body of the comment to write.
pub fn body(pending: &Pending) -> &str {
    match &pending.effect.act {
        Act::Comment { body, .. } => body,
        other => panic!("no comment: {other:?}"),
    }
}

async fn done(store: &SqlStore, pending: &Pending, receipt: Option<&str>) {
    store.begin_effect(pending).await.expect("it begins");
    let next = Next::Done(receipt.map(str::to_owned));
    store.finish_effect(pending, &next, at(200)).await.expect("it ends");
}

async fn events(store: &SqlStore, now: i64) -> Vec<Queued> {
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

pub async fn keeps_lanes_apart(store: Arc<SqlStore>) {
    put(&store, 0, vec![say("a", "1"), say("b", "1"), start("x"), start("y")]).await;
    assert_eq!(slots(&store, 9).await, ["a", "job:x"]);
    let first = due(&store, 9).await.remove(0);
    assert_eq!((first.repo.as_str(), first.generation, first.attempts), ("org/infra", 1, 0));
    store.begin_effect(&first).await.expect("begins");
    let retry = Next::Retry { at: at(50), why: "502".to_owned() };
    store.finish_effect(&first, &retry, at(9)).await.expect("later");
    assert_eq!(slots(&store, 9).await, ["job:x"], "a lane waits for its head, other lanes do not");
    let job = due(&store, 9).await.remove(0);
    done(&store, &job, None).await;
    assert_eq!(slots(&store, 9).await, ["job:y"]);
    let first = due(&store, 50).await.remove(0);
    assert_eq!((first.effect.slot.as_str(), first.attempts), ("a", 1));
    store.finish_effect(&first, &Next::GaveUp("422".to_owned()), at(60)).await.expect("given up");
    assert_eq!(slots(&store, 50).await, ["b", "job:y"]);
}

pub async fn replaces_what_is_not_done(store: Arc<SqlStore>) {
    put(&store, 0, vec![say("note", "old"), say("reply", "r")]).await;
    let old = due(&store, 9).await.remove(0);
    put(&store, 1, vec![say("note", "new")]).await;
    let found = due(&store, 9).await;
    assert_eq!(found.len(), 1, "it keeps its place before the reply");
    assert_eq!((body(&found[0]), found[0].generation, found[0].id), ("new", 2, old.id));
    assert!(matches!(store.begin_effect(&old).await, Err(StoreError::Moved)), "the old content is not performed");
    done(&store, &found[0], Some("c1")).await;
    assert_eq!(slots(&store, 9).await, ["reply"]);
}

pub async fn reopens_what_is_done(store: Arc<SqlStore>) {
    put(&store, 0, vec![say("note", "one"), say("reply", "r")]).await;
    let note = due(&store, 9).await.remove(0);
    done(&store, &note, Some("c1")).await;
    put(&store, 1, vec![say("note", "two")]).await;
    assert_eq!(slots(&store, 9).await, ["reply"], "the end of the line");
    let reply = due(&store, 9).await.remove(0);
    done(&store, &reply, None).await;
    let note = due(&store, 9).await.remove(0);
    assert_eq!((body(&note), note.generation, note.attempts), ("two", 2, 0));
    assert_eq!(note.receipt.as_deref(), Some("c1"));
}

pub async fn keeps_a_receipt_for_newer_content(store: Arc<SqlStore>) {
    put(&store, 0, vec![say("note", "one")]).await;
    let one = due(&store, 9).await.remove(0);
    store.begin_effect(&one).await.expect("begins");
    put(&store, 1, vec![say("note", "two")]).await;
    let two = due(&store, 9).await.remove(0);
    assert_eq!((two.attempts, two.receipt.as_deref()), (1, None), "a create may be under way: look first");
    for stale in [Next::GaveUp("no".to_owned()), Next::Retry { at: at(99), why: "no".to_owned() }] {
        store.finish_effect(&one, &stale, at(10)).await.expect("ignored");
    }
    store.finish_effect(&one, &Next::Done(Some("c1".to_owned())), at(10)).await.expect("done");
    let two = due(&store, 11).await.remove(0);
    assert_eq!((body(&two), two.generation, two.attempts), ("two", 2, 0));
    assert_eq!(two.receipt.as_deref(), Some("c1"));
    done(&store, &two, None).await;
    put(&store, 2, vec![say("note", "three")]).await;
    assert_eq!(due(&store, 11).await[0].receipt.as_deref(), Some("c1"), "an edit that leaves nothing new keeps it");
}

pub async fn skips_what_is_done_already(store: Arc<SqlStore>) {
    put(&store, 0, vec![say("note", "one")]).await;
    put(&store, 1, vec![say("note", "one")]).await;
    let note = due(&store, 9).await.remove(0);
    assert_eq!(note.generation, 1, "the same again changes nothing while it waits");
    done(&store, &note, Some("c1")).await;
    put(&store, 2, vec![say("note", "one")]).await;
    assert!(due(&store, 9).await.is_empty());
    put(&store, 3, vec![say("note", "two")]).await;
    let note = due(&store, 9).await.remove(0);
    store.finish_effect(&note, &Next::GaveUp("422".to_owned()), at(9)).await.expect("given up");
    put(&store, 4, vec![say("note", "two")]).await;
    assert_eq!(due(&store, 9).await[0].generation, 3, "what was given up is not done");
}

pub async fn waits_as_told(store: Arc<SqlStore>) {
    let late = Effect { not_before: Some(at(70)), ..say("note", "one") };
    put(&store, 0, vec![late.clone(), say("reply", "r")]).await;
    assert!(due(&store, 69).await.is_empty());
    assert_eq!(store.next_due(at(9)).await.expect("a time"), Some(at(70)));
    let found = due(&store, 70).await;
    assert_eq!(found[0].effect, late);
}

pub async fn never_waits_longer_for_each_edit(store: Arc<SqlStore>) {
    let wait = |ms, body: &str| Effect { not_before: Some(at(ms)), ..say("note", body) };
    put(&store, 0, vec![wait(70, "one")]).await;
    put(&store, 1, vec![wait(90, "two")]).await;
    let note = due(&store, 70).await.remove(0);
    assert_eq!(body(&note), "two");
    let retry = Next::Retry { at: at(500), why: "429".to_owned() };
    store.finish_effect(&note, &retry, at(70)).await.expect("later");
    put(&store, 2, vec![say("note", "three")]).await;
    assert!(due(&store, 499).await.is_empty(), "the forge said when");
    assert_eq!(body(&due(&store, 500).await[0]), "three");
}

pub async fn gives_a_job_to_one_process(store: Arc<SqlStore>) {
    let id = JobId::new("12-1-1.1");
    assert!(!store.claim_job(&id, "p1", at(1)).await.expect("no such job"));
    store.commit(&Commit { jobs: vec![spec("12-1-1.1")], ..turn(1, 0) }).await.expect("a job");
    let job = store.job(&id).await.expect("a job").expect("there");
    assert_eq!((job.spec, job.pull, job.repo.as_str()), (spec("12-1-1.1"), key(1), "org/infra"));
    assert_eq!((job.state, job.claimed_by, job.heartbeat), (JobState::Waiting, None, at(100)));
    assert!(store.claim_job(&id, "p1", at(110)).await.expect("first"));
    assert!(store.claim_job(&id, "p1", at(120)).await.expect("the same again"));
    assert!(!store.claim_job(&id, "p2", at(130)).await.expect("another"));
    store.touch_job(&id, at(150)).await.expect("alive");
    store.touch_job(&id, at(140)).await.expect("late news");
    let job = store.job(&id).await.expect("a job").expect("there");
    assert_eq!((job.state, job.claimed_by.as_deref(), job.heartbeat), (JobState::Running, Some("p1"), at(150)));
}

pub async fn ends_a_job_once(store: Arc<SqlStore>) {
    let id = JobId::new("j");
    store.commit(&Commit { jobs: vec![spec("j"), spec("k")], ..turn(1, 0) }).await.expect("jobs");
    let event = (key(1), look("ended"));
    let ends = (0..3).map(|_| {
        let (store, id, event) = (store.clone(), id.clone(), event.clone());
        tokio::spawn(async move { store.end_job(&id, &event, at(200)).await })
    });
    let mut ended = 0;
    for end in ends.collect::<Vec<_>>() {
        ended += usize::from(end.await.expect("no panic").expect("it answers"));
    }
    assert_eq!(ended, 1);
    let queued = events(&store, 300).await.remove(0);
    store.finish_event(queued.id, &Next::Done(None)).await.expect("done");
    assert!(events(&store, 300).await.is_empty(), "one event only");
    assert!(!store.claim_job(&id, "p", at(300)).await.expect("ended"));
    let open: Vec<JobId> = store.open_jobs().await.expect("jobs").into_iter().map(|job| job.spec.id).collect();
    assert_eq!(open, [JobId::new("k")]);
    store.commit(&Commit { jobs: vec![spec("j")], ..turn(1, 1) }).await.expect("the same job again is the old one");
    assert_eq!(store.job(&id).await.expect("a job").expect("there").state, JobState::Ended);
}

pub async fn keeps_logs_once(store: Arc<SqlStore>) {
    let id = JobId::new("j");
    let line = |seq, text: &str| LogLine { seq, step: "plan".to_owned(), line: text.to_owned() };
    store.append_log(&id, &[line(1, "one"), line(2, "zwei \u{1f980} \0'\"")]).await.expect("two");
    store.append_log(&id, &[line(2, "other"), line(3, "three")]).await.expect("one is new");
    store.append_log(&id, &[]).await.expect("nothing");
    let all = store.log(&id, 0).await.expect("lines");
    assert_eq!(all, [line(1, "one"), line(2, "zwei \u{1f980} \u{fffd}'\""), line(3, "three")]);
    assert_eq!(store.log(&id, 2).await.expect("lines"), [line(3, "three")]);
    let many: Vec<LogLine> = (4..1_604).map(|seq| line(seq, "x")).collect();
    store.append_log(&id, &many).await.expect("many");
    assert_eq!(store.log(&id, 3).await.expect("lines"), many);
    assert!(store.log(&JobId::new("k"), 0).await.expect("lines").is_empty());
}

pub async fn keeps_binaries(store: Arc<SqlStore>) {
    let id = JobId::new("j");
    let blob = |bytes: Vec<u8>| Blob { kind: "plan".to_owned(), bytes };
    assert_eq!(store.blob(&id, "plan").await.expect("none"), None);
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for content in [vec![], bytes.clone(), bytes] {
        store.put_blob(&id, &blob(content.clone())).await.expect("kept");
        assert_eq!(store.blob(&id, "plan").await.expect("there"), Some(blob(content)));
    }
    assert_eq!(store.blob(&id, "errored-state").await.expect("none"), None);
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
