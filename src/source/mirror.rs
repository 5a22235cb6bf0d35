//! A bare mirror of one repository: made whole or not at all, fetched by one caller at a time, never
//! pruned. It reads no tree.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::Mutex;

use super::git::{Git, last_words};
use crate::domain::ids::{RepoKey, Sha};
use crate::ports::forge::GitAccess;
use crate::ports::source::{SourceError, Wanted};

const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// So many packs are joined into fewer.
const PACKS: usize = 20;

/// One mirror on disk.
#[derive(Debug)]
pub(super) struct Mirror {
    path: PathBuf,
    /// Held while the mirror is made or fetched; says whether it is known to be in order.
    tended: Mutex<bool>,
}

impl Mirror {
    /// The mirror of `repo` under `dir`. Nothing is made yet.
    pub(super) fn new(dir: &Path, repo: &RepoKey) -> Self {
        let path = dir.join("mirrors").join(format!("{}-{}.git", hex::encode(&repo.forge), repo.id));
        Self { path, tended: Mutex::new(false) }
    }

    /// A git command in it.
    pub(super) fn git(&self, args: &[&str]) -> Git {
        Git::new(&self.path, args)
    }

    /// Has head and base: from disk if both are known to be there, else from the forge. Returns the base's tip.
    pub(super) async fn fetch(
        &self,
        access: &GitAccess,
        wanted: &Wanted,
        known_base: Option<&Sha>,
    ) -> Result<Sha, SourceError> {
        check_id(&wanted.head)?;
        check_branch(&wanted.base_ref)?;
        let mut tended = self.tended.lock().await;
        self.tend_once(&mut tended).await?;
        if let Some(base) = known_base {
            check_id(base)?;
            if self.has(&[&wanted.head, base]).await? {
                return Ok(base.clone());
            }
        }
        // Until this ends well, the next caller looks for what a git that was killed left.
        *tended = false;
        let tip = self.ask_forge(access, wanted).await?;
        *tended = true;
        Ok(tip)
    }

    /// The default branch and its tip, fetched when it is not there.
    pub(super) async fn default_branch(&self, access: &GitAccess) -> Result<(String, Sha), SourceError> {
        let mut tended = self.tended.lock().await;
        self.tend_once(&mut tended).await?;
        let ask = self.git(&["ls-remote", "--symref", "--", access.url.as_str(), "HEAD"]);
        let ran = ask.authorized(access.authorization.as_ref()).limit(FETCH_LIMIT).run().await?;
        if !ran.status.success() {
            return Err(SourceError::Unavailable(format!("git ls-remote: {}", last_words(&ran.err))));
        }
        let (branch, tip) = head_of(&String::from_utf8_lossy(&ran.out)).ok_or(SourceError::Gone("HEAD".to_owned()))?;
        check_branch(&branch)?;
        check_id(&tip)?;
        if self.has(&[&tip]).await? {
            return Ok((branch, tip));
        }
        *tended = false;
        let kept = format!("refs/tidegate/base/{}", hex::encode(&branch));
        self.pull_in(access, &[&format!("+refs/heads/{branch}:{kept}")]).await?;
        let tip = self.git(&["rev-parse", "--verify", &format!("{kept}^{{commit}}")]).output().await?;
        *tended = true;
        Ok((branch, Sha::new(String::from_utf8_lossy(&tip).trim())))
    }

    async fn tend_once(&self, tended: &mut bool) -> Result<(), SourceError> {
        if !*tended {
            self.tend().await?;
            *tended = true;
        }
        Ok(())
    }

    async fn ask_forge(&self, access: &GitAccess, wanted: &Wanted) -> Result<Sha, SourceError> {
        let kept = format!("refs/tidegate/base/{}", hex::encode(&wanted.base_ref));
        let pull = format!("+refs/pull/{0}/head:refs/tidegate/pull/{0}", wanted.pull);
        self.pull_in(access, &[&pull, &format!("+refs/heads/{}:{kept}", wanted.base_ref)]).await?;
        if !self.has(&[&wanted.head]).await? {
            self.fetch_gone_head(access, &wanted.head).await?;
        }
        self.join_packs().await?;
        let tip = self.git(&["rev-parse", "--verify", &format!("{kept}^{{commit}}")]).output().await?;
        Ok(Sha::new(String::from_utf8_lossy(&tip).trim()))
    }

    /// A head that its pull no longer has may still be on the forge.
    async fn fetch_gone_head(&self, access: &GitAccess, head: &Sha) -> Result<(), SourceError> {
        let by_id = format!("+{head}:refs/tidegate/head/{head}");
        match self.pull_in(access, &[&by_id]).await {
            Ok(()) if self.has(&[head]).await? => Ok(()),
            Err(SourceError::Unavailable(why)) if !is_refusal(&why) => Err(SourceError::Unavailable(why)),
            _ => Err(SourceError::Gone(head.to_string())),
        }
    }

    async fn pull_in(&self, access: &GitAccess, refs: &[&str]) -> Result<(), SourceError> {
        let mut args = vec!["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", access.url.as_str()];
        args.extend(refs);
        let ran = self.git(&args).authorized(access.authorization.as_ref()).limit(FETCH_LIMIT).run().await?;
        if ran.status.success() {
            return Ok(());
        }
        if let Some(at) = ran.err.find("couldn't find remote ref ") {
            let name = ran.err[at..].lines().next().and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
            return Err(SourceError::Gone(name.to_owned()));
        }
        Err(SourceError::Unavailable(format!("git fetch: {}", last_words(&ran.err))))
    }

