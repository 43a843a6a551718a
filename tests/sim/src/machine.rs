// SPDX-License-Identifier: GPL-2.0

//! What is simulated: a machine, and what loads it. Plain descriptions, readable from TOML or JSON.

use crate::Ns;
use serde::{
    Deserialize,
    Serialize, //
};

/// A machine.
///
/// CPU `c` submits to queue `c * queues / cpus` of every controller, and the first CPU of each such
/// group takes the interrupts of that queue of all controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// Name in tables.
    pub name: String,
    /// Number of CPUs, `1..=4096`.
    pub cpus: u32,
    /// Number of controllers, `1..=256`.
    pub controllers: u32,
    /// I/O queues of each controller, `1..=cpus`.
    pub queues: u32,
    /// What each controller can do.
    pub device: Device,
    /// The kernel's settings.
    pub kernel: Kernel,
    /// What things cost.
    pub costs: Costs,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            name: "small".into(),
            cpus: 4,
            controllers: 2,
            queues: 1,
            device: Device::default(),
            kernel: Kernel::default(),
            costs: Costs::default(),
        }
    }
}

/// A controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// Most commands a second, over all queues. 0: no limit.
    pub cap_iops: u64,
    /// Deviation of the time between two commands at the cap. Unit: percent of its mean.
    pub cap_cv: u32,
    /// Time of one command in the device, when nothing else is there.
    pub base_ns: Ns,
    /// Deviation of [`base_ns`](Self::base_ns). Unit: percent.
    pub base_cv: u32,
    /// How many commands of 1,000 take [`slow_ns`](Self::slow_ns) instead.
    pub slow_permille: u32,
    /// Time of a slow command.
    pub slow_ns: Ns,
    /// Entries of a hardware queue; one of them is always free.
    pub depth: u32,
    /// Time of a message from the device to the CPU's interrupt controller.
    pub message_ns: Ns,
    /// Whether a message that is due while the vector is masked is kept (the pending bit array).
    pub latches: bool,
    /// Time after which a posted mask write reaches the device.
    pub posted_ns: Ns,
}

impl Default for Device {
    fn default() -> Self {
        Self {
            cap_iops: 0,
            cap_cv: 0,
            base_ns: 20_000,
            base_cv: 5,
            slow_permille: 0,
            slow_ns: 0,
            depth: 1024,
            message_ns: 0,
            latches: true,
            posted_ns: 500,
        }
    }
}

/// Settings of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kernel {
    /// Ticks a second.
    pub hz: u32,
    /// Slice of an ordinary task.
    pub slice_ns: Ns,
    /// Lazy preemption: ordinary wake-ups ask for the CPU at the next tick only, unless user code
    /// is interrupted.
    pub lazy: bool,
    /// Whether interrupts are not charged to the task that they interrupt
    /// (`CONFIG_IRQ_TIME_ACCOUNTING`).
    pub irq_time: bool,
    /// `watchdog_thresh`. Unit: seconds.
    pub watchdog_s: u32,
    /// RCU stall timeout. Unit: seconds.
    pub rcu_stall_s: u32,
    /// Whether the timer interrupt goes before vectors that came earlier.
    pub timer_first: bool,
    /// Whether idle CPUs stop their tick.
    pub tickless: bool,
    /// How lines are masked when no policy says otherwise.
    pub mask: Mask,
    /// How many CPUs a wake-up looks at in search of an idle one.
    pub wake_scan: u32,
    /// How rarely an idle CPU looks for waiting tasks elsewhere, at least; at most it is twice that.
    /// The kernel takes the number of CPUs that share a cache. Unit: milliseconds.
    pub balance_ms: u32,
    /// Slack of a hold timer.
    pub slack_ns: Ns,
}

impl Default for Kernel {
    fn default() -> Self {
        Self {
            hz: 250,
            slice_ns: 2_800_000,
            lazy: false,
            irq_time: false,
            watchdog_s: 10,
            rcu_stall_s: 21,
            timer_first: false,
            tickless: true,
            mask: Mask::Lazy,
            wake_scan: 4,
            balance_ms: 32,
            slack_ns: 2_000,
        }
    }
}

/// How an interrupt line is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mask {
    /// Only noted; the chip is masked when a message comes all the same.
    Lazy,
    /// At the device, and read back.
    Sync,
    /// At the device, without waiting: messages may still come.
    Nowait,
    /// At the CPU's interrupt controller: the device still sends.
    Parent,
}

