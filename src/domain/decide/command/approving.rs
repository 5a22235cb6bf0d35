//! Approvals by comment: which waves an `approve` means, who may give it, what it must confirm, and taking it back. It
//! applies nothing; whether an approval counts is the gate's rule.

use super::{Answer, is_before};
use crate::domain::approval::{Approval, Confirmed, Permission, Source};
use crate::domain::config::ApprovalSource;
use crate::domain::decide::Turn;
use crate::domain::decide::gates::{destroyed, shown};
use crate::domain::event::Comment;
use crate::domain::gate::{Bar, bars, unconfirmed};
use crate::domain::ids::{Digest, Login, Timestamp};
use crate::domain::reply;
use crate::domain::rollout::Rollout;

impl Turn<'_> {
    pub(super) fn approve(&mut self, comment: &Comment, words: &ApproveWords<'_>, permission: Permission) -> Answer {
        let Some(rollout) = self.pull.rollout.clone() else { return Answer::Refused(reply::not_seen()) };
        if !rollout.is_planned() && rollout.apply.is_none() {
            return Answer::Refused(reply::still_planning(&rollout));
        }
        let waves = match chosen_waves(&rollout, words) {
            Ok(waves) => waves,
            Err(refusal) => return Answer::Refused(refusal),
        };
        let unseen =
            waves.iter().any(|(wave, _)| shown_at(&rollout, *wave).is_some_and(|shown| is_before(comment, shown)));
        if unseen && words.digest.is_none() {
            return Answer::Refused(reply::older_than_the_plan("approved", "approve"));
        }
        for (wave, _) in &waves {
            let rules = self.rules(&rollout, *wave);
            if rules.source == ApprovalSource::Sealed {
                return Answer::Refused(reply::sealed(*wave));
            }
            if let Some(bar) = bars(&rules, &comment.by, permission) {
                return Answer::Refused(barred(bar, &comment.by, rules.named.as_deref()));
            }
            let dying = destroyed(&rollout, *wave);
            let missing = unconfirmed(&dying, words.confirm.iter());
            if rules.confirm_destructive && !missing.is_empty() {
                return Answer::Refused(reply::unconfirmed(*wave, &missing, &dying));
            }
        }
        for (wave, digest) in waves {
            self.ledger.push(format!("{} approves wave-{wave} {}", comment.by, digest.as_str()));
            self.pull.approvals.push(Approval {
                wave,
                digest,
                by: comment.by.clone(),
                at: comment.at,
                source: Source::Comment(comment.id),
                confirmed: words.confirm.to_vec(),
            });
        }
        Answer::Done
    }

    pub(super) fn unapprove(&mut self, by: &Login) -> Answer {
        let before = self.pull.approvals.len();
        self.pull.approvals.retain(|approval| !approval.by.same(by));
        match before - self.pull.approvals.len() {
            0 => Answer::Refused(reply::nothing_to_take_back(by)),
            count => {
                self.ledger.push(format!("{by} takes back {count} approvals"));
                Answer::Done
            }
        }
    }
}

/// When the newest plan of a wave was there.
fn shown_at(rollout: &Rollout, wave: usize) -> Option<Timestamp> {
    rollout.wave(wave).filter_map(|run| run.planned()).map(|planned| planned.at).max()
}

/// What an `approve` names.
pub(super) struct ApproveWords<'a> {
    pub(super) wave: Option<usize>,
    pub(super) digest: Option<&'a str>,
    pub(super) confirm: &'a [Confirmed],
}

/// The waves that an `approve` means: those whose digest is shown now, and only those that it names.
fn chosen_waves(rollout: &Rollout, words: &ApproveWords<'_>) -> Result<Vec<(usize, Digest)>, String> {
    let mut shown = shown(rollout);
    if let Some(wave) = words.wave {
        if wave == 0 || wave > rollout.waves.len() {
            return Err(reply::no_such_wave(wave, rollout.waves.len()));
        }
        shown.retain(|(own, _)| *own == wave);
        if shown.is_empty() {
            return Err(reply::no_digest_yet(wave));
        }
    }
    if let Some(typed) = words.digest {
        let now: Vec<String> = shown.iter().map(|(wave, digest)| format!("`wave-{wave}` plans `{digest}`")).collect();
        shown.retain(|(_, digest)| digest.is_named_by(typed));
        if shown.is_empty() {
            return Err(reply::other_digest(typed, &now));
        }
    }
    if shown.is_empty() { Err(reply::nothing_to_approve()) } else { Ok(shown) }
}

fn barred(bar: Bar, by: &Login, named: Option<&[Login]>) -> String {
    match bar {
        Bar::NoWriteAccess => reply::no_write_access(by),
        Bar::FourEyes => reply::four_eyes(by),
        Bar::NotNamed => reply::not_named(by, named.unwrap_or_default()),
    }
}
