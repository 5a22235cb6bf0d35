//! Who we are on GitHub, and so which comments are our own. It never says what a comment means.

use tokio::sync::OnceCell;

use super::GitHub;
use super::request::{Ask, Whose};
use super::wire::{App, User};
use crate::domain::event::AuthorKind;
use crate::ports::forge::ForgeError;

/// Who we are.
pub(super) struct Identity {
    app_id: Option<u64>,
    login: OnceCell<String>,
}

impl Identity {
    pub fn new(app_id: Option<u64>) -> Self {
        Self { app_id, login: OnceCell::new() }
    }

    /// Whether this App is us.
    pub fn is_our_app(&self, app: Option<&App>) -> bool {
        self.app_id.is_some() && app.and_then(|app| app.id) == self.app_id
    }

    /// Who wrote it. What our App wrote on a person's behalf is ours too.
    pub fn author(&self, user: Option<&User>, via: Option<&App>) -> AuthorKind {
        let login = user.and_then(|user| user.login.as_deref()).unwrap_or_default();
        let ours = self.login.get().is_some_and(|own| own.eq_ignore_ascii_case(login));
        if ours || self.is_our_app(via) {
            return AuthorKind::Ourselves;
        }
        let bot = user.and_then(|user| user.kind.as_deref()) == Some("Bot") || login.ends_with("[bot]");
        if bot { AuthorKind::Bot } else { AuthorKind::Person }
    }
}

impl GitHub {
    /// Our login, `slug[bot]` for an App; asked once.
    pub async fn login(&self) -> Result<String, ForgeError> {
        self.identity.login.get_or_try_init(|| self.ask_login()).await.cloned()
    }

    async fn ask_login(&self) -> Result<String, ForgeError> {
        let path = if self.access.is_app() { "/app" } else { "/user" };
        let answer = self.ask(Whose::App, &Ask::get(path)).await?;
        let login = if self.access.is_app() {
            answer.read::<App>()?.slug.map(|slug| format!("{slug}[bot]"))
        } else {
            answer.read::<User>()?.login
        };
        login.ok_or_else(|| ForgeError::Unreadable(format!("GET {path}: the answer does not say who we are")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_comments_are_known_by_app_or_by_login() {
        let user = |login: &str, kind: &str| User { login: Some(login.to_owned()), kind: Some(kind.to_owned()) };
        let app = |id| App { id: Some(id), slug: None };
        let identity = Identity::new(Some(7));
        identity.login.set("tidegate[bot]".to_owned()).unwrap();
        for (user, via, author) in [
            (user("tidegate[bot]", "Bot"), Some(app(7)), AuthorKind::Ourselves),
            (user("Tidegate[bot]", "Bot"), None, AuthorKind::Ourselves),
            (user("ann", "User"), Some(app(7)), AuthorKind::Ourselves),
            (user("ann", "User"), Some(app(8)), AuthorKind::Person),
            (user("ann", "User"), None, AuthorKind::Person),
            (user("tidegate", "User"), None, AuthorKind::Person),
            (user("renovate[bot]", "Bot"), Some(app(8)), AuthorKind::Bot),
        ] {
            assert_eq!(identity.author(Some(&user), via.as_ref()), author, "{user:?} {via:?}");
        }
        assert_eq!(Identity::new(None).author(None, Some(&App { id: None, slug: None })), AuthorKind::Person);
    }
}
