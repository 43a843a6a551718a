// SPDX-License-Identifier: GPL-2.0

//! One hardware queue: a submission ring, a completion ring, and the requests between them.
//!
//! The block layer's threads put commands into the one under a spin lock. From the other exactly
//! one context takes answers at a time, which is what [`irqmod`] sees to: a queue is a
//! [`Source`] that is owned by a [`Line`], also if the line never gets an interrupt (polled
//! queues). So collecting needs no lock of its own.

use crate::{
    blk::{
        Batch,
        DmaDevice,
        InFlight,
        Mapped,
        Pending,
        PrpLists,
        Ready,
        StartedList,
        Status, //
    },
    cid::CommandId,
    command::Command,
    doorbell::Doorbells,
    nvme_core::{
        pci::Channel,
        regs::{
            Doorbell,
            Registers, //
        },
        rings::{
            CompletionMemory,
            Sqe,
            Submission, //
        },
        word::Word,
        Bound,
        EventSink,
        HwQueue,
        Transport, //
    },
    queue::{
        self,
        CqRing,
        Cqe,
        Entries, //
    }, //
};
use irqmod::{
    Budget,
    Drain,
    DrainRight,
    Line,
    Source, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// A hardware queue. Usable while `enabled`.
#[pin_data]
pub(crate) struct IoQueue {
    /// Requests may be submitted, and doorbells rung.
    enabled: Word<bool>,
    /// The line has an interrupt.
    listening: Atomic<bool>,
    qid: u16,
    channel: Channel,
    dma: DmaDevice,
    ring: CqRing,
    completions: CompletionMemory,
    cq_doorbell: Doorbell,
    pub(crate) pending: Pending,
    lists: PrpLists,
    sq_doorbell: Doorbell,
    sq_address: u64,
    in_flight: queue::InFlight,
    events: EventSink,
    #[pin]
    submission: SpinLock<Submission>,
}

impl IoQueue {
    /// A queue with rings of `entries`, for requests of up to `max_transfer` bytes.
    pub(crate) fn new<'a, T: Transport>(
        b: Bound<'a, T>,
        regs: &'a Arc<Registers>,
        doorbells: Doorbells,
        qid: u16,
        entries: Entries,
        max_transfer: usize,
    ) -> impl PinInit<Self, Error> + 'a {
        let tags = usize::from(entries.get());
        pin_init::pin_init_scope(move || {
            let submission = Submission::new(b.device(), entries)?;
            let sq_doorbell = Doorbell::new(regs, doorbells.sq(qid).ok_or(ENODEV)?)?;
            let cq_doorbell = Doorbell::new(regs, doorbells.cq(qid).ok_or(ENODEV)?)?;
            Ok(try_pin_init!(Self {
                enabled: Word::new(false),
                listening: Atomic::new(false),
                qid,
                channel: b.channel(),
                dma: DmaDevice::new(b),
                ring: CqRing::new(entries),
                completions: CompletionMemory::new(b.device(), entries)?,
                cq_doorbell,
                pending: Pending::new(tags)?,
                lists: PrpLists::new(b.device(), tags, max_transfer)?,
                sq_doorbell,
                sq_address: submission.dma_address(),
                in_flight: queue::InFlight::new(),
                events: EventSink::new(b),
                submission <- new_spinlock!(submission, "nvme_rust::sq_lock"),
            }))
        })
    }

    /// How many entries the rings have.
    pub(crate) fn entries(&self) -> Entries {
        self.ring.entries()
    }

    /// The submission ring's address for the device.
    pub(crate) fn sq_address(&self) -> u64 {
        self.sq_address
    }

    /// The completion ring's address for the device.
    pub(crate) fn cq_address(&self) -> u64 {
        self.completions.dma_address()
    }

    /// Forgets an earlier life. The device does not use the rings. Task context.
    pub(crate) fn reset(line: &Line<Self>) {
        line.submission.lock().reset();
        line.in_flight.publish(0);
        line.exclusive(Self::forget_answers);
    }

    /// The right keeps pollers out, which a frozen queue does not: they come as long as a request
    /// has not ended. The slots go first, so that no entry of the old ring finds a request.
    fn forget_answers(queue: &mut DrainRight<'_, Self>) {
        Pending::clear(queue);
        queue.completions.reset();
        queue.ring.reset();
    }

    /// Records whether the line has an interrupt, and returns whether it had.
    pub(crate) fn set_listening(&self, listening: bool) -> bool {
        self.listening.xchg(listening, Full)
    }

    /// The device has the rings: let requests in.
    pub(crate) fn enable(&self) {
        self.enabled.store(true);
    }

    /// Lets no request in any more, and rings no doorbell from here on; whether it did until now.
    ///
    /// The block layer must have been told not to send requests, and to wait for those that are
    /// on their way.
    pub(crate) fn disable(&self) -> bool {
        // Under the lock, for whoever submits without the block layer: see `submit_event`.
        let _submission = self.submission.lock();
        let was = self.enabled.load();
        self.enabled.store(false);
        was
    }

    /// Puts a command into the ring. Gives the request back if it can not be noted.
    #[inline]
    fn push(&self, submission: &mut Submission, rq: InFlight) -> Option<InFlight> {
        self.pending.put(rq, |sqe| submission.push(sqe)).err()
    }

    /// Rings the submission doorbell, if it is time to.
    #[inline]
    fn tell(&self, submission: &mut Submission, last: bool) {
        if let Some(tail) = submission.ring(last) {
            // First: the head must not be seen to pass the tail.
            self.in_flight.publish(tail);
            self.sq_doorbell.ring(tail);
        }
    }

    /// Takes up to `budget` answers and rings the completion doorbell.
    #[inline(always)]
    fn collect(right: &mut DrainRight<'_, Self>, budget: u32, batch: &mut Batch) -> u32 {
        let queue = right.source();
        let mut at = queue.ring.cursor();
        let mut found = 0;
        while found < budget && at.is_new(queue.completions.status(at.head())) {
            let Some(cqe) = queue.completions.read(at.head()) else {
                break;
            };
            at = queue.ring.next(at);
            Self::answer(right.reborrow(), &cqe, batch);
            found += 1;
        }
        if found > 0 {
            queue.ring.publish(at);
            if queue.enabled.load() && queue.channel.is_normal() {
                queue.cq_doorbell.ring(at.head());
            }
        }
        found
    }

    #[inline]
    fn answer(mut right: DrainRight<'_, Self>, cqe: &Cqe, batch: &mut Batch) {
        let queue = right.source();
        if queue.qid == 0 && cqe.cid == CommandId::AEN {
            if Pending::take_event(&mut right) {
                queue.event(cqe);
            }
            return;
        }
        match Pending::take(&mut right, cqe.cid) {
            Some(rq) => rq.complete(cqe.status, cqe.result, batch),
            None => queue.unknown(cqe),
        }
    }

    #[cold]
    fn event(&self, cqe: &Cqe) {
        self.events.deliver(cqe.status, cqe.result);
    }

    #[cold]
    fn unknown(&self, cqe: &Cqe) {
        // Once: the device decides how often this happens.
        kernel::pr_warn_once!(
            "queue {}: answer to a command that the device does not have, id {:#x}\n",
            self.qid,
            cqe.cid.raw()
        );
    }
}

