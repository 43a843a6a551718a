// SPDX-License-Identifier: GPL-2.0

//! `cargo sim fuzz`: small machines on which things go wrong.

use sim::{
    fault::Plant,
    replay, //
};
use std::{
    io::IsTerminal,
    sync::atomic::{
        AtomicU64,
        Ordering, //
    },
    time::{
        Duration,
        Instant, //
    }, //
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds, if --seconds does not say otherwise.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Goes on for this long.
    #[arg(long, conflicts_with = "seeds")]
    seconds: Option<u64>,
    /// Looks for this bug, which is planted.
    #[arg(long, value_parser = Plant::find)]
    plant: Option<Plant>,
    /// Threads, each of which tries other seeds.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
}

/// What the threads share.
struct Hunt<'a> {
    args: &'a Args,
    begun: Instant,
    next: AtomicU64,
    done: AtomicU64,
    /// The first seed known to break a rule.
    broken: AtomicU64,
}

impl Hunt<'_> {
    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The next seed to try. Every seed before one that breaks a rule is tried, so that the same
    /// one is told however many threads there are.
    fn draw(&self) -> Option<u64> {
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        let over = match self.args.seconds {
            Some(seconds) => self.elapsed().as_secs() >= seconds,
            None => seed - self.args.seed >= self.args.seeds,
        };
        (!over && seed < self.broken.load(Ordering::Relaxed)).then_some(seed)
    }

    fn work(&self) {
        while let Some(seed) = self.draw() {
            let outcome = replay::plan(seed, self.args.plant).run();
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            if !outcome.violations.is_empty() {
                self.broken.fetch_min(seed, Ordering::Relaxed);
            }
            if done.is_multiple_of(100) && std::io::stderr().is_terminal() {
                let seconds = self.elapsed().as_secs();
                eprint!("\r{done} seeds, {seconds} s ");
            }
        }
    }
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    let hunt = Hunt {
        args,
        begun: Instant::now(),
        next: AtomicU64::new(args.seed),
        done: AtomicU64::new(0),
        broken: AtomicU64::new(u64::MAX),
    };
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| hunt.work());
        }
    });
    let (done, seconds) = (hunt.done.into_inner(), hunt.begun.elapsed().as_secs_f64());
    let broken = hunt.broken.into_inner();
    let told = (broken != u64::MAX).then(|| replay::tell(broken, args.plant));
    let Some(text) = told.flatten() else {
        println!("{done} seeds, from {}: clean; {seconds:.1} s", args.seed);
        return Ok(());
    };
    println!("{text}");
    let bug = args.plant.map(|plant| format!(", {plant:?}"));
    Err(format!(
        "seed {broken}{} breaks a rule; {done} seeds, {seconds:.1} s",
        bug.unwrap_or_default()
    ))
}
