//! A `terraform` of ours before the real one: it stops before a command for as long as a test wants, or kills the job that started
//! it. What is ordered are files beside it, so nothing here waits for a clock.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::ctx::Ctx;

/// Orders: `hold-COMMAND` keeps a command from beginning while it is there, and `held-COMMAND` says that it waits;
/// `before-COMMAND` and `after-COMMAND` kill the job, once unless the file says `always`. `JOB` and `TOOL` lead their process groups.
const TEXT: &str = r#"#!/bin/sh
here=$(dirname "$0")
export JOB=$PPID
export TOOL=$$
strike() {
  [ -e "$here/$1" ] || return 1
  grep -q always "$here/$1" || rm "$here/$1"
  kill -s KILL -- -$JOB
}
while [ -e "$here/hold-$1" ]; do
  [ -e "$here/held-$1" ] || touch "$here/held-$1"
  sleep 0.02
done
strike "before-$1" && exit 1
TERRAFORM "$@"
code=$?
strike "after-$1"
exit $code
"#;

/// The folder of the program and its orders.
pub struct Shim(TempDir);

impl Shim {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let path = std::env::var_os("PATH").expect("a path");
        let real = std::env::split_paths(&path).map(|dir| dir.join("terraform")).find(|path| path.is_file());
        let program = dir.path().join("terraform");
        let text = TEXT.replace("TERRAFORM", &real.expect("terraform").display().to_string());
        std::fs::write(&program, text).expect("a program");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
        Self(dir)
    }

    /// What jobs get, so that they find it first.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let path = format!("{}:{}", self.0.path().display(), std::env::var("PATH").expect("a path"));
        BTreeMap::from([("PATH".to_owned(), path)])
    }
}

/// Where the orders of a world with a shim lie.
pub fn orders(ctx: &Ctx) -> PathBuf {
    let path = ctx.job_environment.get("PATH").expect("a world with a shim");
    PathBuf::from(path.split(':').next().expect("a folder"))
}

pub fn order(ctx: &Ctx, name: &str, text: &str) {
    std::fs::write(orders(ctx).join(name), text).expect("an order");
}

pub fn take_back(ctx: &Ctx, name: &str) {
    std::fs::remove_file(orders(ctx).join(name)).expect("the order");
}

/// Whether a command waits where it was told to.
pub fn is_held(ctx: &Ctx, command: &str) -> bool {
    orders(ctx).join(format!("held-{command}")).exists()
}
