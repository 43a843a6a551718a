// SPDX-License-Identifier: GPL-2.0

//! Starts everything at one moment, once everything is ready.
//!
//! Setting up a disk waits for the kernel (it freezes queues): a submitter that is still at it
//! when another one starts the storm would find the window gone.

use crate::sys;
use std::sync::{
    Condvar,
    Mutex,
    MutexGuard,
    PoisonError, //
};

/// The measured stretch of time, in nanoseconds of [`sys::now`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Its start.
    pub start: u64,
    /// Its end.
    pub end: u64,
}

#[derive(Default)]
struct State {
    arrived: usize,
    window: Option<Window>,
}

/// Where the threads of a measurement wait for each other.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a panic elsewhere is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that the caller is ready (or has failed), and returns when the window has started.
    pub fn arrive(&self) -> Window {
        let mut state = self.lock();
        state.arrived += 1;
        self.changed.notify_all();
        let window = loop {
            match state.window {
                Some(window) => break window,
                None => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        };
        drop(state);
        sys::sleep_until(window.start);
        window
    }

    /// Waits for `threads` arrivals, then opens: the window starts `settle` later and is `len` long.
    pub fn open(&self, threads: usize, settle: u64, len: u64) -> Window {
        let mut state = self.lock();
        while state.arrived < threads {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let start = sys::now() + settle;
        let window = Window {
            start,
            end: start + len,
        };
        state.window = Some(window);
        self.changed.notify_all();
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn nobody_starts_before_the_last_is_ready() {
        let gate = Arc::new(Gate::default());
        let threads: Vec<_> = (0..3)
            .map(|i| {
                let gate = gate.clone();
                std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(5 * i));
                    let ready = sys::now();
                    (ready, gate.arrive(), sys::now())
                })
            })
            .collect();
        let window = gate.open(3, 1_000_000, 7);
        assert_eq!(window.end - window.start, 7);
        for thread in threads {
            let (ready, seen, started) = thread.join().unwrap();
            assert_eq!(seen, window);
            assert!(ready <= window.start && started >= window.start);
        }
    }
}
