//! Follows one apply through the tool's event stream: which resource is where, and which error is whose. It judges by
//! the stream and the plan alone; nothing here runs anything or reads a clock.

use super::job::{ReplaceStage, ResourceStage, ResourceState};
use super::plan::{Action, Plan};

mod diagnostic;
mod event;
pub use diagnostic::Diagnostic;
pub use event::{Hook, Line, Verb, What};

/// What the tool says about everything that an interrupt kept from starting.
const HALTED: &str = "execution halted";
/// What is said of a resource whose end nobody reported.
const OPEN: &str = "the apply ended while this was in progress; whether it happened is not known";
/// What is said of an object that is gone and was not made again.
const GONE: &str = "destroyed, but the apply ended before it was created again";
/// What is said of a replacement whose old object lives on.
const TWICE: &str = "created anew, but the apply ended before the old one was destroyed";

/// Follows an apply.
#[derive(Clone, Debug)]
pub struct Follower {
    resources: Vec<ResourceState>,
    errors: Vec<Diagnostic>,
}

/// Whether a line moved a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Yes.
    Yes,
    /// No.
    No,
}

/// How the tool's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With exit code 0: everything that was planned is done.
    Well,
    /// With any other code, or killed.
    Badly,
}

impl Follower {
    /// All resources of the plan, pending. Data sources are not among them.
    pub fn new(plan: &Plan) -> Self {
        let changes = plan.changes.iter().filter(|change| change.action != Action::Read);
        let resources = changes.map(|change| ResourceState {
            address: change.address.clone(),
            deposed: change.deposed.clone(),
            action: change.action,
            state: ResourceStage::Pending,
            stages: stages_of(change.action),
            seconds: 0,
            error: None,
        });
        Self { resources: resources.collect(), errors: Vec::new() }
    }

    /// Takes one line of the stream; whether anything moved.
    pub fn line(&mut self, line: &str) -> Moved {
        Line::parse(line).map_or(Moved::No, |line| self.take(&line))
    }

    /// Takes one line that was parsed already.
    pub fn take(&mut self, line: &Line) -> Moved {
        match &line.what {
            What::Hook(hook) => self.hook(hook),
            What::Diagnostic(diagnostic) => {
                if diagnostic.is_error() {
                    self.errors.push(diagnostic.clone());
                }
                Moved::No
            }
            What::Version(_) | What::StateDump(_) | What::Other => Moved::No,
        }
    }

    /// Where each resource stands now, in plan order.
    pub fn resources(&self) -> &[ResourceState] {
        &self.resources
    }

    /// The errors so far, in the order of the stream.
    pub fn errors(&self) -> &[Diagnostic] {
        &self.errors
    }

    /// Closes every resource and gives each its error; returns the errors that belong to no resource.
    pub fn finish(&mut self, ended: Ended) -> Vec<Diagnostic> {
        if ended == Ended::Well {
            for resource in self.resources.iter_mut().filter(|resource| resource.state != ResourceStage::Failed) {
                settle(resource, ResourceStage::Done);
            }
        }
        let mut rest = Vec::new();
        for error in std::mem::take(&mut self.errors) {
            match self.owner(error.address.as_deref()) {
                Some(index) => add_error(&mut self.resources[index], &error.text()),
                None => rest.push(error),
            }
        }
        self.join_the_last_pair(&mut rest);
        self.resources.iter_mut().for_each(close);
        rest
    }

    fn hook(&mut self, hook: &Hook) -> Moved {
        if hook.data_source || hook.action == "read" {
            return Moved::No;
        }
        let found = match hook.verb {
            Verb::Start => self.next_to_start(&hook.address, &hook.action),
            Verb::Progress | Verb::Complete | Verb::Error => self.in_flight(&hook.address, &hook.action),
        };
        let Some(index) = found else { return Moved::No };
        let resource = &mut self.resources[index];
        if let Some(seconds) = hook.seconds {
            resource.seconds = resource.seconds.max(seconds);
        }
        match hook.verb {
            Verb::Start => step(resource, &hook.action, ResourceStage::Applying),
            Verb::Progress => {}
            Verb::Complete => step(resource, &hook.action, ResourceStage::Done),
            Verb::Error => step(resource, &hook.action, ResourceStage::Failed),
        }
        Moved::Yes
    }

    /// The object that a start of `action` at this address belongs to. The stream gives no deposed key: what the
    /// main object expects next comes first, then deposed objects in plan order.
    fn next_to_start(&self, address: &str, action: &str) -> Option<usize> {
        let mut candidates: Vec<usize> = self.at(address).filter(|&index| self.expects(index, action)).collect();
        candidates.sort_by_key(|&index| self.resources[index].deposed.is_some());
        candidates.first().copied()
    }

    fn in_flight(&self, address: &str, action: &str) -> Option<usize> {
        self.at(address).find(|&index| {
            let resource = &self.resources[index];
            match resource.stages.iter().find(|stage| stage.what == action) {
                Some(stage) => stage.state == ResourceStage::Applying,
                None => {
                    resource.stages.is_empty() && resource.state == ResourceStage::Applying && does(resource, action)
                }
            }
        })
    }

