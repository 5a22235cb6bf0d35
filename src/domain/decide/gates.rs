//! Asks the gate about a wave with everything that the pull knows, and says the answer in the words of the note.

use super::Turn;
use crate::domain::config::{ApprovalSource, GatePolicy};
use crate::domain::gate::{self, Permit, Question, Reason, Rules, Verdict};
use crate::domain::ids::{Digest, Login, RootKey, Timestamp};
use crate::domain::note::markdown::code;
use crate::domain::rollout::{ApplyRun, ApplyStage, PlanRun, Rollout, RootRun, Stage, WaveState};

/// What a wave waits for where no comment and no review counts.
const SEALED: &str = "a sealed record, which this version does not read yet (`approval: sealed`)";

impl Turn<'_> {
    /// The gate's verdict on a wave, 1-based.
    pub(super) fn ask(&self, rollout: &Rollout, wave: usize) -> Verdict {
        let digest = rollout.set_digest(wave);
        let destroyed = destroyed(rollout, wave);
        let rules = self.rules(rollout, wave);
        let shown_at = rollout.planned_at.and_then(|_| shown_since(rollout, wave));
        gate::decide(&Question {
            wave,
            digest: digest.as_ref(),
            policy: policy(rollout, wave),
            destroyed: &destroyed,
            approvals: &self.pull.approvals,
            reviews: &self.pull.reviews,
            applied: &self.pull.applied,
            rules: &rules,
            head: &rollout.head,
            shown_at,
        })
    }

    /// The approval rules of a wave, from the configuration at the base commit.
    pub(super) fn rules(&self, rollout: &Rollout, wave: usize) -> Rules {
        let config = &rollout.config;
        let mut barred = Vec::new();
        if config.approvers.four_eyes {
            barred.extend(self.pull.seen.as_ref().map(|seen| seen.author.clone()));
            barred.extend(rollout.committers.iter().cloned());
        }
        let names: Vec<&String> = rollout.wave(wave).flat_map(|run| &run.settings.approvers).collect();
        let named = (!names.is_empty()).then(|| self.resolve(&names));
        Rules {
            source: config.approval,
            count: config.approvers.count,
            barred,
            named,
            confirm_destructive: config.confirm_destructive,
        }
    }

    /// Logins of the people whom names and teams of the settings mean.
    fn resolve(&self, names: &[&String]) -> Vec<Login> {
        let mut people: Vec<Login> = Vec::new();
        for name in names {
            let bare = name.trim_start_matches('@');
            match self.facts.teams.get(bare) {
                Some(team) => people.extend(team.iter().cloned()),
                None => people.push(Login::new(bare)),
            }
        }
        people.sort();
        people.dedup();
        people
    }

    /// Where each wave stands, from wave 1 on, with what a waiting one waits for.
    pub(super) fn wave_states(&self, rollout: &Rollout) -> Vec<(WaveState, Option<String>)> {
        let mut states = Vec::new();
        let mut earlier: Option<usize> = None;
        for wave in 1..=rollout.waves.len() {
            let state = self.wave_state(rollout, wave, earlier);
            if !matches!(state.0, WaveState::NoChanges | WaveState::Applied) && earlier.is_none() {
                earlier = Some(wave);
            }
            states.push(state);
        }
        states
    }

    fn wave_state(&self, rollout: &Rollout, wave: usize, earlier: Option<usize>) -> (WaveState, Option<String>) {
        let runs: Vec<&RootRun> = rollout.wave(wave).collect();
        if runs.iter().any(|run| matches!(run.apply, ApplyRun::Running { .. })) {
            return (WaveState::Applying, None);
        }
        if runs
            .iter()
            .any(|run| matches!(run.apply, ApplyRun::Failed { .. }) || matches!(run.plan, PlanRun::Failed { .. }))
        {
            return (WaveState::Failed, None);
        }
        if runs.iter().any(|run| run.changes_something())
            && runs.iter().all(|run| run.is_applied() || run.is_unchanged())
        {
            return (WaveState::Applied, None);
        }
        if let Some(earlier) = earlier
            && runs.iter().any(|run| {
                run.changes_something() || run.reads_unknown() || matches!(run.plan, PlanRun::AwaitsSource(_))
            })
        {
            return (WaveState::After(earlier), None);
        }
        if runs.iter().any(|run| {
            matches!(
                run.plan,
                PlanRun::Queued | PlanRun::Blocked(_) | PlanRun::Running { .. } | PlanRun::AwaitsSource(_)
            )
        }) {
            return (WaveState::Planning, None);
        }
        if let Some(apply) = rollout.apply.as_ref().filter(|apply| apply.wave == wave)
            && let ApplyStage::Refused(what) = &apply.stage
        {
            return (WaveState::Refused(what.clone()), None);
        }
        match self.ask(rollout, wave) {
            Verdict::Nothing => (WaveState::NoChanges, None),
            Verdict::Open(permit) => (WaveState::Open(permit.digest().clone()), None),
            Verdict::Held(_) if rollout.config.approval == ApprovalSource::Sealed => {
                (WaveState::Waiting(rollout.set_digest(wave)), Some(SEALED.to_owned()))
            }
            Verdict::Held(reasons) => (WaveState::Waiting(rollout.set_digest(wave)), Some(in_words(&reasons))),
            Verdict::Refused { approved, by } => (
                WaveState::Waiting(rollout.set_digest(wave)),
                Some(format!("a new approval: {by} approved `{approved}`, and its plans changed since")),
            ),
        }
    }
}

