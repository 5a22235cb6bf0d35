//! The traits towards the outside, in domain words. No type of a client library stands in a
//! signature; an error says what the caller can do about it.

pub mod clock;
pub mod executor;
pub mod forge;
pub mod kept;
pub mod registration;
pub mod source;
pub mod store;
