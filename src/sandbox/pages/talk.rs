//! The conversation and the checks of a pull as its page lists them. Never writes HTML but through `markdown`.

use super::markdown;
use super::view::{ago, hue};
use crate::sandbox::shape::check::newest;
use crate::sandbox::world::{BOT, CheckRun, Pull, Reaction, Repo};

/// One thing in the conversation.
pub struct Item {
    pub(super) place: u64,
    pub(super) kind: &'static str,
    pub(super) author: String,
    pub(super) bot: bool,
    pub(super) hue: u32,
    pub(super) when: String,
    pub(super) at: String,
    pub(super) text: String,
    pub(super) html: String,
    pub(super) reactions: Vec<(&'static str, usize, String)>,
    pub(super) minimized: Option<String>,
}

impl Item {
    fn new(place: u64, kind: &'static str, author: &str, at: &str) -> Self {
        Self {
            place,
            kind,
            author: author.strip_suffix("[bot]").unwrap_or(author).to_owned(),
            bot: author == BOT,
            hue: hue(author),
            when: ago(at),
            at: at.to_owned(),
            text: String::new(),
            html: String::new(),
            reactions: Vec::new(),
            minimized: None,
        }
    }
    /// The letter on its picture.
    pub(super) fn letter(&self) -> String {
        self.author.chars().take(1).collect::<String>().to_uppercase()
    }
}

fn reactions(all: &[Reaction]) -> Vec<(&'static str, usize, String)> {
    let signs = [
        ("+1", "👍"),
        ("-1", "👎"),
        ("laugh", "😄"),
        ("confused", "😕"),
        ("heart", "❤️"),
        ("hooray", "🎉"),
        ("rocket", "🚀"),
        ("eyes", "👀"),
    ];
    let of = |(content, sign): (&str, &'static str)| {
        let who: Vec<&str> = all.iter().filter(|one| one.content == content).map(|one| one.login.as_str()).collect();
        (sign, who.len(), who.join(", "))
    };
    signs.into_iter().map(of).filter(|(_, count, _)| *count > 0).collect()
}

/// One line of the merge box.
pub struct Check {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) title: String,
    pub(super) link: String,
    pub(super) required: bool,
}

/// Everything that was said and done, in order.
pub(super) fn conversation(repo: &Repo, pull: &Pull) -> Vec<Item> {
    let mut first = Item::new(pull.id, "comment", &pull.author, &pull.created_at);
    first.html = pull
        .body
        .as_deref()
        .map_or_else(|| "<p class=\"quiet\">No description provided.</p>".to_owned(), markdown::render);
    let mut items = vec![first];
    for comment in repo.comments.iter().filter(|comment| comment.number == pull.number) {
        let mut item = Item::new(comment.id, "comment", &comment.author, &comment.created_at);
        item.html = markdown::render(&comment.body);
        item.reactions = reactions(&comment.reactions);
        item.minimized.clone_from(&comment.minimized);
        if comment.updated_at != comment.created_at {
            item.text = "edited".into();
        }
        items.push(item);
    }
    for review in pull.reviews.iter().filter(|review| review.state != "PENDING") {
        let (kind, text) = match review.state.as_str() {
            "APPROVED" => ("approved", "approved these changes"),
            "CHANGES_REQUESTED" => ("rejected", "requested changes"),
            "DISMISSED" => ("event", "reviewed; the review was dismissed"),
            _ => ("event", "reviewed"),
        };
        let mut item = Item::new(review.id, kind, &review.author, &review.at);
        item.text = text.into();
        if !review.body.is_empty() {
            item.html = markdown::render(&review.body);
        }
        items.push(item);
    }
    for event in &pull.happenings {
        let kind = if event.text.starts_with("merged") { "merged" } else { "event" };
        let mut item = Item::new(event.after, kind, &event.login, &event.at);
        item.text.clone_from(&event.text);
        items.push(item);
    }
    items.sort_by_key(|item| item.place);
    items
}

/// How a run stands, as a class of the style sheet.
pub(super) fn kind_of(run: &CheckRun) -> &'static str {
    match run.conclusion.as_deref() {
        Some("success") => "good",
        Some("neutral" | "skipped") => "skip",
        Some(_) => "bad",
        None => "wait",
    }
}

/// The lines of the merge box.
pub(super) fn checks(repo: &Repo, pull: &Pull) -> Vec<Check> {
    let required = repo.protections.get(&pull.base).map(|rule| rule.checks.clone()).unwrap_or_default();
    let mut shown: Vec<Check> = Vec::new();
    for run in repo.runs.iter().rev().filter(|run| run.sha == pull.head_sha) {
        if shown.iter().all(|check| check.name != run.name) {
            shown.push(Check {
                name: run.name.clone(),
                kind: kind_of(run),
                title: run.output[0]
                    .clone()
                    .unwrap_or_else(|| run.conclusion.clone().unwrap_or_else(|| run.status.clone())),
                link: web(run.details_url.as_deref())
                    .unwrap_or_else(|| format!("/{}/runs/{}", repo.full_name(), run.id)),
                required: required.contains(&run.name),
            });
        }
    }
    for status in newest(repo, &pull.head_sha) {
        let kind = match status.state.as_str() {
            "success" => "good",
            "pending" => "wait",
            _ => "bad",
        };
        shown.push(Check {
            name: status.context.clone(),
            kind,
            title: status.description.clone().unwrap_or_else(|| status.state.clone()),
            link: web(status.target_url.as_deref()).unwrap_or_default(),
            required: required.contains(&status.context),
        });
    }
    for name in required {
        if shown.iter().all(|check| check.name != name) {
            let title = "Expected, waiting for it to be reported".into();
            shown.push(Check { name, kind: "wait", title, link: String::new(), required: true });
        }
    }
    shown.sort_by(|one, other| one.name.cmp(&other.name));
    shown
}

/// A link only when it leads to a web page.
fn web(link: Option<&str>) -> Option<String> {
    link.filter(|link| link.starts_with("http://") || link.starts_with("https://")).map(str::to_owned)
}
