// SPDX-License-Identifier: GPL-2.0

//! `fair`: completions get a share of a CPU that others want, and all of one that nobody wants.
//!
//! - On an idle CPU the handler drains, and nobody looks at a clock.
//! - On a busy one the handler drains in pieces, whose time goes to the CPU's [`ledger`]: one
//!   account for all sources of all drivers. No flag of the scheduler can stand for that: a task
//!   that was interrupted is the current one, waits for the CPU and not for the scheduler, and
//!   nothing is ever set for it.
//! - Once they have had their share, the CPU *defers*: each handler only masks and joins the list
//!   of the CPU's completion thread, which drains in pieces and rests when others want the CPU.
//! - When that list is empty, handlers drain again.
//!
//! A forced interrupt thread is weighed like a handler: it keeps softirqs and tasks off as well.
//!
//! [`ledger`]: crate::ledger

use super::{
    Conflict,
    Cpu,
    Key,
    Policy,
    Values, //
};
use crate::{
    ledger::{
        Ledger,
        Share, //
    },
    observation::{
        Glance,
        Looks,
        Observation, //
    },
    reason::{
        micros,
        Condition,
        Reason,
        IDLE, //
    },
    verdict::{
        After,
        Deferral,
        Next,
        Verdict, //
    },
    Budget,
    Drain, //
};

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    share_percent: u32,
    window_us: u32,
}

const SHARE: Key = Key {
    name: "share_percent",
    min: 10,
    max: 99,
    default: 94,
};

const WINDOW: Key = Key {
    name: "window_us",
    min: 500,
    max: 20_000,
    default: 8_000,
};

/// What a handler drains on an idle CPU before it looks at the clock.
const LIGHT: Budget = match Budget::polled(Ledger::FIRST_PIECE) {
    Some(budget) => budget,
    None => Budget::POLL_DEFAULT,
};

/// The account of the CPU, before the handler.
const ACCOUNT: Condition = Condition::measured("account percent");

/// How long the handler ran.
const HANDLER: Condition = Condition::measured("handler us");

/// The thread keeps a queue in which it found as many: the next round will find more, and an
/// interrupt costs more than to look.
const WORTH_A_LOOK: u32 = 8;

impl Config {
    /// Completions may take `share_percent`, `10..=99`, of a CPU that others want, in windows of
    /// `window_us`, `500..=20000`, microseconds. [`None`] outside of the ranges.
    pub const fn new(share_percent: u32, window_us: u32) -> Option<Self> {
        if share_percent < SHARE.min
            || share_percent > SHARE.max
            || window_us < WINDOW.min
            || window_us > WINDOW.max
        {
            return None;
        }
        Some(Self {
            share_percent,
            window_us,
        })
    }

    /// What completions may take of a CPU that others want.
    pub const fn share(&self) -> Share {
        Share::new(self.share_percent, self.window_us)
    }

    fn defer(&self, cpu: &mut Cpu) -> Deferral {
        cpu.ledger.enter(self.share());
        Deferral::Cpu
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            share_percent: SHARE.default,
            window_us: WINDOW.default,
        }
    }
}

impl Policy for Config {
    const NAME: &'static str = "fair";
    const KEYS: &'static [Key] = &[SHARE, WINDOW];
    const HOME: Option<Deferral> = Some(Deferral::Cpu);
    const OF_CPU: bool = true;
    type Line = ();

    /// Not checked again, because the handler comes through here.
    #[inline]
    fn from_values(values: &Values) -> Result<Self, Conflict> {
        Ok(Self {
            share_percent: values[0],
            window_us: values[1],
        })
    }

    fn values(&self) -> Values {
        [self.share_percent, self.window_us, 0, 0, 0, 0, 0]
    }

    const LIGHT: Option<Budget> = Some(LIGHT);

    fn looks(&self, (): &(), _: Drain) -> Looks {
        Looks::CLOCK
    }

    #[inline]
    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        None
    }

    #[cold]
    fn weigh_interrupt(&self, seen: &Observation, (): &mut (), cpu: &mut Cpu) -> Verdict {
        if seen.glance.contains(Glance::DEFERRING) {
            cpu.ledger.on_deferral();
            Verdict::Defer(Deferral::Cpu)
        } else if cpu.ledger.on_handler(seen.now, self.share()) {
            Verdict::Defer(self.defer(cpu))
        } else {
            Verdict::Drain(cpu.ledger.handler_piece())
        }
    }

    #[inline]
    fn on_drained(&self, _: Glance, _: Drain) -> Option<After> {
        None
    }

    #[cold]
    fn weigh_drained(&self, seen: &Observation, drain: Drain, (): &mut (), cpu: &mut Cpu) -> After {
        let ledger = &mut cpu.ledger;
        let stop = ledger.on_handler_piece(seen.began, seen.now, drain.found(), self.share());
        match drain {
            Drain::Drained(_) => {
                ledger.end_handler();
                After::Open
            }
            Drain::More(_) if stop => After::Defer(self.defer(cpu)),
            Drain::More(_) => After::Again(ledger.handler_piece()),
        }
    }

    /// In the CPU's completion thread.
    fn on_pass(&self, _: &Observation, drain: Drain, (): &mut ()) -> Next {
        match drain {
            Drain::Drained(found) if found < WORTH_A_LOOK => Next::HandBack,
            _ => Next::Again,
        }
    }

    /// The poller's, which is only used for the look after a resume.
    fn budget(&self) -> Budget {
        LIGHT
    }

    const CONDITIONS: &'static [Condition] = &[IDLE, ACCOUNT, HANDLER];

    fn why(&self, seen: &Observation, _: u32, (): &(), cpu: &Cpu, say: &mut dyn FnMut(Reason)) {
        if seen.glance.is_free() {
            return say(Reason::held(0));
        }
        say(Reason::new(1, cpu.ledger.view().account_percent, 100));
        let took = micros(seen.now.since(seen.began));
        say(Reason::new(2, took, micros(Ledger::HANDLER)));
    }
}
