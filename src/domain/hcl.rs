//! Facts of one configuration file, parsed from its bytes: what it declares and what each part refers to. Values are kept as
//! expressions, not evaluated; nothing here looks at another file.

use serde::{Deserialize, Serialize};

/// What a file declares. Kept per blob, so a file is parsed once in its life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileFacts {}

/// Whether the file of this path must be parsed for an estate.
pub fn is_wanted(path: &str) -> bool {
    let _ = path;
    unimplemented!()
}

/// Parses a file. What cannot be read is in the facts, as holes; there is no error.
pub fn parse(path: &str, bytes: &[u8]) -> FileFacts {
    let _ = (path, bytes);
    unimplemented!()
}
