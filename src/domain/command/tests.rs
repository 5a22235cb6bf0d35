//! The grammar by tables, with the faults of other bots among the rows, and reading what was rendered.

use proptest::prelude::*;

use super::super::ApplyTarget;
use super::*;

fn plan(roots: &[&str], workspace: Option<&str>, args: &[&str]) -> Command {
    let own = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect();
    Command::Plan { roots: own(roots), workspace: workspace.map(str::to_owned), args: own(args) }
}

fn apply_roots(roots: &[&str]) -> Command {
    Command::Apply(ApplyTarget::Roots(roots.iter().map(|&root| root.to_owned()).collect()))
}

fn approve(wave: Option<usize>, digest: Option<&str>, confirm: &[(Option<&str>, &str)]) -> Command {
    let confirmed =
        |(root, address): &(Option<&str>, &str)| Confirmed { root: root.map(RootKey::new), address: (*address).into() };
    Command::Approve { wave, digest: digest.map(str::to_owned), confirm: confirm.iter().map(confirmed).collect() }
}

#[test]
fn what_is_a_command() {
    let rows = [
        ("tidegate plan", plan(&[], None, &[])),
        ("/tidegate PLAN", plan(&[], None, &[])),
        ("@tidegate-app plan", plan(&[], None, &[])),
        ("@Tidegate-App[bot] plan", plan(&[], None, &[])),
        ("plan", plan(&[], None, &[])),
        ("/plan", plan(&[], None, &[])),
        ("`tidegate plan`", plan(&[], None, &[])),
        ("tidegate plan\r\n\r\n<!-- sent by x -->", plan(&[], None, &[])),
        ("tidegate plan\r\nthanks!", plan(&[], None, &[])),
        ("\r\n  tidegate plan \r\n", plan(&[], None, &[])),
        ("tidegate plan -d solo\rfoo", plan(&["solo"], None, &[])),
        ("> old words\n\ntidegate plan", plan(&[], None, &[])),
        ("plan -d a -w blue -- -target='x.z[\"y z\"]'", plan(&["a"], Some("blue"), &["-target=x.z[\"y z\"]"])),
        (
            "tidegate plan -- -target a.b -destroy --var 'who=it is'",
            plan(&[], None, &["-target", "a.b", "-destroy", "--var", "who=it is"]),
        ),
        ("tidegate plan -- -refresh=false -refresh-only", plan(&[], None, &["-refresh=false", "-refresh-only"])),
        ("plan -d \"network/firewall --\"", plan(&["network/firewall --"], None, &[])),
        ("plan --dir=./solo/ -d .", plan(&["solo", "."], None, &[])),
        ("apply", Command::Apply(ApplyTarget::All)),
        ("Apply wave-2", Command::Apply(ApplyTarget::Wave(2))),
        ("apply -d a -d b", apply_roots(&["a", "b"])),
        ("tidegate apply --project solo", apply_roots(&["solo"])),
        ("tidegate apply -p solo -p net:blue", apply_roots(&["solo", "net:blue"])),
        ("tidegate apply -d 'a,b'", apply_roots(&["a,b"])),
        ("approve", approve(None, None, &[])),
        ("approve wave-1 tg1:4be01c77d2aa", approve(Some(1), Some("tg1:4be01c77d2aa"), &[])),
        ("approve 4be01c77d2aa\nlooks fine", approve(None, Some("4be01c77d2aa"), &[])),
        (
            "approve wave-2\nconfirm aws_db.old\nconfirm eu/db aws_db.x[\"a b\"]\n`confirm c.d`",
            approve(Some(2), None, &[(None, "aws_db.old"), (Some("eu/db"), "aws_db.x[\"a b\"]"), (None, "c.d")]),
        ),
        ("unapprove", Command::Unapprove),
        ("discard -d a", Command::Discard(vec!["a".into()])),
        ("cancel", Command::Cancel),
        ("tidegate lock it's mine", Command::Lock { roots: vec![], reason: "it's mine".into() }),
        ("lock -d net until Monday", Command::Lock { roots: vec!["net".into()], reason: "until Monday".into() }),
        ("lock 'for the audit'", Command::Lock { roots: vec![], reason: "for the audit".into() }),
        ("unlock -d solo", Command::Unlock(vec!["solo".into()])),
        ("settle -d solo", Command::Settle(vec!["solo".into()])),
        ("status", Command::Status),
        ("explain network/main.tf", Command::Explain("network/main.tf".into())),
        ("help", Command::Help),
    ];
    for (body, command) in rows {
        assert_eq!(read(body, "tidegate-app[bot]"), Reading::Command(command), "{body:?}");
    }
}

