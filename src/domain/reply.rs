//! Replies to commands: each names the rule, its value now and the way out (`examples/notes.md` 5). Only words; nothing is
//! decided here.

use super::command;
use super::config::Requirement;
use super::ids::{Digest, Login, RootKey, Sha};
use super::lock::{Blocked, Unsaved};
use super::note::markdown::code;
use super::pull::{Pull, PullState};
use super::rollout::{Apply, Rollout, Stage, WaveState};

mod explain;

pub use explain::{explain, reason_in_words};

/// `help`.
pub fn help() -> String {
    format!(
        "{}\n\nWhat this pull can use now stands at the end of the note; `status` says where it stands.",
        command::usage()
    )
}

/// A command in an edited comment.
pub fn edited() -> String {
    "Not run: edits of a comment run nothing. Write the command in a new comment.".to_owned()
}

/// A command that needs write access.
pub fn no_write_access(by: &Login) -> String {
    format!("Not done: this needs write access to the repository, and `{by}` does not have it. Ask somebody who has.")
}

/// A program that the settings let command wants to approve.
pub fn approved_by_program(by: &Login) -> String {
    format!(
        "Not done: `{by}` is a program, and approvals are given by people. `pulls.bots` lets it type every other command."
    )
}

/// An author's or committer's approval.
pub fn four_eyes(by: &Login) -> String {
    format!(
        "Not approved: `approvers.four_eyes` is on, and `{by}` is the author or a committer of this change. Somebody else approves."
    )
}

/// An approval by somebody whom the settings do not name.
pub fn not_named(by: &Login, named: &[Login]) -> String {
    let names: Vec<String> = named.iter().map(|login| format!("`{login}`")).collect();
    let who = if names.is_empty() { "nobody who exists".to_owned() } else { names.join(", ") };
    format!("Not approved: `approvers` of these roots names {who}, not `{by}`.")
}

/// A command on a closed pull.
pub fn not_open(state: Option<PullState>) -> String {
    let state = match state {
        Some(PullState::Merged) => "merged",
        _ => "closed",
    };
    format!("Not done: this pull is {state}. Only `unlock`, `settle`, `status` and `help` work here.")
}

/// Nothing is known of the pull yet.
pub fn not_seen() -> String {
    "Not done: this pull is being read for the first time. Try again in a moment.".to_owned()
}

/// Something is being applied.
pub fn applying(root: &RootKey) -> String {
    format!("Not done: {} is being applied. Wait for its result; it comes as a comment.", named(root))
}

/// A second `apply`.
pub fn already_applying(apply: &Apply) -> String {
    format!("Already applying for `{}`, now at wave {}. The comment above follows it.", apply.by, apply.wave)
}

/// An apply before the plans are there.
pub fn still_planning(rollout: &Rollout) -> String {
    format!(
        "Not done: the plan of `{}` is still running. The note says when it is there; then type it again.",
        rollout.head.short()
    )
}

/// The base has commits that the plans do not know.
pub fn base_moved(rollout: &Rollout) -> String {
    format!(
        "Not applied: {} moved on from `{}` since the plan. What it touches is planned again on top of it; type `apply` once the note shows it.",
        code(&rollout.base_ref),
        rollout.base.short()
    )
}

/// A command that was written before the plan that it would act on was shown.
pub fn older_than_the_plan(done: &str, verb: &str) -> String {
    format!(
        "Not {done}: this was written before the plan that is shown now. Look at the note, then type `{verb}` again."
    )
}

/// Nothing to apply.
pub fn nothing_to_apply(head: &Sha) -> String {
    format!("Nothing to apply: no root changes at `{}`.", head.short())
}

/// An apply after one that failed.
pub fn failed_before(root: &RootKey) -> String {
    format!(
        "Not applied: the last apply of {} failed, and its plan is spent. Type `plan -d {}` to plan what is left.",
        named(root),
        quoted(root)
    )
}

/// A draft.
pub fn draft() -> String {
    "Not applied: the pull is a draft. Mark it ready for review, then type `apply`.".to_owned()
}

