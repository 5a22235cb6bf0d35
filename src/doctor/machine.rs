//! What lies on this machine: the data folder and its room, the tools, and whether a server listens. It starts nothing but
//! `git version`, `terraform version` and `tofu version`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use super::Line;
use crate::config::Settings;
use crate::runner::find_program;

/// Below this a plan's files or a mirror may find no room.
const LITTLE_ROOM: u64 = 5 << 30;
/// Below this nothing may.
const NO_ROOM: u64 = 1 << 30;
/// A program says its version within this.
const PATIENCE: Duration = Duration::from_secs(20);

/// The data folder: there, ours, with room, and its key for nobody else.
pub(super) fn folder(settings: &Settings) -> Vec<Line> {
    const WHAT: &str = "data folder";
    let path = &settings.data_dir;
    let shown = path.display();
    let later = "The first start of the server makes it.";
    if !path.exists() {
        return vec![Line::look(WHAT, format!("{shown} is not there yet"), later)];
    }
    let mut lines = Vec::new();
    match tempfile::tempfile_in(path) {
        Err(error) => {
            lines.push(Line::bad(
                WHAT,
                format!("{shown} cannot be written: {error}"),
                "Run the server as the folder's owner, or set `data_dir`.",
            ));
        }
        Ok(_) => lines.push(room(path)),
    }
    if settings.encryption_key.is_some() {
        lines.push(Line::good("key", "set by `keys.encryption`"));
        return lines;
    }
    let file = path.join("keys/encryption");
    match file.metadata() {
        Err(_) => lines.push(Line::look("key", format!("{} is not there yet", file.display()), later)),
        Ok(found) if found.permissions().mode() & 0o077 != 0 => lines.push(Line::look(
            "key",
            format!("{} can be read by others", file.display()),
            format!("Whoever has it and the database can open every saved plan: chmod 600 {}", file.display()),
        )),
        Ok(_) => lines.push(Line::good("key", format!("{}; keep a copy apart from the database", file.display()))),
    }
    lines
}

fn room(path: &Path) -> Line {
    const WHAT: &str = "data folder";
    let shown = path.display();
    let Ok(found) = statvfs(path) else { return Line::good(WHAT, shown.to_string()) };
    let free = found.blocks_available().saturating_mul(found.fragment_size());
    let value = format!("{shown}, {}.{} GiB free", free >> 30, (free >> 20) % 1024 * 10 / 1024);
    let way_out = "Mirrors, checkouts and plans need room: make some, or move `data_dir`.";
    match free {
        ..NO_ROOM => Line::bad(WHAT, value, way_out),
        NO_ROOM..LITTLE_ROOM => Line::look(WHAT, value, way_out),
        _ => Line::good(WHAT, value),
    }
}

/// git, and at least one of the two tools.
pub(super) async fn tools(settings: &Settings, environment: &BTreeMap<String, String>) -> Vec<Line> {
    let path = environment.get("PATH").cloned().unwrap_or_default();
    let mut lines = Vec::new();
    match find_program(&path, "git") {
        None => lines.push(Line::bad("git", "there is none on PATH", "Install git: sources are fetched with it.")),
        Some(program) => match version(&program, &["version"]).await {
            Ok(said) => lines.push(Line::good("git", said.trim().trim_start_matches("git version ").to_owned())),
            Err(why) => {
                lines.push(Line::bad("git", format!("{} does not run: {why}", program.display()), "Install it anew."));
            }
        },
    }
    let mut found = 0;
    for (name, named) in [("terraform", &settings.executor.terraform), ("tofu", &settings.executor.tofu)] {
        let Some(program) = named.clone().or_else(|| find_program(&path, name)) else { continue };
        match version(&program, &["version", "-json"]).await {
            Ok(said) => {
                found += 1;
                lines.push(Line::good(name, format!("{} at {}", number(&said), program.display())));
            }
            Err(why) => lines.push(Line::bad(
                name,
                format!("{} does not run: {why}", program.display()),
                format!("Install it, or correct `executor.{name}`."),
            )),
        }
    }
    let more = versions(&settings.data_dir.join("tools"));
    if !more.is_empty() {
        lines.push(Line::good("versions", more.join(", ")));
    }
    if found == 0 && more.is_empty() {
        let way_out = "Install one on the server's PATH, name it by `executor.terraform` or `executor.tofu`, or put versions into `<data_dir>/tools`.";
        lines.push(Line::bad("tools", "neither terraform nor tofu is found", way_out));
    }
    lines
}

async fn version(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).env("CHECKPOINT_DISABLE", "1").stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.map_err(|_| "no answer within 20 seconds".to_owned())?.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("it ended badly").to_owned())
}

/// Both tools name their version so.
fn number(said: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(said).unwrap_or_default();
    json["terraform_version"].as_str().unwrap_or("an unknown version").to_owned()
}

/// What lies in `<tools>/<tool>/<version>`.
fn versions(tools: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["terraform", "tofu"] {
        for folder in std::fs::read_dir(tools.join(name)).into_iter().flatten().flatten() {
            if folder.path().join(name).is_file() {
                found.push(format!("{name} {}", folder.file_name().to_string_lossy()));
            }
        }
    }
    found.sort();
    found
}

/// Whether a server of ours answers here, and at its public address.
pub(super) async fn server(settings: &Settings) -> Vec<Line> {
    let port = settings.listen.port();
    let host = if settings.listen.ip().is_unspecified() {
        "127.0.0.1".to_owned()
    } else {
        format!("{}", settings.listen.ip())
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let here = format!("http://{host}:{port}");
    let mut lines = Vec::new();
    match healthy(&here).await {
        Ok(()) => lines.push(Line::good("server", format!("it answers at {here}"))),
        Err(why) => lines.push(Line::bad(
            "server",
            format!("{here}/healthz: {why}"),
            "Start it: tidegate serve. Its log says why it ends.",
        )),
    }
    let public = settings.url.as_str().trim_end_matches('/');
    if public != here {
        match healthy(public).await {
            Ok(()) => lines.push(Line::good("public", format!("it answers at {public}"))),
            Err(why) => lines.push(Line::look(
                "public",
                format!("{public}/healthz: {why}"),
                "The forge must reach this address; from inside it may be another way. Look at DNS, the certificate and the proxy.",
            )),
        }
    }
    lines
}

async fn healthy(base: &str) -> Result<(), String> {
    let client =
        reqwest::Client::builder().timeout(Duration::from_secs(5)).build().map_err(|error| error.to_string())?;
    let answer = client.get(format!("{base}/healthz")).send().await.map_err(|error| innermost(&error))?;
    if answer.status().is_success() { Ok(()) } else { Err(format!("it answers {}", answer.status())) }
}

/// The cause that says something.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
