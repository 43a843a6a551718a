// SPDX-License-Identifier: GPL-2.0

//! What completions have taken from one CPU, over all sources of all drivers.
//!
//! # The account
//!
//! One number, a leaky bucket. While completions are drained and somebody else wants the CPU, it
//! rises by `1 - share` of the time that passes; otherwise it sinks by `share` of it. So it keeps
//! its level under a load that takes exactly the share, and from empty it is full after
//! `share * window` of work without a break. A full account sinks to the bottom in
//! `(1 - share) * window`: that is the rest which the others are due.
//!
//! The one account covers both phases, and what is left carries over from one to the other: neither
//! entering nor leaving gives completions a second window.
//!
//! # The completion thread
//!
//! A CPU's completion thread serves the list of the sources that were deferred to it, in a loop:
//!
//! ```text
//! wait until the list is not empty
//! take the first line off the list   (a pass that ends with Done may already have joined it again)
//! began = now
//! pass  = line.on_pass(ledger.piece())
//! rest  = ledger.on_piece(began, now, found, another task is runnable here)
//! unless pass is Done: put the line back, last if ledger.turn_is_over(), else first
//! if the list is empty:  ledger.leave(now), with interrupts off
//! else if rest is Some:  sleep; may end early once the CPU is idle
//! ```
//!
//! Ledgers are plain values, touched on their CPU with interrupts off. Nothing here divides.

mod view;

pub use self::view::View;
use crate::{
    time::{
        Instant,
        Span, //
    },
    Budget, //
};

/// What completions may take of a CPU that others want as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    percent: u32,
    window_us: u32,
}

impl Share {
    /// `percent` of each `window_us` microseconds; at most 99, the rest is others'.
    pub const fn new(percent: u32, window_us: u32) -> Self {
        let percent = if percent > 99 { 99 } else { percent };
        Self { percent, window_us }
    }

    /// The longest that completions keep a CPU without a break: `share * window`.
    pub const fn work(self) -> Span {
        Self::part(self.percent, self.window_us)
    }

    /// How long the others have the CPU after that: `(1 - share) * window`.
    pub const fn rest(self) -> Span {
        Self::part(100 - self.percent, self.window_us)
    }

    /// A percent of a microsecond are ten nanoseconds.
    const fn part(percent: u32, window_us: u32) -> Span {
        Span::from_nanos(10)
            .times(percent as u64)
            .times(window_us as u64)
    }

    /// The level of a full account. Unit: nanoseconds of time, times percent.
    const fn limit(self) -> u64 {
        self.work().times(100 - self.percent as u64).as_nanos()
    }
}

/// A CPU's account, and the state of its completion thread.
#[derive(Clone, Copy, Debug)]
pub struct Ledger {
    share: Share,
    /// The account. Unit: nanoseconds of time, times percent.
    level: u64,
    /// Up to when the account is kept.
    seen: Instant,
    deferring: bool,
    /// The completion thread was told to sleep.
    resting: bool,
    /// Completions of the next piece.
    piece: u32,
    /// Work on one source since its turn began.
    turn: Span,
    turn_over: bool,
    /// Work of the handler that runs, and in how many pieces.
    handler: Span,
    pieces: u32,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// How long a piece should take: what a task loses at most once a rest is due, and as long as a
    /// handler may take. Each piece wakes those who wait for its completions, and few large batches
    /// cost them less than many small ones.
    pub const PIECE: Span = Span::from_micros(1_000);
    /// Completions of the first piece for a source, whose cost is not known yet; also what the
    /// handler drains on an idle CPU without a look at the clock.
    pub const FIRST_PIECE: u32 = 64;
    /// Completions of a piece at most. More would save nothing: the cost of a piece is that of less
    /// than one completion.
    pub const MAX_PIECE: u32 = 256;
    /// How long a source is served while others wait. Large enough to empty a full queue, because
    /// submitters go on in the largest batches then; the next source waits for it.
    pub const TURN: Span = Span::from_micros(2_000);
    /// A break between two handlers that is shorter is none: it is the way from one interrupt to
    /// the next, and nobody gets anything done.
    pub const BREAK: Span = Span::from_micros(4);
    /// What a handler that only defers takes from those who have the CPU, with its interrupt.
    pub const DEFERRAL: Span = Span::from_micros(2);
    /// The longest that one handler drains, whoever waits: interrupts are off.
    pub const HANDLER: Span = Span::from_micros(1_000);
    /// Pieces of one handler at most, should the clock stand still.
    pub const HANDLER_PIECES: u32 = 64;

    /// The account of a CPU that has done nothing yet.
    pub const fn new() -> Self {
        Self {
            share: Share::new(0, 0),
            level: 0,
            seen: Instant::ZERO,
            deferring: false,
            resting: false,
            piece: Self::FIRST_PIECE,
            turn: Span::ZERO,
            turn_over: false,
            handler: Span::ZERO,
            pieces: 0,
        }
    }

    /// Whether all sources of this CPU are to be deferred to its completion thread.
    #[inline]
    pub const fn is_deferring(&self) -> bool {
        self.deferring
    }

