//! What the user of this machine says of where providers come from. It only looks: as soon as anything but one settings file
//! decides that, the store stays out of it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The text of the user's settings of the tool's command line. `None` when more than that text decides where providers come from.
pub(super) fn own(environment: &BTreeMap<String, String>, root: &Path) -> Option<String> {
    let given = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = given("HOME").unwrap_or_else(|| PathBuf::from("/"));
    let data = given("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    let shared = given("XDG_DATA_DIRS").unwrap_or_else(|| PathBuf::from("/usr/local/share:/usr/share"));
    let mut folders = vec![root.join("terraform.d/plugins"), home.join(".terraform.d/plugins")];
    for share in std::env::split_paths(&shared).chain([data]) {
        folders.extend([share.join("terraform/plugins"), share.join("opentofu/plugins")]);
    }
    // The tools look there by themselves, until somebody says where to look.
    if folders.iter().any(|folder| folder.exists()) || given("TERRAFORM_CONFIG").is_some() {
        return None;
    }
    if let Some(file) = given("TF_CLI_CONFIG_FILE") {
        return std::fs::read_to_string(file).ok();
    }
    let config = given("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    if has_further(&home.join(".terraform.d")) || home.join(".tofurc").exists() || config.join("opentofu").exists() {
        return None;
    }
    match std::fs::read_to_string(home.join(".terraformrc")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(String::new()),
        text => text.ok(),
    }
}

/// Whether a folder holds further settings; those of `login` are read in any case.
fn has_further(folder: &Path) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name.ends_with(".tfrc") || name.ends_with(".tfrc.json")) && name != "credentials.tfrc.json"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_stays_out_where_others_decide() {
        for (file, text, stays) in [
            ("root/main.tf", "", Some("")),
            (".terraformrc", "a = 1", Some("a = 1")),
            (".terraform.d/credentials.tfrc.json", "{}", Some("")),
            (".terraform.d/more.tfrc", "", None),
            (".tofurc", "", None),
            (".config/opentofu/tofurc", "", None),
            (".terraform.d/plugins/x", "", None),
            (".local/share/terraform/plugins/x", "", None),
            ("root/terraform.d/plugins/x", "", None),
        ] {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            let environment = [("HOME", home.path().display().to_string()), ("XDG_DATA_DIRS", "/nowhere".to_owned())];
            let mut environment: BTreeMap<String, String> =
                environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let own_text = own(&environment, &home.path().join("root"));
            assert_eq!(own_text.as_deref(), stays, "{}", file.display());
            environment.insert("TF_CLI_CONFIG_FILE".into(), "/nowhere".into());
            assert_eq!(own(&environment, &home.path().join("root")), None);
        }
    }
}
