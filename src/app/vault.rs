//! Encryption at rest: saved plans, their JSON and kept states are sealed with a key that is never in the database, bound
//! to the job, root and commit they belong to. Tokens of jobs are derived here too, so that none is stored.

use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::domain::ids::JobId;
use crate::domain::job::JobSpec;

/// Marks the key and form of a sealed text, for a later change of either.
const FORM: u8 = 1;
const NONCE: usize = 24;

/// The installation's key, and what is made from it.
pub struct Vault {
    cipher: XChaCha20Poly1305,
    key: [u8; 32],
}

/// A sealed text that cannot be opened: another key, another job, or changed bytes.
#[derive(Debug, thiserror::Error)]
#[error("what was kept for this job cannot be opened: it was changed, or sealed with another key")]
pub struct NotOurs;

impl Vault {
    /// A vault with this key.
    pub fn new(key: [u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&derive(&key, b"seal").into()), key }
    }

    /// Seals bytes that belong to a job.
    pub fn seal(&self, spec: &JobSpec, kind: &str, bytes: &[u8]) -> Vec<u8> {
        let nonce = XNonce::generate();
        let payload = Payload { msg: bytes, aad: &bound_to(spec, kind) };
        let sealed = self.cipher.encrypt(&nonce, payload).expect("sealing fails only for texts of 256 GiB");
        let mut out = vec![FORM];
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        out
    }

    /// Opens what was sealed for this very job.
    pub fn open(&self, spec: &JobSpec, kind: &str, sealed: &[u8]) -> Result<Vec<u8>, NotOurs> {
        let (form, rest) = sealed.split_first().ok_or(NotOurs)?;
        if *form != FORM || rest.len() < NONCE {
            return Err(NotOurs);
        }
        let (nonce, text) = rest.split_at(NONCE);
        let nonce = XNonce::try_from(nonce).map_err(|_| NotOurs)?;
        self.cipher.decrypt(&nonce, Payload { msg: text, aad: &bound_to(spec, kind) }).map_err(|_| NotOurs)
    }

    /// The token that opens one job.
    pub fn job_token(&self, job: &JobId) -> String {
        hex::encode(self.tag(job).finalize().into_bytes())
    }

    /// Whether this is the job's token, in constant time.
    pub fn opens_job(&self, job: &JobId, token: &str) -> bool {
        hex::decode(token).is_ok_and(|bytes| self.tag(job).verify_slice(&bytes).is_ok())
    }

    /// The key of plan digests.
    pub fn digest_key(&self) -> [u8; 32] {
        derive(&self.key, b"digest")
    }

    /// The key of page addresses.
    pub fn page_key(&self) -> [u8; 32] {
        derive(&self.key, b"page")
    }

    fn tag(&self, job: &JobId) -> Hmac<Sha256> {
        let mut tag = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&derive(&self.key, b"job"))
            .expect("HMAC takes a key of any length");
        tag.update(job.as_str().as_bytes());
        tag
    }
}

fn derive(key: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    let mut tag = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    tag.update(purpose);
    tag.finalize().into_bytes().into()
}

/// Job, root and commit, with their lengths so that no two bindings read the same.
fn bound_to(spec: &JobSpec, kind: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for part in [kind, spec.id.as_str(), &spec.root.to_string(), spec.head.as_str(), spec.tree.as_str()] {
        out.extend_from_slice(&(part.len() as u64).to_be_bytes());
        out.extend_from_slice(part.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{RootKey, Sha};
    use crate::domain::job::{Phase, StateLock, VERSION};

    fn spec(root: &str) -> JobSpec {
        JobSpec {
            version: VERSION,
            id: "j1".into(),
            phase: Phase::Plan,
            root: RootKey::new(root),
            head: Sha::new("h"),
            tree: Sha::new("t"),
            tool: None,
            tool_version: None,
            asked_by: crate::domain::tool::AskedBy::default(),
            var_files: vec![],
            backend_config: vec![],
            args: vec![],
            plan_of: None,
            source: String::new(),
            state_lock: StateLock::Off,
            linked: vec![],
            sources: vec![],
        }
    }

    #[test]
    fn a_sealed_plan_opens_for_its_own_job_only() {
        let vault = Vault::new([7; 32]);
        let sealed = vault.seal(&spec("a"), "plan", b"secret");
        assert_eq!(vault.open(&spec("a"), "plan", &sealed).expect("opens"), b"secret");
        assert!(vault.open(&spec("b"), "plan", &sealed).is_err());
        assert!(vault.open(&spec("a"), "plan-json", &sealed).is_err());
        assert!(Vault::new([8; 32]).open(&spec("a"), "plan", &sealed).is_err());
        let mut changed = sealed.clone();
        *changed.last_mut().expect("bytes") ^= 1;
        assert!(vault.open(&spec("a"), "plan", &changed).is_err());
        assert!(vault.open(&spec("a"), "plan", &[]).is_err());
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
    }

    #[test]
    fn a_job_token_opens_one_job() {
        let vault = Vault::new([7; 32]);
        let token = vault.job_token(&"a".into());
        assert!(vault.opens_job(&"a".into(), &token));
        assert!(!vault.opens_job(&"b".into(), &token));
        assert!(!vault.opens_job(&"a".into(), ""));
    }
}
