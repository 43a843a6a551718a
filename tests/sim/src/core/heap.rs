// SPDX-License-Identifier: GPL-2.0

//! What is going to happen, in order.

use crate::Ns;
use std::{
    cmp::Reverse,
    collections::BinaryHeap, //
};

/// Something that happens at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The context on top of this CPU has spent what it had to, unless it was interrupted since.
    CpuDone { cpu: u32, seq: u32 },
    /// The device posts the completion of a request, unless it was reset since.
    Posted { request: u32, epoch: u32 },
    /// A message reaches the interrupt controller.
    Message { line: u32 },
    /// A posted mask reaches the device, unless it was undone since.
    MaskLands { line: u32, seq: u32 },
    /// A late unmask reaches the device, unless another write did since.
    UnmaskLands { line: u32, seq: u32 },
    /// The tick of a CPU, unless it was stopped since.
    Tick { cpu: u32, seq: u32 },
    /// The watchdog's timer of a CPU.
    Watchdog { cpu: u32 },
    /// The hold timer of a CPU, unless it was armed again since.
    Hold { cpu: u32, seq: u32 },
    /// The delayed poller of a line.
    PollTimer { line: u32, seq: u32 },
    /// A task has slept enough, unless it woke since.
    Wake { task: u32, seq: u32 },
    /// The checker looks for completions that nobody will look at.
    Audit,
    /// Faults end.
    Calm,
    /// The load ends.
    Quiet,
    /// The jobs begin.
    Load,
    /// What was measured up to here does not count.
    Warm,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Ns,
    /// Events of one moment happen in the order in which they were planned.
    order: u64,
    event: Event,
}

/// The events that are planned.
#[derive(Default)]
pub(crate) struct Heap {
    entries: BinaryHeap<Reverse<Entry>>,
    planned: u64,
}

impl Heap {
    pub(crate) fn plan(&mut self, at: Ns, event: Event) {
        self.planned += 1;
        self.entries.push(Reverse(Entry {
            at,
            order: self.planned,
            event,
        }));
    }

    /// When the next event happens; never, if there is none.
    pub(crate) fn next_at(&self) -> Ns {
        self.entries.peek().map_or(Ns::MAX, |entry| entry.0.at)
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<(Ns, Event)> {
        self.entries.pop().map(|entry| (entry.0.at, entry.0.event))
    }

    /// How many events were planned so far.
    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }
}
