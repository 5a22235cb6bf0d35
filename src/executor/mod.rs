//! Executors: where jobs run. Each knows only how to start, stop and observe a process.

pub mod local;

pub use local::LocalExecutor;
