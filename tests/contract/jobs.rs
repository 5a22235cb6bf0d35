//! What every store must do with jobs: one claim, one end, logs and binaries kept once.

use std::sync::Arc;

use tidegate::domain::ids::JobId;
use tidegate::ports::store::{Blob, Commit, JobState, LogLine, Next, Store};
use tidegate::store::SqlStore;

use super::{at, events, key, look, spec, turn};

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
    assert_eq!(store.count_open_jobs().await.expect("a number"), 1);
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
