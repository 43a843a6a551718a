// SPDX-License-Identifier: GPL-2.0

//! What to boot: the description of a guest, and the way from there to a running one.

use crate::{
    accel,
    channel::Channel,
    disk::Disk,
    failure::{
        At,
        Failure,
        Result, //
    },
    guest::Guest,
    host,
    initramfs::{
        self,
        Extra, //
    },
    kernel::Kernel,
    lab::Lab,
    process::{
        Files,
        Process, //
    },
    qmp::Qmp,
    step::quote,
    vtime,
};
use serde_json::json;
use std::{
    ffi::OsStr,
    fs,
    path::{
        Path,
        PathBuf, //
    },
    process::Command,
    time::Duration,
};

/// What a second of the guest is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Time {
    /// A second on the host, as fast as the host can.
    Host,
    /// A number of instructions: figures repeat.
    Virtual,
}

/// How QEMU executes the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accel {
    /// The host's virtualisation.
    Kvm,
    /// Emulation.
    Tcg,
}

/// Detectors of starvation for a clock that only runs when the guest does.
const STRICT: &str = "watchdog_thresh=1 rcupdate.rcu_cpu_stall_timeout=3 \
    sysctl.kernel.hung_task_timeout_secs=10";

/// The same for an emulated guest on a host that does other things too: it stands still at times,
/// and can't measure how fast the processor's own clock runs.
///
/// No five-level paging: while the kernel identifies the boot CPU, the word that says so is rebuilt,
/// and KASAN takes what an interrupt touches at that moment for wild memory.
const PATIENT: &str =
    "tsc=unstable no5lvl watchdog_thresh=10 sysctl.kernel.hung_task_timeout_secs=60";

/// Description of a guest.
#[derive(Clone)]
pub(crate) struct Vm {
    name: String,
    cpus: u32,
    memory_mib: u32,
    time: Time,
    cmdline: String,
    disks: Vec<Disk>,
    words: Vec<String>,
    extra: Extra,
    boot_timeout: Duration,
}

impl Vm {
    /// A guest with 2 CPUs, 2 GiB and nothing else. The name is that of its log folder.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cpus: 2,
            memory_mib: 2048,
            time: Time::Host,
            cmdline: String::new(),
            disks: Vec::new(),
            words: Vec::new(),
            extra: Extra::default(),
            boot_timeout: Duration::from_secs(120),
        }
    }

    /// Number of CPUs.
    pub(crate) fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// Size of the memory.
    pub(crate) fn memory_mib(mut self, memory: u32) -> Self {
        self.memory_mib = memory;
        self
    }

    /// What a second is.
    pub(crate) fn time(mut self, time: Time) -> Self {
        self.time = time;
        self
    }

    /// Adds words to the kernel's command line.
    pub(crate) fn cmdline(mut self, words: &str) -> Self {
        self.cmdline = format!("{} {words}", self.cmdline);
        self
    }

    /// Adds a disk with a controller of its own.
    pub(crate) fn disk(mut self, disk: Disk) -> Self {
        self.disks.push(disk);
        self
    }

    /// Adds one word to QEMU's command line.
    pub(crate) fn arg(mut self, word: &str) -> Self {
        self.words.push(word.to_owned());
        self
    }

    /// Puts a file into the guest.
    pub(crate) fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.extra.files.push((path.to_owned(), content.into()));
        self
    }

    /// How long the boot may take.
    pub(crate) fn boot_timeout(mut self, limit: Duration) -> Self {
        self.boot_timeout = limit;
        self
    }

    /// Boots the guest and waits until it takes commands.
    ///
    /// On a crowded host the emulator may lose an interrupt while the kernel looks for its
    /// devices, long before any code of ours runs; such a boot is repeated once, and said.
    pub(crate) fn boot(self, lab: &Lab, kernel: &Kernel) -> Result<Guest> {
        let accel = match self.time {
            Time::Virtual => Accel::Tcg,
            Time::Host => accel::best(lab, kernel)?,
        };
        let first = self.clone().prepare(lab, kernel, accel)?.start(lab);
        first.or_else(|failure| {
            lab.say(&format!("again, since this failed: {failure}"));
            self.prepare(lab, kernel, accel)?.start(lab)
        })
    }

    /// Does everything that comes before the start of QEMU.
    pub(crate) fn prepare(self, lab: &Lab, kernel: &Kernel, accel: Accel) -> Result<Prepared> {
        let files = Files::new(lab, &self.name)?;
        let archive = initramfs::build(lab, kernel, &self.extra)?;
        fs::write(&files.initramfs, archive).at("write the guest's file system")?;
        let mut command = Command::new(qemu()?);
        command.args(self.qemu_words(accel, kernel, &files));
        fs::write(files.folder.join("command"), shell(&command)).at("write QEMU's command")?;
        Ok(Prepared {
            vm: self,
            files,
            command,
        })
    }

    fn qemu_words(&self, accel: Accel, kernel: &Kernel, files: &Files) -> Vec<String> {
        let mut words = words(&["-name", "lab,debug-threads=on", "-machine", "q35"]);
        words.extend(self::words(&[
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-S",
        ]));
        words.extend(self::words(&["-display", "none"]));
        words.extend(self.machine_words(accel));
        words.extend(self::words(&["-kernel", &kernel.image().to_string_lossy()]));
        words.extend(self::words(&[
            "-initrd",
            &files.initramfs.to_string_lossy(),
        ]));
        words.extend(self::words(&["-append", &self.kernel_words(accel)]));
        words.extend(line_words(files));
        for (index, disk) in self.disks.iter().enumerate() {
            words.extend(disk.words(index));
        }
        words.extend(self.words.iter().cloned());
        words
    }

    /// Processors, memory, and what a second is.
    fn machine_words(&self, accel: Accel) -> Vec<String> {
        let mut words = words(match (self.time, accel) {
            (Time::Virtual, _) => &[
                "-accel",
                "tcg,thread=single",
                "-icount",
                "shift=1,sleep=off",
            ],
            (Time::Host, Accel::Tcg) => &["-accel", "tcg,thread=multi", "-cpu", "max"],
            (Time::Host, Accel::Kvm) => &["-accel", "kvm", "-cpu", "host"],
        });
        words.extend(self::words(&["-smp", &self.cpus.to_string()]));
        words.extend(self::words(&["-m", &format!("{}M", self.memory_mib)]));
        words
    }

    /// Our words for the kernel, then those of the description, which win.
    fn kernel_words(&self, accel: Accel) -> String {
        let own =
            "console=ttyS0 no_timer_check panic=-1 oops=panic nokaslr loglevel=8 rdinit=/init";
        let time = match (self.time, accel) {
            (Time::Virtual, _) => STRICT,
            (Time::Host, Accel::Tcg) => PATIENT,
            (Time::Host, Accel::Kvm) => "",
        };
        format!("{own} {time} {}", self.cmdline.trim())
    }
}

