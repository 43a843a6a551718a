// SPDX-License-Identifier: GPL-2.0

//! Breadth first: what is found first is as short as it can be.

use crate::{
    engine,
    scenario::Scenario,
    world::{
        self,
        State,
        Step, //
    },
};
use std::{
    collections::{
        BTreeSet,
        HashSet,
        VecDeque, //
    },
    fmt::Write as _,
    hash::BuildHasherDefault,
    time::{
        Duration,
        Instant, //
    }, //
};

/// What one exploration found.
#[derive(Debug)]
pub struct Report {
    /// Name of the scenario.
    pub name: String,
    /// Distinct states.
    pub states: u64,
    /// Steps from one state to another.
    pub transitions: u64,
    /// Steps from the first state to the farthest.
    pub depth: u32,
    /// Whether all of its states were seen.
    pub complete: bool,
    /// How long it took.
    pub time: Duration,
    /// Distinct changes of the state word, as pairs of words.
    pub changes: BTreeSet<(u32, u32)>,
    /// What is wrong, with the steps to it.
    pub failure: Option<Failure>,
}

/// A state that must not be.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong with it.
    pub what: String,
    /// The steps to it, as numbers.
    pub path: Vec<u16>,
    /// The steps to it, for a reader.
    pub trace: String,
}

/// A hasher for what is a hash already.
#[derive(Default)]
struct Same(u64);

impl std::hash::Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// How a state was reached: from which one, by which of its steps.
#[derive(Clone, Copy)]
struct From {
    state: u32,
    step: u16,
}

/// Explores until all states were seen, or `most` of them.
pub fn explore(scenario: &Scenario, most: u64) -> Report {
    engine::quieten();
    let rules: &'static Scenario = Box::leak(Box::new(scenario.clone()));
    let began = Instant::now();
    let _ = world::take_changes();
    let mut seen: HashSet<u64, BuildHasherDefault<Same>> = HashSet::default();
    let mut from = vec![From { state: 0, step: 0 }];
    let mut queue = VecDeque::new();
    let mut report = Report {
        name: rules.name.clone(),
        states: 1,
        transitions: 0,
        depth: 0,
        complete: true,
        time: Duration::ZERO,
        changes: BTreeSet::new(),
        failure: None,
    };
    let first = State::new(rules);
    seen.insert(engine::hash_of(&first));
    queue.push_back((0_u32, 0_u32, first));
    let mut steps = Vec::new();
    'search: while let Some((number, depth, state)) = queue.pop_front() {
        report.depth = depth;
        state.steps(&mut steps);
        for (i, step) in (0..).zip(&steps) {
            let next = state.after(*step);
            report.transitions += 1;
            if let Some(what) = next.violation {
                let mut path = path(&from, number);
                path.push(i);
                let trace = replay(rules, &path);
                report.failure = Some(Failure { what, path, trace });
                break 'search;
            }
            if !seen.insert(engine::hash_of(&next)) {
                continue;
            }
            if report.states == most {
                report.complete = false;
                break 'search;
            }
            report.states += 1;
            let new = from.len() as u32;
            from.push(From {
                state: number,
                step: i,
            });
            queue.push_back((new, depth + 1, next));
        }
    }
    report.time = began.elapsed();
    report.changes = world::take_changes();
    report
}

fn path(from: &[From], mut state: u32) -> Vec<u16> {
    let mut path = Vec::new();
    while state != 0 {
        let way = from[state as usize];
        path.push(way.step);
        state = way.state;
    }
    path.reverse();
    path
}

/// What happens on a path.
pub fn replay(scenario: &Scenario, path: &[u16]) -> String {
    engine::quieten();
    let rules: &'static Scenario = Box::leak(Box::new(scenario.clone()));
    let mut state = State::new(rules);
    let mut trace = String::new();
    let mut steps: Vec<Step> = Vec::new();
    for i in path {
        state.steps(&mut steps);
        let Some(step) = steps.get(usize::from(*i)) else {
            let _ = writeln!(trace, "no step {i} here");
            break;
        };
        let text = state.describe(*step);
        state = state.after(*step);
        let _ = writeln!(trace, "  {text:<60} {}", state.summary());
    }
    if let Some(what) = state.violation {
        let _ = writeln!(trace, "  {what}");
    }
    trace
}

/// A state word, for a reader.
pub fn letters(bits: u32) -> String {
    world::letters(bits)
}