impl Source for IoQueue {
    #[inline]
    fn pending(&self) -> bool {
        let at = self.ring.cursor();
        at.is_new(self.completions.status(at.head()))
    }

    #[inline(always)]
    fn drain(queue: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        let mut batch = Batch::new();
        let found = Self::collect(queue, budget.get(), &mut batch);
        if found == budget.get() && queue.pending() {
            return Drain::More(found);
        }
        Drain::Drained(found)
    }

    fn in_flight(&self) -> Option<u32> {
        Some(self.in_flight.estimate(&self.ring).into())
    }

    #[inline]
    fn reachable(&self) -> bool {
        self.channel.is_normal()
    }
}

impl HwQueue for Line<IoQueue> {
    fn is_enabled(&self) -> bool {
        self.enabled.load()
    }

    fn qid(&self) -> u16 {
        self.qid
    }

    #[inline(always)]
    fn prepare(&self, rq: Ready) -> Result<InFlight, Status> {
        rq.setup()?.map(&self.dma, &self.lists).map(Mapped::start)
    }

    #[inline]
    fn submit(&self, rq: InFlight, last: bool) {
        let mut submission = self.submission.lock();
        let refused = self.push(&mut submission, rq);
        self.tell(&mut submission, last);
        drop(submission);
        if let Some(rq) = refused {
            rq.fail();
        }
    }

    fn submit_all(&self, mut rqs: StartedList) {
        let mut refused = StartedList::new();
        let mut submission = self.submission.lock();
        while let Some(rq) = rqs.pop() {
            if let Some(rq) = self.push(&mut submission, rq) {
                refused.push(rq);
            }
        }
        self.tell(&mut submission, true);
        drop(submission);
        while let Some(rq) = refused.pop() {
            rq.fail();
        }
    }

    fn commit(&self) {
        self.tell(&mut self.submission.lock(), true);
    }

    #[inline]
    fn poll(&self, batch: &mut Batch) -> bool {
        if !self.pending() {
            return false;
        }
        let collected = Line::poll(self, |queue| {
            if !queue.enabled.load() {
                return 0;
            }
            IoQueue::collect(queue, u32::MAX, batch)
        });
        collected.is_some_and(|found| found > 0)
    }

    fn reap(&self) {
        // Without a limit there are none left.
        let _ = self.exclusive(|queue| queue.drain(Budget::UNLIMITED));
    }

    fn forget(&self) {
        self.exclusive(|queue| Pending::clear(queue));
    }

    fn submit_event(&self) {
        let mut submission = self.submission.lock();
        // The controller may have been disabled since the core looked at its state.
        if !self.enabled.load() || !self.pending.put_event() {
            return;
        }
        submission.push(&sqe_of(&Command::async_event()));
        self.tell(&mut submission, true);
    }
}

fn sqe_of(command: &Command) -> Sqe {
    let bytes = command.to_bytes();
    let mut sqe = Sqe::default();
    for (word, bytes) in sqe.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut le = [0; 8];
        le.copy_from_slice(bytes);
        *word = u64::from_ne_bytes(le);
    }
    sqe
}
