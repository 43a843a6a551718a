// SPDX-License-Identifier: GPL-2.0

//! Random cases that can be run again: `NVME_PCI_SEED=<seed> cargo test -p nvme-pci`.

use std::time::{
    SystemTime,
    UNIX_EPOCH, //
};

use proptest::{
    strategy::Strategy,
    test_runner::{
        Config,
        RngAlgorithm,
        TestCaseError,
        TestRng,
        TestRunner, //
    },
};

/// Random cases per property.
const CASES: u32 = 512;

/// The seed of this run: the user's, or the time.
fn seed() -> u64 {
    match std::env::var("NVME_PCI_SEED") {
        Ok(text) => text.parse().expect("NVME_PCI_SEED must be a number"),
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64),
    }
}

/// Checks a property; the seed is printed first, and again if the property does not hold.
pub(crate) fn property<S: Strategy>(strategy: &S, holds: impl Fn(S::Value) -> Result<(), String>) {
    let seed = seed();
    println!("NVME_PCI_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let outcome = TestRunner::new_with_rng(config, rng)
        .run(strategy, |value| holds(value).map_err(TestCaseError::fail));
    if let Err(error) = outcome {
        panic!("NVME_PCI_SEED={seed}: {error}");
    }
}
