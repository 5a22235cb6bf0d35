//! What a plan is made on: which outputs of its sources a reader sees, and whether it must be planned at all. Derived from the
//! rollout each time, so that a plan made on anything older is found out.

use crate::domain::config::Prune;
use crate::domain::estate::{Edge, Reason};
use crate::domain::ids::{JobId, RootKey};
use crate::domain::job::Link;
use crate::domain::plan::OutputChange;
use crate::domain::rollout::{Basis, Outputs, PlanRun, Read, Rollout, RootRun};

/// The only blocks that can be pointed elsewhere: they stand in the root's own directory.
const BLOCK: &str = "data.terraform_remote_state.";

/// The edges from a root to sources in earlier waves. Roots of one wave read each other as they are applied.
fn edges<'a>(rollout: &'a Rollout, root: &'a RootKey) -> impl Iterator<Item = (&'a Edge, &'a RootRun)> {
    let wave = rollout.wave_of(root);
    rollout
        .edges
        .iter()
        .filter(move |edge| edge.reader == *root && rollout.wave_of(&edge.source) < wave)
        .filter_map(|edge| Some((edge, rollout.runs.get(&edge.source)?)))
}

/// Whether every source has ended planning.
pub(super) fn is_settled(rollout: &Rollout, root: &RootKey) -> bool {
    edges(rollout, root)
        .all(|(_, source)| !matches!(source.plan, PlanRun::Queued | PlanRun::Blocked(_) | PlanRun::Running { .. }))
}

/// Whether a queued root waits, through any number of sources, for one whose state another pull holds.
pub(super) fn waits_for_lock(rollout: &Rollout, root: &RootKey) -> bool {
    // Each step goes to an earlier wave, so this ends.
    edges(rollout, root)
        .any(|(edge, source)| matches!(source.plan, PlanRun::Blocked(_)) || waits_for_lock(rollout, &edge.source))
}

/// What a plan of this root is made on now: one entry for each block that reads outputs which this rollout changes.
pub(super) fn of(rollout: &Rollout, root: &RootKey) -> Vec<Basis> {
    let mut all: Vec<Basis> = Vec::new();
    for (edge, source) in edges(rollout, root) {
        let Some(planned) = source.planned() else { continue };
        let touched = changed(source, edge).next().is_some();
        let outputs = match (source.is_applied(), touched, is_unsure(source)) {
            (true, true, _) => Outputs::Applied,
            (false, true, false) if is_linkable(edge) => Outputs::Planned,
            (false, true, _) | (false, _, true) => Outputs::Earlier,
            (true, false, _) | (false, false, false) => continue,
        };
        let basis =
            Basis { source: edge.source.clone(), block: edge.block.clone(), digest: planned.digest.clone(), outputs };
        if !all.contains(&basis) {
            all.push(basis);
        }
    }
    all
}

fn is_linkable(edge: &Edge) -> bool {
    edge.block.starts_with(BLOCK)
}

/// Whether a source's own plan was made on outputs that will be others: what it says of its own outputs may not hold.
fn is_unsure(source: &RootRun) -> bool {
    let fell_back = source.planned().is_some_and(|planned| !planned.fell_back.is_empty());
    fell_back || source.basis.iter().any(|basis| basis.outputs == Outputs::Earlier)
}

/// The outputs that the source's plan changes and the reader uses.
fn changed<'a>(source: &'a RootRun, edge: &'a Edge) -> impl Iterator<Item = &'a OutputChange> {
    let outputs = source.planned().map_or(&[][..], |planned| planned.plan.outputs.as_slice());
    outputs.iter().filter(|output| edge.outputs.as_ref().is_none_or(|used| used.contains(&output.name)))
}

/// Whether the root is here only because it reads, and nothing that it reads changes.
pub(super) fn is_unread(rollout: &Rollout, run: &RootRun) -> bool {
    rollout.config.prune == Prune::Unchanged
        && run.args.is_empty()
        && run.basis.is_empty()
        && !run.reasons.is_empty()
        && run.reasons.iter().all(|reason| is_quiet(rollout, run, reason))
        && of(rollout, &run.root).is_empty()
}

