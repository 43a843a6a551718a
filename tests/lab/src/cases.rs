// SPDX-License-Identifier: GPL-2.0

//! The cases that run in the booted guest.

mod cost;
mod data;
mod deferral;
mod faults;
mod kunit;
mod load;
mod modules;
mod nowait;
mod observe;
mod policies;
mod power;
mod recover;
mod rig;
mod scarce;
mod shapes;
mod silent;
mod spread;
mod switch;
mod teardown;

use crate::test::Case;

/// All of them, in the order in which they run.
pub(crate) fn all() -> Vec<Case> {
    let mut all = modules::all();
    all.extend(data::all());
    all.extend(policies::all());
    all.extend(shapes::all());
    all.extend(silent::all());
    all.extend(spread::all());
    all.extend(nowait::all());
    all.extend(kunit::all());
    all.extend(observe::all());
    all.extend(cost::all());
    all.extend(teardown::all());
    all.extend(deferral::all());
    all.extend(power::all());
    all.extend(recover::all());
    all.extend(switch::all());
    all.extend(faults::all());
    all.extend(scarce::all());
    all
}
