//! The known name that a mistyped one most likely meant, for "did you mean". It suggests and never chooses.

/// The nearest of `known`, when one is near enough to be meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let allowed = (typed.chars().count() / 3).clamp(1, 3);
    let distances = known.into_iter().map(|name| (strsim::osa_distance(&typed, &name.to_lowercase()), name));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["plan", "apply", "confirm_destructive"];
        assert_eq!(nearest("aply", known), Some("apply"));
        assert_eq!(nearest("PLAN", known), Some("plan"));
        assert_eq!(nearest("confirm_destuctve", known), Some("confirm_destructive"));
        assert_eq!(nearest("merge", known), None);
        assert_eq!(nearest("", known), None);
    }
}
