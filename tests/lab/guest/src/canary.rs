// SPDX-License-Identifier: GPL-2.0

//! An ordinary task, pinned to a CPU, that stamps the time.
//!
//! The longest gap between two stamps, or the most that it was woken late, is how long the CPU left
//! an ordinary task waiting. A CPU that is starved in one endless interrupt never prints a lockup, but
//! it can't hide from this.

use crate::{
    report::{
        Canary,
        Gap, //
    },
    sys, //
};
use std::{
    io,
    sync::{
        atomic::{
            AtomicBool,
            AtomicU64,
            Ordering, //
        },
        mpsc,
        Arc, //
    },
    thread::JoinHandle, //
};

/// Most gaps kept; the shortest are left out first.
const KEEP: usize = 2000;

/// Gaps above a threshold, and the longest of all.
#[derive(Default)]
pub struct Recorder {
    threshold: u64,
    last: Option<u64>,
    gaps: Vec<(u64, u64)>,
    longest: (u64, u64),
    start: u64,
    stamps: u64,
    dropped: u64,
}

impl Recorder {
    /// Keeps gaps of at least `threshold` nanoseconds.
    pub fn new(threshold: u64) -> Self {
        Self {
            threshold,
            start: u64::MAX,
            ..Self::default()
        }
    }

    /// The window starts at this time, which lies ahead: gaps that end before don't count.
    pub fn window(&mut self, start: u64) {
        self.start = start;
    }

    /// Notes that the task ran at `now`.
    pub fn stamp(&mut self, now: u64) {
        self.stamps += 1;
        if let Some(last) = self.last {
            let len = now.saturating_sub(last);
            if len >= self.threshold {
                self.keep(last, len);
            }
            if len > self.longest.1 && now > self.start {
                self.longest = (last, len);
            }
        }
        self.last = Some(now);
    }

    /// Notes that the task wanted to run at `due` and ran at `now`.
    pub fn wake(&mut self, due: u64, now: u64) {
        self.last = Some(due);
        self.stamp(now);
    }

    fn keep(&mut self, at: u64, len: u64) {
        if self.gaps.len() >= 2 * KEEP {
            self.thin();
        }
        self.gaps.push((at, len));
    }

    /// Leaves out the shorter half.
    fn thin(&mut self) {
        self.gaps.sort_by_key(|&(_, len)| std::cmp::Reverse(len));
        self.dropped += (self.gaps.len() - KEEP.min(self.gaps.len())) as u64;
        self.gaps.truncate(KEEP);
    }

    /// What was seen of the window.
    pub fn finish(mut self, cpu: usize) -> Canary {
        let start = self.start;
        self.gaps.retain(|&(at, len)| at + len > start);
        if self.gaps.len() > KEEP {
            self.thin();
        }
        self.gaps.sort_unstable();
        let gap = |&(at, len_ns): &(u64, u64)| Gap {
            at_ns: at as i64 - start as i64,
            len_ns,
        };
        let max = match self.longest.1 {
            0 => Gap::default(),
            _ => gap(&self.longest),
        };
        let gaps = self.gaps.iter().map(gap).collect();
        Canary {
            cpu,
            stamps: self.stamps,
            max,
            gaps,
            dropped: self.dropped,
        }
    }
}

/// A running canary.
pub struct Running {
    cpu: usize,
    shared: Arc<Shared>,
    thread: JoinHandle<Recorder>,
}

/// What the canary is told while it runs.
struct Shared {
    stop: AtomicBool,
    start: AtomicU64,
}

/// What a canary does between two stamps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Habit {
    /// Nothing, politely: under a single emulation thread the next CPU takes its turn. The canary
    /// takes part in the measurement, its spinning does not.
    Spin,
    /// Nothing, and keeps the CPU: a task that takes all that it is given.
    Hog,
    /// It sleeps this long (in nanoseconds) and notes how late it was woken. That leaves the CPU
    /// idle, for loads that a busy CPU would disturb.
    Nap(u64),
}

/// Starts a canary on `cpu` and returns once it has run there.
pub fn start(cpu: usize, threshold_ns: u64, habit: Habit) -> io::Result<Running> {
    let shared = Arc::new(Shared {
        stop: AtomicBool::new(false),
        start: AtomicU64::new(u64::MAX),
    });
    let (tell, told) = mpsc::channel();
    let orders = shared.clone();
    let thread = std::thread::Builder::new()
        .name("canary".into())
        .spawn(move || {
            let mut recorder = Recorder::new(threshold_ns);
            let pinned = sys::pin(cpu);
            let ok = pinned.is_ok();
            // The receiver is only gone when nobody waits for the answer any more.
            let _ = tell.send(pinned);
            while ok && !orders.stop.load(Ordering::Relaxed) {
                recorder.window(orders.start.load(Ordering::Relaxed));
                match habit {
                    Habit::Spin => {
                        recorder.stamp(sys::now());
                        std::hint::spin_loop();
                    }
                    Habit::Hog => recorder.stamp(sys::now()),
                    Habit::Nap(len) => nap(&mut recorder, len),
                }
            }
            // Whoever was kept waiting until he was told to stop has waited until now.
            if ok && !matches!(habit, Habit::Nap(_)) {
                recorder.stamp(sys::now());
            }
            recorder
        })?;
    told.recv().map_err(io::Error::other)??;
    Ok(Running {
        cpu,
        shared,
        thread,
    })
}

