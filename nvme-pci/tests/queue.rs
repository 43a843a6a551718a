// SPDX-License-Identifier: GPL-2.0

//! RING-02 and RING-05: heads, tails, phases and depths.

mod common;

use std::{
    collections::VecDeque,
    sync::atomic::{
        AtomicBool,
        AtomicU32,
        Ordering::Relaxed, //
    },
    thread, //
};

use nvme_pci::{
    cid::CommandId,
    doorbell::Cap,
    queue::{
        CqRing,
        Cqe,
        Cursor,
        Entries,
        InFlight,
        SqRing,
        MAX_IO_ENTRIES, //
    },
};
use proptest::prelude::*;

const DEPTHS: [u16; 5] = [2, 3, 4, 1024, 65535];

fn entries(count: u16) -> Entries {
    Entries::new(count).unwrap()
}

/// The status word of an entry that the controller wrote with this phase.
fn status(phase: bool) -> u16 {
    u16::from(phase)
}

#[test]
fn ring_02_every_published_head_is_in_range_and_the_phase_turns_at_the_wrap() {
    for depth in DEPTHS {
        let ring = CqRing::new(entries(depth));
        for step in 0..3 * u32::from(depth) + 2 {
            let at = ring.cursor();
            let (lap, head) = (step / u32::from(depth), step % u32::from(depth));
            assert!(at.head() < depth);
            assert_eq!(u32::from(at.head()), head);
            assert!(at.is_new(status(lap % 2 == 0)), "depth {depth} step {step}");
            assert!(!at.is_new(status(lap % 2 != 0)));
            ring.publish(ring.next(at));
        }
    }
}

#[test]
fn ring_02_reset_begins_with_entry_0_and_phase_1() {
    let ring = CqRing::new(entries(3));
    let start = ring.cursor();
    assert_eq!(start.head(), 0);
    assert!(!start.is_new(0), "zeroed memory holds nothing new");
    (0..4).for_each(|_| ring.publish(ring.next(ring.cursor())));
    assert_ne!(ring.cursor(), start);
    ring.reset();
    assert_eq!(ring.cursor(), start);
}

#[test]
fn ring_02_the_submission_tail_is_always_in_range() {
    for depth in DEPTHS {
        let mut ring = SqRing::new(entries(depth));
        for step in 0..3 * u32::from(depth) {
            assert_eq!(u32::from(ring.slot()), step % u32::from(depth));
            ring.push();
            let rung = ring.ring(true);
            assert_eq!(rung, Some(ring.slot()));
            assert!(ring.slot() < depth);
        }
        ring.reset();
        assert_eq!((ring.slot(), ring.ring(true)), (0, None));
    }
}

/// Lets one thread go round and another look; gives the first head out of range that it saw.
fn watch(
    depth: u16,
    wraps: u32,
    step: impl Fn() + Sync,
    head: impl Fn() -> u32 + Sync,
) -> Option<u32> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !stop.load(Relaxed) {
                let seen = head();
                if seen >= u32::from(depth) {
                    stop.store(true, Relaxed);
                    return Some(seen);
                }
            }
            None
        });
        for _ in 0..wraps {
            if stop.load(Relaxed) {
                break;
            }
            (0..depth).for_each(|_| step());
        }
        stop.store(true, Relaxed);
        watcher.join().unwrap()
    })
}

#[test]
fn ring_02_no_reader_sees_a_head_out_of_range_in_ten_million_wraps() {
    for (depth, wraps) in [(2, 10_000_000), (3, 100_000), (1024, 1000)] {
        let ring = CqRing::new(entries(depth));
        let step = || ring.publish(ring.next(ring.cursor()));
        let seen = watch(depth, wraps, step, || u32::from(ring.cursor().head()));
        assert_eq!(seen, None);
    }
}

#[test]
fn ring_02_planted_fault_a_head_that_is_corrected_afterwards_is_seen() {
    let head = AtomicU32::new(0);
    let step = || {
        let next = head.load(Relaxed) + 1;
        head.store(next, Relaxed);
        if next == 2 {
            head.store(0, Relaxed);
        }
    };
    assert_eq!(watch(2, 10_000_000, step, || head.load(Relaxed)), Some(2));
}

/// CAP with this MQES.
fn cap(mqes: u16) -> Cap {
    Cap::new(0x0000_0020_0001_0000 | u64::from(mqes))
}

