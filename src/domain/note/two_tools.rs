//! Roots that both tools have been at: what the one that planned makes of what the other left, and the way out. Plans of one tool for
//! what the other keeps can delete what it would only forget, or use providers that nobody locked.

use super::Subject;
use super::markdown::{code, list};
use super::words::{root, verb};
use crate::domain::config::ToolKind;
use crate::domain::plan::trace::{Trace, host, other};
use crate::domain::rollout::RootRun;

const MOST: usize = 5;

/// A sentence or two for each kind of trace and tool.
pub(super) fn notices(subject: Subject<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for kind in [ToolKind::Terraform, ToolKind::Tofu] {
        for trace in [Trace::State, Trace::LockFile] {
            let runs: Vec<&RootRun> = subject.rollout.runs.values().filter(|run| has(run, kind, trace)).collect();
            if !runs.is_empty() {
                all.push(notice(&runs, kind, trace));
            }
        }
    }
    all
}

fn has(run: &RootRun, kind: ToolKind, trace: Trace) -> bool {
    run.planned().is_some_and(|planned| planned.tool.kind == kind && planned.plan.traces.contains(&trace))
}

fn notice(runs: &[&RootRun], kind: ToolKind, trace: Trace) -> String {
    let names = list(&runs.iter().map(|run| root(&run.root)).collect::<Vec<_>>(), MOST);
    let (own, others) = (name(kind), name(other(kind)));
    let them = verb(runs.len(), "it", "them");
    let what = match trace {
        Trace::State => verb(runs.len(), "state", "states"),
        Trace::LockFile => verb(runs.len(), "lock file", "lock files"),
    };
    let found = format!(
        "The {what} of {names} {} written by {others} ({} providers of {}), and {own} planned.",
        verb(runs.len(), "was", "were"),
        verb(runs.len(), "it names", "they name"),
        code(host(other(kind))),
    );
    let stay = format!(
        "To stay with {others}, set {} for {them} in `.tidegate.yaml`.",
        code(&format!("tool: {}", command(other(kind))))
    );
    let rest = match trace {
        Trace::State => format!(
            "{own} may delete what {others} would only forget. {stay} To move to {own}, first put its own host there with {}.",
            code(&format!("{} state replace-provider", command(kind)))
        ),
        Trace::LockFile => format!(
            "{own} passes over what stands there for {others}, so providers may be of other versions than those that were locked. {stay} To move to {own}, run {} there and commit the lock file.",
            code(&format!("{} init", command(kind)))
        ),
    };
    format!("{found} {rest}")
}

fn name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Terraform => "Terraform",
        ToolKind::Tofu => "OpenTofu",
    }
}

fn command(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Terraform => "terraform",
        ToolKind::Tofu => "tofu",
    }
}
