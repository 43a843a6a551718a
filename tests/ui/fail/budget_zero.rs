// SPDX-License-Identifier: GPL-2.0

//! A budget of nothing would poll for ever.

use irqmod::Budget;

pub const BUDGET: Budget = match Budget::new(0) {
    Some(budget) => budget,
    None => panic!("no budget"), //~ evaluation panicked: no budget
};
