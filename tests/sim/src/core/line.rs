// SPDX-License-Identifier: GPL-2.0

//! Interrupt lines: the vector at the device, the way to the CPU, and genirq.

use super::{
    cpu::Hard,
    heap::Event,
    task::Kind,
    Core, //
};
use crate::{
    check::Answer,
    machine::Mask,
    trace::What,
    Ns, //
};
use irqmod::Handled;
use std::collections::VecDeque;

/// A completion queue with its interrupt.
pub(crate) struct Line {
    pub(crate) controller: u32,
    /// The CPU that takes the interrupts.
    pub(crate) cpu: u32,
    /// The vector is masked at the device.
    device_masked: bool,
    /// A message was due while it was.
    latched: bool,
    /// An unmask is on its way to the device.
    unmasking: bool,
    /// The line is not requested.
    shut: bool,
    /// A task that drains, or that frees and requests the line.
    pub(crate) lifecycle: bool,
    /// Posted masks that are under way have this number or an older one.
    mask_seq: u32,
    /// The interrupt controller of the CPU has it masked.
    parent_masked: bool,
    /// A message came while it had, or while one was pending.
    parent_pending: bool,
    /// Waits for its CPU.
    queued: bool,
    /// Disables of genirq.
    pub(crate) depth: u32,
    /// An interrupt came while disabled or in progress: it is replayed.
    pub(crate) replay: bool,
    pub(crate) in_progress: bool,
    pub(crate) thread: Option<u32>,
    /// The interrupt thread was woken and is not finished.
    pub(crate) thread_busy: bool,
    /// Holder of the queue lock, and those who spin for it.
    pub(crate) locked: bool,
    /// The softirq poller.
    pub(crate) poll_sched: bool,
    pub(crate) poll_disable: bool,
    pub(crate) poll_listed: bool,
    pub(crate) poll_runs: bool,
    pub(crate) poll_seq: u32,
    /// Its poller is delayed, on this CPU.
    pub(crate) delayed: bool,
    pub(crate) delayed_on: u32,
    /// On a hold list, on the workqueue, on the list of a completion thread.
    pub(crate) held: bool,
    pub(crate) work: bool,
    pub(crate) listed: bool,
    /// A completion thread or a worker drains it.
    pub(crate) served: bool,
    /// Completions that the device posted and nobody took.
    pub(crate) posted: VecDeque<u32>,
    /// Completions that one drain took and has not completed.
    pub(crate) batch: VecDeque<u32>,
    /// Contexts that drain; one, if all is well.
    pub(crate) drainers: u32,
    pub(crate) reachable: bool,
    pub(crate) tags: u32,
    /// Jobs that wait for a tag.
    pub(crate) starved: VecDeque<u32>,
    /// Completions so far, also those before anything was measured.
    pub(crate) completed: u64,
    pub(crate) counts: LineCounts,
    /// A message was lost since the queue was seen empty: nobody may come.
    pub(crate) excused: bool,
    /// A task has paused the line, or is about to.
    pub(crate) paused: bool,
    /// What the checker saw waiting last time: the oldest completion.
    pub(crate) suspect: Option<(u32, u64)>,
    /// Messages under way.
    pub(crate) in_flight: u32,
    /// Of the field's `rate`: completions and begin of the window.
    pub(crate) window: (u32, Ns),
}

/// The beginning of a handler's run.
#[derive(Clone, Copy)]
pub(crate) struct Entered {
    pub(crate) at: Ns,
    owned: bool,
    completions: u64,
}

/// What happened on a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineCounts {
    pub(crate) messages: u64,
    pub(crate) handler_runs: u64,
    pub(crate) unhandled: u64,
    pub(crate) thread_wakes: u64,
    /// Messages that started nothing because the line was disabled.
    pub(crate) absorbed: u64,
    /// Windows in which the field's `rate` would have polled.
    pub(crate) engaged: u64,
    /// The longest run of the handler.
    pub(crate) longest: Ns,
}

impl Line {
    pub(crate) fn new(controller: u32, cpu: u32) -> Self {
        Self {
            controller,
            cpu,
            device_masked: false,
            latched: false,
            unmasking: false,
            shut: false,
            lifecycle: false,
            mask_seq: 0,
            parent_masked: false,
            parent_pending: false,
            queued: false,
            depth: 0,
            replay: false,
            in_progress: false,
            thread: None,
            thread_busy: false,
            locked: false,
            poll_sched: false,
            poll_disable: false,
            poll_listed: false,
            poll_runs: false,
            poll_seq: 0,
            delayed: false,
            delayed_on: 0,
            held: false,
            work: false,
            listed: false,
            served: false,
            posted: VecDeque::new(),
            batch: VecDeque::new(),
            drainers: 0,
            reachable: true,
            tags: 0,
            starved: VecDeque::new(),
            completed: 0,
            counts: LineCounts::default(),
            excused: false,
            paused: false,
            suspect: None,
            in_flight: 0,
            window: (0, 0),
        }
    }

