//! The choice of a tool as tables.

use super::*;

const TERRAFORM: Option<ToolKind> = Some(ToolKind::Terraform);
const TOFU: Option<ToolKind> = Some(ToolKind::Tofu);

fn chosen(
    settings: (Option<ToolKind>, Option<&str>),
    syntax: Syntax,
    required_version: Option<&str>,
    files: &[(&str, &str)],
) -> String {
    let settings = RootSettings { tool: settings.0, version: settings.1.map(str::to_owned), ..RootSettings::default() };
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let choice = choose(&Said { dir: "envs/prod", settings: &settings, syntax, required_version }, &files);
    let kind = choice.kind.map_or("either", |kind| if kind == ToolKind::Tofu { "tofu" } else { "terraform" });
    match (choice.version, choice.asked_by) {
        (None, _) => kind.to_owned(),
        (Some(version), AskedBy::Settings) => format!("{kind} {version} settings"),
        (Some(version), AskedBy::File(path)) => format!("{kind} {version} {path}"),
        (Some(version), AskedBy::RequiredVersion) => format!("{kind} {version} required"),
        (Some(version), AskedBy::Plan) => format!("{kind} {version} plan"),
    }
}

#[test]
fn settings_go_before_files_and_near_files_before_far_ones() {
    let none = (None, None);
    for (settings, files, expected) in [
        (none, &[][..], "either"),
        (none, &[(".terraform-version", "1.5.7\n")][..], "terraform 1.5.7 .terraform-version"),
        (none, &[(".opentofu-version", "# ours\n 1.12.6 # pinned\n")][..], "tofu 1.12.6 .opentofu-version"),
        (
            none,
            &[(".terraform-version", "1.5.7"), ("envs/.opentofu-version", "1.12.6")][..],
            "tofu 1.12.6 envs/.opentofu-version",
        ),
        (
            none,
            &[("envs/prod/.tool-versions", "nodejs 20\nterraform 1.6.6 1.5.7\n"), (".terraform-version", "1.5.7")][..],
            "terraform 1.6.6 envs/prod/.tool-versions",
        ),
        (none, &[(".tool-versions", "nodejs 20\n")][..], "either"),
        (none, &[(".tool-versions", "opentofu 1.11.9\n")][..], "tofu 1.11.9 .tool-versions"),
        (
            none,
            &[(".terraform-version", "1.5.7"), (".opentofu-version", "1.12.6")][..],
            "terraform 1.5.7 .terraform-version",
        ),
        (
            (TOFU, None),
            &[(".terraform-version", "1.5.7"), (".opentofu-version", "1.12.6")][..],
            "tofu 1.12.6 .opentofu-version",
        ),
        ((TOFU, None), &[("envs/prod/.terraform-version", "1.5.7")][..], "tofu"),
        ((TERRAFORM, Some("~> 1.6")), &[(".terraform-version", "1.5.7")][..], "terraform ~> 1.6 settings"),
        ((None, Some("1.12.6")), &[(".opentofu-version", "1.11.9")][..], "tofu 1.12.6 settings"),
        (
            none,
            &[("envs/prod/.terraform-version", ""), (".terraform-version", "1.5.7")][..],
            "terraform 1.5.7 .terraform-version",
        ),
        (none, &[("envs/staging/.terraform-version", "1.5.7")][..], "either"),
        (none, &[(".terraform-version", "one point five")][..], "terraform one point five .terraform-version"),
    ] {
        assert_eq!(chosen(settings, Syntax::Both, None, files), expected, "{settings:?} {files:?}");
    }
}

#[test]
fn words_for_an_open_version_leave_it_open() {
    for word in ["latest", "latest:^1.5", "latest-allowed", "min-required"] {
        assert_eq!(chosen((None, None), Syntax::Both, None, &[(".terraform-version", word)]), "terraform", "{word}");
        let with_required = chosen((None, None), Syntax::Both, Some("~> 1.5"), &[(".terraform-version", word)]);
        assert_eq!(with_required, "terraform ~> 1.5 required", "{word}");
    }
}

#[test]
fn a_required_version_of_tf_files_speaks_to_terraform_alone() {
    for (tool, syntax, files, expected) in [
        (TERRAFORM, Syntax::Both, &[][..], "terraform ~> 1.5 required"),
        (TOFU, Syntax::Both, &[][..], "tofu"),
        (None, Syntax::Both, &[][..], "either ~> 1.5 required"),
        (None, Syntax::TofuAlone, &[][..], "tofu"),
        (None, Syntax::TofuAlone, &[("envs/prod/.terraform-version", "1.5.7")][..], "tofu"),
        (TERRAFORM, Syntax::TofuAlone, &[][..], "terraform ~> 1.5 required"),
        (TERRAFORM, Syntax::Both, &[(".terraform-version", "1.5.7")][..], "terraform 1.5.7 .terraform-version"),
    ] {
        assert_eq!(chosen((tool, None), syntax, Some("~> 1.5"), files), expected, "{tool:?} {syntax:?} {files:?}");
    }
}

#[test]
fn a_root_at_the_top_looks_at_the_top() {
    let dirs: Vec<&str> = ancestors("a/b").collect();
    assert_eq!(dirs, ["a/b", "a", "."]);
    assert_eq!(ancestors(".").collect::<Vec<_>>(), ["."]);
    assert_eq!(join(".", ".terraform-version"), ".terraform-version");
}

#[test]
fn only_the_roots_own_tofu_files_count() {
    use crate::domain::tree::Entry;
    let file = |path: &&str| ((*path).to_owned(), Entry { kind: EntryKind::File, blob: String::new(), size: 1 });
    let paths = ["a/main.tf", "a/b/main.tofu", "a-b/x.tofu", "c/x.tofu.json", "d/x.tofutest.hcl"];
    let listing = Listing { entries: paths.iter().map(file).collect() };
    for (dir, syntax) in [
        (".", Syntax::Both),
        ("a", Syntax::Both),
        ("a/b", Syntax::TofuAlone),
        ("a-b", Syntax::TofuAlone),
        ("c", Syntax::TofuAlone),
        ("d", Syntax::Both),
    ] {
        assert_eq!(syntax_of(dir, &listing), syntax, "{dir}");
    }
}
