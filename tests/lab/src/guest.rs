// SPDX-License-Identifier: GPL-2.0

//! A running guest.

use crate::{
    channel::{
        Channel,
        Output, //
    },
    detect,
    disk::Disk,
    failure::{
        At,
        Failure,
        Result, //
    },
    process::{
        Files,
        Process, //
    },
    qmp::Qmp,
    vtime::Pinned,
};
use serde_json::{
    json,
    Value, //
};
use std::{
    fs,
    path::Path,
    time::{
        Duration,
        Instant, //
    },
};

/// A guest that takes commands. It ends with this value.
pub(crate) struct Guest {
    process: Process,
    channel: Channel,
    qmp: Qmp,
    files: Files,
    disks: Vec<Disk>,
    notes: Vec<String>,
    jobs: u32,
    traced: usize,
    _pinned: Option<Pinned>,
}

/// How the names of QEMU's events begin that [`Guest::trace`] is about.
const TRACED: &str = "memory_region_ops_";

/// A command that runs in the background of the guest.
pub(crate) struct Job {
    number: u32,
    command: String,
}

impl Guest {
    /// Puts together what the boot has made.
    pub(crate) fn new(
        process: Process,
        channel: Channel,
        qmp: Qmp,
        files: Files,
        disks: Vec<Disk>,
        pinned: Option<Pinned>,
    ) -> Self {
        let notes = pinned
            .iter()
            .filter_map(|pinned| pinned.note.clone())
            .collect();
        Self {
            process,
            channel,
            qmp,
            files,
            disks,
            notes,
            jobs: 0,
            traced: 0,
            _pinned: pinned,
        }
    }

    /// Runs a shell command; an error means that the guest is dead or hangs.
    pub(crate) fn run(&mut self, command: &str, limit: Duration) -> Result<Output> {
        self.run_with(command, limit, &mut |_| {})
    }

    /// Like [`Guest::run`]; `on_text` sees the output while it comes.
    pub(crate) fn run_with(
        &mut self,
        command: &str,
        limit: Duration,
        on_text: &mut dyn FnMut(&[u8]),
    ) -> Result<Output> {
        let output = self.channel.run(command, limit, on_text);
        output.map_err(|failure| self.failure(command, failure.cause()))
    }

    /// Runs a shell command that has to succeed and returns its output.
    pub(crate) fn check(&mut self, command: &str, limit: Duration) -> Result<String> {
        let output = self.run(command, limit)?;
        if output.code == 0 {
            return Ok(output.text);
        }
        Err(self.failure(
            command,
            &format!("exit code {}: {}", output.code, tail(&output.text)),
        ))
    }

    /// Starts a shell command in the background.
    pub(crate) fn spawn(&mut self, command: &str) -> Result<Job> {
        self.jobs += 1;
        let number = self.jobs;
        let script = format!(
            "cat > /tmp/job{number} <<'END_OF_JOB'\n{command}\nEND_OF_JOB\n\
             (sh /tmp/job{number} > /tmp/job{number}.out 2>&1; \
             echo $? > /tmp/job{number}.tmp; mv /tmp/job{number}.tmp /tmp/job{number}.rc) \
             >/dev/null 2>&1 &"
        );
        self.check(&script, Duration::from_secs(30))?;
        Ok(Job {
            number,
            command: command.to_owned(),
        })
    }

    /// Whether a job has ended.
    pub(crate) fn is_done(&mut self, job: &Job) -> Result<bool> {
        let test = format!("[ -e /tmp/job{}.rc ]", job.number);
        Ok(self.run(&test, Duration::from_secs(30))?.code == 0)
    }

    /// Waits for a job.
    pub(crate) fn wait(&mut self, job: Job, limit: Duration) -> Result<Output> {
        let end = Instant::now() + limit;
        let number = job.number;
        while !self.is_done(&job)? {
            if Instant::now() > end {
                return Err(self.failure(&job.command, "still running at the limit"));
            }
            self.check("sleep 0.2", Duration::from_secs(30))?;
        }
        let limit = Duration::from_secs(30);
        let code = self.check(&format!("cat /tmp/job{number}.rc"), limit)?;
        Ok(Output {
            code: code.trim().parse().at("read a job's exit code")?,
            text: self.check(&format!("cat /tmp/job{number}.out"), limit)?,
        })
    }