    /// Waits for its CPU.
    pub(crate) fn is_queued(&self) -> bool {
        self.queued
    }

    /// An unmask is on its way to the device, which may have kept a message.
    pub(crate) fn is_unmasking(&self) -> bool {
        self.unmasking
    }

    /// Handler or thread runs, or is bound to.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_progress || self.thread_busy
    }
}

impl Core {
    pub(crate) fn line(&mut self, line: u32) -> &mut Line {
        &mut self.lines[line as usize]
    }

    /// The device has something to say.
    pub(crate) fn send(&mut self, line: u32) {
        let latches = self.machine.device.latches && !self.faults.forgets;
        let this = self.line(line);
        this.counts.messages += 1;
        if this.device_masked {
            this.latched |= latches;
            this.excused |= !latches;
            let latched = latches;
            self.note(What::Kept { line, latched });
            return;
        }
        let lost = self.random.chance(self.faults.lost);
        self.note(What::Sent { line, lost });
        if lost {
            self.counts.lost += 1;
            self.line(line).excused = true;
            return;
        }
        let copies = 1 + u32::from(self.random.chance(self.faults.duplicated));
        for _ in 0..copies {
            match self.message_time() {
                0 => self.on_message(line),
                time => {
                    self.line(line).in_flight += 1;
                    self.heap.plan(self.now + time, Event::Message { line });
                }
            }
        }
    }

    fn message_time(&mut self) -> Ns {
        let late = match self.faults.late {
            0 => 0,
            permille if self.random.chance(permille) => self.random.below(self.faults.late_ns),
            _ => 0,
        };
        self.machine.device.message_ns + late
    }

    /// A message reaches the interrupt controller.
    pub(crate) fn on_message(&mut self, line: u32) {
        let this = self.line(line);
        if this.shut {
            return;
        }
        if this.queued || this.parent_masked {
            this.parent_pending |= this.parent_masked;
            return;
        }
        this.queued = true;
        let cpu = this.cpu;
        self.raise(cpu, Hard::Line(line));
    }

    /// The edge flow, first half: whether the handler is to run.
    pub(crate) fn flow_enter(&mut self, line: u32) -> bool {
        let this = self.line(line);
        this.queued = false;
        if this.shut {
            return false;
        }
        if this.depth != 0 || this.in_progress {
            this.replay = true;
            this.counts.absorbed += 1;
            self.note(What::Absorbed { line });
            return false;
        }
        this.in_progress = true;
        true
    }

    /// Masks the chip of a line whose interrupt came while it was disabled. Returns what that
    /// costs.
    pub(crate) fn flow_mask(&mut self, line: u32) -> Ns {
        if self.machine.kernel.mask == Mask::Parent {
            self.line(line).parent_masked = true;
            return self.machine.costs.mask_parent;
        }
        self.settle_unmask(line);
        if std::mem::replace(&mut self.line(line).device_masked, true) {
            0
        } else {
            self.machine.costs.mask_sync
        }
    }

    /// The edge flow, second half: whether the handler is to run again.
    pub(crate) fn flow_again(&mut self, line: u32) -> bool {
        let this = self.line(line);
        if this.replay && this.depth == 0 {
            this.replay = false;
            // It came on another CPU, which has masked the chip.
            let _ = self.unmask_chip(line);
            return true;
        }
        this.in_progress = false;
        false
    }

    /// The handler begins.
    pub(crate) fn note_entry(&mut self, line: u32) -> Entered {
        self.note(What::Handler { line });
        Entered {
            at: self.now,
            owned: self.is_owned(line),
            completions: self.line(line).completed,
        }
    }

    /// Somebody else than the handler has the line, or keeps it masked.
    fn is_owned(&mut self, line: u32) -> bool {
        let deferred = self.is_deferred(line);
        let this = self.line(line);
        deferred || this.thread_busy || this.depth != 0 || this.paused || !this.reachable
    }

    /// An answer of the handler.
    pub(crate) fn note_answer(&mut self, line: u32, answer: Handled, begin: Entered) {
        let took = self.now - begin.at;
        let wanted = answer != Handled::None;
        let owned = self.is_owned(line);
        let this = self.line(line);
        let drained = this.completed != begin.completions;
        this.counts.handler_runs += 1;
        this.counts.unhandled += u64::from(!wanted);
        this.counts.longest = this.counts.longest.max(took);
        let answer = Answer {
            wanted,
            took,
            useful: drained || owned || begin.owned || answer == Handled::WakeThread,
        };
        self.blame_handler(line, took);
        self.note(What::Answered { line, wanted });
        self.checker.answered(self.now, line, answer);
    }

