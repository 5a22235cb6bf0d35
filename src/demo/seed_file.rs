//! What a sandbox holds from the start, by a file: people, teams, repositories with their files and rules. It never touches a
//! sandbox that runs already.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::refused;
use crate::sandbox::{Protection, Role, Sandbox, Visibility};

/// The file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// People by login.
    #[serde(default)]
    pub users: BTreeMap<String, User>,
    /// Members by `organization/team`.
    #[serde(default)]
    pub teams: BTreeMap<String, Vec<String>>,
    /// Repositories by `owner/name`.
    pub repositories: BTreeMap<String, Repository>,
}

/// A person.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// A token of theirs; one is made when none is given.
    pub token: Option<String>,
}

/// A repository.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// Only those with a role see it.
    #[serde(default)]
    pub private: bool,
    /// A folder whose files it begins with, relative to the seed file.
    pub folder: Option<PathBuf>,
    /// Files by path, beside or instead of those of the folder.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// What people may do in it.
    #[serde(default)]
    pub roles: BTreeMap<String, RoleWord>,
    /// Protected branches.
    #[serde(default)]
    pub protection: BTreeMap<String, Rule>,
}

/// What a person may do.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleWord {
    /// See it.
    Read,
    /// Push and merge.
    Write,
    /// Everything.
    Admin,
}

/// What a branch demands before a merge.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Checks or statuses that must succeed.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Approving reviews needed.
    #[serde(default)]
    pub reviews: u32,
    /// The branch must have everything that its base has.
    #[serde(default)]
    pub strict: bool,
}

impl Seed {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("the seed {} cannot be read", path.display()))?;
        let mut seed: Self =
            serde_saphyr::from_str(&text).with_context(|| format!("the seed {} cannot be used", path.display()))?;
        if seed.repositories.is_empty() {
            bail!("the seed {} names no repository; give one under `repositories`", path.display());
        }
        let home = path.parent().unwrap_or(Path::new("."));
        for repository in seed.repositories.values_mut() {
            if let Some(folder) = &mut repository.folder {
                *folder = home.join(&*folder);
            }
        }
        Ok(seed)
    }

    /// Everybody who is named anywhere.
    pub fn people(&self) -> Vec<String> {
        let of_teams = self.teams.values().flatten();
        let of_roles = self.repositories.values().flat_map(|repository| repository.roles.keys());
        let mut all: Vec<String> = self.users.keys().chain(of_teams).chain(of_roles).cloned().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Makes all of it; gives a token for each person.
    pub fn plant(&self, sandbox: &Sandbox) -> Result<BTreeMap<String, String>> {
        let mut tokens = BTreeMap::new();
        for login in self.people() {
            sandbox.create_user(&login);
            let chosen = self.users.get(&login).and_then(|user| user.token.clone());
            if let Some(token) = &chosen {
                sandbox.give_token(&login, token);
            }
            tokens.insert(login.clone(), chosen.unwrap_or_else(|| sandbox.token_for(&login)));
        }
        for (name, repository) in &self.repositories {
            repository.plant(sandbox, name).with_context(|| format!("the repository {name} cannot be made"))?;
        }
        for (name, members) in &self.teams {
            let (org, slug) =
                name.split_once('/').with_context(|| format!("the team {name} is not `organization/team`"))?;
            let members: Vec<&str> = members.iter().map(String::as_str).collect();
            sandbox.create_team(org, slug, &members);
        }
        Ok(tokens)
    }
}

impl Repository {
    fn plant(&self, sandbox: &Sandbox, name: &str) -> Result<()> {
        let (owner, short) = name.split_once('/').context("its name is not `owner/name`")?;
        let mut files = BTreeMap::new();
        if let Some(folder) = &self.folder {
            gather(folder, folder, &mut files)?;
        }
        files.extend(self.files.clone());
        if files.is_empty() {
            files.insert("README.md".to_owned(), format!("# {short}\n"));
        }
        let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        sandbox.create_repo(owner, short, &borrowed).map_err(refused)?;
        for (login, role) in &self.roles {
            let role = match role {
                RoleWord::Read => Role::Read,
                RoleWord::Write => Role::Write,
                RoleWord::Admin => Role::Admin,
            };
            sandbox.set_role(name, login, role).map_err(refused)?;
        }
        if self.private {
            sandbox.set_visibility(name, Visibility::Private).map_err(refused)?;
        }
        for (branch, rule) in &self.protection {
            let rule = Protection { checks: rule.checks.clone(), reviews: rule.reviews, strict: rule.strict };
            sandbox.set_protection(name, branch, rule).map_err(refused)?;
        }
        Ok(())
    }
}

/// The text files of a folder; what git and the tools keep for themselves stays out.
fn gather(top: &Path, folder: &Path, into: &mut BTreeMap<String, String>) -> Result<()> {
    let listing =
        std::fs::read_dir(folder).with_context(|| format!("the folder {} cannot be read", folder.display()))?;
    for entry in listing {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            if entry.file_name() != ".git" && entry.file_name() != ".terraform" {
                gather(top, &path, into)?;
            }
        } else if kind.is_file() {
            let text = std::fs::read_to_string(&path).with_context(|| format!("{} is no text", path.display()))?;
            let name = path.strip_prefix(top).context("a file lies outside its folder")?;
            into.insert(name.to_string_lossy().into_owned(), text);
        }
    }
    Ok(())
}