#[test]
fn ring_05_requested_and_supported_depths_meet() {
    for mqes in [1u16, 2, 3, 7, 1023, 2047, 65535] {
        for requested in (2..=4096u32).chain([0, 1, 4097, 65535, 65536, 65537, u32::MAX]) {
            let got = Entries::negotiate(requested, cap(mqes));
            let expected = requested.clamp(2, 4096).min(u32::from(mqes) + 1);
            assert_eq!(u32::from(got.get()), expected, "{requested} of {mqes}");
            assert_eq!(u32::from(got.usable()), expected - 1);
            assert_eq!(got.zero_based(), got.usable());
            assert!(got.usable() <= mqes, "zero based: at most MQES");
        }
    }
}

#[test]
fn ring_05_a_controller_that_says_one_entry_gets_the_smallest_ring() {
    assert_eq!(Entries::negotiate(1024, cap(0)), Entries::MIN);
}

#[test]
fn ring_05_the_largest_ring_of_ours_has_a_tag_for_each_command() {
    let largest = Entries::negotiate(u32::MAX, cap(u16::MAX));
    assert_eq!(largest.get(), MAX_IO_ENTRIES);
    assert!(CommandId::new(largest.usable() - 1, 0).is_some());
    assert_eq!(largest.sq_bytes(), 4096 * 64);
    assert_eq!(largest.cq_bytes(), 4096 * 16);
}

#[test]
fn ring_05_a_ring_has_two_entries_at_least() {
    assert_eq!(
        [0, 1, 2].map(Entries::new),
        [None, None, Some(Entries::MIN)]
    );
}

/// Where to look at rings of a depth: everywhere if that is quick.
fn heads(depth: u16) -> impl Iterator<Item = u16> {
    let step = if depth > 4096 { 4093 } else { 1 };
    (0..depth).step_by(step).chain([depth - 1])
}

/// How an estimate is made: from head, tail and depth.
type Estimate = fn(u16, u16, Entries) -> u16;

/// Looks for a head from which 0, 1 or depth - 1 commands are counted wrongly.
fn miscounted(estimate: Estimate, depth: u16) -> Option<(u16, u16)> {
    let cases = heads(depth).flat_map(|head| [0, 1, depth - 1].map(|count| (head, count)));
    cases.into_iter().find(|&(head, count)| {
        let tail = (u32::from(head) + u32::from(count)) % u32::from(depth);
        estimate(head, tail as u16, entries(depth)) != count
    })
}

/// The estimate as policies get it.
fn gauge(head: u16, tail: u16, entries: Entries) -> u16 {
    let cq = CqRing::new(entries);
    let mut at = cq.cursor();
    (0..head).for_each(|_| at = cq.next(at));
    cq.publish(at);
    let in_flight = InFlight::new();
    in_flight.publish(tail);
    in_flight.estimate(&cq)
}

#[test]
fn ring_05_in_flight_is_right_at_0_1_and_depth_minus_1() {
    for depth in [2, 3, 4, 8, 1024, 4096, 65535] {
        let distance: Estimate = |head, tail, entries| entries.distance(head, tail);
        assert_eq!(miscounted(distance, depth), None, "depth {depth}");
    }
    for depth in [2, 3, 4, 8, 512] {
        assert_eq!(miscounted(gauge, depth), None, "depth {depth}");
    }
}

#[test]
fn ring_05_planted_fault_miscounts_are_found() {
    let wrapping: Estimate = |head, tail, _| tail.wrapping_sub(head);
    let by_usable: Estimate = |head, tail, entries| {
        let modulus = u32::from(entries.usable());
        ((u32::from(tail) + modulus - u32::from(head) % modulus) % modulus) as u16
    };
    for depth in [3, 4, 1024] {
        assert!(miscounted(wrapping, depth).is_some());
        assert!(miscounted(by_usable, depth).is_some());
    }
}

/// A controller's side of a submission queue: it fetches what lies before the tail it was told.
struct Device {
    depth: u16,
    head: u16,
    fetched: Vec<u32>,
}

impl Device {
    fn fetch(&mut self, tail: u16, ring: &[u32]) {
        while self.head != tail {
            self.fetched.push(ring[usize::from(self.head)]);
            self.head = (self.head + 1) % self.depth;
        }
    }
}

/// A driver's side of it.
trait Submit {
    fn slot(&self) -> u16;
    fn push(&mut self);
    fn ring(&mut self, last: bool) -> Option<u16>;
}

impl Submit for SqRing {
    fn slot(&self) -> u16 {
        SqRing::slot(self)
    }

    fn push(&mut self) {
        SqRing::push(self);
    }

    fn ring(&mut self, last: bool) -> Option<u16> {
        SqRing::ring(self, last)
    }
}

/// One that waits for the last command of a batch whatever happens.
struct NeverEarly {
    depth: u16,
    tail: u16,
}

impl Submit for NeverEarly {
    fn slot(&self) -> u16 {
        self.tail
    }

    fn push(&mut self) {
        self.tail = (self.tail + 1) % self.depth;
    }

