//! The gate's tables, row by row, and what must hold whatever was approved. No forge is asked here.

use proptest::prelude::*;

use super::*;
use crate::domain::approval::Source;

fn digest(n: u8) -> Digest {
    Digest::from_hex(&format!("{n:064x}"))
}

fn approval(digest_no: u8, by: &str, at: i64) -> Approval {
    Approval {
        wave: 1,
        digest: digest(digest_no),
        by: by.into(),
        at: Timestamp(at),
        source: Source::Comment(1),
        confirmed: vec![],
    }
}

fn confirming(root: Option<&str>, address: &str) -> Approval {
    let confirmed = vec![Confirmed { root: root.map(RootKey::new), address: address.into() }];
    Approval { confirmed, ..approval(1, "lin", 5) }
}

fn review(by: &str, verdict: ReviewVerdict, head: &str, at: i64) -> Review {
    Review { id: 1, by: by.into(), verdict, head: head.into(), at: Timestamp(at) }
}

/// A question whose wave plans digest 1 and destroys nothing, of which a test changes what it is about.
struct Case {
    digest: Option<Digest>,
    policy: GatePolicy,
    destroyed: Vec<(RootKey, String)>,
    approvals: Vec<Approval>,
    reviews: Vec<Review>,
    applied: Vec<u8>,
    rules: Rules,
    shown: Option<i64>,
}

impl Default for Case {
    fn default() -> Self {
        let rules = Rules {
            source: ApprovalSource::Ledger,
            count: 1,
            barred: vec!["author".into()],
            named: None,
            confirm_destructive: false,
        };
        Self {
            digest: Some(digest(1)),
            policy: GatePolicy::Always,
            destroyed: vec![],
            approvals: vec![],
            reviews: vec![],
            applied: vec![],
            rules,
            shown: Some(10),
        }
    }
}

impl Case {
    fn ask(&self) -> Verdict {
        let used = |n: &u8| AppliedDigest { wave: 1, digest: digest(*n), at: Timestamp(1) };
        let applied: Vec<_> = self.applied.iter().map(used).collect();
        decide(&Question {
            wave: 1,
            digest: self.digest.as_ref(),
            policy: self.policy,
            destroyed: &self.destroyed,
            approvals: &self.approvals,
            reviews: &self.reviews,
            applied: &applied,
            rules: &self.rules,
            head: &"head".into(),
            shown_at: self.shown.map(Timestamp),
        })
    }

    /// `open by …`, `held: …`, `refused …` or `nothing`, short enough for a table.
    fn says(&self) -> String {
        match self.ask() {
            Verdict::Nothing => "nothing".into(),
            Verdict::Open(permit) => {
                assert_eq!((permit.wave(), Some(permit.digest())), (1, self.digest.as_ref()));
                format!("open by [{}]", permit.by().iter().map(Login::as_str).collect::<Vec<_>>().join(" "))
            }
            Verdict::Held(reasons) => {
                assert!(!reasons.is_empty(), "a wave waits for something");
                format!("held: {}", reasons.iter().map(reason).collect::<Vec<_>>().join(", "))
            }
            Verdict::Refused { approved, by } => {
                format!("refused {} of {by}", approved.as_str().trim_start_matches("tg1:").trim_start_matches('0'))
            }
        }
    }
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Missing { more, .. } => format!("{more} more"),
        Reason::Unconfirmed(left) => {
            left.iter().map(|(root, address)| format!("confirm {root} {address}")).collect::<Vec<_>>().join(" + ")
        }
        Reason::ChangesRequested(by) => format!("{by} objects"),
    }
}

#[test]
fn the_policy_says_when_a_wave_waits() {
    let gone = vec![(RootKey::new("db"), "a.b".to_owned())];
    for (policy, destroys, plan, says) in [
        (GatePolicy::Always, false, true, "held: 1 more"),
        (GatePolicy::Always, true, true, "held: 1 more"),
        (GatePolicy::Always, false, false, "nothing"),
        (GatePolicy::OnDestructive, false, true, "open by []"),
        (GatePolicy::OnDestructive, true, true, "held: 1 more"),
        (GatePolicy::Never, true, true, "open by []"),
        (GatePolicy::Never, false, false, "nothing"),
    ] {
        let case = Case {
            policy,
            destroyed: if destroys { gone.clone() } else { vec![] },
            digest: plan.then(|| digest(1)),
            ..Case::default()
        };
        assert_eq!(case.says(), says, "{policy:?}, destroys {destroys}, plan {plan}");
    }
}