/// A wave that there is not.
pub fn no_such_wave(wave: usize, waves: usize) -> String {
    let have = match waves {
        0 => "this pull has no waves".to_owned(),
        1 => "this pull has `wave-1` only".to_owned(),
        last => format!("this pull has `wave-1` to `wave-{last}`"),
    };
    format!("There is no `wave-{wave}`: {have}.")
}

/// A root without a plan in the way of an apply.
pub fn no_plan(root: &RootKey) -> String {
    format!(
        "Not applied: {} has no plan that could be applied, so its wave is not complete. Mend it and push, or type `plan -d {1}`; `apply -d ROOT` applies roots of other waves.",
        named(root),
        quoted(root)
    )
}

/// A wave whose plan will be made again.
pub fn no_digest_yet(wave: usize) -> String {
    format!(
        "Not approved: `wave-{wave}` has no digest to approve now. It changes nothing, or it is planned again once the waves before it are applied; its digest then stands in the apply comment."
    )
}

/// An approval of a digest that is not the current one.
pub fn other_digest(typed: &str, now: &[String]) -> String {
    let typed = super::ids::Digest::from_hex(typed.strip_prefix("tg1:").unwrap_or(typed));
    let now = if now.is_empty() { "nothing waits for an approval now".to_owned() } else { now.join(", ") };
    format!("Not approved: `{typed}` is not what is planned now; {now}. Review the note, then approve what it shows.")
}

/// A comment where only sealed records count.
pub fn sealed(wave: usize) -> String {
    format!(
        "Not approved: `approval` is `sealed`, so no comment approves `wave-{wave}`, and this version reads no sealed records yet. Set `approval` to `ledger` or `pr-review` in `.tidegate.yaml` of the base branch."
    )
}

/// Nothing waits.
pub fn nothing_to_approve() -> String {
    "Nothing to approve: no wave shows a digest that changes something.".to_owned()
}

/// `confirm_destructive` with addresses that were not named.
pub fn unconfirmed(wave: usize, missing: &[(RootKey, String)], dying: &[(RootKey, String)]) -> String {
    let names: Vec<String> =
        missing.iter().map(|(root, address)| format!("{} {}", named(root), code(address))).collect();
    let lines: Vec<String> =
        dying.iter().map(|(root, address)| format!("confirm {} {address}", quoted(root))).collect();
    let count = match dying.len() {
        1 => "the 1 address was not named".to_owned(),
        all if missing.len() == 1 => format!("1 of {all} addresses was not named"),
        all => format!("{} of {all} addresses were not named", missing.len()),
    };
    format!(
        "Not approved: `confirm_destructive` is on and {count}.\nMissing: {}. Type:\n```\napprove wave-{wave}\n{}\n```",
        names.join(", "),
        lines.join("\n")
    )
}

/// `unapprove` without an approval.
pub fn nothing_to_take_back(by: &Login) -> String {
    format!("Nothing to take back: `{by}` has approved nothing here.")
}

/// A running apply is not canceled.
pub fn cannot_cancel_apply(root: &RootKey) -> String {
    format!(
        "Not canceled: {} is being applied, and an interrupted apply can lose what it created. What was queued is dropped.",
        named(root)
    )
}

/// `plan` of named roots before a fork's head may run at all.
pub fn fork_first(head: &Sha) -> String {
    format!(
        "Not planned: nothing of a fork runs without a word for the whole head. Review `{}`, then type `plan` alone.",
        head.short()
    )
}

/// `plan` that was written before a fork's head was there.
pub fn fork_moved(head: &Sha) -> String {
    format!(
        "Not planned: the head of this fork moved to `{}` since you wrote that. Review it, then type `plan` again.",
        head.short()
    )
}

/// `unlock` while applying.
pub fn unlock_while_applying(root: &RootKey) -> String {
    format!("Not unlocked: {} is being applied, and its lock stays until that ends.", named(root))
}

