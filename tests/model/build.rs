// SPDX-License-Identifier: GPL-2.0

//! Makes one copy of irqmod for each planted bug, as a module of the model crate.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{
        Path,
        PathBuf, //
    }, //
};

include!("bugs.rs");
include!("plant.rs");

/// The sources of the crate, without what only the kernel builds.
fn sources(dir: &Path, below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if path.starts_with("kernel") || path == Path::new("kernel.rs") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            sources(dir, &path, found);
        } else {
            found.push(path);
        }
    }
}

/// Writes the copy of the crate with `bug` in it.
fn plant(bug: &Bug, src: &Path, files: &[PathBuf], out: &Path) {
    let mut planted = false;
    for file in files {
        let mut text = fs::read_to_string(src.join(file)).unwrap();
        if file == Path::new(bug.file) {
            text = with_bug(text, bug).unwrap();
            planted = true;
        }
        text = text.replace("crate::", &format!("crate::bugs::{}::irqmod::", bug.name));
        let name = if file == Path::new("irqmod.rs") {
            // Attributes of a crate root; the model has its own.
            text = text
                .lines()
                .filter(|line| !line.starts_with("#!["))
                .fold(String::new(), |text, line| text + line + "\n");
            Path::new("mod.rs")
        } else {
            file
        };
        let to = out.join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, text).unwrap();
    }
    assert!(planted, "bug {}: no such file", bug.name);
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=bugs.rs");
    println!("cargo::rerun-if-changed=plant.rs");
    println!("cargo::rerun-if-changed=../../irqmod/src");
    if env::var_os("CARGO_CFG_LOOM").is_none() {
        return;
    }
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let src = here.join("../../irqmod/src");
    let mut files = Vec::new();
    sources(&src, Path::new(""), &mut files);

    let (mut modules, mut tests) = (String::new(), String::new());
    for bug in BUGS {
        plant(bug, &src, &files, &out.join(bug.name).join("irqmod"));
        let world = here.join("src/world.rs");
        let scenarios = here.join("src/scenarios.rs");
        let root = out.join(bug.name).join("irqmod/mod.rs");
        writeln!(
            modules,
            "pub mod {} {{\n\
             #[path = {root:?}] pub mod irqmod;\n\
             pub mod world {{ include!({world:?}); }}\n\
             pub mod scenarios {{ include!({scenarios:?}); }}\n\
             }}",
            bug.name
        )
        .unwrap();
        writeln!(
            tests,
            "/// {}\n#[test]\nfn {}() {{\n\
             #[allow(unused_imports)]\n\
             use model::bugs::{}::{{irqmod::policy::Config, scenarios::*, world::Line}};\n\
             caught({:?}, {:?}, || {});\n}}",
            bug.invariant, bug.name, bug.name, bug.name, bug.says, bug.caught_by
        )
        .unwrap();
    }
    fs::write(out.join("bugs.rs"), modules).unwrap();
    fs::write(out.join("bug_tests.rs"), tests).unwrap();
}
