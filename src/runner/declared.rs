//! What the checkout itself calls sensitive, read from its files before the tool runs: an early error may quote it. It reads
//! files of the checkout and the job's own environment, and writes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use crate::domain::hcl;
use crate::domain::job::JobSpec;
use crate::domain::secret::Declared;

/// A larger file is generated, and nobody writes a secret's declaration into it by hand.
const LARGEST: u64 = 2 << 20;

/// Reads the declarations of the whole checkout, and the values that reach this root.
pub(super) fn read(spec: &JobSpec, environment: &BTreeMap<String, String>, checkout: &Path, root: &Path) -> Declared {
    let mut files = Vec::new();
    configuration(checkout, &mut files);
    let mut declared = Declared::of(&files);
    let mut var_files: Vec<String> = spec.var_files.clone();
    for arg in &spec.args {
        if let Some(file) = arg.strip_prefix("-var-file=") {
            var_files.push(file.to_owned());
        } else if let Some((name, value)) = arg.strip_prefix("-var=").and_then(|pair| pair.split_once('=')) {
            declared.add_variable(name, value);
        }
    }
    for name in names(root) {
        if matches!(name.as_str(), "terraform.tfvars" | "terraform.tfvars.json")
            || name.ends_with(".auto.tfvars")
            || name.ends_with(".auto.tfvars.json")
        {
            var_files.push(name);
        }
    }
    for file in &var_files {
        declared.add_variables(&values(root, file));
    }
    for file in &spec.backend_config {
        declared.add_backend(&values(root, file));
    }
    for (name, value) in environment {
        if let Some(name) = name.strip_prefix("TF_VAR_") {
            declared.add_variable(name, value);
        }
    }
    declared
}

fn values(root: &Path, file: &str) -> Vec<hcl::Named> {
    let Ok(bytes) = std::fs::read(root.join(file)) else { return Vec::new() };
    // A name that tells nothing holds plain arguments as well.
    let path = if file.ends_with(".json") { "values.tfvars.json" } else { "values.tfvars" };
    hcl::parse(path, &bytes).values
}

fn configuration(dir: &Path, files: &mut Vec<hcl::FileFacts>) {
    for name in names(dir) {
        let path = dir.join(&name);
        // Links are not followed: what they lead to is seen where it lies.
        let Ok(kind) = path.symlink_metadata() else { continue };
        if kind.is_dir() && name != ".git" && name != ".terraform" {
            configuration(&path, files);
        } else if kind.is_file() && kind.len() <= LARGEST && hcl::is_configuration(&name) {
            let Ok(bytes) = std::fs::read(&path) else { continue };
            if tells(&bytes) {
                files.push(hcl::parse(&name, &bytes));
            }
        }
    }
}

/// Whether the file can declare anything sensitive, or pass something on; most cannot, and parsing them would take its time.
fn tells(bytes: &[u8]) -> bool {
    [&b"sensitive"[..], b"module", b"backend"].iter().any(|word| bytes.windows(word.len()).any(|part| part == *word))
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}
