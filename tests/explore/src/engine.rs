// SPDX-License-Identifier: GPL-2.0

//! Runs the real code one step at a time.
//!
//! What a context does between two steps depends on nothing but the results of its steps so far. So
//! a context that is stopped is a list of those, a state is plain data, and a step is made by running
//! the context's code from its beginning with the recorded results, up to the first call that has
//! none: that one is carried out. At the next one the code is left again, by unwinding.

use crate::{
    facade::FAILED,
    irqmod::{
        policy::{
            Choice,
            Cpu,
            LINE_WORDS, //
        },
        Moderator, //
    },
    world::{
        Memory,
        State, //
    },
};
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    hash::{
        Hash,
        Hasher, //
    },
    panic::{
        catch_unwind,
        resume_unwind,
        AssertUnwindSafe, //
    },
    rc::Rc, //
};

/// What a context is about to do, and other contexts can see or prevent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// Read a word. One that begins a change is one step with it.
    Load { word: u32, begins: bool },
    /// Change a word from one value to another.
    Change { word: u32, old: u32, new: u32 },
    /// Add to a word.
    Add { word: u32, v: u32 },
    /// Look whether a completion is pending.
    Pending,
    /// Begin to drain at most that many.
    DrainBegin(u32),
    /// Take a completion, or end the drain of a queue that is empty, or if this was the last one
    /// that may be taken.
    DrainNext { last: bool },
    /// Look whether the device is reachable.
    Reachable,
    /// Disable the line, and mask its vector if asked to.
    Mask { nowait: bool },
    /// Disable the line from a task.
    MaskTask,
    /// Wait for handler and thread.
    Synchronize,
    /// Enable the line.
    Unmask,
    /// Schedule the poller and its like.
    Defer(u32),
    /// Begin to keep the line from being deferred.
    JoinBegin,
    /// Wait until nobody has the line.
    JoinEnd,
    /// Allow deferring again.
    EnableDeferred,
    /// Take the poller off the list.
    CompletePoller,
    /// Start the hold timer of the CPU.
    ArmHold,
    /// Start the line's timer.
    PollAfter,
    /// Look at the CPU.
    Glance,
    /// Read the clock.
    Now,
    /// Take the queue lock.
    Lock,
    /// Release it.
    Unlock,
    /// Let others run: the context begins anew.
    Relax,
    /// Take one of so many branches.
    Choose(u32),
    /// The line is the kernel's, or not.
    Requested(bool),
}

/// The result of a step.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A number, whose meaning the step knows.
    Word(u64),
    /// What the policies remember of a CPU.
    Cpu(Rc<Cpu>),
}

/// The results of a context's steps so far.
#[derive(Clone, Default)]
pub(crate) struct Log {
    values: Vec<Value>,
    hash: u64,
}

impl Log {
    fn push(&mut self, value: Value) {
        let new = match &value {
            Value::Word(word) => *word,
            Value::Cpu(cpu) => hash_of(&format!("{cpu:?}")),
        };
        self.hash = (self.hash.rotate_left(5) ^ new).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1;
        self.values.push(value);
    }

    /// The first result.
    pub(crate) fn first(&self) -> Option<u64> {
        match self.values.first() {
            Some(Value::Word(word)) => Some(*word),
            _ => None,
        }
    }
}

