//! How long a job waits: for a state that is locked, and for a plan that does not end. No apply has an end that time sets.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::task::JoinHandle;

use super::Job;
use super::failure::Broken;

/// How long an apply waits for a locked state, unless the settings say otherwise.
pub(super) const LOCK: Duration = Duration::from_secs(60);
const PLAN: Duration = Duration::from_secs(3600);

/// How long a job waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For a locked state.
    pub(super) lock: Duration,
    /// For a plan.
    plan: Duration,
}

impl Limits {
    /// Those of the job's environment, in seconds.
    pub(super) fn of(environment: &BTreeMap<String, String>) -> Self {
        let of = |name: &str, default: Duration| {
            let given = environment.get(&format!("TIDEGATE_JOB_{name}_TIMEOUT"));
            given.and_then(|text| text.parse().ok()).map_or(default, Duration::from_secs)
        };
        Self { lock: of("LOCK", LOCK), plan: of("PLAN", PLAN) }
    }

    /// Why a plan was interrupted in this step.
    pub(super) fn too_late(&self, step: &str) -> Broken {
        let time = words(self.plan);
        Broken::new(
            format!("The plan took longer than {time}"),
            format!(
                "`executor.plan_timeout` is {time}. The tool was interrupted in `{step}`; nothing was changed. The log ends where it \
                 waits: mend that, or raise the setting, and type `plan`."
            ),
        )
    }
}

/// Interrupts a plan once its time is over.
pub(super) fn watch(job: &Job) -> JoinHandle<()> {
    let (stop, time) = (job.stop.clone(), job.limits.plan);
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        stop.too_late();
    })
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{} m", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_said() {
        let given =
            |name: &str, value: &str| BTreeMap::from([(format!("TIDEGATE_JOB_{name}_TIMEOUT"), value.to_owned())]);
        let none = Limits::of(&BTreeMap::new());
        assert_eq!((none.lock, none.plan), (LOCK, PLAN));
        assert_eq!(Limits::of(&given("LOCK", "5")).lock, Duration::from_secs(5));
        assert_eq!(Limits::of(&given("PLAN", "soon")).plan, PLAN);
        let said = [(1, "1 s"), (90, "90 s"), (600, "10 m"), (7200, "2 h")];
        said.iter().for_each(|(seconds, expected)| assert_eq!(words(Duration::from_secs(*seconds)), *expected));
    }
}
