//! What something costs: its wall time, and the CPU time of this process and of all that it started and waited for, which a
//! busy machine hardly changes. It measures and judges nothing.

use std::time::{Duration, Instant};

/// A moment, or what lies between two.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub wall: Duration,
    pub cpu: Duration,
}

/// The beginning of what is measured.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    at: Instant,
    cpu: Duration,
}

impl Start {
    pub fn now() -> Self {
        Self { at: Instant::now(), cpu: cpu() }
    }

    pub fn cost(&self) -> Cost {
        Cost { wall: self.at.elapsed(), cpu: cpu().saturating_sub(self.cpu) }
    }
}

/// The middle one by each measure.
pub fn median(seen: &[Cost]) -> Cost {
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    Cost {
        wall: middle(seen.iter().map(|cost| cost.wall).collect()),
        cpu: middle(seen.iter().map(|cost| cost.cpu).collect()),
    }
}

/// How many times the other it is.
pub fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// In hundredths of a second, as Linux counts it for everybody.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").expect("a system with /proc");
    // The name of the program, which may hold anything, ends with the last bracket; the state follows.
    let fields: Vec<&str> = text[text.rfind(')').expect("a name") + 1..].split_whitespace().collect();
    let ticks: u64 = fields[11..15].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}
