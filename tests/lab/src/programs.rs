// SPDX-License-Identifier: GPL-2.0

//! Our own programs for the guest, built static so that they need nothing there.

use crate::{
    failure::{
        At,
        Result, //
    },
    lab::Lab,
    step::Step, //
};
use serde_json::Value;
use std::path::PathBuf;

/// Builds the package in `tests/lab/guest` and returns its programs.
pub(crate) fn guest(lab: &Lab) -> Result<Vec<PathBuf>> {
    let manifest = lab.root.join("tests/lab/guest/Cargo.toml");
    if !manifest.is_file() {
        return Ok(Vec::new());
    }
    let step = Step::new(lab, "build the guest's programs", "cargo")
        .args(["build", "--release", "--message-format=json"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--manifest-path"])
        .args([&manifest])
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_TARGET_DIR", lab.root.join("target/guest"));
    executables(&step.output()?)
}

/// The paths of executables in cargo's messages.
fn executables(messages: &str) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).at("read cargo's messages")?;
        paths.extend(message["executable"].as_str().map(PathBuf::from));
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_messages() {
        let messages = "   Compiling guest v0.1.0\n\
            {\"reason\":\"compiler-artifact\",\"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"executable\":\"/t/storm\"}\n";
        assert_eq!(executables(messages).unwrap(), [PathBuf::from("/t/storm")]);
        assert!(executables("{broken\n").is_err());
    }
}
