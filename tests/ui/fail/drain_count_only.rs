// SPDX-License-Identifier: GPL-2.0

//! A count alone does not say whether the queue is empty.

use irqmod::{Budget, Drain, DrainRight, Source};

pub struct Queue;

impl Source for Queue {
    fn pending(&self) -> bool {
        false
    }

    fn drain(_: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        budget.get() //~ mismatched types
    }
}
