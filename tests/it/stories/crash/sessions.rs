//! The stories whose server dies: what people do on pulls, as values. Each is told undisturbed, with each effect twice, and with a
//! crash at boundary after boundary.

use tidegate::sandbox::{Origin, Verdict};

use super::super::{net, solo};
use super::{Story, holds, rests, seen};
use crate::ctx::{Ctx, KIM, LIN, MIRA, REPO};
use crate::shim;

/// A story of `solo` alone.
const SOLO: Story = Story { config: "", extra: &[], applied: &["solo"], pulls: 1, steps: &[] };

fn open_solo(ctx: &Ctx) {
    ctx.open("one", &[("solo/main.tf", Some(&solo("2")))]);
}

fn push_solo(ctx: &Ctx, value: &str) {
    ctx.push("one", &[("solo/main.tf", Some(&solo(value)))]);
}

fn say(ctx: &Ctx, pull: u64, by: &str, text: &str) {
    ctx.sandbox.comment(REPO, pull, by, text).expect("a comment");
}

/// A review of the second in which the plan was shown does not count: forges tell whole seconds.
fn next_second() {
    let second = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
    let before = second();
    while second() == before {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

macro_rules! stories {
    ($($name:ident: $story:expr;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                const STORY: Story = $story;
                holds(stringify!($name), STORY).await;
            }
        )+
    };
}

stories! {
    a_plan_on_open: Story { steps: &[rests(open_solo)], ..SOLO };

    approve_apply_and_merge: Story {
        config: "apply: { merge: auto }\n",
        steps: &[
            rests(open_solo),
            rests(|ctx| say(ctx, 1, LIN, "approve")),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
        ],
        ..SOLO
    };

    a_review_approves_and_the_pull_is_merged_by_hand: Story {
        config: "approval: pr-review\n",
        steps: &[
            rests(open_solo),
            rests(|ctx| {
                next_second();
                ctx.sandbox.review(REPO, 1, LIN, Verdict::Approve, "").expect("a review");
            }),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
            rests(|ctx| drop(ctx.merge(1).expect("it merges"))),
        ],
        ..SOLO
    };

    two_waves_with_a_new_plan_between: Story {
        config: "gate: never\n",
        applied: &["net", "app"],
        steps: &[
            rests(|ctx| {
                ctx.open("range", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
            }),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
        ],
        ..SOLO
    };

    a_second_wave_waits_for_an_approval_of_its_own: Story {
        applied: &["net", "app"],
        steps: &[
            rests(|ctx| {
                ctx.open("range", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
            }),
            rests(|ctx| say(ctx, 1, LIN, "approve wave-1")),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
            rests(|ctx| say(ctx, 1, LIN, "approve wave-2")),
        ],
        ..SOLO
    };

    linked_plans_are_applied_with_one_approval: Story {
        extra: &[("src/main.tf", SRC), ("dst/main.tf", DST)],
        applied: &["src", "dst"],
        steps: &[
            rests(|ctx| {
                ctx.open("name", &[("src/main.tf", Some(&SRC.replace("\"one\"", "\"two\"")))]);
            }),
            rests(|ctx| say(ctx, 1, LIN, "approve")),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
        ],
        ..SOLO
    };

    plans_that_changed_after_the_approval_are_refused: Story {
        steps: &[
            rests(open_solo),
            rests(|ctx| say(ctx, 1, LIN, "approve")),
            rests(|ctx| {
                // Somebody destroyed it meanwhile: the saved plan is stale, and the next creates.
                std::fs::remove_file(ctx.states().join("solo.tfstate")).expect("a state");
                say(ctx, 1, MIRA, "apply");
            }),
            rests(|ctx| say(ctx, 1, LIN, "approve")),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
        ],
        ..SOLO
    };

    a_lock_goes_to_the_next_pull: Story {
        config: "gate: never\nlocks: plan\n",
        pulls: 2,
        steps: &[
            rests(open_solo),
            rests(|ctx| {
                ctx.push("two", &[("solo/main.tf", Some(&solo("3")))]);
                ctx.sandbox.open_pull(REPO, "two", "Change it again", KIM).expect("a pull");
            }),
            rests(|ctx| ctx.sandbox.close(REPO, 1, MIRA).expect("closed")),
        ],
        ..SOLO
    };

    a_failed_apply_and_a_new_plan: Story {
        config: "gate: never\n",
        applied: &[],
        steps: &[
            rests(|ctx| {
                ctx.open("slow", &[("slow/main.tf", Some(FAILS))]);
            }),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
            rests(|ctx| {
                std::fs::write(ctx.states().join("allow"), "").expect("a file");
                say(ctx, 1, MIRA, "plan -d slow");
            }),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
        ],
        ..SOLO
    };

    a_push_and_a_close: Story {
        config: "locks: plan\n",
        steps: &[
            rests(|ctx| {
                open_solo(ctx);
                push_solo(ctx, "3");
            }),
            // At once with the close it would be chance whether this head is ever looked at.
            rests(|ctx| push_solo(ctx, "4")),
            rests(|ctx| ctx.sandbox.close(REPO, 1, MIRA).expect("closed")),
        ],
        ..SOLO
    };

    everything_is_taken_back: Story {
        steps: &[
            rests(open_solo),
            rests(|ctx| say(ctx, 1, KIM, "lock -d solo \"until the audit\"")),
            rests(|ctx| say(ctx, 1, LIN, "approve")),
            rests(|ctx| say(ctx, 1, LIN, "unapprove")),
            rests(|ctx| say(ctx, 1, MIRA, "apply")),
            rests(|ctx| say(ctx, 1, KIM, "cancel")),
            rests(|ctx| say(ctx, 1, KIM, "discard -d solo")),
            rests(|ctx| say(ctx, 1, KIM, "unlock")),
            rests(|ctx| say(ctx, 1, KIM, "status")),
        ],
        ..SOLO
    };

    a_fork_waits_for_a_word: Story {
        steps: &[
            rests(|ctx| {
                ctx.sandbox.set_origin(REPO, "one", Origin::Fork(9001, "stranger".to_owned())).expect("a fork");
                open_solo(ctx);
            }),
            rests(|ctx| say(ctx, 1, KIM, "plan")),
        ],
        ..SOLO
    };

    the_base_moves: Story {
        steps: &[
            rests(open_solo),
            rests(|ctx| drop(ctx.push("main", &[("README.md", Some("# more\n"))]))),
            rests(|ctx| drop(ctx.push("main", &[("solo/more.tf", Some("output \"b\" { value = 1 }\n"))]))),
        ],
        ..SOLO
    };

    a_close_in_mid_plan: Story {
        config: "locks: plan\n",
        steps: &[
            seen(
                |ctx| {
                    shim::order(ctx, "hold-plan", "");
                    open_solo(ctx);
                },
                |ctx| shim::is_held(ctx, "plan"),
            ),
            seen(|ctx| ctx.sandbox.close(REPO, 1, MIRA).expect("closed"), |ctx| {
                ctx.plan_check(1).starts_with("cancelled")
            }),
            rests(|ctx| shim::take_back(ctx, "hold-plan")),
        ],
        ..SOLO
    };

    a_push_in_mid_plan: Story {
        steps: &[
            seen(
                |ctx| {
                    shim::order(ctx, "hold-plan", "");
                    open_solo(ctx);
                },
                |ctx| shim::is_held(ctx, "plan"),
            ),
            seen(|ctx| push_solo(ctx, "3"), |ctx| ctx.plan_check(1) != "none"),
            rests(|ctx| shim::take_back(ctx, "hold-plan")),
        ],
        ..SOLO
    };

    a_push_in_mid_apply: Story {
        steps: &[
            rests(open_solo),
            rests(|ctx| say(ctx, 1, LIN, "approve")),
            seen(
                |ctx| {
                    shim::order(ctx, "hold-apply", "");
                    say(ctx, 1, MIRA, "apply");
                },
                |ctx| shim::is_held(ctx, "apply"),
            ),
            seen(|ctx| push_solo(ctx, "3"), |ctx| ctx.plan_check(1) != "none"),
            rests(|ctx| shim::take_back(ctx, "hold-apply")),
        ],
        ..SOLO
    };
}

const FAILS: &str = r#"terraform {
  backend "local" { path = "$S/slow.tfstate" }
}
resource "terraform_data" "a" { input = "1" }
resource "terraform_data" "b" {
  depends_on = [terraform_data.a]
  provisioner "local-exec" { command = "test -e $S/allow" }
}
"#;

const SRC: &str = r#"terraform {
  backend "local" { path = "$S/src.tfstate" }
}
resource "terraform_data" "a" { input = "one" }
output "name" { value = "one" }
"#;

const DST: &str = r#"terraform {
  backend "local" { path = "$S/dst.tfstate" }
}
data "terraform_remote_state" "src" {
  backend = "local"
  config  = { path = "$S/src.tfstate" }
}
resource "terraform_data" "a" { input = data.terraform_remote_state.src.outputs.name }
"#;
