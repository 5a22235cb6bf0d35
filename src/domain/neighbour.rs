//! Pulls side by side: what an open pull has to do with which state, which resources two of them plan to change, and what one is
//! told when another moved a state. Pure, and without a rule about who applies: that is the lock table's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ids::{Login, RootKey, StateKey, Timestamp};
use super::plan::{Action, Plan};
use super::pull::{Merge, Pull};
use super::rollout::{PlanRun, RootRun, Stage};

/// What an open pull has to do with one state. It is kept beside the pull, so that others find it by the state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Interest {
    /// The state.
    pub state: StateKey,
    /// The root by which.
    pub root: RootKey,
    /// How.
    pub role: Role,
    /// Who opened the pull.
    pub by: Login,
    /// Whether it is a draft.
    pub draft: bool,
    /// What it plans to change there; by address.
    pub claims: Vec<Claim>,
}

/// How a pull has to do with a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It plans changes of it.
    Owns,
    /// It reads these outputs of it; `None` when it may read any.
    Reads(Option<Vec<String>>),
}

/// A resource that a pull plans to change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Claim {
    /// Its address.
    pub address: String,
    /// Where it was before a `moved` block.
    pub previous: Option<String>,
    /// What is done.
    pub action: Action,
}

/// Another open pull that plans changes to resources which this one changes as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its number.
    pub pull: u64,
    /// Who opened it.
    pub by: Login,
    /// Whether it is a draft.
    pub draft: bool,
    /// The resources, deletions first.
    pub shared: Vec<Shared>,
}

/// A resource that two pulls plan to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// Our root.
    pub root: RootKey,
    /// Its address in our plan.
    pub address: String,
    /// What the other pull does to it.
    pub theirs: Action,
    /// What this pull does to it.
    pub ours: Action,
}

/// Who changed a state by an apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mover {
    /// The pull; `None` when it is one of another repository that must not be named.
    pub pull: Option<MovingPull>,
    /// Outputs that changed; `None` when any may have.
    pub outputs: Option<Vec<String>>,
    /// Whether the apply failed on the way; what it changed until then stays.
    pub failed: bool,
    /// When the apply ended.
    pub at: Timestamp,
}

/// A pull whose apply changed a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovingPull {
    /// `owner/name`, when it is another repository.
    pub repo: Option<String>,
    /// Its number.
    pub number: u64,
    /// Who asked for the apply.
    pub by: Login,
    /// Its root of that state.
    pub root: RootKey,
}

/// Why a plan is made again without anybody of this pull having asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// Another pull's apply changed the state, or an output that is read.
    Applied(Mover),
    /// The base branch moved, and the root with it.
    BaseMoved {
        /// The branch.
        branch: String,
        /// Its new tip.
        tip: super::ids::Sha,
        /// The pull whose merge did that, once it is known.
        merged: Option<Merge>,
    },
}

/// Whether reading these outputs (any, when `None`) reads one of those that changed (any, when `None`).
pub fn meets(reads: Option<&[String]>, changed: Option<&[String]>) -> bool {
    match (reads, changed) {
        (_, None) => true,
        (None, Some(changed)) => !changed.is_empty(),
        (Some(reads), Some(changed)) => changed.iter().any(|output| reads.contains(output)),
    }
}

/// What the pull has to do with which states now. Plans that are on their way keep what was said before, so that others are not told
/// of every step.
pub fn interests(pull: &Pull) -> Vec<Interest> {
    let (Some(rollout), Some(seen), true) = (&pull.rollout, &pull.seen, pull.is_open()) else { return Vec::new() };
    match rollout.stage {
        Stage::Inspecting => return pull.interests.clone(),
        Stage::Refused(_) | Stage::Unmanaged(_) => return Vec::new(),
        Stage::Ready => {}
    }
    let any = |is: fn(&PlanRun) -> bool| rollout.runs.values().any(|run| is(&run.plan));
    // Behind a lock of another pull nothing comes by itself.
    let held = any(|plan| matches!(plan, PlanRun::Blocked(_)));
    let coming = any(|plan| matches!(plan, PlanRun::Running { .. })) || !held && any(|plan| *plan == PlanRun::Queued);
    let interest = |run: &RootRun, state: &StateKey, role: Role, claims: Vec<Claim>| Interest {
        state: state.clone(),
        root: run.root.clone(),
        role,
        by: seen.author.clone(),
        draft: seen.draft,
        claims,
    };
    let mut found = Vec::new();
    for run in rollout.runs.values() {
        let said = || {
            let before = pull.interests.iter().find(|it| it.state == run.state && it.role == Role::Owns);
            before.map(|it| it.claims.clone()).unwrap_or_default()
        };
        let claims = match &run.plan {
            _ if run.is_applied() => Vec::new(),
            _ if coming => said(),
            PlanRun::Done(planned) => claims(&planned.plan),
            PlanRun::Blocked(_) | PlanRun::Queued => said(),
            _ => Vec::new(),
        };
        found.push(interest(run, &run.state, Role::Owns, claims));
        found
            .extend(run.reads.iter().map(|state| interest(run, state, Role::Reads(run.outputs_of(state)), Vec::new())));
    }
    found.sort();
    found.dedup();
    found
}

