//! The tests of adapters and flows, in one binary.

#[path = "../contract/store.rs"]
mod contract;
mod source;
mod store;
