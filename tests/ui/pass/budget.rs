// SPDX-License-Identifier: GPL-2.0

//! What the mistakes are measured against.

use irqmod::Budget;

pub const BUDGET: Budget = match Budget::new(256) {
    Some(budget) => budget,
    None => panic!("no budget"),
};
