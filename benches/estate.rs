//! The estate of 2,000 roots, 200,000 resources and 400,000 references: survey, layers, and what a change reaches. It prints figures and
//! judges none; reading files and parsing them stand apart.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::domain::config::RepoConfig;
use tidegate::domain::estate::survey;
use tidegate::domain::hcl;
use tidegate::domain::ids::RootKey;
use tidegate::domain::tree::{Entry, EntryKind, Listing};

const ROOTS: usize = 2_000;
const RESOURCES: usize = 100;

/// One root: a backend, a hub that everybody reads, a neighbour of the layer before, resources with two references each.
fn root(number: usize) -> String {
    let mut text =
        format!("terraform {{\n  backend \"s3\" {{\n    bucket = \"b\"\n    key = \"r{number}/x.tfstate\"\n  }}\n}}\n");
    let mut read = |label: &str, source: usize| {
        let _ = write!(
            text,
            "data \"terraform_remote_state\" \"{label}\" {{\n  backend = \"s3\"\n  config = {{ bucket = \"b\", key = \"r{source}/x.tfstate\" }}\n}}\n"
        );
    };
    if number > 0 {
        read("hub", 0);
    }
    if number >= 400 {
        read("before", number - 399);
    }
    for at in 0..RESOURCES {
        let one = if at == 0 { "local.a".to_owned() } else { format!("t_x.r{}.id", at - 1) };
        let two = if at < 2 { "local.b".to_owned() } else { format!("t_x.r{}.id", at / 2) };
        let _ = write!(text, "resource \"t_x\" \"r{at}\" {{\n  a = {one}\n  b = {two}\n}}\n");
    }
    text
}

fn timed<T>(what: &str, times: usize, mut work: impl FnMut() -> T) -> T {
    let mut best = Duration::MAX;
    let mut last = None;
    for _ in 0..times {
        let began = Instant::now();
        last = Some(work());
        best = best.min(began.elapsed());
    }
    println!("{what:<44} {:>9.1} ms (best of {times})", best.as_secs_f64() * 1e3);
    last.unwrap_or_else(work)
}

fn main() {
    let texts: Vec<String> = (0..ROOTS).map(root).collect();
    let mut listing = Listing::default();
    for (number, text) in texts.iter().enumerate() {
        let path = format!("roots/g{}/r{number}/main.tf", number % 50);
        listing.entries.insert(path.clone(), Entry { kind: EntryKind::File, blob: path, size: text.len() as u64 });
    }
    let facts = timed("parse (once per blob, cached by the server)", 1, || {
        let parse = |(number, text): (usize, &String)| {
            let path = format!("roots/g{}/r{number}/main.tf", number % 50);
            let facts = Arc::new(hcl::parse(&path, text.as_bytes()));
            (path, facts)
        };
        texts.iter().enumerate().map(parse).collect::<BTreeMap<_, _>>()
    });
    let references: usize =
        facts.values().flat_map(|facts| &facts.resources).map(|resource| resource.references.len()).sum();
    let resources: usize = facts.values().map(|facts| facts.resources.len()).sum();
    println!("{ROOTS} roots, {resources} resources, {references} references");
    let (config, links) = (RepoConfig::default(), BTreeMap::new());
    let estate = timed("survey: roots, states, edges", 5, || survey(&listing, &facts, &links, &config));
    let keys: BTreeSet<RootKey> = estate.roots.iter().map(|root| root.key.clone()).collect();
    let layers = timed("layers of all roots", 5, || estate.layers(&keys, &config).unwrap_or_default());
    let changed = vec!["roots/g0/r0/main.tf".to_owned()];
    let reached =
        timed("what a change of the hub reaches", 5, || estate.reached(&changed, &config).unwrap_or_default());
    println!("{} edges, {} layers, {} roots reached", estate.edges.len(), layers.len(), reached.roots.len());
    let graphs = timed("reference graph of one root", 5, || {
        estate.references(&RootKey::new("roots/g7/r7")).dependencies().len()
    });
    println!("{graphs} resources with dependencies in it");
}
