//! What every store must do with what the installation keeps for itself.

use std::sync::Arc;

use tidegate::ports::kept::Kept;
use tidegate::ports::store::{Received, Store};
use tidegate::store::SqlStore;

use super::at;

pub async fn keeps_what_the_installation_has(store: Arc<SqlStore>) {
    assert_eq!(store.kept("app:github").await.expect("nothing"), None);
    assert!(!store.forget("app:github").await.expect("nothing to forget"));
    let first = (0..4_u8).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.keep_first("app:github", &[n, 0, 255], at(1)).await })
    });
    let mut kept = Vec::new();
    for one in first.collect::<Vec<_>>() {
        kept.push(one.await.expect("no panic").expect("it answers"));
    }
    assert_eq!(kept.iter().filter(|kept| **kept).count(), 1, "only one is the first");
    let winner = u8::try_from(kept.iter().position(|kept| *kept).expect("one")).expect("a byte");
    assert_eq!(store.kept("app:github").await.expect("there"), Some(vec![winner, 0, 255]));
    store.keep("session", b"a", at(2)).await.expect("kept");
    store.keep("session", b"b", at(3)).await.expect("replaced");
    assert_eq!(store.kept("session").await.expect("there"), Some(b"b".to_vec()));
    assert!(store.forget("app:github").await.expect("forgotten"));
    assert_eq!(store.kept("app:github").await.expect("gone"), None);
    assert!(store.keep_first("app:github", b"again", at(4)).await.expect("room again"));
}

pub async fn knows_the_newest_delivery_of_a_forge(store: Arc<SqlStore>) {
    assert_eq!(store.last_delivery("github").await.expect("none"), None);
    for (forge, name, when) in [("github", "push", 5), ("github", "ping", 9), ("github", "late", 7), ("other", "x", 99)]
    {
        let received = Received {
            forge: forge.to_owned(),
            id: name.to_owned(),
            name: name.to_owned(),
            ignored: None,
            events: vec![],
            at: at(when),
        };
        store.accept(&received).await.expect("taken");
    }
    assert_eq!(store.last_delivery("github").await.expect("one"), Some(("ping".to_owned(), at(9))));
}
