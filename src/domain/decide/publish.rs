//! What people see of a pull, derived anew at the end of each turn: two checks, the note, the comment of the apply, the
//! merge. Saying the same again costs nothing, because the store drops what was already said.

use super::observe::check_slot;
use super::{Turn, basis};
use crate::domain::config::MergePolicy;
use crate::domain::effect::{Act, CheckName, CheckReport, CheckState, Effect};
use crate::domain::ids::{PullKey, Timestamp};
use crate::domain::note::{self, Context};
use crate::domain::rollout::{Apply, ApplyRun, ApplyStage, Hold, PlanRun, Rollout, Stage, Standing, WaveState};

/// A hidden comment by which one of our comments is found again; the same for the same slot, and in no other comment.
pub(super) fn marker(pull: &PullKey, slot: &str) -> String {
    format!("<!-- tidegate {pull} {slot} -->")
}

impl Turn<'_> {
    pub(super) fn publish(&mut self) {
        for rollout in self.pull.retired.clone() {
            self.publish_apply(&rollout);
        }
        let Some(mut rollout) = self.pull.rollout.clone() else { return };
        let standing = self.wave_states(&rollout).into_iter().map(|(state, waits)| Standing { state, waits });
        rollout.standing = standing.collect();
        self.pull.rollout = Some(rollout.clone());
        self.publish_apply(&rollout);
        if !self.pull.is_open() {
            if self.pull.noted {
                self.publish_note(&rollout);
            }
            return;
        }
        self.publish_checks(&rollout);
        self.publish_note(&rollout);
        self.merge(&rollout);
    }

    fn publish_checks(&mut self, rollout: &Rollout) {
        let waves = self.wave_states(rollout);
        let url = Some(self.facts.server.pages.rollout(&rollout.id));
        for (name, (state, title)) in
            [(CheckName::Plan, plan_check(rollout)), (CheckName::Apply, apply_check(rollout, &waves))]
        {
            let title = title.chars().take(140).collect();
            let report = CheckReport {
                head: rollout.head.clone(),
                name,
                state,
                title,
                summary: String::new(),
                url: url.clone(),
            };
            self.act(check_slot(&report), Act::Check(report));
        }
    }

    /// A pull that reaches no root gets no note, unless it had one.
    fn publish_note(&mut self, rollout: &Rollout) {
        let quiet = matches!(rollout.stage, Stage::Inspecting | Stage::Unmanaged(_))
            || rollout.runs.is_empty() && rollout.notices.is_empty() && rollout.stage == Stage::Ready;
        if quiet && (!self.pull.noted || rollout.stage == Stage::Inspecting) {
            return;
        }
        self.pull.noted = true;
        let body = note::note(&self.pull, rollout, &self.context(rollout));
        let not_before = (!rollout.is_planned() || is_moving(rollout)).then(|| self.next_edit());
        let marker = marker(&self.pull.key, "note");
        self.effects.push(Effect { slot: "note".to_owned(), not_before, act: Act::Comment { marker, body } });
    }

    pub(super) fn publish_apply(&mut self, rollout: &Rollout) {
        let Some(apply) = &rollout.apply else { return };
        let mut body = note::apply(&self.pull, rollout, apply, &self.context(rollout));
        if let Some(current) = self.pull.rollout.as_ref().filter(|current| current.id != rollout.id) {
            let (old, new) = (rollout.head.short(), current.head.short());
            let only = format!(
                "\n\nThis applies `{old}` only. The head is `{new}` now: no further wave of `{old}` starts, and what `{new}` changes is planned on what this leaves."
            );
            body.push_str(&only);
        }
        let slot = format!("apply:{}:{}", rollout.id, apply.number);
        let not_before = (apply.stage == ApplyStage::Applying).then(|| self.next_edit());
        let marker = marker(&self.pull.key, &slot);
        self.effects.push(Effect { slot, not_before, act: Act::Comment { marker, body } });
    }

    fn context(&self, rollout: &Rollout) -> Context {
        let (waves, waits) = self.wave_states(rollout).into_iter().unzip();
        let server = &self.facts.server;
        Context {
            url: server.pages.rollout(&rollout.id),
            limit: server.comment_limit,
            now: self.facts.now,
            waves,
            waits,
        }
    }

    /// The next tick of the edit gap: edits of one gap fall together, and none is put off for ever.
    fn next_edit(&self) -> Timestamp {
        let gap = self.facts.server.edit_gap_ms.max(1);
        Timestamp((self.facts.now.0 + gap - 1) / gap * gap)
    }

    /// Merges once every root of the head is applied or unchanged and at least one was applied.
    fn merge(&mut self, rollout: &Rollout) {
        let done = rollout.apply.as_ref().is_some_and(|apply| apply.stage == ApplyStage::Done);
        let complete = rollout.runs.values().all(|run| run.is_applied() || run.is_unchanged());
        let applied = rollout.runs.values().any(crate::domain::rollout::RootRun::is_applied);
        if rollout.config.apply.merge == MergePolicy::Auto && done && complete && applied {
            self.act(format!("merge:{}", rollout.head), Act::Merge { head: rollout.head.clone() });
        }
    }
}

