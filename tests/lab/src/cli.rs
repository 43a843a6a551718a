// SPDX-License-Identifier: GPL-2.0

//! The words on the command line.

use clap::{
    Args,
    Parser,
    Subcommand,
    ValueEnum, //
};
use std::path::PathBuf;

pub(crate) use crate::run::args::RunArgs;

/// The laboratory of irqmod: builds a real kernel with the library and its drivers in it, boots
/// it in an emulated machine and tries them out there.
#[derive(Parser)]
#[command(name = "cargo lab", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Print what would be done, and do nothing.
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// The main job: what each policy does to a completion storm, as a table and a page.
    Run(RunArgs),
    /// All tests: on the host, then in the booted guest.
    Test(TestArgs),
    /// Build the kernel (from the cache if nothing has changed).
    Kernel(KernelArgs),
    /// Boot a guest, run one command in it and pass its exit code through.
    Vm(VmArgs),
}

/// Which configuration of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Flavour {
    /// What measurements use.
    Base,
    /// KASAN, lockdep and the other detectors on top.
    Debug,
}

/// Where the kernel comes from.
#[derive(Args, Clone, Default)]
pub(crate) struct From {
    /// Use this kernel source tree (Linux 7.3, not built in place) instead of Debian's source.
    #[arg(long, value_name = "PATH", env = "KDIR")]
    pub(crate) tree: Option<PathBuf>,
    /// Build nothing: use this folder that `cargo lab kernel` has printed before.
    #[arg(long, value_name = "DIR", env = "LAB_KERNEL", conflicts_with = "tree")]
    pub(crate) built: Option<PathBuf>,
}

/// Choice of a kernel.
#[derive(Args, Clone)]
pub(crate) struct KernelArgs {
    #[command(flatten)]
    pub(crate) from: From,
    /// Configuration of the kernel.
    #[arg(long, value_enum, default_value = "base")]
    pub(crate) config: Flavour,
}

/// Words of `test`.
#[derive(Args)]
pub(crate) struct TestArgs {
    /// Only cases whose name or id contains one of these texts.
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// List the cases, run none.
    #[arg(long)]
    pub(crate) list: bool,
    /// Full counts instead of the short ones that CI has time for.
    #[arg(long)]
    pub(crate) long: bool,
    #[command(flatten)]
    pub(crate) from: From,
}

/// Words of `vm`.
#[derive(Args)]
pub(crate) struct VmArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// Number of CPUs.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) cpus: u32,
    /// Memory in MiB.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(512..=16_384))]
    pub(crate) memory: u32,
    /// Number of NVMe controllers with a 1 GiB disk each.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=8))]
    pub(crate) disks: u32,
    /// More words for the kernel's command line.
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub(crate) cmdline: String,
    /// Count guest time in instructions.
    #[arg(long)]
    pub(crate) virtual_time: bool,
    /// Stop the command after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) limit: u64,
    /// The command: its words, put together with spaces, are run by the guest's shell (like ssh
    /// does); its standard input is empty. Its exit code becomes that of the lab, which is 125 if
    /// the lab fails to get that far, and 2 if things are missing on this machine. No module is
    /// loaded; they are in /lib/modules.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn words_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_guest_that_can_not_be_is_refused_with_the_range() {
        for (words, range) in [
            (["--cpus", "0"], "1..=16"),
            (["--cpus", "17"], "1..=16"),
            (["--memory", "1"], "512..=16384"),
            (["--disks", "99"], "0..=8"),
            (["--limit", "0"], "1..=86400"),
        ] {
            let words = ["lab", "vm"].into_iter().chain(words).chain(["--", "true"]);
            let error = Cli::try_parse_from(words).err().expect("it is refused");
            let error = error.to_string();
            assert!(error.contains(range), "{error}");
        }
    }
}
