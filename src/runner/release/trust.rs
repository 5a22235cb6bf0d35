//! Whose signatures count: OpenPGP keys that the settings name, or that came with this program. A key is trusted because it was named;
//! the date of its end is not looked at, because vendors move it and the file of a key may be older than that. One that was revoked is
//! refused.

use pgp::composed::{Deserializable, DetachedSignature, SignedPublicKey, SignedPublicSubKey};
use pgp::packet::SignatureType;
use pgp::types::KeyDetails;

use crate::domain::config::ToolKind;

/// The key that signs releases of Terraform: `C874 011F 0AB4 0511 0D02 1055 3436 5D94 72D7 468F`.
const HASHICORP: &str = include_str!("hashicorp.asc");

/// A key that is trusted.
pub(super) struct Key(SignedPublicKey);

impl Key {
    /// The vendor's key, where this program has it.
    pub(super) fn known(kind: ToolKind) -> Option<Self> {
        match kind {
            ToolKind::Terraform => Self::read(HASHICORP.as_bytes()).ok(),
            ToolKind::Tofu => None,
        }
    }

    /// Reads a key, armored or not.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let armored = text.trim_ascii_start().starts_with(b"-----BEGIN");
        let key = if armored {
            SignedPublicKey::from_armor_single(text).map(|(key, _)| key)
        } else {
            SignedPublicKey::from_bytes(text)
        };
        let key = key.map_err(|error| error.to_string())?;
        key.verify_bindings().map_err(|error| error.to_string())?;
        if !key.details.revocation_signatures.is_empty() {
            return Err("it was revoked".to_owned());
        }
        Ok(Self(key))
    }

    /// The key's name for people.
    pub(super) fn id(&self) -> String {
        self.0.fingerprint().to_string()
    }

    /// Whether the key, or one of its subkeys, made this signature of the text.
    pub(super) fn check(&self, text: &[u8], signature: &[u8]) -> Result<(), String> {
        let armored = signature.trim_ascii_start().starts_with(b"-----BEGIN");
        let signature = if armored {
            DetachedSignature::from_armor_single(signature).map(|(signature, _)| signature)
        } else {
            DetachedSignature::from_bytes(signature)
        };
        let signature = signature.map_err(|error| format!("it is no signature ({error})"))?;
        let primary = signature.verify(&self.0.primary_key, text).is_ok();
        let revoked = |subkey: &SignedPublicSubKey| {
            subkey.signatures.iter().any(|one| one.typ() == Some(SignatureType::SubkeyRevocation))
        };
        let mut subkeys = self.0.public_subkeys.iter().filter(|subkey| !revoked(subkey));
        let mut by_subkey = || subkeys.any(|subkey| signature.verify(subkey, text).is_ok());
        if primary || by_subkey() { Ok(()) } else { Err(format!("it was not made by the key {}", self.id())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_comes_along_is_the_vendors() {
        let key = Key::known(ToolKind::Terraform).expect("a key");
        assert_eq!(key.id(), "c874011f0ab405110d02105534365d9472d7468f");
        assert!(Key::known(ToolKind::Tofu).is_none());
        assert!(key.check(b"text", b"no signature").is_err());
        assert!(Key::read(b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nnonsense").is_err());
    }
}
