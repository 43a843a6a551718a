// SPDX-License-Identifier: GPL-2.0

//! What tracers are told of a line.

use crate::{
    verdict::Deferral,
    watch::Context, //
};

/// Something that happened to a line. What a platform does by itself (masks and timers), it traces
/// by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The source is taken from its handler.
    Defer {
        /// Who drains next.
        to: Deferral,
        /// Completions that the handler has drained.
        found: u32,
    },
    /// A deferred drain is over.
    Poll {
        /// Where.
        context: Context,
        /// Completions drained.
        found: u32,
    },
    /// The source is given back to its handler.
    Rearm,
    /// An interrupt found nothing.
    Empty {
        /// Whether it is said to be handled all the same.
        forgiven: bool,
    },
    /// A pause was asked for.
    Pause,
    /// A resume was asked for.
    Resume,
    /// A stop was asked for.
    Stop,
}
