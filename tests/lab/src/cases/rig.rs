// SPDX-License-Identifier: GPL-2.0

//! What the guest cases share: drivers, disks on a real file, and the checks at the end.

use crate::{
    disk::Disk,
    failure::{
        At,
        Failure,
        Result, //
    },
    guest::Guest,
    kernel::Flavour,
    own,
    test::{
        Context,
        Outcome, //
    },
    vm::Vm, //
};
use irqmod::policy::Config;
use std::{
    fs,
    fs::File,
    path::{
        Path,
        PathBuf, //
    },
    time::Duration, //
};

/// More than any healthy command takes on a machine that is busy with other things.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// Size of a disk.
pub(crate) const DISK_MIB: u64 = 128;

/// Which driver, and how it handles completions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// The kernel's own.
    C,
    /// Ours, with a policy.
    Rust(&'static str),
}

/// Ours with each policy.
pub(crate) const POLICIES: [Driver; 3] = [
    Driver::Rust("hardirq"),
    Driver::Rust("resched"),
    Driver::Rust("threaded"),
];

/// The kernel's driver first: it shows that the case itself is right.
pub(crate) const ALL: [Driver; 4] = [Driver::C, POLICIES[0], POLICIES[1], POLICIES[2]];

/// How the other policies are made to act on a few requests, since the pressure that their defaults
/// wait for is not that of most cases. A policy without a line here runs with its defaults.
const EAGER: &[&str] = &[
    "flood:window_us=100,busy_percent=1",
    "overflow:budget=1",
    "inflight:high=4,low=2,interval_us=200",
    "rate:interval_us=1000,window=512",
    "workqueue:direct=0",
    "timer:delay_us=200,push=1",
    "fair:share_percent=10,window_us=500",
];

/// Each policy that the library has, made to act.
pub(crate) fn acting() -> impl Iterator<Item = &'static str> {
    let eager = |name: &&'static str| {
        let words = EAGER.iter().find(|words| policy_name(words) == *name);
        *words.unwrap_or(name)
    };
    Config::NAMES.iter().map(eager)
}

/// Ours with each policy that [`POLICIES`] has not: they run the short forms of a few cases.
pub(crate) fn more() -> Vec<Driver> {
    let drivers = acting().map(Driver::Rust);
    drivers
        .filter(|driver| !POLICIES.contains(driver))
        .collect()
}

/// What can be written to choose a policy: each as it is by default, then made to act, then with
/// the other mask where it always masks, and the thread that roams.
pub(crate) fn choices() -> Vec<String> {
    let eager = EAGER.iter().chain(NOWAIT);
    let all = Config::NAMES.iter().chain(eager);
    all.map(|words| (*words).to_owned()).collect()
}

const NOWAIT: &[&str] = &[
    "irqpoll:mask=nowait",
    "resched:mask=nowait",
    "threaded:spread=1,mask=nowait",
];

/// A policy without its keys.
fn policy_name(policy: &str) -> &str {
    policy.split(':').next().unwrap_or_default()
}

impl Driver {
    /// A part of a case's name.
    pub(crate) fn name(self) -> String {
        match self {
            Self::C => "c".into(),
            Self::Rust(policy) if EAGER.contains(&policy) => policy_name(policy).into(),
            Self::Rust(policy) => policy.replace([':', '=', ','], "-"),
        }
    }

    /// The module's name, which is also the driver's name on the bus.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Self::C => "nvme",
            Self::Rust(_) => "nvme_rust",
        }
    }

    /// The command that loads the module.
    pub(crate) fn insmod(self, parameters: &str) -> String {
        match self {
            Self::C => format!("insmod /lib/modules/nvme.ko {parameters}"),
            Self::Rust(policy) => format!(
                "insmod /lib/modules/nvme-rust.ko claim_all=1 irq_policy={policy} {parameters}"
            ),
        }
    }
}

/// A guest with a driver, and the checks that end a case.
pub(crate) struct Rig {
    /// The guest.
    pub(crate) guest: Guest,
    driver: Driver,
    allowed: &'static [&'static str],
    _store: Option<Store>,
}

/// How a [`Rig`] is to be.
pub(crate) struct Plan {
    name: String,
    driver: Driver,
    flavour: Flavour,
    parameters: String,
    vm: Vm,
    store: Option<Store>,
    allowed: &'static [&'static str],
}

impl Plan {
    /// Two CPUs, one disk on a real file, the base kernel.
    pub(crate) fn new(name: &str, driver: Driver) -> Result<Self> {
        Self::with_disk(name, driver, Disk::behind_port)
    }

    /// The same with a disk that is put elsewhere.
    pub(crate) fn with_disk(
        name: &str,
        driver: Driver,
        put: impl FnOnce(Disk) -> Disk,
    ) -> Result<Self> {
        let store = Store::new(name)?;
        let disk = Disk::file("d0", &store.path)
            .set("mdts", 0)
            .set("dbcs", "off");
        Ok(Self::with_disks(name, driver, [put(disk)], Some(store)))
    }

    /// The same with a choice of disks.
    pub(crate) fn with_disks(
        name: &str,
        driver: Driver,
        disks: impl IntoIterator<Item = Disk>,
        store: Option<Store>,
    ) -> Self {
        let vm = Vm::new(name).file("/etc/lab.sh", include_bytes!("lab.sh").as_slice());
        Self {
            name: name.to_owned(),
            driver,
            flavour: Flavour::Base,
            parameters: String::new(),
            vm: disks.into_iter().fold(vm, Vm::disk),
            store,
            allowed: &[],
        }
    }