/// `unlock` that found nothing of this pull; `others` hold what it named.
pub fn nothing_to_unlock(typed: &[RootKey], others: &[(RootKey, u64)]) -> String {
    if !others.is_empty() {
        let lines: Vec<String> = others
            .iter()
            .map(|(root, pull)| {
                format!("{} is locked by #{pull}; `unlock -d {}` on #{pull} frees it.", named(root), quoted(root))
            })
            .collect();
        return format!("Nothing to unlock here: {}", lines.join(" "));
    }
    if typed.is_empty() {
        return "Nothing to unlock: this pull holds no lock.".to_owned();
    }
    let names: Vec<String> = typed.iter().map(named).collect();
    format!("Nothing to unlock: this pull holds no lock of {}.", names.join(", "))
}

/// `unlock`.
pub fn unlocked(roots: &[RootKey]) -> String {
    let names: Vec<String> = roots.iter().map(named).collect();
    format!("Unlocked {}.", names.join(", "))
}

/// An apply on a state that an earlier one could not save.
pub fn unsaved(unsaved: &[(RootKey, Unsaved)]) -> String {
    format!("Not applied: {}", unsaved_states(unsaved))
}

/// Which states are not saved, and the way out.
pub fn unsaved_states(unsaved: &[(RootKey, Unsaved)]) -> String {
    let lines: Vec<String> = unsaved
        .iter()
        .map(|(root, one)| {
            format!(
                "the state of {} is not saved: its backend did not take it at the apply of #{} ({} UTC). How to get it and push it stands in that apply's comment; then type `settle -d {}`.",
                named(root),
                one.pull,
                one.since.hour_minute(),
                quoted(root)
            )
        })
        .collect();
    lines.join("\n")
}

/// `settle` of what is not unsaved; `all` are those that are.
pub fn nothing_to_settle(typed: &[RootKey], all: &[RootKey]) -> String {
    let names = |roots: &[RootKey]| roots.iter().map(named).collect::<Vec<_>>().join(", ");
    let others = match all {
        [] => "no state of this repository waits to be saved".to_owned(),
        [one] => format!("the one state that waits to be saved is that of {}", named(one)),
        all => format!("the states that wait to be saved are those of {}", names(all)),
    };
    format!("Nothing to settle for {}: {others}.", names(typed))
}

/// `settle`; `planned` is how many roots of this pull are planned again.
pub fn settled(roots: &[RootKey], planned: usize) -> String {
    let names: Vec<String> = roots.iter().map(named).collect();
    let again = if planned > 0 { " It is planned again on the state that is there now." } else { "" };
    format!("Settled {}.{again}", names.join(", "))
}

/// Locked by another pull.
pub fn locked(blocked: &[Blocked], own: u64) -> String {
    let lines: Vec<String> = blocked.iter().map(|blocked| locked_line(blocked, own)).collect();
    lines.join("\n")
}

fn locked_line(blocked: &Blocked, own: u64) -> String {
    let ahead: Vec<String> = blocked.ahead.iter().filter(|pull| **pull != own).map(|pull| format!("#{pull}")).collect();
    let place = if ahead.is_empty() { "first".to_owned() } else { format!("in line after {}", ahead.join(", ")) };
    match &blocked.holder {
        Some(holder) => format!(
            "Not done: {root} is locked by #{pull} (`{by}`, since {since} UTC). You are {place}; this pull is planned by itself when its turn comes. `unlock -d {quoted}` on #{pull} frees it.",
            root = named(&blocked.root),
            pull = holder.pull,
            by = holder.by,
            since = holder.since.hour_minute(),
            quoted = quoted(&blocked.root),
        ),
        None => format!(
            "Not done: others wait for {} before you. You are {place}; this pull is planned by itself when its turn comes.",
            named(&blocked.root)
        ),
    }
}

