//! Everything that needs more than one layer: adapters against fakes, jobs with the real tool.

mod runner;
