// SPDX-License-Identifier: GPL-2.0

//! KUnit: lines on interrupts without a device.
//!
//! What the platform of a test on the host stands in for is real here: interrupt core, poller,
//! threads, timers and work items.

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use crate::{
    params,
    policy::Config,
    Budget,
    Drain,
    DrainRight,
    Line,
    Source, //
};

// See rust/irqmod/sim.h. No binding is generated, since only these tests use it.
extern "C" {
    fn irqmod_sim_create() -> c_int;
    fn irqmod_sim_remove(irq: c_uint);
    fn irqmod_sim_raise(irq: c_uint);
    fn irqmod_sim_is_requested(irq: c_uint) -> bool;
    fn irqmod_sim_depth(irq: c_uint) -> c_uint;
}

/// An interrupt; given back when dropped, after the line that requested it.
struct Interrupt(u32);

impl Interrupt {
    fn new() -> Result<Self> {
        // SAFETY: Task context.
        let irq = unsafe { irqmod_sim_create() };
        u32::try_from(irq).map(Self).map_err(|_| ENOSPC)
    }

    /// The device sends it.
    fn raise(&self) {
        // SAFETY: Task context; the interrupt exists.
        unsafe { irqmod_sim_raise(self.0) };
    }

    fn is_requested(&self) -> bool {
        is_requested(self.0)
    }

    fn depth(&self) -> u32 {
        // SAFETY: The interrupt exists.
        unsafe { irqmod_sim_depth(self.0) }
    }
}

fn is_requested(irq: u32) -> bool {
    // SAFETY: Callable from any context with any number.
    unsafe { irqmod_sim_is_requested(irq) }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // SAFETY: Task context; no line has it any more.
        unsafe { irqmod_sim_remove(self.0) };
    }
}

/// How a queue went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Unknown = 0,
    /// Nobody could have called it any more.
    Alone = 1,
    /// Its interrupt was still requested.
    Requested = 2,
}

/// A queue that is a number of completions, and the end of whose life is observed.
struct Queue {
    posted: Atomic<u32>,
    drained: Atomic<u32>,
    /// More than one drainer at a time.
    broken: Atomic<bool>,
    draining: Atomic<bool>,
    irq: u32,
    end: &'static Atomic<u32>,
}

impl Queue {
    fn new(irq: &Interrupt, end: &'static Atomic<u32>) -> Self {
        end.store(End::Unknown as u32, Relaxed);
        Self {
            posted: Atomic::new(0),
            drained: Atomic::new(0),
            broken: Atomic::new(false),
            draining: Atomic::new(false),
            irq: irq.0,
            end,
        }
    }

    fn post(&self, completions: u32) {
        self.posted.fetch_add(completions, Release);
    }

    fn waiting(&self) -> u32 {
        let drained = self.drained.load(Acquire);
        self.posted.load(Acquire).wrapping_sub(drained)
    }

    /// Whether all of it is drained in time.
    fn gets_empty(&self) -> bool {
        in_time(|| self.waiting() == 0)
    }
}

impl Source for Queue {
    fn pending(&self) -> bool {
        self.waiting() != 0
    }

    fn drain(queue: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        if queue.draining.xchg(true, Acquire) {
            queue.broken.store(true, Relaxed);
        }
        let waiting = queue.waiting();
        let found = waiting.min(budget.get());
        queue.drained.fetch_add(found, Release);
        queue.draining.store(false, Release);
        if found == waiting {
            Drain::Drained(found)
        } else {
            Drain::More(found)
        }
    }

    fn in_flight(&self) -> Option<u32> {
        Some(self.waiting())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let end = match is_requested(self.irq) {
            true => End::Requested,
            false => End::Alone,
        };
        self.end.store(end as u32, Relaxed);
    }
}

/// Waits for something that softirqs, threads and timers do.
fn in_time(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..10_000 {
        if is_so() {
            return true;
        }
        fsleep(Delta::from_millis(1));
    }
    false
}

/// Policies that act on anything.
const CHOICES: &[&str] = &[
    "flood:window_us=100,busy_percent=1",
    "overflow:budget=1",
    "inflight:high=4,low=2,interval_us=200",
    "rate:interval_us=1000,window=512",
    "workqueue:direct=0",
    "timer:delay_us=200,push=1",
    "fair:share_percent=10,window_us=500",
    "resched:budget=2",
    "irqpoll:mask=nowait",
    "threaded:mask=nowait",
    "threaded:spread=1",
];

/// Each policy, by default and acting.
fn all() -> impl Iterator<Item = &'static str> {
    Iterator::chain(Config::NAMES.iter(), CHOICES).copied()
}

type Boxed = Pin<KBox<Line<Queue>>>;

fn new_line(irq: &Interrupt, end: &'static Atomic<u32>, policy: &str) -> Result<Boxed> {
    let choice = params::parse(policy).map_err(|_| EINVAL)?;
    let queue = Queue::new(irq, end);
    KBox::pin_init(Line::new(Ok::<_, Error>(queue), choice), GFP_KERNEL)
}

fn request(line: &Boxed, irq: &Interrupt) -> Result {
    // SAFETY: Edge triggered, this line's alone, and it is dropped after the line was freed.
    unsafe { line.as_ref().request(irq.0, fmt!("irqmod-test-{}", irq.0)) }
}

