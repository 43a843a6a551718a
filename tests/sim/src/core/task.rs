// SPDX-License-Identifier: GPL-2.0

//! Tasks.

use super::cpu::Act;
use crate::{
    trace::What,
    Ns, //
};
use std::collections::VecDeque;

/// What a task does, which is also how its coroutine is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Submits and reaps.
    Job(u32),
    /// Burns CPU time.
    Hog,
    /// The softirqs that were too many.
    Ksoftirqd(u32),
    /// Touches the watchdog of its CPU.
    Stopper(u32),
    /// The interrupt thread of a line.
    Thread(u32),
    /// A worker of the unbound workqueue.
    Worker,
    /// The completion thread of a CPU.
    Completer(u32),
    /// Does to lines what drivers and administrators do.
    Control(Meddling),
}

impl Kind {
    /// The note that task `id`, of this kind, runs.
    pub(crate) fn runs(self, id: u32) -> What {
        let (task, number) = match self {
            Self::Job(job) => ("job", job),
            Self::Hog => ("hog, task", id),
            Self::Ksoftirqd(cpu) => ("ksoftirqd", cpu),
            Self::Stopper(cpu) => ("stopper", cpu),
            Self::Thread(line) => ("interrupt thread of line", line),
            Self::Worker => ("worker, task", id),
            Self::Completer(cpu) => ("completion thread of CPU", cpu),
            Self::Control(_) => ("control, task", id),
        };
        What::Runs { task, number }
    }
}

/// What a task does to lines, now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meddling {
    /// Pauses and resumes them.
    Reset,
    /// Makes a device unreachable for a while.
    Freeze,
    /// Drains a queue.
    Peek,
    /// Moves a line to another CPU.
    Move,
    /// Gives them another policy.
    Switch,
    /// Resets a controller, again and again.
    Storm,
    /// Takes a CPU away.
    Unplug,
    /// Drains what nobody came for: the timeout of a request.
    Rescue,
}

impl Meddling {
    pub(crate) const ALL: [Self; 8] = [
        Self::Reset,
        Self::Freeze,
        Self::Peek,
        Self::Move,
        Self::Switch,
        Self::Storm,
        Self::Unplug,
        Self::Rescue,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Stop,
    Fifo,
    Fair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Blocked,
    Queued,
    Running,
}

/// A task.
pub(crate) struct Task {
    pub(crate) kind: Kind,
    pub(crate) cpu: u32,
    pub(crate) act: Act,
    /// How many want softirqs and the scheduler kept away.
    pub(crate) bh_off: u32,
    /// The line that it drains.
    pub(super) line: Option<u32>,
    pub(super) class: Class,
    pub(super) pinned: bool,
    pub(super) state: State,
    /// A wake-up that came while it was not blocked.
    pub(super) token: bool,
    /// Fair time that it has had, relative to the others.
    pub(super) vruntime: Ns,
    /// CPU time since it was picked.
    pub(super) ran: Ns,
    pub(super) sleep_seq: u32,
}

impl Task {
    pub(crate) fn new(kind: Kind, cpu: u32) -> Self {
        Self {
            kind,
            cpu,
            act: Act::default(),
            bh_off: 0,
            line: None,
            class: match kind {
                Kind::Stopper(_) => Class::Stop,
                Kind::Thread(_) | Kind::Completer(_) => Class::Fifo,
                _ => Class::Fair,
            },
            pinned: !matches!(kind, Kind::Job(_) | Kind::Worker),
            state: State::Blocked,
            token: false,
            vruntime: 0,
            ran: 0,
            sleep_seq: 0,
        }
    }

    /// Belongs to its CPU for ever.
    pub(crate) fn is_per_cpu(&self) -> bool {
        matches!(
            self.kind,
            Kind::Ksoftirqd(_) | Kind::Stopper(_) | Kind::Completer(_)
        )
    }

    /// One of those that completions may make wait.
    pub(crate) fn is_ordinary(&self) -> bool {
        matches!(self.kind, Kind::Job(_) | Kind::Hog)
    }

    /// Runs in user mode mostly, where lazy preemption is immediate.
    pub(super) fn is_user(&self) -> bool {
        self.is_ordinary()
    }

    pub(crate) fn on_ran(&mut self, elapsed: Ns) {
        self.ran += elapsed;
        self.vruntime += elapsed;
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.token
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.state == State::Blocked
    }
}

/// The tasks that wait for a CPU.
#[derive(Default)]
pub(crate) struct Queue {
    pub(super) stop: VecDeque<u32>,
    pub(super) fifo: VecDeque<u32>,
    pub(super) fair: Vec<u32>,
    /// The least fair time of those that ran last.
    pub(super) floor: Ns,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.stop.is_empty() && self.fifo.is_empty() && self.fair.is_empty()
    }
}
