// SPDX-License-Identifier: GPL-2.0

//! What the lab needs from the machine: how it is recognised, where Debian has it, why.

use crate::host;
use std::path::{
    Path,
    PathBuf, //
};

/// How the machine is asked; the tests have one of their own.
pub(crate) trait Machine {
    /// The path of a program.
    fn program(&self, name: &str) -> Option<PathBuf>;
    /// Whether a file is there.
    fn file(&self, path: &str) -> bool;
    /// What a program says about its version.
    fn version(&self, program: &str) -> String;
    /// Whether Perl finds a module.
    fn perl_module(&self, path: &str) -> bool;
}

/// The machine that this runs on.
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn program(&self, name: &str) -> Option<PathBuf> {
        host::which(name)
    }

    fn file(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn version(&self, program: &str) -> String {
        host::version(program)
    }

    fn perl_module(&self, path: &str) -> bool {
        host::perl_module(path)
    }
}

enum Sign {
    Program(&'static str),
    File(&'static str),
    /// A program of at least this major version.
    Version(&'static str, u32),
    /// A module that Perl finds.
    PerlModule(&'static str),
    /// A recent Rust compiler with the source of its library beside it.
    RustWithSource,
}

/// One thing that has to be there.
pub(crate) struct Need {
    sign: Sign,
    /// Debian's package.
    pub(crate) package: &'static str,
    /// Whether Debian 12 has it only in its backports.
    pub(crate) backport: bool,
    why: &'static str,
}

const fn program(name: &'static str, package: &'static str, why: &'static str) -> Need {
    Need {
        sign: Sign::Program(name),
        package,
        backport: false,
        why,
    }
}

const fn file(path: &'static str, package: &'static str, why: &'static str) -> Need {
    Need {
        sign: Sign::File(path),
        package,
        backport: false,
        why,
    }
}

const COMPILES: &str = "compiles the kernel";
const SCRIPTS: &str = "a script of the kernel's build";

/// What building a kernel needs.
pub(crate) const BUILD: &[Need] = &[
    program("make", "make", "drives the kernel's build"),
    program("gcc", "gcc", "links the lab's own Rust programs"),
    file(
        "/usr/include/stdio.h",
        "libc6-dev",
        "tools that the kernel's build makes for itself",
    ),
    program("clang-19", "clang-19", COMPILES),
    program("ld.lld-19", "lld-19", COMPILES),
    program("llvm-ar-19", "llvm-19", COMPILES),
    file(
        "/usr/lib/llvm-19/lib/libclang.so",
        "libclang-19-dev",
        "bindgen reads C with it",
    ),
    Need {
        sign: Sign::RustWithSource,
        package: "rustc-web",
        backport: false,
        why: "compiles the kernel's Rust code",
    },
    Need {
        sign: Sign::RustWithSource,
        package: "rust-web-src",
        backport: false,
        why: "the kernel builds Rust's core library itself",
    },
    program("flex", "flex", SCRIPTS),
    program("bison", "bison", SCRIPTS),
    program("bc", "bc", SCRIPTS),
    program("perl", "perl", SCRIPTS),
    program("python3", "python3", "kbuild/integrate"),
    program("xz", "xz-utils", "unpacks the kernel's source"),
    file(
        "/usr/include/libelf.h",
        "libelf-dev",
        "objtool, which the kernel's build makes",
    ),
    file(
        "/usr/include/openssl/ssl.h",
        "libssl-dev",
        "tools that the kernel's build makes",
    ),
];

/// What booting a guest needs.
pub(crate) const BOOT: &[Need] = &[
    Need {
        sign: Sign::Version("qemu-system-x86_64", 10),
        package: "qemu-system-x86",
        backport: true,
        why: "the emulated machine; its NVMe controller needs version 10",
    },
    program("busybox", "busybox-static", "the guest's commands"),
    program("fio", "fio", "the guest's load"),
];

/// What the tests need beyond that. Perl's own small package, which is always there, lacks a
/// module that the kernel's checkpatch wants.
pub(crate) const TEST: &[Need] = &[
    Need {
        sign: Sign::PerlModule("Term/ANSIColor.pm"),
        package: "perl",
        backport: false,
        why: "the kernel's checkpatch",
    },
    program(
        "git",
        "git",
        "applies the kernel patches as a maintainer would",
    ),
];

impl Need {
    /// Whether the machine has it.
    pub(crate) fn is_met(&self, machine: &dyn Machine) -> bool {
        match self.sign {
            Sign::Program(name) => machine.program(name).is_some(),
            Sign::File(path) => machine.file(path),
            Sign::PerlModule(path) => machine.perl_module(path),
            Sign::Version(name, least) => {
                machine.program(name).is_some()
                    && release(&machine.version(name)) >= Some((least, 0))
            }
            Sign::RustWithSource => rust_library(machine).is_some(),
        }
    }

    /// The line that tells a user about it.
    pub(crate) fn line(&self) -> String {
        let from = if self.backport {
            " (Debian 12: from its backports)"
        } else {
            ""
        };
        format!("{:16} {}{from}", self.package, self.why)
    }
}

/// Those of some lists of needs that the machine does not meet.
pub(crate) fn missing(lists: &[&'static [Need]], machine: &dyn Machine) -> Vec<&'static Need> {
    let all = lists.iter().flat_map(|list| list.iter());
    all.filter(|need| !need.is_met(machine)).collect()
}

/// The least version of Rust that Linux 7.3 takes (its scripts/min-tool-version.sh).
const RUST: (u32, u32) = (1, 85);

/// The compiler for the kernel, and the source of its library.
pub(crate) fn rust_library(machine: &dyn Machine) -> Option<(PathBuf, PathBuf)> {
    const DEBIAN: (&str, &str) = ("/usr/bin/rustc", "/usr/lib/rustlib/src/rust/library");
    let has = |library: &str| machine.file(&format!("{library}/core/src/lib.rs"));
    let recent = |rustc: &str| release(&machine.version(rustc)) >= Some(RUST);
    if machine.file(DEBIAN.0) && has(DEBIAN.1) && recent(DEBIAN.0) {
        return Some((DEBIAN.0.into(), DEBIAN.1.into()));
    }
    let rustc = machine.program("rustc")?;
    let library = host::rust_sysroot(&rustc)?.join("lib/rustlib/src/rust/library");
    let fits = has(&library.to_string_lossy()) && recent(&rustc.to_string_lossy());
    fits.then_some((rustc, library))
}

/// The first two numbers of a version in a text.
fn release(text: &str) -> Option<(u32, u32)> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake {
        programs: &'static [&'static str],
        files: &'static [&'static str],
        version: &'static str,
    }

    impl Machine for Fake {
        fn program(&self, name: &str) -> Option<PathBuf> {
            self.programs
                .contains(&name)
                .then(|| Path::new("/fake").join(name))
        }

        fn file(&self, path: &str) -> bool {
            self.files.contains(&path)
        }

        fn version(&self, _program: &str) -> String {
            self.version.to_owned()
        }

        fn perl_module(&self, _path: &str) -> bool {
            false
        }
    }

    fn packages(needs: &'static [Need], machine: &Fake) -> Vec<&'static str> {
        missing(&[needs], machine)
            .iter()
            .map(|need| need.package)
            .collect()
    }

    #[test]
    fn bare_machine_lacks_everything() {
        let bare = Fake {
            programs: &[],
            files: &[],
            version: "",
        };
        assert_eq!(packages(BUILD, &bare).len(), BUILD.len());
        assert_eq!(
            packages(BOOT, &bare),
            ["qemu-system-x86", "busybox-static", "fio"]
        );
        assert_eq!(packages(TEST, &bare), ["perl", "git"]);
    }

    #[test]
    fn old_emulator_does_not_count() {
        let programs = &["qemu-system-x86_64", "busybox", "fio"];
        let old = Fake {
            programs,
            files: &[],
            version: "QEMU emulator version 7.2.17",
        };
        assert_eq!(packages(BOOT, &old), ["qemu-system-x86"]);
        let new = Fake {
            programs,
            files: &[],
            version: "QEMU emulator version 10.0.2",
        };
        assert!(packages(BOOT, &new).is_empty());
    }

    #[test]
    fn old_compiler_and_one_without_library_source_do_not_count() {
        const RECENT: &str = "rustc 1.85.0 (4d91de4e4 2025-02-17) (built from a source tarball)";
        const COMPILER: &str = "/usr/bin/rustc";
        const SOURCE: &str = "/usr/lib/rustlib/src/rust/library/core/src/lib.rs";
        let without = Fake {
            programs: &[],
            files: &[COMPILER],
            version: RECENT,
        };
        assert!(packages(BUILD, &without).contains(&"rust-web-src"));
        let with = Fake {
            programs: &[],
            files: &[COMPILER, SOURCE],
            version: "rustc 1.63.0",
        };
        assert!(packages(BUILD, &with).contains(&"rustc-web"));
        let with = Fake {
            version: RECENT,
            ..with
        };
        let missing = packages(BUILD, &with);
        assert!(!missing.contains(&"rust-web-src") && !missing.contains(&"rustc-web"));
    }

    #[test]
    fn every_need_says_why() {
        for need in BUILD.iter().chain(BOOT) {
            assert!(need.line().len() > 20, "{}", need.line());
        }
    }
}
