//! What a comment makes happen. Each verb is one function: it checks who asks and where the pull stands, changes the
//! state, or replies with the rule, its value now and the line that mends it.

use super::Turn;
use crate::domain::approval::Permission;
use crate::domain::command::{self, Command, Reading};
use crate::domain::effect::{Act, Reaction};
use crate::domain::estate::Reason;
use crate::domain::event::{AuthorKind, Comment, CommentKind};
use crate::domain::ids::{RootKey, Sha, Timestamp};
use crate::domain::reply;
use crate::domain::rollout::{ApplyRun, ApplyStage, PlanRun, Stage};

mod applying;
mod approving;
mod holding;

pub use applying::is_merge_unsaid;
use approving::ApproveWords;

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
        if !self.facts.server.managed.reads(comment) {
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
        let is_program = comment.author == AuthorKind::Bot;
        if is_program && matches!(command, Command::Approve { .. } | Command::Unapprove) {
            return Answer::Refused(reply::approved_by_program(&comment.by));
        }
        // A program that the settings name may do what a writer may; the forge gives it no role that says so.
        let permission = if is_program { Some(Permission::Write) } else { self.facts.permission };
        let permission = permission.unwrap_or(Permission::None);
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
        let speaks = matches!(command, Command::Status | Command::Help | Command::Unlock(_));
        let base = self.pull.seen.as_ref().map(|seen| seen.base_ref.as_str()).unwrap_or_default();
        if let (false, Some(refusal)) = (speaks, self.facts.server.managed.turns_away(base)) {
            return Answer::Refused(format!("{}. {}", refusal.title, refusal.text));
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
                    run.again = None;
                    self.act(format!("cancel:{job}"), Act::CancelJob { job });
                } else {
                    run.queue_again();
                }
            }
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

/// Whether a comment was certainly written before: forges tell whole seconds, so it counts as of the end of its second.
fn is_before(comment: &Comment, at: Timestamp) -> bool {
    comment.at.plus_ms(999) < at
}
