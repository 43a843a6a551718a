// SPDX-License-Identifier: GPL-2.0

//! Only the moderator says who drains.

use core::marker::PhantomData;
use irqmod::DrainRight;

pub fn forged<S>(source: &S) -> DrainRight<'_, S> {
    DrainRight(source, PhantomData) //~ cannot initialize a tuple struct which contains private fields
}
