//! The server's settings by table: what wins, what is wrong and where.

use secrecy::ExposeSecret as _;

use super::*;

const LEAST: &str = "[github]\ntoken = \"t\"\nwebhook_secret = \"w\"\n";

fn read(text: &str, env: &[(&str, &str)]) -> Result<Settings, Vec<Problem>> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let file = |path: &str| match path {
        "key.pem" => Ok("-----BEGIN RSA PRIVATE KEY-----\nx\n".to_owned()),
        "secret" => Ok("from a file\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    parse(text, &env, &file, 4)
}

fn identity(settings: &Settings) -> &GitHubIdentity {
    settings.github.identity.as_ref().expect("an identity")
}

#[test]
fn without_any_part_of_an_app_one_is_made_in_the_browser() {
    for (text, env) in
        [("", vec![]), ("[github]\nurl = \"https://host/api/v3\"\n", vec![("TIDEGATE_GITHUB_TOKEN", "")])]
    {
        assert!(read(text, &env).expect("valid").github.identity.is_none(), "{text}");
    }
    for part in ["app_id = 7", "token = \"t\"", "webhook_secret = \"w\"", "private_key_file = \"key.pem\""] {
        assert!(read(&format!("[github]\n{part}\n"), &[]).is_err(), "{part} alone is half an App");
    }
}

#[test]
fn the_least_that_starts_has_the_defaults() {
    let settings = read(LEAST, &[]).expect("enough");
    assert_eq!(settings.listen.to_string(), "127.0.0.1:4141");
    assert_eq!(settings.url.as_str(), "http://127.0.0.1:4141/");
    assert_eq!(settings.store.expose_secret(), "sqlite://.tidegate/tidegate.db");
    assert_eq!(settings.github.url.as_str(), "https://api.github.com/");
    assert_eq!((settings.executor.parallelism, settings.executor.heartbeat_timeout), (8, Duration::from_secs(600)));
    assert!(settings.encryption_key.is_none() && settings.executor.env.is_empty());
}

#[test]
fn the_environment_wins_and_secrets_come_from_files() {
    let toml = "listen = \"0.0.0.0:1\"\n[github]\napp_id = 7\nprivate_key_file = \"key.pem\"\nwebhook_secret = \"w\"\n[executor]\nenv = [\"AWS_*\", \"TF_VAR_x\"]\n";
    let env = [
        ("TIDEGATE_LISTEN", "127.0.0.1:2"),
        ("TIDEGATE_GITHUB_WEBHOOK_SECRET_FILE", "secret"),
        ("TIDEGATE_EXECUTOR_HEARTBEAT_TIMEOUT", "90s"),
        ("TIDEGATE_URL", ""),
        ("TIDEGATE_SOMETHING_ELSE_ENTIRELY", "x"),
    ];
    let settings = read(toml, &env).expect("valid");
    assert_eq!(settings.listen.port(), 2);
    assert_eq!(identity(&settings).webhook_secret.expose_secret(), "from a file");
    assert_eq!(settings.executor.env, ["AWS_*", "TF_VAR_x"]);
    assert_eq!(settings.executor.heartbeat_timeout, Duration::from_secs(90));
    assert!(matches!(identity(&settings).auth, GitHubAuth::App { id: 7, .. }));
    assert!(!format!("{settings:?}").contains("BEGIN"), "secrets stay out of what is printed");
}

#[test]
fn every_problem_is_said_at_once_and_with_its_place() {
    for (text, env, problems) in [
        (
            "lisen = \"x\"\nlisten = \"x\"\n[github]\nwebhook_secret = \"w\"\n[executor]\nkind = \"moon\"\n",
            vec![],
            vec![
                "tidegate.toml:1: `lisen` is no setting; did you mean `listen`?",
                "tidegate.toml:2: `listen` must be",
                "github: Set `github.app_id`",
                "tidegate.toml:6: `executor.kind` must be `local`",
            ],
        ),
        (
            "[github]\ntoken = \"t\"\ntoken_file = \"secret\"\nwebhook_secret = \"w\"",
            vec![],
            vec!["tidegate.toml:3: `github.token` is set as well"],
        ),
        ("", vec![("TIDEGATE_GITHUB_TOKEN", "t")], vec!["github.webhook_secret: It must be set"]),
        (
            LEAST,
            vec![("TIDEGATE_LISTN", "x")],
            vec!["TIDEGATE_LISTN: `TIDEGATE_LISTN` is no setting; did you mean `TIDEGATE_LISTEN`?"],
        ),
        (LEAST, vec![("TIDEGATE_GITHUB_APP_ID", "7")], vec!["github.private_key: It must be set together"]),
        (
            LEAST,
            vec![("TIDEGATE_GITHUB_APP_ID", "7"), ("TIDEGATE_GITHUB_PRIVATE_KEY_FILE", "key.pem")],
            vec!["github: Both an App and a token"],
        ),
        (
            LEAST,
            vec![("TIDEGATE_GITHUB_TOKEN_FILE", "nowhere")],
            vec!["TIDEGATE_GITHUB_TOKEN_FILE: The file that it names cannot be read"],
        ),
        (LEAST, vec![("TIDEGATE_GITHUB_TOKEN_FILE", "secret"), ("TIDEGATE_GITHUB_TOKEN", "t")], vec!["keep one"]),
        (
            LEAST,
            vec![("TIDEGATE_KEYS_ENCRYPTION", "c2hvcnQ=")],
            vec!["TIDEGATE_KEYS_ENCRYPTION: `keys.encryption` must be 32 bytes"],
        ),
        (LEAST, vec![("TIDEGATE_STORE_URL", "mysql://pass@x")], vec!["TIDEGATE_STORE_URL: `store.url` must be"]),
        (LEAST, vec![("TIDEGATE_URL", "ftp://x")], vec!["TIDEGATE_URL: `url` must be a URL"]),
        (
            LEAST,
            vec![("TIDEGATE_EXECUTOR_PARALLELISM", "0"), ("TIDEGATE_EXECUTOR_HEARTBEAT_TIMEOUT", "soon")],
            vec!["from 1 to 1000", "`90s`"],
        ),
        (
            "[github]\ntoken = true\nwebhook_secret = \"w\"",
            vec![("TIDEGATE_GITHUB_TOKEN", "t")],
            vec!["tidegate.toml:2: `github.token` must be a text"],
        ),
    ] {
        let found: Vec<String> = read(text, &env).expect_err(text).iter().map(Problem::to_string).collect();
        assert_eq!(found.len(), problems.len(), "{found:#?}");
        for (said, expected) in found.iter().zip(problems) {
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("pass@"), "{said}");
        }
    }
    let broken = read("a = \nb = 1", &[]).expect_err("no TOML");
    assert!(broken[0].to_string().starts_with("tidegate.toml:1: This is no TOML"), "{broken:?}");
}