#[test]
fn the_newest_approval_decides() {
    let rows: Vec<(Vec<Approval>, Vec<u8>, &str)> = vec![
        (vec![], vec![], "held: 1 more"),
        (vec![approval(1, "lin", 1)], vec![], "open by [lin]"),
        (vec![approval(2, "lin", 1)], vec![2], "held: 1 more"),
        (vec![approval(2, "lin", 1)], vec![], "refused 2 of lin"),
        (vec![approval(2, "lin", 1), approval(1, "lin", 2)], vec![], "open by [lin]"),
        (vec![approval(1, "lin", 1), approval(2, "ben", 2)], vec![], "refused 2 of ben"),
        (vec![approval(1, "lin", 1), approval(2, "ben", 2)], vec![2], "held: 1 more"),
        (vec![approval(1, "lin", 2), approval(2, "ben", 1)], vec![], "open by [lin]"),
        (vec![approval(2, "author", 1)], vec![], "held: 1 more"),
        (vec![Approval { wave: 2, ..approval(1, "lin", 1) }], vec![], "held: 1 more"),
    ];
    for (approvals, applied, says) in rows {
        let case = Case { approvals, applied, ..Case::default() };
        assert_eq!(case.says(), says, "{:?}", case.approvals);
    }
}

#[test]
fn without_a_need_for_approval_nothing_is_refused() {
    let approvals = vec![approval(2, "lin", 1)];
    for policy in [GatePolicy::Never, GatePolicy::OnDestructive] {
        assert_eq!(Case { policy, approvals: approvals.clone(), ..Case::default() }.says(), "open by []");
    }
}

#[test]
fn each_person_counts_once_and_only_for_this_digest() {
    let two = |approvals: Vec<Approval>| {
        let mut case = Case { approvals, ..Case::default() };
        case.rules.count = 2;
        case.says()
    };
    assert_eq!(two(vec![approval(1, "lin", 1), approval(1, "LIN", 2)]), "held: 1 more");
    assert_eq!(two(vec![approval(1, "lin", 1), approval(1, "ben", 2)]), "open by [lin ben]");
    assert_eq!(two(vec![approval(2, "lin", 1), approval(1, "ben", 2)]), "held: 1 more");
    assert_eq!(two(vec![approval(1, "author", 1), approval(1, "ben", 2)]), "held: 1 more");
    let mut none_asked = Case::default();
    none_asked.rules.count = 0;
    assert_eq!(none_asked.says(), "held: 1 more", "a waiting gate never opens by itself");
}

#[test]
fn whoever_asks_for_changes_does_not_count() {
    let says =
        |reviews: Vec<Review>| Case { approvals: vec![approval(1, "lin", 20)], reviews, ..Case::default() }.says();
    use ReviewVerdict::{Approved, ChangesRequested, Commented, Dismissed};
    assert_eq!(says(vec![review("Lin", ChangesRequested, "old head", 1)]), "held: 1 more, lin objects");
    assert_eq!(
        says(vec![review("lin", ChangesRequested, "head", 1), review("lin", Commented, "head", 9)]),
        "held: 1 more, lin objects"
    );
    assert_eq!(
        says(vec![review("lin", ChangesRequested, "head", 1), review("lin", Approved, "head", 9)]),
        "open by [lin]"
    );
    assert_eq!(says(vec![review("lin", Dismissed, "head", 1)]), "open by [lin]");
    assert_eq!(says(vec![review("ben", ChangesRequested, "head", 1)]), "open by [lin]");
}

#[test]
fn a_review_counts_for_the_head_and_the_digest_that_was_shown() {
    use ReviewVerdict::{Approved, Commented};
    for (source, shown, review, says) in [
        (ApprovalSource::PrReview, Some(10), review("lin", Approved, "head", 10), "open by [lin]"),
        (ApprovalSource::PrReview, Some(10), review("lin", Approved, "head", 9), "held: 1 more"),
        (ApprovalSource::PrReview, None, review("lin", Approved, "head", 99), "held: 1 more"),
        (ApprovalSource::PrReview, Some(10), review("lin", Approved, "older", 11), "held: 1 more"),
        (ApprovalSource::PrReview, Some(10), review("lin", Commented, "head", 11), "held: 1 more"),
        (ApprovalSource::PrReview, Some(10), review("author", Approved, "head", 11), "held: 1 more"),
        (ApprovalSource::Ledger, Some(10), review("lin", Approved, "head", 11), "held: 1 more"),
        (ApprovalSource::Sealed, Some(10), review("lin", Approved, "head", 11), "held: 1 more"),
    ] {
        let mut case = Case { reviews: vec![review.clone()], shown, ..Case::default() };
        case.rules.source = source;
        assert_eq!(case.says(), says, "{source:?} {shown:?} {review:?}");
    }
    let mut sealed = Case { approvals: vec![approval(1, "lin", 11), approval(2, "lin", 12)], ..Case::default() };
    sealed.rules.source = ApprovalSource::Sealed;
    assert_eq!(sealed.says(), "held: 1 more", "a comment is no seal, not even for a refusal");
}

