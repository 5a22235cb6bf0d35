//! What a comment makes happen. Each verb is one function: it checks who asks and where the pull stands, changes the
//! state, or replies with the rule, its value now and the line that mends it.

use super::Turn;
use super::gates::{destroyed, shown};
use crate::domain::approval::{Approval, Confirmed, Permission, Source};
use crate::domain::command::{self, ApplyTarget, Command, Reading};
use crate::domain::config::Requirement;
use crate::domain::effect::{Act, Reaction};
use crate::domain::estate::Reason;
use crate::domain::event::{AuthorKind, Comment, CommentKind};
use crate::domain::gate::{Bar, bars};
use crate::domain::ids::{Digest, Login, RootKey, Sha, StateKey, Timestamp};
use crate::domain::lock::{Cause, Holder, Lock, Release};
use crate::domain::reply;
use crate::domain::rollout::{ApplyRun, ApplyStage, PlanRun, Rollout, Scope, Stage};

/// How a command ended for its author.
enum Answer {
    /// It was done; a reaction says so.
    Done,
    /// It was done or shown, with this reply.
    Said(String),
    /// It was not done, for the reason that this reply gives.
    Refused(String),
}

impl Turn<'_> {
    pub(super) fn comment(&mut self, comment: &Comment) {
        if comment.author != AuthorKind::Person {
            return;
        }
        let reading = command::read(&comment.body, &self.facts.server.login);
        if comment.kind == CommentKind::Edited {
            if matches!(reading, Reading::Command(_)) {
                // Beside the reply to what it said at first, and once however often it is edited.
                self.say(format!("edited:{}", comment.id), reply::edited());
            }
            return;
        }
        if self.pull.has_read(comment.id) {
            return;
        }
        self.pull.remember(comment.id);
        let answer = match reading {
            Reading::NotForUs => return,
            Reading::Wrong(what) => Answer::Refused(what),
            Reading::Command(command) => self.obey(comment, &command),
        };
        self.answer(comment, answer);
    }

    fn answer(&mut self, comment: &Comment, answer: Answer) {
        let (reaction, text) = match answer {
            Answer::Done => (Reaction::ThumbsUp, None),
            Answer::Said(text) => (Reaction::ThumbsUp, Some(text)),
            Answer::Refused(text) => (Reaction::Confused, Some(text)),
        };
        if comment.kind == CommentKind::Created {
            self.act(format!("react:{}", comment.id), Act::React { comment: comment.id, reaction });
        }
        if let Some(text) = text {
            self.reply(comment.id, text);
        }
    }

    fn reply(&mut self, comment: u64, body: String) {
        self.say(format!("reply:{comment}"), body);
    }

    fn say(&mut self, slot: String, body: String) {
        let marker = super::publish::marker(&self.pull.key, &slot);
        self.act(slot, Act::Comment { marker, body });
    }

    fn obey(&mut self, comment: &Comment, command: &Command) -> Answer {
        let permission = self.facts.permission.unwrap_or(Permission::None);
        // Who may approve is the gate's rule: being named there takes the place of write access.
        let reads_only =
            matches!(command, Command::Status | Command::Explain(_) | Command::Help | Command::Approve { .. });
        if !reads_only && permission < Permission::Write {
            return Answer::Refused(reply::no_write_access(&comment.by));
        }
        let open = self.pull.is_open();
        if !open && !matches!(command, Command::Unlock(_) | Command::Settle(_) | Command::Help | Command::Status) {
            return Answer::Refused(reply::not_open(self.pull.seen.as_ref().map(|seen| seen.state)));
        }
        match command {
            Command::Plan { roots, workspace, args } => self.plan(comment, roots, workspace.as_deref(), args),
            Command::Apply(target) => self.apply(target, comment),
            Command::Approve { wave, digest, confirm } => {
                self.approve(comment, &ApproveWords { wave: *wave, digest: digest.as_deref(), confirm }, permission)
            }
            Command::Unapprove => self.unapprove(&comment.by),
            Command::Discard(roots) => self.discard(roots, &comment.by),
            Command::Cancel => self.cancel(&comment.by),
            Command::Lock { roots, reason } => self.lock(roots, reason, &comment.by),
            Command::Unlock(roots) => self.unlock(roots, &comment.by),
            Command::Settle(roots) => match self.settle(roots, comment) {
                Ok(said) => Answer::Said(said),
                Err(refusal) => Answer::Refused(refusal),
            },
            Command::Status => Answer::Said(self.status()),
            Command::Explain(path) => Answer::Said(reply::explain(self.pull.rollout.as_ref(), path)),
            Command::Help => Answer::Said(reply::help()),
        }
    }

    /// Lets exactly the head run that stood there when the comment was written: a push that overtook it needs a word of its own.
    fn permit(&mut self, comment: &Comment, head: &Sha, args: &[String]) -> Answer {
        let shown = self.pull.rollout.as_ref().filter(|rollout| rollout.head == *head).map(|rollout| rollout.started);
        // Forges tell whole seconds.
        if shown.is_none_or(|shown| comment.at.0 / 1000 < shown.0 / 1000) {
            return Answer::Refused(reply::fork_moved(head));
        }
        self.pull.permitted.push(head.clone());
        self.ledger.push(format!("{} lets head {head} of a fork run", comment.by));
        self.begin(args.to_vec());
        Answer::Done
    }

    fn plan(&mut self, comment: &Comment, roots: &[String], workspace: Option<&str>, args: &[String]) -> Answer {
        let Some(seen) = self.pull.seen.clone() else { return Answer::Refused(reply::not_seen()) };
        if let Some(root) = self.applying_root() {
            return Answer::Refused(reply::applying(&root));
        }
        if seen.fork && !self.pull.permitted.contains(&seen.head) {
            if !roots.is_empty() || workspace.is_some() {
                return Answer::Refused(reply::fork_first(&seen.head));
            }
            return self.permit(comment, &seen.head, args);
        }
        if roots.is_empty() && workspace.is_none() {
            self.begin(args.to_vec());
            return Answer::Done;
        }
        let named = match self.select(roots, workspace) {
            Ok(named) => named,
            Err(refusal) => return Answer::Refused(refusal),
        };
        for root in &named {
            if let Some(run) = self.run_mut(root) {
                run.args = args.to_vec();
                // What somebody names is planned, whatever it reads.
                if !run.reasons.contains(&Reason::Asked) {
                    run.reasons.push(Reason::Asked);
                }
            }
        }
        self.plan_roots(&named);
        Answer::Done
    }

    /// Plans these roots again, whatever became of their last plan or apply.
    pub(super) fn plan_roots(&mut self, named: &[RootKey]) {
        if let Some(rollout) = &mut self.pull.rollout {
            rollout.reach = None;
            if rollout.apply.as_ref().is_some_and(|apply| apply.stage != ApplyStage::Done) {
                rollout.apply = None;
            }
        }
        for root in named {
            if let Some(run) = self.run_mut(root) {
                run.apply = ApplyRun::None;
                if let PlanRun::Running { job, .. } = &run.plan {
                    let job = job.clone();
                    run.plan = PlanRun::Queued;
                    self.act(format!("cancel:{job}"), Act::CancelJob { job });
                } else {
                    run.queue_again();
                }
            }
        }
    }

    fn apply(&mut self, target: &ApplyTarget, comment: &Comment) -> Answer {
        let by = &comment.by;
        let Some(rollout) = self.pull.rollout.clone() else { return Answer::Refused(reply::not_seen()) };
        if let Some(refusal) = self.not_applicable(&rollout) {
            return Answer::Refused(refusal);
        }
        if rollout.planned_at.is_some_and(|shown| is_before(comment, shown)) {
            return Answer::Refused(reply::older_than_the_plan("applied", "apply"));
        }
        let scope = match self.scope(&rollout, target) {
            Ok(scope) => scope,
            Err(refusal) => return Answer::Refused(refusal),
        };
        if let Some(refusal) = unmet_requirement(self, &rollout) {
            return Answer::Refused(refusal);
        }
        match self.lock_for_apply(&scope, by) {
            Err(blocked) => Answer::Refused(reply::locked(&blocked, self.number())),
            Ok(()) => {
                self.begin_apply(scope, by);
                Answer::Done
            }
        }
    }

    /// Why nothing can be applied where the rollout stands, whatever the gate says.
    fn not_applicable(&self, rollout: &Rollout) -> Option<String> {
        if self.pull.seen.as_ref().is_some_and(|seen| seen.draft) {
            return Some(reply::draft());
        }
        if let Some(apply) =
            rollout.apply.as_ref().filter(|apply| matches!(apply.stage, ApplyStage::Planning | ApplyStage::Applying))
        {
            return Some(reply::already_applying(apply));
        }
        let unsaved = self.unsaved_here();
        if !unsaved.is_empty() {
            return Some(reply::unsaved(&unsaved));
        }
        if let Stage::Refused(refusal) = &rollout.stage {
            return Some(format!("Not applied. {}: {}", refusal.title, refusal.text));
        }
        let held_up = rollout.runs.values().filter(|run| matches!(run.plan, PlanRun::Blocked(_)));
        let states: Vec<StateKey> = held_up.map(|run| run.state.clone()).collect();
        let blocked = self.locks.blocked(self.number(), &states);
        if !blocked.is_empty() {
            return Some(reply::locked(&blocked, self.number()));
        }
        if rollout.stage == Stage::Inspecting || !rollout.is_planned() {
            return Some(reply::still_planning(rollout));
        }
        if self.facts.base_tip.as_ref().is_some_and(|tip| *tip != rollout.base) {
            return Some(reply::base_moved(rollout));
        }
        if rollout.runs.is_empty() {
            return Some(reply::nothing_to_apply(&rollout.head));
        }
        if let Some(run) = rollout.runs.values().find(|run| matches!(run.apply, ApplyRun::Failed { .. })) {
            return Some(reply::failed_before(&run.root));
        }
        if rollout.runs.values().all(|run| run.is_applied() || run.is_unchanged()) {
            return Some(reply::nothing_to_apply(&rollout.head));
        }
        None
    }

    fn scope(&self, rollout: &Rollout, target: &ApplyTarget) -> Result<Scope, String> {
        let scope = match target {
            ApplyTarget::All => Scope::All,
            ApplyTarget::Wave(wave) if *wave >= 1 && *wave <= rollout.waves.len() => Scope::UpTo(*wave),
            ApplyTarget::Wave(wave) => return Err(reply::no_such_wave(*wave, rollout.waves.len())),
            ApplyTarget::Roots(roots) => Scope::Roots(self.select(roots, None)?),
        };
        // A wave with a plan that failed or was dropped is incomplete: only named roots beside it can go.
        let incomplete =
            rollout.runs.values().find(|run| matches!(run.plan, PlanRun::Failed { .. } | PlanRun::Dropped { .. }));
        match (incomplete, &scope) {
            (Some(run), Scope::Roots(roots)) if roots.contains(&run.root) => Err(reply::no_plan(&run.root)),
            (Some(run), Scope::All) => Err(reply::no_plan(&run.root)),
            (Some(run), Scope::UpTo(wave)) if rollout.wave_of(&run.root).is_some_and(|own| own <= *wave) => {
                Err(reply::no_plan(&run.root))
            }
            _ => Ok(scope),
        }
    }

    fn approve(&mut self, comment: &Comment, words: &ApproveWords<'_>, permission: Permission) -> Answer {
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
            if let Some(bar) = bars(&rules, &comment.by, permission) {
                return Answer::Refused(barred(bar, &comment.by, rules.named.as_deref()));
            }
            let dying = destroyed(&rollout, *wave);
            let missing: Vec<(RootKey, String)> =
                dying.iter().filter(|(root, address)| !is_confirmed(words.confirm, root, address)).cloned().collect();
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

    fn unapprove(&mut self, by: &Login) -> Answer {
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

    fn discard(&mut self, roots: &[String], by: &Login) -> Answer {
        if let Some(root) = self.applying_root() {
            return Answer::Refused(reply::applying(&root));
        }
        let named = match self.select_or_all(roots) {
            Ok(named) => named,
            Err(refusal) => return Answer::Refused(refusal),
        };
        for root in &named {
            if let Some(run) = self.run_mut(root)
                && !run.is_applied()
            {
                run.plan = PlanRun::Dropped { by: by.clone() };
                run.replans_after.clear();
            }
        }
        if let Some(rollout) = &mut self.pull.rollout {
            rollout.reach = None;
            rollout.apply = None;
        }
        self.give_back(&named);
        Answer::Done
    }

    /// Queued runs are dropped and plans stopped; a running apply is never stopped, and the reply says why.
    fn cancel(&mut self, by: &Login) -> Answer {
        let applying = self.applying_root();
        let mut stopped = 0;
        let mut jobs = Vec::new();
        if let Some(rollout) = &mut self.pull.rollout {
            for run in rollout.runs.values_mut() {
                match &run.plan {
                    PlanRun::Running { job, .. } => jobs.push(job.clone()),
                    PlanRun::Queued | PlanRun::Blocked(_) => {}
                    _ => continue,
                }
                run.plan = PlanRun::Dropped { by: by.clone() };
                stopped += 1;
            }
            if let Some(apply) = rollout.apply.as_ref()
                && matches!(apply.stage, ApplyStage::Waiting(_) | ApplyStage::Refused(_))
            {
                rollout.apply = None;
                stopped += 1;
            }
        }
        for job in jobs {
            self.act(format!("cancel:{job}"), Act::CancelJob { job });
        }
        match (applying, stopped) {
            (Some(root), _) => Answer::Refused(reply::cannot_cancel_apply(&root)),
            (None, 0) => Answer::Said("Nothing is queued, planning or waiting here.".to_owned()),
            (None, _) => Answer::Done,
        }
    }

    fn lock(&mut self, roots: &[String], reason: &str, by: &Login) -> Answer {
        let named = match self.select_or_all(roots) {
            Ok(named) => named,
            Err(refusal) => return Answer::Refused(refusal),
        };
        let holder =
            Holder { pull: self.number(), by: by.clone(), since: self.now(), cause: Cause::Asked(reason.to_owned()) };
        match self.locks.take(&self.states(&named), &holder) {
            Ok(locks) => {
                self.locks = locks;
                self.ledger.push(format!("{by} locks {}", list(&named)));
                Answer::Done
            }
            Err(blocked) => Answer::Refused(reply::locked(&blocked, self.number())),
        }
    }

    fn unlock(&mut self, roots: &[String], by: &Login) -> Answer {
        if let Some(root) = self.applying_root() {
            return Answer::Refused(reply::unlock_while_applying(&root));
        }
        let named: Vec<RootKey> =
            roots.iter().map(|root| RootKey::from(root.trim_end_matches('/').to_owned())).collect();
        // A lock bears the name that its root had when it was taken; the state tells when the root was renamed since.
        let states: Vec<StateKey> = self.states(&named).into_iter().map(|(state, _)| state).collect();
        let meant =
            |state: &StateKey, lock: &Lock| roots.is_empty() || named.contains(&lock.root) || states.contains(state);
        let names: Vec<RootKey> = self
            .locks
            .locks
            .iter()
            .filter(|(state, lock)| meant(state, lock))
            .map(|(_, lock)| lock.root.clone())
            .collect();
        let others: Vec<(RootKey, u64)> = self
            .locks
            .locks
            .iter()
            .filter(|(state, lock)| meant(state, lock))
            .filter_map(|(_, lock)| Some((lock.root.clone(), lock.holder.as_ref()?.pull)))
            .filter(|(_, pull)| *pull != self.number())
            .collect();
        let which = if roots.is_empty() { Release::All } else { Release::Roots(&names) };
        let (locks, freed) = self.locks.release(self.number(), &which);
        self.locks = locks;
        if freed.roots.is_empty() {
            let others = if roots.is_empty() { Vec::new() } else { others };
            return Answer::Said(reply::nothing_to_unlock(&named, &others));
        }
        self.ledger.push(format!("{by} unlocks {}", list(&freed.roots)));
        self.end_waiting_apply();
        Answer::Said(reply::unlocked(&freed.roots))
    }

    /// An apply that waits without its locks has to be asked for again.
    fn end_waiting_apply(&mut self) {
        if let Some(rollout) = &mut self.pull.rollout
            && rollout.apply.as_ref().is_some_and(|apply| {
                matches!(apply.stage, ApplyStage::Planning | ApplyStage::Waiting(_) | ApplyStage::Refused(_))
            })
        {
            rollout.apply = None;
        }
    }

    fn status(&self) -> String {
        let waves = self.pull.rollout.as_ref().map(|rollout| self.wave_states(rollout)).unwrap_or_default();
        let held: Vec<&RootKey> = self
            .locks
            .locks
            .values()
            .filter(|lock| lock.holder.as_ref().is_some_and(|holder| holder.pull == self.number()))
            .map(|lock| &lock.root)
            .collect();
        let mut said = reply::status(&self.pull, &waves, &held);
        let unsaved = self.unsaved_here();
        if !unsaved.is_empty() {
            said = format!("{said}\n{}", reply::unsaved_states(&unsaved));
        }
        said
    }

    fn select_or_all(&self, roots: &[String]) -> Result<Vec<RootKey>, String> {
        if roots.is_empty() {
            let all = self.pull.rollout.iter().flat_map(|rollout| rollout.runs.keys().cloned());
            return Ok(all.collect());
        }
        self.select(roots, None)
    }

    /// The reached roots that these names mean, each exactly; an unknown one is told with the near ones. Never more than named.
    fn select(&self, roots: &[String], workspace: Option<&str>) -> Result<Vec<RootKey>, String> {
        let Some(rollout) = self.pull.rollout.as_ref().filter(|rollout| rollout.stage == Stage::Ready) else {
            return Err(self.pull.rollout.as_ref().map_or_else(reply::not_seen, |rollout| match &rollout.stage {
                Stage::Refused(refusal) => format!("Not done. {}: {}", refusal.title, refusal.text),
                _ => reply::still_planning(rollout),
            }));
        };
        let known: Vec<&RootKey> = rollout.runs.keys().collect();
        let mut selected: Vec<RootKey> = Vec::new();
        if roots.is_empty() {
            selected.extend(
                known
                    .iter()
                    .filter(|root| workspace.is_none_or(|wanted| root.workspace() == wanted))
                    .map(|root| (*root).clone()),
            );
        }
        for typed in roots {
            let typed_root = RootKey::from(typed.trim_end_matches('/').to_owned());
            let hits: Vec<RootKey> = known
                .iter()
                .filter(|root| match workspace {
                    Some(wanted) => root.dir() == typed_root.dir() && root.workspace() == wanted,
                    None => ***root == typed_root,
                })
                .map(|root| (*root).clone())
                .collect();
            if hits.is_empty() {
                return Err(reply::unknown_root(typed, workspace, &known));
            }
            selected.extend(hits);
        }
        selected.sort();
        selected.dedup();
        if selected.is_empty() {
            return Err(reply::unknown_root("", workspace, &known));
        }
        Ok(selected)
    }

    /// A root that a job applies right now, for this pull.
    pub(super) fn applying_root(&self) -> Option<RootKey> {
        self.pull
            .rollout
            .iter()
            .chain(&self.pull.retired)
            .flat_map(|rollout| rollout.runs.values())
            .find(|run| matches!(run.apply, ApplyRun::Running { .. }))
            .map(|run| run.root.clone())
    }
}

/// When the newest plan of a wave was there.
fn shown_at(rollout: &Rollout, wave: usize) -> Option<Timestamp> {
    rollout.wave(wave).filter_map(|run| run.planned()).map(|planned| planned.at).max()
}

/// Whether a comment was certainly written before: forges tell whole seconds, so it counts as of the end of its second.
fn is_before(comment: &Comment, at: Timestamp) -> bool {
    comment.at.plus_ms(999) < at
}

/// What an `approve` names.
struct ApproveWords<'a> {
    wave: Option<usize>,
    digest: Option<&'a str>,
    confirm: &'a [Confirmed],
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

fn is_confirmed(confirm: &[Confirmed], root: &RootKey, address: &str) -> bool {
    confirm.iter().any(|named| named.address == address && named.root.as_ref().is_none_or(|own| own == root))
}

fn barred(bar: Bar, by: &Login, named: Option<&[Login]>) -> String {
    match bar {
        Bar::NoWriteAccess => reply::no_write_access(by),
        Bar::FourEyes => reply::four_eyes(by),
        Bar::NotNamed => reply::not_named(by, named.unwrap_or_default()),
    }
}

/// The first of `apply.requires` that does not hold.
fn unmet_requirement(turn: &Turn<'_>, rollout: &Rollout) -> Option<String> {
    let seen = turn.pull.seen.as_ref()?;
    rollout.config.apply.requires.iter().find_map(|requirement| {
        let held = match requirement {
            Requirement::Approved => is_approved(turn, rollout),
            Requirement::Mergeable => seen.mergeable == Some(true),
            Requirement::Undiverged => rollout.undiverged,
        };
        (!held).then(|| reply::unmet(*requirement, seen.mergeable))
    })
}

fn is_approved(turn: &Turn<'_>, rollout: &Rollout) -> bool {
    use crate::domain::approval::Verdict;
    let reviews = &turn.pull.reviews;
    let asked = reviews.iter().any(|review| review.verdict == Verdict::ChangesRequested);
    let approved = reviews.iter().any(|review| review.verdict == Verdict::Approved && review.head == rollout.head);
    approved && !asked
}

fn list(roots: &[RootKey]) -> String {
    roots.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
