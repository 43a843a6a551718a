// SPDX-License-Identifier: GPL-2.0

//! What a policy promises on a machine, from what things cost there.

use crate::{
    check::Promises,
    context::LOOK,
    fault::Faults,
    machine::Mask,
    run::Driver,
    Machine,
    Ns,
    Workload, //
};
use irqmod::{
    ledger::Ledger,
    policy::{
        self,
        Choice,
        Config, //
    },
};

/// The promises of `driver`, which hold in spite of `faults`.
///
/// Of lines that are also given the policies `switches`.
pub(crate) fn of(
    driver: Driver,
    switches: &[Choice],
    machine: &Machine,
    load: &Workload,
    faults: &Faults,
) -> Promises {
    let Driver::Moderated(choice) = driver else {
        return Promises::default();
    };
    let bound = |choice| Bound {
        choice,
        machine,
        load,
        faults,
    };
    let handlers = switches.iter().map(|&choice| bound(choice).handler());
    let bound = bound(choice);
    Promises {
        handler: handlers.fold(bound.handler(), |longest, one| {
            longest.zip(one).map(|(a, b)| a.max(b))
        }),
        wait: bound.wait(),
        share: bound.wait().and(bound.share()),
        share_after: bound.wait().unwrap_or(0),
    }
}

/// The longest wait of a task that `fair` with its defaults promises on a machine.
pub(crate) fn longest_wait(machine: &Machine, load: &Workload) -> Option<Ns> {
    let fair = Driver::parse("fair").ok()?;
    of(fair, &[], machine, load, &Faults::default()).wait
}

struct Bound<'a> {
    choice: Choice,
    machine: &'a Machine,
    load: &'a Workload,
    faults: &'a Faults,
}

impl Bound<'_> {
    /// The largest cost of one completion.
    fn completion(&self) -> Ns {
        let costs = &self.machine.costs;
        let copy = Ns::from(self.load.copy_bytes) * costs.copy_kib / 1_024;
        costs.complete_hard.max(costs.complete) + costs.collect + copy
    }

    /// The longest run of a handler: its budget, and the masks and looks around it.
    fn handler(&self) -> Option<Ns> {
        let costs = &self.machine.costs;
        let each = self.completion();
        let around = 20_000 + 2 * (costs.mask_parent + costs.mask_sync + costs.replay + costs.arm);
        match self.choice.policy {
            // The one that promises nothing.
            Config::Hardirq(_) => None,
            Config::Fair(_) => {
                // A millisecond in pieces, and what the pieces overrun it by.
                let pieces = Ledger::HANDLER.as_nanos();
                let piece = Ns::from(Ledger::MAX_PIECE) * each;
                Some(pieces + piece + around)
            }
            _ => {
                let budget = policy::Config::budget(&self.choice.policy).get();
                // What a policy says of its deferred drains holds for its handler, or a full pass
                // does.
                Some(Ns::from(budget.clamp(256, 1_024)) * each + around)
            }
        }
    }

    /// The longest wait under `fair`, and what others than completions add to it.
    ///
    /// `d + S W + 2 p + N (e + m)`, as Documentation/policy-guide/fair.rst proves.
    fn wait(&self) -> Option<Ns> {
        let Config::Fair(fair) = self.choice.policy else {
            return None;
        };
        let faults = self.faults;
        let paused = faults.reset_ns | faults.freeze_ns | faults.storm_ns | faults.switch_ns;
        if paused | faults.peek_ns | faults.unplug_ns != 0 {
            // The look after a resume, or after a task has drained, is the softirq poller's, which
            // keeps no account: 10 ms at 100 Hz. So is what a CPU leaves behind that goes away.
            return None;
        }
        let costs = &self.machine.costs;
        let light = Ns::from(Ledger::FIRST_PIECE) * self.completion();
        let idle = light + costs.doorbell + costs.interrupt + costs.idle_exit;
        let around = costs.doorbell + costs.mask_lazy + costs.mask_parent + costs.replay;
        let piece = light.max(Ledger::PIECE.as_nanos()) + around + costs.switch;
        // CPUs take the interrupts of one queue of each controller, wherever in its world that moves.
        let sources = Ns::from(self.machine.controllers);
        let wait = idle + fair.share().work().as_nanos() + 2 * piece + sources * self.deferral();
        Some(wait + self.others(wait))
    }

    /// What `fair` leaves to those who want the CPU all the time, of 1,000 parts: its rests, without
    /// the look of the thread that rests and its end, and of each break what is left between two interrupts.
    fn share(&self) -> Option<u32> {
        let Config::Fair(fair) = self.choice.policy else {
            return None;
        };
        let costs = &self.machine.costs;
        let share = fair.share();
        let (work, rest) = (share.work().as_nanos(), share.rest().as_nanos());
        let entry = costs.interrupt + costs.doorbell;
        let kept = 1_000 - 1_000 * entry / Ledger::BREAK.as_nanos();
        let look = costs.interrupt + 2 * costs.switch;
        let looks = 1 + Ns::from(rest > LOOK);
        let slept = 1_000 - (1_000 * looks * look).div_ceil(rest).min(1_000);
        u32::try_from(rest * kept * slept / (work + rest) / 1_000).ok()
    }

    /// What it takes to defer a source: its interrupt, its mask, and the interrupt that comes in
    /// spite of it.
    fn deferral(&self) -> Ns {
        let costs = &self.machine.costs;
        let late = costs.interrupt + costs.mask_sync.max(costs.mask_parent);
        let mask = match (self.choice.mask, self.machine.kernel.mask) {
            (policy::Mask::Nowait, _) => costs.mask_posted + late,
            (_, Mask::Lazy) => late,
            (_, Mask::Nowait) => costs.mask_posted + late,
            (_, Mask::Sync) => costs.mask_sync,
            (_, Mask::Parent) => costs.mask_parent,
        };
        costs.interrupt + costs.mask_lazy + mask
    }

    /// What ticks and messages that are none of the policy's take in `wait`.
    fn others(&self, wait: Ns) -> Ns {
        let costs = &self.machine.costs;
        let period = 1_000_000_000 / Ns::from(self.machine.kernel.hz);
        let ticks = wait / period + 1;
        let faults = self.faults;
        let worlds = self.machine.split(self.load);
        let jobs = worlds.iter().map(|world| world.jobs.len()).max();
        let under_way = jobs.unwrap_or(0) as Ns * Ns::from(self.load.depth);
        let strays = match (faults.late, faults.duplicated) {
            (0, 0) if self.machine.device.message_ns == 0 => 0,
            (_, 0) => under_way,
            _ => 2 * under_way,
        };
        ticks * (costs.interrupt + costs.tick) + strays * costs.interrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn promised(changes: &[&str]) -> Ns {
        let field = Scenario::find("field").expect("field");
        let field = field.set_all(changes).expect("keys");
        longest_wait(&field.machine, &field.load).expect("a promise")
    }

    #[test]
    fn wait_is_about_the_sources_of_one_cpu() {
        let wait = promised(&[]);
        assert!((7_520_000..12_000_000).contains(&wait), "{wait}");
        assert_eq!(promised(&["queues=7"]), wait);
        assert!(promised(&["controllers=8"]) > wait);
        // And so are the messages that come in spite of a mask.
        let late = |queues| promised(&["device.message_ns=300", queues]);
        assert!(late("queues=14") > wait);
        assert!(late("queues=7") > late("queues=14"));
    }
}
