// SPDX-License-Identifier: GPL-2.0

//! `cargo sim fuzz`: small machines on which things go wrong.

use sim::fuzz::Plan;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    for seed in args.seed..args.seed + args.seeds {
        let plan = Plan::new(seed);
        let outcome = plan.run();
        if let Some(first) = outcome.violations.first() {
            let summary = plan.summary();
            return Err(format!("seed {seed}: {first:?}\n{summary}"));
        }
    }
    println!("{} seeds, from {}: clean", args.seeds, args.seed);
    Ok(())
}
