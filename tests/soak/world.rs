//! The world of a soak: one repository, its people, and what was done in it. It knows no law.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;
use tidegate::app::sweep;
use tidegate::domain::event::Event;
use tidegate::sandbox::PullState;

use crate::ctx::{Ctx, REPO};
use crate::peril::{Peril, Trouble};
use crate::{act, laws};

/// What a repository may ask for; the gate decides what the laws of approval say.
const CONFIGS: [&str; 6] = [
    "",
    "locks: plan\n",
    "gate: never\napply: { merge: auto }\n",
    "gate: on-destructive\nlocks: plan\napply: { merge: auto }\n",
    "approval: pr-review\n",
    "waves: { jobs: 1 }\nlocks: plan\n",
];

/// The roots, each with the one whose state it reads.
pub const ROOTS: [(&str, Option<&str>); 4] = [("net", None), ("app", Some("net")), ("db", None), ("solo", None)];

/// Everything.
pub struct World {
    pub ctx: Ctx,
    pub peril: Arc<Peril>,
    pub rng: StdRng,
    pub config: &'static str,
    /// Heads that a pull ever had.
    pub heads: BTreeMap<u64, BTreeSet<String>>,
    /// Commands: comment, its pull, by whom, its text.
    pub commands: Vec<(u64, u64, &'static str, String)>,
    /// Values given so far: each is new.
    pub values: u64,
    pub restarts: usize,
    pub kills: usize,
    pub story: Vec<String>,
    steps: usize,
}

/// What a job's end is hunted for with.
pub enum Hunt {
    /// No job dies.
    Nothing,
    /// The first that is seen.
    FirstJob,
}

/// The files of a root: its value, and a line in a log for each run of its apply.
pub fn root(name: &str, reads: Option<&str>, value: &str) -> String {
    let read = reads.map_or(String::new(), |source| {
        format!(
            "data \"terraform_remote_state\" \"s\" {{\n  backend = \"local\"\n  config  = {{ path = \"$S/{source}.tfstate\" }}\n}}\n"
        )
    });
    let input = reads.map_or("\"\"", |_| "data.terraform_remote_state.s.outputs.id");
    format!(
        r#"terraform {{
  backend "local" {{ path = "$S/{name}.tfstate" }}
}}
{read}resource "terraform_data" "a" {{
  input            = "{value}"
  triggers_replace = ["{value}", {input}]
  provisioner "local-exec" {{ command = "echo {name} $(pwd) >> $S/applied.log; test ! -e $S/broken-{name}" }}
}}
output "id" {{ value = terraform_data.a.id }}
"#
    )
}

impl World {
    pub async fn new(mut rng: StdRng) -> Self {
        let config = CONFIGS[rng.random_range(0..CONFIGS.len())];
        let paths: Vec<(String, String)> =
            ROOTS.iter().map(|(name, reads)| (format!("{name}/main.tf"), root(name, *reads, "0"))).collect();
        let mut files: Vec<(&str, &str)> = paths.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push(("README.md", "# estate\n"));
        if !config.is_empty() {
            files.push((".tidegate.yaml", config));
        }
        let peril = Peril::new(Trouble::Nothing);
        let ctx = Ctx::decorated_in(&files, BTreeMap::new(), peril.decorate()).await;
        ctx.applied_before(&["net", "app", "db", "solo"]).await;
        std::fs::remove_file(ctx.states().join("applied.log")).expect("a log");
        let story = vec![format!("config: {config:?}")];
        Self {
            ctx,
            peril,
            rng,
            config,
            heads: BTreeMap::new(),
            commands: Vec::new(),
            values: 0,
            restarts: 0,
            kills: 0,
            story,
            steps: 0,
        }
    }

    /// Some things at once, rest, and the laws.
    pub async fn step(&mut self) {
        self.steps += 1;
        self.story.push(format!("--- step {}", self.steps));
        let hunt = act::trouble(self);
        for _ in 0..self.rng.random_range(1..=4) {
            act::one(self).await;
        }
        self.remember_heads();
        self.rest(hunt).await;
        self.peril.life().dies_in(None);
        // What no webhook told is found by the next sweeps: the first sees heads, the second what was said below them.
        for _ in 0..2 {
            sweep::forges(self.ctx.app()).await.expect("a sweep");
            sweep::locks(self.ctx.app()).await.expect("a sweep");
            self.rest(Hunt::Nothing).await;
        }
        self.remember_heads();
        let mut broken = laws::broken(self).await;
        if broken.is_empty() && self.steps.is_multiple_of(4) {
            broken = self.repeats().await;
        }
        assert!(broken.is_empty(), "{}\n\nbroken:\n{}", self.told(), broken.join("\n"));
    }

