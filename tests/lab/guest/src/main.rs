// SPDX-License-Identifier: GPL-2.0

//! The agent's command line.

use clap::{
    Args,
    Parser,
    Subcommand, //
};
use guest_agent::{
    canary,
    edu,
    gate::Gate,
    load,
    report::Report,
    reread,
    sample,
    sys, //
};
use std::{
    io,
    path::{
        Path,
        PathBuf, //
    },
    process::ExitCode,
    sync::Arc, //
};

/// Runs a load in the guest and watches a CPU; prints one JSON document.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    what: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Watched(What),
    /// Reads a file into memory that is on a disk, again and again; prints how often.
    Reread {
        /// The file to read.
        file: PathBuf,
        /// The disk to read it into; what is on it is not changed.
        disk: PathBuf,
        /// The file whose existence ends it.
        stop: PathBuf,
    },
}

/// What has a window, and a report of it.
#[derive(Subcommand)]
enum What {
    /// Only the canary.
    Canary {
        #[command(flatten)]
        watch: Watch,
    },
    /// Only the sampler.
    Sample {
        #[command(flatten)]
        watch: Watch,
    },
    /// Random reads by io_uring, watched by canary and sampler.
    Load {
        #[command(flatten)]
        watch: Watch,
        /// Requests kept outstanding per disk.
        #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
        depth: u32,
        /// Bytes per request.
        #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(512..=1 << 20))]
        block: u32,
        /// Completions to wait for in one system call.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
        reap: u32,
        /// Read block after block rather than anywhere.
        #[arg(long)]
        sequential: bool,
        /// The disks and the CPUs that submit to them: DISK@CPU.
        #[arg(required = true)]
        targets: Vec<load::Target>,
    },
    /// The producers of the edu example module, watched by canary and sampler.
    Edu {
        #[command(flatten)]
        watch: Watch,
        /// What handling one completion costs.
        #[arg(long, default_value_t = 14_000)]
        cost_ns: u64,
        /// Time between two completions of one device.
        #[arg(long, default_value_t = 24_000)]
        gap_ns: u64,
        /// Completions of one device that may be outstanding [default: what its ring holds].
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
        depth: Option<u32>,
        /// The CPUs to produce on.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4])]
        cpus: Vec<usize>,
    },
}

#[derive(Args)]
struct Watch {
    /// The CPU to watch.
    #[arg(long, default_value_t = 0)]
    cpu: usize,
    /// The CPU that samples it.
    #[arg(long, default_value_t = 1)]
    sampler: usize,
    /// Time between two samples.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    period_ms: u64,
    /// Gaps of the canary from this length on are listed.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    gap_us: u64,
    /// The canary sleeps this long between stamps and counts how late it wakes (0: it spins).
    #[arg(long, default_value_t = 0)]
    nap_us: u64,
    /// The canary leaves the CPU to nobody of its own accord.
    #[arg(long, conflicts_with = "nap_us")]
    hog: bool,
    /// Without the canary.
    #[arg(long)]
    no_canary: bool,
    /// Time for everything to get ready before the window.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    settle_ms: u64,
    /// Length of the window.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    ms: u64,
}

impl What {
    fn watch(&self) -> &Watch {
        match self {
            What::Canary { watch }
            | What::Sample { watch }
            | What::Load { watch, .. }
            | What::Edu { watch, .. } => watch,
        }
    }

    fn with_canary(&self) -> bool {
        !matches!(self, What::Sample { .. }) && !self.watch().no_canary
    }

    fn with_sampler(&self) -> bool {
        !matches!(self, What::Canary { .. })
    }
}

impl Watch {
    fn habit(&self) -> canary::Habit {
        match (self.hog, self.nap_us) {
            (true, _) => canary::Habit::Hog,
            (false, 0) => canary::Habit::Spin,
            (false, us) => canary::Habit::Nap(us * 1000),
        }
    }
}

const MS: u64 = 1_000_000;

fn run(what: &What) -> io::Result<Report> {
    let watch = what.watch();
    let gate = Arc::new(Gate::default());
    let work = Work::start(what, &gate)?;
    let sampler = match what.with_sampler() {
        true => Some(sample::start(
            watch.cpu,
            watch.sampler,
            watch.period_ms * MS,
            &gate,
        )?),
        false => None,
    };
    let bird = match what.with_canary() {
        true => Some(canary::start(
            watch.cpu,
            watch.gap_us * 1000,
            watch.habit(),
        )?),
        false => None,
    };
    let threads = work.threads() + usize::from(sampler.is_some());
    let window = gate.open(threads, watch.settle_ms * MS, watch.ms * MS);
    if let Some(bird) = &bird {
        bird.window(window.start);
    }
    let mut report = Report {
        kernel: sys::kernel_release(),
        window_ns: window.end - window.start,
        ..Report::default()
    };
    work.finish(&mut report)?;
    sys::sleep_until(window.end);
    if let Some(sampler) = sampler {
        let sample = sampler
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        report.sample = Some(sample);
    }
    report.canary = bird.map(canary::Running::finish);
    Ok(report)
}

/// The threads that make the load.
enum Work {
    Nothing,
    Load(Vec<load::Submitter>),
    Edu(Vec<edu::Producer>),
}

impl Work {
    fn start(what: &What, gate: &Arc<Gate>) -> io::Result<Self> {
        Ok(match what {
            What::Load {
                depth,
                block,
                reap,
                sequential,
                targets,
                ..
            } => {
                let shape = load::Shape {
                    depth: *depth,
                    block: *block,
                    reap: *reap,
                    sequential: *sequential,
                };
                Work::Load(load::start(targets, shape, gate)?)
            }
            What::Edu {
                cost_ns,
                gap_ns,
                depth,
                cpus,
                ..
            } => {
                let targets = edu::find(Path::new(edu::DEBUGFS), cpus)?;
                let shape = edu::Shape {
                    cost_ns: *cost_ns,
                    gap_ns: *gap_ns,
                    depth: *depth,
                };
                Work::Edu(edu::start(&targets, shape, gate)?)
            }
            What::Canary { .. } | What::Sample { .. } => Work::Nothing,
        })
    }

    fn threads(&self) -> usize {
        match self {
            Work::Nothing => 0,
            Work::Load(threads) => threads.len(),
            Work::Edu(threads) => threads.len(),
        }
    }

    fn finish(self, report: &mut Report) -> io::Result<()> {
        match self {
            Work::Nothing => {}
            Work::Load(threads) => report.load = Some(load::finish(threads)?),
            Work::Edu(threads) => report.edu = Some(edu::finish(threads)?),
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let result = match Cli::parse().what {
        Command::Watched(what) => run(&what).and_then(|report| Ok(serde_json::to_string(&report)?)),
        Command::Reread { file, disk, stop } => {
            reread::run(&file, &disk, &stop).map(|reads| reads.to_string())
        }
    };
    match result {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("guest-agent: {e}");
            ExitCode::FAILURE
        }
    }
}
