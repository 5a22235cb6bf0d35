//! From two trees and their estates to what a head reaches: the value that a rollout starts from.
//! Pure; fetching, merging and parsing happened before.

use super::config::{FILE, Problem, RepoConfig};
use super::estate::{Estate, Hole, Root, RootKind, Stranger, deleted};
use super::event::{InspectedRoot, Inspection, StateRead};
use super::ids::{RootKey, Sha, StateKey};
use super::note::markdown::code;
use super::rollout::Refusal;
use super::tree::Listing;

/// What was read of a head and of the base that it merges into.
#[derive(Debug)]
pub struct Trees<'a> {
    /// The pull's head.
    pub head: &'a Sha,
    /// The base's tip.
    pub base: &'a Sha,
    /// The tree of their merge.
    pub tree: &'a Sha,
    /// Whether the head contains the base's tip.
    pub undiverged: bool,
    /// Authors and committers of the pull's commits.
    pub committers: Vec<super::ids::Login>,
    /// All paths of the merge.
    pub listing: &'a Listing,
    /// All paths of the base.
    pub base_listing: &'a Listing,
    /// The estate of the merge.
    pub estate: &'a Estate,
    /// The estate of the base.
    pub base_estate: &'a Estate,
}

/// What the change reaches; an error is a cycle that the configuration's `waves.after` makes.
pub fn inspect(trees: &Trees<'_>, config: &RepoConfig) -> Result<Inspection, Refusal> {
    let changed = trees.listing.changed_since(trees.base_listing);
    let reached = trees.estate.reached(&changed, config).map_err(|cycle| cycle_refusal(&cycle))?;
    let roots = reached
        .roots
        .into_iter()
        .filter_map(|reached| {
            let root = trees.estate.root(&reached.root)?;
            let (source, closure) = trees.estate.source_of(&reached.root, trees.listing);
            let reads = reads_of(trees.estate, &root.key);
            Some(InspectedRoot {
                settings: config.for_root(root.key.dir()),
                root: reached.root,
                reasons: reached.reasons,
                state: root.state.clone(),
                reads: states(&reads),
                uses: reads,
                source,
                closure,
            })
        })
        .collect();
    let mut inspection = Inspection {
        head: trees.head.clone(),
        base: trees.base.clone(),
        tree: trees.tree.clone(),
        config: config.clone(),
        undiverged: trees.undiverged,
        committers: trees.committers.clone(),
        roots,
        waves: reached.waves,
        edges: reached.edges,
        holes: Vec::new(),
        notices: Vec::new(),
        reading: None,
    };
    inspection.holes = holes(trees, &inspection, &changed);
    inspection.notices = notices(trees, &inspection, &changed);
    if !inspection.roots.is_empty() {
        inspection.notices.extend(trees.estate.strangers(config).iter().map(stranger));
    }
    Ok(inspection)
}

/// What a root reads: of other roots here, and of states that no root here owns.
fn reads_of(estate: &Estate, reader: &RootKey) -> Vec<StateRead> {
    let inside = estate.edges.iter().filter(|edge| edge.reader == *reader).filter_map(|edge| {
        Some(StateRead {
            state: estate.root(&edge.source)?.state.clone(),
            outputs: edge.outputs.clone(),
            external: false,
        })
    });
    let outside = estate.external.iter().filter(|read| read.reader == *reader).filter_map(|read| {
        Some(StateRead { state: read.state.clone()?, outputs: read.outputs.clone(), external: true })
    });
    let mut reads: Vec<StateRead> = inside.chain(outside).collect();
    reads.sort();
    reads.dedup();
    reads
}

fn states(reads: &[StateRead]) -> Vec<StateKey> {
    let mut states: Vec<StateKey> = reads.iter().map(|read| read.state.clone()).collect();
    states.dedup();
    states
}

