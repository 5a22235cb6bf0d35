//! Adapters for forges. Each knows only itself; no rule of the product stands here.

pub mod github;
