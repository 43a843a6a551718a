// SPDX-License-Identifier: GPL-2.0

//! Every planted bug is caught: one test each, written by the build script from `bugs.rs`.

#![cfg(loom)]

use std::{
    env,
    process::Command, //
};

/// Tells a test that it is the child, which runs the model.
const CHILD: &str = "MODEL_PLANTED_BUG";

/// Runs a model that must fail, and say why.
///
/// It runs in a process of its own: a model that fails in the middle of everything may not be able
/// to clean up after itself.
fn caught(test: &str, says: &str, model: fn()) {
    if env::var_os(CHILD).is_some() {
        return model();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "the model does not notice");
    assert!(text.contains(says), "noticed for another reason:\n{text}");
}

include!(concat!(env!("OUT_DIR"), "/bug_tests.rs"));