fn cycle_refusal(cycle: &[RootKey]) -> Refusal {
    let path: Vec<String> = cycle.iter().map(named).collect();
    Refusal {
        title: "Not planned: `waves.after` makes a cycle".to_owned(),
        text: format!(
            "`waves.after` in `.tidegate.yaml` puts these roots after one another: {}. Take one of them out.",
            path.join(" → ")
        ),
    }
}

fn stranger(stranger: &Stranger) -> String {
    let near = stranger.near.as_ref().map(|near| format!(" Did you mean {}?", code(near))).unwrap_or_default();
    format!(
        "`{}` in `.tidegate.yaml` names {}, which is no root here: nothing is ordered by that name.{near}",
        stranger.setting,
        code(&stranger.name)
    )
}

/// What is said of a change to `.tidegate.yaml` itself: it holds once it is merged, and one that is wrong would stop every pull then.
pub fn of_proposed_settings(
    proposed: &Result<RepoConfig, Vec<Problem>>,
    estate: &Estate,
    inspection: &Inspection,
) -> Option<String> {
    let config = match proposed {
        Ok(config) => config,
        Err(problems) => {
            let lines: Vec<String> = problems
                .iter()
                .map(|problem| format!("- line {}, column {}: {}", problem.line, problem.column, problem.what))
                .collect();
            return Some(format!(
                "`{FILE}` is wrong with this change: once it is merged, nothing can be planned. Mend it here:\n\n{}",
                lines.join("\n")
            ));
        }
    };
    let all = estate.roots.iter().filter(|root| root.kind == RootKind::Certain).map(|root| root.key.clone()).collect();
    if let Err(cycle) = estate.layers(&all, config) {
        let path: Vec<String> = cycle.iter().map(named).collect();
        return Some(format!(
            "`waves.after` in `{FILE}` makes a cycle with this change: {}. Once it is merged, what reaches these roots cannot be planned: take one of them out.",
            path.join(" → ")
        ));
    }
    (!inspection.roots.is_empty() && *config != inspection.config).then(|| {
        format!("This change edits `{FILE}`. A change cannot loosen its own rule: this pull goes by the settings of its base, and the new ones hold once it is merged.")
    })
}

/// What of the reached part could not be read.
fn holes(trees: &Trees<'_>, inspection: &Inspection, changed: &[String]) -> Vec<Hole> {
    let near = |path: &str| {
        inspection.roots.iter().any(|root| root.closure.iter().any(|part| is_within(path, part)))
            || changed.iter().any(|changed| changed == path)
    };
    let mut holes: Vec<Hole> = trees.estate.holes.iter().filter(|hole| near(&hole.path)).cloned().collect();
    holes.sort();
    holes.dedup();
    holes
}

/// Roots that leave, directories that are only probably roots, states that several roots write.
fn notices(trees: &Trees<'_>, inspection: &Inspection, changed: &[String]) -> Vec<String> {
    let removed = deleted(trees.base_estate, trees.estate).into_iter().flat_map(|root| departed(trees, &root));
    let touched = |dir: &str| changed.iter().any(|path| is_within(path, dir));
    let probable = trees.estate.roots.iter().filter(|root| root.kind == RootKind::Probable && touched(root.key.dir())).map(|root| {
        format!(
            "{} configures a provider but declares no backend: probably a root, and not planned. A `backend` block makes it one; `roots.ignore` silences this.",
            named(&root.key)
        )
    });
    let units = trees.estate.roots.iter().filter(|root| root.kind == RootKind::Unit && touched(root.key.dir()));
    let units: Vec<String> = units.map(|root| named(&root.key)).collect();
    let units = (!units.is_empty())
        .then(|| format!("Changed, and not planned here, because Terragrunt runs them: {}.", units.join(", ")));
    let guessed = inspection.edges.iter().any(|edge| !edge.certain);
    let patterns: Vec<String> = trees.estate.conventions.iter().map(|said| code(&said.pattern)).collect();
    let convention = (guessed && !patterns.is_empty()).then(|| {
        format!(
            "States here are taken to be named by {}; `backend_config` in `.tidegate.yaml` says which file a root uses.",
            patterns.join(", ")
        )
    });
    let reached = |owner: &RootKey| inspection.roots.iter().any(|root| root.root == *owner);
    let shared =
        trees.estate.shared_states.iter().filter(|(_, owners)| owners.iter().any(reached)).map(|(state, owners)| {
            let names: Vec<String> = owners.iter().map(named).collect();
            format!(
                "{} write one state, {}. They share one lock, and nobody is planned on their outputs.",
                names.join(", "),
                code(state.as_str())
            )
        });
    removed.chain(probable).chain(units).chain(convention).chain(shared).collect()
}

