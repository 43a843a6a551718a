// SPDX-License-Identifier: GPL-2.0

//! What the timer interrupt of a CPU is for: tick, watchdog, hold timer.

use super::{
    cpu::Hard,
    heap::Event,
    Core, //
};
use crate::{
    trace::What,
    Ns, //
};

/// Timers of a CPU, as bits.
pub(crate) const TICK: u8 = 1 << 0;
pub(crate) const WATCHDOG: u8 = 1 << 1;
pub(crate) const HOLD: u8 = 1 << 2;
pub(crate) const POLL: u8 = 1 << 3;
pub(crate) const ALARM: u8 = 1 << 4;

/// The kernel's soft lockup detector on one CPU. Times in its own unit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watchdog {
    /// When the stopper ran last.
    touched: u64,
    /// When a report was due to begin; none: at the next sample.
    period: Option<u64>,
    /// The stopper was asked to touch and has not.
    asked: bool,
    /// What it has said.
    pub(crate) stuck: Option<u64>,
    pub(crate) reports: u32,
    /// When it said it first.
    pub(crate) first: Ns,
}

impl Watchdog {
    pub(crate) fn is_asked(&self) -> bool {
        self.asked
    }

    /// Its CPU is back.
    pub(super) fn restart(&mut self) {
        self.period = None;
        self.asked = false;
    }
}

/// The unit of the watchdog: the clock without its lowest 30 bits, which it takes for a second.
fn stamp(now: Ns) -> u64 {
    now >> 30
}

impl Core {
    pub(crate) fn period(&self) -> Ns {
        1_000_000_000 / Ns::from(self.machine.kernel.hz)
    }

    pub(crate) fn jiffies(&self) -> u64 {
        self.now / self.period()
    }

    /// Starts the clocks of all CPUs; all are idle.
    pub(crate) fn start_clocks(&mut self) {
        for cpu in 0..self.cpus.len() as u32 {
            let sample = self.sample();
            // The CPUs came up one after the other.
            let phase = self.random.below(sample);
            self.heap.plan(phase, Event::Watchdog { cpu });
            let balance = Ns::from(self.machine.kernel.balance_ms) * 1_500_000;
            self.cpu(cpu).next_balance = self.random.below(balance);
            if !self.machine.kernel.tickless {
                self.start_tick(cpu);
            }
        }
    }

    /// Time between two samples of the watchdog: a fifth of what it tolerates.
    fn sample(&self) -> Ns {
        Ns::from(self.machine.kernel.watchdog_s) * 2_000_000_000 / 5
    }

    fn start_tick(&mut self, cpu: u32) {
        let at = (self.jiffies() + 1) * self.period();
        let this = self.cpu(cpu);
        this.tick_stopped = false;
        this.tick_seq = this.tick_seq.wrapping_add(1);
        let seq = this.tick_seq;
        self.heap.plan(at, Event::Tick { cpu, seq });
    }

    pub(crate) fn enter_idle(&mut self, cpu: u32) {
        let now = self.now;
        self.cpu(cpu).idle_since = now;
        if self.machine.kernel.tickless {
            let this = self.cpu(cpu);
            this.tick_stopped = true;
            this.tick_seq = this.tick_seq.wrapping_add(1);
        }
    }

    /// The tick starts again, and the watchdog's period with it.
    pub(crate) fn leave_idle(&mut self, cpu: u32) {
        let now = self.now;
        let this = self.cpu(cpu);
        this.idle_mean = (this.idle_mean * 7 + (now - this.idle_since)) / 8;
        if self.cpus[cpu as usize].tick_stopped {
            self.start_tick(cpu);
            self.cpu(cpu).watchdog.period = None;
        }
    }

    pub(crate) fn on_tick(&mut self, cpu: u32, seq: u32) {
        let this = &self.cpus[cpu as usize];
        if this.tick_seq == seq && !this.tick_stopped {
            let next = self.now + self.period() + self.late_timer();
            self.heap.plan(next, Event::Tick { cpu, seq });
            self.expire(cpu, TICK);
        }
    }

    pub(crate) fn on_watchdog_timer(&mut self, cpu: u32) {
        let next = self.now + self.sample();
        self.heap.plan(next, Event::Watchdog { cpu });
        if self.cpus[cpu as usize].online {
            self.expire(cpu, WATCHDOG);
        }
    }

    pub(crate) fn on_hold_timer(&mut self, cpu: u32, seq: u32) {
        let halted = self.machine.costs.halted_timer;
        let now = self.now;
        let this = self.cpu(cpu);
        if this.hold_seq != seq {
            return;
        }
        let idle = this.current.is_none() && this.at_task_level();
        if idle && halted != 0 && this.hold_late != Some(seq) {
            this.hold_late = Some(seq);
            self.heap.plan(now + halted, Event::Hold { cpu, seq });
            return;
        }
        self.expire(cpu, HOLD);
    }

    /// Timers of `cpu` expire: one interrupt for all of them.
    pub(super) fn expire(&mut self, cpu: u32, which: u8) {
        let this = self.cpu(cpu);
        let first = this.timers == 0;
        this.timers |= which;
        if first {
            self.raise(cpu, Hard::Timer);
        }
    }

    /// The timer interrupt: what is due?
    pub(crate) fn take_timers(&mut self, cpu: u32) -> u8 {
        std::mem::take(&mut self.cpu(cpu).timers)
    }

    /// Arms the hold timer of a CPU, in place of what was armed before.
    pub(crate) fn arm_hold(&mut self, cpu: u32, after: Ns) {
        let at = self.now + after + self.machine.kernel.slack_ns + self.late_timer();
        let this = self.cpu(cpu);
        this.hold_seq = this.hold_seq.wrapping_add(1);
        let seq = this.hold_seq;
        self.counts.timers += 1;
        self.heap.plan(at, Event::Hold { cpu, seq });
    }

    /// A sample of the watchdog.
    pub(crate) fn watch(&mut self, cpu: u32) {
        let now = stamp(self.now);
        let thresh = u64::from(self.machine.kernel.watchdog_s) * 2;
        let time = self.now;
        let this = self.cpu(cpu);
        let stopper = this.stopper;
        let ask = !std::mem::replace(&mut this.watchdog.asked, true);
        let dog = &mut this.watchdog;
        match dog.period {
            None => dog.period = Some(now),
            Some(period) if now > period + thresh => {
                let seconds = now - dog.touched;
                if dog.stuck.is_none() {
                    dog.stuck = Some(seconds);
                    dog.first = time;
                }
                dog.reports += 1;
                dog.period = Some(now);
                self.trace.note(time, cpu, What::Stuck { seconds });
            }
            Some(_) => (),
        }
        if ask {
            self.wake(stopper);
        }
        self.check_rcu(cpu);
    }

    /// The stopper runs.
    pub(crate) fn touch(&mut self, cpu: u32) {
        let now = stamp(self.now);
        let dog = &mut self.cpu(cpu).watchdog;
        dog.touched = now;
        dog.period = Some(now);
        dog.asked = false;
    }

    fn check_rcu(&mut self, cpu: u32) {
        let limit = Ns::from(self.machine.kernel.rcu_stall_s) * 1_000_000_000;
        let now = self.now;
        let this = self.cpu(cpu);
        let idle = this.current.is_none() && this.at_task_level();
        if !idle && now.saturating_sub(this.quiescent) > limit {
            this.quiescent = now;
            self.counts.rcu_stalls += 1;
        }
    }

    /// How much later than asked a timer expires.
    pub(super) fn late_timer(&mut self) -> Ns {
        match self.faults.late_timer {
            0 => 0,
            most => self.random.below(most),
        }
    }
}
