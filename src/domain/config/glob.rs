//! Patterns of directories: `*` stays within one part of a path, `**` crosses them, and `a/**` is `a` as well. It
//! never looks at files.

use globset::GlobBuilder;

/// Why a text is no pattern.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    build(pattern).map(|_| ()).map_err(|error| error.kind().to_string())
}

/// Whether a pattern fits a directory; the repository's top is `.`, which only `.` and `**` fit.
pub(super) fn fits(pattern: &str, dir: &str) -> bool {
    let pattern = tidy(pattern);
    let dir = tidy(dir);
    if dir == "." {
        return matches!(pattern, "." | "**");
    }
    if pattern.strip_suffix("/**").is_some_and(|above| fits(above, dir)) {
        return true;
    }
    // Most patterns differ in their first letters: no automaton is built for those.
    let literal = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    dir.starts_with(&pattern[..literal]) && build(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(dir))
}

/// Whether a pattern fits a branch's name, part by part.
pub fn branch_fits(pattern: &str, branch: &str) -> bool {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    glob.is_ok_and(|glob| glob.compile_matcher().is_match(branch))
}

/// `./a/` is the directory `a`, and nothing is the top.
pub(super) fn tidy(dir: &str) -> &str {
    let inner = dir.strip_prefix("./").unwrap_or(dir).trim_end_matches('/');
    if inner.is_empty() { "." } else { inner }
}

fn build(pattern: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(tidy(pattern)).literal_separator(true).backslash_escape(true).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_follow_the_parts_of_a_path() {
        for (pattern, fitting, others) in [
            (
                "envs/prod/**",
                vec!["envs/prod", "envs/prod/db", "envs/prod/a/b"],
                vec!["envs/prod2", "envs", "a/envs/prod"],
            ),
            ("components/*", vec!["components/a", "./components/a/"], vec!["components", "components/a/b"]),
            ("**", vec![".", "a", "a/b"], vec![]),
            ("*", vec!["a"], vec![".", "a/b"]),
            (".", vec!["."], vec!["a"]),
            ("test", vec!["test"], vec!["test222", "test/nested"]),
            ("**/dev", vec!["dev", "a/dev", "a/b/dev"], vec!["a/dev/b", "adev"]),
            ("envs/{dev,stg}/?", vec!["envs/dev/a"], vec!["envs/prod/a", "envs/dev/ab"]),
        ] {
            for dir in fitting {
                assert!(fits(pattern, dir), "{pattern} fits {dir}");
            }
            for dir in others {
                assert!(!fits(pattern, dir), "{pattern} does not fit {dir}");
            }
        }
        assert!(check("a/{b").is_err() && check("[").is_err() && check("a/**").is_ok());
    }
}
