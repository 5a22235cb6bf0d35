//! Numbers, times and people as words. It knows nothing of plans.

use super::markdown::code;
use crate::domain::ids::{Login, RootKey};

/// `1 root`, `2 roots`.
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// `is` or `are`, `changes` or `change`: the verb that goes with a number.
pub(super) fn verb<'a>(number: usize, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// `41 s`, `2 m 10 s`, `1 h 5 m`.
pub(super) fn seconds(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} m"),
        (0, minutes, seconds) => format!("{minutes} m {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} m"),
    }
}

/// The same from milliseconds, at least one second.
pub(super) fn milliseconds(ms: i64) -> String {
    seconds(u64::try_from(ms).unwrap_or(0).div_ceil(1000).max(1))
}

/// A person by login, without calling for them.
pub(super) fn person(login: &Login) -> String {
    code(&format!("@{login}"))
}

/// A root in a sentence.
pub(super) fn root(root: &RootKey) -> String {
    code(&root.to_string())
}

/// `second`, `third`, `11th`: a place in a line.
pub(super) fn ordinal(place: usize) -> String {
    let named = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    if let Some(word) = place.checked_sub(1).and_then(|index| named.get(index)) {
        return (*word).to_owned();
    }
    let ending = match (place % 100, place % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{place}{ending}")
}

/// A sentence begins with a capital letter.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fit_their_numbers() {
        assert_eq!(
            (count(1, "root"), count(0, "root"), count(40, "root")),
            ("1 root".into(), "0 roots".into(), "40 roots".into())
        );
        let times = [(0, "0 s"), (59, "59 s"), (60, "1 m"), (130, "2 m 10 s"), (3600, "1 h"), (3901, "1 h 5 m")];
        times.iter().for_each(|(given, expected)| assert_eq!(seconds(*given), *expected));
        assert_eq!((milliseconds(-1), milliseconds(37_400)), ("1 s".into(), "38 s".into()));
        let places = [(1, "first"), (2, "second"), (11, "11th"), (21, "21st"), (112, "112th")];
        places.iter().for_each(|(given, expected)| assert_eq!(ordinal(*given), *expected));
    }
}
