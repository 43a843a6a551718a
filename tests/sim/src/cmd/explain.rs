// SPDX-License-Identifier: GPL-2.0

//! `cargo sim explain`: which CPU starved, by which lines, and why the policy did not act.

use super::show;
use sim::{
    explain::Explanation,
    fault::Plant,
    replay,
    run::{
        self,
        Driver,
        Options, //
    },
    Scenario, //
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A seed of `cargo sim fuzz`; or MACHINE/POLICY, or MACHINE/POLICY/KEY=VALUE,KEY=VALUE with
    /// other values for keys of the machine or its load.
    run: String,
    /// Seed of a run that is no seed of `cargo sim fuzz`.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Simulated milliseconds that are looked at.
    #[arg(long, default_value_t = 1_000)]
    ms: u64,
    /// With this bug, which is planted. Of a seed only.
    #[arg(long, value_parser = Plant::find)]
    plant: Option<Plant>,
    /// Prints it as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    let explanation = match args.run.parse() {
        Ok(seed) => {
            let plan = replay::plan(seed, args.plant);
            let report = run::run(&plan.machine, &plan.load, &plan.options);
            Explanation::new(&plan.machine, plan.options.driver, &report)
        }
        Err(_) => of_run(args)?,
    };
    let Some(explanation) = explanation else {
        println!("no task waited for anything");
        return Ok(());
    };
    if args.json {
        return show::json(&explanation);
    }
    println!("{explanation}");
    Ok(())
}

fn of_run(args: &Args) -> Result<Option<Explanation>, String> {
    let (machine, policy, pairs) = parts(&args.run).ok_or_else(|| {
        format!(
            "{}: neither a seed nor MACHINE/POLICY nor MACHINE/POLICY/KEY=VALUE,...",
            args.run
        )
    })?;
    let scenario = Scenario::find(machine)?.set_all(&pairs)?;
    let driver = Driver::parse(policy)?;
    let options = Options {
        seed: args.seed,
        time_ns: args.ms * 1_000_000,
        warm_ns: 100_000_000,
        threads: 2,
        ..Options::new(driver)
    };
    let report = run::run(&scenario.machine, &scenario.load, &options);
    Ok(Explanation::new(&scenario.machine, driver, &report))
}

/// Machine, which may be a path, policy, which may have parameters, and other values for keys.
fn parts(run: &str) -> Option<(&str, &str, Vec<&str>)> {
    let (head, last) = run.rsplit_once('/')?;
    let key = last.split('=').next().filter(|key| key.len() < last.len());
    match key {
        Some(key) if !key.contains(':') => {
            let (machine, policy) = head.rsplit_once('/')?;
            Some((machine, policy, last.split(',').collect()))
        }
        _ => Some((head, last, Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_parameters_and_keys_are_told_apart() {
        assert_eq!(parts("field/fair"), Some(("field", "fair", vec![])));
        assert_eq!(
            parts("./a/b.toml/timer:delay_us=10,push=1/kernel.hz=100,load.depth=8"),
            Some((
                "./a/b.toml",
                "timer:delay_us=10,push=1",
                vec!["kernel.hz=100", "load.depth=8"]
            ))
        );
        assert_eq!(
            parts("gen:3/timer:push=1"),
            Some(("gen:3", "timer:push=1", vec![]))
        );
        assert_eq!(parts("field"), None);
        assert_eq!(parts("fair/kernel.hz=100"), None);
    }
}