/// A name that is no reached root.
pub fn unknown_root(typed: &str, workspace: Option<&str>, known: &[&RootKey]) -> String {
    let (shown, workspace) = (code(typed), workspace.map(code));
    let what = match workspace {
        Some(workspace) if typed.is_empty() => format!("no root of this pull has the workspace {workspace}"),
        Some(workspace) => format!("{shown} in the workspace {workspace} is no root that this pull reaches"),
        None => format!("{shown} is no root that this pull reaches"),
    };
    let mut near: Vec<&&RootKey> = known.iter().collect();
    near.sort_by_key(|root| (strsim::levenshtein(typed, &root.to_string()), root.to_string()));
    let names: Vec<String> = near.iter().take(5).map(|root| named(root)).collect();
    match names.is_empty() {
        true => format!("Not done: {what}; it reaches none."),
        false => format!(
            "Not done: {what}. It reaches {}{}.",
            names.join(", "),
            if known.len() > 5 { " and others" } else { "" }
        ),
    }
}

/// A requirement of `apply.requires` that does not hold.
pub fn unmet(requirement: Requirement, mergeable: Option<bool>) -> String {
    match requirement {
        Requirement::Approved => "Not applied: `apply.requires` has `approved`, and no review approves this head. Ask for one, then type `apply`.".to_owned(),
        Requirement::Mergeable if mergeable.is_none() => "Not applied: `apply.requires` has `mergeable`, and the forge has not said yet. Type `apply` again in a moment.".to_owned(),
        Requirement::Mergeable => "Not applied: `apply.requires` has `mergeable`, and the head conflicts with its base. Resolve the conflict and push.".to_owned(),
        Requirement::Undiverged => "Not applied: `apply.requires` has `undiverged`, and the base has commits that the head lacks. Update the branch, then type `apply`.".to_owned(),
    }
}

/// `status`.
pub fn status(pull: &Pull, waves: &[(WaveState, Option<String>)], held: &[&RootKey]) -> String {
    let Some(rollout) = &pull.rollout else { return not_seen() };
    let mut lines = vec![match &rollout.stage {
        Stage::Inspecting => format!("`{}` is being read.", rollout.head.short()),
        Stage::Refused(refusal) | Stage::Unmanaged(refusal) => format!("**{}**", refusal.title),
        Stage::Ready => {
            let done = rollout.runs.values().filter(|run| run.planned().is_some()).count();
            format!(
                "**{done} of {} planned** at `{}`: {}.",
                roots(rollout.runs.len()),
                rollout.head.short(),
                rollout.counts()
            )
        }
    }];
    if !waves.is_empty() {
        let each = waves.iter().enumerate();
        let each =
            each.map(|(at, (state, waits))| format!("- `wave-{}` {}", at + 1, wave_in_words(state, waits.as_deref())));
        lines.push(each.collect::<Vec<_>>().join("\n"));
    }
    let names: Vec<String> = held.iter().map(|root| named(root)).collect();
    lines.push(if names.is_empty() {
        "No lock is held.".to_owned()
    } else {
        format!("Locked by this pull: {}.", names.join(", "))
    });
    lines.join("\n\n")
}

/// Where a wave stands, as the end of a sentence.
pub fn wave_in_words(state: &WaveState, waits: Option<&str>) -> String {
    match state {
        WaveState::Planning => "is being planned".to_owned(),
        WaveState::NoChanges => "changes nothing".to_owned(),
        WaveState::Waiting(digest) => {
            let digest = digest.as_ref().map(|digest: &Digest| format!(" (`{digest}`)")).unwrap_or_default();
            format!("waits for {}{digest}", waits.unwrap_or("an approval"))
        }
        WaveState::Open(digest) => format!("can be applied (`{digest}`)"),
        WaveState::After(wave) => format!("comes after `wave-{wave}`"),
        WaveState::Applying => "is being applied".to_owned(),
        WaveState::Applied => "is applied".to_owned(),
        WaveState::Refused(_) => "is refused: its plans changed after the approval".to_owned(),
        WaveState::Failed => "has a root that failed".to_owned(),
    }
}

fn named(root: &RootKey) -> String {
    code(&root.to_string())
}

/// A root as it is typed after `-d`: quoted when it has to be.
pub fn quoted(root: &RootKey) -> String {
    quoted_path(&root.to_string())
}

/// A path as it is typed in a command.
pub fn quoted_path(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._:-".contains(c)) && !text.starts_with('-');
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

fn roots(count: usize) -> String {
    if count == 1 { "1 root".to_owned() } else { format!("{count} roots") }
}
