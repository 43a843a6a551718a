// SPDX-License-Identifier: GPL-2.0

//! Makes a plan that breaks a rule smaller, as long as it breaks the same rule.

use crate::{
    check::{
        Rule,
        Violation, //
    },
    fault::Faults,
    fuzz::Plan,
    machine::{
        Kernel,
        Mask, //
    },
    run::Phases,
    Ns,
    Workload, //
};

/// Runs at most, so that a failure is told before whoever waits for it loses patience.
const RUNS: u32 = 300;

/// The smallest plan found.
pub struct Shrunk {
    /// The plan.
    pub plan: Plan,
    /// How it breaks the rule.
    pub violation: Violation,
    /// Runs that it took.
    pub runs: u32,
}

/// Makes `plan` smaller, which breaks a rule as `violation` says. The same arguments find the same.
pub fn shrink(plan: Plan, violation: Violation) -> Shrunk {
    let mut best = Shrunk {
        plan,
        violation,
        runs: 0,
    };
    loop {
        let before = best.plan.clone();
        for step in STEPS {
            best.take(step);
        }
        if best.plan == before || best.runs >= RUNS {
            return best;
        }
    }
}

impl Shrunk {
    /// Takes a step, again and again, as long as the rule is still broken.
    fn take(&mut self, step: &Step) {
        while self.runs < RUNS {
            let mut plan = self.plan.clone();
            step(&mut plan);
            if plan == self.plan {
                return;
            }
            plan.promise();
            self.runs += 1;
            match broken(&plan, self.violation.rule) {
                Some(violation) => (self.plan, self.violation) = (plan, violation),
                None => return,
            }
        }
    }
}

/// How `plan` breaks `rule`, if it does.
fn broken(plan: &Plan, rule: Rule) -> Option<Violation> {
    let violations = plan.run().violations;
    violations.into_iter().find(|broken| broken.rule == rule)
}

type Step = fn(&mut Plan);

/// From what makes the trace shortest to what only makes the plan easier to read.
const STEPS: &[Step] = &[
    |plan| plan.load.jobs = half(plan.load.jobs),
    |plan| plan.load.depth = half(plan.load.depth),
    |plan| plan.load.hogs = 0,
    |plan| plan.machine.controllers = half(plan.machine.controllers),
    |plan| plan.machine.cpus = (plan.machine.cpus - 1).max(2),
    shorten,
    |plan| faults(plan).lost = 0,
    |plan| faults(plan).duplicated = 0,
    |plan| faults(plan).late = 0,
    |plan| faults(plan).forgets = false,
    |plan| faults(plan).flapping = 0,
    |plan| faults(plan).late_timer = 0,
    |plan| faults(plan).reset_ns = 0,
    |plan| faults(plan).freeze_ns = 0,
    |plan| faults(plan).peek_ns = 0,
    |plan| faults(plan).move_ns = 0,
    |plan| faults(plan).races = 0,
    |plan| {
        faults(plan).switch_ns = 0;
        plan.options.switches.clear();
    },
    |plan| faults(plan).storm_ns = 0,
    |plan| faults(plan).unplug_ns = 0,
    |plan| {
        plan.options.switches.pop();
    },
    |plan| plan.load.copy_bytes = Workload::default().copy_bytes,
    |plan| plan.machine.device.cap_iops = 0,
    |plan| plan.machine.device.base_cv = 0,
    |plan| plan.machine.device.message_ns = 0,
    |plan| plan.machine.device.posted_ns = 1,
    |plan| plan.machine.kernel.lazy = Kernel::default().lazy,
    |plan| plan.machine.kernel.irq_time = Kernel::default().irq_time,
    |plan| plan.machine.kernel.timer_first = Kernel::default().timer_first,
    |plan| plan.machine.kernel.mask = Mask::Lazy,
];

fn half(value: u32) -> u32 {
    (value / 2).max(1)
}

fn faults(plan: &mut Plan) -> &mut Faults {
    &mut plan.options.faults
}

/// Faults, load and run end after half the time, which must not be too short to tell whether
/// anybody comes.
fn shorten(plan: &mut Plan) {
    const SHORTEST: Ns = 40_000_000;
    let options = &mut plan.options;
    if options.time_ns / 2 < SHORTEST {
        return;
    }
    options.time_ns /= 2;
    options.phases = options.phases.map(|phases| Phases {
        calm_ns: phases.calm_ns / 2,
        quiet_ns: phases.quiet_ns / 2,
    });
}
