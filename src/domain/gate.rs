//! The gate of a wave: from policy, plans and approvals to a verdict with its reasons. Only this file
//! makes a [`Permit`], and nothing is applied without one.

use super::approval::{Approval, Confirmed, Permission, Review, Verdict as ReviewVerdict};
use super::config::{ApprovalSource, GatePolicy};
use super::ids::{Digest, Login, RootKey, Sha, Timestamp};
use super::pull::AppliedDigest;

/// Everything that decides about one wave.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// `wave-N`, 1-based.
    pub wave: usize,
    /// The digest that it plans now; `None` when nothing changes.
    pub digest: Option<&'a Digest>,
    /// The strictest policy of its roots.
    pub policy: GatePolicy,
    /// Addresses that would be deleted or replaced.
    pub destroyed: &'a [(RootKey, String)],
    /// Approvals by comment, oldest first.
    pub approvals: &'a [Approval],
    /// The newest verdict of each reviewer. A review says nothing of its author's permission: the caller leaves
    /// out the approving reviews of people whom [`bars`] refuses.
    pub reviews: &'a [Review],
    /// Digests that an apply used.
    pub applied: &'a [AppliedDigest],
    /// The rules, read from the base commit.
    pub rules: &'a Rules,
    /// The head: a review of another head approves nothing.
    pub head: &'a Sha,
    /// When the digest was first shown; a review before it does not count. `None`: the note shows no digest for
    /// the wave (it plans again after another), so that no review approves it.
    pub shown_at: Option<Timestamp>,
}

/// Who may approve, how many it takes, and what must be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What counts.
    pub source: ApprovalSource,
    /// Different people needed.
    pub count: usize,
    /// Whose approval never counts, with `four_eyes`: the author and committers.
    pub barred: Vec<Login>,
    /// When the settings name approvers, only these; `None`: everyone with write access.
    pub named: Option<Vec<Login>>,
    /// `confirm_destructive`.
    pub confirm_destructive: bool,
}

/// Proof that the gate let a wave pass with exactly this digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    wave: usize,
    digest: Digest,
    by: Vec<Login>,
}

impl Permit {
    /// `wave-N`.
    pub fn wave(&self) -> usize {
        self.wave
    }
    /// The set digest that may be applied.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
    /// Whose approvals are used; empty when the policy asks for none.
    pub fn by(&self) -> &[Login] {
        &self.by
    }
}

/// What the gate says, and the exit code of the command line that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to apply.
    Nothing,
    /// Apply (exit 0).
    Open(Permit),
    /// Waits (exit 3): for what.
    Held(Vec<Reason>),
    /// Applies nothing (exit 4): its plans changed after this approval, which no run applied.
    Refused {
        /// The approval's digest.
        approved: Digest,
        /// Who gave it.
        by: Login,
    },
}

/// What a wave waits for, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// More approvals.
    Missing {
        /// How many more people.
        more: usize,
        /// Who may; `None`: anyone with write access.
        named: Option<Vec<Login>>,
        /// The author and committers may not.
        four_eyes: bool,
    },
    /// Addresses that no counted approval names.
    Unconfirmed(Vec<(RootKey, String)>),
    /// Somebody who approved asks for changes now.
    ChangesRequested(Login),
}

/// Something that counts as an approval of the wave, by whatever means it was given.
struct Vote<'a> {
    digest: &'a Digest,
    by: &'a Login,
    at: Timestamp,
    confirmed: &'a [Confirmed],
}

/// Decides about a wave (the tables of section 5).
///
/// The newest approval that counts decides alone whether the wave may pass, waits or is refused; when it names
/// today's digest, everybody who named that digest is counted with it.
pub fn decide(question: &Question<'_>) -> Verdict {
    let Some(digest) = question.digest else { return Verdict::Nothing };
    if !waits(question) {
        return Verdict::Open(Permit { wave: question.wave, digest: digest.clone(), by: Vec::new() });
    }
    let votes = votes(question, digest);
    let Some(newest) = votes.last() else {
        return Verdict::Held(reasons(question, digest, &[]));
    };
    if newest.digest != digest {
        if question.applied.iter().any(|used| used.digest == *newest.digest) {
            // A newer approval was used up meanwhile: what was said of today's digest before it does not revive.
            return Verdict::Held(reasons(question, digest, &[]));
        }
        return Verdict::Refused { approved: newest.digest.clone(), by: newest.by.clone() };
    }
    let counted: Vec<&Vote<'_>> = votes.iter().filter(|vote| vote.digest == digest).collect();
    let reasons = reasons(question, digest, &counted);
    let stops = reasons.iter().any(|reason| !matches!(reason, Reason::ChangesRequested(_)));
    if stops {
        return Verdict::Held(reasons);
    }
    Verdict::Open(Permit { wave: question.wave, digest: digest.clone(), by: people(&counted) })
}

/// Whether the policy asks for an approval of these plans at all.
fn waits(question: &Question<'_>) -> bool {
    match question.policy {
        GatePolicy::Never => false,
        GatePolicy::OnDestructive => !question.destroyed.is_empty(),
        GatePolicy::Always => true,
    }
}

