// SPDX-License-Identifier: GPL-2.0

//! The transition table of the state word: every edge from every one of the 32 words.

#![cfg(not(loom))]

use irqmod::{
    state::{
        Claim,
        Deposit,
        Disown,
        Entry,
        HandBack,
        Pause,
        Reclaim,
        Reopen,
        Reset,
        Resume,
        Snapshot,
        State,
        Stop,
        Withdraw, //
    },
    MaskToken, //
};
use std::{
    env,
    fmt::Write as _,
    fs,
    path::Path, //
};

const INIT: Snapshot = Snapshot::INIT;
const POLL: Snapshot = Snapshot::POLL;
const MASKED: Snapshot = Snapshot::MASKED;
const PAUSED: Snapshot = Snapshot::PAUSED;
const HANDOFF: Snapshot = Snapshot::HANDOFF;
const NONE: Snapshot = Snapshot::empty();

/// What an edge did to the books: the word changed or not, and how many tokens came out for those
/// that went in.
#[derive(Debug, PartialEq, Eq)]
struct Books {
    /// Name of the outcome.
    outcome: &'static str,
    /// Tokens given to the edge.
    given: u32,
    /// Tokens that it returned.
    returned: u32,
}

fn books(outcome: &'static str, given: u32, returned: Option<MaskToken>) -> Books {
    let count = u32::from(returned.is_some());
    if let Some(token) = returned {
        token.redeem();
    }
    Books {
        outcome,
        given,
        returned: count,
    }
}

/// One edge: when it is taken, what it does to the word then, and how to call it.
struct Edge {
    name: &'static str,
    needs: Snapshot,
    forbids: Snapshot,
    sets: Snapshot,
    clears: Snapshot,
    call: fn(&State) -> Books,
}

fn deposit(outcome: Deposit) -> Books {
    match outcome {
        Deposit::Stored => books("stored", 1, None),
        Deposit::Surplus(token) => books("surplus", 1, Some(token)),
    }
}

fn withdraw(outcome: Withdraw) -> Books {
    match outcome {
        Withdraw::Token(token) => books("token", 0, Some(token)),
        Withdraw::Empty => books("empty", 0, None),
    }
}

