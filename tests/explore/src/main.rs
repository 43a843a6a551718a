// SPDX-License-Identifier: GPL-2.0

//! `explore [--long] [--most N] [--replay PATH] [FILTER]`: explores all scenarios whose names contain
//! the filter, and says what it saw.

use explore::{
    scenario,
    search::{
        self,
        Report, //
    },
};
use std::{
    collections::BTreeSet,
    env,
    process::ExitCode,
    time::Duration, //
};

struct Args {
    long: bool,
    most: u64,
    replay: Option<Vec<u16>>,
    filter: String,
}

/// States of one scenario at most.
const MOST: u64 = 100_000;
/// The same with `--long`.
const MOST_LONG: u64 = 10_000_000;

fn parse() -> Result<Args, String> {
    let mut parsed = Args {
        long: false,
        most: 0,
        replay: None,
        filter: String::new(),
    };
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--long" => parsed.long = true,
            "--most" => {
                let most = args.next().and_then(|most| most.parse().ok());
                parsed.most = most.ok_or("--most takes a number")?;
            }
            "--replay" => {
                let path = args.next().ok_or("--replay takes a path")?;
                let path: Result<_, _> = path.split(',').map(str::parse).collect();
                parsed.replay = Some(path.map_err(|error| format!("--replay: {error}"))?);
            }
            _ if arg.starts_with('-') => return Err(format!("unknown option {arg}")),
            _ => parsed.filter = arg,
        }
    }
    if parsed.most == 0 {
        parsed.most = if parsed.long { MOST_LONG } else { MOST };
    }
    Ok(parsed)
}

fn print(report: &Report) {
    let state = match (&report.failure, report.complete) {
        (Some(_), _) => "FAILED",
        (None, true) => "complete",
        (None, false) => "cut off",
    };
    println!(
        "{:<28} {:>9} {:>10} {:>5} {:>7.1} s  {state}",
        report.name,
        report.states,
        report.transitions,
        report.depth,
        report.time.as_secs_f64()
    );
    if let Some(failure) = &report.failure {
        let path: Vec<_> = failure.path.iter().map(u16::to_string).collect();
        println!("{}", failure.trace);
        println!("{}: {}", report.name, failure.what);
        println!(
            "again: explore --replay {} '{}'",
            path.join(","),
            report.name
        );
    }
}

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => {
            eprintln!("explore: {error}");
            return ExitCode::from(2);
        }
    };
    let all = scenario::all(args.long);
    if let Some(path) = args.replay {
        match all.iter().find(|scenario| scenario.name == args.filter) {
            Some(scenario) => print!("{}", search::replay(scenario, &path)),
            None => eprintln!("explore: --replay needs the name of a scenario"),
        }
        return ExitCode::SUCCESS;
    }
    println!("scenario                        states      steps depth     time");
    let (mut states, mut transitions, mut time) = (0, 0, Duration::ZERO);
    let mut changes = BTreeSet::new();
    let mut failed = false;
    for scenario in all {
        if !scenario.name.contains(&args.filter) {
            continue;
        }
        let report = search::explore(&scenario, args.most);
        print(&report);
        states += report.states;
        transitions += report.transitions;
        time += report.time;
        failed |= report.failure.is_some();
        changes.extend(report.changes);
        if failed {
            break;
        }
    }
    let mut words: BTreeSet<u32> = BTreeSet::from([0]);
    words.extend(changes.iter().map(|(_, new)| *new));
    println!(
        "{states} states, {transitions} steps, {:.1} s; {} of 32 words, {} changes of the word",
        time.as_secs_f64(),
        words.len(),
        changes.len()
    );
    let words: Vec<_> = words.into_iter().map(search::letters).collect();
    println!("words: {}", words.join(" "));
    ExitCode::from(u8::from(failed))
}
