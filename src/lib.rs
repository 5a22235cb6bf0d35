//! Tidegate: plans, gates and applies Terraform from pull requests.
//!
//! Data flows one way: a webhook, a job report or a timer becomes an event (`web`), a *turn*
//! (`app`) loads what the decision needs, asks `domain` (which is pure), commits new state and the
//! effects to do in one transaction (`store`), and performs the effects afterwards (`forge`,
//! `executor`). `docs/architecture.md` has the page; `tests/tidy.rs` keeps the directions.

pub mod app;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod domain;
pub mod executor;
pub mod forge;
pub mod local;
pub mod ports;
pub mod runner;
pub mod sandbox;
pub mod serve;
pub mod shield;
pub mod source;
pub mod store;
pub mod telemetry;
pub mod web;