/// Whether this reason alone asks for no plan: its source is planned, or needs no plan, and stands in an earlier wave.
fn is_quiet(rollout: &Rollout, run: &RootRun, reason: &Reason) -> bool {
    let Reason::Reads(source) = reason else { return false };
    let earlier = rollout.wave_of(source) < rollout.wave_of(&run.root);
    earlier && rollout.runs.get(source).is_some_and(|source| matches!(source.plan, PlanRun::Done(_) | PlanRun::Unread))
}

/// The jobs that planned what the root reads, in whatever wave.
pub(super) fn sources(rollout: &Rollout, root: &RootKey) -> Vec<JobId> {
    let edges = rollout.edges.iter().filter(|edge| edge.reader == *root);
    let mut jobs: Vec<JobId> =
        edges.filter_map(|edge| Some(rollout.runs.get(&edge.source)?.planned()?.job.clone())).collect();
    jobs.sort();
    jobs.dedup();
    jobs
}

/// The links that a plan job follows.
pub(super) fn links(rollout: &Rollout, basis: &[Basis]) -> Vec<Link> {
    let planned = basis.iter().filter(|basis| basis.outputs == Outputs::Planned);
    planned
        .filter_map(|basis| {
            let plan_of = rollout.runs.get(&basis.source)?.planned()?.job.clone();
            let block = basis.block.strip_prefix(BLOCK)?.to_owned();
            Some(Link { block, plan_of, root: basis.source.clone() })
        })
        .collect()
}

/// The reads after which the root is planned again, one for each source.
pub(super) fn replans(rollout: &Rollout, run: &RootRun) -> Vec<Read> {
    let mut reads: Vec<Read> = Vec::new();
    for (edge, source) in edges(rollout, &run.root).filter(|(_, source)| !source.is_applied()) {
        let Some(basis) =
            of(rollout, &run.root).into_iter().find(|basis| basis.source == edge.source && basis.block == edge.block)
        else {
            continue;
        };
        let read = read_of(run, source, edge, &basis);
        match reads.iter_mut().find(|known| known.source == read.source) {
            Some(known) => merge(known, read),
            None => reads.push(read),
        }
    }
    reads
}

fn read_of(run: &RootRun, source: &RootRun, edge: &Edge, basis: &Basis) -> Read {
    let mut fell_back = run.planned().into_iter().flat_map(|planned| &planned.fell_back);
    let why = match basis.outputs {
        Outputs::Earlier if is_unsure(source) => Some("its own plan is made again".to_owned()),
        Outputs::Earlier => Some("the block that reads it is in a module".to_owned()),
        _ => fell_back.find(|left| left.source == edge.source).map(|left| left.why.clone()),
    };
    let used = || changed(source, edge);
    let outputs = match &edge.outputs {
        None => Vec::new(),
        Some(all) if used().next().is_none() => all.clone(),
        Some(_) => used().map(|output| output.name.clone()).collect(),
    };
    let unknown = why.is_some() || used().any(|output| output.unknown);
    let outputs = if unknown && why.is_none() && edge.outputs.is_some() {
        used().filter(|output| output.unknown).map(|output| output.name.clone()).collect()
    } else {
        outputs
    };
    Read { source: edge.source.clone(), outputs, unknown, why }
}

/// Two blocks read one source: what either does not know is not known.
fn merge(known: &mut Read, read: Read) {
    // An unknown read tells its own outputs: the known ones are of no interest beside it.
    if read.unknown && !known.unknown {
        *known = read;
        return;
    }
    if read.unknown == known.unknown {
        let whole = known.outputs.is_empty() || read.outputs.is_empty();
        known.outputs.extend(read.outputs);
        known.outputs.sort();
        known.outputs.dedup();
        if whole {
            known.outputs.clear();
        }
        known.why = known.why.take().or(read.why);
    }
}
