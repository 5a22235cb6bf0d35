//! Two repositories of one server, one of which reads the other's state: what a change says of the readers, and when they are
//! planned again.

use tidegate::app::index::Index;
use tidegate::app::sweep;
use tidegate::domain::outside::CrossRepo;
use tidegate::sandbox::Role;

use super::{NET, net};
use crate::ctx::{Ctx, KIM, LIN, MIRA};

const WEB: &str = "acme/web";

/// Reads `net`, which another repository owns.
const SITE: &str = r#"terraform {
  backend "local" { path = "$S/site.tfstate" }
}
data "terraform_remote_state" "net" {
  backend = "local"
  config  = { path = "$S/net.tfstate" }
}
resource "terraform_data" "page" { input = data.terraform_remote_state.net.outputs.vpc_id }
"#;

/// `acme/infra` with `net`, applied, and `acme/web` with a reader of it.
async fn two_repositories(say: CrossRepo) -> Ctx {
    let mut ctx = Ctx::with(&[("net/main.tf", NET)]).await;
    ctx.applied_before(&["net"]).await;
    ctx.cross_repo = say;
    ctx.sandbox.create_repo("acme", "web", &[("site/main.tf", &ctx.fill(SITE))]).expect("a repository");
    for (login, role) in [(MIRA, Role::Write), (LIN, Role::Admin), ("tidegate-bot", Role::Admin)] {
        ctx.sandbox.set_role(WEB, login, role).expect("a role");
    }
    ctx.restart().await;
    // The sweep finds repositories that no webhook told of.
    sweep::forges(ctx.app()).await.expect("a sweep");
    Index::default().refresh(ctx.app()).await.expect("the index");
    ctx
}

fn note_of_web(ctx: &Ctx, pull: u64) -> String {
    let comments = ctx.sandbox.comments(WEB, pull).expect("comments");
    let note = comments.into_iter().find(|comment| comment.body.trim_end().ends_with(" note -->"));
    note.expect("a note").body
}

/// A change of `net` and one of its reader; then the first is applied. Gives both notes as they are then.
async fn apply_under_a_reader(ctx: &Ctx) -> (String, String) {
    let more = ctx.fill(&format!("{SITE}resource \"terraform_data\" \"more\" {{ input = \"more\" }}\n"));
    ctx.sandbox.commit(WEB, "more", &[("site/main.tf", Some(more.as_str()))], "More", MIRA).expect("a commit");
    let reader = ctx.sandbox.open_pull(WEB, "more", "More", MIRA).expect("a pull");
    let source = ctx.open("source", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    let note = ctx.note(source).expect("a note");
    ctx.comment(source, LIN, "approve wave-1").await;
    ctx.comment(source, KIM, "apply wave-1").await;
    assert!(ctx.state("net").contains("10.9.0.0/16"), "{:?}", ctx.replies(source));
    (note, note_of_web(ctx, reader))
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_elsewhere_are_counted_and_planned_again_without_a_name() {
    let ctx = two_repositories(CrossRepo::Counts).await;
    let (source, reader) = apply_under_a_reader(&ctx).await;
    let told = "**In other repositories**, 1 root reads its state:\n\n- 1 root reads `net`; may change";
    assert!(source.contains(told), "{source}");
    assert!(!source.contains("acme/web") && !source.contains("site"), "a name of the other repository: {source}");
    let again =
        "**Planned again:** `site`, because a pull of another repository applied a root whose state it reads at ";
    assert!(reader.contains(again) && reader.contains(" UTC and changed output `vpc_id`."), "{reader}");
    assert!(!reader.contains("infra") && !reader.contains(KIM), "a name of the other repository: {reader}");
    assert!(reader.starts_with("### 2 create"), "made on what is there now: {reader}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_elsewhere_are_named_where_the_server_allows_it() {
    let ctx = two_repositories(CrossRepo::Names).await;
    let (source, reader) = apply_under_a_reader(&ctx).await;
    assert!(source.contains("- `site` of `acme/web` reads `net`; may change"), "{source}");
    let again =
        format!("**Planned again:** `site`, because `acme/infra#1` by `@{KIM}` applied `net` of `acme/infra` at ");
    assert!(reader.contains(&again), "{reader}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_to_the_default_branch_moves_the_index() {
    let ctx = two_repositories(CrossRepo::Names).await;
    let branch = |ctx: &Ctx| {
        let store = ctx.app().store.clone();
        async move {
            let all = store.branches_read().await.expect("branches");
            let web = all.into_iter().find(|read| read.repo.name == WEB).expect("web");
            (web.branch, web.tip.map(|tip| tip.to_string()))
        }
    };
    let tip = ctx.sandbox.tip(WEB, "main").expect("a tip");
    assert_eq!(branch(&ctx).await, (Some("main".to_owned()), Some(tip)));
    let alone = ctx.fill(SITE).replace("data.terraform_remote_state.net.outputs.vpc_id", "1");
    let alone = alone.split("data \"").next().expect("a head").to_owned() + "resource \"terraform_data\" \"page\" {}\n";
    ctx.sandbox.commit(WEB, "main", &[("site/main.tf", Some(alone.as_str()))], "Alone", MIRA).expect("a commit");
    ctx.settle().await;
    Index::default().refresh(ctx.app()).await.expect("the index");
    let tip = ctx.sandbox.tip(WEB, "main").expect("a tip");
    assert_eq!(branch(&ctx).await, (Some("main".to_owned()), Some(tip)));
    let source = ctx.open("source", &[("net/main.tf", Some(&net("10.9.0.0/16")))]);
    ctx.settle().await;
    let note = ctx.note(source).expect("a note");
    assert!(!note.contains("In other repositories"), "nobody reads it any more: {note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_matched_across_repositories_when_that_is_off() {
    let ctx = two_repositories(CrossRepo::Off).await;
    let (source, reader) = apply_under_a_reader(&ctx).await;
    assert!(!source.contains("In other repositories"), "{source}");
    assert!(!reader.contains("lanned again"), "{reader}");
}