/// Everything that counts for the wave, oldest first.
fn votes<'a>(question: &'a Question<'a>, digest: &'a Digest) -> Vec<Vote<'a>> {
    if question.rules.source == ApprovalSource::Sealed {
        return Vec::new();
    }
    let by_comment = question.approvals.iter().filter(|approval| approval.wave == question.wave).map(|approval| Vote {
        digest: &approval.digest,
        by: &approval.by,
        at: approval.at,
        confirmed: &approval.confirmed,
    });
    let by_review = question.reviews.iter().filter(|review| review_approves(question, review)).map(|review| Vote {
        digest,
        by: &review.by,
        at: review.at,
        confirmed: &[],
    });
    let mut votes: Vec<_> = by_comment
        .chain(by_review)
        .filter(|vote| excluded(question.rules, vote.by).is_none() && !asks_for_changes(question.reviews, vote.by))
        .collect();
    // Stable: of two approvals of one instant the one that was stored later is the newer.
    votes.sort_by_key(|vote| vote.at);
    votes
}

/// Whether a review stands for an approval of the digest that was shown.
fn review_approves(question: &Question<'_>, review: &Review) -> bool {
    question.rules.source == ApprovalSource::PrReview
        && review.verdict == ReviewVerdict::Approved
        && review.head == *question.head
        && question.shown_at.is_some_and(|shown| review.at >= shown)
}

/// Whether a person's newest verdict asks for changes, on whatever head it was given.
fn asks_for_changes(reviews: &[Review], by: &Login) -> bool {
    let said = reviews.iter().filter(|review| review.by.same(by) && review.verdict != ReviewVerdict::Commented);
    // At one instant the stricter verdict wins.
    let newest = said.max_by_key(|review| (review.at, review.verdict == ReviewVerdict::ChangesRequested));
    newest.is_some_and(|review| review.verdict == ReviewVerdict::ChangesRequested)
}

/// What is missing when exactly `counted` count.
fn reasons(question: &Question<'_>, digest: &Digest, counted: &[&Vote<'_>]) -> Vec<Reason> {
    let rules = question.rules;
    let mut reasons = Vec::new();
    // A gate that waits needs somebody, whatever number the settings give.
    let more = rules.count.max(1).saturating_sub(people(counted).len());
    if more > 0 {
        reasons.push(Reason::Missing { more, named: rules.named.clone(), four_eyes: !rules.barred.is_empty() });
    }
    if rules.confirm_destructive {
        let left = unconfirmed(question.destroyed, counted.iter().flat_map(|vote| vote.confirmed));
        if !left.is_empty() {
            reasons.push(Reason::Unconfirmed(left));
        }
    }
    let mut against: Vec<Login> = Vec::new();
    for approval in question.approvals {
        let names_it = approval.wave == question.wave && approval.digest == *digest;
        if names_it
            && asks_for_changes(question.reviews, &approval.by)
            && !against.iter().any(|by| by.same(&approval.by))
        {
            against.push(approval.by.clone());
        }
    }
    reasons.extend(against.into_iter().map(Reason::ChangesRequested));
    reasons
}

/// Destroyed addresses that nobody named. An address that several roots destroy needs its root beside it.
pub fn unconfirmed<'a>(
    destroyed: &[(RootKey, String)],
    confirmed: impl Iterator<Item = &'a Confirmed>,
) -> Vec<(RootKey, String)> {
    let confirmed: Vec<&Confirmed> = confirmed.collect();
    let named = |root: &RootKey, address: &str| {
        let alone = destroyed.iter().filter(|(_, other)| other == address).count() == 1;
        confirmed.iter().any(|confirmed| {
            confirmed.address == address
                && match &confirmed.root {
                    Some(said) => said == root,
                    None => alone,
                }
        })
    };
    destroyed.iter().filter(|(root, address)| !named(root, address)).cloned().collect()
}

/// The different people behind votes, in the order of their first.
fn people(votes: &[&Vote<'_>]) -> Vec<Login> {
    let mut people: Vec<Login> = Vec::new();
    for vote in votes {
        if !people.iter().any(|person| person.same(vote.by)) {
            people.push(vote.by.clone());
        }
    }
    people
}

/// Why a person may not approve; `None`: they may. Being named stands in for write access, but never for other eyes.
pub fn bars(rules: &Rules, by: &Login, permission: Permission) -> Option<Bar> {
    excluded(rules, by)
        .or_else(|| (rules.named.is_none() && permission < Permission::Write).then_some(Bar::NoWriteAccess))
}

/// The part of [`bars`] that stays true whatever the forge allows a person: it is asked again when a vote is counted.
fn excluded(rules: &Rules, by: &Login) -> Option<Bar> {
    let among = |people: &[Login]| people.iter().any(|person| person.same(by));
    if among(&rules.barred) {
        return Some(Bar::FourEyes);
    }
    match &rules.named {
        Some(named) if !among(named) => Some(Bar::NotNamed),
        _ => None,
    }
}

/// Why a person may not approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// No write access.
    NoWriteAccess,
    /// The author or a committer, with `four_eyes`.
    FourEyes,
    /// The settings name others.
    NotNamed,
}

#[cfg(test)]
mod tests;
