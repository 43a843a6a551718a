// SPDX-License-Identifier: GPL-2.0

//! The state word of a source: who may drain it, and who owes an unmask.
//!
//! # States
//!
//! | state   | bits                              | who drains                                     |
//! |---------|-----------------------------------|------------------------------------------------|
//! | plain   | none                              | handler                                        |
//! | open    | `INIT`, perhaps `HANDOFF`         | handler                                        |
//! | owned   | `INIT POLL`, `MASKED` (see 7)     | poller or thread, under the queue lock         |
//! | pausing | `INIT PAUSED`, perhaps the others | whoever did before, until the pause joined it  |
//! | paused  | `INIT PAUSED MASKED`              | nobody from interrupts                         |
//! | stopped | `PAUSED`                          | nobody from interrupts                         |
//!
//! A task that called [`exclusive`] may drain in every state: it masks the line, joins the handler
//! and takes the queue lock for it.
//!
//! ```text
//!             1             2
//!    (any) ------> plain ------> open <----------------------+
//!                    |          3| ^ |                       |
//!                    |       4, 5| |6 \  8                   |
//!                    |        7  v |   \                     |
//!                    |          owned   \                    | 11, 12
//!                    |             \     \                   |
//!                    |            8 \     v    9, 5          |
//!                    |               +--> pausing -------> paused
//!                    |       10              | 10            | 10
//!                    +-----------------------+---------------+----> stopped
//!                                                             9, 5, 13
//! ```
//!
//! Edges 3 and 14 change `HANDOFF` only; 17 masks an owned source; 15 and 16 put a token in an open source and take it out.
//!
//! | edge | function                                   | by                                      |
//! |------|--------------------------------------------|-----------------------------------------|
//! | 1    | [`State::transition_to_reset`]             | request, before the interrupt can come  |
//! | 2    | [`State::transition_to_open`]              | request, once the line is ours          |
//! | 3    | [`State::transition_to_entered`]           | handler: uses `HANDOFF` up              |
//! | 4    | [`State::transition_to_claimed`]           | handler                                 |
//! | 5    | [`State::transition_to_masked`]            | after 4, and pause: token in            |
//! | 6    | [`State::transition_to_handed_back`]       | poller, thread, under the lock: token out |
//! | 7    | [`State::transition_to_reclaimed`]         | whoever just unmasked, under the lock   |
//! | 8    | [`State::transition_to_paused`]            | pause                                   |
//! | 9    | [`State::transition_to_disowned`]          | pause, stop, under the lock             |
//! | 10   | [`State::transition_to_stopped`]           | stop                                    |
//! | 11   | [`State::transition_to_resuming`]          | resume: token out                       |
//! | 12   | [`State::transition_to_running`]           | resume                                  |
//! | 13   | [`State::transition_to_unmasked`]          | stop: token out                         |
//! | 14   | [`State::transition_to_reopened`]          | exclusive, before it unmasks            |
//! | 15   | [`State::transition_to_kept`]              | exclusive, unreachable device: token in |
//! | 16   | [`State::transition_to_taken_back`]        | exclusive, reachable again: token out   |
//! | 17   | [`State::transition_to_masked_late`]       | handler, after 7: token in              |
//!
//! # Rules
//!
//! 1. `MASKED` *is* a deposited [`MaskToken`]: every edge that sets it swallows one, every edge that
//!    clears it returns one. A second token is handed back ([`Deposit::Surplus`]).
//! 2. `POLL` is set by the handler (4), or by the one who just unmasked (7); it is cleared under the
//!    queue lock only. So under the lock ownership does not go away.
//! 3. Edges 4 and 8 change one word: a claim is before the pause, which then waits for the handler
//!    and for the poller it scheduled, or it is refused.
//! 4. Edge 7 is the look after an unmask. It needs `HANDOFF`, which is set only while no handler
//!    drains (owned, or masked and joined) and which a handler clears before it looks at the queue.
//!    So whoever finds the bit still set knows that no handler has begun since, and may take the
//!    source. Whoever finds it cleared knows that a handler has: it began after the unmask, because
//!    none begins under a token, and looks at the queue with the line open, so that every later
//!    completion has an interrupt of its own. Edge 7 leaves the line open: a mask that neither
//!    waits nor comes from the handler could overtake one that is about to begin.
//! 5. `PAUSED` without `INIT` is final until the next request: the moderator leaves it by edge 1
//!    only.
//!
//! # Ordering
//!
//! Every change of the word is fully ordered; the handler's only access in the normal case is an
//! acquire load. It pairs with edge 6: who sees the source given back sees the queue as the poller
//! left it. Edge 6 is followed by a look at the queue, while a device first posts and then
//! interrupts a handler that loads the word (store buffering): the full order makes sure that
//! either the handler sees the source given back or the look sees the completion.
//!
//! [`exclusive`]: crate::Moderator::exclusive

