//! The chart as text for a terminal: roots, edges with the reason of each match, external reads, waves, holes.

use super::{Chart, ChartEdge, ChartKind, ChartRoot, counted, plain};

/// Everything, a heading and a list for each part that has something.
pub fn text(chart: &Chart) -> String {
    let mut lines = vec![format!(
        "{}, {}, {}, {}, {}",
        counted(chart.roots.len(), "root"),
        counted(chart.edges.len(), "edge"),
        counted(chart.external.len(), "external read"),
        counted(chart.waves.len(), "wave"),
        counted(chart.holes.len(), "hole"),
    )];
    part(&mut lines, "Roots", chart.roots.iter().map(root));
    part(&mut lines, "Edges (reader -> source; ~> is probable)", chart.edges.iter().map(edge));
    let external = chart.external.iter().map(|read| {
        let state = read.state.as_deref().map_or_else(|| "a state whose place is not fully known".to_owned(), plain);
        format!("{}  {} reads {state}, which no root here owns", plain(&read.reader), plain(&read.block))
    });
    part(&mut lines, "External reads", external);
    let conventions = chart.conventions.iter().map(|said| {
        let (pattern, example) = (plain(&said.pattern), plain(&said.example));
        format!("{pattern}  beside {}, such as {example}", counted(said.roots, "root"))
    });
    part(
        &mut lines,
        "Conventions (taken for backend files; `backend_config` in .tidegate.yaml says which are)",
        conventions,
    );
    let shared = chart.shared_states.iter().map(|shared| {
        let roots: Vec<String> = shared.roots.iter().map(|root| plain(root)).collect();
        format!("{}  written by {}", plain(&shared.state), roots.join(", "))
    });
    part(&mut lines, "States with several owners (nobody is ordered after them)", shared);
    let waves = chart.waves.iter().enumerate().map(|(at, wave)| {
        let roots: Vec<String> = wave.iter().map(|root| plain(root)).collect();
        format!("wave-{}: {}", at + 1, roots.join(", "))
    });
    part(&mut lines, "Waves", waves);
    let holes = chart.holes.iter().map(|hole| {
        let line = if hole.line == 0 { String::new() } else { format!(":{}", hole.line) };
        format!("{}{line}  {}", plain(&hole.file), plain(&hole.what))
    });
    part(&mut lines, "Holes (not read or not known, so nothing follows from it)", holes);
    lines.push(String::new());
    lines.join("\n")
}

fn part(lines: &mut Vec<String>, heading: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        lines.push(String::new());
        lines.push(heading.to_owned());
        lines.extend(items.map(|item| format!("  {item}")));
    }
}

fn root(root: &ChartRoot) -> String {
    let workspace = if root.workspace == "default" { String::new() } else { format!(":{}", plain(&root.workspace)) };
    let name = format!("{}{workspace}", plain(&root.dir));
    let state = match (&root.state, root.kind) {
        (Some(state), _) => plain(state),
        (None, ChartKind::Certain) => format!("{}, place not known from the code", plain(&root.backend)),
        (None, ChartKind::Probable) => "probably a root: listed, not planned".to_owned(),
    };
    let by = root.by.as_ref().map_or_else(String::new, |by| format!("  (a unit of {}: not planned)", plain(by)));
    format!("{name}  {state}{by}")
}

fn edge(edge: &ChartEdge) -> String {
    let arrow = if edge.certain { "->" } else { "~>" };
    let why = match (&edge.state, edge.certain) {
        (_, true) if edge.block.starts_with("dependenc") => "the reader names its directory".to_owned(),
        (Some(state), true) => format!("both sides name {}", plain(state)),
        (None, true) => "both sides name one state".to_owned(),
        (Some(state), false) => format!("what is known of the read fits {} alone", plain(state)),
        (None, false) => "what is known of both sides fits, and no other root does".to_owned(),
    };
    format!("{} {arrow} {}  {}: {why}", plain(&edge.reader), plain(&edge.source), plain(&edge.block))
}
