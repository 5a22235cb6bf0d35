//! How values stand in rows: documents as JSON with the version of their format, text without the
//! one character that PostgreSQL refuses, errors by what the caller can do. It holds no SQL.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::domain::ids::{PullKey, RepoKey};
use crate::ports::store::StoreError;

/// The version of every document that this program writes. A row with a higher one was written by a newer program.
pub(super) const FORMAT: i64 = 1;

/// What the queue is called by its column `state`.
pub(super) const DONE: &str = "done";
/// Kept with a reason, never tried again by itself.
pub(super) const GAVE_UP: &str = "gave_up";

/// A document as text.
pub(super) fn write<T: Serialize>(document: &T) -> Result<String, StoreError> {
    serde_json::to_string(document).map_err(|error| StoreError::Broken(error.to_string()))
}

/// A document of a row with the columns `format` and `column`.
pub(super) fn read<T: DeserializeOwned>(row: &AnyRow, column: &str) -> Result<T, StoreError> {
    let format: i64 = get(row, "format")?;
    if format > FORMAT {
        return Err(StoreError::Broken(format!(
            "`{column}` has format {format}, this program reads up to {FORMAT}: run the newer version"
        )));
    }
    let text: String = get(row, column)?;
    serde_json::from_str(&text).map_err(|error| StoreError::Broken(format!("`{column}`: {error}")))
}

/// A plain column.
pub(super) fn get<'r, T>(row: &'r AnyRow, column: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Any> + sqlx::Type<sqlx::Any>,
{
    row.try_get(column).map_err(failed)
}

/// The column `pull`.
pub(super) fn pull(row: &AnyRow) -> Result<PullKey, StoreError> {
    get::<String>(row, "pull")?.parse().map_err(StoreError::Broken)
}

/// The column `repo`, `forge:id`.
pub(super) fn repo(row: &AnyRow) -> Result<RepoKey, StoreError> {
    let text: String = get(row, "repo")?;
    let broken = || StoreError::Broken(format!("`{text}` is no repository's key (forge:id)"));
    let (forge, id) = text.rsplit_once(':').ok_or_else(broken)?;
    Ok(RepoKey { forge: forge.to_owned(), id: id.parse().map_err(|_| broken())? })
}

/// Text that both engines take: PostgreSQL has no NUL in text.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A row that does not decode is broken; everything else may work later.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. } => StoreError::Broken(error.to_string()),
        other => StoreError::Unavailable(Box::new(other)),
    }
}
