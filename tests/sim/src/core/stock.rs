// SPDX-License-Identifier: GPL-2.0

//! Moderation as the field measured it, which is not ours.
//!
//! `timer`: handlers that drain without a limit, lines that go back to their handlers, and nothing
//! that bounds a push. `rate`: only whether it would poll, which it never did.

use super::Core;
use crate::{
    run::StockTimer,
    Ns, //
};

/// Shortest time that the timer is started for.
const MIN_SLEEP: Ns = 10_000;
/// Floor of an adaptive delay.
const FLOOR: Ns = 500;

/// What it remembers of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StockCpu {
    armed: bool,
    sleep: Ns,
    kicks: u64,
    /// The adaptive delay; none: nothing was adapted yet.
    delay: Option<Ns>,
    period: Ns,
    busy: Ns,
}

impl Core {
    /// The handler of a line ran for `took`: is the line held?
    ///
    /// Returns what that costs.
    pub(crate) fn stock_after(&mut self, line: u32, took: Ns, config: &StockTimer) -> Ns {
        let now = self.now;
        let cpu = self.here();
        let delay = self.cpu(cpu).stock.adapt(now, took, config);
        let this = &mut self.cpu(cpu).stock;
        if this.armed {
            this.kicks += 1;
            return self.stock_hold(cpu, line);
        }
        this.sleep += delay;
        if this.sleep < MIN_SLEEP {
            return 0;
        }
        this.armed = true;
        let sleep = this.sleep;
        self.arm_hold(cpu, sleep);
        self.machine.costs.arm + self.stock_hold(cpu, line)
    }

    fn stock_hold(&mut self, cpu: u32, line: u32) -> Ns {
        self.line(line).held = true;
        self.cpu(cpu).held.push_back(line);
        self.mask(line, self.machine.kernel.mask)
    }

    /// The timer expired. Returns whether it was started again.
    pub(crate) fn stock_expired(&mut self, cpu: u32, config: &StockTimer) -> bool {
        let this = &mut self.cpu(cpu).stock;
        let kicks = std::mem::take(&mut this.kicks);
        if config.push && kicks != 0 {
            let sleep = this.sleep * kicks;
            self.arm_hold(cpu, sleep);
            return true;
        }
        this.armed = false;
        this.sleep = 0;
        false
    }
}

/// Completions that the field's `rate` looks at together, and the mean time between two from which it
/// polls.
const WINDOW: u32 = 8_192;
const CLOSE: Ns = 10_000;

impl Core {
    /// A handler found `found` completions, under the field's `rate`.
    pub(crate) fn stock_rate(&mut self, line: u32, found: u32) {
        let now = self.now;
        let this = self.line(line);
        this.window.0 += found;
        if this.window.0 >= WINDOW {
            let time = now - this.window.1;
            let polls = time <= CLOSE * Ns::from(this.window.0);
            this.counts.engaged += u64::from(polls);
            this.window = (0, now);
        }
    }
}

impl StockCpu {
    /// The delay after a handler that ran for `took`.
    fn adapt(&mut self, now: Ns, took: Ns, config: &StockTimer) -> Ns {
        if config.hardirq_percent == 0 {
            return config.delay_ns;
        }
        self.busy += took;
        let elapsed = now - self.period;
        let delay = *self.delay.get_or_insert(config.delay_ns);
        if elapsed < config.update_ns {
            return delay;
        }
        let steps = (elapsed / config.update_ns).clamp(1, config.divisor - 1);
        let above = self.busy * 100 > elapsed * config.hardirq_percent;
        let next = if above {
            let from = delay.max(FLOOR);
            (from + from * steps / config.divisor).min(config.delay_ns)
        } else {
            match delay - delay * steps / (2 * config.divisor) {
                less if less < FLOOR => 0,
                less => less,
            }
        };
        self.delay = Some(next);
        self.period = now;
        self.busy = 0;
        next
    }
}
