// SPDX-License-Identifier: GPL-2.0

// The world around one source: an interrupt line with genirq's edge flow, the irq_poll core, an
// interrupt thread, the queue and its device. Included beside a module `irqmod`, the real one or
// one with a planted bug.

use super::irqmod::{
    observation::Glance,
    policy::{
        Config,
        Cpu,
        Mask, //
    },
    state::Snapshot,
    time::{
        Instant,
        Span, //
    },
    Budget,
    Deferral,
    Drain,
    DrainRight,
    Handled,
    MaskToken,
    Moderator,
    Platform,
    PollEnd,
    PollPass,
    Source, //
};
use loom::{
    cell::UnsafeCell,
    sync::{
        atomic::{
            fence,
            AtomicBool,
            AtomicU32,
            Ordering::{
                Acquire,
                Relaxed,
                Release,
                SeqCst, //
            }, //
        },
        Condvar,
        Mutex, //
    },
};
use std::cell::Cell;

loom::thread_local! {
    /// How deep this CPU is in sections that no softirq and no thread may enter.
    static BUSY: Cell<u32> = Cell::new(0);
}

fn busy() -> bool {
    BUSY.with(|busy| busy.get() != 0)
}

fn nest<R>(f: impl FnOnce() -> R) -> R {
    BUSY.with(|busy| busy.set(busy.get() + 1));
    let result = f();
    BUSY.with(|busy| busy.set(busy.get() - 1));
    result
}

/// What happens to an interrupt that comes while the line is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// It is kept, and replayed by the enable (genirq, or the pending bit of the vector).
    Latching,
    /// It is lost.
    Lossy,
    /// It is kept, but one that was sent before the mask still reaches the handler (MISS-04); who
    /// waits for the handler waits for those as well.
    Late,
}

/// Which thread the exploration begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    HereFirst,
    OthersFirst,
}

/// The completion queue.
pub struct Ring {
    tail: AtomicU32,
    head: AtomicU32,
    body: UnsafeCell<u32>,
    reachable: AtomicBool,
    /// The most that one drain takes, whatever its budget.
    most: u32,
}

// SAFETY: `body` is what the protocol protects: loom reports every access to it that is not ordered
// with all others.
unsafe impl Send for Ring {}
// SAFETY: As above.
unsafe impl Sync for Ring {}

impl Source for Ring {
    fn pending(&self) -> bool {
        self.tail.load(Acquire) != self.head.load(Relaxed)
    }

    fn drain(ring: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        // The access is open for the whole drain: a second consumer is a failure of the model.
        let body = ring.body.get_mut();
        let mut found = 0;
        while ring.pending() {
            if found == budget.get().min(ring.most) {
                return Drain::More(found);
            }
            ring.head.store(ring.head.load(Relaxed) + 1, Relaxed);
            found += 1;
        }
        drop(body);
        Drain::Drained(found)
    }

    fn reachable(&self) -> bool {
        self.reachable.load(Acquire)
    }
}

struct Irq {
    depth: u32,
    in_flight: u32,
    pending: bool,
    in_progress: bool,
    freed: bool,
    woken: bool,
    thread_runs: bool,
}

impl Irq {
    /// Handler or thread runs, or is bound to.
    fn is_busy(&self) -> bool {
        self.in_progress || self.in_flight != 0 || self.woken || self.thread_runs
    }
}

#[derive(Default)]
struct Poller {
    /// IRQ_POLL_F_SCHED: scheduled, or kept from being so.
    sched: bool,
    /// IRQ_POLL_F_DISABLE.
    disable: bool,
    /// On the softirq list.
    listed: bool,
    /// Its callback owns the instance.
    runs: bool,
}

pub struct World {
    pub moderator: Moderator,
    pub ring: Ring,
    line: Line,
    /// Which thread the exploration begins with.
    pub order: Order,
    irq: Mutex<Irq>,
    irq_idle: Condvar,
    poller: Mutex<Poller>,
    poller_idle: Condvar,
    queue: Mutex<()>,
    /// How many more interrupts see a pending reschedule. Not of the model: a hint may be anything.
    pressure: std::sync::atomic::AtomicU32,
}

impl World {
    /// A requested line.
    pub fn new(line: Line, config: Config, order: Order) -> Self {
        let world = Self::unrequested(line, config, order);
        world.moderator.prepare();
        world.moderator.start();
        world
    }

    pub fn unrequested(line: Line, config: Config, order: Order) -> Self {
        // The budget of the thread is not a parameter; with a small one it goes round more often.
        let most = match config {
            Config::Threaded(_) => 1,
            _ => u32::MAX,
        };
        Self {
            moderator: Moderator::new(config),
            ring: Ring {
                tail: AtomicU32::new(0),
                head: AtomicU32::new(0),
                body: UnsafeCell::new(0),
                reachable: AtomicBool::new(true),
                most,
            },
            line,
            order,
            irq: Mutex::new(Irq {
                depth: 0,
                in_flight: 0,
                pending: false,
                in_progress: false,
                freed: false,
                woken: false,
                thread_runs: false,
            }),
            irq_idle: Condvar::new(),
            poller: Mutex::new(Poller::default()),
            poller_idle: Condvar::new(),
            queue: Mutex::new(()),
            pressure: u32::MAX.into(),
        }
    }

