//! The chart as JSON, for programs. Fields are only ever added within one version.

use super::Chart;

/// Indented, with a newline at its end.
pub fn json(chart: &Chart) -> String {
    let mut text = serde_json::to_string_pretty(chart).unwrap_or_else(|_| "{}".to_owned());
    text.push('\n');
    text
}
