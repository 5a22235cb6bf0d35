//! The tests of adapters and flows, in one binary: adapters against fakes, jobs with the real tool, and stories.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

#[path = "../contract/store.rs"]
mod contract;
mod ctx;
mod estate;
mod github;
mod peril;
mod runner;
mod sandbox;
mod source;
mod store;
mod stories;
