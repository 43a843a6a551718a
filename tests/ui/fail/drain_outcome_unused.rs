// SPDX-License-Identifier: GPL-2.0

//! Completions may be left.

use irqmod::{Budget, DrainRight, Source};

pub fn drain<S: Source>(source: &S, right: &mut DrainRight<'_>, budget: Budget) {
    source.drain(right, budget); //~ More means that completions may be left in the queue
}