    /// One more disable. Returns what it costs.
    pub(crate) fn mask(&mut self, line: u32, how: Mask) -> Ns {
        let posted = self.machine.device.posted_ns;
        let now = self.now;
        let costs = &self.machine.costs;
        let (lazy, sync, write, parent) = (
            costs.mask_lazy,
            costs.mask_sync,
            costs.mask_posted,
            costs.mask_parent,
        );
        self.checker.disabled(line);
        let this = self.line(line);
        this.depth += 1;
        let depth = this.depth;
        self.note(What::Masked { line, depth });
        if depth != 1 {
            return lazy;
        }
        if matches!(how, Mask::Sync | Mask::Nowait) {
            self.settle_unmask(line);
        }
        let this = self.line(line);
        match how {
            Mask::Lazy => lazy,
            Mask::Sync => {
                this.device_masked = true;
                lazy + sync
            }
            Mask::Nowait => {
                this.mask_seq = this.mask_seq.wrapping_add(1);
                let seq = this.mask_seq;
                self.heap.plan(now + posted, Event::MaskLands { line, seq });
                lazy + write
            }
            Mask::Parent => {
                this.parent_masked = true;
                lazy + parent
            }
        }
    }

    pub(crate) fn on_mask_lands(&mut self, line: u32, seq: u32) {
        let this = self.line(line);
        if this.mask_seq == seq {
            this.device_masked = true;
        }
    }

    /// One disable less. Returns what it costs and whether a replay is due after that.
    pub(crate) fn unmask(&mut self, line: u32) -> (Ns, bool) {
        self.checker.enabled(self.now, line);
        if self.lines[line as usize].depth == 0 {
            return (0, false);
        }
        let lazy = self.machine.costs.mask_lazy;
        let this = self.line(line);
        this.depth -= 1;
        let depth = this.depth;
        self.note(What::Unmasked { line, depth });
        if depth != 0 {
            return (lazy, false);
        }
        let cost = lazy + self.unmask_chip(line);
        (cost, std::mem::take(&mut self.line(line).replay))
    }

    /// Unmasks device and interrupt controller, as far as they are masked: what they kept comes
    /// now. Returns what it costs.
    fn unmask_chip(&mut self, line: u32) -> Ns {
        let costs = &self.machine.costs;
        let (posted, parent) = (costs.mask_posted, costs.mask_parent);
        let mut cost = 0;
        let races = self.random.chance(self.faults.races);
        let late = self.faults.late_ns.max(1);
        let this = self.line(line);
        this.mask_seq = this.mask_seq.wrapping_add(1);
        if this.device_masked {
            cost += posted;
            this.unmasking = true;
            if races {
                let seq = this.mask_seq;
                let at = self.now + self.random.below(late) + 1;
                self.heap.plan(at, Event::UnmaskLands { line, seq });
            } else {
                self.settle_unmask(line);
            }
        }
        let this = self.line(line);
        if std::mem::take(&mut this.parent_masked) {
            cost += parent;
            if std::mem::take(&mut this.parent_pending) {
                self.on_message(line);
            }
        }
        cost
    }

    pub(crate) fn on_unmask_lands(&mut self, line: u32, seq: u32) {
        if self.line(line).mask_seq == seq {
            self.settle_unmask(line);
        }
    }

    /// An unmask that is under way is at the device, at the latest before another write.
    fn settle_unmask(&mut self, line: u32) {
        let this = self.line(line);
        if !std::mem::take(&mut this.unmasking) {
            return;
        }
        this.device_masked = false;
        if std::mem::take(&mut this.latched) {
            self.send(line);
        }
    }

    /// The interrupt of a line is freed: nothing comes, and all of its disables are forgotten.
    pub(crate) fn shut(&mut self, line: u32) {
        self.settle_unmask(line);
        self.checker.freed(line);
        let this = self.line(line);
        this.shut = true;
        this.device_masked = true;
        this.depth = 0;
        this.replay = false;
        this.parent_masked = false;
        this.parent_pending = false;
    }

    /// The interrupt of a line is requested again.
    pub(crate) fn open(&mut self, line: u32) {
        self.line(line).shut = false;
        let _ = self.unmask_chip(line);
    }

    /// The interrupt thread has nothing more to do, unless it was woken meanwhile.
    pub(crate) fn thread_over(&mut self, line: u32) {
        let this = &self.lines[line as usize];
        let woken = this
            .thread
            .is_some_and(|task| self.tasks[task as usize].is_woken());
        self.line(line).thread_busy = woken;
    }

    /// The handler wants its thread.
    pub(crate) fn wake_thread(&mut self, line: u32) {
        let cpu = self.lines[line as usize].cpu;
        let thread = match self.lines[line as usize].thread {
            Some(thread) => thread,
            None => {
                let thread = self.spawn(Kind::Thread(line), cpu);
                self.line(line).thread = Some(thread);
                thread
            }
        };
        let this = self.line(line);
        this.counts.thread_wakes += 1;
        this.thread_busy = true;
        self.wake(thread);
    }

    /// The line's interrupts go to another CPU from now on.
    pub(crate) fn move_line(&mut self, line: u32) {
        self.line(line).cpu = self.any_online();
    }
}
