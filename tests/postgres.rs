//! The contract of the store on PostgreSQL. Not part of a plain `cargo test`: `scripts/postgres`
//! starts a server and names it in `TIDEGATE_TEST_POSTGRES`; without that every test here fails.

#[path = "contract/store.rs"]
mod contract;

use std::sync::atomic::{AtomicU32, Ordering};

use contract::Opened;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};

static NEXT: AtomicU32 = AtomicU32::new(0);

async fn open() -> Opened<()> {
    let server = std::env::var("TIDEGATE_TEST_POSTGRES").expect("run by scripts/postgres, which starts a server");
    sqlx::any::install_default_drivers();
    let name = format!("contract_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut admin = AnyConnection::connect(&server).await.expect("the server answers");
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await.expect("a database");
    let mut url = url::Url::parse(&server).expect("a URL");
    url.set_path(&name);
    Opened::at(url.as_str(), ()).await
}

store_contract!(open);
