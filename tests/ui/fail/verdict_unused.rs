// SPDX-License-Identifier: GPL-2.0

//! A verdict does nothing by itself.

use irqmod::{observation::Observation, policy::Config};

pub fn decide(config: &Config) {
    config.on_interrupt(&Observation::default()); //~ a verdict does nothing until the moderator carries it out
}
