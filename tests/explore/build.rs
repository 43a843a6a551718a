// SPDX-License-Identifier: GPL-2.0

//! Makes irqmod a module of the explorer: its sources as they are, but with atomics that are steps
//! of the exploration, and with two more policies, which may decide anything.

use std::{
    env,
    fs,
    path::{
        Path,
        PathBuf, //
    }, //
};

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

/// Replaces what must occur exactly once.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "places of {from:?}");
    text.replace(from, to)
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/any.rs");
    println!("cargo::rerun-if-changed=../../irqmod/src");
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap()).join("irqmod");
    let src = here.join("../../irqmod/src");
    let mut files = Vec::new();
    sources(&src, Path::new(""), &mut files);
    for file in files {
        let mut text = fs::read_to_string(src.join(&file)).unwrap();
        text = text.replace("crate::", "crate::irqmod::");
        let name = match file.to_str() {
            Some("irqmod.rs") => {
                // Attributes of a crate root.
                text = text
                    .lines()
                    .filter(|line| !line.starts_with("#![") && !line.starts_with("//!"))
                    .fold(String::new(), |text, line| text + line + "\n");
                Path::new("mod.rs")
            }
            Some("sync/core.rs") => {
                text = "pub(crate) use crate::facade::*;\n".into();
                &file
            }
            Some("policy.rs") => {
                text = replace(
                    &text,
                    "pub mod hardirq;",
                    "pub mod any;\npub mod at_home;\npub mod hardirq;",
                );
                text = replace(
                    &text,
                    "Hardirq => hardirq,",
                    "Hardirq => hardirq, Any => any, AtHome => at_home,",
                );
                &file
            }
            _ => &file,
        };
        write(&out.join(name), &text);
    }
    let any = fs::read_to_string(here.join("src/any.rs")).unwrap();
    let at_home = replace(&any, "\"any\"", "\"at_home\"");
    let at_home = replace(
        &at_home,
        "HOME: Option<Deferral> = None",
        "HOME: Option<Deferral> = Some(Deferral::Thread)",
    );
    write(&out.join("policy/any.rs"), &any);
    write(&out.join("policy/at_home.rs"), &at_home);
    let root = out.join("mod.rs");
    write(
        &out.join("../include.rs"),
        &format!("#[path = {root:?}]\npub mod irqmod;\n"),
    );
}

fn write(to: &Path, text: &str) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::write(to, text).unwrap();
}