    /// The kernel's log up to now, one character a byte: what has been read keeps its length.
    pub(crate) fn console(&self) -> Result<String> {
        let bytes = fs::read(&self.files.console).at("read the guest's console")?;
        let plain = |byte: u8| {
            if byte.is_ascii() {
                char::from(byte)
            } else {
                '?'
            }
        };
        Ok(bytes.into_iter().map(plain).collect())
    }

    /// The file with the kernel's log.
    pub(crate) fn console_path(&self) -> &Path {
        &self.files.console
    }

    /// The present end of the kernel's log, for [`Guest::d1`].
    pub(crate) fn mark(&self) -> Result<usize> {
        Ok(self.console()?.len())
    }

    /// Lines of the kernel's log since `mark` that condemn the run (detector D1).
    pub(crate) fn d1(&self, mark: usize) -> Result<Vec<String>> {
        self.d1_except(mark, &[])
    }

    /// Like [`Guest::d1`], without lines that hold one of the texts `allowed`.
    pub(crate) fn d1_except(&self, mark: usize, allowed: &[&str]) -> Result<Vec<String>> {
        let log = self.console()?;
        let lost = || Failure::new("read the guest's console", "a part of it is gone");
        let new = log.get(mark..).ok_or_else(lost)?;
        Ok(detect::faults(new, allowed))
    }

    /// What the guest did that a device objects to (detector D3).
    pub(crate) fn guest_errors(&self) -> Result<String> {
        let text = self.qemu_said()?;
        let errors = text.lines().filter(|line| !line.starts_with(TRACED));
        Ok(errors.map(|line| format!("{line}\n")).collect())
    }

    fn qemu_said(&self) -> Result<String> {
        fs::read_to_string(&self.files.guest_errors).at("read QEMU's guest errors")
    }

    /// Has QEMU write down, or not, every access to a device's memory.
    pub(crate) fn trace(&mut self, on: bool) -> Result<()> {
        let events = json!({"name": format!("{TRACED}*"), "enable": on});
        self.qmp("trace-event-set-state", events).map(drop)
    }

    /// What was written down since this was called last.
    pub(crate) fn take_trace(&mut self) -> Result<String> {
        let text = self.qemu_said()?;
        let new = text.get(self.traced..).unwrap_or_default().to_owned();
        self.traced = text.len();
        Ok(new)
    }

    /// Sends a command to QEMU's monitor.
    pub(crate) fn qmp(&mut self, command: &str, arguments: Value) -> Result<Value> {
        self.qmp.command(command, arguments)
    }

    /// Waits for an event of QEMU.
    pub(crate) fn wait_event(&mut self, name: &str, limit: Duration) -> Result<Value> {
        self.qmp.wait_event(name, limit)
    }

    /// Unplugs a disk that is behind a port, and waits until it is gone.
    pub(crate) fn unplug(&mut self, id: &str, limit: Duration) -> Result<()> {
        self.qmp("device_del", json!({"id": id}))?;
        self.wait_event("DEVICE_DELETED", limit).map(drop)
    }

    /// Plugs a disk in again.
    pub(crate) fn plug(&mut self, id: &str) -> Result<()> {
        let disk = self.disks.iter().find(|disk| disk.id() == id);
        let words = disk.map(Disk::plug).unwrap_or_default();
        self.qmp("device_add", words).map(drop)
    }

    /// What a reader of this guest's figures must know.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Switches the guest off and waits for QEMU's end.
    pub(crate) fn power_off(mut self) -> Result<()> {
        // The answer never comes, since the channel ends with the guest.
        let _ = self.run("poweroff -f", Duration::from_secs(30));
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if self.process.child.try_wait().at("wait for QEMU")?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(self.failure("poweroff -f", "the guest is still there"))
    }

    fn failure(&self, command: &str, cause: &str) -> Failure {
        let command = command.lines().next().unwrap_or_default();
        let log = self.console().unwrap_or_default();
        let faults = detect::faults(&log, &[]);
        let fault = faults
            .first()
            .map(|line| format!(" [log: {line}]"))
            .unwrap_or_default();
        Failure::new(
            format!("run '{command}' in the guest"),
            format!("{cause}{fault}"),
        )
        .log(&self.files.console)
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}
