//! Locks: all or none, the line keeps its order, and nobody waits for ever. No pull is read here.

use proptest::prelude::*;

use super::*;

fn key(name: &str) -> (StateKey, RootKey) {
    (StateKey::new(format!("s3:{name}")), RootKey::new(name))
}

fn keys(names: &[&str]) -> Vec<(StateKey, RootKey)> {
    names.iter().map(|name| key(name)).collect()
}

fn states(names: &[&str]) -> Vec<StateKey> {
    names.iter().map(|name| key(name).0).collect()
}

fn by(pull: u64, cause: Cause) -> Holder {
    Holder { pull, by: "sam".into(), since: Timestamp(9), cause }
}

fn held(pull: u64, names: &[&str]) -> LockTable {
    LockTable::default().take(&keys(names), &by(pull, Cause::Apply)).expect("free")
}

fn holder_of(table: &LockTable, name: &str) -> Option<u64> {
    table.locks.get(&key(name).0).and_then(|lock| lock.holder.as_ref()).map(|holder| holder.pull)
}

#[test]
fn all_or_none() {
    let table = held(41, &["solo"]);
    let blocked = table.take(&keys(&["net", "solo"]), &by(42, Cause::Apply)).expect_err("41 is in the way");
    assert_eq!(blocked.len(), 1);
    assert_eq!((blocked[0].root.dir(), blocked[0].holder.as_ref().map(|h| h.pull)), ("solo", Some(41)));
    assert_eq!(holder_of(&table, "net"), None);
    let both = table.take(&keys(&["net", "solo", "net"]), &by(41, Cause::Apply)).expect("its own");
    assert_eq!((holder_of(&both, "net"), holder_of(&both, "solo"), both.locks.len()), (Some(41), Some(41), 2));
}

#[test]
fn a_later_take_keeps_the_first_record_and_only_replaces_the_cause_of_a_plan() {
    for (first, then, left) in [
        (Cause::Plan, Cause::Apply, Cause::Apply),
        (Cause::Plan, Cause::Asked("why".into()), Cause::Asked("why".into())),
        (Cause::Apply, Cause::Plan, Cause::Apply),
        (Cause::Asked("why".into()), Cause::Apply, Cause::Asked("why".into())),
    ] {
        let table = LockTable::default().take(&keys(&["a"]), &by(1, first)).expect("free");
        let again = Holder { pull: 1, by: "lin".into(), since: Timestamp(99), cause: then };
        let table = table.take(&[(key("a").0, RootKey::new("renamed"))], &again).expect("its own");
        let lock = &table.locks[&key("a").0];
        assert_eq!(lock.holder, Some(by(1, left)));
        assert_eq!(lock.root.dir(), "a");
    }
}

#[test]
fn the_line_keeps_its_order_and_the_next_is_woken() {
    let table =
        held(41, &["net"]).join(43, &keys(&["net", "free"])).join(42, &keys(&["net"])).join(43, &keys(&["net"]));
    assert!(!table.locks.contains_key(&key("free").0), "nobody holds or waits for it");
    assert_eq!(table.blocked(42, &states(&["net"]))[0].ahead, [43]);
    assert_eq!(table.blocked(50, &states(&["net"]))[0].ahead, [43, 42]);
    let (table, freed) = table.release(41, &Release::All);
    assert_eq!(freed, Freed { roots: vec![RootKey::new("net")], wake: vec![43] });
    let ahead = &table.blocked(42, &states(&["net"]))[0];
    assert_eq!((&ahead.holder, &ahead.ahead), (&None, &vec![43]));
    assert!(table.take(&keys(&["net"]), &by(50, Cause::Apply)).is_err(), "nobody jumps the line");
    let (table, freed) = table.served(43, &states(&["net"]));
    assert_eq!(freed, Freed { roots: vec![], wake: vec![42] });
    let table = table.take(&keys(&["net"]), &by(42, Cause::Apply)).expect("its turn");
    assert_eq!(table.locks[&key("net").0].queue, Vec::<u64>::new());
}

#[test]
fn a_release_frees_once_and_wakes_each_pull_once() {
    let table = held(1, &["a", "b"]).join(2, &keys(&["a", "b"]));
    let (table, freed) = table.release(1, &Release::All);
    assert_eq!(freed, Freed { roots: vec![RootKey::new("a"), RootKey::new("b")], wake: vec![2] });
    let (again, freed) = table.release(1, &Release::All);
    assert_eq!((again, freed), (table.clone(), Freed::default()));
    let (empty, freed) = table.release(2, &Release::All);
    assert_eq!((empty, freed), (LockTable::default(), Freed::default()));
}

#[test]
fn a_closed_pull_leaves_the_middle_of_a_line_silently_and_its_front_with_a_call() {
    let table = held(1, &["a"]).join(2, &keys(&["a"])).join(3, &keys(&["a"])).join(4, &keys(&["a"]));
    let (table, freed) = table.release(3, &Release::All);
    assert_eq!(freed, Freed::default());
    let (table, freed) = table.release(1, &Release::All);
    assert_eq!(freed.wake, [2]);
    let (table, freed) = table.release(2, &Release::All);
    assert_eq!((freed.roots, freed.wake), (vec![], vec![4]));
    assert_eq!(table.locks[&key("a").0].queue, [4]);
}

