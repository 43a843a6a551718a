// SPDX-License-Identifier: GPL-2.0

//! What makes virtual time repeat: QEMU on one host CPU, its main loop above its vCPU thread.

use crate::{
    failure::Result,
    lab::Lab, //
};
use std::{
    fs,
    fs::File,
    io,
    mem, //
};

const MAIN_LOOP: i32 = 10;
const VCPU: i32 = 5;

/// How well the threads could be arranged; keeps the host CPU for us.
pub(crate) struct Pinned {
    /// What a reader of the figures must know.
    pub(crate) note: Option<String>,
    _cpu: Option<File>,
}

/// Pins a stopped QEMU and raises its threads.
pub(crate) fn pin(lab: &Lab, pid: u32) -> Result<Pinned> {
    let Some((cpu, lock)) = free_cpu(lab)? else {
        return Ok(plain("every host CPU is taken by another lab", None));
    };
    match arrange(pid, cpu) {
        Ok(()) => Ok(Pinned {
            note: None,
            _cpu: Some(lock),
        }),
        Err(error) => Ok(plain(&error.to_string(), Some(lock))),
    }
}

fn plain(why: &str, cpu: Option<File>) -> Pinned {
    let note = format!("QEMU's threads are not pinned, figures vary more: {why}");
    Pinned {
        note: Some(note),
        _cpu: cpu,
    }
}

fn free_cpu(lab: &Lab) -> Result<Option<(usize, File)>> {
    for cpu in allowed_cpus().into_iter().rev() {
        if let Some(lock) = lab.try_lock(&format!("host CPU {cpu}"))? {
            return Ok(Some((cpu, lock)));
        }
    }
    Ok(None)
}

fn allowed_cpus() -> Vec<usize> {
    // SAFETY: An all-zero set is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is valid for writes of its size.
    let result = unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) };
    if result != 0 {
        return vec![0];
    }
    // SAFETY: Each index is below the size of the set.
    (0..libc::CPU_SETSIZE as usize)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect()
}

fn arrange(pid: u32, cpu: usize) -> io::Result<()> {
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?;
        let Ok(tid) = task.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let name = fs::read_to_string(task.path().join("comm"))?;
        pin_thread(tid, cpu)?;
        set_fifo(tid, priority(name.trim_end()))?;
    }
    Ok(())
}

/// The vCPU thread gives way to everything else that QEMU does.
fn priority(name: &str) -> i32 {
    if name.ends_with("/TCG") {
        VCPU
    } else {
        MAIN_LOOP
    }
}

fn pin_thread(tid: i32, cpu: usize) -> io::Result<()> {
    // SAFETY: An all-zero set is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `cpu` came out of a set of the same size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid for reads of its size.
    check(unsafe { libc::sched_setaffinity(tid, mem::size_of_val(&set), &set) })
}

fn set_fifo(tid: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `param` is valid for reads.
    check(unsafe { libc::sched_setscheduler(tid, libc::SCHED_FIFO, &param) })
}

fn check(result: i32) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_vcpu_thread_is_low() {
        assert_eq!(priority("ALL CPUs/TCG"), VCPU);
        assert_eq!(priority("CPU 0/TCG"), VCPU);
        assert_eq!(priority("qemu-system-x86"), MAIN_LOOP);
    }

    #[test]
    fn some_cpu_is_allowed() {
        assert!(!allowed_cpus().is_empty());
    }
}
