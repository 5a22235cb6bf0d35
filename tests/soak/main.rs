//! A soak: for some minutes, people do on a repository what comes to their minds, the forge fails, jobs are killed and the server dies;
//! whenever all is at rest, the laws hold. Run by `scripts/soak`; what it does follows from its seed.

#![expect(clippy::print_stdout, reason = "it prints its seed and what it did")]

#[path = "../it/ctx.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod ctx;
#[path = "../it/peril/mod.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod peril;

mod act;
mod laws;
mod world;

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;

use world::World;

/// How long it goes on by default.
const SECONDS: u64 = 600;
/// How many steps a world lives before another begins, with another configuration.
const STEPS: usize = 40;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn laws_hold_whatever_happens() {
    let seconds = from_environment("SOAK_SECONDS").unwrap_or(SECONDS);
    let first = from_environment("SOAK_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut steps = 0;
    for seed in first.. {
        println!("SOAK_SEED={seed}");
        let mut world = World::new(StdRng::seed_from_u64(seed)).await;
        for _ in 0..STEPS {
            if Instant::now() >= until {
                println!("  {}", world.sum());
                println!("{steps} steps, and every law held");
                return;
            }
            world.step().await;
            steps += 1;
        }
        println!("  {}", world.sum());
    }
}
