//! Addresses of our pages. A rollout's page carries a key that only our notes contain: who can read the
//! note can open the page, and nobody else. It opens nothing itself.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::ids::RolloutId;

/// Makes and checks page addresses.
#[derive(Clone)]
pub struct Pages {
    base: String,
    key: Vec<u8>,
}

impl Pages {
    /// `base` is the server's public URL, `key` a secret of the installation.
    pub fn new(base: &str, key: &[u8]) -> Self {
        Self { base: base.trim_end_matches('/').to_owned(), key: key.to_vec() }
    }

    /// The server's public address, without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The address of a rollout's page.
    pub fn rollout(&self, id: &RolloutId) -> String {
        format!("{}/r/{id}?k={}", self.base, self.key_of(id))
    }

    /// The 32 digits that open a rollout's page.
    pub fn key_of(&self, id: &RolloutId) -> String {
        let mut digits = hex::encode(self.tag(id).finalize().into_bytes());
        digits.truncate(32);
        digits
    }

    /// Whether `key` opens the page, in constant time.
    pub fn opens(&self, id: &RolloutId, key: &str) -> bool {
        hex::decode(key).is_ok_and(|bytes| bytes.len() == 16 && self.tag(id).verify_truncated_left(&bytes).is_ok())
    }

    fn tag(&self, id: &RolloutId) -> Hmac<Sha256> {
        let mut tag = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        tag.update(b"page\0");
        tag.update(id.as_str().as_bytes());
        tag
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("base", &self.base).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_opens_with_its_own_key_only() {
        let pages = Pages::new("http://host/", b"secret");
        let id = RolloutId::new("github-1-2-1");
        assert!(pages.rollout(&id).starts_with("http://host/r/github-1-2-1?k="));
        assert!(pages.opens(&id, &pages.key_of(&id)));
        assert!(!pages.opens(&RolloutId::new("github-1-2-2"), &pages.key_of(&id)));
        assert!(!pages.opens(&id, ""));
        assert!(!pages.opens(&id, "zz"));
    }
}