#[test]
fn each_release_frees_what_it_names() {
    let table = held(1, &["applied", "other"]).take(&keys(&["planned"]), &by(1, Cause::Plan)).expect("free");
    let solo = [RootKey::new("other"), RootKey::new("foreign")];
    let kept = states(&["applied"]);
    for (which, freed) in [
        (Release::All, vec!["applied", "other", "planned"]),
        (Release::Roots(&solo), vec!["other"]),
        (Release::Roots(&[]), vec![]),
        (Release::Plans, vec!["planned"]),
        (Release::AllBut(&kept), vec!["other", "planned"]),
        (Release::AllBut(&[]), vec!["applied", "other", "planned"]),
    ] {
        let roots: Vec<RootKey> = freed.into_iter().map(RootKey::new).collect();
        assert_eq!(table.release(1, &which).1.roots, roots, "{which:?}");
        assert_eq!(table.release(2, &which), (table.clone(), Freed::default()), "{which:?} of another pull");
    }
}

#[test]
fn a_head_that_changes_less_stands_in_fewer_lines() {
    let table = held(1, &["a", "b"]).join(2, &keys(&["a", "b"])).join(3, &keys(&["a"]));
    let (table, freed) = table.release(2, &Release::AllBut(&states(&["b"])));
    assert_eq!(freed, Freed::default());
    assert_eq!((&table.locks[&key("a").0].queue, &table.locks[&key("b").0].queue), (&vec![3], &vec![2]));
}

#[test]
fn two_pulls_never_wait_for_each_other() {
    // 11 waits for `a` first and needs `b` only later, after 12 stood in both lines.
    let table = held(1, &["a"]).join(11, &keys(&["a"])).join(12, &keys(&["a"]));
    let table = table.take(&keys(&["b"]), &by(2, Cause::Apply)).expect("free").join(12, &keys(&["a", "b"]));
    let (table, _) = table.release(1, &Release::All);
    let table = table.join(11, &keys(&["a", "b"]));
    assert_eq!(table.locks[&key("b").0].queue, [11, 12]);
    let (table, freed) = table.release(2, &Release::All);
    assert_eq!(freed.wake, [11]);
    assert!(table.take(&keys(&["a", "b"]), &by(11, Cause::Apply)).is_ok());
}

#[derive(Clone, Debug)]
enum Act {
    Want(u64, Vec<u8>),
    Free(u64),
    Served(u64, Vec<u8>),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let wanted = || prop::collection::vec(0_u8..4, 1..4);
    let act = prop_oneof![
        4 => (1_u64..6, wanted()).prop_map(|(pull, states)| Act::Want(pull, states)),
        2 => (1_u64..6).prop_map(Act::Free),
        1 => (1_u64..6, wanted()).prop_map(|(pull, states)| Act::Served(pull, states)),
    ];
    prop::collection::vec(act, 0..30)
}

fn named(states: &[u8]) -> Vec<(StateKey, RootKey)> {
    states.iter().map(|n| key(&n.to_string())).collect()
}

proptest! {
    /// Whatever happens: a state changes hands only through a release, no pull stands in a line of its own lock,
    /// no entry is empty, and some waiting pull is always held up by a holder alone.
    #[test]
    fn nobody_loses_a_lock_and_nobody_waits_for_ever(acts in acts()) {
        let mut table = LockTable::default();
        for act in acts {
            let before = table.clone();
            let mut released = None;
            table = match act {
                Act::Want(pull, states) => match table.take(&named(&states), &by(pull, Cause::Apply)) {
                    Ok(taken) => {
                        prop_assert!(named(&states).iter().all(|(state, _)| taken.locks[state].holder.as_ref().is_some_and(|h| h.pull == pull)));
                        taken
                    }
                    Err(blocked) => {
                        prop_assert!(!blocked.is_empty());
                        table.join(pull, &named(&states))
                    }
                },
                Act::Free(pull) => {
                    released = Some(pull);
                    table.release(pull, &Release::All).0
                }
                Act::Served(pull, states) => table.served(pull, &named(&states).into_iter().map(|(state, _)| state).collect::<Vec<_>>()).0,
            };
            for (state, lock) in &before.locks {
                if let Some(holder) = &lock.holder && released != Some(holder.pull) {
                    prop_assert_eq!(table.locks[state].holder.as_ref(), Some(holder));
                }
            }
            let mut waiting = BTreeSet::new();
            for lock in table.locks.values() {
                prop_assert!(lock.holder.is_some() || !lock.queue.is_empty());
                prop_assert!(lock.holder.as_ref().is_none_or(|holder| !lock.queue.contains(&holder.pull)));
                prop_assert_eq!(lock.queue.iter().collect::<BTreeSet<_>>().len(), lock.queue.len());
                waiting.extend(lock.queue.iter().copied());
            }
            let first_everywhere = |pull: &u64| table.locks.values().all(|lock| !lock.queue.contains(pull) || lock.queue[0] == *pull);
            prop_assert!(waiting.is_empty() || waiting.iter().any(first_everywhere));
        }
    }
}
