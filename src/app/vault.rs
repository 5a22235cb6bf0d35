//! Encryption at rest: saved plans, their JSON and kept states are sealed with a key that is never in the database, bound
//! to the job, root and commit they belong to. Tokens of jobs are derived here too, so that none is stored.

use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::domain::ids::{JobId, Timestamp};
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
#[error("what was kept cannot be opened: it was changed, or sealed with another key")]
pub struct NotOurs;

impl Vault {
    /// A vault with this key.
    pub fn new(key: [u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&derive(&key, b"seal").into()), key }
    }

    /// Seals bytes that belong to a job.
    pub fn seal(&self, spec: &JobSpec, kind: &str, bytes: &[u8]) -> Vec<u8> {
        self.seal_bound(&bound_to(spec, kind), bytes)
    }

    /// Opens what was sealed for this very job.
    pub fn open(&self, spec: &JobSpec, kind: &str, sealed: &[u8]) -> Result<Vec<u8>, NotOurs> {
        self.open_bound(&bound_to(spec, kind), sealed)
    }

    /// Seals bytes of the installation itself, under a name.
    pub fn seal_kept(&self, name: &str, bytes: &[u8]) -> Vec<u8> {
        self.seal_bound(&bound(&["installation", name]), bytes)
    }

    /// Opens what was sealed under this very name.
    pub fn open_kept(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, NotOurs> {
        self.open_bound(&bound(&["installation", name]), sealed)
    }

    /// What a forge carries through a set-up that this session began then; nobody else can make it.
    pub fn setup_state(&self, session: &str, begun: Timestamp) -> String {
        format!("{}.{}", begun.0, hex::encode(self.setup_tag(session, begun).finalize().into_bytes()))
    }

    /// When the set-up of this session began, if the state is of it. In constant time.
    pub fn setup_begun(&self, session: &str, state: &str) -> Option<Timestamp> {
        let (begun, tag) = state.split_once('.')?;
        let begun = Timestamp(begun.parse().ok()?);
        self.setup_tag(session, begun).verify_slice(&hex::decode(tag).ok()?).ok().map(|()| begun)
    }

    fn setup_tag(&self, session: &str, begun: Timestamp) -> Hmac<Sha256> {
        let mut tag = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&derive(&self.key, b"setup"))
            .expect("HMAC takes a key of any length");
        tag.update(&bound(&[session, &begun.0.to_string()]));
        tag
    }

    fn seal_bound(&self, aad: &[u8], bytes: &[u8]) -> Vec<u8> {
        let nonce = XNonce::generate();
        let payload = Payload { msg: bytes, aad };
        let sealed = self.cipher.encrypt(&nonce, payload).expect("sealing fails only for texts of 256 GiB");
        let mut out = vec![FORM];
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        out
    }

    fn open_bound(&self, aad: &[u8], sealed: &[u8]) -> Result<Vec<u8>, NotOurs> {
        let (form, rest) = sealed.split_first().ok_or(NotOurs)?;
        if *form != FORM || rest.len() < NONCE {
            return Err(NotOurs);
        }
        let (nonce, text) = rest.split_at(NONCE);
        let nonce = XNonce::try_from(nonce).map_err(|_| NotOurs)?;
        self.cipher.decrypt(&nonce, Payload { msg: text, aad }).map_err(|_| NotOurs)
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

/// Job, root and commit.
fn bound_to(spec: &JobSpec, kind: &str) -> Vec<u8> {
    bound(&[kind, spec.id.as_str(), &spec.root.to_string(), spec.head.as_str(), spec.tree.as_str()])
}

/// Parts with their lengths, so that no two bindings read the same.
fn bound(parts: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
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
    fn what_the_installation_keeps_opens_under_its_own_name_only() {
        let vault = Vault::new([7; 32]);
        let sealed = vault.seal_kept("app:github", b"secret");
        assert_eq!(vault.open_kept("app:github", &sealed).expect("opens"), b"secret");
        assert!(vault.open_kept("app:gitlab", &sealed).is_err());
        assert!(vault.open(&spec("app:github"), "installation", &sealed).is_err());
        assert!(Vault::new([8; 32]).open_kept("app:github", &sealed).is_err());
    }

    #[test]
    fn a_state_is_of_one_session_one_time_and_one_installation() {
        let vault = Vault::new([7; 32]);
        let state = vault.setup_state("session", Timestamp(5));
        assert_eq!(vault.setup_begun("session", &state), Some(Timestamp(5)));
        assert_eq!(vault.setup_begun("other", &state), None);
        assert_eq!(vault.setup_begun("session", &state.replacen('5', "6", 1)), None);
        assert_eq!(Vault::new([8; 32]).setup_begun("session", &state), None);
        for nonsense in ["", ".", "5", "5.", "5.zz", "x.00"] {
            assert_eq!(vault.setup_begun("session", nonsense), None, "{nonsense}");
        }
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
