// SPDX-License-Identifier: GPL-2.0

//! Masks or opens a vector of a device behind the back of its driver, and of the kernel.

use clap::{
    Parser,
    ValueEnum, //
};
use guest_agent::{
    msix::Table,
    sys, //
};
use std::{
    fs,
    fs::OpenOptions,
    io,
    path::PathBuf,
    process::ExitCode, //
};

/// Masks or opens a vector of a PCI device behind the back of its driver; prints the control word
/// that was there.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The device's folder in /sys/bus/pci/devices.
    device: PathBuf,
    /// Number of the vector in the device's table.
    vector: u16,
    /// What to do with it.
    what: What,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    Mask,
    Open,
}

fn run(cli: &Cli) -> io::Result<u32> {
    let missing = |what| io::Error::new(io::ErrorKind::NotFound, what);
    let config = fs::read(cli.device.join("config"))?;
    let table = Table::find(&config).ok_or_else(|| missing("no MSI-X table"))?;
    let control = table
        .control(cli.vector)
        .ok_or_else(|| missing("no such vector"))?;
    let region = cli.device.join(format!("resource{}", table.bar));
    let region = OpenOptions::new().read(true).write(true).open(region)?;
    let registers = sys::Registers::map(&region, control)?;
    let old = registers.read();
    registers.write(match cli.what {
        What::Mask => old | 1,
        What::Open => old & !1,
    });
    Ok(old)
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(old) => {
            println!("{old:#x}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("msix: {error}");
            ExitCode::FAILURE
        }
    }
}
