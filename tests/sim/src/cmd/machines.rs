// SPDX-License-Identifier: GPL-2.0

//! `cargo sim machines`: what there is to run on.

use sim::Scenario;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this one, with all of its keys, as JSON.
    #[arg(long)]
    show: Option<String>,
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    if let Some(name) = &args.show {
        let scenario = Scenario::find(name)?;
        let text = serde_json::to_string_pretty(&scenario).map_err(|error| error.to_string())?;
        println!("{text}");
        return Ok(());
    }
    for name in Scenario::names() {
        println!("{name:12} {}", Scenario::find(name)?.about);
    }
    println!("{:12} drawn from a seed", "gen:SEED");
    println!("{:12} a file of your own", "PATH.toml");
    Ok(())
}
