// SPDX-License-Identifier: GPL-2.0

//! Command identifiers, and that a completion takes out exactly what was put in.

mod common;

use std::{
    cell::Cell,
    collections::BTreeMap, //
};

use nvme_pci::cid::{
    CommandId,
    Slot,
    Slots,
    MAX_TAGS, //
};
use proptest::prelude::*;

fn slots(tags: usize) -> Slots<Vec<Slot>> {
    Slots::new((0..tags).map(|_| Slot::new()).collect())
}

fn cid(tag: u16, generation: u8) -> CommandId {
    CommandId::new(tag, generation).unwrap()
}

#[test]
fn every_identifier_is_one_tag_and_one_generation() {
    for raw in 0..=u16::MAX {
        let id = CommandId::from_raw(raw);
        assert_eq!(id.raw(), raw);
        assert_eq!(CommandId::new(id.tag(), id.generation()), Some(id));
        assert_eq!(raw, u16::from(id.generation()) * 4096 + id.tag());
    }
}

#[test]
fn a_tag_of_thirteen_bits_has_no_name() {
    assert!(CommandId::new(MAX_TAGS - 1, 0).is_some());
    assert_eq!(CommandId::new(MAX_TAGS, 0), None);
    assert_eq!(CommandId::new(u16::MAX, 0), None);
}

#[test]
fn generations_count_modulo_sixteen() {
    assert_eq!(cid(7, 16), cid(7, 0));
    assert_eq!(cid(7, 255), cid(7, 15));
}

#[test]
fn a_command_is_taken_once() {
    let slots = slots(8);
    assert!(slots.put(cid(3, 5)));
    assert_eq!(slots.busy(), 1);
    assert!(slots.take(cid(3, 5)));
    assert!(!slots.take(cid(3, 5)), "duplicate");
    assert_eq!(slots.busy(), 0);
}

#[test]
fn a_stale_generation_leaves_the_command_that_has_the_tag() {
    let slots = slots(8);
    assert!(slots.put(cid(3, 5)));
    assert!(!slots.take(cid(3, 4)));
    assert!(!slots.take(cid(3, 6)));
    assert!(slots.take(cid(3, 5)));
}

#[test]
fn idle_tags_and_tags_out_of_range_are_refused() {
    let slots = slots(8);
    assert!(!slots.take(cid(0, 0)), "an idle tag whose slot is zero");
    assert!(!slots.take(cid(8, 0)));
    assert!(!slots.take(CommandId::from_raw(u16::MAX)));
    assert!(!slots.put(cid(8, 0)));
    assert_eq!(slots.busy(), 0);
}

#[test]
fn a_tag_in_flight_is_not_given_away_again() {
    let slots = slots(8);
    assert!(slots.put(cid(3, 5)));
    assert!(!slots.put(cid(3, 6)));
    assert!(slots.take(cid(3, 5)));
}

#[test]
fn clear_forgets_what_was_in_flight() {
    let slots = slots(usize::from(MAX_TAGS));
    for tag in 0..MAX_TAGS {
        assert!(slots.put(cid(tag, tag as u8)));
    }
    assert_eq!(slots.busy(), usize::from(MAX_TAGS));
    slots.clear();
    assert_eq!(slots.busy(), 0);
    assert!(!slots.take(cid(9, 9)));
}

#[test]
fn one_of_two_drainers_gets_a_command() {
    let slots = slots(1);
    for round in 0..200u8 {
        let id = cid(0, round);
        assert!(slots.put(id));
        // One after the other, as drainers are.
        let drainer = || std::thread::scope(|scope| scope.spawn(|| slots.take(id)).join().unwrap());
        assert_eq!([drainer(), drainer()], [true, false]);
    }
}

#[test]
fn nothing_is_noted_of_a_command_that_is_refused() {
    let slots = slots(8);
    let noted = Cell::new(0);
    let put = |id| slots.put_after(id, || noted.set(noted.get() + 1));
    assert!(put(cid(3, 5)));
    assert_eq!(noted.get(), 1);
    assert!(
        !put(cid(3, 6)),
        "the tag is in use: what was noted of it stays"
    );
    assert!(!put(cid(8, 0)), "out of range");
    assert_eq!(noted.get(), 1);
    assert!(slots.take(cid(3, 5)));
}

/// Books that say what is in flight.
trait Books {
    fn put(&mut self, cid: CommandId) -> bool;
    fn take(&mut self, cid: CommandId) -> bool;
}

impl Books for Slots<Vec<Slot>> {
    fn put(&mut self, cid: CommandId) -> bool {
        Slots::put(self, cid)
    }

    fn take(&mut self, cid: CommandId) -> bool {
        Slots::take(self, cid)
    }
}

/// The same from a map; the other variants are wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    IgnoresTheGeneration,
    ClearsBeforeItLooks,
    KeepsWhatWasTaken,
}

struct Map {
    given: BTreeMap<u16, u8>,
    tags: u16,
    fault: Fault,
}

impl Map {
    fn new(tags: u16, fault: Fault) -> Self {
        Self {
            given: BTreeMap::new(),
            tags,
            fault,
        }
    }
}

impl Books for Map {
    fn put(&mut self, cid: CommandId) -> bool {
        if cid.tag() >= self.tags || self.given.contains_key(&cid.tag()) {
            return false;
        }
        self.given.insert(cid.tag(), cid.generation());
        true
    }

    fn take(&mut self, cid: CommandId) -> bool {
        let given = self.given.get(&cid.tag()).copied();
        let right = given == Some(cid.generation());
        match self.fault {
            Fault::None if right => drop(self.given.remove(&cid.tag())),
            Fault::ClearsBeforeItLooks => drop(self.given.remove(&cid.tag())),
            Fault::IgnoresTheGeneration => return self.given.remove(&cid.tag()).is_some(),
            Fault::None | Fault::KeepsWhatWasTaken => (),
        }
        right
    }
}

/// Puts (true) and takes of identifiers, many of which are wrong.
type Script = Vec<(bool, u16, u8)>;

fn scripts() -> impl Strategy<Value = Script> {
    prop::collection::vec((any::<bool>(), 0u16..6, 0u8..3), 1..200)
}

fn agrees(books: &mut dyn Books, script: &Script) -> Result<(), String> {
    let mut map = Map::new(4, Fault::None);
    for (step, &(put, tag, generation)) in script.iter().enumerate() {
        let id = cid(tag, generation);
        let (said, right) = match put {
            true => (books.put(id), map.put(id)),
            false => (books.take(id), map.take(id)),
        };
        if said != right {
            return Err(format!("step {step}: {said} for {id:?}, put {put}"));
        }
    }
    Ok(())
}

#[test]
fn random_completions_agree_with_the_reference() {
    common::property(&scripts(), |script| agrees(&mut slots(4), &script));
}

#[test]
fn planted_faults_are_found() {
    let script = vec![
        (true, 1, 0),
        (false, 1, 1),
        (false, 1, 0),
        (false, 1, 0),
        (true, 1, 1),
    ];
    assert_eq!(agrees(&mut slots(4), &script), Ok(()));
    assert_eq!(agrees(&mut Map::new(4, Fault::None), &script), Ok(()));
    for fault in [
        Fault::IgnoresTheGeneration,
        Fault::ClearsBeforeItLooks,
        Fault::KeepsWhatWasTaken,
    ] {
        assert!(agrees(&mut Map::new(4, fault), &script).is_err());
    }
}