#[test]
fn a_key_is_32_bytes_in_either_writing() {
    let hex = "07".repeat(32);
    let base64 = base64::engine::general_purpose::STANDARD.encode([7_u8; 32]);
    assert_eq!((key(&hex), key(&base64)), (Some([7; 32]), Some([7; 32])));
    assert_eq!((key(""), key("07"), key(&"07".repeat(33))), (None, None, None));
}

#[test]
fn every_row_is_a_setting_that_is_read() {
    let mut keys: Vec<_> = table().iter().map(|row| row.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), table().len());
    for row in table() {
        assert!(!row.meaning.is_empty() && !row.default.is_empty());
        let source = include_str!("../config.rs");
        assert!(source.contains(&format!("\"{}\"", row.key)), "{} is read by nobody", row.key);
    }
}

#[test]
fn an_address_that_everybody_reads_holds_no_credentials() {
    for key in ["url = ", "[github]\nurl = ", "[github]\nweb_url = "] {
        for address in ["https://u:p4ss@host", "https://t0ken@host", "https://host/?token=x"] {
            let problems = read(&format!("{key}\"{address}\"\n"), &[]).expect_err(address);
            assert!(problems.iter().any(|problem| problem.what.contains("without a user")), "{problems:?}");
        }
    }
}

#[test]
fn no_problem_repeats_what_was_given_for_a_secret() {
    const SECRET: &str = "Zq7given4wX9";
    let mut told = Vec::new();
    for row in table().iter().filter(|row| row.form == Form::Secret) {
        let file = format!("{}_FILE", row.env);
        told.push(read(LEAST, &[(&row.env, SECRET)]));
        // The secret itself where the name of its file belongs.
        told.push(read("", &[(&file, SECRET)]));
        told.push(read("", &[(&row.env, SECRET), (&file, SECRET)]));
        let (table, key) = row.key.split_once('.').expect("secrets stand in tables");
        for value in [
            SECRET.to_owned(),
            format!("\"{SECRET}"),
            format!("'{SECRET}\n'"),
            format!("{{ a = \"{SECRET}\" }}"),
            format!("[\"{SECRET}\", [1]]"),
            format!("\"{SECRET}\" {SECRET}"),
            format!("\"\\{SECRET}\""),
        ] {
            told.push(read(&format!("[{table}]\n{key} = {value}\n"), &[]));
        }
    }
    let told: Vec<String> = told.into_iter().map(|read| format!("{read:?}")).collect();
    assert!(told.len() > 20, "{}", told.len());
    assert_eq!(told.iter().find(|told| told.contains(SECRET)), None);
}