    fn ring(&mut self, last: bool) -> Option<u16> {
        last.then_some(self.tail)
    }
}

/// Submits commands in batches, with as many in flight as there are tags, and compares what the
/// controller fetched with what was submitted.
fn submits(driver: &mut dyn Submit, depth: u16, batches: &[u16]) -> Result<(), String> {
    let mut memory = vec![u32::MAX; usize::from(depth)];
    let mut device = Device {
        depth,
        head: 0,
        fetched: Vec::new(),
    };
    let (mut next, mut in_flight) = (0, VecDeque::new());
    for &batch in batches {
        for nth in 0..batch {
            if in_flight.len() == usize::from(depth - 1) {
                let done: u32 = in_flight.pop_front().unwrap();
                if !device.fetched.contains(&done) {
                    return Err(format!("{done} was never fetched, and all tags are in use"));
                }
            }
            memory[usize::from(driver.slot())] = next;
            in_flight.push_back(next);
            next += 1;
            driver.push();
            if let Some(tail) = driver.ring(nth + 1 == batch) {
                device.fetch(tail, &memory);
            }
        }
    }
    if device.fetched != (0..next).collect::<Vec<_>>() {
        return Err(format!("{next} submitted, fetched {:?}", device.fetched));
    }
    Ok(())
}

#[test]
fn ring_05_a_batch_larger_than_the_ring_is_fetched_whole() {
    for depth in [2, 3, 4, 7, 64] {
        let batches = [1, depth - 1, depth, depth + 1, 3 * depth];
        let mut ring = SqRing::new(entries(depth));
        assert_eq!(submits(&mut ring, depth, &batches), Ok(()), "depth {depth}");
    }
}

#[test]
fn ring_05_a_batch_rings_once() {
    let mut ring = SqRing::new(entries(8));
    let rung: Vec<_> = (0..5)
        .map(|nth| {
            ring.push();
            ring.ring(nth == 4)
        })
        .collect();
    assert_eq!(rung, [None, None, None, None, Some(5)]);
    assert_eq!(ring.ring(true), None, "commit without anything new");
}

#[test]
fn ring_05_planted_fault_a_doorbell_that_waits_too_long_is_found() {
    for depth in [2, 3, 4, 7] {
        let mut late = NeverEarly { depth, tail: 0 };
        assert!(submits(&mut late, depth, &[depth, 1]).is_err());
    }
}

#[test]
fn ring_05_random_batches_are_fetched_whole() {
    let cases = (2u16..40, prop::collection::vec(1u16..60, 1..20));
    common::property(&cases, |(depth, batches)| {
        submits(&mut SqRing::new(entries(depth)), depth, &batches)
    });
}

/// A completion queue in memory, and the controller that fills it.
struct Completions {
    memory: Vec<(u16, u32)>,
    at: usize,
    phase: bool,
    posted: u32,
}

impl Completions {
    fn post(&mut self) {
        self.memory[self.at] = (status(self.phase), self.posted);
        self.posted += 1;
        self.at += 1;
        if self.at == self.memory.len() {
            self.at = 0;
            self.phase = !self.phase;
        }
    }

    fn drain(&self, ring: &CqRing) -> Vec<u32> {
        let mut found = Vec::new();
        let mut at: Cursor = ring.cursor();
        while at.is_new(self.memory[usize::from(at.head())].0) {
            found.push(self.memory[usize::from(at.head())].1);
            at = ring.next(at);
            ring.publish(at);
        }
        found
    }
}

#[test]
fn ring_02_random_completions_are_found_once_and_in_order() {
    let cases = (2u16..20, prop::collection::vec(0u16..20, 1..60));
    common::property(&cases, |(depth, bursts)| {
        let ring = CqRing::new(entries(depth));
        let mut device = Completions {
            memory: vec![(0, 0); usize::from(depth)],
            at: 0,
            phase: true,
            posted: 0,
        };
        for burst in bursts {
            let first = device.posted;
            (0..burst.min(depth - 1)).for_each(|_| device.post());
            let expected: Vec<u32> = (first..device.posted).collect();
            let found = device.drain(&ring);
            if found != expected {
                return Err(format!("found {found:?} of {expected:?}"));
            }
        }
        Ok(())
    });
}

#[test]
fn an_entry_is_split_as_the_specification_says() {
    let entry = Cqe::from_dwords([0x89ab_cdef, 0x0123_4567, 0x0007_0123, 0xc005_f042]);
    assert_eq!(entry.result, 0x0123_4567_89ab_cdef);
    assert_eq!((entry.sq_id, entry.sq_head), (7, 0x123));
    assert_eq!(entry.cid, CommandId::new(0x042, 15).unwrap());
    assert_eq!(entry.status, 0xc005);
}
