//! Lines on their way to the server: numbered, in batches, again until they are taken. It never blocks the work, and
//! keeps of the resources' states only the newest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::failure::readable;
use super::server::{Said, Server};
use super::stop::Stop;
use crate::domain::job::{JobEvent, JobLine, Phase, ResourceState};
use crate::domain::progress::Ended;

/// Nobody sees a step a fifth of a second earlier, and each batch is a turn of the server's.
const BATCH: Duration = Duration::from_millis(200);
const HEARTBEAT: Duration = Duration::from_secs(15);
const MOST_PER_BATCH: usize = 500;
const MOST_BYTES_PER_BATCH: usize = 256 * 1024;
const LONGEST_LINE: usize = 4 * 1024;
/// The most lines of a step that are kept.
pub(super) const MOST_LINES_PER_STEP: usize = 20_000;

/// Takes lines; a clone writes to the same stream.
#[derive(Clone)]
pub(super) struct Reporter {
    shared: Arc<Shared>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    news: Notify,
    /// All has been said: what is left goes out at once.
    closing: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<JobEvent>,
    resources: Option<Vec<ResourceState>>,
    logged: BTreeMap<String, usize>,
    closed: bool,
}

impl Reporter {
    /// Starts to send.
    pub(super) fn start(server: Server, stop: Stop, phase: Phase) -> Self {
        let shared = Arc::new(Shared { queue: Mutex::default(), news: Notify::new(), closing: Notify::new() });
        let task = tokio::spawn(send_all(shared.clone(), server, stop, phase));
        Self { shared, task: Arc::new(Mutex::new(Some(task))) }
    }

    /// A step began.
    pub(super) fn step_started(&self, step: &str) {
        self.push(JobEvent::StepStarted { step: step.to_owned() });
    }

    /// A step ended.
    pub(super) fn step_ended(&self, step: &str, ended: Ended, took: Duration) {
        self.count_left_out(step);
        let took_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        self.push(JobEvent::StepEnded { step: step.to_owned(), ok: ended == Ended::Well, took_ms });
    }

    /// Says how many lines of a step were too many.
    pub(super) fn count_left_out(&self, step: &str) {
        let left_out = self.lock().logged.get(step).map_or(0, |count| count.saturating_sub(MOST_LINES_PER_STEP));
        if left_out > 0 {
            self.push(JobEvent::Log { step: step.to_owned(), line: format!("… {left_out} more lines") });
        }
    }

    /// So many lines of a step were not even held.
    pub(super) fn leave_out(&self, step: &str, lines: usize) {
        if lines > 0 {
            *self.lock().logged.entry(step.to_owned()).or_default() += lines;
        }
    }

    /// Text of a step, masked already; made readable and cut here.
    pub(super) fn log(&self, step: &str, text: &str) {
        for line in text.trim_end().lines() {
            let count = {
                let mut queue = self.lock();
                let count = queue.logged.entry(step.to_owned()).or_default();
                *count += 1;
                *count
            };
            if count <= MOST_LINES_PER_STEP {
                self.push(JobEvent::Log { step: step.to_owned(), line: readable(line, LONGEST_LINE) });
            }
        }
    }

    /// Where every resource stands; takes the place of what was not sent yet.
    pub(super) fn resources(&self, resources: Vec<ResourceState>) {
        self.lock().resources = Some(resources);
        self.shared.news.notify_one();
    }

    /// Waits until everything is sent, or the server wants no more of it.
    pub(super) async fn finish(&self) {
        self.lock().closed = true;
        self.shared.news.notify_one();
        self.shared.closing.notify_one();
        let task = self.task.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(task) = task {
            // Only a panic of the task itself ends it otherwise, and the result must go out even so.
            let _ = task.await;
        }
    }

    fn push(&self, event: JobEvent) {
        self.lock().events.push_back(event);
        self.shared.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The next batch, and whether nothing will come after it.
    fn take(&self, seq: &mut u64) -> (Vec<JobLine>, bool) {
        let mut queue = self.lock();
        let mut events = Vec::new();
        let mut bytes = 0;
        while events.len() < MOST_PER_BATCH && bytes < MOST_BYTES_PER_BATCH {
            let Some(event) = queue.events.pop_front() else { break };
            bytes += if let JobEvent::Log { line, .. } = &event { line.len() } else { 0 };
            events.push(event);
        }
        events.extend(queue.resources.take().map(|resources| JobEvent::Resources { resources }));
        let lines = events.into_iter().map(|what| {
            *seq += 1;
            JobLine { seq: *seq, what }
        });
        (lines.collect(), queue.closed && queue.events.is_empty())
    }
}

async fn send_all(shared: Arc<Shared>, server: Server, stop: Stop, phase: Phase) {
    let mut seq = 0;
    let mut last = Instant::now();
    loop {
        let beat = last + HEARTBEAT;
        tokio::select! {
            () = shared.news.notified() => {
                let due = (last + BATCH).min(beat);
                tokio::select! {
                    () = shared.closing.notified() => {}
                    () = tokio::time::sleep_until(due) => {}
                }
            }
            () = tokio::time::sleep_until(beat) => {}
        }
        loop {
            let (lines, over) = shared.take(&mut seq);
            last = Instant::now();
            let full = lines.len() >= MOST_PER_BATCH;
            if !lines.is_empty() || !over {
                match server.lines(&lines).await {
                    Said::Cancel => stop.interrupt(),
                    Said::Gone if phase == Phase::Plan => stop.gone(),
                    // Half an apply is worse than one that nobody watches.
                    Said::Taken | Said::Gone => {}
                }
            }
            if over {
                return;
            }
            if !full && shared.lock().events.is_empty() {
                break;
            }
        }
    }
}