    fn expects(&self, index: usize, action: &str) -> bool {
        let resource = &self.resources[index];
        if resource.stages.is_empty() {
            return resource.state == ResourceStage::Pending && does(resource, action);
        }
        let open = |stage: &&ReplaceStage| stage.state == ResourceStage::Pending && stage.what != "forget";
        resource.stages.iter().find(open).is_some_and(|stage| stage.what == action)
    }

    fn at<'a>(&'a self, address: &'a str) -> impl Iterator<Item = usize> + 'a {
        (0..self.resources.len()).filter(move |&index| self.resources[index].address == address)
    }

    /// The resource that an addressed error belongs to: of several objects at the address the one that did not end well.
    fn owner(&self, address: Option<&str>) -> Option<usize> {
        let address = address?;
        let worst = |index: &usize| match self.resources[*index].state {
            ResourceStage::Failed => 0,
            ResourceStage::Applying => 1,
            ResourceStage::Pending | ResourceStage::NotApplied => 2,
            ResourceStage::Done => 3,
        };
        self.at(address).min_by_key(worst)
    }

    /// Destroy failures come without an address: one such error and one resource without an error are a pair. More than
    /// one of either are left alone rather than guessed.
    fn join_the_last_pair(&mut self, rest: &mut Vec<Diagnostic>) {
        let broken: Vec<usize> = (0..self.resources.len())
            .filter(|&index| {
                let resource = &self.resources[index];
                resource.error.is_none() && matches!(resource.state, ResourceStage::Failed | ResourceStage::Applying)
            })
            .collect();
        let nobodys: Vec<usize> =
            (0..rest.len()).filter(|&at| rest[at].address.is_none() && rest[at].summary != HALTED).collect();
        if let ([index], [at]) = (broken.as_slice(), nobodys.as_slice()) {
            let error = rest.remove(*at);
            add_error(&mut self.resources[*index], &error.text());
        }
        let mut halted = 0;
        rest.retain(|error| {
            halted += usize::from(error.summary == HALTED);
            error.summary != HALTED || halted == 1
        });
    }
}

fn stages_of(action: Action) -> Vec<ReplaceStage> {
    let order: &[&str] = match action {
        Action::DeleteThenCreate => &["delete", "create"],
        Action::CreateThenDelete => &["create", "delete"],
        Action::ForgetThenCreate => &["forget", "create"],
        _ => &[],
    };
    order.iter().map(|&what| ReplaceStage { what: what.to_owned(), state: ResourceStage::Pending }).collect()
}

/// Whether an event's action is what the plan does to a resource that is not replaced.
fn does(resource: &ResourceState, action: &str) -> bool {
    match resource.action {
        Action::Delete => action == "delete",
        Action::Update => action == "update",
        Action::Create => action == "create",
        Action::Forget => matches!(action, "forget" | "remove"),
        _ => matches!(action, "noop" | "move" | "import"),
    }
}

/// Moves the stage that does `action`, and with it the resource as a whole.
fn step(resource: &mut ResourceState, action: &str, to: ResourceStage) {
    if let Some(stage) = resource.stages.iter_mut().find(|stage| stage.what == action) {
        stage.state = to;
    }
    let all_done = |stage: &ReplaceStage| stage.state == ResourceStage::Done || stage.what == "forget";
    resource.state = match to {
        ResourceStage::Done if !resource.stages.iter().all(all_done) => ResourceStage::Applying,
        to => to,
    };
    if resource.state == ResourceStage::Done {
        settle(resource, ResourceStage::Done);
    }
}

fn settle(resource: &mut ResourceState, to: ResourceStage) {
    resource.state = to;
    resource.stages.iter_mut().for_each(|stage| stage.state = to);
}

fn add_error(resource: &mut ResourceState, text: &str) {
    match &mut resource.error {
        Some(error) => {
            error.push('\n');
            error.push_str(text);
        }
        None => resource.error = Some(text.to_owned()),
    }
}

/// After the end nothing is pending or running any more.
fn close(resource: &mut ResourceState) {
    let open = resource.stages.iter().any(|stage| stage.state == ResourceStage::Applying)
        || (resource.stages.is_empty() && resource.state == ResourceStage::Applying);
    let begun = resource.state == ResourceStage::Applying;
    for stage in &mut resource.stages {
        stage.state = match stage.state {
            ResourceStage::Pending => ResourceStage::NotApplied,
            ResourceStage::Applying => ResourceStage::Failed,
            other => other,
        };
    }
    let has_error = resource.error.is_some();
    resource.state = match resource.state {
        ResourceStage::Pending if has_error => ResourceStage::Failed,
        ResourceStage::Pending => ResourceStage::NotApplied,
        ResourceStage::Applying => ResourceStage::Failed,
        other => other,
    };
    if begun && !has_error {
        let why = match resource.action {
            Action::DeleteThenCreate if !open => GONE,
            Action::CreateThenDelete if !open => TWICE,
            _ => OPEN,
        };
        resource.error = Some(why.to_owned());
    }
}

#[cfg(test)]
mod tests;