    /// Only the next interrupt sees a pending reschedule.
    pub fn relieve(&self) {
        self.pressure.store(1, Relaxed);
    }

    /// The device posts a completion and sends its interrupt, on the CPU of the caller.
    pub fn complete(&self) {
        self.post();
        self.interrupt();
    }

    /// The device posts a completion. It is visible everywhere before the interrupt is.
    pub fn post(&self) {
        self.tail_add();
        fence(SeqCst);
    }

    fn tail_add(&self) {
        self.ring.tail.fetch_add(1, Release);
    }

    /// The device sends an interrupt.
    pub fn interrupt(&self) {
        if self.line == Line::Late {
            let mut irq = self.irq.lock().unwrap();
            let sent = irq.depth == 0 && !irq.freed;
            irq.in_flight += u32::from(sent);
            drop(irq);
            return self.deliver(sent);
        }
        self.deliver(false);
    }

    /// The edge flow of genirq. `late` was sent before the line was masked.
    fn deliver(&self, late: bool) {
        {
            let mut irq = self.irq.lock().unwrap();
            if late {
                irq.in_flight -= 1;
                self.irq_idle.notify_all();
            }
            if irq.freed {
                return;
            }
            if irq.depth != 0 && !late {
                irq.pending |= self.line != Line::Lossy;
                return;
            }
            if irq.in_progress {
                irq.pending = true;
                return;
            }
            irq.in_progress = true;
        }
        while self.handle() {}
        self.exit();
    }

    /// One run of the handler; true if another one is due.
    fn handle(&self) -> bool {
        let handled = nest(|| self.moderator.on_interrupt(&self.ring, self));
        let mut irq = self.irq.lock().unwrap();
        irq.woken |= handled == Handled::WakeThread;
        if irq.pending && irq.depth == 0 {
            irq.pending = false;
            return true;
        }
        irq.in_progress = false;
        self.irq_idle.notify_all();
        false
    }

    /// What runs when a CPU leaves its interrupt, or switches softirqs on again.
    pub fn exit(&self) {
        if busy() {
            return;
        }
        while self.softirq() || self.thread() {}
    }

    /// One call of the poller, if it is due.
    fn softirq(&self) -> bool {
        {
            let mut poller = self.poller.lock().unwrap();
            if !poller.listed || poller.runs {
                return false;
            }
            poller.runs = true;
        }
        let weight = self.moderator.choice().policy.budget();
        let end = nest(|| {
            self.moderator
                .on_poll(&self.ring, self, PollPass::new(weight))
        });
        if end.work() >= weight.get() {
            let mut poller = self.poller.lock().unwrap();
            assert!(poller.listed && poller.runs, "moves what is not on a list");
            poller.runs = false;
            if poller.disable {
                self.take_off(&mut poller);
            }
        }
        true
    }

    fn take_off(&self, poller: &mut Poller) {
        poller.listed = false;
        poller.sched = false;
        self.poller_idle.notify_all();
    }

    /// One run of the interrupt thread, if it is due.
    fn thread(&self) -> bool {
        {
            let mut irq = self.irq.lock().unwrap();
            if !irq.woken || irq.thread_runs {
                return false;
            }
            irq.woken = false;
            irq.thread_runs = true;
        }
        let _ = self.moderator.on_thread(&self.ring, self);
        self.irq.lock().unwrap().thread_runs = false;
        self.irq_idle.notify_all();
        true
    }

    pub fn pause(&self) {
        self.moderator.pause(&self.ring, self);
        self.exit();
    }

    /// As [`pause`](Self::pause), and nobody drains any more.
    pub fn pause_and_reap(&self) {
        self.moderator.pause(&self.ring, self);
        drop(self.ring.body.get_mut());
        self.exit();
    }

    pub fn resume(&self) {
        self.moderator.resume(&self.ring, self);
        self.exit();
    }

    /// Stops, reaps while interrupts may still come, and frees the line.
    pub fn stop_and_free(&self) {
        self.moderator.stop(&self.ring, self);
        drop(self.ring.body.get_mut());
        let mut irq = self.irq.lock().unwrap();
        while irq.is_busy() {
            irq = self.irq_idle.wait(irq).unwrap();
        }
        irq.freed = true;
        irq.pending = false;
        assert!(
            irq.depth == 0 || !self.ring.reachable(),
            "freed with a disable"
        );
        irq.depth = 0;
    }

