//! Every rule of the product, as pure functions over values: no async, no IO, no clock, no
//! environment. Whoever wants to test a rule needs nothing but this module.

pub mod approval;
pub mod chart;
pub mod command;
pub mod config;
pub mod decide;
pub mod digest;
pub mod effect;
pub mod estate;
pub mod event;
pub mod gate;
pub mod hcl;
pub mod ids;
pub mod inspect;
pub mod job;
pub mod linked;
pub mod lock;
pub mod managed;
pub mod nearest;
pub mod neighbour;
pub mod note;
pub mod outside;
pub mod packages;
pub mod page;
pub mod plan;
pub mod progress;
pub mod pull;
pub mod reach;
pub mod reply;
pub mod report;
pub mod rollout;
pub mod secret;
pub mod setup;
pub mod tool;
pub mod tree;
