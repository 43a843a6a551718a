// SPDX-License-Identifier: GPL-2.0

//! BLK-01 and BLK-02: PRPs against a splitter that knows nothing of lists, and a controller that
//! walks them.

mod common;

use std::{
    collections::BTreeMap,
    ops::Range, //
};

use nvme_pci::prp::{
    list_pages,
    max_entries,
    single,
    Builder,
    PrpError,
    PrpList,
    Prps,
    CTRL_PAGE,
    ENTRIES_PER_PAGE,
    SMALL_LIST,
    SMALL_MAX_BYTES, //
};
use proptest::prelude::*;

const PAGE: u64 = CTRL_PAGE as u64;

/// A range of device addresses: where it starts and how long it is.
type Segment = (u64, u32);

/// Memory that the controller may read lists from, by address. What is not in it faults.
#[derive(Clone, Default)]
struct Memory(BTreeMap<u64, u64>);

/// What list memory holds before anybody wrote it.
const POISON: u64 = 0x6b6b_6b6b_6b6b_6b6b;

/// The list of one request: chunks in a memory that other requests use too.
struct List<'a> {
    memory: &'a mut Memory,
    chunks: Vec<u64>,
    entries: usize,
}

impl<'a> List<'a> {
    fn new(memory: &'a mut Memory, chunks: Vec<u64>, entries: usize) -> Self {
        for chunk in &chunks {
            for index in 0..entries as u64 {
                memory.0.insert(chunk + index * 8, POISON);
            }
        }
        Self {
            memory,
            chunks,
            entries,
        }
    }

    /// Whole pages, in no order.
    fn pages(memory: &'a mut Memory, count: usize) -> Self {
        let chunks = (0..count as u64).map(|n| 0x7_0000_0000 - n * 3 * PAGE);
        Self::new(memory, chunks.collect(), ENTRIES_PER_PAGE)
    }
}

impl PrpList for List<'_> {
    fn pages(&self) -> usize {
        self.chunks.len()
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn page_dma(&self, page: usize) -> u64 {
        self.chunks[page]
    }

    fn set(&mut self, page: usize, index: usize, value: u64) {
        assert!(index < self.entries, "slot {index} of {}", self.entries);
        let address = self.chunks[page] + index as u64 * 8;
        assert!(self.memory.0.insert(address, value).is_some());
    }
}

/// The splitter to compare with: page by page, without a thought of how it will be told.
fn pieces(segments: &[Segment]) -> Vec<Segment> {
    let mut pieces = Vec::new();
    for &(mut addr, mut len) in segments {
        while len > 0 {
            let room = (PAGE - addr % PAGE) as u32;
            let piece = len.min(room);
            pieces.push((addr, piece));
            addr += u64::from(piece);
            len -= piece;
        }
    }
    pieces
}

/// What a controller transfers that is told `prps` and `bytes`, or why it refuses.
fn walk(prps: Prps, bytes: u64, memory: &Memory) -> Result<Vec<Segment>, String> {
    let mut walk = Walk {
        left: bytes,
        pieces: Vec::new(),
    };
    walk.transfer(prps.prp1)?;
    if walk.left == 0 {
        return if prps.prp2 == 0 {
            Ok(walk.pieces)
        } else {
            Err("PRP2 without need".into())
        };
    }
    if walk.left <= PAGE {
        walk.page(prps.prp2)?;
        return Ok(walk.pieces);
    }
    let mut at = prps.prp2;
    if !at.is_multiple_of(8) {
        return Err(format!("list at {at:#x}"));
    }
    while walk.left > 0 {
        let entry = *memory.0.get(&at).ok_or(format!("no list at {at:#x}"))?;
        let last_of_page = at % PAGE == PAGE - 8;
        if last_of_page && walk.left > PAGE {
            if entry % PAGE != 0 {
                return Err(format!("link to {entry:#x}"));
            }
            at = entry;
        } else {
            walk.page(entry)?;
            at += 8;
        }
    }
    Ok(walk.pieces)
}

struct Walk {
    left: u64,
    pieces: Vec<Segment>,
}

impl Walk {
    fn page(&mut self, prp: u64) -> Result<(), String> {
        if !prp.is_multiple_of(PAGE) {
            return Err(format!("PRP {prp:#x} has an offset"));
        }
        self.transfer(prp)
    }

    fn transfer(&mut self, prp: u64) -> Result<(), String> {
        if !prp.is_multiple_of(4) || prp == 0 || prp == POISON {
            return Err(format!("PRP {prp:#x}"));
        }
        let piece = self.left.min(PAGE - prp % PAGE);
        self.pieces.push((prp, piece as u32));
        self.left -= piece;
        Ok(())
    }
}