fn claims(plan: &Plan) -> Vec<Claim> {
    let does_something =
        |action: Action, moved: bool| !matches!(action, Action::Read) && (action != Action::Nothing || moved);
    let mut claims: Vec<Claim> = plan
        .changes
        .iter()
        .filter(|change| does_something(change.action, change.previous_address.is_some() || change.importing))
        .map(|change| Claim {
            address: change.address.clone(),
            previous: change.previous_address.clone(),
            action: change.action,
        })
        .collect();
    claims.sort();
    claims.dedup();
    claims
}

/// The states on which the one list claims something else than the other: whoever claims there as well has to look again.
pub fn reclaimed(before: &[Interest], after: &[Interest]) -> Vec<StateKey> {
    let claiming = |interests: &[Interest]| {
        let mut by_state: BTreeMap<StateKey, Vec<(Login, bool, Claim)>> = BTreeMap::new();
        for it in interests {
            let claims = it.claims.iter().map(|claim| (it.by.clone(), it.draft, claim.clone()));
            by_state.entry(it.state.clone()).or_default().extend(claims);
        }
        by_state.retain(|_, claims| !claims.is_empty());
        by_state
    };
    let (before, after) = (claiming(before), claiming(after));
    let mut moved: Vec<StateKey> =
        before.keys().chain(after.keys()).filter(|state| before.get(*state) != after.get(*state)).cloned().collect();
    moved.sort();
    moved.dedup();
    moved
}

/// The pulls that plan changes to the same resources, by number. One resource is one address of one state; a resource that moves
/// is met by both of its addresses.
pub fn neighbours(own: &[Interest], others: &[(u64, Interest)]) -> Vec<Neighbour> {
    let mut found: BTreeMap<u64, Neighbour> = BTreeMap::new();
    for (number, other) in others {
        let mut names: BTreeMap<&str, &Claim> = BTreeMap::new();
        for claim in &other.claims {
            names.extend(claim.names().map(|name| (name, claim)));
        }
        for mine in own.iter().filter(|mine| mine.state == other.state) {
            for claim in &mine.claims {
                let Some(theirs) = claim.names().find_map(|name| names.get(name)) else { continue };
                let neighbour = found.entry(*number).or_insert_with(|| Neighbour {
                    pull: *number,
                    by: other.by.clone(),
                    draft: other.draft,
                    shared: Vec::new(),
                });
                let (address, ours) = (claim.address.clone(), claim.action);
                let shared = Shared { root: mine.root.clone(), address, theirs: theirs.action, ours };
                if !neighbour.shared.contains(&shared) {
                    neighbour.shared.push(shared);
                }
            }
        }
    }
    for neighbour in found.values_mut() {
        neighbour.shared.sort_by(|a, b| (a.rank(), &a.root, &a.address).cmp(&(b.rank(), &b.root, &b.address)));
    }
    found.into_values().collect()
}

impl Claim {
    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.address.as_str()).chain(self.previous.as_deref())
    }
}