const EDGES: &[Edge] = &[
    Edge {
        name: "1 reset",
        needs: NONE,
        forbids: NONE,
        sets: NONE,
        clears: Snapshot::all(),
        call: |state| match state.transition_to_reset() {
            Reset::Clean => books("clean", 0, None),
            Reset::Forfeited(token) => books("forfeited", 0, Some(token)),
        },
    },
    Edge {
        name: "2 open",
        needs: NONE,
        forbids: NONE,
        sets: INIT,
        clears: NONE,
        call: |state| {
            state.transition_to_open();
            books("open", 0, None)
        },
    },
    Edge {
        name: "3 entered",
        needs: HANDOFF,
        forbids: NONE,
        sets: NONE,
        clears: HANDOFF,
        call: |state| {
            let before = state.snapshot();
            match state.transition_to_entered() {
                Entry::Plain(now) => {
                    assert_eq!(now, before);
                    assert!(!before.contains(HANDOFF));
                    books("plain", 0, None)
                }
                Entry::AfterUnmask(now) => {
                    assert_eq!(now, before - HANDOFF);
                    assert!(before.contains(HANDOFF));
                    books("after unmask", 0, None)
                }
            }
        },
    },
    Edge {
        name: "4 claimed",
        needs: INIT,
        forbids: POLL.union(MASKED).union(PAUSED),
        sets: POLL,
        clears: NONE,
        call: |state| {
            let before = state.snapshot();
            match state.transition_to_claimed() {
                Claim::Won => books("won", 0, None),
                Claim::Owned => {
                    assert!(before.contains(POLL));
                    books("owned", 0, None)
                }
                Claim::Refused => {
                    assert!(!before.contains(POLL));
                    books("refused", 0, None)
                }
            }
        },
    },
    Edge {
        name: "5 masked",
        needs: NONE,
        forbids: MASKED,
        sets: MASKED,
        clears: NONE,
        call: |state| deposit(state.transition_to_masked(MaskToken::mint())),
    },
    Edge {
        name: "6 handed back",
        needs: POLL,
        forbids: PAUSED,
        sets: HANDOFF,
        clears: POLL.union(MASKED),
        call: |state| match state.transition_to_handed_back() {
            HandBack::Released(token) => books("released", 0, token),
            HandBack::Refused => books("refused", 0, None),
        },
    },
    Edge {
        name: "7 reclaimed",
        needs: INIT.union(HANDOFF),
        forbids: POLL.union(MASKED).union(PAUSED),
        sets: POLL,
        clears: HANDOFF,
        call: |state| match state.transition_to_reclaimed() {
            Reclaim::Won => books("won", 0, None),
            Reclaim::Lost => books("lost", 0, None),
        },
    },
    Edge {
        name: "8 paused",
        needs: NONE,
        forbids: PAUSED,
        sets: PAUSED,
        clears: NONE,
        call: |state| {
            let before = state.snapshot();
            let (expected, outcome) = match (before.contains(PAUSED), before.contains(INIT)) {
                (true, _) => (Pause::Already, "already"),
                (false, true) => (Pause::Dedicated, "dedicated"),
                (false, false) => (Pause::Plain, "plain"),
            };
            assert_eq!(state.transition_to_paused(), expected);
            books(outcome, 0, None)
        },
    },
    Edge {
        name: "9 disowned",
        needs: NONE,
        forbids: NONE,
        sets: NONE,
        clears: POLL,
        call: |state| {
            let (expected, outcome) = match state.snapshot().contains(MASKED) {
                true => (Disown::Masked, "masked"),
                false => (Disown::Unmasked, "unmasked"),
            };
            assert_eq!(state.transition_to_disowned(), expected);
            books(outcome, 0, None)
        },
    },
    Edge {
        name: "10 stopped",
        needs: NONE,
        forbids: NONE,
        sets: PAUSED,
        clears: INIT,
        call: |state| {
            let before = state.snapshot();
            let (expected, outcome) = match (before.contains(INIT), before.contains(PAUSED)) {
                (false, true) => (Stop::Already, "already"),
                (false, false) => (Stop::Plain, "plain"),
                (true, false) => (Stop::Dedicated, "dedicated"),
                (true, true) => (Stop::DedicatedPaused, "dedicated and paused"),
            };
            assert_eq!(state.transition_to_stopped(), expected);
            books(outcome, 0, None)
        },
    },
    Edge {
        name: "11 resuming",
        needs: INIT.union(PAUSED).union(MASKED),
        forbids: NONE,
        sets: HANDOFF,
        clears: MASKED,
        call: |state| {
            let paused = state.snapshot().contains(INIT | PAUSED);
            match state.transition_to_resuming() {
                Resume::Unmask(token) => books("unmask", 0, Some(token)),
                Resume::NotMasked => {
                    assert!(paused);
                    books("not masked", 0, None)
                }
                Resume::Refused => {
                    assert!(!paused);
                    books("refused", 0, None)
                }
            }
        },
    },
    Edge {
        name: "12 running",
        needs: NONE,
        forbids: NONE,
        sets: NONE,
        clears: PAUSED.union(MASKED),
        call: |state| withdraw(state.transition_to_running()),
    },
    Edge {
        name: "13 unmasked",
        needs: NONE,
        forbids: NONE,
        sets: NONE,
        clears: MASKED,
        call: |state| withdraw(state.transition_to_unmasked()),
    },
    Edge {
        name: "14 reopened",
        needs: INIT,
        forbids: POLL.union(MASKED).union(PAUSED),
        sets: HANDOFF,
        clears: NONE,
        call: |state| match state.transition_to_reopened() {
            Reopen::Done => books("done", 0, None),
            Reopen::Skipped => books("skipped", 0, None),
        },
    },
    Edge {
        name: "15 kept",
        needs: INIT,
        forbids: MASKED,
        sets: MASKED,
        clears: NONE,
        call: |state| deposit(state.transition_to_kept(MaskToken::mint())),
    },
    Edge {
        name: "17 masked late",
        needs: POLL,
        forbids: MASKED,
        sets: MASKED,
        clears: NONE,
        call: |state| deposit(state.transition_to_masked_late(MaskToken::mint())),
    },
    Edge {
        name: "16 taken back",
        needs: INIT.union(MASKED),
        forbids: POLL.union(PAUSED),
        sets: NONE,
        clears: MASKED,
        call: |state| withdraw(state.transition_to_taken_back()),
    },
];

fn words() -> impl Iterator<Item = Snapshot> {
    (0..=Snapshot::all().bits()).map(Snapshot::from_bits_retain)
}

#[test]
fn every_edge_from_every_word() {
    for edge in EDGES {
        for before in words() {
            let state = State::new(before);
            let taken = before.contains(edge.needs) && !before.intersects(edge.forbids);
            let _ = (edge.call)(&state);
            let after = match taken {
                true => (before - edge.clears) | edge.sets,
                false => before,
            };
            assert_eq!(state.snapshot(), after, "{} from {before:?}", edge.name);
        }
    }
}

#[test]
fn masked_is_a_deposited_token() {
    for edge in EDGES {
        for before in words() {
            let state = State::new(before);
            let books = (edge.call)(&state);
            let held = |word: Snapshot| u32::from(word.contains(MASKED));
            assert_eq!(
                held(before) + books.given,
                held(state.snapshot()) + books.returned,
                "{} from {before:?}: {books:?}",
                edge.name
            );
        }
    }
}

