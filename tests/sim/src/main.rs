// SPDX-License-Identifier: GPL-2.0

//! `cargo sim`: runs machines that do not exist. One module for each subcommand.

#![deny(unsafe_code)]

mod cmd;

use clap::{
    Parser,
    Subcommand, //
};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo sim", about = "Runs machines that do not exist.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs one machine under one policy.
    Run(cmd::run::Args),
    /// Runs small machines on which things go wrong.
    Fuzz(cmd::fuzz::Args),
    /// Says which CPU starved, by which lines, and why the policy did not act.
    Explain(cmd::explain::Args),
    /// Tells once more how a seed breaks a rule.
    Replay(cmd::replay::Args),
    /// Lists the machines.
    Machines(cmd::machines::Args),
    /// Runs one machine over a grid of keys, policies and seeds.
    Sweep(cmd::sweep::Args),
    /// Joins the shards of a sweep.
    Merge(cmd::merge::Args),
    /// Prints a table of runs beside what the field reports.
    #[command(subcommand)]
    Table(cmd::table::Table),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => cmd::run::execute(&args),
        Command::Fuzz(args) => cmd::fuzz::execute(&args),
        Command::Explain(args) => cmd::explain::execute(&args),
        Command::Replay(args) => cmd::replay::execute(&args),
        Command::Machines(args) => cmd::machines::execute(&args),
        Command::Sweep(args) => cmd::sweep::execute(&args),
        Command::Merge(args) => cmd::merge::execute(&args),
        Command::Table(table) => cmd::table::execute(&table),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("sim: {message}");
            ExitCode::FAILURE
        }
    }
}
