// SPDX-License-Identifier: GPL-2.0

//! The right can't go to another context.

use irqmod::DrainRight;

fn send<T: Send>(_: T) {}

pub fn sent<S: Sync>(right: &mut DrainRight<'_, S>) {
    send(right); //~ cannot be sent between threads safely
}
