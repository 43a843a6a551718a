// SPDX-License-Identifier: GPL-2.0

//! Only the moderator says who drains.

use irqmod::DrainRight;

pub fn forged<S>(source: &S) -> DrainRight<'_, S> {
    DrainRight::new(source) //~ associated function `new` is private
}
