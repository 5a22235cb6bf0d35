//! What the installation keeps for itself. It never opens what it keeps.

use async_trait::async_trait;

use super::{SqlStore, rows, sql};
use crate::domain::ids::Timestamp;
use crate::ports::kept::Kept;
use crate::ports::store::StoreError;

impl SqlStore {
    async fn put_kept(&self, text: &'static str, name: &str, sealed: &[u8], at: Timestamp) -> Result<u64, StoreError> {
        let mut write = self.write().await?;
        let done = sqlx::query(text).bind(name).bind(sealed).bind(at.0).execute(&mut *write.transaction).await;
        let done = done.map_err(rows::failed)?;
        write.commit().await?;
        Ok(done.rows_affected())
    }
}

#[async_trait]
impl Kept for SqlStore {
    async fn kept(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let row = sqlx::query(sql::KEPT).bind(name).fetch_optional(&self.pool).await.map_err(rows::failed)?;
        row.map(|row| rows::get::<Vec<u8>>(&row, "sealed")).transpose()
    }

    async fn keep(&self, name: &str, sealed: &[u8], at: Timestamp) -> Result<(), StoreError> {
        self.put_kept(sql::KEEP, name, sealed, at).await.map(drop)
    }

    async fn keep_first(&self, name: &str, sealed: &[u8], at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.put_kept(sql::KEEP_FIRST, name, sealed, at).await? == 1)
    }

    async fn forget(&self, name: &str) -> Result<bool, StoreError> {
        let mut write = self.write().await?;
        let done = sqlx::query(sql::FORGET).bind(name).execute(&mut *write.transaction).await.map_err(rows::failed)?;
        write.commit().await?;
        Ok(done.rows_affected() == 1)
    }

    async fn last_delivery(&self, forge: &str) -> Result<Option<(String, Timestamp)>, StoreError> {
        let row = sqlx::query(sql::LAST_DELIVERY).bind(forge).fetch_optional(&self.pool).await.map_err(rows::failed)?;
        row.map(|row| Ok((rows::get(&row, "name")?, Timestamp(rows::get(&row, "received")?)))).transpose()
    }
}