/// What is said of a state that no root owns any more: its root was removed, moved to another state, or took another name and state.
fn departed(trees: &Trees<'_>, gone: &Root) -> Vec<String> {
    let old = named(&gone.key);
    if trees.estate.roots.iter().any(|root| root.key == gone.key && root.kind == RootKind::Certain) {
        return vec![format!(
            "The backend of {old} names another state with this change. What its old state, {}, holds stays there and is not destroyed, but {old} would create it anew: move the state first (`terraform init -migrate-state`), or keep the backend as it was.",
            code(gone.state.as_str())
        )];
    }
    let mut said = vec![format!(
        "The root {old} is removed by this change. Its state stays as it is, and so does everything in it: nothing is destroyed by this pull."
    )];
    let is_new = |root: &&Root| {
        root.kind == RootKind::Certain
            && root.key.workspace() == gone.key.workspace()
            && !trees.base_estate.roots.iter().any(|old| old.key == root.key || old.state == root.state)
    };
    let before = shape(trees.base_listing, gone.key.dir());
    said.extend(trees.estate.roots.iter().filter(is_new).filter(|root| before.is_like(&shape(trees.listing, root.key.dir()))).map(|root| {
        format!(
            "The root {new} looks like {old} by another name, but it owns another state: {new} would create what {old} still holds. Give it the backend key of {old}, or move the state first.",
            new = named(&root.key)
        )
    }));
    said
}

/// The code files of a directory by name, and their bytes.
struct Shape<'a> {
    names: Vec<&'a str>,
    bytes: u64,
}

impl Shape<'_> {
    /// The same files of about the same size: a directory that moved, perhaps with another backend key.
    fn is_like(&self, other: &Shape<'_>) -> bool {
        !self.names.is_empty() && self.names == other.names && self.bytes.abs_diff(other.bytes) * 5 <= self.bytes
    }
}

fn shape<'a>(listing: &'a Listing, dir: &str) -> Shape<'a> {
    let prefix = if dir == "." { String::new() } else { format!("{dir}/") };
    let code = listing.entries.iter().filter_map(|(path, entry)| {
        let name = path.strip_prefix(&prefix)?;
        let is_code = [".tf", ".tofu", ".tf.json", ".tofu.json"].iter().any(|end| name.ends_with(end));
        (is_code && !name.contains('/')).then_some((name, entry.size))
    });
    let (names, sizes): (Vec<&str>, Vec<u64>) = code.unzip();
    Shape { names, bytes: sizes.iter().sum() }
}

fn named(root: &RootKey) -> String {
    code(&root.to_string())
}

/// Whether `path` is `part` or lies below it, by path component.
pub fn is_within(path: &str, part: &str) -> bool {
    part == "." || path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_within_by_component() {
        for (path, part, within) in [
            ("test222/main.tf", "test", false),
            ("test/main.tf", "test", true),
            ("test", "test", true),
            ("main.tf", ".", true),
            ("a/b/c.tf", "a/b", true),
        ] {
            assert_eq!(is_within(path, part), within, "{path} in {part}");
        }
    }

    #[test]
    fn a_cycle_is_told_with_its_path_and_the_way_out() {
        let refusal = cycle_refusal(&["a".to_owned().into(), "b".to_owned().into(), "a".to_owned().into()]);
        assert!(refusal.text.contains("`a` → `b` → `a`"), "{}", refusal.text);
    }
}