/// What an interrupt does to a line that runs: all is drained, and the line is open again.
fn serves(line: &Boxed, irq: &Interrupt) -> bool {
    for completions in [1, 5, 300] {
        line.post(completions);
        irq.raise();
        if !line.gets_empty() {
            return false;
        }
    }
    in_time(|| irq.depth() == 0) && !line.broken.load(Relaxed)
}

/// One life of a line.
fn lives(policy: &str) -> Result<bool> {
    static END: Atomic<u32> = Atomic::new(0);
    let irq = Interrupt::new()?;
    let line = new_line(&irq, &END, policy)?;
    let mut right = !irq.is_requested();
    for _ in 0..2 {
        request(&line, &irq)?;
        right &= irq.is_requested() && serves(&line, &irq);
        right &= waits_for_the_end_of_a_pause(&line, &irq);
        right &= serves(&line, &irq);
        line.as_ref().free();
        right &= !irq.is_requested();
    }
    request(&line, &irq)?;
    // Deferred at this moment, if the policy defers: what was deferred must not outlive the line.
    line.post(1000);
    irq.raise();
    drop(line);
    right &= END.load(Relaxed) == End::Alone as u32 && !irq.is_requested();
    Ok(right)
}

/// Nothing is drained while the line is paused, and nothing is lost.
fn waits_for_the_end_of_a_pause(line: &Boxed, irq: &Interrupt) -> bool {
    line.pause();
    line.pause();
    line.post(7);
    irq.raise();
    fsleep(Delta::from_millis(5));
    let kept = line.waiting() == 7;
    line.resume();
    line.resume();
    kept && line.gets_empty() && in_time(|| irq.depth() == 0)
}

#[kernel::macros::kunit_tests(rust_irqmod_line)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_lives_by_default() {
        for policy in Config::NAMES.iter().copied() {
            assert!(lives(policy) == Ok(true));
        }
    }

    #[test]
    fn every_policy_lives_when_it_acts() {
        for policy in CHOICES {
            assert!(lives(policy) == Ok(true));
        }
    }

    #[test]
    fn policies_are_switched_while_completions_wait() -> Result {
        static END: Atomic<u32> = Atomic::new(0);
        let irq = Interrupt::new()?;
        let line = new_line(&irq, &END, "hardirq")?;
        request(&line, &irq)?;
        for policy in all() {
            line.post(40);
            irq.raise();
            let choice = params::parse(policy).map_err(|_| EINVAL)?;
            line.set_policy(choice)?;
            assert!(line.gets_empty());
            assert!(serves(&line, &irq));
        }
        Ok(())
    }

    #[test]
    fn miss_02_a_task_finds_what_no_interrupt_told() -> Result {
        static END: Atomic<u32> = Atomic::new(0);
        let irq = Interrupt::new()?;
        for policy in all() {
            let line = new_line(&irq, &END, policy)?;
            request(&line, &irq)?;
            // The interrupt comes before its completion.
            irq.raise();
            line.post(3);
            let found = line.exclusive(|queue| queue.drain(Budget::UNLIMITED));
            assert!(found.found() == 3 || line.gets_empty());
            assert_eq!(line.waiting(), 0);
            assert!(serves(&line, &irq));
        }
        Ok(())
    }

    #[test]
    fn tear_11_an_interrupt_before_the_line_and_at_once_after_it() -> Result {
        static END: Atomic<u32> = Atomic::new(0);
        let irq = Interrupt::new()?;
        for policy in all() {
            let line = new_line(&irq, &END, policy)?;
            line.post(1);
            irq.raise();
            assert_eq!(line.waiting(), 1);
            request(&line, &irq)?;
            irq.raise();
            assert!(line.gets_empty());
        }
        Ok(())
    }

    #[test]
    fn rust_05_the_interrupt_goes_before_the_queue() -> Result {
        static END: Atomic<u32> = Atomic::new(0);
        let irq = Interrupt::new()?;
        for policy in all() {
            let line = new_line(&irq, &END, policy)?;
            request(&line, &irq)?;
            line.post(1000);
            irq.raise();
            drop(line);
            assert_eq!(END.load(Relaxed), End::Alone as u32);
        }
        Ok(())
    }

    #[test]
    fn rust_05_what_fails_half_way_leaves_nothing() -> Result {
        static END: Atomic<u32> = Atomic::new(0);
        static OTHER: Atomic<u32> = Atomic::new(0);
        let irq = Interrupt::new()?;
        // The queue can't be made.
        let none = Line::<Queue>::new(Err::<Queue, _>(ENOMEM), Config::HARDIRQ);
        assert!(KBox::pin_init(none, GFP_KERNEL).is_err());
        // Its interrupt can't be had, in each way of asking for it.
        let owner = new_line(&irq, &OTHER, "hardirq")?;
        request(&owner, &irq)?;
        for policy in all() {
            let line = new_line(&irq, &END, policy)?;
            assert_eq!(request(&line, &irq).err(), Some(EBUSY));
            // Not requested: nobody but the caller can drain it.
            line.post(1);
            irq.raise();
            assert_eq!(line.waiting(), 1);
            assert_eq!(
                line.poll(|queue| queue.drain(Budget::POLL_DEFAULT).found()),
                Some(1)
            );
            drop(line);
            // Its owner has the interrupt still.
            assert_eq!(END.load(Relaxed), End::Requested as u32);
            assert!(serves(&owner, &irq));
        }
        assert_eq!(request(&owner, &irq).err(), Some(EBUSY));
        drop(owner);
        assert_eq!(OTHER.load(Relaxed), End::Alone as u32);
        Ok(())
    }
}
