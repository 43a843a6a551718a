// SPDX-License-Identifier: GPL-2.0

//! What to do about a command that was not answered in time.

use super::{
    bound::Bound,
    regs::GONE,
    state::State,
    transport::{
        HwQueue,
        Transport, //
    }, //
};
use crate::blk::TimedOut;
use kernel::{
    bindings,
    prelude::*, //
};

/// What the handler did, in the block layer's terms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The request has ended or is going to.
    Done,
    /// Look again after another timeout.
    Wait,
}

/// The next step, decided from the controller's state alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Stop the controller for good.
    ShutDown,
    /// Someone is resetting it.
    Wait,
    /// First see whether the answer is there.
    Look,
}

impl<'a, T: Transport> Bound<'a, T> {
    /// Handles the timeout of `rq` on `queue`. Task context; may sleep.
    pub(crate) fn timed_out(self, queue: &T::Queue, rq: &TimedOut<'_>) -> Overdue {
        if self.pci_is_disconnected() {
            let _ = self.change(State::Deleting);
        }
        if self.state().is_terminal() {
            return self.reset();
        }
        if self.pci_is_offline() {
            return Overdue::Wait;
        }
        if self.has_failed() {
            dev_warn!(
                self.ctrl().device(),
                "controller is down, CSTS {:#x}\n",
                self.csts()
            );
            return self.reset();
        }
        let interrupts = queue.is_enabled();
        queue.reap();
        if !rq.is_in_flight() {
            // Not worth a line where no interrupt was to come, as the queue is being stopped.
            if interrupts {
                dev_warn!(
                    self.ctrl().device(),
                    "I/O tag {} QID {} timeout, completion polled\n",
                    rq.tag(),
                    queue.qid()
                );
            }
            return Overdue::Done;
        }
        self.overdue(queue.qid(), rq)
    }

    /// Whether the controller reports a failure that nobody takes care of yet.
    fn has_failed(self) -> bool {
        let busy = matches!(self.state(), State::Resetting | State::Connecting);
        let csts = self.csts();
        !busy && (csts == GONE || csts & bindings::NVME_CSTS_CFS != 0)
    }

    fn step(self) -> Step {
        match self.state() {
            State::New | State::Live => Step::Look,
            State::Resetting => Step::Wait,
            _ => Step::ShutDown,
        }
    }

    /// The answer is not there.
    fn overdue(self, qid: u16, rq: &TimedOut<'_>) -> Overdue {
        match self.step() {
            Step::Wait => return Overdue::Wait,
            Step::ShutDown => {
                // A restart that waits for this command sees the cancellation and fails.
                let _ = self.change(State::Deleting);
                rq.cancel();
                self.disable(true);
                return Overdue::Done;
            }
            Step::Look => {}
        }
        if qid != 0 && !rq.set_aborted() {
            if self.abort(qid, rq.cid()) {
                dev_warn!(
                    self.ctrl().device(),
                    "I/O tag {} opcode {:#x} QID {} timeout, aborting\n",
                    rq.tag(),
                    rq.opcode(),
                    qid
                );
            } else {
                rq.clear_aborted();
            }
            return Overdue::Wait;
        }
        dev_warn!(
            self.ctrl().device(),
            "I/O tag {} opcode {:#x} QID {} timeout, reset controller\n",
            rq.tag(),
            rq.opcode(),
            qid
        );
        rq.cancel();
        self.reset()
    }

    /// Stops the controller now, which ends the request, and starts it again if that is possible.
    fn reset(self) -> Overdue {
        if !self.change(State::Resetting) {
            if self.state().is_terminal() {
                self.disable(true);
            }
            return Overdue::Done;
        }
        self.disable(false);
        // SAFETY: an added controller.
        if unsafe { bindings::nvme_try_sched_reset(self.as_raw()) } != 0 {
            // SAFETY: as above; nothing follows that would let the requests run.
            unsafe { bindings::nvme_unquiesce_io_queues(self.as_raw()) };
        }
        Overdue::Done
    }
}
