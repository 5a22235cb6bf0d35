//! Which pulls are ours to manage and which programs may command us, as the server's settings say: a repository cannot say it,
//! because people with write access can put any settings on a branch of their own. It asks nobody.

use serde::{Deserialize, Serialize};

use super::config::branch_fits;
use super::event::{AuthorKind, Comment};
use super::ids::Login;
use super::note::markdown::code;
use super::rollout::Refusal;

/// `pulls.branches` and `pulls.bots`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Managed {
    /// Names or patterns of the branches into which pulls are planned; empty means all.
    pub branches: Vec<String>,
    /// Logins of programs whose comments are commands.
    pub bots: Vec<Login>,
}

impl Managed {
    /// Whether a comment of this author is read. Our own never is, and a program's only when it is named.
    pub fn reads(&self, comment: &Comment) -> bool {
        match comment.author {
            AuthorKind::Person => true,
            AuthorKind::Bot => self.bots.iter().any(|bot| bot.same(&comment.by)),
            AuthorKind::Ourselves => false,
        }
    }

    /// Why a pull into this branch is none of ours, if it is not.
    pub fn turns_away(&self, base: &str) -> Option<Refusal> {
        if self.branches.is_empty() || self.branches.iter().any(|pattern| branch_fits(pattern, base)) {
            return None;
        }
        let known: Vec<String> = self.branches.iter().map(|pattern| code(pattern)).collect();
        Some(Refusal {
            title: format!("Not managed: this pull merges into {}", code(base)),
            text: format!(
                "The server's setting `pulls.branches` names {}. Nothing is planned or locked here; a pull into one of those is, or \
                 add this branch there.",
                known.join(", ")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::CommentKind;
    use crate::domain::ids::Timestamp;

    #[test]
    fn branches_are_named_or_fit_a_pattern_and_none_named_means_all() {
        let of =
            |branches: &[&str]| Managed { branches: branches.iter().map(ToString::to_string).collect(), bots: vec![] };
        for (branches, base, managed) in [
            (vec![], "anything/at/all", true),
            (vec!["main"], "main", true),
            (vec!["main"], "main2", false),
            (vec!["main"], "feature/main", false),
            (vec!["main"], "Main", false),
            (vec!["main", "release/*"], "release/1", true),
            (vec!["main", "release/*"], "release/1/hotfix", false),
            (vec!["release/**"], "release/1/hotfix", true),
            (vec!["release-?"], "release-2", true),
            (vec!["**"], "a/b", true),
        ] {
            assert_eq!(of(&branches).turns_away(base).is_none(), managed, "{branches:?} {base}");
        }
        let refusal = of(&["main", "release/*"]).turns_away("wip`x").expect("not managed");
        assert!(refusal.text.contains("`main`, `release/*`") && refusal.title.contains("``wip`x``"), "{refusal:?}");
    }

    #[test]
    fn a_program_is_read_when_it_is_named_and_we_never_are() {
        let managed = Managed { branches: vec![], bots: vec!["Renovate[bot]".into()] };
        let by = |login: &str, author| Comment {
            id: 1,
            by: login.into(),
            author,
            body: "apply".to_owned(),
            at: Timestamp(0),
            kind: CommentKind::Created,
        };
        for (login, author, read) in [
            ("mira", AuthorKind::Person, true),
            ("renovate[bot]", AuthorKind::Bot, true),
            ("dependabot[bot]", AuthorKind::Bot, false),
            ("renovate", AuthorKind::Bot, false),
            ("renovate[bot]", AuthorKind::Ourselves, false),
        ] {
            assert_eq!(managed.reads(&by(login, author)), read, "{login}");
        }
        assert!(!Managed::default().reads(&by("renovate[bot]", AuthorKind::Bot)));
    }
}