    /// Whether all of these are commits of the mirror. A commit that is there is there whole (see `fetch.unpackLimit`).
    async fn has(&self, commits: &[&Sha]) -> Result<bool, SourceError> {
        let input: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let out = self.git(&["cat-file", "--batch-check=%(objecttype)"]).input(input.into_bytes()).output().await?;
        Ok(out.split(|byte| *byte == b'\n').filter(|line| *line == b"commit").count() == commits.len())
    }

    /// Once per process and after a failure: makes the mirror, or takes away the lock files that a killed git left in it. Only this
    /// process writes here.
    async fn tend(&self) -> Result<(), SourceError> {
        if self.path.join("HEAD").is_file() {
            let refs = self.path.join("refs");
            let top = self.path.clone();
            return tokio::task::spawn_blocking(move || {
                remove_locks(&refs, Depth::All).and_then(|()| remove_locks(&top, Depth::Top))
            })
            .await
            .map_err(|error| SourceError::Broken(error.to_string()))?
            .map_err(|error| disk(&error));
        }
        self.make().await
    }

    async fn make(&self) -> Result<(), SourceError> {
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        tokio::fs::create_dir_all(parent).await.map_err(|error| disk(&error))?;
        let fresh = tempfile::Builder::new().prefix(".new-").tempdir_in(parent).map_err(|error| disk(&error))?;
        let made = fresh.path().join("mirror.git");
        Git::new(&made, &["init", "--quiet", "--bare", "--template="]).output().await?;
        // What a job gets is the tree, not what its attributes would export of it.
        tokio::fs::create_dir_all(made.join("info")).await.map_err(|error| disk(&error))?;
        let attributes = "* -export-ignore -export-subst\n";
        tokio::fs::write(made.join("info/attributes"), attributes).await.map_err(|error| disk(&error))?;
        // What stands there without a HEAD is no repository: a copy that was cut off.
        let _ = tokio::fs::remove_dir_all(&self.path).await;
        tokio::fs::rename(&made, &self.path).await.map_err(|error| disk(&error))
    }

    /// Each fetch leaves a pack; too many make every read slow. This keeps all objects, also those without a ref.
    async fn join_packs(&self) -> Result<(), SourceError> {
        let mut packs = 0;
        let Ok(mut entries) = tokio::fs::read_dir(self.path.join("objects/pack")).await else { return Ok(()) };
        while let Some(entry) = entries.next_entry().await.map_err(|error| disk(&error))? {
            packs += usize::from(entry.path().extension().is_some_and(|end| end == "pack"));
        }
        if packs <= PACKS {
            return Ok(());
        }
        let repack = self.git(&["repack", "-d", "-q", "--geometric=2"]).limit(FETCH_LIMIT).run().await?;
        if !repack.status.success() {
            tracing::warn!(why = last_words(&repack.err), "packs of a mirror could not be joined");
        }
        Ok(())
    }
}

/// How deep to look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    All,
}

fn remove_locks(dir: &Path, depth: Depth) -> std::io::Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if depth == Depth::All {
                remove_locks(&path, depth)?;
            }
        } else if path.extension().is_some_and(|end| end == "lock") {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Branch and commit of the lines `ref: refs/heads/BRANCH<tab>HEAD` and `COMMIT<tab>HEAD`.
fn head_of(lines: &str) -> Option<(String, Sha)> {
    let named = |line: &str| line.strip_suffix("\tHEAD").map(str::to_owned);
    let lines: Vec<String> = lines.lines().filter_map(named).collect();
    let branch = lines.iter().find_map(|line| line.strip_prefix("ref: refs/heads/"))?;
    let tip = lines.iter().find(|line| !line.starts_with("ref: "))?;
    Some((branch.to_owned(), Sha::new(tip.as_str())))
}

/// The forge answered, and will not give that commit.
fn is_refusal(why: &str) -> bool {
    ["not our ref", "unadvertised object", "couldn't find remote ref"].iter().any(|words| why.contains(words))
}

/// An object id and nothing that git could take for an option or a revision expression.
pub(super) fn check_id(id: &Sha) -> Result<(), SourceError> {
    let text = id.as_str();
    if matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(())
    } else {
        Err(SourceError::Broken(format!("`{text}` is no object id")))
    }
}

/// A branch name that means itself in a refspec.
fn check_branch(name: &str) -> Result<(), SourceError> {
    let odd = |byte: u8| byte <= b' ' || byte == 0x7f || b":?*[\\^~".contains(&byte);
    if name.is_empty() || name.contains("..") || name.bytes().any(odd) {
        return Err(SourceError::Broken(format!("`{name}` is no branch name")));
    }
    Ok(())
}

pub(super) fn disk(error: &std::io::Error) -> SourceError {
    SourceError::Unavailable(format!("the mirror's disk: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_branch_is_where_head_points() {
        let sha = "a".repeat(40);
        let said = format!("ref: refs/heads/release/1.x\tHEAD\n{sha}\tHEAD\n");
        assert_eq!(head_of(&said), Some(("release/1.x".to_owned(), Sha::new(sha.clone()))));
        for none in ["", &format!("{sha}\tHEAD\n"), "ref: refs/heads/main\tHEAD\n"] {
            assert_eq!(head_of(none), None, "{none:?}");
        }
    }

    #[test]
    fn only_plain_names_reach_git() {
        for good in ["main", "release/1.x", "-odd", "ünï"] {
            assert!(check_branch(good).is_ok(), "{good}");
        }
        for bad in ["", "a:b", "a*", "a b", "a..b", "a^", "a\nb", "a~1"] {
            assert!(check_branch(bad).is_err(), "{bad:?}");
        }
        assert!(check_id(&Sha::new("a".repeat(40))).is_ok());
        for bad in ["", "HEAD", "--help", &"g".repeat(40), &"a".repeat(39)] {
            assert!(check_id(&Sha::new(bad)).is_err(), "{bad:?}");
        }
    }
}