/// A guest with all that it needs, not started.
pub(crate) struct Prepared {
    vm: Vm,
    files: Files,
    command: Command,
}

impl Prepared {
    /// Starts QEMU and waits until the guest takes commands.
    pub(crate) fn start(mut self, lab: &Lab) -> Result<Guest> {
        let process = Process::start(&mut self.command, &self.files)?;
        self.connect(lab, process)
    }

    fn connect(self, lab: &Lab, mut process: Process) -> Result<Guest> {
        let Self { vm, files, .. } = self;
        let mut channel = Channel::new(process.connect(&files.channel)?)?;
        let mut qmp = Qmp::new(process.connect(&files.monitor)?)?;
        let pinned = match vm.time {
            Time::Virtual => Some(vtime::pin(lab, process.child.id())?),
            Time::Host => None,
        };
        qmp.command("cont", json!({}))?;
        let ready = channel.wait_ready(vm.boot_timeout);
        ready.map_err(|failure| {
            let text = fs::read_to_string(&files.console).unwrap_or_default();
            let last = text
                .lines()
                .last()
                .unwrap_or("nothing on its console")
                .trim()
                .to_owned();
            let cause = format!("{} (last line: {last})", failure.cause());
            Failure::new(format!("boot the guest {}", vm.name), cause).log(&files.console)
        })?;
        fs::remove_file(&files.initramfs).at("remove the guest's file system")?;
        Ok(Guest::new(process, channel, qmp, files, vm.disks, pinned))
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// The lines that lead out of the guest: console, commands, monitor, complaints.
fn line_words(files: &Files) -> Vec<String> {
    let console = format!("file,id=console,path={}", escaped(&files.console));
    let channel = format!(
        "socket,id=channel,server=on,path={}",
        escaped(&files.channel)
    );
    let monitor = format!("unix:{},server=on,wait=off", escaped(&files.monitor));
    let errors = files.guest_errors.to_string_lossy();
    [
        ["-chardev", &console],
        ["-serial", "chardev:console"],
        ["-chardev", &channel],
        ["-serial", "chardev:channel"],
        ["-qmp", &monitor],
        ["-d", "guest_errors"],
        ["-D", &errors],
    ]
    .iter()
    .flat_map(|pair| words(pair))
    .collect()
}

/// A path as a value in a list of QEMU's options, where a comma ends it.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn qemu() -> Result<PathBuf> {
    let missing = || Failure::new("start QEMU", "qemu-system-x86_64 is missing");
    host::which("qemu-system-x86_64").ok_or_else(missing)
}

fn shell(command: &Command) -> String {
    let words: Vec<_> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .collect();
    words
        .iter()
        .map(|word| quote(OsStr::new(word)))
        .collect::<Vec<_>>()
        .join(" ")
}
