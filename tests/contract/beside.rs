//! What every store must do for pulls side by side: found by state, by repository, and across repositories.

use std::sync::Arc;

use tidegate::domain::ids::{PullKey, RepoKey, RootKey, Sha, StateKey};
use tidegate::domain::neighbour::{Interest, Role};
use tidegate::domain::outside::OutsideRead;
use tidegate::domain::pull::{PullState, Seen};
use tidegate::ports::forge::RepoRef;
use tidegate::ports::store::{BranchRead, Commit, Store, StoreError};
use tidegate::store::SqlStore;

use super::{at, key, turn};

fn interest(state: &str, role: Role) -> Interest {
    let root = RootKey::new(state.replace(':', "-"));
    Interest { state: StateKey::new(state), root, role, by: "ann".into(), draft: false, claims: Vec::new() }
}

pub async fn finds_pulls_by_the_states_they_have_to_do_with(store: Arc<SqlStore>) {
    let reads = Role::Reads(Some(vec!["id".to_owned()]));
    let one = vec![interest("s3:a", Role::Owns), interest("s3:b", reads.clone())];
    store.commit(&Commit { interests: Some(one.clone()), ..turn(1, 0) }).await.expect("a commit");
    let two = vec![interest("s3:b", Role::Owns)];
    store.commit(&Commit { interests: Some(two.clone()), ..turn(2, 0) }).await.expect("a commit");
    store.commit(&turn(3, 0)).await.expect("a commit");
    let found = |states: &[&str], but: u64| {
        let states: Vec<StateKey> = states.iter().map(|state| StateKey::new(*state)).collect();
        let store = store.clone();
        async move { store.interested(&states, &key(but)).await.expect("an answer") }
    };
    assert_eq!(found(&["s3:a", "s3:b", "s3:c"], 3).await.len(), 3);
    assert_eq!(found(&["s3:b"], 2).await, [(key(1), one[1].clone())], "its own are none of its neighbours'");
    assert_eq!(found(&[], 2).await, []);
    let many: Vec<String> = (0..450).map(|number| format!("s3:{number}")).chain(["s3:a".to_owned()]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(found(&many, 2).await, [(key(1), one[0].clone())], "in parts");
    store.commit(&turn(1, 1)).await.expect("a turn that changes none");
    assert_eq!(found(&["s3:a"], 2).await.len(), 1, "stays");
    store.commit(&Commit { interests: Some(Vec::new()), ..turn(1, 2) }).await.expect("a turn that ends them");
    assert_eq!(found(&["s3:a", "s3:b"], 9).await, [(key(2), two[0].clone())]);
    let stale = Commit { interests: Some(one), ..turn(1, 1) };
    assert!(matches!(store.commit(&stale).await, Err(StoreError::Moved)));
    assert_eq!(found(&["s3:a"], 9).await, [], "a turn that is not committed says nothing");
}

pub async fn finds_open_pulls_of_a_repository(store: Arc<SqlStore>) {
    let seen = |state| Seen {
        repo: "org/infra".to_owned(),
        head: Sha::new("a".repeat(40)),
        base_ref: "main".to_owned(),
        base: Sha::new("b".repeat(40)),
        author: "ann".into(),
        title: String::new(),
        state,
        draft: false,
        fork: false,
        mergeable: None,
        updated: at(1),
    };
    for (number, state) in [(1, PullState::Open), (2, PullState::Merged), (3, PullState::Closed), (4, PullState::Open)]
    {
        let mut commit = turn(number, 0);
        commit.pull.seen = Some(seen(state));
        store.commit(&commit).await.expect("a commit");
    }
    let mut elsewhere = turn(5, 0);
    elsewhere.pull.key.repo.id = 99;
    elsewhere.pull.seen = Some(seen(PullState::Open));
    store.commit(&elsewhere).await.expect("a commit");
    let numbers = |pulls: Vec<tidegate::domain::pull::Pull>| pulls.iter().map(|it| it.key.number).collect::<Vec<_>>();
    assert_eq!(numbers(store.open_pulls(&key(1).repo).await.expect("pulls")), [4, 1]);
    let mut closed = turn(4, 1);
    closed.pull.seen = Some(seen(PullState::Closed));
    store.commit(&closed).await.expect("a commit");
    assert_eq!(numbers(store.open_pulls(&key(1).repo).await.expect("pulls")), [1]);
    assert_eq!(numbers(store.open_pulls(&elsewhere.pull.key.repo).await.expect("pulls")), [5]);
}

fn repo(id: u64) -> RepoRef {
    RepoRef { key: RepoKey { forge: "github".to_owned(), id }, name: format!("org/repo{id}") }
}

fn branch(id: u64, looked: i64) -> BranchRead {
    BranchRead { repo: repo(id), branch: Some("main".to_owned()), tip: Some(Sha::new("a".repeat(40))), at: at(looked) }
}

fn read(reader: &str, state: &str) -> OutsideRead {
    let block = "data.terraform_remote_state.x".to_owned();
    OutsideRead { reader: RootKey::new(reader), block, state: StateKey::new(state), outputs: None }
}

pub async fn finds_readers_in_other_repositories(store: Arc<SqlStore>) {
    store.put_reads(&branch(1, 10), at(0), &[read("a", "s3:x"), read("b", "s3:y")]).await.expect("kept");
    store.put_reads(&branch(2, 10), at(0), &[read("c", "s3:x")]).await.expect("kept");
    let found = |but: u64| {
        let store = store.clone();
        async move {
            let states = [StateKey::new("s3:x"), StateKey::new("s3:none")];
            let found = store.foreign_reads(&states, &repo(but).key).await.expect("an answer");
            found.into_iter().map(|it| (it.name, it.read.reader.to_string())).collect::<Vec<_>>()
        }
    };
    let pair = |name: &str, reader: &str| (name.to_owned(), reader.to_owned());
    assert_eq!(found(1).await, [pair("org/repo2", "c")]);
    assert_eq!(found(9).await, [pair("org/repo1", "a"), pair("org/repo2", "c")]);
    store.put_reads(&branch(1, 20), at(10), &[read("d", "s3:x")]).await.expect("replaced");
    assert_eq!(found(9).await, [pair("org/repo1", "d"), pair("org/repo2", "c")]);
    store.forget_reads(&repo(1).key).await.expect("forgotten");
    assert_eq!(found(9).await, [pair("org/repo2", "c")]);
    let own: PullKey = key(1);
    assert!(store.interested(&[StateKey::new("s3:x")], &own).await.expect("an answer").is_empty());
}

pub async fn looks_again_at_reads_after_a_push(store: Arc<SqlStore>) {
    let looked = |store: Arc<SqlStore>| async move {
        store.branches_read().await.expect("branches").iter().map(|it| (it.repo.key.id, it.at.0)).collect::<Vec<_>>()
    };
    store.reads_moved(&repo(1), None).await.expect("heard of");
    assert_eq!(looked(store.clone()).await, [(1, 0)]);
    store.put_reads(&branch(1, 50), at(0), &[read("a", "s3:x")]).await.expect("kept");
    assert_eq!(store.branches_read().await.expect("branches"), [branch(1, 50)]);
    for (pushed, at) in [(None, 50), (Some("feature"), 50), (Some("main"), 0)] {
        store.reads_moved(&repo(1), pushed).await.expect("heard of");
        assert_eq!(looked(store.clone()).await, [(1, at)], "{pushed:?}");
    }
    let states = [StateKey::new("s3:x")];
    assert_eq!(store.foreign_reads(&states, &repo(2).key).await.expect("reads").len(), 1, "until it is read again");
    store.reads_moved(&repo(1), Some("main")).await.expect("heard of, while a look is under way");
    store.put_reads(&branch(1, 60), at(0), &[]).await.expect("kept");
    let now = looked(store.clone()).await;
    assert!(now[0].1 < 0, "a push during a look asks for another: {now:?}");
    store.put_reads(&branch(1, 70), at(now[0].1), &[]).await.expect("kept");
    assert_eq!(looked(store).await, [(1, 70)]);
}
