//! Keeps what this process holds out of reach of others: its environment and memory from programs of the same user (a tool that a
//! pull request steers runs as one), and values from the words of a panic. It changes nothing for a superuser.

use std::any::Any;
use std::panic::PanicHookInfo;

/// Shields this process from now on; children are not shielded, because each program starts anew.
pub fn raise() {
    // `/proc/PID/environ` and the memory of a process that cannot be dumped belong to root. Elsewhere there is no such thing.
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "programs of the same user can read this process's environment");
    }
    std::panic::set_hook(Box::new(|info| tracing::error!("{}", words(info))));
}

fn words(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    format!("a panic at {place}: {}", message(info.payload()))
}

/// A message that stands in the code as it is can quote nothing; one that was put together can quote a plan or a secret.
fn message(payload: &dyn Any) -> &str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("its message may quote a value and is not shown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_tells_its_place_and_quotes_nothing() {
        let told = |panics: fn()| message(std::panic::catch_unwind(panics).unwrap_err().as_ref()).to_owned();
        assert_eq!(told(|| panic!("a list without an end")), "a list without an end");
        let quoting = told(|| {
            let secret = String::from("hünter2-secret");
            let cut = &secret[..2];
            assert!(cut.is_empty());
        });
        assert!(!quoting.contains("nter2"), "{quoting}");
    }
}