use crate::{
    platform::MaskToken,
    sync::{
        Acquire,
        Atomic,
        Full,
        Relaxed, //
    },
};
use bitflags::bitflags;

bitflags! {
    /// One reading of the state word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Snapshot: u32 {
        /// The line is a dedicated vector and its poller is set up: deferring is possible.
        const INIT = 1 << 0;
        /// Poller or thread owns the source.
        const POLL = 1 << 1;
        /// A [`MaskToken`] is deposited: we own exactly one disable of the line.
        const MASKED = 1 << 2;
        /// Paused or stopped: no deferring, and no draining once the line is masked.
        const PAUSED = 1 << 3;
        /// The line was just unmasked: the next interrupt may be empty, once.
        const HANDOFF = 1 << 4;
    }
}

impl Snapshot {
    /// Nothing but (perhaps) `INIT`: the handler drains, without asking further.
    #[inline]
    pub fn is_normal(self) -> bool {
        Self::INIT.contains(self)
    }

    /// Poller or thread owns the source.
    #[inline]
    pub fn is_owned(self) -> bool {
        self.contains(Self::POLL)
    }

    /// Paused, and the pause has joined the handler, or was not meant to let it drain.
    #[inline]
    pub fn is_shut(self) -> bool {
        self.contains(Self::PAUSED) && (!self.contains(Self::INIT) || self.contains(Self::MASKED))
    }

    /// The handler may give the source to a poller or thread.
    fn may_claim(self) -> bool {
        self.contains(Self::INIT) && !self.intersects(Self::POLL | Self::MASKED | Self::PAUSED)
    }

    /// The token that goes with the change from `self` to a word without `MASKED`.
    fn token(self) -> Option<MaskToken> {
        self.contains(Self::MASKED).then(MaskToken::mint)
    }

    /// As [`token`](Self::token), as an outcome.
    fn withdraw(self) -> Withdraw {
        match self.token() {
            Some(token) => Withdraw::Token(token),
            None => Withdraw::Empty,
        }
    }
}

/// Outcome of [`State::transition_to_reset`].
#[must_use]
pub enum Reset {
    /// No token was deposited.
    Clean,
    /// The line was freed while this token was deposited.
    Forfeited(MaskToken),
}

/// Outcome of [`State::transition_to_entered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Entry {
    /// Nothing special.
    Plain(Snapshot),
    /// The first interrupt after an unmask, which may be empty. `HANDOFF` is already gone.
    AfterUnmask(Snapshot),
}

/// Outcome of [`State::transition_to_claimed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a claimed source is not drained unless it is deferred"]
pub enum Claim {
    /// The source is owned now. The caller masks the line and defers.
    Won,
    /// Someone else owns the source.
    Owned,
    /// Deferring is not possible: not dedicated, paused, or somebody keeps the line masked.
    Refused,
}

/// Outcome of the edges that take a token in.
#[must_use = "a surplus token must be used to unmask"]
pub enum Deposit {
    /// The token is the `MASKED` bit now.
    Stored,
    /// Not stored, because there is one already or the line is not ours to keep masked.
    Surplus(MaskToken),
}

/// Outcome of [`State::transition_to_handed_back`].
#[must_use = "the token must be used to unmask"]
pub enum HandBack {
    /// The source is open again. The caller unmasks with the token.
    Released(Option<MaskToken>),
    /// Paused, or not owned: nothing was changed, the mask is left to resume and stop.
    Refused,
}

/// Outcome of [`State::transition_to_reclaimed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a reclaimed source is not drained unless it is deferred"]
pub enum Reclaim {
    /// The source is owned now. The caller defers.
    Won,
    /// A handler has begun since the unmask, or a pause has.
    Lost,
}

/// Outcome of [`State::transition_to_paused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pause {
    /// The caller joins handler and poller, and masks.
    Dedicated,
    /// The line has no poller and may be shared: the caller joins the handler only.
    Plain,
    /// It was paused already.
    Already,
}

/// Outcome of [`State::transition_to_disowned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Disown {
    /// Nobody owns the source and the line is masked by a deposited token.
    Masked,
    /// Nobody owns the source and no token is deposited.
    Unmasked,
}

/// Outcome of [`State::transition_to_stopped`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Stop {
    /// As [`Pause::Dedicated`], then the poller is balanced and the line unmasked.
    Dedicated,
    /// As [`Stop::Dedicated`], but a pause has already joined and masked.
    DedicatedPaused,
    /// As [`Pause::Plain`].
    Plain,
    /// It was stopped already.
    Already,
}

