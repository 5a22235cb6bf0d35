//! Where releases lie and what their files are called. It trusts nothing that it reads there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Client, Response, StatusCode};
use url::Url;

use super::trust::Key;
use crate::domain::config::ToolKind;
use crate::domain::tool::Version;

/// More than a list of checksums or a signature has.
const LARGEST_TEXT: usize = 1 << 20;

/// The release site of one tool.
#[derive(Clone, Debug)]
pub(super) struct Site {
    kind: ToolKind,
    base: Url,
    key_file: Option<PathBuf>,
}

/// The files of one version.
pub(super) struct Names {
    /// The list of checksums.
    pub(super) sums: String,
    /// Its signature.
    pub(super) signature: String,
    /// The archive for this system.
    pub(super) archive: String,
}

impl Site {
    /// The site that the job's environment names; `None`: nothing is downloaded.
    pub(super) fn of(kind: ToolKind, environment: &BTreeMap<String, String>) -> Option<Self> {
        let tool = match kind {
            ToolKind::Terraform => "TERRAFORM",
            ToolKind::Tofu => "TOFU",
        };
        let given = |what: &str| environment.get(&format!("TIDEGATE_JOB_RELEASES_{tool}{what}"));
        let base = Url::parse(given("")?).ok()?;
        Some(Self { kind, base, key_file: given("_KEY").map(PathBuf::from) })
    }

    /// Whom to trust: the key that the settings name, else the one that we know.
    pub(super) fn key(&self) -> Result<Key, String> {
        let Some(file) = &self.key_file else {
            return Key::known(self.kind).ok_or_else(|| {
                format!(
                    "No key is set to check a download with: `{}` names the file of the vendor's",
                    self.key_setting()
                )
            });
        };
        let text =
            std::fs::read(file).map_err(|error| format!("The key `{}` cannot be read: {error}", file.display()))?;
        Key::read(&text).map_err(|why| format!("`{}` is no public key: {why}", file.display()))
    }

    /// The setting that names the key's file.
    pub(super) fn key_setting(&self) -> &'static str {
        match self.kind {
            ToolKind::Terraform => "tools.terraform_key",
            ToolKind::Tofu => "tools.tofu_key",
        }
    }

    /// Its address without what may be secret in it.
    pub(super) fn shown(&self) -> String {
        shown(&self.base)
    }

    /// What the files of this version are called, by either vendor's habits.
    pub(super) fn names(&self, version: &Version) -> Names {
        let (tool, signature) = match self.kind {
            ToolKind::Terraform => ("terraform", "sig"),
            ToolKind::Tofu => ("tofu", "gpgsig"),
        };
        let sums = format!("{tool}_{version}_SHA256SUMS");
        let signature = format!("{sums}.{signature}");
        Names { sums, signature, archive: format!("{tool}_{version}_{}_{}.zip", system(), machine()) }
    }

    fn address(&self, version: &Version, file: &str) -> Url {
        let folder = match self.kind {
            ToolKind::Terraform => version.to_string(),
            ToolKind::Tofu => format!("v{version}"),
        };
        let mut address = self.base.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().extend([folder.as_str(), file]);
        }
        address
    }
}

fn shown(address: &Url) -> String {
    let mut shown = address.clone();
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.to_string()
}

fn system() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

fn machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

/// The checksum of a file in a list `<hex>  <name>`.
pub(super) fn sum_of(sums: &[u8], file: &str) -> Option<String> {
    let text = std::str::from_utf8(sums).ok()?;
    text.lines().find_map(|line| {
        let (sum, name) = line.split_once(char::is_whitespace)?;
        (name.trim().trim_start_matches('*') == file && sum.len() == 64).then(|| sum.to_ascii_lowercase())
    })
}

/// Why a file cannot be had; each with its address.
pub(super) enum Refused {
    Missing(String),
    Failed(String, String),
}

/// Requests to one site.
pub(super) struct Ask<'a> {
    site: &'a Site,
    client: Client,
}

/// A large file on its way.
pub(super) struct Parts {
    response: Response,
    address: String,
}

impl<'a> Ask<'a> {
    pub(super) fn new(site: &'a Site) -> Result<Self, Refused> {
        let mut client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(Duration::from_secs(60))
            .redirect(reqwest::redirect::Policy::limited(5));
        if site.base.scheme() == "https" {
            // What begins in private does not go on in the open.
            client = client.https_only(true);
        }
        let client = client.build().map_err(|error| Refused::Failed(site.shown(), error.to_string()))?;
        Ok(Self { site, client })
    }

    /// A small file, whole.
    pub(super) async fn small(&self, version: &Version, file: &str) -> Result<Vec<u8>, Refused> {
        let mut parts = self.large(version, file).await?;
        let mut whole = Vec::new();
        while let Some(part) = parts.next().await? {
            whole.extend_from_slice(&part);
            if whole.len() > LARGEST_TEXT {
                return Err(Refused::Failed(parts.address, "it is larger than any list of checksums".to_owned()));
            }
        }
        Ok(whole)
    }

    /// A large file, in parts.
    pub(super) async fn large(&self, version: &Version, file: &str) -> Result<Parts, Refused> {
        let url = self.site.address(version, file);
        let address = shown(&url);
        let response = self.client.get(url).send().await.map_err(|error| failed(&address, error))?;
        match response.status() {
            status if status.is_success() => Ok(Parts { response, address }),
            StatusCode::NOT_FOUND => Err(Refused::Missing(address)),
            status => Err(Refused::Failed(address, format!("the site answers {status}"))),
        }
    }
}

impl Parts {
    pub(super) async fn next(&mut self) -> Result<Option<bytes::Bytes>, Refused> {
        self.response.chunk().await.map_err(|error| failed(&self.address, error))
    }
}

/// Without the address that the library puts into it, which may hold a password.
fn failed(address: &str, error: reqwest::Error) -> Refused {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    Refused::Failed(address.to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(kind: ToolKind, base: &str) -> Site {
        Site { kind, base: Url::parse(base).unwrap(), key_file: None }
    }

    #[test]
    fn both_vendors_have_their_habits() {
        let version = Version::parse("1.5.7").unwrap();
        let terraform = site(ToolKind::Terraform, "https://u:p@mirror.example/terraform/?token=t");
        assert_eq!(terraform.shown(), "https://mirror.example/terraform/");
        let names = terraform.names(&version);
        let address = shown(&terraform.address(&version, &names.signature));
        assert_eq!(address, "https://mirror.example/terraform/1.5.7/terraform_1.5.7_SHA256SUMS.sig");
        let tofu = site(ToolKind::Tofu, "https://forge.example/tofu/releases/download");
        let address = shown(&tofu.address(&version, &tofu.names(&version).signature));
        assert_eq!(address, "https://forge.example/tofu/releases/download/v1.5.7/tofu_1.5.7_SHA256SUMS.gpgsig");
        assert!(names.archive.starts_with("terraform_1.5.7_") && names.archive.ends_with(".zip"), "{}", names.archive);
    }

    #[test]
    fn a_checksum_is_found_by_the_whole_name() {
        let sum = "a".repeat(64);
        let list = format!("{}  x_linux_amd64.zip.sig\n{sum} *x_linux_amd64.zip\nshort  y.zip\n", "b".repeat(64));
        assert_eq!(sum_of(list.as_bytes(), "x_linux_amd64.zip"), Some(sum));
        assert_eq!(sum_of(list.as_bytes(), "y.zip"), None);
        assert_eq!(sum_of(&[0xff], "y.zip"), None);
    }
}
