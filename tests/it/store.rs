//! The store on SQLite: the contract on a file and in memory, and what only a file can show. The
//! same contract on PostgreSQL is the test target `postgres`.

use tempfile::TempDir;
use tidegate::ports::store::Store;
use tidegate::store::SqlStore;

use crate::contract::{Opened, at, body, key, say, turn};
use tidegate::ports::store::Commit;

fn url(dir: &TempDir) -> String {
    format!("sqlite://{}?mode=rwc", dir.path().join("tidegate.db").display())
}

mod file {
    use super::{Opened, TempDir, url};

    async fn open() -> Opened<TempDir> {
        let dir = TempDir::new().expect("a directory");
        Opened::at(&url(&dir), dir).await
    }

    crate::store_contract!(open);
}

mod memory {
    use super::Opened;

    async fn open() -> Opened<()> {
        Opened::at("sqlite::memory:", ()).await
    }

    crate::store_contract!(open);
}

/// The connections are left as a killed process leaves them: nothing is closed or finished.
#[tokio::test]
async fn an_effect_that_was_begun_counts_as_tried_after_a_crash() {
    let dir = TempDir::new().expect("a directory");
    let before = SqlStore::open(&url(&dir)).await.expect("opens");
    before.commit(&Commit { effects: vec![say("note", "one")], ..turn(1, 0) }).await.expect("a commit");
    let note = before.due_effects(at(9)).await.expect("effects").remove(0);
    before.begin_effect(&note).await.expect("begins");

    let after = SqlStore::open(&url(&dir)).await.expect("opens again, migrations done already");
    let note = after.due_effects(at(9)).await.expect("effects").remove(0);
    assert_eq!((body(&note), note.attempts, note.generation, note.receipt.as_deref()), ("one", 1, 1, None));
    assert_eq!(after.load(&key(1)).await.expect("a pull").version, 1);
    drop(before);
}

#[tokio::test]
async fn two_processes_share_a_file() {
    let dir = TempDir::new().expect("a directory");
    let one = SqlStore::open(&url(&dir)).await.expect("opens");
    let two = SqlStore::open(&url(&dir)).await.expect("opens beside it");
    for number in 0..20 {
        let (a, b) = (turn(2 * number, 0), turn(2 * number + 1, 0));
        let (first, second) = tokio::join!(one.commit(&a), two.commit(&b));
        first.expect("waits for the other");
        second.expect("waits for the other");
    }
    assert_eq!(one.pulls().await.expect("pulls").len(), 40);
}

#[tokio::test]
async fn a_document_of_a_newer_program_is_refused_and_named() {
    let dir = TempDir::new().expect("a directory");
    let store = SqlStore::open(&url(&dir)).await.expect("opens");
    store.commit(&turn(1, 0)).await.expect("a commit");
    let pool = sqlx::AnyPool::connect(&url(&dir)).await.expect("a connection");
    sqlx::query("UPDATE pulls SET format = 99").execute(&pool).await.expect("edited");
    let why = store.load(&key(1)).await.expect_err("too new").to_string();
    assert!(why.contains("format 99"), "{why}");
}
