// SPDX-License-Identifier: GPL-2.0

//! Only the moderator says who drains.

use irqmod::DrainRight;

pub fn forged() -> DrainRight<'static> {
    DrainRight::new() //~ associated function `new` is private
}
