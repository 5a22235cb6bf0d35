//! What every store must do with effects: lanes, slots, generations, receipts and waits.

use std::sync::Arc;

use tidegate::domain::effect::Effect;
use tidegate::ports::store::{Next, Store, StoreError};
use tidegate::store::SqlStore;

use super::{at, body, done, due, put, say, slots, start};

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
