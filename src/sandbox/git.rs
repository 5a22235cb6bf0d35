//! One bare repository, through the `git` program. Knows nothing of pulls, users or the network,
//! and never reads the machine's own git configuration.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::refusal::{Answer, Refusal};

pub mod diff;
pub mod log;
mod rebase;

/// A bare repository on disk.
#[derive(Clone, Debug)]
pub struct Git {
    dir: PathBuf,
}

/// Who writes a commit, and when.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The name.
    pub name: String,
    /// The address by which the forge finds the user.
    pub email: String,
    /// Seconds since 1970.
    pub seconds: i64,
}

/// What trying a merge gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The tree of the merge result.
    Tree(String),
    /// The two sides change the same thing.
    Conflict,
}

/// A `git` command that reads no configuration but the repository's.
pub fn command(program_args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(program_args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE");
    command
}

/// Runs to the end, feeding `stdin` from a second thread so that neither side waits for the other.
pub fn feed(mut command: Command, stdin: &[u8]) -> std::io::Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pipe = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(mut pipe) = pipe {
                // A child that stops reading early says why in its exit code.
                pipe.write_all(stdin).ok();
            }
        });
        child.wait_with_output()
    })
}

impl Git {
    /// Makes an empty bare repository whose default branch is `main`.
    pub fn create(dir: &Path) -> Answer<Self> {
        let git = Self { dir: dir.to_path_buf() };
        let path = dir.to_string_lossy();
        let made = feed(command(&["init", "-q", "--bare", "-b", "main", &path]), b"").map_err(broken)?;
        if !made.status.success() {
            return Err(Refusal::new(500, String::from_utf8_lossy(&made.stderr)));
        }
        let settings = "[uploadpack]\n\tallowAnySHA1InWant = true\n\tallowFilter = true\n\
            [receive]\n\thideRefs = refs/pull\n\tautogc = false\n[http]\n\treceivepack = true\n[gc]\n\tauto = 0\n";
        let file = dir.join("config");
        let old = std::fs::read_to_string(&file).map_err(broken)?;
        std::fs::write(&file, format!("{old}{settings}")).map_err(broken)?;
        Ok(git)
    }

    /// Where it lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs one git command, whatever its exit code.
    pub fn output(&self, args: &[&str], stdin: &[u8]) -> Answer<Output> {
        let mut command = command(args);
        command.current_dir(&self.dir);
        feed(command, stdin).map_err(broken)
    }