/// Outcome of [`State::transition_to_resuming`].
#[must_use = "the token must be used to unmask"]
pub enum Resume {
    /// The caller enables the poller, goes to running, and unmasks with the token.
    Unmask(MaskToken),
    /// The pause could not mask the line. The caller masks it, deposits the token and asks again.
    NotMasked,
    /// Not paused, or stopped.
    Refused,
}

/// Outcome of the edges that take a token out and need not find one.
#[must_use = "the token must be used to unmask"]
pub enum Withdraw {
    /// The deposited token.
    Token(MaskToken),
    /// None was deposited.
    Empty,
}

/// Outcome of [`State::transition_to_reopened`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Reopen {
    /// The caller may look at the queue after it unmasked, and reclaim.
    Done,
    /// The source is owned, paused or plain.
    Skipped,
}

/// The state word.
///
/// # Invariants
///
/// Holds a valid [`Snapshot`].
pub struct State(Atomic<u32>);

#[cfg(not(loom))]
static_assertions::assert_eq_size!(State, u32);
static_assertions::assert_impl_all!(State: Send, Sync);

impl State {
    /// A state word that starts as `snapshot`.
    pub fn new(snapshot: Snapshot) -> Self {
        // INVARIANT: `snapshot` is one.
        Self(Atomic::new(snapshot.bits()))
    }

