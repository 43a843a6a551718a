// SPDX-License-Identifier: GPL-2.0

//! `cargo sim replay`: what `cargo sim fuzz` printed about a seed, once more.

use sim::{
    fault::Plant,
    replay, //
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The seed.
    seed: u64,
    /// With this bug, which is planted.
    #[arg(long, value_parser = Plant::find)]
    plant: Option<Plant>,
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    match replay::tell(args.seed, args.plant) {
        Some(text) => {
            println!("{text}");
            Err(format!("seed {} breaks a rule", args.seed))
        }
        None => {
            println!("seed {}: clean", args.seed);
            Ok(())
        }
    }
}
