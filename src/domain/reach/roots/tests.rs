//! The blast radius on small estates.

use super::*;
use crate::domain::estate::fixture::{estate, ordered, read, s3};
use crate::domain::plan::{Action, Change, OutputChange, Shown};

pub(in crate::domain::reach) fn plan(changes: &[(&str, Action)], outputs: &[(&str, bool)]) -> Plan {
    let change = |(address, action): &(&str, Action)| Change {
        address: (*address).to_owned(),
        resource_type: String::new(),
        action: *action,
        deposed: None,
        previous_address: None,
        importing: false,
        replaced_by: Vec::new(),
        reason: None,
        attributes: Vec::new(),
    };
    let output = |(name, unknown): &(&str, bool)| OutputChange {
        name: (*name).to_owned(),
        action: Action::Update,
        before: Shown::Absent,
        after: Shown::Absent,
        unknown: *unknown,
    };
    Plan {
        changes: changes.iter().map(change).collect(),
        outputs: outputs.iter().map(output).collect(),
        ..Plan::default()
    }
}

fn uses(key: &str, source: &str, output: &str) -> String {
    format!(
        "{}{}output \"o\" {{\n  value = data.terraform_remote_state.net.outputs{output}\n}}\n",
        s3(key),
        read(source)
    )
}

#[test]
fn the_radius_has_wave_depth_reads_and_class() {
    let files = [
        ("after/m.tf", s3("after")),
        ("app/m.tf", uses("app", "net", ".id")),
        ("deep/m.tf", uses("deep", "app", ".o")),
        ("net/m.tf", s3("net")),
        ("other/m.tf", s3("other")),
        ("same/m.tf", uses("same", "net", ".name")),
        ("whole/m.tf", uses("whole", "net", "")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let config = ordered(&[("after", &["net"])], &[]);
    let (_, estate) = estate(&files, &config);
    let net = plan(&[("a.b", Action::Update)], &[("id", false)]);
    let none = plan(&[], &[]);
    let waves = estate.reached(&["net/m.tf".to_owned()], &config).expect("no cycle").waves;
    let found = blast(&estate, &config, &waves, &[(RootKey::new("net"), &net), (RootKey::new("same"), &none)]);
    let got: Vec<(String, usize, usize, bool, bool, Class)> =
        found.iter().map(|d| (d.root.to_string(), d.wave, d.depth, d.by_order, d.planned, d.class)).collect();
    assert_eq!(
        got,
        [
            ("after".to_owned(), 2, 1, true, false, Class::Unchanged),
            ("app".to_owned(), 2, 1, false, false, Class::Changes),
            ("same".to_owned(), 2, 1, false, true, Class::Unchanged),
            ("whole".to_owned(), 2, 1, false, false, Class::MayChange),
            ("deep".to_owned(), 3, 2, false, false, Class::MayChange),
        ]
    );
    assert_eq!(found[4].reads, [RootKey::new("app")]);
    assert_eq!(found[0].reads, [RootKey::new("net")]);
    let unknown = plan(&[], &[("id", true)]);
    let found = blast(&estate, &config, &waves, &[(RootKey::new("net"), &unknown)]);
    assert_eq!(found.iter().find(|d| d.root.dir() == "app").unwrap().class, Class::MayChange);
    assert!(blast(&estate, &config, &waves, &[(RootKey::new("net"), &none)]).is_empty());
}

#[test]
fn a_root_has_the_number_of_its_wave_in_the_run() {
    let files =
        [("net/m.tf", s3("net")), ("mid/m.tf", uses("mid", "net", ".id")), ("app/m.tf", uses("app", "mid", ".o"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let config = RepoConfig::default();
    let (_, estate) = estate(&files, &config);
    let waves = estate.reached(&["net/m.tf".to_owned()], &config).expect("no cycle").waves;
    // Of three waves the first changes nothing: its reader is still in the second.
    let (none, update) = (plan(&[], &[]), plan(&[("a.b", Action::Update)], &[("o", false)]));
    let found = blast(&estate, &config, &waves, &[(RootKey::new("net"), &none), (RootKey::new("mid"), &update)]);
    assert_eq!(
        found.iter().map(|down| (down.root.to_string(), down.wave)).collect::<Vec<_>>(),
        [("app".to_owned(), 3)]
    );
}
