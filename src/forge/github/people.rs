//! People: what they may do with a repository, and who is in a team. It never says who may approve.

use super::GitHub;
use super::paging::Shape;
use super::request::{Ask, Whose, repo_path, segment};
use super::wire::{Standing, User, login};
use crate::domain::approval::Permission;
use crate::domain::ids::Login;
use crate::ports::forge::{ForgeError, RepoRef};

impl GitHub {
    pub(super) async fn get_permission(&self, repo: &RepoRef, login: &Login) -> Result<Permission, ForgeError> {
        let path = format!("{}/collaborators/{}/permission", repo_path(&repo.name)?, segment(login.as_str()));
        match self.ask(Whose::Repo(&repo.name), &Ask::get(path)).await {
            Ok(answer) => Ok(permission(answer.read::<Standing>()?.permission.as_deref())),
            // Nobody of that name, or nothing that we can see: either way they may do nothing.
            Err(ForgeError::NotFound(_)) => Ok(Permission::None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn list_team(&self, org: &str, slug: &str) -> Result<Vec<Login>, ForgeError> {
        let path = format!("/orgs/{}/teams/{}/members", segment(org), segment(slug));
        let members: Vec<User> = self.list(Whose::Account(org), &path, Shape::Array).await?;
        Ok(members.iter().filter_map(|member| login(Some(member))).collect())
    }
}

/// GitHub folds its finer roles into these: maintain is `write`, triage is `read`. A word that we do not know allows nothing.
fn permission(word: Option<&str>) -> Permission {
    match word {
        Some("admin") => Permission::Admin,
        Some("write" | "maintain") => Permission::Write,
        Some("read" | "triage") => Permission::Read,
        _ => Permission::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_allows_nothing() {
        for (word, allowed) in [
            (Some("admin"), Permission::Admin),
            (Some("write"), Permission::Write),
            (Some("maintain"), Permission::Write),
            (Some("triage"), Permission::Read),
            (Some("read"), Permission::Read),
            (Some("none"), Permission::None),
            (Some("owner"), Permission::None),
            (None, Permission::None),
        ] {
            assert_eq!(permission(word), allowed, "{word:?}");
        }
    }
}