#[test]
fn what_is_prose() {
    for body in [
        "",
        "apply this please",
        "please tidegate apply",
        "please `tidegate apply`",
        "> tidegate apply\n\nshould I run this?",
        "```\ntidegate apply\n```",
        "- tidegate apply",
        "    tidegate apply",
        "On Monday ben wrote:\n> tidegate apply",
        "LGTM\napply",
        "plan B",
        "apply solo",
        "apply!",
        "plan -- I think so",
        "plan - or not",
        "apply -d solo please",
        "apply --all",
        "approve please",
        "approve 4be01c",
        "lock it down please",
        "help me",
        "explain it to me",
        "status of this?",
        "don't apply",
        "plan don't",
        "@ben plan",
        "@tidegate-application plan",
        "# tidegate apply",
        "<b>tidegate apply</b>",
        "cancel -d a",
        "<!-- tidegate apply -->",
        "/merge",
        "tidegateapply",
    ] {
        assert_eq!(read(body, "tidegate-app"), Reading::NotForUs, "{body:?}");
    }
}

#[test]
fn what_cannot_be_obeyed_is_answered() {
    for (body, says) in [
        ("tidegate", "no command follows"),
        ("tidegate aply", "did you mean `apply`?"),
        ("tidegate is great", "`is` is no command"),
        ("tidegate plan\n\ntidegate apply", "one command per comment"),
        ("tidegate plan\napply", "one command per comment"),
        ("plan\n@tidegate-app apply --nonsense", "one command per comment"),
        ("tidegate apply solo", "`-d solo`"),
        ("tidegate apply -dsolo", "`-d solo`"),
        ("apply -dsolo", "`-d solo`"),
        ("apply -d solo,net", "`-d solo -d net`"),
        ("tidegate apply -d", "needs a value"),
        ("tidegate apply -d -w", "needs a value"),
        ("tidegate apply -d ''", "selects nothing"),
        ("tidegate apply --dri solo", "did you mean `--dir`?"),
        ("tidegate apply -w blue", "no flag `-w`"),
        ("tidegate apply wave-0", "`wave-1`"),
        ("apply wave-1 -d a", "not both"),
        ("tidegate apply wave-1 wave-2", "one wave"),
        ("tidegate apply -- -target=a.b", "only `plan`"),
        ("tidegate plan -destroy", "with a space"),
        ("tidegate plan -w a -w b", "given twice"),
        ("tidegate plan -d “solo”", "did you mean ` tidegate plan -d \"solo\"`?"),
        ("tidegate plan -- -var 'who=it's'", "at column 32"),
        ("tidegate plan -d \"solo", "at column 18"),
        ("plan -- -target=a.note[\"x y\"]", "`-target='a.note[\"x y\"]'`"),
        ("tidegate plan -- -target=a -- -destroy", "second `--`"),
        ("tidegate plan -- -target", "needs a value"),
        ("tidegate plan -- main.tf", "no argument"),
        ("tidegate plan -- -var x", "NAME=VALUE"),
        ("tidegate plan -- -destroy=yes", "`=true`"),
        ("tidegate approve wave-1 wave-2", "one wave"),
        ("tidegate approve 4be01c77", "has 8"),
        ("tidegate approve later", "neither a wave"),
        ("approve\nconfirm everything", "Not approved"),
        ("approve\nconfirm a.b c.d e.f", "Not approved"),
        ("tidegate explain", "one path"),
        ("tidegate status now", "takes no `now`"),
    ] {
        let Reading::Wrong(text) = read(body, "tidegate-app") else { panic!("{body:?} was not refused") };
        let says = says.replace("` tidegate", "`tidegate");
        assert!(text.contains(&says), "{body:?}: {text}");
    }
    for refused in [
        "-out=x",
        "-json",
        "-chdir=/",
        "-lock=false",
        "-input=true",
        "-state=x",
        "-state-out=x",
        "-detailed-exitcode",
        "-auto-approve",
        "-no-color",
        "-var-file=x",
        "--out=x",
    ] {
        let body = format!("tidegate plan -- {refused}");
        let Reading::Wrong(text) = read(&body, "tidegate-app") else { panic!("{body} was not refused") };
        assert!(text.contains("`-target`") && text.contains(refused), "{text}");
    }
}

#[test]
fn what_people_typed_stays_inside_its_code_span() {
    assert_eq!(code("a"), "`a`");
    assert_eq!(code("a`` @org"), "``` a`` @org ```");
    let long = "x".repeat(5000);
    assert!(code(&long).len() < 200);
}

