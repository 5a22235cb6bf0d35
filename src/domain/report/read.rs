//! A root's reads in the report: whose state, which outputs, what the plan was made on and why. It decides nothing.

use serde::Serialize;

use crate::domain::estate::Edge;
use crate::domain::ids::RootKey;
use crate::domain::rollout::{Basis, Outputs, PlanRun, RootRun};

/// A read of another root's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportRead {
    /// Whose state.
    pub source: RootKey,
    /// The block that reads.
    pub block: String,
    /// The outputs that it uses; `null` when the whole object is used.
    pub outputs: Option<Vec<String>>,
    /// Written out on both sides, or by what is known.
    pub certain: bool,
    /// Which of its outputs the plan was made on.
    pub planned_on: PlannedOn,
    /// Why it was not made on the planned outputs; `null` where it was, and where there are none.
    pub why: Option<String>,
}

/// Which outputs of a source a plan was made on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedOn {
    /// Those that the plan of the source will make.
    Planned,
    /// Those that are there, or were before the plan of the source.
    Applied,
    /// None yet: it is not planned.
    Nothing,
}

/// What the root read through a block, and why that is not what its source will make.
pub(super) fn read(run: &RootRun, edge: &Edge) -> ReportRead {
    let of_source = run.replans_after.iter().find(|read| read.source == edge.source);
    let fell_back = run.planned().into_iter().flat_map(|planned| &planned.fell_back);
    let left = fell_back.into_iter().find(|left| left.source == edge.source).map(|left| left.why.clone());
    let why = of_source.and_then(|read| read.why.clone()).or(left);
    let linked = |basis: &Basis| basis.source == edge.source && basis.outputs == Outputs::Planned;
    let (planned_on, why) = match &run.plan {
        PlanRun::AwaitsSource(source) if *source == edge.source => {
            (PlannedOn::Nothing, Some("it has never been applied".to_owned()))
        }
        PlanRun::Done(_) if why.is_none() && run.basis.iter().any(linked) => (PlannedOn::Planned, None),
        PlanRun::Done(_) => (PlannedOn::Applied, why),
        _ => (PlannedOn::Nothing, None),
    };
    ReportRead {
        source: edge.source.clone(),
        block: edge.block.clone(),
        outputs: edge.outputs.clone(),
        certain: edge.certain,
        planned_on,
        why,
    }
}
