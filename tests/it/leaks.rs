//! The leak corpus: each case puts a secret of its own somewhere into a root, the whole product runs over it, and then every
//! byte that left the server, the database, the logs and the server's folder is searched for it, base64 included.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use base64::Engine as _;

use crate::ctx::{Ctx, LIN, MIRA, Way};

mod applies;
mod around;
mod failures;
mod installation;
mod plans;
mod states;

/// A place for a secret. `@X@` in the texts is the secret's core: letters and digits that every encoding but base64 keeps.
pub struct Case {
    pub name: &'static str,
    /// The root's `main.tf` on the base, applied there; `None` when the root is new.
    pub before: Option<&'static str>,
    /// Its files in the pull, without the backend.
    pub files: &'static [(&'static str, &'static str)],
}

/// What happens to the pull after its plans.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Nothing,
    Apply,
}

pub fn core(name: &str) -> String {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("Zq7{plain}K4wX9")
}

fn filled(name: &str, text: &str) -> String {
    let backend = if text.contains("backend \"") {
        String::new()
    } else {
        format!("terraform {{\n  backend \"local\" {{ path = \"$S/{name}.tfstate\" }}\n}}\n")
    };
    format!("{backend}{}", text.replace("@X@", &core(name)))
}

fn files_of(case: &Case) -> Vec<(String, String)> {
    let text = |path: &str, text: &str| {
        if path == "main.tf" { filled(case.name, text) } else { text.replace("@X@", &core(case.name)) }
    };
    case.files.iter().map(|(path, of)| (format!("{}/{path}", case.name), text(path, of))).collect()
}

/// Runs the cases in one pull, and gives what leaked: `case: where`.
pub async fn run(cases: &[Case], environment: &[(&str, String)], then: Then) -> (Ctx, u64) {
    logs();
    let environment: BTreeMap<String, String> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let old: Vec<(String, String)> = cases
        .iter()
        .filter_map(|case| Some((format!("{}/main.tf", case.name), filled(case.name, case.before?))))
        .chain([("README.md".to_owned(), "# leaks\n".to_owned())])
        .collect();
    let borrowed: Vec<(&str, &str)> = old.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let ctx = Ctx::in_environment(&borrowed, Way::App, environment).await;
    ctx.sandbox.record();
    let applied: Vec<&str> = cases.iter().filter(|case| case.before.is_some()).map(|case| case.name).collect();
    ctx.applied_before(&applied).await;
    let new: Vec<(String, String)> = cases.iter().flat_map(files_of).collect();
    let changes: Vec<(&str, Option<&str>)> =
        new.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let pull = ctx.open("leaks", &changes);
    ctx.settle().await;
    if then == Then::Apply {
        ctx.comment(pull, LIN, "approve").await;
        ctx.comment(pull, MIRA, "apply").await;
    }
    (ctx, pull)
}

/// Everything that could carry a secret out, by the name of the place.
pub async fn surfaces(ctx: &Ctx) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    let heard = ctx.sandbox.heard();
    found.extend(heard.iter().map(|text| (format!("request {}", first_line(text)), text.clone().into_bytes())));
    for pull in 1..10 {
        let Some(note) = ctx.note(pull) else { continue };
        for link in links(&note) {
            let page = get(&link).await;
            for log in page.split('"').filter(|part| part.starts_with("/r/") && part.contains("/log/")) {
                let log = format!("{}{}", ctx.url(), log.replace("&amp;", "&"));
                found.push((format!("log {log}"), get(&log).await.into_bytes()));
            }
            found.push((format!("page {link}"), page.into_bytes()));
            let report = link.replacen("?k=", "/report.json?k=", 1);
            found.push((format!("report {report}"), get(&report).await.into_bytes()));
        }
    }
    folder(&ctx.data_dir(), &mut found);
    found.push(("the server's own log".to_owned(), logs().lock().unwrap().clone()));
    found
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn links(note: &str) -> Vec<String> {
    let mut links: Vec<String> = note
        .match_indices("http://")
        .map(|(at, _)| note[at..].split(|c: char| c.is_whitespace() || ")>\"<".contains(c)).next().unwrap_or_default())
        .filter(|link| link.contains("/r/") && link.contains("k="))
        .map(|link| link.split('#').next().unwrap_or(link).to_owned())
        .collect();
    links.sort();
    links.dedup();
    links
}

async fn get(url: &str) -> String {
    reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await.unwrap().text().await.unwrap()
}

/// All files of a folder; git's objects hold the repository itself, which is no secret of ours to keep.
fn folder(dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "objects") {
                folder(&path, found);
            }
        } else if let Ok(bytes) = std::fs::read(&path) {
            found.push((format!("file {}", path.display()), bytes));
        }
    }
}

/// The places that show a text, in clear or in base64.
pub fn places(surfaces: &[(String, Vec<u8>)], secret: &str) -> Vec<String> {
    let forms = forms(secret);
    let search = aho_corasick::AhoCorasick::new(&forms).unwrap();
    let shows = |bytes: &[u8]| search.is_match(bytes);
    surfaces.iter().filter(|(_, bytes)| shows(bytes)).map(|(place, bytes)| quote(place, bytes, &forms)).collect()
}

fn quote(place: &str, bytes: &[u8], forms: &[String]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let at = forms.iter().find_map(|form| text.find(form.as_str())).unwrap_or_default();
    let around: String = text.chars().skip(text[..at].chars().count().saturating_sub(120)).take(240).collect();
    format!("{place}: …{around}…")
}

fn forms(secret: &str) -> Vec<String> {
    let engine = base64::engine::general_purpose::STANDARD;
    let piece = |offset: usize| {
        let mut padded = vec![0; offset];
        padded.extend_from_slice(secret.as_bytes());
        let length = padded.len();
        let encoded = engine.encode(padded);
        encoded[(offset * 8).div_ceil(6)..length * 8 / 6].to_owned()
    };
    [secret.to_owned(), piece(0), piece(1), piece(2), hex::encode(secret), hex::encode_upper(secret)].into()
}

/// Fails with every leak of every case.
pub async fn no_leak(ctx: &Ctx, cases: &[Case]) {
    let surfaces = surfaces(ctx).await;
    for kind in ["log ", "page ", "report ", "file ", "request "] {
        assert!(surfaces.iter().any(|(place, _)| place.starts_with(kind)), "no {kind}was found");
    }
    let mut leaks = Vec::new();
    // One pass over each place for all cases; only what leaks is looked at again.
    let all: Vec<String> = cases.iter().flat_map(|case| forms(&core(case.name))).collect();
    let search = aho_corasick::AhoCorasick::new(&all).unwrap();
    let suspect: Vec<(String, Vec<u8>)> =
        surfaces.into_iter().filter(|(_, bytes)| search.is_match(bytes.as_slice())).collect();
    for case in cases {
        for place in places(&suspect, &core(case.name)) {
            leaks.push(format!("{}: {place}", case.name));
        }
    }
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n\n"));
}

/// All that this process logs, from the first call on.
pub fn logs() -> Arc<Mutex<Vec<u8>>> {
    static LOGS: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    let made = LOGS.get_or_init(|| {
        let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
        let into = Arc::clone(&kept);
        let lines = tracing_subscriber::fmt()
            .with_env_filter("info,tidegate=trace,octocrab=debug,reqwest=debug")
            .with_ansi(false)
            .with_writer(move || Into(Arc::clone(&into)));
        lines.try_init().expect("nobody else logs");
        kept
    });
    Arc::clone(made)
}

struct Into(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Into {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
