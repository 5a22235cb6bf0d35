//! A state that its backend did not take: what that means, and the three things to type. It says nothing of what else failed.

use super::Subject;
use super::markdown::{alert, code};
use super::words::{root, verb};
use crate::domain::config::ToolKind;
use crate::domain::ids::JobId;
use crate::domain::job::StateLeft;
use crate::domain::reply::quoted;
use crate::domain::rollout::{ApplyRun, Blocker, RootRun};

/// Whether the last apply of a root left its state outside of its backend.
pub(super) fn is_unsaved(run: &RootRun) -> bool {
    matches!(&run.apply, ApplyRun::Failed { left, .. } if *left != StateLeft::Nothing)
}

/// What to do, for the root whose apply it was.
pub(super) fn steps(subject: Subject<'_>, run: &RootRun) -> Option<String> {
    let ApplyRun::Failed { job, left, .. } = &run.apply else { return None };
    let (kept, fetch) = match left {
        StateLeft::Nothing => return None,
        StateLeft::Kept => ("which Tidegate keeps encrypted".to_owned(), from_the_server(job)),
        StateLeft::At(path) => (
            "which could not be uploaded either".to_owned(),
            format!("Fetch {} from the machine where the job ran", code(path)),
        ),
    };
    let tool = match run.planned().map(|planned| planned.tool.kind) {
        Some(ToolKind::Tofu) => "tofu",
        _ => "terraform",
    };
    let workspace = match run.root.workspace() {
        "default" => String::new(),
        name => format!("TF_WORKSPACE={name} "),
    };
    let name = root(&run.root);
    Some(alert(
        "CAUTION",
        &[
            format!(
                "The backend of {name} did not take its state: what this apply made stands only in `errored.tfstate`, {kept}. Until it is saved, no pull plans or applies {name}."
            ),
            String::new(),
            format!("1. {fetch}"),
            format!(
                "2. In {} at {}, after {}: {}",
                code(run.root.dir()),
                code(subject.rollout.head.short()),
                code(&format!("{workspace}{tool} init")),
                code(&format!("{workspace}{tool} state push errored.tfstate"))
            ),
            format!("3. Here: {}, which plans what is left", code(&format!("settle -d {}", quoted(&run.root)))),
        ]
        .join("\n"),
    ))
}

fn from_the_server(job: &JobId) -> String {
    format!(
        "Where the server runs, with its settings: {}",
        code(&format!("tidegate errored-state {job} > errored.tfstate"))
    )
}

/// Why a root of any pull is not planned.
pub(super) fn held(blocker: &Blocker, runs: &[&RootRun]) -> String {
    let names: Vec<String> = runs.iter().map(|run| root(&run.root)).collect();
    let settle: Vec<String> = runs.iter().map(|run| format!(" -d {}", quoted(&run.root))).collect();
    format!(
        "Not planned: the {} of {} {} not saved. The backend did not take {} at the apply of #{} ({} UTC), and what that apply made stands in no state. How to get it and push it stands in the comment of that apply; then type {}.",
        verb(runs.len(), "state", "states"),
        super::markdown::list(&names, 5),
        verb(runs.len(), "is", "are"),
        verb(runs.len(), "it", "them"),
        blocker.pull,
        blocker.since.hour_minute(),
        code(&format!("settle{}", settle.concat())),
    )
}
