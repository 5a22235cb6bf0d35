//! Why a path reaches the roots that it reaches, or why nothing: file, rule, roots. Nothing is planned here.

use super::{counted, plain};
use crate::domain::config::RepoConfig;
use crate::domain::estate::{Estate, Reason, RootKind, Unreached};
use crate::domain::tree::Listing;

/// The answer of `tidegate explain PATH`, for a file or for a directory with all that is in it.
pub fn explain(estate: &Estate, config: &RepoConfig, listing: &Listing, path: &str) -> String {
    let is_file = listing.entries.contains_key(path);
    let below: Vec<String> = if is_file { Vec::new() } else { files_below(listing, path) };
    let changed = if below.is_empty() { vec![path.to_owned()] } else { below.clone() };
    let mut lines = vec![if below.is_empty() {
        plain(path)
    } else {
        format!("{} ({})", plain(path), counted(below.len(), "file"))
    }];
    if !is_file && below.is_empty() {
        lines.push(
            "  There is no such file; this is what it would reach if it were new, or had been deleted.".to_owned(),
        );
    }
    match estate.touched(&changed, config) {
        Err(cycle) => {
            let cycle: Vec<String> = cycle.iter().map(|root| format!("`{root}`")).collect();
            lines.push(format!(
                "  Nothing can be planned: `waves.after` makes a cycle, {}. Take one of them out.",
                plain(&cycle.join(" → "))
            ));
        }
        Ok(reached) if reached.roots.is_empty() => {
            lines.push(format!("  reaches nothing: {}", why_not(estate, config, &changed, path)));
        }
        Ok(reached) => {
            let wave_of = |root| reached.waves.iter().position(|wave| wave.contains(root)).map_or(0, |at| at + 1);
            lines.push(format!("  reaches {}:", counted(reached.roots.len(), "root")));
            for root in &reached.roots {
                let unit = estate.root(&root.root).is_some_and(|root| root.kind == RootKind::Unit);
                let unit = if unit { ", a unit of Terragrunt: not planned" } else { "" };
                lines.push(format!("  {}  (wave-{}{unit})", plain(&root.root.to_string()), wave_of(&root.root)));
                lines.extend(root.reasons.iter().map(|reason| format!("    {}", plain(&in_words(reason)))));
            }
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn files_below(listing: &Listing, dir: &str) -> Vec<String> {
    let prefix = if dir == "." { String::new() } else { format!("{dir}/") };
    let range = listing.entries.range(prefix.clone()..);
    range.take_while(|(path, _)| path.starts_with(&prefix)).map(|(path, _)| path.clone()).collect()
}

fn in_words(reason: &Reason) -> String {
    match reason {
        Reason::Changed(path) => format!("`{path}` lies in its directory"),
        Reason::Module { dir, path } => format!("`{path}` lies in the local module `{dir}`, which it calls"),
        Reason::File(path) => format!("it reads `{path}`"),
        Reason::Reads(root) => format!("it reads the state of `{root}`"),
        Reason::After(root) => format!("`waves.after` puts it after `{root}`"),
        Reason::Asked => "somebody named it".to_owned(),
    }
}

fn why_not(estate: &Estate, config: &RepoConfig, changed: &[String], path: &str) -> String {
    let reasons: Vec<Unreached> = changed.iter().map(|path| estate.unreached(path, config)).collect();
    let strongest = reasons.into_iter().max().unwrap_or(Unreached::Nobody);
    match strongest {
        Unreached::Documentation => "no tool reads a file of this kind, and no root names it in a function".to_owned(),
        Unreached::Ignored(dir) => format!(
            "`{}` is no root: `roots.ignore` or the rule for examples of modules and fixtures of tests hides it",
            plain(&dir)
        ),
        Unreached::Probable(dir) => format!(
            "`{}` is only probably a root, because it configures a provider and declares no backend; a `backend` block makes it one",
            plain(&dir)
        ),
        Unreached::Uncalled(dir) => format!(
            "`{}` holds configuration but declares no backend, and no root is seen to call it as a module",
            plain(&dir)
        ),
        Unreached::Nobody => format!(
            "no root's directory holds `{}`, no root calls a local module around it, and no root is seen to read it. `tidegate graph` lists the reads whose files are not known",
            plain(path)
        ),
    }
}
