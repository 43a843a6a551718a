// SPDX-License-Identifier: GPL-2.0

//! Completions may be left.

use irqmod::{Budget, DrainRight, Source};

pub fn drain<S: Source>(source: &mut DrainRight<'_, S>, budget: Budget) {
    source.drain(budget); //~ More means that completions may be left in the queue
}
