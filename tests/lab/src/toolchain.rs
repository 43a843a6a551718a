// SPDX-License-Identifier: GPL-2.0

//! The compilers for the kernel, as words for make.

use crate::{
    failure::{
        Failure,
        Result, //
    },
    host,
    lab::Lab,
    needs::{
        self,
        ThisMachine, //
    },
    setup,
    source::fresh_dir,
    step::Step,
};
use std::{
    fs,
    path::PathBuf, //
};

const LLVM: &str = "-19";
const BINDGEN: &str = "0.73.2";
const LIBCLANG: &str = "/usr/lib/llvm-19/lib";

/// What the kernel is built with.
pub(crate) struct Toolchain {
    rustc: PathBuf,
    library: PathBuf,
    bindgen: PathBuf,
}

impl Toolchain {
    /// Finds the tools, and installs those that are missing.
    pub(crate) fn get(lab: &Lab) -> Result<Self> {
        setup::ensure(lab, &[needs::BUILD])?;
        let missing = || Failure::new("find the Rust compiler", "none with its library's source");
        let debian = (
            "/usr/bin/rustc".into(),
            "/usr/lib/rustlib/src/rust/library".into(),
        );
        let (rustc, library) = match needs::rust_library(&ThisMachine) {
            Some(found) => found,
            None if lab.dry_run => debian,
            None => return Err(missing()),
        };
        Ok(Self {
            rustc,
            library,
            bindgen: bindgen(lab)?,
        })
    }

    /// The words that make must be given.
    pub(crate) fn make_words(&self) -> Vec<String> {
        vec![
            format!("LLVM={LLVM}"),
            format!("RUSTC={}", self.rustc.display()),
            format!("BINDGEN={}", self.bindgen.display()),
            format!("RUST_LIB_SRC={}", self.library.display()),
        ]
    }

    /// The variable that makes bindgen find the right library.
    pub(crate) fn libclang(&self) -> (&'static str, &'static str) {
        ("LIBCLANG_PATH", LIBCLANG)
    }

    /// What tells this set of tools from others.
    pub(crate) fn versions(&self) -> String {
        let clang = host::version(format!("clang{LLVM}"));
        let rustc = host::version(&self.rustc);
        let bindgen = host::version(&self.bindgen);
        format!("{clang}\n{rustc}\n{bindgen}")
    }
}

/// bindgen of our own, so that its version is known to fit.
fn bindgen(lab: &Lab) -> Result<PathBuf> {
    let root = lab.cache.join("tools");
    let program = root.join("bin/bindgen");
    let fits = || host::version(&program) == format!("bindgen {BINDGEN}");
    if fits() {
        return Ok(program);
    }
    let _lock = lab.lock("tools")?;
    if fits() {
        return Ok(program);
    }
    let temporary = root.join("build");
    if !lab.dry_run {
        fresh_dir(&temporary)?;
    }
    let bar = lab.bar(1, "install bindgen (cargo install, 90 s)");
    Step::new(lab, "install bindgen", "cargo")
        .args(["install", "bindgen-cli", "--version", BINDGEN, "--locked"])
        .args(["--root"])
        .args([&root])
        .env("CARGO_TARGET_DIR", &temporary)
        .run()?;
    bar.finish_and_clear();
    // Only space is lost if this fails.
    let _ = fs::remove_dir_all(&temporary);
    Ok(program)
}