    /// Changes the guest.
    pub(crate) fn vm(mut self, change: impl FnOnce(Vm) -> Vm) -> Self {
        self.vm = change(self.vm);
        self
    }

    /// Chooses the kernel.
    pub(crate) fn flavour(mut self, flavour: Flavour) -> Self {
        self.flavour = flavour;
        self
    }

    /// Parameters of the driver's module.
    pub(crate) fn parameters(mut self, parameters: &str) -> Self {
        self.parameters = parameters.to_owned();
        self
    }

    /// Lines of the kernel's log that the case provokes.
    pub(crate) fn allow(mut self, lines: &'static [&'static str]) -> Self {
        self.allowed = lines;
        self
    }

    /// Boots and loads the driver.
    pub(crate) fn start(self, context: &Context<'_>) -> Result<Rig> {
        let kernel = context.kernel(self.flavour)?;
        let mut rig = Rig {
            guest: self.vm.boot(context.lab, kernel)?,
            driver: self.driver,
            allowed: self.allowed,
            _store: self.store,
        };
        let load = self.driver.insmod(&self.parameters);
        rig.sh(&format!(
            "insmod /lib/modules/nvme-core.ko && {load} && wait_disk"
        ))
        .map_err(|failure| Failure::new(format!("set {} up", self.name), failure))?;
        Ok(rig)
    }
}

impl Rig {
    /// Runs a command with the shared functions; it has to succeed.
    pub(crate) fn sh(&mut self, command: &str) -> Result<String> {
        self.guest
            .check(&format!(". /etc/lab.sh; {command}"), LIMIT)
    }

    /// Waits until all is idle, checks the books, and switches the guest off.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.idle()?;
        self.end()
    }

    /// Waits until all is idle and checks lines and disks, while there are some.
    pub(crate) fn idle(&mut self) -> Result<()> {
        let faults = self.sh("sleep 0.3; idle_faults")?;
        self.expect_empty("state at the end (D5, D6)", &faults)
    }

    /// The rest of [`Rig::finish`], for a case that has unloaded its driver.
    pub(crate) fn end(mut self) -> Result<()> {
        self.check_logs()?;
        self.guest.power_off()
    }

    /// Checks the kernel's log and the device's view.
    pub(crate) fn check_logs(&mut self) -> Result<()> {
        let log = self.guest.d1_except(0, self.allowed)?.join("\n    ");
        self.expect_empty("kernel log (D1)", &log)?;
        if self.driver == Driver::C {
            // In a reset under load it may ring the doorbell of a queue that is deleted already.
            return Ok(());
        }
        let errors = self.guest.guest_errors()?;
        self.expect_empty("what the device objects to (D3)", &errors)
    }

    fn expect_empty(&self, what: &str, text: &str) -> Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        Err(Failure::new(what, text.trim()).log(self.guest.console_path()))
    }
}

/// Runs a case in which memory of a device comes and goes while several CPUs are emulated at once:
/// QEMU 10 sometimes fails an assertion of its own then. Once more if it did. A guest that panics
/// leaves no such line.
pub(crate) fn with_patience(
    context: &Context<'_>,
    start: impl Fn() -> Result<Rig>,
    body: impl Fn(Rig) -> Result<Outcome>,
) -> Result<Outcome> {
    let rig = start()?;
    let log = rig.guest.console_path().with_file_name("qemu.log");
    match body(rig) {
        Err(_) if fs::read_to_string(&log).is_ok_and(|said| said.contains("Assertion `")) => {
            context.lab.say(&format!(
                "the emulator failed an assertion, see {}; again",
                log.display()
            ));
            body(start()?)
        }
        done => done,
    }
}

/// The file behind a disk, in memory; goes with this value.
pub(crate) struct Store {
    /// The file.
    pub(crate) path: PathBuf,
}

impl Store {
    /// A file full of holes.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = own::folder(Path::new("/dev/shm"))?.join(name);
        let step = format!("make the disk {}", path.display());
        let file = File::create(&path).at(&step)?;
        file.set_len(DISK_MIB << 20).at(&step)?;
        Ok(Self { path })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // If it has gone already, so much the better; the folder goes with its last file.
        let _ = fs::remove_file(&self.path);
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_its_cases() {
        let mut drivers = POLICIES.to_vec();
        drivers.extend(more());
        assert_eq!(drivers.len(), Config::NAMES.len());
        for name in Config::NAMES {
            let mut names = drivers.iter().map(|driver| driver.name());
            assert!(names.any(|driver| driver == *name), "{name}");
        }
    }

    #[test]
    fn a_counter_that_there_is_not_is_no_zero() {
        let sum = |name: &str| {
            let stats = "polls 2\npolls_max 9\npolls 3\nempty 0\n";
            let script = format!(
                "{}\nprintf '{stats}' | sum_of {name}",
                include_str!("lab.sh")
            );
            let output = std::process::Command::new("sh")
                .args(["-c", &script])
                .output();
            let output = output.unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            output.status.success().then(|| text.trim().to_owned())
        };
        assert_eq!(sum("polls").as_deref(), Some("5"));
        assert_eq!(sum("empty").as_deref(), Some("0"));
        assert_eq!(sum("poll"), None);
    }

    #[test]
    fn all_choices_are_allowed() {
        let choices = choices();
        assert!(choices.len() > Config::NAMES.len());
        for policy in &choices {
            assert!(irqmod::params::parse(policy.as_str()).is_ok(), "{policy}");
        }
    }
}