/// What things cost. Unit of all: nanoseconds of CPU time.
///
/// The values of the field machine, and where each comes from, are in [`crate::calibration`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Costs {
    /// To take one entry off the queue, in any context.
    pub collect: Ns,
    /// To complete one request in softirq or task context.
    pub complete: Ns,
    /// To complete one request in a hard interrupt.
    pub complete_hard: Ns,
    /// To tell the device the new head of the queue.
    pub doorbell: Ns,
    /// An interrupt that is delivered, from the interrupted code and back to it.
    pub interrupt: Ns,
    /// The handler of a tick, beyond its interrupt.
    pub tick: Ns,
    /// One run of the softirq loop.
    pub softirq: Ns,
    /// From one task to another one.
    pub switch: Ns,
    /// From idle to a task, including the wake-up of a halted CPU.
    pub idle_exit: Ns,
    /// To wake an interrupt thread, beyond the switch: paid when the thread begins.
    pub thread_wake: Ns,
    /// Not CPU time: how much later a timer of an idle CPU expires, because the CPU is halted.
    pub halted_timer: Ns,
    /// To arm a timer.
    pub arm: Ns,
    /// Bookkeeping of a mask or unmask that does not touch the chip.
    pub mask_lazy: Ns,
    /// A mask or unmask that is written and read back.
    pub mask_sync: Ns,
    /// A mask or unmask that is written.
    pub mask_posted: Ns,
    /// A mask or unmask at the CPU's interrupt controller.
    pub mask_parent: Ns,
    /// To send a kept interrupt again.
    pub replay: Ns,
    /// A job's time for one request before it counts as submitted.
    pub prepare: Ns,
    /// A job's time to submit one request, which is part of its latency.
    pub submit: Ns,
    /// A job's time to ask for completions.
    pub reap: Ns,
    /// A job's time for each completion that it got.
    pub reap_each: Ns,
    /// To copy 1,024 bytes of a bounce buffer.
    pub copy_kib: Ns,
}

impl Default for Costs {
    fn default() -> Self {
        crate::calibration::bare_metal()
    }
}

/// What loads a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Jobs; job `j` starts on CPU `j % cpus`.
    pub jobs: u32,
    /// Requests that each job keeps outstanding.
    pub depth: u32,
    /// Controllers that each job goes round; 0: all.
    pub files: u32,
    /// CPU-bound tasks pinned to each interrupt CPU.
    pub hogs: u32,
    /// Bytes of a request that are copied on completion (bounce buffers); 0: none.
    pub copy_bytes: u32,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            jobs: 1,
            depth: 1,
            files: 0,
            hogs: 0,
            copy_bytes: 0,
        }
    }
}

/// A part of a machine whose CPUs meet each other, and nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// How often the machine has one like this.
    pub times: u32,
    /// The first CPU's number in the machine.
    pub first_cpu: u32,
    /// Its CPUs.
    pub cpus: u32,
    /// For each CPU, the queue that it submits to, counted from 0 in this world.
    pub queue_of: Vec<u32>,
    /// For each queue, the CPU that takes its interrupts.
    pub irq_cpu: Vec<u32>,
    /// For each job, the CPU that it starts on.
    pub jobs: Vec<u32>,
    /// What divides each controller's cap: the machine's worlds that have jobs.
    pub share: u32,
}

impl Machine {
    /// The queue that CPU `cpu` submits to.
    pub fn queue_of(&self, cpu: u32) -> u32 {
        let queue = u64::from(cpu) * u64::from(self.queues) / u64::from(self.cpus);
        u32::try_from(queue).unwrap_or(0)
    }

    /// The worlds of this machine under `load`: those without a job are left out, equal ones are
    /// joined.
    pub fn split(&self, load: &Workload) -> Vec<World> {
        let mut worlds: Vec<World> = Vec::new();
        let busy = (0..self.queues)
            .filter_map(|queue| self.world(queue, load))
            .collect::<Vec<_>>();
        let share = u32::try_from(busy.len()).unwrap_or(1);
        for mut world in busy {
            world.share = share;
            let same = worlds
                .iter_mut()
                .find(|known| known.cpus == world.cpus && known.jobs == world.jobs);
            match same {
                Some(known) => known.times += 1,
                None => worlds.push(world),
            }
        }
        worlds
    }

    /// The world of one queue, unless it has no job.
    fn world(&self, queue: u32, load: &Workload) -> Option<World> {
        let cpus: Vec<u32> = (0..self.cpus)
            .filter(|&cpu| self.queue_of(cpu) == queue)
            .collect();
        let first = *cpus.first()?;
        let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        let jobs: Vec<u32> = (0..load.jobs)
            .map(|job| job % self.cpus)
            .filter(|&cpu| self.queue_of(cpu) == queue)
            .map(|cpu| cpu - first)
            .collect();
        (!jobs.is_empty()).then(|| World {
            times: 1,
            first_cpu: first,
            cpus: count,
            queue_of: vec![0; cpus.len()],
            irq_cpu: vec![0],
            jobs,
            share: 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_machine_is_two_kinds_of_worlds() {
        let machine = Machine {
            cpus: 128,
            controllers: 4,
            queues: 14,
            ..Machine::default()
        };
        let load = Workload {
            jobs: 128,
            depth: 256,
            ..Workload::default()
        };
        let mut kinds: Vec<_> = machine
            .split(&load)
            .iter()
            .map(|world| (world.times, world.cpus, world.jobs.len()))
            .collect();
        kinds.sort_unstable();
        assert_eq!(kinds, [(2, 10, 10), (12, 9, 9)]);
    }

    #[test]
    fn idle_groups_are_left_out() {
        let machine = Machine {
            cpus: 128,
            queues: 14,
            ..Machine::default()
        };
        let worlds = machine.split(&Workload::default());
        assert_eq!(worlds.len(), 1);
        assert_eq!((worlds[0].times, worlds[0].share), (1, 1));
    }
}
