// SPDX-License-Identifier: GPL-2.0

//! Tells how a seed breaks a rule: always in the same words.

use crate::{
    fault::Plant,
    fuzz::Plan,
    shrink::shrink,
    trace::Entry, //
};

/// Entries of a trace that are kept, and told.
const KEPT: usize = 1 << 17;
const TOLD: usize = 60;

/// The plan of `seed`, with a bug or without.
pub fn plan(seed: u64, plant: Option<Plant>) -> Plan {
    plant.map_or_else(|| Plan::new(seed), |plant| Plan::with_plant(seed, plant))
}

/// How `seed` breaks a rule: as it was drawn, the smallest that was found to break the same rule,
/// and what led to it. [`None`]: it does not.
pub fn tell(seed: u64, plant: Option<Plant>) -> Option<String> {
    let drawn = plan(seed, plant);
    let first = drawn.run().violations.into_iter().next()?;
    let mut text = format!("seed {seed}: {first}\n{}\n", indented(&drawn.summary()));
    let small = shrink(drawn, first);
    let trace = small.plan.trace(KEPT).before(&small.violation, TOLD);
    let steps: Vec<String> = trace.iter().map(step).collect();
    text += &format!(
        "smaller, after {} runs: {}\n{}\n{}\n",
        small.runs,
        small.violation,
        indented(&small.plan.summary()),
        steps.join("\n"),
    );
    let plant = plant.map_or_else(String::new, |plant| format!(" --plant {plant:?}"));
    text += &format!("again: cargo sim replay {seed}{plant}");
    Some(text)
}

/// One line about what happened, once or several times in a row.
fn step((entry, times): &(Entry, usize)) -> String {
    match times {
        1 => entry.to_string(),
        times => format!("{entry}, {times} times"),
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
