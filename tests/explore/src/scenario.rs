// SPDX-License-Identifier: GPL-2.0

//! What may happen, and how often: the bounds of the exploration.

use crate::irqmod::policy::{
    any,
    at_home,
    irqpoll,
    overflow,
    resched,
    threaded,
    Choice,
    Config,
    Mask, //
};

/// What happens to an interrupt that comes while the line is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// It is kept, and replayed by the enable.
    Latching,
    /// It is lost.
    Lossy,
    /// It is kept, but one that was under way before the mask starts the handler all the same; who
    /// waits for the handler waits for those as well.
    Late,
}

impl Line {
    fn name(self) -> &'static str {
        match self {
            Self::Latching => "kept",
            Self::Lossy => "lost",
            Self::Late => "late",
        }
    }
}

/// One exploration.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// It begins with a line that was requested, rather than with the request.
    pub(crate) requested: bool,
    pub(crate) policies: Vec<Config>,
    pub(crate) mask: Mask,
    pub(crate) line: Line,
    /// The line has a vector of its own.
    pub(crate) dedicated: bool,
    /// Handlers run in threads.
    pub(crate) forced: bool,
    /// The scheduler may want the CPU, or not.
    pub(crate) pressure: bool,
    /// Most completions that one run of the handler may drain.
    pub(crate) bound: u32,
    /// Completions.
    pub(crate) posts: u8,
    /// Messages about nothing.
    pub(crate) spurious: u8,
    /// Calls of the life cycle.
    pub(crate) lives: u8,
    /// Tasks that drain beside it.
    pub(crate) guests: u8,
    /// Times that the device becomes unreachable.
    pub(crate) breaks: u8,
    /// Times that the interrupt moves to the other CPU.
    pub(crate) migrations: u8,
    /// Times that another policy is chosen.
    pub(crate) switches: u8,
}

impl Scenario {
    fn new(name: &str, policy: impl Into<Config>) -> Self {
        Self {
            name: name.into(),
            requested: true,
            policies: vec![policy.into()],
            mask: Mask::Nosync,
            line: Line::Latching,
            dedicated: true,
            forced: false,
            pressure: false,
            bound: u32::MAX,
            posts: 2,
            spurious: 0,
            lives: 0,
            guests: 0,
            breaks: 0,
            migrations: 0,
            switches: 0,
        }
    }

    /// The choice after so many switches.
    pub(crate) fn choice(&self, switches: u8) -> Choice {
        Choice {
            policy: self.policies[usize::from(switches) % self.policies.len()],
            mask: self.mask,
        }
    }
}

/// Defers to all contexts of the set, or drains.
fn anything(to: u32) -> Config {
    any::Config { to }.into()
}

/// As [`anything`], and the poller leaves its source to the thread.
fn at_home(to: u32) -> Config {
    at_home::Config { to }.into()
}

fn resched(budget: u32) -> Config {
    resched::Config::new(budget).unwrap_or_default().into()
}

fn irqpoll(budget: u32) -> Config {
    irqpoll::Config::new(budget).unwrap_or_default().into()
}

fn overflow(budget: u32) -> Config {
    overflow::Config::new(budget).map_or(Config::HARDIRQ, Config::from)
}

/// Bits of the contexts that `any` defers to.
const SOFTIRQ: u32 = 1;
const THREAD: u32 = 2;
const WORK: u32 = 4;
const HOLD: u32 = 8;
const CPU: u32 = 16;

/// One that claims too much of its policy, and so must fail.
pub fn faulty() -> Scenario {
    Scenario {
        bound: 1,
        ..Scenario::new("faulty", resched(2))
    }
}

/// All explorations, those that find most first. `long`: with more of everything.
pub fn all(long: bool) -> Vec<Scenario> {
    let more = u8::from(long);
    let mut all = Vec::new();
    let mut add = |scenario: Scenario| all.push(scenario);
    for line in [Line::Latching, Line::Lossy, Line::Late] {
        for (policy, bound, pressure) in [
            (resched(1), 1, true),
            (threaded::Config::default().into(), 0, false),
            (Config::HARDIRQ, u32::MAX, false),
            (irqpoll(2), 0, false),
            (overflow(1), 1, false),
        ] {
            let name = |what| format!("{}, {}, {what}", policy.name(), line.name());
            let base = Scenario {
                line,
                bound,
                pressure,
                posts: 2 + more,
                ..Scenario::new("", policy)
            };
            add(Scenario {
                name: name("traffic"),
                spurious: 1 + more,
                ..base.clone()
            });
            add(Scenario {
                name: name("guest"),
                guests: 1 + more,
                ..base.clone()
            });
            add(Scenario {
                name: name("life"),
                lives: 2 + more,
                posts: 1 + more,
                ..base
            });
        }
    }
    add(Scenario {
        requested: false,
        spurious: 1,
        lives: 1,
        guests: 1,
        ..Scenario::new("request", irqpoll(1))
    });
    add(Scenario {
        lives: 3 + more,
        posts: 1,
        ..Scenario::new("life cycle, irqpoll", irqpoll(1))
    });
    add(Scenario {
        lives: 3 + more,
        posts: 1,
        ..Scenario::new("life cycle, threaded", threaded::Config::default())
    });
    add(Scenario {
        lives: 2 + more,
        posts: 1,
        breaks: 1,
        guests: 1,
        ..Scenario::new("unreachable, irqpoll", irqpoll(1))
    });
    add(Scenario {
        lives: 2 + more,
        posts: 1,
        breaks: 1,
        ..Scenario::new("unreachable, threaded", threaded::Config::default())
    });
    add(Scenario {
        mask: Mask::Nowait,
        spurious: 1,
        lives: 1,
        migrations: 1,
        ..Scenario::new("nowait, migrated", irqpoll(1))
    });
    add(Scenario {
        policies: vec![
            irqpoll(1),
            threaded::Config::default().into(),
            Config::HARDIRQ,
        ],
        lives: 2 + more,
        switches: 2,
        ..Scenario::new("policy switched", irqpoll(1))
    });
    add(Scenario {
        dedicated: false,
        spurious: 1,
        lives: 2,
        guests: 1,
        ..Scenario::new("not dedicated", Config::HARDIRQ)
    });
    for (line, forced) in [
        (Line::Latching, false),
        (Line::Lossy, false),
        (Line::Latching, true),
        (Line::Late, true),
    ] {
        let threads = if forced { ", forced threads" } else { "" };
        let name = |what| format!("at home, {}{threads}, {what}", line.name());
        let base = Scenario {
            line,
            forced,
            ..Scenario::new("", at_home(SOFTIRQ | THREAD))
        };
        add(Scenario {
            name: name("traffic"),
            posts: 2 + more,
            ..base.clone()
        });
        add(Scenario {
            name: name("guest"),
            guests: 1 + more,
            ..base.clone()
        });
        add(Scenario {
            name: name("life"),
            lives: 2 + more,
            posts: 1 + more,
            ..base
        });
    }
    for (name, to) in [
        ("any, softirq", SOFTIRQ),
        ("any, thread", THREAD),
        ("any, work", WORK),
        ("any, hold", HOLD),
        ("any, cpu", CPU),
        ("any, hold and cpu", HOLD | CPU),
        ("any, all", SOFTIRQ | THREAD | WORK | HOLD | CPU),
    ] {
        add(Scenario {
            name: format!("{name}, traffic"),
            posts: 2 + more,
            ..Scenario::new("", anything(to))
        });
        add(Scenario {
            name: format!("{name}, life"),
            lives: 1 + more,
            posts: 1 + more,
            guests: more,
            ..Scenario::new("", anything(to))
        });
    }
    all
}
