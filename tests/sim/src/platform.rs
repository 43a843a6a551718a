// SPDX-License-Identifier: GPL-2.0

//! A line as irqmod sees it: [`Source`] and [`Platform`].

use crate::{
    context::{
        bh_enable,
        relax,
        sleep,
        spend, //
    },
    core::{
        self,
        cpu::Ctx,
        Core, //
    },
    fault::Plant,
    machine::Mask,
    Ns, //
};
use irqmod::{
    observation::Glance,
    policy,
    time::{
        Instant,
        Span, //
    },
    Budget,
    Deferral,
    Drain,
    DrainRight,
    MaskToken,
    Platform,
    PollEnd,
    PollPass,
    Source, //
};

/// How long one who waits for another context looks away.
const LOOK_AWAY: Ns = 5_000;
/// How long one who spins for a lock looks away.
const SPIN: Ns = 200;

/// The completion queue of a line.
pub(crate) struct LineQueue(pub(crate) u32);

impl Source for LineQueue {
    fn pending(&self) -> bool {
        core::with(|core| !core.line(self.0).posted.is_empty())
    }

    fn drain(queue: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        drain(queue.0, budget)
    }

    fn in_flight(&self) -> Option<u32> {
        Some(core::with(|core| core.line(self.0).tags))
    }

    fn reachable(&self) -> bool {
        core::with(|core| core.line(self.0).reachable)
    }
}

/// Drains a queue in two phases: takes completions and rings once, then completes the requests.
/// What these lead to comes back while others are completed, but is not taken any more.
pub(crate) fn drain(line: u32, budget: Budget) -> Drain {
    core::with(|core| core.begin_drain(line));
    let budget = match core::with(|core| core.plant) {
        Some(Plant::IgnoresBudget) => Budget::UNLIMITED,
        _ => budget,
    };
    let found = collect(line, budget);
    if found != 0 {
        spend(core::with(|core| core.machine.costs.doorbell));
        complete(line, found);
    }
    core::with(|core| core.end_drain(line, found));
    if found == budget.get() && core::with(|core| !core.line(line).posted.is_empty()) {
        Drain::More(found)
    } else {
        Drain::Drained(found)
    }
}

fn collect(line: u32, budget: Budget) -> u32 {
    let cost = core::with(|core| core.machine.costs.collect);
    let mut found = 0;
    loop {
        let more = core::with(|core| core.take(line, budget.get() - found));
        if more == 0 {
            return found;
        }
        found += more;
        spend(cost * Ns::from(more));
    }
}

fn complete(line: u32, count: u32) {
    let cost = core::with(|core| core.completion_cost());
    for _ in 0..count {
        spend(cost);
        core::with(|core| core.complete_one(line));
    }
}

impl Core {
    /// Whether a planted bug strikes now: every fourth time.
    pub(crate) fn strikes(&mut self, plant: Plant) -> bool {
        self.plant == Some(plant) && self.random.chance(250)
    }

    /// What the running context takes to complete one request.
    fn completion_cost(&self) -> Ns {
        let costs = &self.machine.costs;
        let copy = Ns::from(self.load.copy_bytes) * costs.copy_kib / 1024;
        copy + match self.running {
            Ctx::Hard(_) => costs.complete_hard,
            _ => costs.complete,
        }
    }
}

/// The interrupt, poller and locks of a line.
pub(crate) struct LinePlatform(pub(crate) u32);

impl LinePlatform {
    /// Waits, as a task, until `over`.
    fn wait(&self, over: impl Fn(&mut Core) -> bool) {
        while !core::with(&over) {
            sleep(LOOK_AWAY);
        }
    }

    fn lock(&self) {
        core::with(|core| core.bh_disable());
        while core::with(|core| std::mem::replace(&mut core.line(self.0).locked, true)) {
            spend(SPIN);
        }
    }

    fn unlock(&self) {
        core::with(|core| core.line(self.0).locked = false);
        bh_enable();
    }
}

impl Platform for LinePlatform {
    fn mask(&self, how: policy::Mask) -> MaskToken {
        spend(core::with(|core| {
            let how = match how {
                policy::Mask::Nosync => core.machine.kernel.mask,
                policy::Mask::Nowait => Mask::Nowait,
            };
            core.mask(self.0, how)
        }));
        MaskToken::mint()
    }

    fn mask_sync(&self) -> MaskToken {
        spend(core::with(|core| {
            core.mask(self.0, core.machine.kernel.mask)
        }));
        self.synchronize();
        MaskToken::mint()
    }

    fn unmask(&self, token: MaskToken) {
        token.redeem();
        if core::with(|core| core.strikes(Plant::KeepsMask)) {
            return;
        }
        if core::with(|core| core.strikes(Plant::UnmasksTwice)) {
            let _ = core::with(|core| core.unmask(self.0));
        }
        let (cost, replay) = core::with(|core| core.unmask(self.0));
        spend(cost);
        if replay {
            spend(core::with(|core| core.machine.costs.replay));
            core::with(|core| core.on_message(self.0));
        }
    }

    fn synchronize(&self) {
        self.wait(|core| !core.line(self.0).is_busy());
    }

    fn defer(&self, to: Deferral) {
        if !core::with(|core| core.strikes(Plant::DropsDeferrals)) {
            core::with(|core| core.defer(self.0, to));
        }
    }

    fn arm_hold(&self, after: Span) {
        spend(core::with(|core| {
            let cpu = core.here();
            core.arm_hold(cpu, after.as_nanos());
            core.machine.costs.arm
        }));
    }

    fn poll_after(&self, after: Span) {
        spend(core::with(|core| {
            core.poll_after(self.0, after.as_nanos());
            core.machine.costs.arm
        }));
    }

    fn complete_poller(&self, pass: PollPass) -> PollEnd {
        core::with(|core| core.poll_complete(self.0));
        if core::with(|core| core.strikes(Plant::CompletesPollerTwice)) {
            core::with(|core| core.poll_complete(self.0));
        }
        pass.completed()
    }

    fn join_deferred(&self) {
        core::with(|core| core.line(self.0).poll_disable = true);
        self.wait(|core| !core.is_deferred(self.0) && !core.line(self.0).is_busy());
    }

    fn enable_deferred(&self) {
        core::with(|core| core.line(self.0).poll_disable = false);
    }

    fn glance(&self) -> Glance {
        core::with(Core::glance)
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(core::with(|core| core.now))
    }

    fn switches(&self) -> u64 {
        core::with(|core| {
            let cpu = core.here();
            core.cpu(cpu).books.switches
        })
    }

    fn on_cpu<R>(&self, f: impl FnOnce(&mut policy::Cpu) -> R) -> R {
        core::with(|core| {
            let cpu = core.here();
            f(&mut core.cpu(cpu).policies)
        })
    }

    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock();
        let result = f();
        self.unlock();
        result
    }

    fn relax(&self) {
        relax();
    }

    fn sleep(&self, span: Span) {
        sleep(span.as_nanos());
    }
}
