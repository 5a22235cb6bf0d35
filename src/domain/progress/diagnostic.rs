//! One error or warning of the tool, without the parts that can hold values in clear (`snippet.values`, `difference`).
//! It never keeps those, so nothing downstream can show them.

use serde::Deserialize;

/// What the tool says went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic {
    /// `error` or `warning`.
    pub severity: String,
    /// One line.
    pub summary: String,
    /// The rest.
    pub detail: String,
    /// The address it belongs to; a provider's address when the provider itself failed.
    pub address: Option<String>,
    /// The file, relative to the directory that the tool ran in.
    pub file: Option<String>,
    /// 1-based.
    pub line: Option<usize>,
    /// The source line that the tool quotes.
    pub code: Option<String>,
}

impl Diagnostic {
    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == "error"
    }

    /// Summary and detail in one text.
    pub fn text(&self) -> String {
        let (summary, detail) = (self.summary.trim(), self.detail.trim());
        if detail.is_empty() { summary.to_owned() } else { format!("{summary}: {detail}") }
    }

    pub(super) fn from_json(json: &serde_json::Value) -> Option<Self> {
        let wire = Wire::deserialize(json).ok()?;
        Some(Self {
            severity: wire.severity,
            summary: wire.summary,
            detail: wire.detail.unwrap_or_default(),
            address: wire.address.filter(|address| !address.is_empty()),
            line: wire.range.as_ref().and_then(|range| range.start.as_ref()).map(|start| start.line),
            file: wire.range.map(|range| range.filename).filter(|name| !name.is_empty()),
            code: wire.snippet.map(|snippet| snippet.code).filter(|code| !code.is_empty()),
        })
    }
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    severity: String,
    #[serde(default)]
    summary: String,
    detail: Option<String>,
    address: Option<String>,
    range: Option<Range>,
    snippet: Option<Snippet>,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    filename: String,
    start: Option<Position>,
}

#[derive(Deserialize)]
struct Position {
    #[serde(default)]
    line: usize,
}

#[derive(Deserialize)]
struct Snippet {
    #[serde(default)]
    code: String,
}
