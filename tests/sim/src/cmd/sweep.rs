// SPDX-License-Identifier: GPL-2.0

//! `cargo sim sweep`: one machine, over a grid.

use super::{
    merge,
    show, //
};
use sim::{
    sweep::{
        Axis,
        Piece,
        Plan,
        Shard, //
    },
    Scenario, //
};
use std::path::{
    Path,
    PathBuf, //
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A name (`cargo sim machines` lists them), gen:SEED, or the path of a TOML file.
    #[arg(long, default_value = "field")]
    machine: String,
    /// As in the module parameter.
    #[arg(long, default_value = "fair")]
    policy: String,
    /// A key and its values: KEY=A,B,C or KEY=A..B/STEP or KEY=A..B*FACTOR. Besides keys of the
    /// machine and its load there are policy, and policy.KEY for a parameter of it.
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    vary: Vec<String>,
    /// Another value for a key of the machine or its load.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seeds of each combination.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Simulated milliseconds that are measured.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    ms: u64,
    /// Simulated milliseconds before that.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    warm_ms: u64,
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Only this part: I/N with I from 0 on; auto or auto/N finds I in a Slurm array or a Kubernetes
    /// indexed job.
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Folder for the result; each shard is a file of it.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Prints rows as JSON. Only of a whole sweep.
    #[arg(long, conflicts_with = "shard")]
    json: bool,
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    let axes = args.vary.iter().map(|text| Axis::parse(text));
    let plan = Plan {
        scenario: Scenario::find(&args.machine)?.set_all(&args.set)?,
        policy: args.policy.clone(),
        axes: axes.collect::<Result<_, _>>()?,
        seed: args.seed,
        seeds: args.seeds,
        time_ns: args.ms * 1_000_000,
        warm_ns: args.warm_ms * 1_000_000,
    };
    plan.check()?;
    let shard = match &args.shard {
        Some(text) => Shard::parse(text, |name| std::env::var(name).ok())?,
        None => Shard::WHOLE,
    };
    let path = args.out.join(shard.file());
    let piece = match earlier(&path, &plan)? {
        Some(piece) => piece,
        None => fresh(args, &plan, shard, &path)?,
    };
    if args.shard.is_some() {
        eprintln!("{}: {} points", path.display(), piece.points.len());
        return Ok(());
    }
    merge::finish(&plan, &piece.points, &args.out, args.json)
}

fn fresh(args: &Args, plan: &Plan, shard: Shard, path: &Path) -> Result<Piece, String> {
    let bar = show::bar(shard.of_points(plan.count()?).count());
    let piece = plan.run(shard, args.threads.into(), |what| show::step(&bar, what))?;
    bar.finish_and_clear();
    show::write(path, &show::to_json(&piece)?)?;
    Ok(piece)
}

/// What an earlier run of the same shard has written: a job that is started again has nothing to do.
fn earlier(path: &Path, plan: &Plan) -> Result<Option<Piece>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let piece = merge::read(path)?;
    if piece.plan != *plan {
        let path = path.display();
        return Err(format!(
            "{path}: is of another sweep; remove it, or choose another --out"
        ));
    }
    eprintln!("{}: is there already", path.display());
    Ok(Some(piece))
}
