// SPDX-License-Identifier: GPL-2.0

//! The lab: builds a real kernel with irqmod in it, boots it in QEMU and tries it out there.

mod accel;
mod apt;
mod cases;
mod channel;
mod cli;
mod closure;
mod cpio;
mod detect;
mod disk;
mod failure;
mod guest;
mod host;
mod hosttests;
mod initramfs;
mod kernel;
mod key;
mod lab;
mod needs;
mod own;
mod process;
mod programs;
mod progress;
mod qmp;
mod run;
mod setup;
mod source;
mod step;
mod test;
mod toolchain;
mod vm;
mod vtime;

use clap::Parser;
use cli::{
    Cli,
    Command,
    VmArgs, //
};
use disk::Disk;
use failure::{
    At,
    Result, //
};
use lab::Lab;
use std::{
    io::Write,
    process::ExitCode,
    time::Duration, //
};
use vm::{
    Time,
    Vm, //
};

fn main() -> ExitCode {
    match dispatch(Cli::parse()) {
        Ok(code) => code,
        Err(failure) => {
            let failure = failure.or_repeat(step::repeat_all);
            eprintln!("error: {failure}");
            ExitCode::from(u8::try_from(failure.code()).unwrap_or(1))
        }
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode> {
    let lab = Lab::new(cli.dry_run)?;
    match cli.command {
        Command::Run(args) => {
            setup::ensure_guest(&lab, &args.from)?;
            run::main(&lab, &args)?;
        }
        Command::Test(args) => return test::main(&lab, &args),
        Command::Kernel(args) => {
            let kernel = kernel::get(&lab, args.config, &args.from)?;
            println!("{}", kernel.dir.display());
        }
        Command::Vm(args) => {
            return vm_command(&lab, &args).map_err(|failure| failure.or_exit_code(NOT_RUN))
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Exit code of `vm` where the command has none, as env and timeout have it.
const NOT_RUN: i32 = 125;

fn vm_command(lab: &Lab, args: &VmArgs) -> Result<ExitCode> {
    setup::ensure_guest(lab, &args.kernel.from)?;
    let kernel = kernel::get(lab, args.kernel.config, &args.kernel.from)?;
    let mut vm = Vm::new("vm")
        .cpus(args.cpus)
        .memory_mib(args.memory)
        .cmdline(&args.cmdline);
    for number in 0..args.disks {
        vm = vm.disk(Disk::null(&format!("d{number}"), 1 << 30));
    }
    if args.virtual_time {
        vm = vm.time(Time::Virtual);
    }
    let command = args.command.join(" ");
    if lab.dry_run {
        lab.would(&format!("boot a guest and run in it: {command}"));
        return Ok(ExitCode::SUCCESS);
    }
    lab.say("boot a guest ...");
    let mut guest = vm.boot(lab, &kernel)?;
    for note in guest.notes() {
        lab.say(&format!("note: {note}"));
    }
    let mut out = std::io::stdout();
    let mut written = Ok(());
    let output = guest.run_with(&command, Duration::from_secs(args.limit), &mut |text| {
        if written.is_ok() {
            written = out.write_all(text).and_then(|()| out.flush());
        }
    })?;
    written.at("write the command's output")?;
    Ok(ExitCode::from(u8::try_from(output.code).unwrap_or(1)))
}
