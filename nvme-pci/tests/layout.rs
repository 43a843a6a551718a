// SPDX-License-Identifier: GPL-2.0

//! Doorbell offsets and command layout, from the specification's tables.

use nvme_pci::{
    cid::CommandId,
    command::Command,
    doorbell::{
        Cap,
        Doorbells, //
    },
    queue::Entries, //
};

fn cap(dstrd: u8) -> Cap {
    Cap::new(u64::from(dstrd) << 32)
}

#[test]
fn capabilities_are_split_as_the_specification_says() {
    let qemu = Cap::new(0x0040_0020_0f01_07ff);
    assert_eq!((qemu.mqes(), qemu.dstrd(), qemu.mpsmin()), (2047, 0, 0));
    let odd = Cap::new(0x0003_000f_0000_0001);
    assert_eq!((odd.mqes(), odd.dstrd(), odd.mpsmin()), (1, 15, 3));
}

#[test]
fn doorbells_lie_where_the_specification_says() {
    for dstrd in 0..16 {
        let stride = 4usize << dstrd;
        let bells = Doorbells::new(cap(dstrd), Doorbells::bar_bytes(dstrd, 65)).unwrap();
        assert_eq!(bells.queues(), 65);
        for qid in 0..65u16 {
            let pair = 2 * usize::from(qid);
            assert_eq!(bells.sq(qid), Some(0x1000 + pair * stride));
            assert_eq!(bells.cq(qid), Some(0x1000 + (pair + 1) * stride));
        }
    }
}

#[test]
fn tear_08_doorbells_beyond_the_bar_do_not_exist() {
    let bells = Doorbells::new(cap(0), 0x2000).unwrap();
    assert_eq!(bells.queues(), 512);
    assert_eq!(bells.cq(511), Some(0x1ffc));
    assert_eq!((bells.sq(512), bells.cq(512)), (None, None));
    assert_eq!((bells.sq(u16::MAX), bells.cq(u16::MAX)), (None, None));
}

#[test]
fn tear_08_every_doorbell_lies_inside_the_bar() {
    for dstrd in [0, 1, 4, 15] {
        for len in [
            0x1000, 0x1004, 0x1008, 0x100c, 0x1010, 0x2000, 0x4000, 0x4_0000,
        ] {
            let Some(bells) = Doorbells::new(cap(dstrd), len) else {
                assert!(len < Doorbells::bar_bytes(dstrd, 1));
                continue;
            };
            let last = (0..=u16::MAX).filter_map(|qid| bells.cq(qid)).max();
            assert!(last.unwrap() + 4 <= len, "{dstrd} {len:#x}");
        }
    }
}

#[test]
fn a_bar_without_the_admin_doorbells_is_refused() {
    assert_eq!(Doorbells::new(cap(0), 0), None);
    assert_eq!(Doorbells::new(cap(0), 0x1007), None);
    assert!(Doorbells::new(cap(0), 0x1008).is_some());
    assert_eq!(Doorbells::new(cap(1), 0x1008), None);
}

#[test]
fn no_more_queues_than_identifiers() {
    let bells = Doorbells::new(cap(0), usize::MAX).unwrap();
    assert_eq!(bells.queues(), 65536);
    assert!(bells.sq(u16::MAX).is_some());
}

/// The dwords of a command that are not zero.
fn dwords(command: Command) -> Vec<(usize, u32)> {
    let bytes = command.to_bytes();
    let dword =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (0..16)
        .map(|n| (n, dword(4 * n)))
        .filter(|(_, value)| *value != 0)
        .collect()
}

#[test]
fn commands_are_laid_out_as_the_specification_says() {
    let entries = Entries::new(1024).unwrap();
    let ring = 0x0000_0012_3456_7000;
    let id = CommandId::new(0x123, 9).unwrap();
    let table = [
        (
            Command::create_cq(3, entries, ring, Some(5)),
            vec![
                (0, 5),
                (6, 0x3456_7000),
                (7, 0x12),
                (10, 0x03ff_0003),
                (11, 0x0005_0003),
            ],
        ),
        (
            Command::create_cq(3, entries, ring, Some(0)),
            vec![
                (0, 5),
                (6, 0x3456_7000),
                (7, 0x12),
                (10, 0x03ff_0003),
                (11, 0x0000_0003),
            ],
        ),
        (
            Command::create_cq(3, entries, ring, None),
            vec![
                (0, 5),
                (6, 0x3456_7000),
                (7, 0x12),
                (10, 0x03ff_0003),
                (11, 0x0000_0001),
            ],
        ),
        (
            Command::create_sq(3, entries, ring, 3),
            vec![
                (0, 1),
                (6, 0x3456_7000),
                (7, 0x12),
                (10, 0x03ff_0003),
                (11, 0x0003_0005),
            ],
        ),
        (Command::delete_cq(7), vec![(0, 4), (10, 7)]),
        (Command::delete_sq(7), vec![(10, 7)]),
        (Command::abort(2, id), vec![(0, 8), (10, 0x9123_0002)]),
        (Command::async_event(), vec![(0, 0x001f_000c)]),
        (
            Command::delete_cq(7).with_cid(id),
            vec![(0, 0x9123_0004), (10, 7)],
        ),
    ];
    for (command, expected) in table {
        assert_eq!(dwords(command), expected, "{command:x?}");
    }
}

#[test]
fn bytes_are_little_endian() {
    let bytes = Command::abort(0x0102, CommandId::from_raw(0x0304)).to_bytes();
    assert_eq!(bytes[40..44], [0x02, 0x01, 0x04, 0x03]);
}
