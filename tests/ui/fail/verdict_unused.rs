// SPDX-License-Identifier: GPL-2.0

//! A verdict does nothing by itself.

use irqmod::{observation::Glance, policy::Policy};

pub fn decide(policy: &impl Policy) {
    policy.on_interrupt(Glance::empty()); //~ a verdict does nothing until the moderator carries it out
}