    /// A task drains a little, and leaves the rest.
    pub fn peek_exclusively(&self) {
        self.moderator.exclusive(&self.ring, self, |ring| {
            let _ = ring.drain(Budget::new(1).unwrap());
        });
        self.exit();
    }

    /// A task drains until empty.
    pub fn drain_exclusively(&self) {
        self.moderator.exclusive(&self.ring, self, |ring| {
            while matches!(ring.drain(Budget::UNLIMITED), Drain::More(_)) {}
        });
        self.exit();
    }

    pub fn set_reachable(&self, reachable: bool) {
        self.ring.reachable.store(reachable, Release);
    }

    /// The end of every scenario: nothing is left, nobody owes anything.
    pub fn assert_settled(&self) {
        self.exit();
        let irq = self.irq.lock().unwrap();
        let state = self.moderator.snapshot();
        assert!(!irq.is_busy());
        assert!(!self.poller.lock().unwrap().listed, "still polled");
        assert_eq!(irq.depth, 0, "masked at the end: {state:?}");
        if irq.freed {
            let left = Snapshot::HANDOFF | Snapshot::MASKED;
            assert_eq!(state - left, Snapshot::PAUSED);
        } else {
            assert!(
                (Snapshot::INIT | Snapshot::HANDOFF).contains(state),
                "owned by nobody: {state:?}"
            );
            assert!(
                !self.ring.pending(),
                "lost: a completion, an open line, and nobody who comes"
            );
        }
    }
}

impl Platform for World {
    fn mask(&self, _: Mask) -> MaskToken {
        let mut irq = self.irq.lock().unwrap();
        assert!(!irq.freed, "masks a freed line");
        irq.depth += 1;
        MaskToken::mint()
    }

    fn mask_sync(&self) -> MaskToken {
        let token = self.mask(Mask::Nosync);
        self.synchronize();
        token
    }

    fn unmask(&self, token: MaskToken) {
        token.redeem();
        {
            let mut irq = self.irq.lock().unwrap();
            assert!(!irq.freed, "unmasks a freed line");
            assert!(irq.depth != 0, "unbalanced enable");
            irq.depth -= 1;
            if irq.depth != 0 || !irq.pending {
                return;
            }
            irq.pending = false;
        }
        self.deliver(false);
    }

    fn synchronize(&self) {
        let mut irq = self.irq.lock().unwrap();
        while irq.is_busy() {
            irq = self.irq_idle.wait(irq).unwrap();
        }
    }

    fn defer(&self, to: Deferral) {
        let mut irq = self.irq.lock().unwrap();
        assert!(!irq.freed, "defers a freed line");
        if to == Deferral::Thread {
            irq.woken = true;
            return;
        }
        drop(irq);
        assert_eq!(to, Deferral::Softirq);
        let mut poller = self.poller.lock().unwrap();
        if poller.disable || poller.sched {
            return;
        }
        poller.sched = true;
        poller.listed = true;
    }

    fn complete_poller(&self, pass: PollPass) -> PollEnd {
        let mut poller = self.poller.lock().unwrap();
        assert!(poller.listed && poller.runs, "list corruption");
        poller.runs = false;
        self.take_off(&mut poller);
        pass.completed()
    }

    fn join_deferred(&self) {
        let mut poller = self.poller.lock().unwrap();
        assert!(!poller.disable, "disabled twice");
        poller.disable = true;
        while poller.sched {
            poller = self.poller_idle.wait(poller).unwrap();
        }
        poller.sched = true;
        poller.disable = false;
        drop(poller);
        // Of the interrupt only what the poller has woken.
        let mut irq = self.irq.lock().unwrap();
        while irq.woken || irq.thread_runs {
            irq = self.irq_idle.wait(irq).unwrap();
        }
    }

    fn enable_deferred(&self) {
        let mut poller = self.poller.lock().unwrap();
        assert!(poller.sched && !poller.listed, "enabled, but not disabled");
        poller.sched = false;
        self.poller_idle.notify_all();
    }

    fn arm_hold(&self, _: Span) {
        unreachable!("no policy of these models holds a line");
    }

    fn poll_after(&self, _: Span) {
        unreachable!("no policy of these models paces the poller");
    }

    fn glance(&self) -> Glance {
        let left = self.pressure.load(Relaxed);
        self.pressure.store(left.saturating_sub(1), Relaxed);
        let mut glance = Glance::HARDIRQ;
        glance.set(Glance::RESCHED, left != 0);
        glance
    }

    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn switches(&self) -> u64 {
        0
    }

    fn on_cpu<R>(&self, f: impl FnOnce(&mut Cpu) -> R) -> R {
        f(&mut Cpu::new())
    }

    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        nest(|| {
            let _guard = self.queue.lock().unwrap();
            f()
        })
    }

    fn relax(&self) {
        loom::thread::yield_now();
    }

    fn sleep(&self, _: Span) {
        loom::thread::yield_now();
    }
}
