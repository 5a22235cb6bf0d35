//! One binary for all tests of adapters and flows, so that they link once.

mod github;
