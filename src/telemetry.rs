//! Logs: one line per event, structured, secrets never in them.
