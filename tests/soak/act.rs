//! What people do, and what goes wrong. It looks at nothing but what people can see.

use rand::Rng;
use rand::seq::IndexedRandom;
use tidegate::sandbox::PullState;
use tidegate::sandbox::Verdict;
use tidegate::sandbox::faults::Fault;

use crate::ctx::{KIM, LIN, MIRA, REPO, SAM};
use crate::world::{Hunt, ROOTS, World, root};

/// The most pulls that are open at once.
const MOST_OPEN: usize = 4;

const COMMANDS: [&str; 22] = [
    "apply",
    "apply",
    "apply",
    "apply",
    "apply wave-1",
    "apply -d solo",
    "apply -d net",
    "approve",
    "approve",
    "approve",
    "approve wave-1",
    "plan",
    "plan -d db",
    "unapprove",
    "discard -d solo",
    "cancel",
    "lock -d db",
    "unlock",
    "unlock -d solo",
    "status",
    "explain net/main.tf",
    "apply now, would you",
];

/// What goes wrong during this step.
pub fn trouble(world: &mut World) -> Hunt {
    let lot: u32 = world.rng.random_range(0..100);
    match lot {
        0..25 => {
            let boundaries = world.rng.random_range(1..60);
            world.story.push(format!("the server dies after {boundaries} boundaries"));
            world.peril.life().dies_in(Some(boundaries));
        }
        25..45 => {
            let methods = ["POST", "PATCH", "GET"];
            for _ in 0..world.rng.random_range(1..=3) {
                let method = *methods.choose(&mut world.rng).expect("some");
                let fault = match world.rng.random_range(0..4) {
                    0 => Fault::Status(502, Vec::new()),
                    1 => Fault::AfterEffect(500),
                    2 => Fault::Reset,
                    _ => Fault::Status(403, vec![("retry-after".to_owned(), "1".to_owned())]),
                };
                world.story.push(format!("fault {method} {fault:?}"));
                world.ctx.sandbox.faults().next(method, "/repos/*", fault);
            }
        }
        45..55 => {
            world.story.push("webhooks are lost".to_owned());
            world.ctx.sandbox.hooks().drop_next(world.rng.random_range(1..=3));
        }
        55..60 => {
            world.story.push("webhooks come twice".to_owned());
            world.ctx.sandbox.hooks().duplicate_next(3);
        }
        60..63 => {
            world.story.push("tokens expire".to_owned());
            world.ctx.sandbox.expire_tokens();
        }
        63..78 => return Hunt::FirstJob,
        _ => {}
    }
    Hunt::Nothing
}

/// Somebody does something.
pub async fn one(world: &mut World) {
    let open = world.pulls(|state| state != PullState::Closed);
    let closed = world.pulls(|state| state == PullState::Closed);
    let lot: u32 = world.rng.random_range(0..100);
    let any = open.choose(&mut world.rng).copied();
    match (lot, any) {
        (_, None) => open_one(world),
        (0..12, _) if open.len() < MOST_OPEN => open_one(world),
        (0..24, Some(pull)) => push(world, pull),
        (24..62, Some(pull)) => comment(world, pull),
        (62..74, Some(pull)) => ship(world, pull),
        (74..80, Some(pull)) => review(world, pull),
        (80..83, Some(pull)) => {
            world.story.push(format!("#{pull} is closed"));
            let _ = world.ctx.sandbox.close(REPO, pull, MIRA);
        }
        (83..86, _) => {
            if let Some(pull) = closed.choose(&mut world.rng).copied() {
                let done = world.ctx.sandbox.reopen(REPO, pull, MIRA).is_ok();
                world.story.push(format!("#{pull} is opened again: {done}"));
            }
        }
        (86..91, Some(pull)) => {
            let done = world.ctx.merge(pull).is_ok();
            world.story.push(format!("#{pull} is merged: {done}"));
        }
        (91..94, Some(pull)) => {
            let now = world.ctx.sandbox.pull(REPO, pull).expect("a pull").state;
            let to = if now == PullState::Draft { PullState::Open } else { PullState::Draft };
            world.story.push(format!("#{pull} becomes {to:?}"));
            let _ = world.ctx.sandbox.set_draft(REPO, pull, MIRA, to);
        }
        (94..96, _) => {
            world.story.push("main moves".to_owned());
            world.values += 1;
            let (path, text) = (format!("main-{}.md", world.values), format!("# estate {}\n", world.values));
            let _ = world.ctx.sandbox.commit(REPO, "main", &[(&path, Some(&text))], "Say more", LIN);
        }
        (96..98, _) => breaks(world),
        _ => {
            if let Some(pull) = closed.choose(&mut world.rng).copied() {
                comment(world, pull);
            }
        }
    }
    if world.rng.random_range(0..3) == 0 {
        world.ctx.sandbox.deliveries_idle().await;
    }
}

