// SPDX-License-Identifier: GPL-2.0

//! Whether a stock kernel boots on this machine's KVM: found out by trying, once.

use crate::{
    failure::Result,
    host,
    kernel::Kernel,
    lab::{
        replace_file,
        slug,
        Lab, //
    },
    vm::{
        Accel,
        Vm, //
    },
};
use std::{
    fs,
    fs::OpenOptions,
    time::Duration, //
};

const LIMIT: Duration = Duration::from_secs(20);

/// The fastest way to execute this kernel that works here.
pub(crate) fn best(lab: &Lab, kernel: &Kernel) -> Result<Accel> {
    if OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_err()
    {
        return Ok(Accel::Tcg);
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let qemu = host::version("qemu-system-x86_64");
    let name = slug(&format!("{} {qemu} {}", boot.trim(), kernel.release));
    let verdict = lab.cache.join("kvm").join(name);
    if let Ok(text) = fs::read_to_string(&verdict) {
        return Ok(parse(&text));
    }
    let accel = probe(lab, kernel)?;
    replace_file(&verdict, word(accel).as_bytes())?;
    Ok(accel)
}

fn probe(lab: &Lab, kernel: &Kernel) -> Result<Accel> {
    lab.say("trying whether this kernel boots on KVM (20 s at most, once a boot of this machine)");
    let vm = Vm::new("kvm-probe").boot_timeout(LIMIT);
    if vm.prepare(lab, kernel, Accel::Kvm)?.start(lab).is_ok() {
        return Ok(Accel::Kvm);
    }
    lab.say("it does not: guests are emulated (TCG)");
    Ok(Accel::Tcg)
}

fn word(accel: Accel) -> &'static str {
    match accel {
        Accel::Kvm => "kvm",
        Accel::Tcg => "tcg",
    }
}

fn parse(text: &str) -> Accel {
    if text == "kvm" {
        Accel::Kvm
    } else {
        Accel::Tcg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_survives_the_cache() {
        for accel in [Accel::Kvm, Accel::Tcg] {
            assert_eq!(parse(word(accel)), accel);
        }
        assert_eq!(parse("half a wor"), Accel::Tcg);
    }
}
