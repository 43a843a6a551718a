// SPDX-License-Identifier: GPL-2.0

//! The range is part of the type: there is no other way to make one.

use irqmod::{policy::resched, Budget};

pub fn huge() -> resched::Config {
    resched::Config { budget: Budget::UNLIMITED } //~ field `budget` of struct `irqmod::policy::resched::Config` is private
}