fn changes(world: &mut World) -> Vec<(String, String)> {
    let mut changes = Vec::new();
    for _ in 0..world.rng.random_range(1..=2) {
        let (name, reads) = *ROOTS.choose(&mut world.rng).expect("some");
        world.values += 1;
        let text = match world.rng.random_range(0..12) {
            0 => root(name, reads, "0"),
            1 => root(name, reads, &world.values.to_string()).replace("input  ", "inptu"),
            _ => root(name, reads, &world.values.to_string()),
        };
        changes.push((format!("{name}/main.tf"), text));
    }
    if world.rng.random_range(0..10) == 0 {
        // As often as not in the way of what others wrote there.
        let path = if world.values.is_multiple_of(2) { "README.md".to_owned() } else { format!("{}.md", world.values) };
        changes = vec![(path, format!("# words {}\n", world.values))];
    }
    changes
}

fn pushed(world: &mut World, branch: &str) -> String {
    let changes = changes(world);
    let borrowed: Vec<(&str, Option<&str>)> =
        changes.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    world.ctx.push(branch, &borrowed);
    changes.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>().join(", ")
}

fn open_one(world: &mut World) {
    let branch = format!("branch-{}", world.heads.len() + world.values as usize);
    let paths = pushed(world, &branch);
    let author = if world.rng.random_range(0..4) == 0 { KIM } else { MIRA };
    if let Ok(pull) = world.ctx.sandbox.open_pull(REPO, &branch, "Change it", author) {
        world.story.push(format!("#{pull} is opened by {author}: {paths}"));
        let head = world.ctx.sandbox.pull(REPO, pull).expect("a pull").head_sha;
        world.heads.entry(pull).or_default().insert(head);
    }
}

fn push(world: &mut World, pull: u64) {
    let branch = world.ctx.sandbox.pull(REPO, pull).expect("a pull").head;
    let paths = pushed(world, &branch);
    let head = world.ctx.sandbox.pull(REPO, pull).expect("a pull").head_sha;
    world.heads.entry(pull).or_default().insert(head.clone());
    world.story.push(format!("#{pull} gets {}: {paths}", &head[..7]));
}

fn comment(world: &mut World, pull: u64) {
    let text = *COMMANDS.choose(&mut world.rng).expect("some");
    let by = *[MIRA, LIN, LIN, KIM, SAM].choose(&mut world.rng).expect("some");
    say(world, pull, by, text);
}

/// What most pulls come to: somebody approves, in whatever way, and somebody applies.
fn ship(world: &mut World, pull: u64) {
    world.story.push(format!("#{pull} is approved by a review"));
    let _ = world.ctx.sandbox.review(REPO, pull, LIN, Verdict::Approve, "words");
    say(world, pull, LIN, "approve");
    say(world, pull, MIRA, "apply");
}

fn say(world: &mut World, pull: u64, by: &'static str, text: &'static str) {
    let id = world.ctx.sandbox.comment(REPO, pull, by, text).expect("a comment");
    world.story.push(format!("#{pull} {by}: {text}"));
    if text != "apply now, would you" {
        world.commands.push((id, pull, by, text.to_owned()));
    }
}

fn review(world: &mut World, pull: u64) {
    let by = *[LIN, KIM].choose(&mut world.rng).expect("some");
    let verdict = match world.rng.random_range(0..4) {
        0 => Verdict::RequestChanges,
        1 => Verdict::Comment,
        _ => Verdict::Approve,
    };
    world.story.push(format!("#{pull} {by} reviews: {verdict:?}"));
    let _ = world.ctx.sandbox.review(REPO, pull, by, verdict, "words");
}

/// Applies of a root fail from now on, or do no more.
fn breaks(world: &mut World) {
    let (name, _) = *ROOTS.choose(&mut world.rng).expect("some");
    let file = world.ctx.states().join(format!("broken-{name}"));
    if file.exists() {
        std::fs::remove_file(&file).expect("it goes");
    } else {
        std::fs::write(&file, "").expect("a file");
    }
    world.story.push(format!("{name} is broken: {}", file.exists()));
}