    /// From now on all sources are deferred.
    pub fn enter(&mut self, share: Share) {
        self.share = share;
        self.deferring = true;
        self.resting = false;
        self.end_handler();
    }

    /// The list of the completion thread is empty: handlers drain again.
    pub fn leave(&mut self, now: Instant) {
        self.catch_up(now);
        self.deferring = false;
        self.end_turn();
    }

    /// Completions of the thread's next piece.
    #[inline]
    pub fn piece(&self) -> Budget {
        Budget::new(self.piece).unwrap_or(Budget::POLL_DEFAULT)
    }

    /// Completions of a handler's next piece: interrupts are off, so none is large.
    #[inline]
    pub fn handler_piece(&self) -> Budget {
        Budget::new(self.piece.min(Self::FIRST_PIECE)).unwrap_or(Budget::POLL_DEFAULT)
    }

    /// A handler begins on a CPU that is not idle. Whether completions have had their share.
    pub fn on_handler(&mut self, now: Instant, share: Share) -> bool {
        self.share = share;
        self.pass_time(now);
        self.is_full()
    }

    /// A handler begins while the CPU defers, and only defers.
    pub fn on_deferral(&mut self) {
        let taken = Self::DEFERRAL.times(100);
        self.level = self.level.saturating_add(taken.as_nanos());
    }

    /// A handler drained a piece. Whether it is to stop, if there is more.
    pub fn on_handler_piece(
        &mut self,
        began: Instant,
        now: Instant,
        found: u32,
        share: Share,
    ) -> bool {
        self.share = share;
        self.pass_time(began);
        let work = self.charge(now);
        self.size(found, work);
        self.handler = self.handler.plus(work);
        self.pieces = self.pieces.saturating_add(1);
        self.is_full() || self.handler >= Self::HANDLER || self.pieces >= Self::HANDLER_PIECES
    }

    /// A handler returns, and leaves an empty queue.
    pub fn end_handler(&mut self) {
        self.handler = Span::ZERO;
        self.pieces = 0;
        self.end_turn();
    }

    /// The completion thread drained a piece. `contended`: another task is runnable on this CPU.
    ///
    /// [`Some`] is how long the thread is to sleep now.
    #[must_use = "the others are due this rest"]
    pub fn on_piece(
        &mut self,
        began: Instant,
        now: Instant,
        found: u32,
        contended: bool,
    ) -> Option<Span> {
        let budget = self.piece;
        self.catch_up(began);
        let work = self.charge(now);
        self.size(found, work);
        self.turn = self.turn.plus(work);
        self.turn_over = found < budget || self.turn >= Self::TURN;
        if self.turn_over {
            self.end_turn();
        }
        if !contended {
            // Nobody waits now, so nobody has waited.
            self.level = 0;
        }
        self.resting = self.is_full();
        self.resting.then_some(self.share.rest())
    }

    /// Whether the source of the piece just drained is to let the next one have its turn.
    pub const fn turn_is_over(&self) -> bool {
        self.turn_over
    }

    fn is_full(&self) -> bool {
        self.level > self.share.limit()
    }

    /// The completion thread goes on. All that it did since was its work, unless it slept.
    fn catch_up(&mut self, now: Instant) {
        if self.resting {
            self.credit(now);
            self.resting = false;
        } else {
            self.charge(now);
        }
    }

    /// A handler begins to drain.
    fn pass_time(&mut self, now: Instant) {
        if now.since(self.seen) < Self::BREAK {
            self.charge(now);
        } else {
            self.credit(now);
        }
    }

    /// Others had the CPU until `now`: the account sinks.
    fn credit(&mut self, now: Instant) {
        let pause = now.since(self.seen);
        let credit = pause.times(u64::from(self.share.percent));
        self.level = self.level.saturating_sub(credit.as_nanos());
        self.seen = self.seen.max(now);
    }

    /// Completions were drained until `now`: the account rises. Returns for how long.
    fn charge(&mut self, now: Instant) -> Span {
        let work = now.since(self.seen);
        let debit = work.times(u64::from(100 - self.share.percent));
        // Whatever happened, one more rest settles it.
        let most = self.share.limit().saturating_mul(2);
        self.level = self.level.saturating_add(debit.as_nanos()).min(most);
        self.seen = self.seen.max(now);
        work
    }

    /// Fits the next piece to what this one took.
    fn size(&mut self, found: u32, work: Span) {
        if work > Self::PIECE {
            let mut fitting = found.clamp(1, Self::MAX_PIECE);
            let mut took = work.as_nanos();
            while took > Self::PIECE.as_nanos() && fitting > 1 {
                fitting >>= 1;
                took >>= 1;
            }
            self.piece = fitting.min(self.piece);
        } else if found >= self.piece && work.times(2) <= Self::PIECE {
            self.piece = (self.piece << 1).min(Self::MAX_PIECE);
        }
    }

    /// Another source is next, of which nothing is known.
    fn end_turn(&mut self) {
        self.turn = Span::ZERO;
        self.piece = self.piece.min(Self::FIRST_PIECE);
    }
}
