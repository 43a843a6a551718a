// SPDX-License-Identifier: GPL-2.0

//! A claimed source that nobody drains is lost.

use irqmod::state::State;

pub fn claim(state: &State) {
    state.transition_to_claimed(); //~ a claimed source is not drained unless it is deferred
}
