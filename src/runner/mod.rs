//! What runs inside a job: claim, check out, run the tool, report. It knows the server only by a URL and a token that
//! open this one job, never kills an apply, and never sends the tool a second interrupt.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use secrecy::SecretString;

use crate::domain::job::{JobResult, JobSpec, Phase, StateLeft, VERSION};
use crate::domain::secret::Secrets;

mod apply;
mod checkout;
mod declared;
mod disk;
mod environment;
mod failure;
mod limits;
mod linked;
pub mod local;
mod locked;
mod packages;
mod plan;
mod process;
mod program;
mod release;
mod report;
mod saved;
mod server;
mod stop;
mod tool;
mod work;

pub use program::find_program;

use failure::{Broken, failure};
use limits::Limits;
use report::Reporter;
use server::{Answer, Server};
use stop::Stop;

/// Why a job could not even say how it ended.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The server cannot be reached, or refuses what we report.
    #[error("the server does not take this job's report: {0}")]
    Server(String),
    /// This process cannot work at all.
    #[error("this job cannot run: {0}")]
    Broken(String),
}

/// The variable that names the tools directory.
const TOOLS: &str = "TIDEGATE_JOB_TOOLS";
/// The variable that names the store of provider packages.
const PACKAGES: &str = "TIDEGATE_JOB_PROVIDERS";

/// What a job works with.
struct Job {
    spec: JobSpec,
    server: Server,
    reporter: Reporter,
    stop: Stop,
    environment: BTreeMap<String, String>,
    /// Where further versions of the tools lie.
    tools: Option<PathBuf>,
    limits: Limits,
    /// Where versions that do not lie there come from.
    releases: release::Releases,
    /// Milliseconds since 1970.
    began: i64,
    /// Where provider packages are kept for all jobs of this machine.
    packages: Option<PathBuf>,
    directory: PathBuf,
    /// Whether the directory must outlive the job.
    keeps: AtomicBool,
}

/// Runs the job behind `url` to its end. `Ok` when its result was taken, or when the job is another process's.
pub async fn run(url: &str, token: SecretString, environment: BTreeMap<String, String>) -> Result<(), RunnerError> {
    let server = Server::new(url, token)?;
    // Before the claim, so that no signal ends a job that is claimed.
    let stop = Stop::listen();
    let claimed = tokio::select! {
        claimed = server.claim() => claimed?,
        () = stop.wanted() => None,
    };
    let Some(spec) = claimed else { return Ok(()) };
    let server = server.for_phase(spec.phase);
    let reporter = Reporter::start(server.clone(), stop.clone(), spec.phase);
    let mut secrets = Secrets::default();
    environment::add_secrets(&environment, &mut secrets);
    let result = match work::directory(&environment, &spec.id) {
        Ok(directory) => {
            let job = Job {
                environment: environment::scrub(&environment, &spec),
                limits: Limits::of(&environment),
                began: limits::now(),
                releases: release::Releases::of(&environment),
                tools: environment.get(TOOLS).map(PathBuf::from),
                packages: environment.get(PACKAGES).map(PathBuf::from),
                directory: directory.path().to_owned(),
                server: server.clone(),
                reporter: reporter.clone(),
                stop: stop.clone(),
                keeps: AtomicBool::new(false),
                spec,
            };
            let clock = (job.spec.phase == Phase::Plan).then(|| limits::watch(&job));
            let result = work(&job, &mut secrets).await;
            if let Some(clock) = clock {
                clock.abort();
            }
            if job.keeps.load(Ordering::SeqCst) {
                // It holds the only copy of a state.
                let _ = directory.keep();
            } else {
                // Everything worth keeping was uploaded; an undeletable directory must not hide the result.
                let _ = directory.close();
            }
            result
        }
        Err(error) => failed(Broken::from(error).at("checkout"), &secrets),
    };
    reporter.finish().await;
    if stop.is_gone() {
        return Ok(());
    }
    match server.result(&result).await? {
        Answer::Taken | Answer::Gone => Ok(()),
        Answer::Refused(why) => Err(RunnerError::Server(why)),
    }
}

impl Job {
    /// Says of a stop that it was for the time, when it was.
    fn late(&self, broken: Broken, step: &str) -> Broken {
        match broken {
            Broken::Stopped if self.stop.is_too_late() => self.limits.too_late(step),
            other => other,
        }
    }
}

async fn work(job: &Job, secrets: &mut Secrets) -> JobResult {
    if job.spec.version != VERSION {
        let broken = Broken::new(
            format!(
                "the server speaks version {} of the job contract, this program version {VERSION}",
                job.spec.version
            ),
            "run the same version of tidegate on the server and in its jobs",
        );
        return failed(broken.at("checkout"), secrets);
    }
    let ended = match job.spec.phase {
        Phase::Plan => plan::run(job, secrets).await,
        Phase::Apply => apply::run(job, secrets).await,
    };
    ended.unwrap_or_else(|broken| match broken {
        Broken::Stopped => JobResult::Canceled,
        Broken::Failed(failure) => failed(Broken::of(disk::explained(*failure, &job.directory)), secrets),
    })
}

fn failed(broken: Broken, secrets: &Secrets) -> JobResult {
    JobResult::Failed { failure: failure(broken, secrets), resources: Vec::new(), errored_state: StateLeft::Nothing }
}
