// SPDX-License-Identifier: GPL-2.0

//! The code of contexts, as coroutines.
//!
//! A coroutine runs until its code takes time ([`spend`]), waits ([`block`]) or ends; then the event
//! loop lets time pass until it is its turn again. So a drain that takes a millisecond is
//! interrupted where it is, and what it does at its end happens at its end.

mod control;
mod interrupt;
mod softirq;
mod task;

use crate::{
    core::{
        self,
        cpu::Ctx,
        task::Kind, //
    },
    platform::{
        LinePlatform, //
        LineQueue,
    },
    run::Driver,
    Ns, //
};
use generator::{
    Generator,
    Gn, //
};
use irqmod::Moderator;
use std::{
    cell::RefCell,
    rc::Rc, //
};

/// Stack of a coroutine. Unit: machine words.
const STACK: usize = 0x4000;

/// A line as its code sees it.
pub(crate) struct LineCode {
    pub(crate) number: u32,
    pub(crate) driver: Driver,
    pub(crate) moderator: Moderator,
    pub(crate) queue: LineQueue,
    pub(crate) platform: LinePlatform,
}

impl LineCode {
    fn new(number: u32, driver: Driver) -> Self {
        let choice = match driver {
            Driver::Moderated(choice) => choice,
            _ => irqmod::policy::Config::HARDIRQ.into(),
        };
        let moderator = Moderator::new(choice);
        moderator.prepare();
        moderator.start();
        Self {
            number,
            driver,
            moderator,
            queue: LineQueue(number),
            platform: LinePlatform(number),
        }
    }
}

thread_local! {
    static LINES: RefCell<Rc<[LineCode]>> = RefCell::new(Rc::new([]));
}

/// The lines of this thread's machine.
pub(crate) fn lines() -> Rc<[LineCode]> {
    LINES.with_borrow(Rc::clone)
}

pub(crate) use task::LOOK;

type Coroutine = Generator<'static, (), ()>;

/// The coroutines of a machine, made when they are needed.
pub(crate) struct Contexts {
    hard: Vec<Option<Coroutine>>,
    soft: Vec<Option<Coroutine>>,
    tasks: Vec<Option<Coroutine>>,
}

impl Contexts {
    /// For this thread's machine, which was just installed.
    pub(crate) fn new(driver: Driver) -> Self {
        let (cpus, lines) = core::with(|core| (core.cpus.len(), core.lines.len()));
        let lines = (0..lines as u32).map(|number| LineCode::new(number, driver));
        LINES.set(lines.collect());
        Self {
            hard: (0..cpus).map(|_| None).collect(),
            soft: (0..cpus).map(|_| None).collect(),
            tasks: Vec::new(),
        }
    }

    /// The code of `ctx` goes on.
    pub(crate) fn resume(&mut self, ctx: Ctx) {
        let slot = match ctx {
            Ctx::Hard(cpu) => &mut self.hard[cpu as usize],
            Ctx::Soft(cpu) => &mut self.soft[cpu as usize],
            Ctx::Switch(_) => return,
            Ctx::Task(task) => {
                let task = task as usize;
                if self.tasks.len() <= task {
                    self.tasks.resize_with(task + 1, || None);
                }
                &mut self.tasks[task]
            }
        };
        slot.get_or_insert_with(|| make(ctx)).resume();
    }
}

fn make(ctx: Ctx) -> Coroutine {
    Gn::<()>::new_opt(STACK, move || match ctx {
        Ctx::Hard(cpu) => interrupt::body(cpu),
        Ctx::Soft(cpu) => softirq::body(cpu),
        Ctx::Switch(_) => (),
        Ctx::Task(task) => match core::with(|core| core.tasks[task as usize].kind) {
            Kind::Job(job) => task::job(job),
            Kind::Hog => task::hog(),
            Kind::Ksoftirqd(cpu) => softirq::ksoftirqd(cpu),
            Kind::Stopper(cpu) => task::stopper(cpu),
            Kind::Thread(line) => task::thread(line),
            Kind::Worker => task::worker(),
            Kind::Completer(cpu) => task::completer(cpu),
            Kind::Control(what) => control::body(what),
        },
    })
}

/// Gives the CPU back to the event loop, until it is this context's turn again.
///
/// The crate would rather have its `Scope` passed down, which a [`irqmod::Source`] can't hold.
#[allow(deprecated)]
fn suspend() {
    generator::yield_with(());
}

/// The running context takes `time`.
pub(crate) fn spend(time: Ns) {
    if time != 0 && !core::with(|core| core.spend(time)) {
        suspend();
    }
}

/// The running task waits until it is woken. Returns whether it had to.
pub(crate) fn block() -> bool {
    let waits = !core::with(|core| core.block());
    if waits {
        suspend();
    }
    waits
}

/// The running task waits for `time`, or until it is woken.
pub(crate) fn sleep(time: Ns) {
    core::with(|core| core.set_alarm(time));
    block();
}

/// The running task lets others run if the scheduler wants that.
pub(crate) fn relax() {
    if !core::with(|core| core.relax()) {
        suspend();
    }
}

/// Runs `f` with softirqs and the scheduler kept away.
fn with_bh_off<R>(f: impl FnOnce() -> R) -> R {
    core::with(|core| core.bh_disable());
    let result = f();
    bh_enable();
    result
}

/// What was kept away comes now, and before the running task goes on.
///
/// If it went on it could disable them again, with the softirq already on top of it: one that wants
/// the lock which the task takes then spins for ever.
pub(crate) fn bh_enable() {
    if !core::with(|core| core.bh_enable()) {
        suspend();
    }
}
