// SPDX-License-Identifier: GPL-2.0

//! What a guest is on the host: its files, and QEMU.

use crate::{
    failure::{
        At,
        Failure,
        Result, //
    },
    lab::{
        make_dir,
        Lab, //
    },
    own,
    step::end_with_us,
};
use std::{
    fs,
    fs::File,
    os::unix::net::UnixStream,
    path::{
        Path,
        PathBuf, //
    },
    process::{
        Child,
        Command,
        Stdio, //
    },
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
    thread,
    time::{
        Duration,
        Instant, //
    },
};

/// Where one guest's things are.
pub(crate) struct Files {
    /// Folder for what stays.
    pub(crate) folder: PathBuf,
    /// The kernel's log.
    pub(crate) console: PathBuf,
    /// What the guest did that a device objects to.
    pub(crate) guest_errors: PathBuf,
    /// What QEMU itself said.
    pub(crate) qemu_log: PathBuf,
    /// The guest's file system, until it has booted.
    pub(crate) initramfs: PathBuf,
    /// Socket of the command channel.
    pub(crate) channel: PathBuf,
    /// Socket of QEMU's monitor.
    pub(crate) monitor: PathBuf,
    sockets: PathBuf,
    _lock: File,
}

impl Files {
    /// Places that no other guest uses.
    pub(crate) fn new(lab: &Lab, name: &str) -> Result<Self> {
        let (folder, lock) = own_folder(lab, name)?;
        make_dir(&folder)?;
        // A socket's path may have 107 bytes only, so that it can't be in the checkout, nor have
        // the guest's name in it.
        let sockets = own::folder(&std::env::temp_dir())?;
        let number = GUESTS.fetch_add(1, Ordering::Relaxed);
        let files = Self {
            console: folder.join("console.log"),
            guest_errors: folder.join("guest-errors.log"),
            qemu_log: folder.join("qemu.log"),
            initramfs: folder.join("initramfs.cpio"),
            channel: sockets.join(format!("{number}.channel")),
            monitor: sockets.join(format!("{number}.monitor")),
            sockets,
            folder,
            _lock: lock,
        };
        for path in [&files.console, &files.guest_errors] {
            fs::write(path, "").at(format!("write {}", path.display()))?;
        }
        Ok(files)
    }
}

/// Guests of this process so far.
static GUESTS: AtomicU32 = AtomicU32::new(0);

/// A guest's folder that no other lab uses now.
fn own_folder(lab: &Lab, name: &str) -> Result<(PathBuf, File)> {
    let mut number = 1;
    loop {
        let suffix = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
        let folder = lab.out.join("vm").join(format!("{name}{suffix}"));
        if let Some(lock) = lab.try_lock(&format!("guest {}", folder.display()))? {
            return Ok((folder, lock));
        }
        number += 1;
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What can't be removed is not ours any more; the folder goes with its last guest.
        let _ = fs::remove_file(&self.channel);
        let _ = fs::remove_file(&self.monitor);
        let _ = fs::remove_file(&self.initramfs);
        let _ = fs::remove_dir(&self.sockets);
    }
}

/// QEMU; ends with this value.
pub(crate) struct Process {
    /// The running program.
    pub(crate) child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it.
    pub(crate) fn start(command: &mut Command, files: &Files) -> Result<Self> {
        let step = "start QEMU";
        let log = File::create(&files.qemu_log).at(step)?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().at(step)?)
            .stderr(log);
        end_with_us(command);
        let child = command.spawn().at(step)?;
        Ok(Self {
            child,
            log: files.qemu_log.clone(),
        })
    }

    /// Connects to one of its sockets.
    pub(crate) fn connect(&mut self, path: &Path) -> Result<UnixStream> {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            match UnixStream::connect(path) {
                Ok(stream) => return Ok(stream),
                Err(error) if Instant::now() > end => return Err(self.failure(&error.to_string())),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
            if let Some(status) = self.child.try_wait().at("wait for QEMU")? {
                return Err(self.failure(&status.to_string()));
            }
        }
    }

    fn failure(&self, cause: &str) -> Failure {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let said = text.lines().next().unwrap_or_default();
        Failure::new("start QEMU", format!("{cause} {said}")).log(&self.log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if QEMU has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