    /// A look that shows nothing new changes nothing.
    async fn repeats(&mut self) -> Vec<String> {
        let before = laws::shown(self);
        let pulls = self.ctx.app().store.pulls().await.expect("pulls");
        let looks: Vec<_> = pulls.iter().map(|pull| (pull.key.clone(), Event::Look(pull.repo.clone()))).collect();
        let app = self.ctx.app();
        app.store.enqueue(&looks, app.clock.now()).await.expect("queued");
        self.rest(Hunt::Nothing).await;
        let after = laws::shown(self);
        let changed = before.iter().zip(&after).filter(|(before, after)| before != after);
        let mut broken: Vec<String> =
            changed.map(|(before, after)| format!("a look changed\n{before}\ninto\n{after}")).collect();
        if before.len() != after.len() {
            broken.push(format!("a look brought {} things more", after.len() - before.len()));
        }
        broken
    }

    async fn rest(&mut self, mut hunt: Hunt) {
        loop {
            let life = self.peril.life();
            let jobs = self.ctx.data_dir().join("jobs");
            let died = tokio::select! {
                biased;
                () = life.died() => true,
                killed = kill_a_job(&jobs), if matches!(hunt, Hunt::FirstJob) => {
                    self.story.push(format!("killed job {killed}"));
                    self.kills += 1;
                    hunt = Hunt::Nothing;
                    continue;
                }
                () = self.ctx.settle() => false,
            };
            if !died {
                return;
            }
            self.story.push("the server died and came back".to_owned());
            self.restarts += 1;
            self.ctx.restart().await;
        }
    }

    fn remember_heads(&mut self) {
        for number in 1.. {
            let Ok(pull) = self.ctx.sandbox.pull(REPO, number) else { return };
            self.heads.entry(number).or_default().insert(pull.head_sha);
        }
    }

    /// Numbers of pulls that are open, or not.
    pub fn pulls(&self, wanted: impl Fn(PullState) -> bool) -> Vec<u64> {
        (1..)
            .map_while(|number| self.ctx.sandbox.pull(REPO, number).ok())
            .filter(|pull| wanted(pull.state))
            .map(|pull| pull.number)
            .collect()
    }

    pub fn told(&self) -> String {
        self.story.join("\n")
    }

    pub fn sum(&self) -> String {
        let applied =
            std::fs::read_to_string(self.ctx.states().join("applied.log")).unwrap_or_default().lines().count();
        format!(
            "{:?}: {} pulls, {} commands, {applied} applies, {} restarts, {} jobs killed; said:{}",
            self.config,
            self.heads.len(),
            self.commands.len(),
            self.restarts,
            self.kills,
            self.said()
        )
    }

    /// How our comments begin, and how many of them: what a soak came to.
    fn said(&self) -> String {
        let mut each: BTreeMap<String, usize> = BTreeMap::new();
        for number in self.heads.keys() {
            for comment in self.ctx.sandbox.comments(REPO, *number).expect("comments") {
                if comment.author.starts_with("tidegate") {
                    let begin: String = comment.body.lines().find(|line| !line.is_empty()).unwrap_or_default().into();
                    *each.entry(begin.chars().take(90).collect()).or_default() += 1;
                }
            }
        }
        each.iter().map(|(begin, times)| format!("\n    {times} × {begin}")).collect()
    }
}

/// Kills the first job that is seen, and nothing but the job: its tool is another process group, which goes on.
async fn kill_a_job(dir: &PathBuf) -> String {
    loop {
        for entry in std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            let Some(text) =
                path.extension().filter(|it| *it == "pid").and_then(|_| std::fs::read_to_string(&path).ok())
            else {
                continue;
            };
            let pid = text.split(' ').next().and_then(|pid| pid.parse().ok());
            let Some(pid) = pid.map(nix::unistd::Pid::from_raw) else { continue };
            if nix::sys::signal::killpg(pid, nix::sys::signal::Signal::SIGKILL).is_ok() {
                return entry.file_name().to_string_lossy().into_owned();
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
}
