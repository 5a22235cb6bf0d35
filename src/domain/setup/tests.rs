//! The rules of the set-up, by tables.

use super::*;

#[test]
fn the_manifest_has_our_addresses_and_a_name_that_fits() {
    let manifest = manifest("https://tide.acme.com/", Some("an-organization-with-a-long-name"));
    assert_eq!(manifest["url"], "https://tide.acme.com");
    assert_eq!(manifest["hook_attributes"]["url"], "https://tide.acme.com/webhooks/github");
    assert_eq!(manifest["redirect_url"], "https://tide.acme.com/setup/github");
    assert_eq!(manifest["setup_url"], "https://tide.acme.com/setup/github");
    assert_eq!(manifest["public"], false);
    assert!(!manifest.to_string().contains("example.com"), "{manifest}");
    assert!(manifest["name"].as_str().is_some_and(|name| name.starts_with("Tidegate an-") && name.len() <= 34));
    assert_eq!(super::manifest("http://h", None)["name"], "Tidegate");
}

#[test]
fn addresses_tell_what_cannot_be_reached() {
    let github = "https://github.com";
    for (ours, forge, expected) in [
        ("http://127.0.0.1:4141/", github, "no"),
        ("http://localhost:4141", github, "no"),
        ("http://[::1]:4141", github, "no"),
        ("http://0.0.0.0:4141", github, "no"),
        ("http://127.0.0.1:4141", "http://127.0.0.1:4140", "yes"),
        ("http://10.0.0.7", github, "unlikely"),
        ("http://tidegate", github, "unlikely"),
        ("https://tide.corp.internal", github, "unlikely"),
        ("http://[fd00::1]", github, "unlikely"),
        ("http://10.0.0.7", "http://192.168.1.2", "yes"),
        ("https://tide.acme.com", github, "yes"),
        ("https://127.evil.example", github, "yes"),
    ] {
        let found = match reachable(ours, forge) {
            Reachable::Yes => "yes",
            Reachable::Unlikely(_) => "unlikely",
            Reachable::No(_) => "no",
        };
        assert_eq!(found, expected, "{ours} from {forge}");
    }
}

#[test]
fn a_login_stays_in_its_place() {
    for good in ["acme", "Acme-Corp", "a", "mira_acme", &"x".repeat(39)] {
        assert!(is_login(good), "{good}");
    }
    for bad in ["", "a/b", "..", "a?b", "a b", "é", "a%2f", &"x".repeat(40)] {
        assert!(!is_login(bad), "{bad}");
    }
}

fn seen() -> Seen {
    Seen {
        name: "Tidegate acme".to_owned(),
        owner: "acme".to_owned(),
        page: "https://github.com/apps/tidegate-acme".to_owned(),
        settings: "https://github.com/organizations/acme/settings/apps/tidegate-acme".to_owned(),
        hook: "https://tide.acme.com/webhooks/github".to_owned(),
        repos: Ok(vec![]),
        taken: None,
        refused: None,
        sent: Ok(vec![]),
    }
}

fn marks(seen: &Seen) -> Vec<Mark> {
    parts(seen).iter().map(|part| part.mark).collect()
}

#[test]
fn one_thing_is_missing_at_a_time() {
    use Mark::{Done, Later, Now};
    assert_eq!(marks(&seen()), [Done, Now, Later]);
    let away = Seen { repos: Err("GET /app: 500".to_owned()), ..seen() };
    assert_eq!(marks(&away), [Done, Now, Later]);
    let repos = Ok((1..=7).map(|n| format!("acme/{n}")).collect());
    let installed = Seen { repos, ..seen() };
    assert_eq!(marks(&installed), [Done, Done, Now]);
    assert_eq!(parts(&installed)[1].says, ["On 7 repositories: acme/1, acme/2, acme/3, acme/4, acme/5 and 2 more."]);
    let done = Seen { taken: Some(("installation".to_owned(), Timestamp(0))), ..installed };
    assert!(is_complete(&parts(&done)));
    // Taken once, and then removed everywhere: not complete.
    assert!(!is_complete(&parts(&Seen { repos: Ok(vec![]), ..done })));
}

#[test]
fn what_is_missing_is_said_with_its_way_out() {
    let sent = |event: &str, code: u16| Sent {
        event: event.to_owned(),
        at: "2026-12-01T02:00:00Z".to_owned(),
        code,
        status: "timed out".to_owned(),
    };
    let refused = |why| Some(Refused { at: Timestamp(0), why });
    for (refused, sent, parts) in [
        (None, Ok(vec![]), vec!["lists no delivery to https://tide.acme.com/webhooks/github yet"]),
        (None, Ok(vec![sent("ping", 503)]), vec!["lists no delivery"]),
        (None, Ok(vec![sent("installation", 0)]), vec!["no answer (timed out)", "firewall"]),
        (None, Ok(vec![sent("installation", 502)]), vec!["got 502", "proxy"]),
        (None, Ok(vec![sent("installation", 202)]), vec!["something else answers"]),
        (refused(Refusal::Signature), Ok(vec![]), vec!["00:00 UTC and was refused", "forget-app"]),
        (
            refused(Refusal::Header),
            Err("GET /app/hook/deliveries: 500".to_owned()),
            vec!["X-GitHub-Event", "not known now"],
        ),
        (refused(Refusal::Body), Ok(vec![]), vec!["no JSON"]),
        (None, Ok(vec![sent("installation", 401)]), vec!["got 401", "very secret"]),
    ] {
        let said = missing(&Seen { refused, sent, repos: Ok(vec!["acme/infra".to_owned()]), ..seen() }).join(" ");
        for part in parts {
            assert!(said.contains(part), "`{part}` is not in: {said}");
        }
    }
}