/// Something that describes segments.
type Splitter<'f> = &'f dyn Fn(&[Segment], &mut List<'_>) -> Result<Prps, PrpError>;

fn build(segments: &[Segment], list: &mut List<'_>) -> Result<Prps, PrpError> {
    let mut builder = Builder::new(list);
    for &(addr, len) in segments {
        builder.push(addr, len)?;
    }
    builder.finish()
}

/// Lets a controller transfer what a splitter described, and compares.
fn check(splitter: Splitter<'_>, segments: &[Segment]) -> Result<(), String> {
    let bytes: u64 = segments.iter().map(|(_, len)| u64::from(*len)).sum();
    let expected = pieces(segments);
    let mut memory = Memory::default();
    let mut list = List::pages(&mut memory, list_pages(bytes as usize));
    let prps = splitter(segments, &mut list).map_err(|error| format!("{error:?}"))?;
    if prps.bytes != bytes {
        return Err(format!("{} bytes described of {bytes}", prps.bytes));
    }
    let transferred = walk(prps, bytes, &memory)?;
    if transferred != expected {
        return Err(format!("transferred {transferred:x?}, not {expected:x?}"));
    }
    match segments {
        &[(addr, len)] => check_single(addr, len, prps, expected.len()),
        _ => Ok(()),
    }
}

/// The fast path says the same as the builder, for all that needs no list.
fn check_single(addr: u64, len: u32, prps: Prps, pieces: usize) -> Result<(), String> {
    let expected = (pieces <= 2).then_some(prps);
    if single(addr, len) != expected {
        return Err(format!("single() says {:x?}", single(addr, len)));
    }
    Ok(())
}

/// A buffer in system pages of which no two are neighbours, from `offset` on.
fn scattered(system_page: u64, offset: u64, length: u64) -> Vec<Segment> {
    let mut segments = Vec::new();
    let (mut at, end) = (offset, offset + length);
    while at < end {
        let page = at / system_page;
        let stop = end.min((page + 1) * system_page);
        let frame = 0x40_0000 + (page * 7919 % 8192) * 2;
        segments.push((frame * system_page + at % system_page, (stop - at) as u32));
        at = stop;
    }
    segments
}

/// A buffer that is one piece for the device.
fn contiguous(offset: u64, length: u64) -> Vec<Segment> {
    vec![(0x1_2345_0000 + offset, length as u32)]
}

const OFFSETS: [u64; 7] = [0, 4, 512, 4092, 4096, 5000, 65532];
const LENGTHS: [u64; 6] = [4, 512, 4096, 4100, 8192, 12288];
const SYSTEM_PAGES: [u64; 3] = [4096, 16384, 65536];

/// The cases of BLK-01.
fn offsets_and_lengths() -> Vec<Vec<Segment>> {
    let mut cases = Vec::new();
    for offset in OFFSETS {
        for length in LENGTHS {
            cases.push(contiguous(offset, length));
            cases.extend(SYSTEM_PAGES.map(|page| scattered(page, offset, length)));
        }
    }
    cases
}

/// The cases of BLK-02: exactly so many PRPs.
fn exact_counts() -> Vec<Vec<Segment>> {
    let mut cases = Vec::new();
    for count in [1, 2, 3, 511, 512, 513, 514, 1023, 1024, 1025, 1026] {
        for offset in [0, 512] {
            for short in [0, 4, 3584] {
                let length = count * PAGE - offset - short;
                if length == 0 {
                    continue;
                }
                let shapes = [
                    contiguous(offset, length),
                    scattered(4096, offset, length),
                    scattered(65536, offset, length),
                ];
                for shape in shapes {
                    assert_eq!(pieces(&shape).len() as u64, count);
                    cases.push(shape);
                }
            }
        }
    }
    cases
}

#[test]
fn blk_01_every_offset_and_length_is_split_like_the_reference() {
    for segments in offsets_and_lengths() {
        check(&build, &segments).unwrap_or_else(|error| panic!("{segments:x?}: {error}"));
    }
}

#[test]
fn blk_01_prp2_is_there_when_the_buffer_starts_beyond_the_controller_page() {
    let base = 0x10_0000;
    let crossing = single(base + 5000, 4096).unwrap();
    assert_eq!((crossing.prp1, crossing.prp2), (base + 5000, base + 8192));
    let inside = single(base + 4096, 4096).unwrap();
    assert_eq!((inside.prp1, inside.prp2), (base + 4096, 0));
}

#[test]
fn blk_02_exact_counts_are_chained_only_when_more_follows() {
    for segments in exact_counts() {
        check(&build, &segments).unwrap_or_else(|error| panic!("{:x?}: {error}", segments[0]));
    }
}

#[test]
fn blk_02_the_last_slot_is_data_when_exactly_full_and_a_link_when_not() {
    for (listed, linked) in [(511, false), (512, false), (513, true), (1023, true)] {
        let segments = contiguous(0, (listed + 1) * PAGE);
        let mut memory = Memory::default();
        let mut list = List::pages(&mut memory, 2);
        let link = list.page_dma(1);
        let prps = build(&segments, &mut list).unwrap();
        let last = memory.0[&(prps.prp2 + PAGE - 8)];
        assert_eq!(last == link, linked, "{listed} listed");
        let untouched = memory.0[&link] == POISON;
        assert_eq!(untouched, !linked, "{listed} listed");
    }
}

#[test]
fn blk_02_three_list_pages_hold_what_is_said() {
    let room = 3 * 511 + 1;
    let full = contiguous(0, (room + 1) * PAGE);
    let over = contiguous(0, (room + 2) * PAGE);
    let mut memory = Memory::default();
    assert!(build(&full, &mut List::pages(&mut memory, 3)).is_ok());
    let refused = build(&over, &mut List::pages(&mut memory, 3));
    assert_eq!(refused, Err(PrpError::ListFull));
}

#[test]
fn blk_02_two_requests_next_to_each_other_keep_to_their_lists() {
    let small = SMALL_LIST as u64;
    let page = 0x9_0000_0000;
    let worst = SMALL_MAX_BYTES as u64;
    let mut memory = Memory::default();
    let mut told = Vec::new();
    // The four small lists of a page, the last of which ends with it.
    for n in 0..4 {
        let segments = scattered(4096, 512 + n * worst * 2, worst);
        let mut list = List::new(&mut memory, vec![page + n * small], SMALL_LIST / 8);
        told.push((build(&segments, &mut list).unwrap(), segments));
    }
    for (prps, segments) in told {
        assert_eq!(walk(prps, worst, &memory).unwrap(), pieces(&segments));
    }
}

#[test]
fn blk_02_a_small_list_is_never_chained() {
    let segments = contiguous(512, SMALL_MAX_BYTES as u64 + PAGE);
    for chunks in [vec![0x8000], vec![0x8000, 0x9000], vec![]] {
        let mut memory = Memory::default();
        let mut list = List::new(&mut memory, chunks, SMALL_LIST / 8);
        assert_eq!(build(&segments, &mut list), Err(PrpError::ListFull));
    }
}

#[test]
fn blk_02_sizes_are_derived_right() {
    assert_eq!([0, 1, 4096, 4097].map(max_entries), [0, 2, 2, 3]);
    assert_eq!(max_entries(2 << 20), 513);
    let mib = |n: usize| list_pages(n << 20);
    assert_eq!([mib(0), mib(1), mib(2), mib(4)], [0, 1, 1, 3]);
    for bytes in [1, 4096, SMALL_MAX_BYTES, 2 << 20, (2 << 20) + 4, 6 << 20] {
        let worst = scattered(4096, 4092, bytes as u64);
        check(&build, &worst).unwrap_or_else(|error| panic!("{bytes}: {error}"));
    }
}

#[test]
fn blk_01_segments_that_prps_can_not_describe_are_refused() {
    let cases: [(&[Segment], PrpError); 7] = [
        (&[], PrpError::Empty),
        (&[(0x1000, 0)], PrpError::Empty),
        (&[(0x1002, 4)], PrpError::Unaligned),
        (&[(0x1000, 4096), (0x3200, 512)], PrpError::Gap),
        (&[(0x1000, 512), (0x3000, 4096)], PrpError::Gap),
        (&[(0x1000, 512), (0x1200, 512)], PrpError::Gap),
        (&[(u64::MAX - 4095, 4096)], PrpError::Overflow),
    ];
    for (segments, expected) in cases {
        let mut memory = Memory::default();
        let refused = build(segments, &mut List::pages(&mut memory, 1));
        assert_eq!(refused, Err(expected), "{segments:x?}");
    }
    assert_eq!(single(0x1000, 0), None);
    assert_eq!(single(0x1001, 4), None);
    assert!(single(u64::MAX - 4095, 4092).is_some());
}

/// Segment lists that keep the virtual boundary: pages in the middle, anything at the ends.
fn segment_lists() -> impl Strategy<Value = Vec<Segment>> {
    let place = (1u64..1 << 36).prop_map(|frame| frame * PAGE);
    let middle = prop::collection::vec((place, 1u32..40), 1..60);
    (middle, 0u64..1024, 0u32..1024).prop_map(|(pages, skip, short)| {
        let mut list: Vec<Segment> = pages
            .into_iter()
            .map(|(addr, count)| (addr, count * PAGE as u32))
            .collect();
        let first = list.first_mut().unwrap();
        first.0 += skip * 4;
        first.1 -= skip as u32 * 4;
        let last = list.last_mut().unwrap();
        last.1 -= (short * 4).min(last.1 - 4);
        list
    })
}

#[test]
fn blk_01_random_segment_lists_are_split_like_the_reference() {
    common::property(&segment_lists(), |segments| check(&build, &segments));
}

#[test]
fn blk_02_random_lists_in_too_small_memory_are_refused_and_overrun_nothing() {
    let lists = (segment_lists(), 0usize..4);
    common::property(&lists, |(segments, pages)| {
        let needed = list_room(pieces(&segments).len());
        let mut memory = Memory::default();
        let outcome = build(&segments, &mut List::pages(&mut memory, pages));
        match outcome {
            Ok(_) if needed.contains(&pages) => Ok(()),
            Err(PrpError::ListFull) if !needed.contains(&pages) => Ok(()),
            other => Err(format!("{other:?} with {pages} pages, {needed:?} needed")),
        }
    });
}

/// With how many list pages a command of so many PRPs can be told.
fn list_room(prps: usize) -> Range<usize> {
    let least = (0..).find(|&pages| match pages {
        0 => prps <= 2,
        _ => prps - 1 <= pages * 511 + 1,
    });
    least.unwrap()..usize::MAX
}

/// What goes wrong in other people's drivers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    ForgetPrp2,
    SecondPageWhereTheListBelongs,
    ChainOneSlotEarly,
    ChainWhenExactlyFull,
    NeverChain,
    LinkLosesAPage,
    OffsetInEveryPage,
    CountsOnlyTheLength,
}

