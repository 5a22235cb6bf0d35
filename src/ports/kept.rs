//! What an installation keeps for itself, beside pulls: sealed texts by name, and when a forge was last heard of. It
//! never sees a text in clear, and decides nothing.

use async_trait::async_trait;

use super::store::StoreError;
use crate::domain::ids::Timestamp;

/// The part of the database that belongs to the installation.
#[async_trait]
pub trait Kept: Send + Sync {
    /// The sealed text of that name.
    async fn kept(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// Keeps it, in place of what was there.
    async fn keep(&self, name: &str, sealed: &[u8], at: Timestamp) -> Result<(), StoreError>;
    /// Keeps it only when nothing of that name is there; says whether it did.
    async fn keep_first(&self, name: &str, sealed: &[u8], at: Timestamp) -> Result<bool, StoreError>;
    /// Deletes it; says whether it was there.
    async fn forget(&self, name: &str) -> Result<bool, StoreError>;
    /// The newest delivery of a forge that was taken: its event, and when.
    async fn last_delivery(&self, forge: &str) -> Result<Option<(String, Timestamp)>, StoreError>;
}
