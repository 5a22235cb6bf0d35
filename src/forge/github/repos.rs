//! Repositories: which there are, and how git reaches them. The credential for git can read one repository and is never kept on disk.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use secrecy::{ExposeSecret, SecretString};

use super::GitHub;
use super::paging::Shape;
use super::request::{Ask, Whose, repo_path};
use super::wire::{Installation, Repo};
use crate::ports::forge::{ForgeError, GitAccess, RepoRef};

impl GitHub {
    pub(super) async fn get_repo(&self, name: &str) -> Result<RepoRef, ForgeError> {
        let found = self.raw_repo(name).await?;
        found.named(&self.forge).ok_or_else(|| ForgeError::Unreadable(format!("`{name}`: the answer has no name")))
    }

    async fn raw_repo(&self, name: &str) -> Result<Repo, ForgeError> {
        self.ask(Whose::Repo(name), &Ask::get(repo_path(name)?)).await?.read()
    }

    /// For an App those of all its installations; for a token those of its account, none where that cannot be asked.
    pub(super) async fn list_repos(&self) -> Result<Vec<RepoRef>, ForgeError> {
        if self.access.is_app() {
            return self.installed_repos().await;
        }
        match self.list::<Repo>(Whose::App, "/user/repos", Shape::Array).await {
            Ok(repos) => Ok(repos.iter().filter_map(|repo| repo.named(&self.forge)).collect()),
            Err(ForgeError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn installed_repos(&self) -> Result<Vec<RepoRef>, ForgeError> {
        let installations: Vec<Installation> = self.list(Whose::App, "/app/installations", Shape::Array).await?;
        let mut found = Vec::new();
        for installation in installations.iter().filter(|installation| installation.suspended_at.is_none()) {
            if let Some(account) = installation.account.as_ref().and_then(|account| account.login.as_deref()) {
                self.access.learn(account, installation.id).await;
            }
            let whose = Whose::Installation(installation.id);
            match self.list::<Repo>(whose, "/installation/repositories", Shape::Under("repositories")).await {
                Ok(repos) => found.extend(repos.iter().filter_map(|repo| repo.named(&self.forge))),
                // Suspended or removed just now: the others still count.
                Err(ForgeError::Denied(why) | ForgeError::Suspended(why) | ForgeError::NotFound(why)) => {
                    tracing::warn!(
                        installation = installation.id,
                        why,
                        "an installation's repositories cannot be listed"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    pub(super) async fn open_git(&self, repo: &RepoRef) -> Result<GitAccess, ForgeError> {
        let token = self.access.git_token(&repo.name).await?;
        Ok(GitAccess { url: self.clone_url(&repo.name).await?, authorization: Some(basic(&token)) })
    }

    async fn clone_url(&self, name: &str) -> Result<String, ForgeError> {
        repo_path(name)?;
        if let Some(web) = &self.web_url {
            return Ok(format!("{web}/{name}.git"));
        }
        if let Some(known) = self.clone_urls.get(name).await {
            return Ok(known);
        }
        let missing = || ForgeError::Unavailable(format!("`{name}`: the answer has no clone URL"));
        let url = self.raw_repo(name).await?.clone_url.ok_or_else(missing)?;
        self.clone_urls.insert(name.to_owned(), url.clone()).await;
        Ok(url)
    }
}

/// git takes any user name with a token; `x-access-token` is the one that GitHub's documentation uses.
fn basic(token: &SecretString) -> SecretString {
    let pair = SecretString::from(format!("x-access-token:{}", token.expose_secret()));
    SecretString::from(format!("Basic {}", BASE64_STANDARD.encode(pair.expose_secret())))
}
