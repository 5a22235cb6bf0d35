//! Parsing of a stranger's files: on a thread with a deep stack, and with a panic caught per file, so that one odd file is a hole and
//! never the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::hcl::{self, FileFacts, FileHole};

/// Deeply nested expressions need more than a thread's usual stack.
const STACK: usize = 256 << 20;

/// What each of these files declares.
pub(super) fn all(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Arc<FileFacts>> {
    deep(|| files.iter().map(|(path, bytes)| (path.clone(), Arc::new(one(path, bytes)))).collect()).unwrap_or_else(
        || {
            files
                .keys()
                .map(|path| (path.clone(), Arc::new(hole("The file was not parsed: no thread could be had."))))
                .collect()
        },
    )
}

/// Work that may go deep.
pub(super) fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok()?;
        thread.join().ok()
    })
}

fn one(path: &str, bytes: &[u8]) -> FileFacts {
    let read = std::panic::AssertUnwindSafe(|| hcl::parse(path, bytes));
    std::panic::catch_unwind(read)
        .unwrap_or_else(|_| hole("The file cannot be parsed, and what it declares is unknown."))
}

/// A file of which nothing is known.
pub(super) fn hole(what: &str) -> FileFacts {
    FileFacts { holes: vec![FileHole { line: 0, what: what.to_owned() }], ..FileFacts::default() }
}
