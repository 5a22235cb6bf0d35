//! Charts of a small estate in every form, and names that would break out of each.

use super::*;
use crate::domain::estate::fixture::{estate, ordered, read, s3};

fn small() -> (crate::domain::tree::Listing, Estate) {
    let app =
        format!("{}{}{}", s3("app.tfstate"), read("net.tfstate"), read("gone.tfstate").replace("\"net\"", "\"gone\""));
    let guess = format!("{}{}", s3("web.tfstate"), read("${var.env}/db.tfstate").replace("\"net\"", "\"db\""));
    estate(
        &[
            ("app/main.tf", app.as_str()),
            ("db/main.tf", &s3("dev/db.tfstate")),
            ("modules/user/main.tf", "provider \"queue\" {\n  endpoint = var.url\n}\n"),
            ("net/main.tf", &s3("net.tfstate")),
            ("net/README.md", "# net\n"),
            ("odd\"<b>\\/main.tf", &s3("odd.tfstate")),
            ("shelf/main.tf", "resource \"a\" \"b\" {}\n"),
            ("web/main.tf", &guess),
        ],
        &RepoConfig::default(),
    )
}

fn chart() -> Chart {
    Chart::of(&small().1, &RepoConfig::default(), &[])
}

#[test]
fn as_text() {
    insta::assert_snapshot!(text(&chart()));
}

#[test]
fn as_json() {
    insta::assert_snapshot!(json(&chart()));
}

#[test]
fn as_dot() {
    insta::assert_snapshot!(dot(&chart()));
}

#[test]
fn as_mermaid() {
    insta::assert_snapshot!(mermaid(&chart()));
}

#[test]
fn control_characters_stay_visible() {
    assert_eq!(plain("a\u{1b}[2Jb\n\u{202e}c é"), "a\\u{1b}[2Jb\\u{a}\\u{202e}c é");
}

#[test]
fn a_cycle_by_hand_is_a_hole_and_the_waves_stay() {
    let config = ordered(&[("app", &["db"]), ("db", &["app"])], &[]);
    let chart = Chart::of(&small().1, &config, &[]);
    assert!(chart.holes.iter().any(|hole| hole.file == FILE && hole.what.contains("`app`")), "{:?}", chart.holes);
    assert_eq!(chart.waves.len(), 2);
}

#[test]
fn a_path_is_explained_with_its_rule_or_with_why_it_reaches_nothing() {
    let (listing, estate) = small();
    let config = RepoConfig { ignore: vec!["db".to_owned()], ..RepoConfig::default() };
    let said = |path: &str| explain(&estate, &config, &listing, path);
    for (path, wanted) in [
        ("net/main.tf", "it reads the state of `net`"),
        ("net/main.tf", "app  (wave-2)"),
        ("net/new.tf", "There is no such file"),
        ("net", "net (2 files)"),
        ("net/README.md", "no tool reads"),
        ("modules/user/main.tf", "only probably a root"),
        ("shelf/main.tf", "declares no backend"),
        ("docs/x.txt", "no root's directory holds"),
    ] {
        assert!(said(path).contains(wanted), "{path}: {}", said(path));
    }
}
