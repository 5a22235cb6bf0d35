//! The tests of adapters and flows, in one binary: adapters against fakes, jobs with the real tool, and stories.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod backend;
#[path = "../contract/store.rs"]
mod contract;
mod ctx;
mod docs;
mod estate;
mod estates;
mod github;
mod leaks;
mod local;
mod peril;
mod runner;
mod sandbox;
mod serve;
mod setup;
mod shim;
mod source;
mod store;
mod stories;