    /// Reads the word. What the last owner of the source did is visible.
    #[inline]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::from_bits_retain(self.0.load(Acquire))
    }

    /// Changes the word as `next` says, fully ordered, and returns what it was.
    fn change(&self, next: impl Fn(Snapshot) -> Snapshot) -> Snapshot {
        match self.update(|now| Some(next(now))) {
            Ok(old) | Err(old) => old,
        }
    }

    /// As [`change`](Self::change), but `next` may refuse: then returns what it refused as an
    /// error, without any order.
    fn update(&self, next: impl Fn(Snapshot) -> Option<Snapshot>) -> Result<Snapshot, Snapshot> {
        let mut old = self.0.load(Relaxed);
        loop {
            let now = Snapshot::from_bits_retain(old);
            let Some(new) = next(now) else {
                return Err(now);
            };
            // INVARIANT: `next` returns a valid snapshot.
            match self.0.cmpxchg(old, new.bits(), Full) {
                Ok(_) => return Ok(now),
                Err(changed) => old = changed,
            }
        }
    }

    /// Edge 1: clears everything. The caller is about to request the line.
    pub fn transition_to_reset(&self) -> Reset {
        match self.change(|_| Snapshot::empty()).token() {
            Some(token) => Reset::Forfeited(token),
            None => Reset::Clean,
        }
    }

    /// Edge 2: the line was requested, is dedicated, and the poller is set up and enabled.
    pub fn transition_to_open(&self) {
        self.change(|now| now | Snapshot::INIT);
    }

    /// Edge 3: an interrupt comes. A plain load unless `HANDOFF` is set.
    #[inline]
    pub fn transition_to_entered(&self) -> Entry {
        let now = self.snapshot();
        if !now.contains(Snapshot::HANDOFF) {
            return Entry::Plain(now);
        }
        self.use_handoff_up()
    }

    /// The uncommon half of edge 3.
    #[cold]
    fn use_handoff_up(&self) -> Entry {
        let used = self.update(|now| {
            now.contains(Snapshot::HANDOFF)
                .then_some(now - Snapshot::HANDOFF)
        });
        match used {
            Ok(old) => Entry::AfterUnmask(old - Snapshot::HANDOFF),
            Err(now) => Entry::Plain(now),
        }
    }

    /// Edge 4: takes the source away from the handler, which is the caller.
    pub fn transition_to_claimed(&self) -> Claim {
        match self.update(|now| now.may_claim().then_some(now | Snapshot::POLL)) {
            Ok(_) => Claim::Won,
            Err(now) if now.is_owned() => Claim::Owned,
            Err(_) => Claim::Refused,
        }
    }

    /// Takes `token` in if `may` agrees and there is no other.
    fn deposit(&self, token: MaskToken, may: impl Fn(Snapshot) -> bool) -> Deposit {
        let stored = self.update(|now| {
            (may(now) && !now.contains(Snapshot::MASKED)).then_some(now | Snapshot::MASKED)
        });
        match stored {
            Ok(_) => {
                token.redeem();
                Deposit::Stored
            }
            Err(_) => Deposit::Surplus(token),
        }
    }

    /// Edge 5: takes the token in.
    pub fn transition_to_masked(&self, token: MaskToken) -> Deposit {
        self.deposit(token, |_| true)
    }

    /// Edge 17: takes the token in if the source is still owned.
    pub fn transition_to_masked_late(&self, token: MaskToken) -> Deposit {
        self.deposit(token, Snapshot::is_owned)
    }

    /// Edge 15: takes the token in if the line is dedicated and not stopped.
    pub fn transition_to_kept(&self, token: MaskToken) -> Deposit {
        self.deposit(token, |now| now.contains(Snapshot::INIT))
    }

    /// Edge 16: takes a token of edge 15 out again, unless it is resume's or somebody's who owns
    /// the source by now.
    pub fn transition_to_taken_back(&self) -> Withdraw {
        let taken = self.update(|now| {
            (now - Snapshot::HANDOFF == Snapshot::INIT | Snapshot::MASKED)
                .then_some(now - Snapshot::MASKED)
        });
        match taken {
            Ok(old) => old.withdraw(),
            Err(_) => Withdraw::Empty,
        }
    }

    /// Edge 6: gives the source back to the handler. Under the queue lock.
    pub fn transition_to_handed_back(&self) -> HandBack {
        let released = self.update(|now| {
            (now.is_owned() && !now.contains(Snapshot::PAUSED))
                .then_some((now - (Snapshot::POLL | Snapshot::MASKED)) | Snapshot::HANDOFF)
        });
        match released {
            Ok(old) => HandBack::Released(old.token()),
            Err(_) => HandBack::Refused,
        }
    }

    /// Edge 7: takes the source again, if no handler has begun since the unmask. Under the queue
    /// lock.
    pub fn transition_to_reclaimed(&self) -> Reclaim {
        let reclaimed = self.update(|now| {
            (now.may_claim() && now.contains(Snapshot::HANDOFF))
                .then_some((now - Snapshot::HANDOFF) | Snapshot::POLL)
        });
        match reclaimed {
            Ok(_) => Reclaim::Won,
            Err(_) => Reclaim::Lost,
        }
    }

    /// Edge 8: blocks new claims.
    pub fn transition_to_paused(&self) -> Pause {
        let paused =
            self.update(|now| (!now.contains(Snapshot::PAUSED)).then_some(now | Snapshot::PAUSED));
        match paused {
            Ok(old) if old.contains(Snapshot::INIT) => Pause::Dedicated,
            Ok(_) => Pause::Plain,
            Err(_) => Pause::Already,
        }
    }

    /// Edge 9: nobody owns the source any more. Handler, thread and poller were joined; under the
    /// queue lock, which joins what a completed poller was still doing.
    pub fn transition_to_disowned(&self) -> Disown {
        let old = self.change(|now| now - Snapshot::POLL);
        if old.contains(Snapshot::MASKED) {
            Disown::Masked
        } else {
            Disown::Unmasked
        }
    }

    /// Edge 10: paused for good.
    pub fn transition_to_stopped(&self) -> Stop {
        let stopped = self.update(|now| {
            let new = (now - Snapshot::INIT) | Snapshot::PAUSED;
            (new != now).then_some(new)
        });
        let Ok(old) = stopped else {
            return Stop::Already;
        };
        match (old.contains(Snapshot::INIT), old.contains(Snapshot::PAUSED)) {
            (true, false) => Stop::Dedicated,
            (true, true) => Stop::DedicatedPaused,
            (false, _) => Stop::Plain,
        }
    }

    /// Edge 11: takes the token out of a paused source, for which one empty interrupt will be
    /// forgiven.
    pub fn transition_to_resuming(&self) -> Resume {
        let paused = Snapshot::INIT | Snapshot::PAUSED;
        let resuming = self.update(|now| {
            now.contains(paused | Snapshot::MASKED)
                .then_some((now - Snapshot::MASKED) | Snapshot::HANDOFF)
        });
        match resuming {
            Ok(old) => match old.token() {
                Some(token) => Resume::Unmask(token),
                None => Resume::NotMasked,
            },
            Err(now) if now.contains(paused) => Resume::NotMasked,
            Err(_) => Resume::Refused,
        }
    }

    /// Edge 12: allows claims again. The poller is enabled. Returns what edge 15 left in the
    /// meantime.
    pub fn transition_to_running(&self) -> Withdraw {
        self.change(|now| now - (Snapshot::PAUSED | Snapshot::MASKED))
            .withdraw()
    }

    /// Edge 13: takes the token out of a stopped source.
    pub fn transition_to_unmasked(&self) -> Withdraw {
        self.change(|now| now - Snapshot::MASKED).withdraw()
    }

    /// Edge 14: one empty interrupt will be forgiven. The caller has masked the line and joined the
    /// handler, and is about to unmask.
    pub fn transition_to_reopened(&self) -> Reopen {
        match self.update(|now| now.may_claim().then_some(now | Snapshot::HANDOFF)) {
            Ok(_) => Reopen::Done,
            Err(_) => Reopen::Skipped,
        }
    }
}