impl Hash for Log {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// A quick and deterministic hash.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        let mut x = self.0;
        x ^= x >> 32;
        x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ (x >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 31;
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// The hash of a value.
pub(crate) fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut mixer = Mixer::default();
    value.hash(&mut mixer);
    mixer.finish()
}

/// Words that the policy keeps: the packed choice, and its memory of the line.
pub(crate) const KEPT: usize = Choice::WORDS + LINE_WORDS;

/// What creating a moderator told about its words.
#[derive(Default)]
struct Layout {
    atomics: Vec<u32>,
    counters: u32,
    /// The slot of each counter among the kept words; those without one are counts.
    slots: Vec<Option<u8>>,
    /// The counters stored to while a choice is made.
    stored: Option<Vec<u32>>,
}

thread_local! {
    static LAYOUT: RefCell<Layout> = RefCell::default();
    static MODERATOR: Moderator = build();
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
    /// The results so far; apart, so that replaying them costs no more than a look.
    static REPLAY: RefCell<(Log, usize)> = RefCell::default();
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// One moderator serves all states: its words are numbers, the values are in the state.
fn build() -> Moderator {
    let choice = crate::irqmod::policy::Config::HARDIRQ;
    let moderator = Moderator::new(choice);
    LAYOUT.with_borrow_mut(|layout| layout.stored = Some(Vec::new()));
    moderator.set_choice(choice);
    LAYOUT.with_borrow_mut(|layout| {
        // The choice, and the memory of the line; what follows are counts of why nothing was done.
        let stored = layout.stored.take().unwrap_or_default();
        assert!(stored.len() >= KEPT, "words of a choice, and of a policy");
        layout.slots = vec![None; layout.counters as usize];
        for (slot, counter) in (0..).zip(stored.into_iter().take(KEPT)) {
            layout.slots[counter as usize] = Some(slot);
        }
        assert_eq!(layout.atomics, [0, 0], "the state word, and the guests");
    });
    moderator
}

/// Runs `f` with the moderator.
pub(crate) fn with_moderator<R>(f: impl FnOnce(&Moderator) -> R) -> R {
    MODERATOR.with(f)
}

pub(crate) fn new_atomic(v: u32) -> u32 {
    LAYOUT.with_borrow_mut(|layout| {
        layout.atomics.push(v);
        layout.atomics.len() as u32 - 1
    })
}

pub(crate) fn new_counter(_: usize) -> u32 {
    LAYOUT.with_borrow_mut(|layout| {
        layout.counters += 1;
        layout.counters - 1
    })
}

/// The slot of a counter that is a kept word.
fn slot(counter: u32) -> Option<usize> {
    LAYOUT.with_borrow(|layout| {
        let slot = layout.slots.get(counter as usize).copied().flatten();
        slot.map(usize::from)
    })
}

pub(crate) fn load_counter(counter: u32) -> usize {
    let Some(slot) = slot(counter) else {
        return 0;
    };
    match at_once(|state, _| Value::Word(state.world.kept[slot].into())) {
        Value::Word(word) => word as usize,
        Value::Cpu(_) => unreachable!("a word was loaded"),
    }
}

pub(crate) fn store_counter(counter: u32, v: usize) {
    let building = LAYOUT.with_borrow_mut(|layout| {
        let stored = layout.stored.as_mut();
        stored.map(|stored| stored.push(counter)).is_some()
    });
    let Some(slot) = slot(counter).filter(|_| !building) else {
        return;
    };
    at_once(|state, _| {
        state.world.kept[slot] = v as u32;
        Value::Word(0)
    });
}

/// Runs `f` on what the policies remember of the context's CPU.
pub(crate) fn on_cpu<R>(f: impl FnOnce(&mut Cpu) -> R) -> R {
    let Value::Cpu(before) = at_once(|state, me| {
        let cpu = state.ctxs[me].cpu;
        Value::Cpu(state.world.cpus[usize::from(cpu)].get())
    }) else {
        unreachable!("a CPU was looked at")
    };
    let mut cpu = *before;
    let result = f(&mut cpu);
    at_once(|state, me| {
        let here = state.ctxs[me].cpu;
        state.world.cpus[usize::from(here)] = Memory::new(cpu);
        Value::Word(0)
    });
    result
}

/// One step that is being made.
struct Run {
    state: State,
    me: usize,
    /// The step to carry out once the recorded ones are repeated; none for a context that begins.
    due: Option<Op>,
    /// Which of its results.
    choice: u32,
    /// The last one carried out, which may be the first half of a step.
    last: Option<Op>,
    /// Where the context stopped.
    next: Option<Op>,
}

/// How a context is left.
struct Leave;

fn recorded() -> Option<Value> {
    REPLAY.with_borrow_mut(|(log, at)| {
        let value = log.values.get(*at).cloned();
        *at += usize::from(value.is_some());
        value
    })
}

fn record(value: Value) {
    REPLAY.with_borrow_mut(|(log, at)| {
        log.push(value);
        *at += 1;
    });
}

/// What is no step of its own: part of the one before it.
fn at_once(f: impl FnOnce(&mut State, usize) -> Value) -> Value {
    if let Some(value) = recorded() {
        return value;
    }
    let value = RUN.with_borrow_mut(|run| {
        let run = run.as_mut().expect("a step is being made");
        f(&mut run.state, run.me)
    });
    record(value.clone());
    value
}

/// One step, if it is its turn.
pub(crate) fn step(op: Op) -> u64 {
    match recorded() {
        Some(Value::Word(word)) => return word,
        Some(Value::Cpu(_)) => panic!("the code does not repeat itself at {op:?}"),
        None => (),
    }
    let done = RUN.with_borrow_mut(|run| {
        let run = run.as_mut().expect("a step is being made");
        if let Some(due) = run.due.take() {
            assert_eq!(due, op, "the code does not repeat itself");
        } else if !completes(run, op) {
            run.next = Some(op);
            return None;
        }
        run.last = Some(op);
        let result = run.state.perform(run.me, op, run.choice);
        if op == Op::Relax {
            return None;
        }
        Some(result)
    });
    match done {
        Some(word) => {
            record(Value::Word(word));
            word
        }
        None => resume_unwind(Box::new(Leave)),
    }
}

/// Whether `op` is the second half of the step that was just made: a change that begins with a load
/// is as good as one that is made at once, because the load either refuses, or the change fails and
/// it begins again.
fn completes(run: &Run, op: Op) -> bool {
    match (run.last, op) {
        (Some(Op::Load { word, begins: true }), Op::Change { word: same, .. }) => word == same,
        _ => false,
    }
}

/// How a step went.
pub(crate) enum Outcome {
    /// The context stopped before its next step.
    Stopped(State),
    /// The context is finished, with this result of its code.
    Finished(State, u64),
    /// The code panicked.
    Panicked(State, String),
}

/// Makes the step that context `me` is stopped at, or the way to its first one. `code` is the
/// context's code from its beginning.
pub(crate) fn run(mut state: State, me: usize, choice: u32, code: impl FnOnce() -> u64) -> Outcome {
    let ctx = &mut state.ctxs[me];
    let log = std::mem::take(&mut ctx.log);
    let due = ctx.next.take();
    REPLAY.set((log, 0));
    RUN.set(Some(Run {
        state,
        me,
        due,
        choice,
        last: None,
        next: None,
    }));
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(code));
    QUIET.set(false);
    let run = RUN.take().expect("a step was being made");
    let mut state = run.state;
    let (log, _) = REPLAY.take();
    match result {
        Ok(result) => {
            state.ctxs[me].log = log;
            Outcome::Finished(state, result)
        }
        Err(payload) if payload.is::<Leave>() => {
            let again = run.next.is_none();
            let ctx = &mut state.ctxs[me];
            ctx.next = run.next;
            if !again {
                ctx.log = log;
            }
            Outcome::Stopped(state)
        }
        Err(payload) => {
            let text = match (
                payload.downcast_ref::<String>(),
                payload.downcast_ref::<&str>(),
            ) {
                (Some(text), _) => text.clone(),
                (_, Some(text)) => (*text).into(),
                _ => "of unknown type".into(),
            };
            Outcome::Panicked(state, text)
        }
    }
}

/// Keeps panics of the code that is explored from being printed: they are results.
pub(crate) fn quieten() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
}

/// The result of a failed change.
pub(crate) fn failed(now: u32) -> u64 {
    FAILED | u64::from(now)
}
