// SPDX-License-Identifier: GPL-2.0

//! Where C calls a line: from here on the type of its source is known again.

use kernel::{
    bindings,
    container_of,
    prelude::*, //
};

use super::{
    line::Line,
    member::{
        Member,
        Ops, //
    },
    platform::{
        Callbacks,
        LinePlatform, //
    }, //
};
use crate::{
    moderator::{
        Handled,
        Pass, //
    },
    platform::PollPass,
    source::Source,
    Budget, //
};

fn irq_return(handled: Handled) -> bindings::irqreturn_t {
    bindings::irqreturn_t(match handled {
        Handled::None => bindings::irqreturn::IRQ_NONE.0,
        Handled::Handled => bindings::irqreturn::IRQ_HANDLED.0,
        Handled::WakeThread => bindings::irqreturn::IRQ_WAKE_THREAD.0,
    })
}

/// The primary handler.
///
/// # Safety
///
/// `cookie` is the line that was given to `request_threaded_irq`.
pub(super) unsafe extern "C" fn on_interrupt<S: Source>(
    _irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: A line, by the contract; it frees the interrupt, and joins this handler, before it
    // goes.
    let line = unsafe { &*cookie.cast::<Line<S>>() };
    irq_return(line.moderator.on_interrupt(&line.source, &line.platform))
}

/// The primary handler where the core runs it in a thread of its own.
///
/// That is the thread that others can wake; this one then wakes the line's thread for them.
///
/// # Safety
///
/// As for [`on_interrupt`].
pub(super) unsafe extern "C" fn on_forced_interrupt<S: Source>(
    irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: The same contract.
    let handled = unsafe { on_interrupt::<S>(irq, cookie) };
    // SAFETY: A line, by the contract; it joins this handler before it goes.
    let line = unsafe { &*cookie.cast::<Line<S>>() };
    if line.platform.takes_wake() {
        irq_return(Handled::WakeThread)
    } else {
        handled
    }
}

/// The handler's thread.
///
/// # Safety
///
/// `cookie` is the line that was given to `request_threaded_irq`.
pub(super) unsafe extern "C" fn on_thread<S: Source>(
    _irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: A line, by the contract; it frees the interrupt, and joins this thread, before it
    // goes.
    let line = unsafe { &*cookie.cast::<Line<S>>() };
    line.platform.place.take(line.platform.vector.irq());
    let handled = line.moderator.on_thread(&line.source, &line.platform);
    line.platform.manners.restore();
    irq_return(handled)
}

/// The softirq poller.
///
/// # Safety
///
/// `raw` is the poller of a line that is requested, called by the core.
pub(super) unsafe extern "C" fn on_poll<S: Source>(
    raw: *mut bindings::irq_poll,
    weight: c_int,
) -> c_int {
    // SAFETY: By the contract `raw` is embedded in a line, which joins the poller before it goes.
    let line = unsafe { &*line_of::<S>(LinePlatform::of_poller(raw)) };
    // The weight was a budget when the poller was initialised.
    let weight = weight.unsigned_abs();
    let budget = Budget::new(weight).unwrap_or(Budget::POLL_DEFAULT);
    let pass = PollPass::new(budget);
    let end = line.moderator.on_poll(&line.source, &line.platform, pass);
    // CAST: At most the weight.
    end.work() as c_int
}

/// The work item.
///
/// # Safety
///
/// `raw` is the work item of a line that is requested, run by a worker.
unsafe extern "C" fn on_work<S: Source>(raw: *mut bindings::work_struct) {
    // SAFETY: By the contract `raw` is embedded in a line, which cancels the item before it goes.
    let line = unsafe { &*line_of::<S>(LinePlatform::of_work(raw)) };
    let _ = line.moderator.on_thread(&line.source, &line.platform);
}

/// See [`Ops`].
///
/// # Safety
///
/// `member` is that of a `Line<S>`, which is requested.
unsafe fn piece<S: Source>(member: &Member, budget: Budget) -> (Pass, u32) {
    // SAFETY: By the contract.
    let line = unsafe { &*line_of::<S>(LinePlatform::of_member(member)) };
    line.moderator
        .on_piece(&line.source, &line.platform, budget)
}

/// See [`Ops`].
///
/// # Safety
///
/// As for [`piece`].
unsafe fn hold_end<S: Source>(member: &Member) {
    // SAFETY: By the contract.
    let line = unsafe { &*line_of::<S>(LinePlatform::of_member(member)) };
    line.moderator.on_hold_end(&line.source, &line.platform);
}

/// See [`Ops`].
///
/// # Safety
///
/// As for [`piece`].
unsafe fn wake<S: Source>(member: &Member) {
    // SAFETY: By the contract.
    let line = unsafe { &*line_of::<S>(LinePlatform::of_member(member)) };
    // SAFETY: By the contract.
    unsafe { line.platform.wake_thread(line.as_cookie()) };
}

impl<S: Source> Line<S> {
    pub(super) const CALLBACKS: Callbacks = Callbacks {
        work: on_work::<S>,
        ops: Ops {
            piece: piece::<S>,
            hold_end: hold_end::<S>,
            poll: LinePlatform::poll,
            wake: wake::<S>,
        },
    };
}

/// # Safety
///
/// `platform` is that of a `Line<S>`.
unsafe fn line_of<S: Source>(platform: *mut LinePlatform) -> *const Line<S> {
    // SAFETY: By the contract.
    unsafe { container_of!(platform, Line<S>, platform) }
}
