// SPDX-License-Identifier: GPL-2.0

//! Queue plans: who gets which vector, in the corners of HOT-03 too.

use nvme_pci::plan::{
    irq_sets,
    Kind,
    Plan,
    Wanted, //
};

fn wanted(cpus: u16, write_queues: u16, poll_queues: u16) -> Wanted {
    Wanted {
        cpus,
        write_queues,
        poll_queues,
    }
}

/// How many queues of each kind.
fn counts(plan: &Plan) -> [u16; 3] {
    [Kind::Default, Kind::Read, Kind::Poll].map(|kind| plan.set(kind).count)
}

#[test]
fn vectors_are_split_for_writes_and_reads() {
    let table = [
        // (I/O vectors, write queues) -> (default, read)
        ((0, 0), (1, 0)),
        ((0, 4), (1, 0)),
        ((1, 0), (1, 0)),
        ((1, 4), (1, 0)),
        ((2, 0), (2, 0)),
        ((2, 1), (1, 1)),
        ((2, 2), (1, 1)),
        ((2, 9), (1, 1)),
        ((8, 3), (3, 5)),
        ((8, 7), (7, 1)),
        ((8, 8), (7, 1)),
    ];
    for ((vectors, writes), expected) in table {
        assert_eq!(irq_sets(vectors, writes), expected, "{vectors} {writes}");
    }
}

#[test]
fn hot_03_queues_and_vectors_of_all_sizes() {
    // (cpus, writes, polls), granted, vectors -> default, read, poll; vector of queue 1
    let table = [
        ((2, 0, 0), 8, 1, [1, 0, 0], Some(0)),
        ((2, 0, 0), 8, 2, [1, 0, 0], Some(1)),
        ((2, 0, 0), 8, 3, [2, 0, 0], Some(1)),
        ((2, 0, 0), 2, 3, [2, 0, 0], Some(1)),
        ((2, 1, 0), 2, 3, [1, 1, 0], Some(1)),
        ((2, 1, 0), 3, 1, [1, 0, 0], Some(0)),
        ((2, 1, 1), 4, 1, [1, 0, 1], Some(0)),
        ((2, 1, 1), 4, 4, [1, 2, 1], Some(1)),
        ((8, 0, 2), 1, 2, [1, 0, 0], Some(1)),
        ((8, 0, 2), 2, 3, [1, 0, 1], Some(1)),
        ((8, 0, 9), 4, 5, [1, 0, 3], Some(1)),
        ((8, 0, 0), 0, 9, [0, 0, 0], None),
        ((4, 0, 0), 4, 0, [1, 0, 0], Some(0)),
        ((4, 0, 0), 4, 64, [4, 0, 0], Some(1)),
    ];
    for ((cpus, writes, polls), granted, vectors, expected, first) in table {
        let plan = Plan::new(&wanted(cpus, writes, polls), granted, vectors);
        let case = (cpus, writes, polls, granted, vectors);
        assert_eq!(counts(&plan), expected, "{case:?}");
        assert_eq!(plan.vector(1), first, "{case:?}");
        assert_eq!(plan.dedicated(1), first.is_some_and(|v| v > 0), "{case:?}");
    }
}

#[test]
fn what_to_ask_for() {
    // (cpus, writes, polls), doorbell pairs -> queues; vectors if all are granted, if two are
    let table = [
        ((4, 0, 0), 512, 4, 5, 3),
        ((4, 2, 3), 512, 9, 7, 2),
        ((4, 2, 3), 4, 3, 2, 2),
        ((4, 0, 0), 1, 0, 1, 3),
        ((u16::MAX, 1, 1), 65536, u16::MAX, u16::MAX, 2),
        ((1, 0, 0), 512, 1, 2, 3),
    ];
    for ((cpus, writes, polls), pairs, queues, all, two) in table {
        let wanted = wanted(cpus, writes, polls);
        assert_eq!(wanted.queues(pairs), queues, "{wanted:?}");
        assert_eq!(wanted.vectors(queues), all, "{wanted:?}");
        assert_eq!(wanted.vectors(2), two, "{wanted:?}");
    }
}

/// What holds for every plan.
fn sound(plan: &Plan, granted: u16, vectors: u16) -> Result<(), String> {
    if plan.total() > granted {
        return Err("more queues than granted".into());
    }
    if granted > 0 && plan.set(Kind::Default).count == 0 {
        return Err("nobody serves writes".into());
    }
    let mut used = Vec::new();
    for qid in 1..=plan.total() {
        match (plan.kind(qid), plan.vector(qid)) {
            (Some(Kind::Poll), None) => (),
            (Some(Kind::Default | Kind::Read), Some(vector)) => used.push(vector),
            other => return Err(format!("queue {qid}: {other:?}")),
        }
    }
    if used.iter().any(|vector| *vector >= vectors) {
        return Err(format!("vectors {used:?} of {vectors}"));
    }
    used.dedup();
    let own = !used.contains(&0);
    if used.len() != usize::from(plan.total() - plan.set(Kind::Poll).count) {
        return Err(format!("vectors used twice: {used:?}"));
    }
    if (1..=plan.total()).any(|qid| plan.dedicated(qid) && !own) {
        return Err("a shared vector would be moderated".into());
    }
    let outside = [0, plan.total() + 1];
    if outside.iter().any(|qid| plan.kind(*qid).is_some()) {
        return Err("a queue that does not exist".into());
    }
    Ok(())
}

#[test]
fn hot_03_every_small_plan_is_sound() {
    for cpus in 1..5 {
        for (writes, polls) in (0..5).flat_map(|writes| (0..5).map(move |polls| (writes, polls))) {
            let wanted = wanted(cpus, writes, polls);
            for (granted, vectors) in (0..9).flat_map(|g| (1..9).map(move |v| (g, v))) {
                let plan = Plan::new(&wanted, granted, vectors);
                sound(&plan, granted, vectors)
                    .unwrap_or_else(|error| panic!("{wanted:?} {granted} {vectors}: {error}"));
            }
        }
    }
}

#[test]
fn hardware_queues_follow_each_other() {
    let plan = Plan::new(&wanted(4, 2, 3), 9, 7);
    let sets = [Kind::Default, Kind::Read, Kind::Poll].map(|kind| {
        let set = plan.set(kind);
        (set.offset, set.count)
    });
    assert_eq!(sets, [(0, 2), (2, 4), (6, 3)]);
    let kinds: Vec<_> = (1..=9).map(|qid| plan.kind(qid)).collect();
    let expected = [
        [Kind::Default; 2].as_slice(),
        &[Kind::Read; 4],
        &[Kind::Poll; 3],
    ]
    .concat();
    assert_eq!(kinds, expected.into_iter().map(Some).collect::<Vec<_>>());
}