#[test]
fn stopped_is_left_by_a_reset_only() {
    for edge in EDGES.iter().filter(|edge| !edge.name.starts_with("1 ")) {
        // A request opens what it has reset, and a resume runs what it was not refused.
        if ["2 open", "12 running"].contains(&edge.name) {
            continue;
        }
        for before in words().filter(|word| word.contains(PAUSED) && !word.contains(INIT)) {
            let state = State::new(before);
            let _ = (edge.call)(&state);
            let after = state.snapshot();
            assert!(
                after.contains(PAUSED) && !after.contains(INIT),
                "{}",
                edge.name
            );
        }
    }
}

#[test]
fn questions() {
    for word in words() {
        let expected = !word.intersects(POLL | MASKED | PAUSED | HANDOFF);
        assert_eq!(word.is_normal(), expected, "{word:?}");
        assert_eq!(word.is_owned(), word.contains(POLL));
        let shut = word.contains(PAUSED) && (word.contains(MASKED) || !word.contains(INIT));
        assert_eq!(word.is_shut(), shut, "{word:?}");
    }
}

/// A word in five columns: a letter for each bit, or a dash.
fn letters(word: Snapshot) -> String {
    [
        (INIT, 'I'),
        (POLL, 'P'),
        (MASKED, 'M'),
        (PAUSED, 'S'),
        (HANDOFF, 'H'), //
    ]
    .map(|(bit, letter)| if word.contains(bit) { letter } else { '-' })
    .iter()
    .collect()
}

/// What `edge` does from `before`: the new word, and the token that it takes in or gives out.
fn cell(edge: &Edge, before: Snapshot) -> String {
    let state = State::new(before);
    let books = (edge.call)(&state);
    let after = state.snapshot();
    let word = match after == before {
        true => "  .  ".into(),
        false => letters(after),
    };
    let token = match (books.given, books.returned) {
        (1, 0) => '+',
        (0, 1) => '^',
        (1, 1) => '=',
        _ => ' ',
    };
    format!("{word}{token}")
}

/// The outcomes of `edge`, each with the number of words that lead to it.
fn outcomes(edge: &Edge) -> String {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    for before in words() {
        let outcome = (edge.call)(&State::new(before)).outcome;
        match counts.iter_mut().find(|(name, _)| *name == outcome) {
            Some((_, count)) => *count += 1,
            None => counts.push((outcome, 1)),
        }
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(outcome, count)| format!("{outcome} {count}"))
        .collect();
    counts.join(", ")
}

const HEAD: &str = "\
.. SPDX-License-Identifier: GPL-2.0

==================================
Transition table of the state word
==================================

Written by ``IRQMOD_WRITE=1 cargo test -p irqmod --test state``, which calls every edge of the real state word
from each of its 32 words; without the variable the test fails if this page is out of date. What the edges are for, who takes
them and in which order is said in ``irqmod/src/state.rs``.

Bits: ``I`` INIT (deferring is possible), ``P`` POLL (owned by a deferred context), ``M`` MASKED (one disable of ours),
``S`` PAUSED, ``H`` HANDOFF (one empty interrupt is forgiven). ``-``: not set. A point: the word stays as it is. ``+``: the edge swallows
the token that it was given; ``=``: it hands that token back; ``^``: it returns the token that was deposited. Unmarked:
no token moves.

A word that no execution reaches has a row, too: the table is what the code does, not what is asked of it.

";

/// Edges in one block of the table: as many as fit on a line.
const COLUMNS: usize = 9;

/// The page with the table.
fn page() -> String {
    let mut page = String::from(HEAD);
    let mut edges: Vec<_> = EDGES.iter().collect();
    edges.sort_by_key(|edge| number(edge));
    for edges in edges.chunks(COLUMNS) {
        page.push_str("::\n\n   word ");
        for edge in edges {
            write!(page, "  {:<9}", number(edge)).unwrap();
        }
        page.push_str("\n        ");
        for edge in edges {
            let name = edge.name.trim_start_matches(|c: char| c.is_ascii_digit());
            write!(page, " {name:<10}").unwrap();
        }
        for before in words() {
            write!(page, "\n   {}", letters(before)).unwrap();
            for edge in edges {
                write!(page, "  {:<9}", cell(edge, before)).unwrap();
            }
        }
        page.push_str("\n\n");
    }
    page.push_str("Outcomes, with the number of words that lead to each:\n\n");
    for edge in edges {
        writeln!(page, "- {}: {}", edge.name, outcomes(edge)).unwrap();
    }
    // No blanks at the end of a line.
    page.lines()
        .map(str::trim_end)
        .fold(String::new(), |page, line| page + line + "\n")
}

fn number(edge: &Edge) -> u32 {
    let digits = edge.name.split(' ').next();
    digits.and_then(|digits| digits.parse().ok()).unwrap()
}

#[test]
fn the_documented_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Documentation/state-table.rst");
    let page = page();
    if env::var_os("IRQMOD_WRITE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "{} is out of date: IRQMOD_WRITE=1 cargo test -p irqmod --test state",
        path.display()
    );
}
