// SPDX-License-Identifier: GPL-2.0

//! Compiles every case.

use std::{
    env,
    fs,
    path::{
        Path,
        PathBuf, //
    },
    process::{
        Command,
        Output, //
    },
    sync::OnceLock, //
};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds irqmod with panics that abort, once; returns where it is.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        // Beside the target folder of this test: the outer cargo may hold a lock on that one.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abort");
        let output = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--offline", "--package", "irqmod"])
            .current_dir(here())
            .env("CARGO_TARGET_DIR", &target)
            .env("CARGO_PROFILE_DEV_PANIC", "abort")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS")
            .output()
            .unwrap();
        assert!(output.status.success(), "irqmod: {}", text(&output));
        target.join("debug")
    })
}

/// What the compiler says, without the lines that repeat what the file expects it to.
fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| !line.contains("//~"))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// Compiles one file down to machine code: some mistakes are seen only there.
fn compile(file: &Path) -> Output {
    let library = library();
    let stem = file.file_stem().unwrap();
    let object = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(stem)
        .with_extension("o");
    let dependencies = library.join("deps");
    Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition=2021", "--crate-type=lib", "--emit=obj"])
        .args(["-Cpanic=abort", "-Dwarnings", "-o"])
        .arg(object)
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg("--extern")
        .arg(format!("irqmod={}/libirqmod.rlib", library.display()))
        .arg(file)
        .output()
        .unwrap()
}

fn files(kind: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(here().join(kind))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn mistakes_do_not_compile() {
    for file in files("fail") {
        let source = fs::read_to_string(&file).unwrap();
        let expected: Vec<_> = source
            .lines()
            .filter_map(|line| line.split_once("//~ ").map(|(_, text)| text))
            .collect();
        assert!(!expected.is_empty(), "{}: no //~", file.display());
        let output = compile(&file);
        let said = text(&output);
        assert!(!output.status.success(), "{}: compiles", file.display());
        for expected in expected {
            assert!(
                said.contains(expected),
                "{}: not said: {expected}\n{said}",
                file.display()
            );
        }
        println!("fails as it should: {}", file.display());
    }
}

#[test]
fn what_is_right_compiles() {
    for file in files("pass") {
        let output = compile(&file);
        let said = text(&output);
        assert!(output.status.success(), "{}:\n{said}", file.display());
        println!("compiles: {}", file.display());
    }
}