    /// Runs one git command that must succeed, and gives what it prints.
    pub fn run(&self, args: &[&str], stdin: &[u8]) -> Answer<Vec<u8>> {
        let output = self.output(args, stdin)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(Refusal::new(500, format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim())))
    }

    fn line(&self, args: &[&str]) -> Answer<String> {
        Ok(String::from_utf8_lossy(&self.run(args, b"")?).trim().to_owned())
    }

    /// All branches with their tips.
    pub fn branches(&self) -> Answer<BTreeMap<String, String>> {
        let text = self.line(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"])?;
        let pairs = text.lines().filter_map(|line| line.split_once(" refs/heads/"));
        Ok(pairs.map(|(sha, name)| (name.to_owned(), sha.to_owned())).collect())
    }

    /// Every ref at or below a name, with its object.
    pub fn refs(&self, below: &str) -> Answer<BTreeMap<String, String>> {
        let text = self.line(&["for-each-ref", "--format=%(objectname) %(refname)", "--", below])?;
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs.map(|(sha, name)| (name.to_owned(), sha.to_owned())).collect())
    }

    /// The commit that a branch, tag, ref or (short) id names.
    pub fn resolve(&self, name: &str) -> Option<String> {
        if name.starts_with('-') || name.is_empty() {
            return None;
        }
        let tries = [format!("refs/heads/{name}"), format!("refs/{name}"), name.to_owned()];
        tries.iter().find_map(|rev| {
            let rev = format!("{rev}^{{commit}}");
            let out = self.output(&["rev-parse", "-q", "--verify", &rev], b"").ok()?;
            out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
        })
    }

    /// Moves or creates a ref.
    pub fn point(&self, name: &str, sha: &str) -> Answer<()> {
        self.run(&["update-ref", name, sha], b"").map(drop)
    }

    /// Deletes a ref; deleting what is not there is no error.
    pub fn unpoint(&self, name: &str) -> Answer<()> {
        self.run(&["update-ref", "-d", name], b"").map(drop)
    }

    /// Writes files on top of `parent` and moves `branch` to the new commit. `None` deletes the file.
    pub fn commit(
        &self,
        branch: &str,
        parent: Option<&str>,
        files: &[(&str, Option<&[u8]>)],
        message: &str,
        by: &Signature,
    ) -> Answer<String> {
        let mut script = Vec::new();
        let head = format!(
            "commit refs/heads/{branch}\ncommitter {} <{}> {} +0000\ndata {}\n{message}\n",
            by.name,
            by.email,
            by.seconds,
            message.len()
        );
        script.extend_from_slice(head.as_bytes());
        if let Some(parent) = parent {
            script.extend_from_slice(format!("from {parent}\n").as_bytes());
        }
        for (path, contents) in files {
            match contents {
                Some(bytes) => {
                    script.extend_from_slice(format!("M 100644 inline {path}\ndata {}\n", bytes.len()).as_bytes());
                    script.extend_from_slice(bytes);
                    script.push(b'\n');
                }
                None => script.extend_from_slice(format!("D {path}\n").as_bytes()),
            }
        }
        script.extend_from_slice(b"done\n");
        self.run(&["fast-import", "--quiet", "--done"], &script)?;
        self.line(&["rev-parse", &format!("refs/heads/{branch}")])
    }

    /// Tries to merge `head` into `base`.
    pub fn try_merge(&self, base: &str, head: &str) -> Answer<Merged> {
        let out = self.output(&["merge-tree", "--write-tree", "--no-messages", base, head], b"")?;
        match out.status.code() {
            Some(0) => Ok(Merged::Tree(String::from_utf8_lossy(&out.stdout).trim().to_owned())),
            Some(1) => Ok(Merged::Conflict),
            _ => Err(Refusal::new(500, String::from_utf8_lossy(&out.stderr))),
        }
    }

    /// Writes a commit object of a tree.
    pub fn commit_tree(&self, tree: &str, parents: &[&str], message: &str, by: &Signature) -> Answer<String> {
        let mut args = vec!["commit-tree", tree];
        for parent in parents {
            args.extend(["-p", parent]);
        }
        let mut command = command(&args);
        let date = format!("{} +0000", by.seconds);
        command.current_dir(&self.dir);
        for (name, value) in [("NAME", &by.name), ("EMAIL", &by.email), ("DATE", &date)] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        let out = feed(command, message.as_bytes()).map_err(broken)?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned());
        }
        Err(Refusal::new(500, String::from_utf8_lossy(&out.stderr)))
    }

    /// Whether `old` is in the history of `new`.
    pub fn contains(&self, new: &str, old: &str) -> Answer<bool> {
        Ok(self.output(&["merge-base", "--is-ancestor", old, new], b"")?.status.success())
    }

    /// The newest common commit; unrelated histories have none.
    pub fn merge_base(&self, one: &str, other: &str) -> Option<String> {
        let out = self.output(&["merge-base", one, other], b"").ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// Mode, kind and id of one path of a commit, and its bytes when it is a file.
    pub fn read(&self, commit: &str, path: &str) -> Option<Vec<u8>> {
        let out = self.output(&["cat-file", "blob", &format!("{commit}:{path}")], b"").ok()?;
        out.status.success().then_some(out.stdout)
    }

    /// The entries of a directory of a commit: kind, id, size and path.
    pub fn list(&self, commit: &str, path: &str) -> Answer<Vec<Entry>> {
        let spec = if path.is_empty() { commit.to_owned() } else { format!("{commit}:{path}") };
        let out = self.output(&["ls-tree", "-z", "-l", &spec], b"")?;
        if !out.status.success() {
            return Err(Refusal::not_found());
        }
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        Ok(text.split('\0').filter_map(|line| Entry::read(line, path)).collect())
    }
}

/// One row of a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// `file`, `dir`, `symlink` or `submodule`.
    pub kind: &'static str,
    /// The object's id.
    pub sha: String,
    /// Bytes, zero for a directory.
    pub size: u64,
    /// Its path from the top.
    pub path: String,
}

impl Entry {
    /// Reads one line of `ls-tree -z -l`.
    pub fn read(line: &str, parent: &str) -> Option<Self> {
        let (meta, name) = line.split_once('\t')?;
        let mut words = meta.split_whitespace();
        let (mode, _, sha, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let kind = match mode {
            "040000" => "dir",
            "120000" => "symlink",
            "160000" => "submodule",
            _ => "file",
        };
        let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        Some(Self { kind, sha: sha.to_owned(), size: size.parse().unwrap_or(0), path })
    }
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used as map_err's function")]
fn broken(error: std::io::Error) -> Refusal {
    Refusal::new(500, format!("git could not run: {error}"))
}