/// Whether anything runs that will change the note by itself.
fn is_moving(rollout: &Rollout) -> bool {
    rollout
        .runs
        .values()
        .any(|run| matches!(run.plan, PlanRun::Running { .. }) || matches!(run.apply, ApplyRun::Running { .. }))
}

fn plan_check(rollout: &Rollout) -> (CheckState, String) {
    match &rollout.stage {
        Stage::Inspecting => return (CheckState::Running, "Reading the change".to_owned()),
        Stage::Refused(refusal) => return (CheckState::Failure, refusal.title.replace('`', "")),
        Stage::Unmanaged(refusal) => return (CheckState::Success, refusal.title.replace('`', "")),
        Stage::Ready => {}
    }
    let total = rollout.runs.len();
    if total == 0 {
        return (CheckState::Success, "No Terraform roots touched".to_owned());
    }
    let failed = rollout.runs.values().filter(|run| matches!(run.plan, PlanRun::Failed { .. })).count();
    let blocked = rollout.runs.values().find_map(|run| match &run.plan {
        PlanRun::Blocked(blocker) => Some((run, blocker)),
        _ => None,
    });
    let done = rollout
        .runs
        .values()
        .filter(|run| {
            matches!(run.plan, PlanRun::Done(_) | PlanRun::Unread | PlanRun::AwaitsSource(_) | PlanRun::Dropped { .. })
        })
        .count();
    let running = rollout.runs.values().any(|run| match run.plan {
        PlanRun::Running { .. } => true,
        // Behind a lock of another pull nothing goes on by itself.
        PlanRun::Queued => !basis::waits_for_lock(rollout, &run.root),
        _ => false,
    });
    if running {
        return (CheckState::Running, format!("{done} of {} planned", roots(total)));
    }
    if failed > 0 {
        return (CheckState::Failure, format!("{} failed to plan", roots(failed)));
    }
    if let Some((run, _)) = blocked.filter(|(_, blocker)| blocker.how != Hold::Lock) {
        return (CheckState::Pending, format!("The state of {} is not saved", run.root));
    }
    if let Some((run, blocker)) = blocked {
        return (CheckState::Pending, format!("{} waits for #{}", run.root, blocker.pull));
    }
    let outside = rollout.runs.values().find_map(|run| match &run.plan {
        PlanRun::AwaitsSource(source) if !rollout.runs.contains_key(source) => Some((run, source)),
        _ => None,
    });
    if let Some((run, source)) = outside {
        return (CheckState::Pending, format!("{} waits for {source}, which was never applied", run.root));
    }
    let unread = rollout.runs.values().filter(|run| run.plan == PlanRun::Unread).count();
    (CheckState::Success, format!("{} planned: {}", roots(total - unread), rollout.counts()))
}

fn apply_check(rollout: &Rollout, waves: &[(WaveState, Option<String>)]) -> (CheckState, String) {
    match &rollout.stage {
        Stage::Inspecting => return (CheckState::Pending, "Waits for the plan".to_owned()),
        Stage::Refused(_) => return (CheckState::Failure, "Nothing can be applied".to_owned()),
        Stage::Unmanaged(refusal) => return (CheckState::Success, refusal.title.replace('`', "")),
        Stage::Ready if rollout.runs.is_empty() => {
            return (CheckState::Success, "No Terraform roots touched".to_owned());
        }
        Stage::Ready => {}
    }
    let to_do = rollout.runs.values().filter(|run| run.is_applied() || !run.is_unchanged()).count();
    let applied = rollout.runs.values().filter(|run| run.is_applied()).count();
    if let Some(wave) = waves.iter().position(|(state, _)| *state == WaveState::Applying) {
        return (
            CheckState::Running,
            format!("Applying wave {} of {}: {applied} of {to_do} applied", wave + 1, waves.len()),
        );
    }
    if rollout.runs.values().any(|run| matches!(run.apply, ApplyRun::Failed { .. })) {
        return (CheckState::Failure, format!("The apply failed: {applied} of {to_do} applied"));
    }
    if !rollout.is_planned() {
        return (
            CheckState::Pending,
            if applied > 0 { format!("{applied} of {to_do} applied") } else { "Waits for the plan".to_owned() },
        );
    }
    if to_do == 0 {
        return (CheckState::Success, "Nothing to apply".to_owned());
    }
    if applied == to_do {
        return (CheckState::Success, format!("{} applied", roots(applied)));
    }
    let waiting = waves.iter().position(|(state, _)| matches!(state, WaveState::Waiting(_)));
    match (waiting, &rollout.apply) {
        (Some(wave), _) => {
            (CheckState::Pending, format!("{applied} of {to_do} applied; wave-{} waits for an approval", wave + 1))
        }
        (None, Some(Apply { stage: ApplyStage::Refused(_), wave, .. })) => {
            (CheckState::Failure, format!("wave-{wave}: plans changed after the approval"))
        }
        (None, _) => (CheckState::Pending, format!("{applied} of {to_do} applied; `apply` is not typed yet")),
    }
}

fn roots(count: usize) -> String {
    if count == 1 { "1 root".to_owned() } else { format!("{count} roots") }
}
