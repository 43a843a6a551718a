// SPDX-License-Identifier: GPL-2.0

//! Machines drawn from a seed: from a laptop to more than any lab has.

use super::{
    Scenario,
    GENERATED, //
};
use crate::{
    machine::{
        Costs,
        Device,
        Kernel, //
    },
    random::Random,
    Machine,
    Workload, //
};

/// The machine of a seed.
pub(super) fn draw(seed: u64) -> Scenario {
    let mut random = Random::new(seed ^ 0x6d61_6368);
    let machine = machine(seed, &mut random);
    let load = load(&machine, &mut random);
    Scenario {
        about: format!("drawn from seed {seed}"),
        machine,
        load,
        published: Vec::new(),
    }
}

fn one_of<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

fn machine(seed: u64, random: &mut Random) -> Machine {
    let cpus = one_of(random, &[2, 4, 8, 16, 32, 64, 128, 256]);
    let each = one_of(random, &[1, 2, 4, 8, 16]);
    Machine {
        name: format!("{GENERATED}{seed}"),
        cpus,
        controllers: one_of(random, &[1, 2, 4, 8, 16]),
        queues: (cpus / each).max(1),
        device: Device {
            cap_iops: one_of(random, &[100_000, 300_000, 700_000, 1_500_000, 3_000_000]),
            cap_cv: one_of(random, &[0, 10, 30]),
            base_ns: one_of(random, &[5_000, 10_000, 20_000, 80_000]),
            base_cv: one_of(random, &[3, 10, 25]),
            slow_permille: one_of(random, &[0, 0, 5, 20]),
            slow_ns: 150_000,
            depth: one_of(random, &[128, 1_024]),
            message_ns: one_of(random, &[0, 300]),
            ..Device::default()
        },
        kernel: Kernel {
            hz: one_of(random, &[100, 250, 1_000]),
            lazy: random.chance(500),
            irq_time: random.chance(500),
            timer_first: random.chance(500),
            ..Kernel::default()
        },
        costs: costs(random),
    }
}

/// Those of bare metal, or of a virtual machine: two to four times as much, interrupts more so.
fn costs(random: &mut Random) -> Costs {
    let bare = crate::calibration::bare_metal();
    if random.chance(500) {
        return bare;
    }
    let times = 2 + random.below(3);
    Costs {
        complete: bare.complete * times,
        complete_hard: bare.complete_hard * times,
        interrupt: bare.interrupt * (times + 1),
        idle_exit: bare.idle_exit * times,
        thread_wake: bare.thread_wake * times,
        arm: bare.arm * times * 2,
        halted_timer: 10_000 * random.below(5),
        ..bare
    }
}

fn load(machine: &Machine, random: &mut Random) -> Workload {
    let copy = one_of(random, &[0, 0, 0, 4_096, 16_384]);
    Workload {
        jobs: machine.cpus * one_of(random, &[1, 1, 2]),
        depth: one_of(random, &[1, 4, 16, 64, 256]),
        hogs: u32::from(random.chance(250)),
        copy_bytes: copy,
        ..Workload::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ() {
        let machines: Vec<_> = (0..20)
            .map(|seed| draw(seed).machine.device.base_ns)
            .collect();
        assert!(machines.iter().any(|&base| base != machines[0]));
    }
}
