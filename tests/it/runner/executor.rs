//! The local executor with small shell scripts in place of jobs.

use std::collections::BTreeMap;
use std::path::Path;

use tidegate::domain::ids::JobId;
use tidegate::executor::LocalExecutor;
use tidegate::executor::local::LocalSettings;
use tidegate::ports::executor::{Executor, Launch, Observed};

fn executor(dir: &Path, script: &str, parallelism: usize) -> LocalExecutor {
    LocalExecutor::new(LocalSettings {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        jobs_dir: dir.join("jobs"),
        environment: BTreeMap::from([("MARK".to_owned(), "passed".to_owned())]),
        parallelism,
    })
    .expect("a directory for jobs")
}

fn launch(id: &str) -> Launch {
    Launch { id: id.into(), url: format!("http://localhost/jobs/{id}"), token: "t".into() }
}

async fn end_of(executor: &LocalExecutor, id: &str) -> Option<String> {
    loop {
        if let Observed::Ended(why) = executor.observe(&JobId::new(id)).await.unwrap() {
            return why;
        }
        executor.ended().await;
    }
}

#[tokio::test]
async fn a_job_gets_its_url_and_what_the_settings_pass_and_is_started_once() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let script = format!("echo \"$TIDEGATE_JOB_URL $TIDEGATE_JOB_TOKEN $MARK ${{CARGO:-none}}\" >> {}", out.display());
    let executor = executor(dir.path(), &script, 2);
    assert_eq!(executor.observe(&"a".into()).await.unwrap(), Observed::Absent);
    for _ in 0..3 {
        executor.start(&launch("a")).await.unwrap();
    }
    assert_eq!(end_of(&executor, "a").await, None);
    executor.start(&launch("a")).await.unwrap();
    assert_eq!(executor.observe(&"a".into()).await.unwrap(), Observed::Ended(None));
    assert_eq!(std::fs::read_to_string(out).unwrap(), "http://localhost/jobs/a t passed none\n");
}

#[tokio::test]
async fn a_failed_job_says_its_last_words_and_the_next_gets_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let executor = executor(dir.path(), "echo boom >&2; exit 3", 1);
    for id in ["a", "b"] {
        executor.start(&launch(id)).await.unwrap();
    }
    for id in ["a", "b"] {
        let why = end_of(&executor, id).await.expect("a reason");
        assert!(why.contains("exit status: 3: boom"), "{why}");
    }
}

#[tokio::test]
async fn a_stop_reaches_a_running_job_and_drops_a_waiting_one() {
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    assert!(std::process::Command::new("mkfifo").arg(&ready).status().unwrap().success());
    let script = format!("trap 'exit 7' TERM; echo > {}; while :; do sleep 0.05; done", ready.display());
    let executor = executor(dir.path(), &script, 1);
    executor.start(&launch("a")).await.unwrap();
    executor.start(&launch("b")).await.unwrap();
    tokio::fs::read(&ready).await.unwrap();
    assert_eq!(executor.observe(&"b".into()).await.unwrap(), Observed::Alive);
    executor.cancel(&"b".into()).await.unwrap();
    assert_eq!(end_of(&executor, "b").await.as_deref(), Some("Canceled before it started."));
    executor.cancel(&"a".into()).await.unwrap();
    executor.cancel(&"a".into()).await.unwrap();
    executor.cancel(&"never-there".into()).await.unwrap();
    assert!(end_of(&executor, "a").await.is_some_and(|why| why.contains("exit status: 7")));
}

#[tokio::test]
async fn a_later_server_finds_a_job_that_an_earlier_one_started() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let script = format!("cat {}", gate.display());
    let earlier = executor(dir.path(), &script, 1);
    earlier.start(&launch("a")).await.unwrap();
    let later = executor(dir.path(), &script, 1);
    later.start(&launch("a")).await.unwrap();
    assert_eq!(later.observe(&"a".into()).await.unwrap(), Observed::Alive);
    tokio::fs::write(&gate, "go").await.unwrap();
    assert_eq!(end_of(&later, "a").await, None);
}
