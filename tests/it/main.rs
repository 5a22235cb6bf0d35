//! Everything that needs more than one layer: adapters against fakes, jobs with the real tool.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod runner;