/// A splitter that sees all segments at once, with a fault planted.
fn faulty(fault: Fault, segments: &[Segment], list: &mut List<'_>) -> Result<Prps, PrpError> {
    let bytes = segments.iter().map(|(_, len)| u64::from(*len)).sum();
    let mut prps: Vec<u64> = pieces(segments).iter().map(|(addr, _)| *addr).collect();
    let prp1 = prps.remove(0);
    if fault == Fault::OffsetInEveryPage {
        prps.iter_mut().for_each(|prp| *prp += prp1 % PAGE);
    }
    if fault == Fault::CountsOnlyTheLength {
        prps.truncate((bytes as usize).div_ceil(CTRL_PAGE) - 1);
    }
    let prp2 = match prps.as_slice() {
        [] => 0,
        _ if fault == Fault::ForgetPrp2 => 0,
        [second] => *second,
        [second, ..] if fault == Fault::SecondPageWhereTheListBelongs => *second,
        listed => {
            faulty_list(fault, listed, list);
            list.page_dma(0)
        }
    };
    Ok(Prps { prp1, prp2, bytes })
}

fn faulty_list(fault: Fault, mut listed: &[u64], list: &mut List<'_>) {
    let mut page = 0;
    while !listed.is_empty() {
        let (room, exact) = match fault {
            Fault::ChainOneSlotEarly => (511, false),
            Fault::ChainWhenExactlyFull => (512, true),
            _ => (512, false),
        };
        let last = page + 1 >= list.pages() || fault == Fault::NeverChain;
        let chained = !last && (listed.len() > room || exact && listed.len() == room);
        let here = if chained {
            room - 1
        } else {
            listed.len().min(512)
        };
        for (index, prp) in listed[..here].iter().enumerate() {
            list.set(page, index, *prp);
        }
        listed = &listed[here..];
        if !chained {
            return;
        }
        let link = list.page_dma(page + 1);
        list.set(page, here, link);
        if fault == Fault::LinkLosesAPage {
            listed = &listed[1..];
        }
        page += 1;
    }
}

/// Whether the tables find a fault.
fn found(fault: Fault, cases: &[Vec<Segment>]) -> bool {
    let splitter = |segments: &[Segment], list: &mut List<'_>| faulty(fault, segments, list);
    cases.iter().any(|case| check(&splitter, case).is_err())
}

#[test]
fn blk_01_planted_faults_are_found() {
    let cases = offsets_and_lengths();
    assert!(!found(Fault::None, &cases));
    for fault in [
        Fault::ForgetPrp2,
        Fault::SecondPageWhereTheListBelongs,
        Fault::OffsetInEveryPage,
        Fault::CountsOnlyTheLength,
    ] {
        assert!(found(fault, &cases), "{fault:?}");
    }
}

#[test]
fn blk_02_planted_faults_are_found() {
    let cases = exact_counts();
    assert!(!found(Fault::None, &cases));
    for fault in [
        Fault::ChainOneSlotEarly,
        Fault::ChainWhenExactlyFull,
        Fault::NeverChain,
        Fault::LinkLosesAPage,
    ] {
        assert!(found(fault, &cases), "{fault:?}");
    }
}
