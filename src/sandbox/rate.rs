//! Requests counted for each asker, as GitHub's primary limit counts them. It refuses nobody until a limit is ordered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::world::seconds;

/// What GitHub gives an asker in an hour.
const USUAL: u64 = 5_000;
/// The length of a window, in seconds.
const WINDOW: i64 = 3_600;

/// An asker's account of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// How many it has in a window.
    pub limit: u64,
    /// How many are gone.
    pub used: u64,
    /// When the window ends, in seconds since 1970.
    pub reset: i64,
    /// Whether this request is one too many.
    pub spent: bool,
}

impl Account {
    /// How many are left. While nothing is refused it never says none: clients stop by themselves then.
    pub fn remaining(&self) -> u64 {
        let left = self.limit.saturating_sub(self.used);
        if self.spent || self.used < self.limit { left } else { left.max(u64::from(self.limit == USUAL)) }
    }
}

#[derive(Debug, Default)]
struct Inner {
    limit: Option<u64>,
    used: BTreeMap<(String, &'static str), (u64, i64)>,
}

/// The accounts.
#[derive(Debug, Default)]
pub struct Rates(Mutex<Inner>);

impl Rates {
    /// From now on each asker has this many requests in a window, counted from here; `None` refuses nobody.
    pub fn set_limit(&self, limit: Option<u64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Inner { limit, used: BTreeMap::new() };
    }

    /// Looks without counting.
    pub fn look(&self, asker: &str, resource: &'static str) -> Account {
        self.account(asker, resource, 0)
    }

    /// Counts one request.
    pub fn count(&self, asker: &str, resource: &'static str) -> Account {
        self.account(asker, resource, 1)
    }

    fn account(&self, asker: &str, resource: &'static str, more: u64) -> Account {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = inner.limit;
        let now = seconds();
        let window = inner.used.entry((asker.to_owned(), resource)).or_insert((0, now + WINDOW));
        if window.1 <= now {
            *window = (0, now + WINDOW);
        }
        let spent = limit.is_some_and(|limit| window.0 >= limit);
        if !spent {
            window.0 += more;
        }
        Account { limit: limit.unwrap_or(USUAL), used: window.0, reset: window.1, spent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_each_asker_and_resource_alone() {
        let rates = Rates::default();
        rates.set_limit(Some(2));
        let seen = |asker, resource| {
            let account = rates.count(asker, resource);
            (account.remaining(), account.spent)
        };
        assert_eq!([seen("a", "core"), seen("a", "core"), seen("a", "core")], [(1, false), (0, false), (0, true)]);
        assert_eq!([seen("b", "core"), seen("a", "graphql")], [(1, false), (1, false)]);
        assert_eq!(rates.look("b", "core").used, 1);
    }

    #[test]
    fn without_an_order_nobody_is_refused_or_told_to_stop() {
        let rates = Rates::default();
        let last = (0..USUAL + 5).map(|_| rates.count("a", "core")).last().unwrap();
        assert_eq!((last.spent, last.remaining()), (false, 1));
    }
}