impl Shared {
    /// What dies comes first, whoever does it.
    pub fn rank(&self) -> (u8, u8) {
        let (a, b) = (self.theirs.rank(), self.ours.rank());
        (a.min(b), a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(address: &str, action: Action) -> Claim {
        Claim { address: address.to_owned(), previous: None, action }
    }

    fn moved(from: &str, to: &str) -> Claim {
        Claim { previous: Some(from.to_owned()), ..claim(to, Action::Nothing) }
    }

    fn owns(state: &str, claims: Vec<Claim>) -> Interest {
        let root = RootKey::new(format!("dir-of-{state}"));
        Interest { state: state.into(), root, role: Role::Owns, by: "ann".into(), draft: false, claims }
    }

    fn met(own: Vec<Claim>, other: Vec<Claim>) -> Vec<(String, Action, Action)> {
        let found = neighbours(&[owns("s", own)], &[(2, owns("s", other))]);
        found.into_iter().flat_map(|it| it.shared).map(|it| (it.address, it.theirs, it.ours)).collect()
    }

    #[test]
    fn one_resource_is_one_address_of_one_state_by_any_of_its_names() {
        use Action::{Create, Delete, Nothing, Update};
        let one = |address: &str, theirs, ours| vec![(address.to_owned(), theirs, ours)];
        for (own, other, wanted) in [
            (claim("a.x", Update), claim("a.x", Delete), one("a.x", Delete, Update)),
            (claim("a.x", Update), claim("a.y", Delete), Vec::new()),
            (claim("a.x[0]", Update), claim("a.x[1]", Update), Vec::new()),
            (claim("a.x", Create), claim("a.x", Create), one("a.x", Create, Create)),
            (moved("a.x", "a.y"), claim("a.x", Update), one("a.y", Update, Nothing)),
            (claim("a.x", Update), moved("a.x", "a.y"), one("a.x", Nothing, Update)),
            (moved("a.x", "a.y"), moved("a.x", "a.z"), one("a.y", Nothing, Nothing)),
            (claim("a.y", Create), moved("a.x", "a.y"), one("a.y", Nothing, Create)),
        ] {
            assert_eq!(met(vec![own.clone()], vec![other.clone()]), wanted, "{own:?} and {other:?}");
        }
        let elsewhere =
            neighbours(&[owns("s", vec![claim("a.x", Update)])], &[(2, owns("t", vec![claim("a.x", Update)]))]);
        assert!(elsewhere.is_empty(), "the same address of another state is another resource");
    }

    #[test]
    fn what_dies_comes_first_whoever_does_it() {
        use Action::{Create, Delete, DeleteThenCreate, Update};
        let own = vec![claim("a", Create), claim("b", Update), claim("c", Delete), claim("d", DeleteThenCreate)];
        let other = vec![claim("a", Create), claim("b", Delete), claim("c", Update), claim("d", Update)];
        let order: Vec<String> = met(own, other).into_iter().map(|(address, ..)| address).collect();
        assert_eq!(order, ["b", "c", "d", "a"]);
    }

    #[test]
    fn only_a_change_of_claims_is_told() {
        let one = vec![owns("s", vec![claim("a", Action::Update)]), owns("t", Vec::new())];
        let none: Vec<StateKey> = Vec::new();
        assert_eq!(reclaimed(&one, &one), none);
        assert_eq!(reclaimed(&[], &[owns("t", Vec::new())]), none, "a root without changes concerns nobody");
        assert_eq!(reclaimed(&[], &one), [StateKey::new("s")]);
        assert_eq!(reclaimed(&one, &[]), [StateKey::new("s")]);
        assert_eq!(reclaimed(&one, &[owns("s", vec![claim("a", Action::Delete)])]), [StateKey::new("s")]);
        let draft = vec![Interest { draft: true, ..one[0].clone() }];
        assert_eq!(reclaimed(&one, &draft), [StateKey::new("s")]);
    }

    #[test]
    fn a_reader_meets_what_changed_by_output() {
        let (x, y) = (vec!["x".to_owned()], vec!["y".to_owned()]);
        for (reads, changed, wanted) in [
            (Some(&x), Some(&x), true),
            (Some(&x), Some(&y), false),
            (None, Some(&y), true),
            (None, Some(&Vec::new()), false),
            (Some(&x), Some(&Vec::new()), false),
            (Some(&x), None, true),
            (None, None, true),
        ] {
            assert_eq!(meets(reads.map(Vec::as_slice), changed.map(Vec::as_slice)), wanted, "{reads:?} {changed:?}");
        }
    }
}