fn nap(recorder: &mut Recorder, len: u64) {
    let due = sys::now() + len;
    sys::sleep_until(due);
    recorder.wake(due, sys::now());
}

impl Running {
    /// The window starts at this time, which lies ahead.
    pub fn window(&self, start: u64) {
        self.shared.start.store(start, Ordering::Relaxed);
    }

    /// Stops it and returns what it saw of the window.
    pub fn finish(self) -> Canary {
        self.shared.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(recorder) => recorder.finish(self.cpu),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn run(stamps: &[u64], start: u64) -> Canary {
        let mut r = Recorder::new(MS);
        r.window(start);
        stamps.iter().for_each(|&t| r.stamp(t));
        r.finish(0)
    }

    #[test]
    fn finds_the_longest_gap_and_where_it_began() {
        let c = run(&[0, MS / 2, 3 * MS, 3 * MS + 1, 10 * MS], 0);
        assert_eq!(c.max.at_ns, 3_000_001);
        assert_eq!(c.max.len_ns, 6_999_999);
        assert_eq!(c.gaps.len(), 2);
        assert_eq!(c.stamps, 5);
    }

    #[test]
    fn the_longest_gap_counts_even_below_the_threshold() {
        let c = run(&[0, 5, MS / 2, MS / 2 + 9], 0);
        assert!(c.gaps.is_empty());
        assert_eq!((c.max.at_ns, c.max.len_ns), (5, MS / 2 - 5));
        // A long one before the window does not hide it.
        let c = run(&[0, 90 * MS, 91 * MS, 91 * MS + 5, 91 * MS + 12], 91 * MS);
        assert_eq!(c.max.len_ns, 7);
    }

    #[test]
    fn a_gap_that_reaches_into_the_window_counts_and_one_before_it_does_not() {
        let c = run(&[0, 100 * MS, 101 * MS, 150 * MS], 120 * MS);
        assert_eq!(c.gaps.len(), 1);
        assert_eq!(c.max.at_ns, -(19 * MS as i64));
        assert_eq!(c.max.len_ns, 49 * MS);
    }

    #[test]
    fn no_gap_at_all_is_zero() {
        assert_eq!(run(&[], 0).max, Gap::default());
        assert_eq!(run(&[5], 0).max, Gap::default());
    }

    #[test]
    fn a_napping_canary_counts_how_late_it_was_woken() {
        let mut r = Recorder::new(MS);
        r.window(0);
        r.wake(10 * MS, 10 * MS + 5);
        r.wake(20 * MS, 23 * MS);
        let c = r.finish(0);
        assert_eq!((c.max.at_ns, c.max.len_ns), (20 * MS as i64, 3 * MS));
        assert_eq!(c.gaps.len(), 1);
    }

    #[test]
    fn keeps_the_longest_when_there_are_too_many() {
        let mut r = Recorder::new(MS);
        r.window(0);
        let mut t = 0;
        for i in 0..3 * KEEP as u64 {
            r.stamp(t);
            t += if i == 7 { 900 * MS } else { 2 * MS };
        }
        let c = r.finish(3);
        assert_eq!(c.cpu, 3);
        assert_eq!(c.max.len_ns, 900 * MS);
        assert!(c.gaps.len() <= KEEP);
        assert_eq!(c.dropped as usize + c.gaps.len(), 3 * KEEP - 1);
    }

    #[test]
    fn a_real_canary_runs_and_stops() {
        // A crowded host may take its time.
        let runs = |habit, ms| {
            let running = start_on_first_allowed(habit);
            running.window(sys::now());
            std::thread::sleep(std::time::Duration::from_millis(ms));
            running.finish().stamps > 1
        };
        for habit in [Habit::Spin, Habit::Hog, Habit::Nap(1000)] {
            assert!(
                [5, 50, 500, 5000].iter().any(|ms| runs(habit, *ms)),
                "{habit:?}"
            );
        }
    }

    #[test]
    fn a_wait_that_only_the_end_has_ended_counts() {
        let running = start_on_first_allowed(Habit::Spin);
        running.window(sys::now());
        running.shared.stop.store(true, Ordering::Relaxed);
        while !running.thread.is_finished() {
            std::thread::yield_now();
        }
        assert!(running.finish().stamps > 0);
    }

    fn start_on_first_allowed(habit: Habit) -> Running {
        (0..64)
            .find_map(|cpu| super::start(cpu, MS, habit).ok())
            .expect("some CPU takes the canary")
    }
}