/// The strictest policy of a wave's roots.
fn policy(rollout: &Rollout, wave: usize) -> GatePolicy {
    rollout
        .wave(wave)
        .map(|run| run.settings.gate.or(rollout.config.top.gate).unwrap_or_default())
        .max()
        .unwrap_or_default()
}

/// Every address of a wave that would be deleted or replaced.
pub(super) fn destroyed(rollout: &Rollout, wave: usize) -> Vec<(RootKey, String)> {
    rollout
        .wave(wave)
        .filter_map(|run| Some((run, run.planned()?)))
        .flat_map(|(run, planned)| {
            let dying = planned.plan.changes.iter().filter(|change| change.action.is_destructive());
            dying.map(move |change| (run.root.clone(), change.address.clone()))
        })
        .collect()
}

/// Since when the digest of a wave has been there to be seen; `None` while a value that it reads is not known.
fn shown_since(rollout: &Rollout, wave: usize) -> Option<Timestamp> {
    if rollout.wave(wave).any(RootRun::reads_unknown) {
        return None;
    }
    rollout.wave(wave).filter_map(RootRun::planned).map(|planned| planned.since.unwrap_or(planned.at)).max()
}

/// What a wave waits for, as the end of a sentence.
pub(super) fn in_words(reasons: &[Reason]) -> String {
    let parts: Vec<String> = reasons.iter().map(reason_in_words).collect();
    parts.join("; and ")
}

fn reason_in_words(reason: &Reason) -> String {
    match reason {
        Reason::Missing { more, named, four_eyes } => {
            let approvals = if *more == 1 { "1 more approval".to_owned() } else { format!("{more} more approvals") };
            let who = match named {
                Some(people) if people.is_empty() => "nobody: the settings name no existing approver".to_owned(),
                Some(people) => people.iter().map(|login| format!("`{login}`")).collect::<Vec<_>>().join(", "),
                None => "anyone with write access".to_owned(),
            };
            let but = if *four_eyes { " but the author and committers" } else { "" };
            format!("{approvals}, from {who}{but}")
        }
        Reason::Unconfirmed(missing) => {
            let names: Vec<String> = missing
                .iter()
                .map(|(root, address)| format!("{} in {}", code(address), code(&root.to_string())))
                .collect();
            format!("an approval that confirms {}", names.join(", "))
        }
        Reason::ChangesRequested(by) => format!("{by}, who asks for changes"),
    }
}

/// The digest and permit of an open gate, or nothing.
pub(super) fn permit(verdict: Verdict) -> Option<Permit> {
    match verdict {
        Verdict::Open(permit) => Some(permit),
        _ => None,
    }
}

/// The digests that the note shows: waves whose plans are there and will not be made again before they apply.
pub(super) fn shown(rollout: &Rollout) -> Vec<(usize, Digest)> {
    if rollout.stage != Stage::Ready {
        return Vec::new();
    }
    (1..=rollout.waves.len())
        .filter(|wave| !rollout.wave(*wave).any(RootRun::reads_unknown))
        .filter_map(|wave| Some((wave, rollout.set_digest(wave)?)))
        .collect()
}