#[test]
fn what_dies_must_be_named() {
    let one = vec![(RootKey::new("db"), "a.b".to_owned())];
    let shared = vec![(RootKey::new("db"), "a.b".to_owned()), (RootKey::new("eu/db"), "a.b".to_owned())];
    for (destroyed, approvals, says) in [
        (one.clone(), vec![approval(1, "lin", 1)], "held: confirm db a.b"),
        (one.clone(), vec![confirming(None, "a.b")], "open by [lin]"),
        (one.clone(), vec![confirming(Some("db"), "a.b")], "open by [lin]"),
        (one.clone(), vec![confirming(Some("eu/db"), "a.b")], "held: confirm db a.b"),
        (one.clone(), vec![confirming(None, "a.b[0]")], "held: confirm db a.b"),
        (one.clone(), vec![approval(1, "lin", 1), confirming(None, "a.b")], "open by [lin]"),
        (
            one.clone(),
            vec![Approval { by: "author".into(), ..confirming(None, "a.b") }],
            "held: 1 more, confirm db a.b",
        ),
        (
            one,
            vec![Approval { digest: digest(2), at: Timestamp(0), ..confirming(None, "a.b") }, approval(1, "lin", 1)],
            "held: confirm db a.b",
        ),
        (shared.clone(), vec![confirming(None, "a.b")], "held: confirm db a.b + confirm eu/db a.b"),
        (shared.clone(), vec![confirming(Some("db"), "a.b")], "held: confirm eu/db a.b"),
        (shared, vec![confirming(Some("db"), "a.b"), confirming(Some("eu/db"), "a.b")], "open by [lin]"),
    ] {
        let mut case = Case { destroyed, approvals, ..Case::default() };
        case.rules.confirm_destructive = true;
        assert_eq!(case.says(), says, "{:?}", case.approvals);
    }
}

#[test]
fn who_may_approve() {
    let rules = |named: Option<Vec<Login>>| Rules { named, ..Case::default().rules };
    let db = || Some(vec![Login::from("Dora"), Login::from("author")]);
    for (named, by, permission, bar) in [
        (None, "lin", Permission::Write, None),
        (None, "lin", Permission::Admin, None),
        (None, "lin", Permission::Read, Some(Bar::NoWriteAccess)),
        (None, "lin", Permission::None, Some(Bar::NoWriteAccess)),
        (None, "Author", Permission::Admin, Some(Bar::FourEyes)),
        (db(), "dora", Permission::Read, None),
        (db(), "lin", Permission::Admin, Some(Bar::NotNamed)),
        (db(), "author", Permission::Admin, Some(Bar::FourEyes)),
        (Some(vec![]), "lin", Permission::Admin, Some(Bar::NotNamed)),
    ] {
        assert_eq!(bars(&rules(named.clone()), &by.into(), permission), bar, "{named:?} {by} {permission:?}");
    }
    let mut case = Case { approvals: vec![approval(1, "lin", 1)], ..Case::default() };
    case.rules.named = db();
    assert_eq!(case.ask(), Verdict::Held(vec![Reason::Missing { more: 1, named: db(), four_eyes: true }]));
}

fn approvals() -> impl Strategy<Value = Vec<Approval>> {
    let one = (1_u8..4, prop::sample::select(vec!["lin", "ben", "mira", "author"]), 0_i64..6, any::<bool>());
    prop::collection::vec(one, 0..7).prop_map(|all| {
        let confirm = |yes: bool| if yes { vec![Confirmed { root: None, address: "a.b".into() }] } else { vec![] };
        all.into_iter().map(|(n, by, at, yes)| Approval { confirmed: confirm(yes), ..approval(n, by, at) }).collect()
    })
}

fn is_open(approvals: &[Approval], count: usize) -> bool {
    let destroyed = vec![(RootKey::new("db"), "a.b".to_owned())];
    let mut case = Case { approvals: approvals.to_vec(), applied: vec![3], destroyed, ..Case::default() };
    case.rules.count = count;
    case.rules.confirm_destructive = true;
    matches!(case.ask(), Verdict::Open(_))
}

proptest! {
    #[test]
    fn open_means_that_enough_others_named_exactly_this_digest(all in approvals(), count in 1_usize..4) {
        if is_open(&all, count) {
            let ours = all.iter().filter(|a| a.digest == digest(1) && a.by.as_str() != "author");
            let people: std::collections::BTreeSet<_> = ours.map(|a| &a.by).collect();
            prop_assert!(people.len() >= count);
        }
    }

    #[test]
    fn taking_an_approval_of_this_digest_away_never_opens(all in approvals(), which in any::<prop::sample::Index>(), count in 1_usize..4) {
        prop_assume!(!all.is_empty() && !is_open(&all, count));
        let mut fewer = all;
        let gone = fewer.remove(which.index(fewer.len()));
        // Whoever takes back the approval of another digest takes back the refusal that it caused.
        prop_assume!(gone.digest == digest(1));
        prop_assert!(!is_open(&fewer, count));
    }

    #[test]
    fn approving_another_digest_never_opens(all in approvals(), other in 2_u8..4, at in 0_i64..6, count in 1_usize..4) {
        prop_assume!(!is_open(&all, count));
        let mut more = all;
        more.push(Approval { confirmed: vec![Confirmed { root: None, address: "a.b".into() }], ..approval(other, "mira", at) });
        prop_assert!(!is_open(&more, count));
    }
}