#[test]
fn the_usage_lists_every_verb_once() {
    let usage = usage();
    assert_eq!(usage.lines().count(), VERBS.len() + 2);
    for verb in &VERBS {
        assert!(usage.contains(&format!("| `{}", verb.name)));
        assert!(!matches!(read_line(verb.name, "x"), LineReading::Prose) || verb.name == "explain");
    }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn render(command: &Command) -> String {
    let flags = |roots: &[String]| roots.iter().map(|root| format!(" -d {}", quote(root))).collect::<String>();
    match command {
        Command::Plan { roots, workspace, args } => {
            let workspace = workspace.as_ref().map_or_else(String::new, |name| format!(" -w {}", quote(name)));
            let args = if args.is_empty() {
                String::new()
            } else {
                format!(" --{}", args.iter().map(|arg| format!(" {}", quote(arg))).collect::<String>())
            };
            format!("plan{}{workspace}{args}", flags(roots))
        }
        Command::Apply(ApplyTarget::All) => "apply".into(),
        Command::Apply(ApplyTarget::Wave(number)) => format!("apply wave-{number}"),
        Command::Apply(ApplyTarget::Roots(roots)) => format!("apply{}", flags(roots)),
        Command::Approve { wave, digest, confirm } => {
            let wave = wave.map_or_else(String::new, |number| format!(" wave-{number}"));
            let digest = digest.as_ref().map_or_else(String::new, |digest| format!(" {digest}"));
            let line = |c: &Confirmed| {
                format!(
                    "\nconfirm {}{}",
                    c.root.as_ref().map_or_else(String::new, |root| format!("'{root}' ")),
                    c.address
                )
            };
            format!("approve{wave}{digest}{}", confirm.iter().map(line).collect::<String>())
        }
        Command::Unapprove => "unapprove".into(),
        Command::Discard(roots) => format!("discard{}", flags(roots)),
        Command::Cancel => "cancel".into(),
        Command::Settle(roots) => format!("settle{}", flags(roots)),
        Command::Lock { roots, reason } if reason.is_empty() => format!("lock{}", flags(roots)),
        Command::Lock { roots, reason } => format!("lock{} {}", flags(roots), quote(reason)),
        Command::Unlock(roots) => format!("unlock{}", flags(roots)),
        Command::Status => "status".into(),
        Command::Explain(path) => format!("explain {}", quote(path)),
        Command::Help => "help".into(),
    }
}

fn commands() -> impl Strategy<Value = Command> {
    let name = || "[a-z ,'\"\\\\`*_<>&\\[\\]:é-]{0,8}[a-z]";
    let roots = || prop::collection::vec(name(), 0..3);
    let some_roots = prop::collection::vec(name(), 1..3);
    let argument = prop_oneof![
        Just("-destroy".to_owned()),
        name().prop_map(|v| format!("-var=x={v}")),
        Just("-target=a.b[\"x y\"]".to_owned())
    ];
    let confirm =
        (prop::option::of("[a-z /]{1,6}[a-z]"), prop::sample::select(vec!["a.b", "a.b[\"x y\"]", "module.m[0].c.d"]))
            .prop_map(|(root, address)| Confirmed { root: root.map(RootKey::new), address: address.into() });
    prop_oneof![
        (roots(), prop::option::of(name()), prop::collection::vec(argument, 0..3))
            .prop_map(|(roots, workspace, args)| Command::Plan { roots, workspace, args }),
        Just(Command::Apply(ApplyTarget::All)),
        (1_usize..99).prop_map(|number| Command::Apply(ApplyTarget::Wave(number))),
        some_roots.prop_map(|roots| Command::Apply(ApplyTarget::Roots(roots))),
        (prop::option::of(1_usize..9), prop::option::of("[0-9a-f]{12,64}"), prop::collection::vec(confirm, 0..3))
            .prop_map(|(wave, digest, confirm)| Command::Approve { wave, digest, confirm }),
        roots().prop_map(Command::Discard),
        (roots(), prop_oneof![Just(String::new()), name()]).prop_map(|(roots, reason)| Command::Lock { roots, reason }),
        roots().prop_map(Command::Unlock),
        name().prop_map(Command::Explain),
        prop::sample::select(vec![Command::Unapprove, Command::Cancel, Command::Status, Command::Help]),
    ]
}

proptest! {
    #[test]
    fn what_is_rendered_is_read_back(command in commands(), front in prop::sample::select(vec!["", "/", "tidegate ", "/tidegate ", "@us "])) {
        let body = format!("{front}{}", render(&command));
        prop_assert_eq!(read(&body, "us[bot]"), Reading::Command(command), "{}", body);
    }

    #[test]
    fn nothing_that_is_typed_panics(body in "[ -~\\n“é`]{0,60}", front in prop::sample::select(vec!["", "tidegate ", "plan -d ", "approve\nconfirm ", "plan -- -target="])) {
        let reading = read(&format!("{front}{body}"), "us");
        prop_assert!(!matches!(reading, Reading::Wrong(text) if text.is_empty()));
    }
}
