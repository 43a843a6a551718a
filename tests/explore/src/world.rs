// SPDX-License-Identifier: GPL-2.0

//! The machine around one source: device, vector, interrupt core, irq_poll, threads, timers and lists
//! on two CPUs, and what must hold.
//!
//! In every state: one drainer; as many disables as there are tokens, in the state word or in the
//! hands of a context, and never one of a context that ended; no access to a line that was freed; nobody
//! waits for ever; hard interrupts take no lock, and what sleeps is a task without one. At the end of a
//! context: an empty interrupt is forgiven once after each time the source was given back, and not again;
//! a poller that used its weight up is still listed, and one that did not is not; a handler has
//! drained no more than its policy allows; after a pause nobody but an exclusive task drains, and nobody has
//! the line; after a stop no disable is left. Where nothing runs and nothing is due: no completion waits,
//! nobody owns an open line, and the depth is what the state word says.

use crate::{
    engine::{
        self,
        failed,
        hash_of,
        Log,
        Op,
        KEPT, //
    },
    irqmod::{
        observation::Glance,
        policy::{
            Choice,
            Cpu,
            Mask, //
        },
        state::Snapshot,
        time::{
            Instant,
            Span, //
        },
        Budget,
        Deferral,
        Drain,
        DrainRight,
        Handled,
        MaskToken,
        Pass,
        Platform,
        PollEnd,
        PollPass,
        Source, //
    },
    scenario::{
        Line,
        Scenario, //
    },
};
use std::{
    cell::RefCell,
    collections::BTreeSet,
    hash::{
        Hash,
        Hasher, //
    },
    mem,
    rc::Rc, //
};

/// What a task does with the life of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Life {
    Request,
    Pause,
    Resume,
    Stop,
    Exclusive { peek: bool },
}

/// The code that a context runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Handler,
    HoldEnd,
    Poll,
    Thread,
    Work,
    CpuThread,
    /// The task of the driver, which calls the life cycle.
    Driver(Life),
    /// Another task: a timeout.
    Guest {
        peek: bool,
    },
}

/// What a context is to the CPU it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Task,
    Softirq,
    Hardirq,
}

impl Kind {
    fn level(self) -> Level {
        match self {
            Self::Handler | Self::HoldEnd => Level::Hardirq,
            Self::Poll => Level::Softirq,
            _ => Level::Task,
        }
    }

    fn is_exclusive(self) -> bool {
        matches!(
            self,
            Self::Driver(Life::Exclusive { .. }) | Self::Guest { .. }
        )
    }
}

/// A context that has begun.
#[derive(Clone, Hash)]
pub(crate) struct Ctx {
    pub(crate) kind: Kind,
    pub(crate) cpu: u8,
    pub(crate) log: Log,
    pub(crate) next: Option<Op>,
    /// Tokens in its hands.
    tokens: i8,
    locked: bool,
    /// Completions taken.
    found: u8,
    /// It has masked the line.
    masked: bool,
    /// The poller was taken off the list.
    completed: bool,
    /// The state word when it began.
    word: u32,
}

/// Everything but the contexts.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) rules: &'static Scenario,
    /// The state word, and the guests.
    words: [u32; 2],
    pub(crate) kept: [u32; KEPT],
    pub(crate) cpus: [Memory; CPUS],
    plain: Plain,
}

/// What the policies remember of a CPU, with its hash.
#[derive(Clone)]
pub(crate) struct Memory {
    cpu: Rc<Cpu>,
    hash: u64,
}

impl Memory {
    pub(crate) fn new(cpu: Cpu) -> Self {
        Self {
            hash: hash_of(&format!("{cpu:?}")),
            cpu: Rc::new(cpu),
        }
    }

    pub(crate) fn get(&self) -> Rc<Cpu> {
        self.cpu.clone()
    }
}

/// CPUs of the machine.
pub(crate) const CPUS: usize = 2;

/// The rest of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Plain {
    // The device.
    tail: u8,
    head: u8,
    /// Messages that are yet to be sent.
    to_send: u8,
    reachable: bool,
    // The vector.
    masked: bool,
    latched: bool,
    /// Messages that are under way to a CPU.
    under_way: [bool; CPUS],
    target: u8,
    // The interrupt core.
    requested: bool,
    depth: u8,
    pending: bool,
    in_progress: bool,
    woken: bool,
    thread_runs: bool,
    /// The thread of a forced handler was woken by the poller, for which it is to wake the other one.
    forced: bool,
    wanted: bool,
    // irq_poll.
    sched: bool,
    listed: Option<u8>,
    polls: bool,
    poll_timer: bool,
    // The other deferred contexts.
    disabling: bool,
    queued: bool,
    work_runs: bool,
    held: Option<u8>,
    /// The hold timer of each CPU runs.
    armed: [bool; CPUS],
    expiring: bool,
    joined: Option<u8>,
    serving: bool,
    // The source.
    draining: bool,
    locked: bool,
    /// One empty interrupt may be forgiven.
    allowance: bool,
    // What the caller of the life cycle knows.
    paused: bool,
    stopped: bool,
    /// The device was reachable since the last request, or resume.
    clean: bool,
    /// It was not for a while, since the task began what it does.
    broke: bool,
    // What may still happen.
    posts: u8,
    spurious: u8,
    lives: u8,
    guests: u8,
    breaks: u8,
    migrations: u8,
    switches: u8,
}

/// One state.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) world: World,
    /// In the order of their kinds.
    pub(crate) ctxs: Vec<Ctx>,
    /// What is wrong.
    pub(crate) violation: Option<String>,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let world = &self.world;
        world.words.hash(state);
        world.kept.hash(state);
        for cpu in &world.cpus {
            cpu.hash.hash(state);
        }
        world.plain.hash(state);
        self.ctxs.hash(state);
    }
}

/// What happens without a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The device writes a completion, and tells nobody yet.
    Post,
    /// The message about one.
    Send,
    /// A message about nothing.
    Spurious,
    /// A message arrives at a CPU.
    Deliver(u8),
    /// Where messages are sent to changes.
    Migrate,
    Softirq(u8),
    PollTimer,
    Thread,
    /// The thread of a forced handler runs it, without an interrupt.
    Forced,
    Work,
    HoldTimer(u8),
    CpuThread,
    Begin(Life),
    Guest {
        peek: bool,
    },
    Free,
    Switch,
    Break,
    Repair,
}

/// One step from a state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Event(Event),
    Run { ctx: usize, choice: u32 },
}

/// The CPU of the task that calls the life cycle, and of the work item.
const DRIVERS_CPU: u8 = 1;

thread_local! {
    /// The changes of the state word that were seen.
    static CHANGES: RefCell<BTreeSet<(u32, u32)>> = RefCell::default();
}

/// The changes of the state word since the last call.
pub(crate) fn take_changes() -> BTreeSet<(u32, u32)> {
    CHANGES.take()
}

fn word(bits: u32) -> Snapshot {
    Snapshot::from_bits_retain(bits)
}

/// A word in five columns.
pub(crate) fn letters(bits: u32) -> String {
    ["I", "P", "M", "S", "H"]
        .iter()
        .enumerate()
        .map(|(i, letter)| if bits & 1 << i != 0 { letter } else { "-" })
        .collect()
}

impl State {
    /// Where an exploration begins.
    pub(crate) fn new(rules: &'static Scenario) -> Self {
        let mut state = Self::unrequested(rules);
        if rules.requested {
            state.happen(Event::Begin(Life::Request));
            while !state.ctxs.is_empty() {
                state = state.after(Step::Run { ctx: 0, choice: 0 });
            }
        }
        state
    }

    /// Before the first request.
    fn unrequested(rules: &'static Scenario) -> Self {
        let mut kept = [0; KEPT];
        let choice = rules.choice(0);
        kept[..Choice::WORDS].copy_from_slice(&choice.pack());
        let plain = Plain {
            tail: 0,
            head: 0,
            to_send: 0,
            reachable: true,
            masked: false,
            latched: false,
            under_way: [false; CPUS],
            target: 0,
            requested: false,
            depth: 0,
            pending: false,
            in_progress: false,
            woken: false,
            thread_runs: false,
            forced: false,
            wanted: false,
            sched: false,
            listed: None,
            polls: false,
            poll_timer: false,
            disabling: false,
            queued: false,
            work_runs: false,
            held: None,
            armed: [false; CPUS],
            expiring: false,
            joined: None,
            serving: false,
            draining: false,
            locked: false,
            allowance: false,
            paused: false,
            stopped: false,
            clean: true,
            broke: false,
            posts: rules.posts,
            spurious: rules.spurious,
            lives: rules.lives,
            guests: rules.guests,
            breaks: rules.breaks,
            migrations: rules.migrations,
            switches: rules.switches,
        };
        Self {
            world: World {
                rules,
                words: [0, 0],
                kept,
                cpus: std::array::from_fn(|_| Memory::new(Cpu::new())),
                plain,
            },
            ctxs: Vec::new(),
            violation: None,
        }
    }

    fn word(&self) -> Snapshot {
        word(self.world.words[0])
    }

    fn fail(&mut self, what: impl Into<String>) {
        self.violation.get_or_insert(what.into());
    }

    fn require(&mut self, holds: bool, what: &str) {
        if !holds {
            self.fail(what);
        }
    }

    /// The steps from here.
    ///
    /// One that nobody sees, and that nobody else's step changes, may as well be made before all
    /// others: then there are no others.
    pub(crate) fn steps(&self, steps: &mut Vec<Step>) {
        steps.clear();
        let private = |ctx: &Ctx| self.is_private(ctx) && self.may_run(ctx);
        if let Some(i) = self.ctxs.iter().position(private) {
            let choices = self.choices(&self.ctxs[i]);
            steps.extend((0..choices).map(|choice| Step::Run { ctx: i, choice }));
            return;
        }
        for (i, ctx) in self.ctxs.iter().enumerate() {
            if self.may_run(ctx) {
                let choices = self.choices(ctx);
                steps.extend((0..choices).map(|choice| Step::Run { ctx: i, choice }));
            }
        }
        self.due(|event| steps.push(Step::Event(event)));
        self.possible(|event| steps.push(Step::Event(event)));
    }

    /// Whether nothing but events of the environment can happen.
    fn is_idle(&self) -> bool {
        let mut idle = !self.ctxs.iter().any(|ctx| self.may_run(ctx));
        self.due(|_| idle = false);
        idle
    }

    /// Whether the next step of `ctx` is its own affair. To release the lock is, because all that
    /// can come before that can come after it.
    fn is_private(&self, ctx: &Ctx) -> bool {
        match ctx.next {
            Some(Op::Choose(_) | Op::Glance | Op::Now | Op::Relax | Op::Unlock) => true,
            Some(Op::Reachable) => self.world.plain.reachable && self.world.plain.breaks == 0,
            _ => false,
        }
    }

    /// How many results the next step of `ctx` can have.
    fn choices(&self, ctx: &Ctx) -> u32 {
        match ctx.next {
            Some(Op::Choose(n)) => n,
            Some(Op::Glance) if self.world.rules.pressure => 2,
            _ => 1,
        }
    }

    /// Whether `ctx` is on top of its CPU, and does not wait.
    fn may_run(&self, ctx: &Ctx) -> bool {
        let level = ctx.kind.level();
        let others = || {
            self.ctxs
                .iter()
                .filter(|other| other.cpu == ctx.cpu && other.kind != ctx.kind)
        };
        if others().any(|other| other.kind.level() > level) {
            return false;
        }
        if level == Level::Task && !ctx.locked && others().any(|other| other.locked) {
            return false;
        }
        let plain = &self.world.plain;
        match ctx.next {
            Some(Op::Lock) => !plain.locked,
            Some(Op::Synchronize) => self.is_synchronized(),
            Some(Op::JoinEnd) => {
                let deferred = plain.expiring || plain.serving || plain.sched;
                let deferred = deferred || plain.queued || plain.work_runs;
                let woken = plain.woken || plain.thread_runs || plain.forced;
                // Who has the lock may be about to defer.
                !deferred && !plain.locked && !woken
            }
            _ => true,
        }
    }

    fn is_synchronized(&self) -> bool {
        let plain = &self.world.plain;
        let late = self.world.rules.line == Line::Late && plain.under_way != [false; CPUS];
        let thread = plain.woken || plain.thread_runs || plain.forced;
        !(plain.in_progress || thread || late)
    }

    /// Whether `cpu` runs nothing at `level` or above, and nothing that keeps it off.
    fn is_open(&self, cpu: u8, level: Level) -> bool {
        !self.ctxs.iter().any(|ctx| {
            ctx.cpu == cpu && (ctx.kind.level() >= level || ctx.locked && level == Level::Softirq)
        })
    }

    fn has(&self, is: impl Fn(Kind) -> bool) -> bool {
        self.ctxs.iter().any(|ctx| is(ctx.kind))
    }

    /// Events that will happen by themselves.
    fn due(&self, mut event: impl FnMut(Event)) {
        let plain = &self.world.plain;
        if plain.to_send != 0 && plain.reachable {
            event(Event::Send);
        }
        for cpu in 0..CPUS as u8 {
            if plain.under_way[usize::from(cpu)] && self.is_open(cpu, Level::Hardirq) {
                event(Event::Deliver(cpu));
            }
        }
        match plain.listed {
            Some(cpu) if !plain.polls && self.is_open(cpu, Level::Softirq) => {
                event(Event::Softirq(cpu));
            }
            _ => (),
        }
        if plain.poll_timer {
            event(Event::PollTimer);
        }
        if plain.woken && !plain.thread_runs {
            event(Event::Thread);
        }
        if plain.forced && !plain.in_progress && self.is_open(0, Level::Hardirq) {
            event(Event::Forced);
        }
        if plain.queued && !plain.work_runs {
            event(Event::Work);
        }
        for cpu in 0..CPUS as u8 {
            if plain.armed[usize::from(cpu)] && self.is_open(cpu, Level::Hardirq) {
                event(Event::HoldTimer(cpu));
            }
        }
        if plain.joined.is_some() && !plain.serving {
            event(Event::CpuThread);
        }
    }

    /// Events that may happen, or not.
    fn possible(&self, mut event: impl FnMut(Event)) {
        let plain = &self.world.plain;
        if plain.posts != 0 && plain.reachable && plain.requested {
            event(Event::Post);
        }
        if plain.spurious != 0 && plain.requested {
            event(Event::Spurious);
        }
        if plain.migrations != 0 {
            event(Event::Migrate);
        }
        if plain.breaks != 0 && plain.reachable {
            event(Event::Break);
        }
        if !plain.reachable {
            event(Event::Repair);
        }
        let guest = self.has(|kind| matches!(kind, Kind::Guest { .. }));
        // A line that can't be deferred has nobody who looks for an interrupt that was lost.
        let opening = self.has(|kind| kind == Kind::Driver(Life::Request));
        let opening = opening && self.world.rules.line == Line::Lossy;
        if plain.guests != 0 && !guest && plain.requested && !opening {
            event(Event::Guest { peek: false });
            event(Event::Guest { peek: true });
        }
        if self.has(|kind| matches!(kind, Kind::Driver(_))) {
            return;
        }
        if !plain.requested {
            event(Event::Begin(Life::Request));
        }
        if plain.switches != 0 && (plain.paused || !plain.requested) {
            event(Event::Switch);
        }
        if plain.stopped && plain.requested && !guest && self.is_synchronized() {
            event(Event::Free);
        }
        if plain.lives != 0 && plain.requested {
            event(Event::Begin(Life::Pause));
            event(Event::Begin(Life::Resume));
            event(Event::Begin(Life::Stop));
            event(Event::Begin(Life::Exclusive { peek: false }));
            event(Event::Begin(Life::Exclusive { peek: true }));
        }
    }

    /// The state after `step`.
    pub(crate) fn after(&self, step: Step) -> Self {
        let mut state = self.clone();
        match step {
            Step::Event(event) => state.happen(event),
            Step::Run { ctx, choice } => state = state.run(ctx, choice),
        }
        if state.violation.is_none() {
            state.check();
        }
        state
    }

    fn happen(&mut self, event: Event) {
        let plain = &mut self.world.plain;
        match event {
            Event::Post => {
                plain.posts -= 1;
                plain.tail += 1;
                plain.to_send += 1;
            }
            Event::Send => {
                plain.to_send -= 1;
                self.send();
            }
            Event::Spurious => {
                plain.spurious -= 1;
                self.send();
            }
            Event::Migrate => {
                plain.migrations -= 1;
                plain.target ^= 1;
            }
            Event::Deliver(cpu) => self.deliver(cpu),
            Event::Softirq(cpu) => {
                plain.polls = true;
                self.begin(Kind::Poll, cpu);
            }
            Event::PollTimer => {
                plain.poll_timer = false;
                if !plain.sched {
                    plain.sched = true;
                    plain.listed = Some(0);
                }
            }
            Event::Thread => {
                plain.woken = false;
                plain.thread_runs = true;
                self.begin(Kind::Thread, 0);
            }
            Event::Forced => {
                plain.forced = false;
                plain.in_progress = true;
                self.begin(Kind::Handler, 0);
            }
            Event::Work => {
                plain.queued = false;
                plain.work_runs = true;
                self.begin(Kind::Work, DRIVERS_CPU);
            }
            Event::HoldTimer(cpu) => {
                plain.armed[usize::from(cpu)] = false;
                if plain.held == Some(cpu) {
                    plain.held = None;
                    plain.expiring = true;
                    self.begin(Kind::HoldEnd, cpu);
                }
            }
            Event::CpuThread => {
                if let Some(cpu) = plain.joined.take() {
                    plain.serving = true;
                    self.begin(Kind::CpuThread, cpu);
                }
            }
            Event::Begin(life) => self.begin_life(life),
            Event::Guest { peek } => {
                plain.guests -= 1;
                self.begin(Kind::Guest { peek }, 0);
            }
            Event::Free => self.free(),
            Event::Switch => {
                let left = plain.switches - 1;
                plain.switches = left;
                let choice = self.world.rules.choice(self.world.rules.switches - left);
                self.world.kept = [0; KEPT];
                self.world.kept[..Choice::WORDS].copy_from_slice(&choice.pack());
            }
            Event::Break => {
                plain.breaks -= 1;
                plain.reachable = false;
                plain.clean = false;
                plain.broke = true;
            }
            Event::Repair => {
                plain.reachable = true;
                // A pause could not mask: now the handler drains, until the next pause.
                plain.paused &= word(self.world.words[0]).is_shut();
            }
        }
    }

    fn begin_life(&mut self, life: Life) {
        let shut = self.word().is_shut();
        let dedicated = self.word().contains(Snapshot::INIT);
        let plain = &mut self.world.plain;
        if life != Life::Request {
            plain.lives -= 1;
        }
        plain.broke = !plain.reachable;
        match life {
            Life::Request => {
                plain.stopped = false;
                plain.paused = false;
                plain.clean = plain.reachable;
                plain.head = plain.tail;
                plain.to_send = 0;
                plain.masked = false;
                plain.latched = false;
            }
            Life::Resume if plain.reachable && dedicated => plain.paused = false,
            Life::Stop => plain.paused &= shut,
            _ => (),
        }
        self.begin(Kind::Driver(life), DRIVERS_CPU);
    }

    /// The device sends a message, or remembers that it would.
    fn send(&mut self) {
        let line = self.world.rules.line;
        let plain = &mut self.world.plain;
        if plain.masked {
            plain.latched = line != Line::Lossy;
        } else if line == Line::Late && plain.depth != 0 {
            // Only what was sent before the mask is late.
            plain.pending = true;
        } else {
            plain.under_way[usize::from(plain.target)] = true;
        }
    }

    /// The edge flow of the interrupt core.
    fn deliver(&mut self, cpu: u8) {
        let line = self.world.rules.line;
        let plain = &mut self.world.plain;
        plain.under_way[usize::from(cpu)] = false;
        if !plain.requested {
            return;
        }
        if plain.in_progress {
            plain.pending = true;
            return;
        }
        if plain.depth != 0 && line != Line::Late {
            // The lazy mask: only now the vector is masked.
            plain.pending |= line != Line::Lossy;
            plain.masked = true;
            return;
        }
        plain.in_progress = true;
        self.begin(Kind::Handler, cpu);
    }

    /// The vector is open again: what was latched is sent.
    fn open_vector(&mut self) {
        let plain = &mut self.world.plain;
        plain.masked = false;
        if mem::take(&mut plain.latched) {
            plain.under_way[usize::from(plain.target)] = true;
        }
    }

    fn free(&mut self) {
        let word = self.word();
        let plain = &mut self.world.plain;
        let kept = u8::from(word.contains(Snapshot::MASKED));
        let idle = plain.listed.is_none() && plain.held.is_none() && plain.joined.is_none();
        let idle = idle && !plain.queued && !plain.poll_timer;
        let balanced = plain.depth == kept;
        plain.requested = false;
        plain.depth = 0;
        plain.pending = false;
        plain.woken = false;
        plain.forced = false;
        plain.under_way = [false; CPUS];
        self.require(
            balanced,
            "freed with a disable that is not in the state word",
        );
        self.require(idle, "freed while it is deferred");
    }

    /// A context begins, and runs up to its first step.
    fn begin(&mut self, kind: Kind, cpu: u8) {
        let at = self.ctxs.partition_point(|ctx| ctx.kind <= kind);
        let ctx = Ctx {
            kind,
            cpu,
            log: Log::default(),
            next: None,
            tokens: 0,
            locked: false,
            found: 0,
            masked: false,
            completed: false,
            word: self.world.words[0],
        };
        self.ctxs.insert(at, ctx);
        let hollow = Self {
            world: self.world.clone(),
            ctxs: Vec::new(),
            violation: None,
        };
        *self = mem::replace(self, hollow).run(at, 0);
    }

    /// The next step of a context.
    fn run(self, me: usize, choice: u32) -> Self {
        let kind = self.ctxs[me].kind;
        let rules = self.world.rules;
        let weight = self.weight();
        match engine::run(self, me, choice, || enter(kind, rules, weight)) {
            engine::Outcome::Stopped(state) if state.ctxs[me].next.is_none() => {
                if state.violation.is_some() {
                    return state;
                }
                // It begins anew.
                state.run(me, 0)
            }
            engine::Outcome::Stopped(state) => state,
            engine::Outcome::Finished(mut state, result) => {
                let ctx = state.ctxs.remove(me);
                state.finish(ctx, result);
                state
            }
            engine::Outcome::Panicked(mut state, text) => {
                state.fail(format!("panic: {text}"));
                state
            }
        }
    }

    /// The weight of the poller.
    fn weight(&self) -> Budget {
        let words = std::array::from_fn(|i| self.world.kept[i]);
        Choice::unpack(words).policy.budget()
    }

    /// Carries a step out.
    pub(crate) fn perform(&mut self, me: usize, op: Op, choice: u32) -> u64 {
        let (kind, cpu) = (self.ctxs[me].kind, self.ctxs[me].cpu);
        self.check_context(me, op);
        let plain = &mut self.world.plain;
        match op {
            Op::Load { word, begins } => return self.load(kind, word, begins).into(),
            Op::Change { word, old, new } => return self.change(me, word, old, new),
            Op::Add { word, v } => {
                let word = &mut self.world.words[word as usize];
                let old = *word;
                *word = old.wrapping_add(v);
                return old.into();
            }
            Op::Pending => return u64::from(plain.tail != plain.head),
            Op::DrainBegin(_) => self.begin_drain(me),
            Op::DrainNext { last } => return self.drain_next(me, last),
            Op::Reachable => return plain.reachable.into(),
            Op::Mask { nowait } => {
                plain.depth += 1;
                plain.masked |= nowait;
                self.ctxs[me].tokens += 1;
                self.ctxs[me].masked = true;
            }
            Op::MaskTask => {
                plain.depth += 1;
                self.ctxs[me].tokens += 1;
            }
            Op::Unmask => {
                self.ctxs[me].tokens -= 1;
                if plain.depth == 0 {
                    self.fail("unbalanced enable");
                    return 0;
                }
                plain.depth -= 1;
                if plain.depth == 0 {
                    if mem::take(&mut plain.pending) {
                        plain.under_way[usize::from(plain.target)] = true;
                    }
                    self.open_vector();
                }
            }
            Op::ArmHold => plain.armed[usize::from(cpu)] = true,
            Op::Defer(to) => {
                // Without a drain of its own it is held by the timer of another line.
                let others = to == HOLD && self.ctxs[me].found == 0;
                plain.armed[usize::from(cpu)] |= others;
                self.defer(to, me);
            }
            Op::JoinBegin => {
                let twice = mem::replace(&mut plain.disabling, true);
                plain.poll_timer = false;
                plain.held = None;
                plain.joined = None;
                self.require(!twice, "joined twice");
            }
            Op::JoinEnd => {
                plain.sched = true;
                plain.wanted = false;
            }
            Op::EnableDeferred => {
                let was = mem::take(&mut plain.disabling) && mem::take(&mut plain.sched);
                let was = was && plain.listed.is_none();
                self.require(was, "enabled, but not disabled");
            }
            Op::CompletePoller => {
                let listed = plain.listed.take() == Some(cpu) && mem::take(&mut plain.polls);
                plain.sched = false;
                let twice = mem::replace(&mut self.ctxs[me].completed, true);
                self.require(listed && !twice, "completed, but not on the list");
            }
            Op::PollAfter => plain.poll_timer = !plain.disabling,
            Op::Glance => {
                let mut glance = Glance::empty();
                glance.set(Glance::HARDIRQ, !self.world.rules.forced);
                glance.set(Glance::RESCHED, choice != 0);
                return glance.bits().into();
            }
            Op::Now => return 0,
            Op::Lock => {
                plain.locked = true;
                self.ctxs[me].locked = true;
            }
            Op::Unlock => {
                plain.locked = false;
                self.ctxs[me].locked = false;
            }
            Op::Choose(_) => return choice.into(),
            Op::Requested(requested) => {
                plain.requested = requested;
                plain.depth = 0;
            }
            Op::Synchronize | Op::Relax => (),
        }
        0
    }

    /// Whether `op` may be called where it is.
    fn check_context(&mut self, me: usize, op: Op) {
        let ctx = &self.ctxs[me];
        let (level, locked, kind) = (ctx.kind.level(), ctx.locked, ctx.kind);
        let requested = self.world.plain.requested;
        match op {
            Op::MaskTask | Op::Synchronize | Op::JoinBegin | Op::JoinEnd | Op::Relax => {
                self.require(level == Level::Task && !locked, "sleeps where it must not");
            }
            Op::Lock => self.require(
                level != Level::Hardirq && !locked,
                "a lock where it must not be",
            ),
            Op::Mask { .. } => {
                self.require(kind == Kind::Handler, "masked without waiting by others");
                self.require(requested, "masks a freed line");
            }
            Op::Unmask => self.require(requested, "unmasks a freed line"),
            Op::Defer(_) | Op::PollAfter => self.require(requested, "defers a freed line"),
            Op::CompletePoller => self.require(kind == Kind::Poll && locked, "not the poller's"),
            Op::DrainBegin(_) => {
                self.require(locked || kind == Kind::Handler, "drains without the lock");
            }
            _ => (),
        }
    }

    fn load(&mut self, kind: Kind, number: u32, begins: bool) -> u32 {
        let value = self.world.words[number as usize];
        let entry = number == 0 && kind == Kind::Handler && !begins;
        if entry && word(value).contains(Snapshot::HANDOFF) {
            let allowed = mem::take(&mut self.world.plain.allowance);
            self.require(allowed, "a second interrupt may be empty");
        }
        value
    }

    fn change(&mut self, me: usize, number: u32, old: u32, new: u32) -> u64 {
        let now = &mut self.world.words[number as usize];
        if *now != old {
            return failed(*now);
        }
        *now = new;
        if number != 0 {
            return old.into();
        }
        CHANGES.with_borrow_mut(|changes| changes.insert((old, new)));
        let (before, after) = (word(old), word(new));
        let set = after - before;
        let cleared = before - after;
        let ctx = &mut self.ctxs[me];
        // A request finds what the line that was freed has left, and no disable.
        if ctx.kind != Kind::Driver(Life::Request) {
            ctx.tokens += i8::from(cleared.contains(Snapshot::MASKED));
            ctx.tokens -= i8::from(set.contains(Snapshot::MASKED));
        }
        if set.contains(Snapshot::HANDOFF) {
            self.world.plain.allowance = true;
        }
        old.into()
    }

    fn begin_drain(&mut self, me: usize) {
        let kind = self.ctxs[me].kind;
        let plain = &mut self.world.plain;
        let second = mem::replace(&mut plain.draining, true);
        let paused = plain.paused && !kind.is_exclusive();
        self.require(!second, "a second drainer");
        self.require(!paused, "drained after a pause");
    }

    /// 0: the queue is empty; 1: took one; 2: the budget is used up.
    fn drain_next(&mut self, me: usize, last: bool) -> u64 {
        let plain = &mut self.world.plain;
        if plain.tail == plain.head {
            plain.draining = false;
            return 0;
        }
        if last {
            plain.draining = false;
            return 2;
        }
        plain.head += 1;
        self.ctxs[me].found += 1;
        1
    }

    fn defer(&mut self, to: u32, me: usize) {
        let (kind, cpu) = (self.ctxs[me].kind, self.ctxs[me].cpu);
        let plain = &mut self.world.plain;
        if to == THREAD {
            plain.forced |= self.world.rules.forced;
            plain.wanted = plain.forced;
            plain.woken |= !self.world.rules.forced;
            return self.require(kind == Kind::Poll, "the handler's answer wakes the thread");
        }
        if plain.disabling {
            return;
        }
        match to {
            SOFTIRQ if !plain.sched => {
                plain.sched = true;
                plain.listed = Some(cpu);
            }
            WORK => plain.queued = true,
            HOLD => {
                let twice = plain.held.replace(cpu).is_some();
                self.require(!twice, "held twice");
            }
            CPU => {
                let twice = plain.joined.replace(cpu).is_some();
                self.require(!twice, "on a CPU's list twice");
            }
            _ => (),
        }
    }

    /// The code of a context returned.
    fn finish(&mut self, ctx: Ctx, result: u64) {
        if ctx.kind != Kind::Driver(Life::Request) {
            self.require(ctx.tokens == 0, "a token was dropped, or made up");
        }
        self.require(!ctx.locked, "the lock was kept");
        let plain = &mut self.world.plain;
        match ctx.kind {
            Kind::Handler => self.finish_handler(&ctx, result),
            Kind::HoldEnd => plain.expiring = false,
            Kind::Poll => self.finish_poll(&ctx, result),
            Kind::Thread => plain.thread_runs = false,
            Kind::Work => plain.work_runs = false,
            Kind::CpuThread => {
                plain.serving = false;
                if result != 0 && !plain.disabling {
                    let twice = plain.joined.replace(ctx.cpu).is_some();
                    self.require(!twice, "on a CPU's list twice");
                }
            }
            Kind::Driver(life) => self.finish_life(life, &ctx),
            Kind::Guest { .. } => (),
        }
    }

    fn finish_handler(&mut self, ctx: &Ctx, result: u64) {
        let first = word(ctx.log.first().unwrap_or_default() as u32);
        let empty = ctx.found == 0 && !ctx.masked;
        if first == Snapshot::INIT && empty {
            self.require(result == NONE, "an empty interrupt is not forgiven");
        }
        if first.contains(Snapshot::HANDOFF) {
            self.require(result != NONE, "the first empty interrupt is forgiven");
        }
        // A pause that comes in between refuses to let it be deferred, once.
        let paused = (first | self.word()).contains(Snapshot::PAUSED);
        if first.contains(Snapshot::INIT) && !paused {
            let bound = self.world.rules.bound;
            self.require(
                u32::from(ctx.found) <= bound,
                "drained too much in the handler",
            );
        }
        let plain = &mut self.world.plain;
        plain.woken |= result == WAKE || mem::take(&mut plain.wanted);
        if plain.pending && plain.depth == 0 {
            plain.pending = false;
            self.open_vector();
            self.begin(Kind::Handler, ctx.cpu);
        } else {
            plain.in_progress = false;
        }
    }

    fn finish_poll(&mut self, ctx: &Ctx, work: u64) {
        let weight = u64::from(self.weight().get());
        self.require(u64::from(ctx.found) <= weight, "polled too much");
        let plain = &mut self.world.plain;
        if work < weight {
            return self.require(ctx.completed, "less than the weight, but still on the list");
        }
        if ctx.completed {
            return self.fail("the weight, but completed");
        }
        plain.polls = false;
        if plain.disabling {
            plain.listed = None;
            plain.sched = false;
        }
    }

    fn finish_life(&mut self, life: Life, ctx: &Ctx) {
        let now = self.word();
        let plain = &mut self.world.plain;
        let whole = plain.reachable && !plain.broke;
        let dedicated = now.contains(Snapshot::INIT);
        match life {
            Life::Pause => {
                plain.paused = now.is_shut() || !plain.reachable;
                let idle = plain.listed.is_none() && !plain.queued && plain.held.is_none();
                let idle = idle && plain.joined.is_none() && !plain.poll_timer;
                let idle = idle && !plain.woken && !plain.forced;
                if dedicated {
                    self.require(idle, "deferred after a pause");
                    self.require(!now.is_owned(), "owned after a pause");
                }
                if dedicated && whole {
                    self.require(now.is_shut(), "open after a pause");
                }
            }
            Life::Resume => {
                plain.paused &= now.contains(Snapshot::PAUSED);
                plain.clean |= whole && word(ctx.word).contains(Snapshot::PAUSED);
                if whole && dedicated {
                    let paused = now.contains(Snapshot::PAUSED);
                    self.require(!paused, "paused after a resume");
                }
            }
            Life::Stop => {
                plain.paused = true;
                plain.stopped = true;
                let kept = now.contains(Snapshot::MASKED);
                let disabled = plain.sched || plain.disabling;
                // What was kept because the device was unreachable ends with the line.
                if whole && plain.clean {
                    self.require(!kept, "masked after a stop");
                }
                self.require(!disabled, "the poller is disabled after a stop");
                self.require(!dedicated, "deferring is possible after a stop");
            }
            Life::Request | Life::Exclusive { .. } => (),
        }
    }

    /// What holds in every state, and in a quiescent one.
    fn check(&mut self) {
        let held: i32 = self.ctxs.iter().map(|ctx| i32::from(ctx.tokens)).sum();
        let plain = &self.world.plain;
        let now = self.word();
        let tokens = held + i32::from(now.contains(Snapshot::MASKED));
        let requesting = self.has(|kind| kind == Kind::Driver(Life::Request));
        if plain.requested && !requesting && i32::from(plain.depth) != tokens {
            return self.fail("the depth is not the number of tokens");
        }
        if self.ctxs.iter().any(|ctx| ctx.tokens < 0) {
            return self.fail("a token was made up");
        }
        if !self.is_idle() {
            return;
        }
        if !self.ctxs.is_empty() {
            return self.fail("deadlock");
        }
        self.check_quiescent();
    }

    fn check_quiescent(&mut self) {
        let now = self.word();
        let plain = &self.world.plain;
        if !plain.requested || !plain.clean || !plain.reachable {
            return;
        }
        let plain = plain.clone();
        if plain.paused {
            if now.contains(Snapshot::INIT) {
                self.require(plain.depth == 1, "a pause that does not mask once");
                self.require(!now.is_owned(), "paused, and owned");
            }
            return;
        }
        self.require(!now.is_owned(), "owned, and nobody is scheduled");
        self.require(plain.depth == 0, "masked at the end");
        self.require(!plain.masked, "the vector is masked at the end");
        self.require(!now.contains(Snapshot::PAUSED), "paused, and nobody did");
        self.require(plain.tail == plain.head, "a lost completion");
        self.require(!plain.sched && !plain.disabling, "nothing can be deferred");
    }

    /// `step`, for a reader.
    pub(crate) fn describe(&self, step: Step) -> String {
        match step {
            Step::Event(event) => format!("     {event:?}"),
            Step::Run { ctx, choice } => {
                let ctx = &self.ctxs[ctx];
                let op = match ctx.next {
                    Some(Op::Change { word: 0, old, new }) => {
                        format!("word {} -> {}", letters(old), letters(new))
                    }
                    Some(Op::Load { word: 0, begins }) => {
                        let what = if begins { "changes" } else { "reads" };
                        format!("{what} the word")
                    }
                    Some(op) => format!("{op:?}"),
                    None => "begins".into(),
                };
                let chosen = match self.choices(ctx) {
                    1 => String::new(),
                    _ => format!(" -> {choice}"),
                };
                format!("CPU{} {:?}: {op}{chosen}", ctx.cpu, ctx.kind)
            }
        }
    }

    /// The state for a reader.
    pub(crate) fn summary(&self) -> String {
        let plain = &self.world.plain;
        format!(
            "{} depth {} waiting {}",
            letters(self.world.words[0]),
            plain.depth,
            plain.tail - plain.head
        )
    }
}

// Where to defer to, as numbers.
const SOFTIRQ: u32 = 0;
const THREAD: u32 = 1;
const WORK: u32 = 2;
const HOLD: u32 = 3;
const CPU: u32 = 4;

// Answers of the handler.
const NONE: u64 = 0;
const HANDLED: u64 = 1;
const WAKE: u64 = 2;

/// The code of a context, with its result.
fn enter(kind: Kind, rules: &Scenario, weight: Budget) -> u64 {
    engine::with_moderator(|moderator| match kind {
        Kind::Handler => match moderator.on_interrupt(&Queue, &Machine) {
            Handled::None => NONE,
            Handled::Handled => HANDLED,
            Handled::WakeThread => WAKE,
        },
        Kind::HoldEnd => {
            moderator.on_hold_end(&Queue, &Machine);
            0
        }
        Kind::Poll => {
            let pass = PollPass::new(weight);
            moderator.on_poll(&Queue, &Machine, pass).work().into()
        }
        Kind::Thread | Kind::Work => {
            let _ = moderator.on_thread(&Queue, &Machine);
            0
        }
        Kind::CpuThread => match moderator.on_pass(&Queue, &Machine, weight) {
            Pass::Done => 0,
            Pass::Again | Pass::Rest(_) => 1,
        },
        Kind::Driver(life) => {
            match life {
                Life::Request => {
                    moderator.prepare();
                    engine::step(Op::Requested(true));
                    if rules.dedicated {
                        moderator.start();
                    }
                }
                Life::Pause => moderator.pause(&Queue, &Machine),
                Life::Resume => moderator.resume(&Queue, &Machine),
                Life::Stop => moderator.stop(&Queue, &Machine),
                Life::Exclusive { peek } => exclusive(moderator, peek),
            }
            0
        }
        Kind::Guest { peek } => {
            exclusive(moderator, peek);
            0
        }
    })
}

fn exclusive(moderator: &crate::irqmod::Moderator, peek: bool) {
    let budget = match (peek, Budget::new(1)) {
        (true, Some(one)) => one,
        _ => Budget::UNLIMITED,
    };
    moderator.exclusive(&Queue, &Machine, |queue| {
        let _ = queue.drain(budget);
    });
}

/// The completion queue.
struct Queue;

impl Source for Queue {
    fn pending(&self) -> bool {
        engine::step(Op::Pending) != 0
    }

    fn drain(_: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        engine::step(Op::DrainBegin(budget.get()));
        let mut found = 0;
        loop {
            let last = found == budget.get();
            match engine::step(Op::DrainNext { last }) {
                0 => return Drain::Drained(found),
                1 => found += 1,
                _ => return Drain::More(found),
            }
        }
    }

    fn reachable(&self) -> bool {
        engine::step(Op::Reachable) != 0
    }
}

/// The machine.
struct Machine;

impl Platform for Machine {
    fn mask(&self, how: Mask) -> MaskToken {
        engine::step(Op::Mask {
            nowait: how == Mask::Nowait,
        });
        MaskToken::mint()
    }

    fn mask_sync(&self) -> MaskToken {
        engine::step(Op::MaskTask);
        engine::step(Op::Synchronize);
        MaskToken::mint()
    }

    fn unmask(&self, token: MaskToken) {
        token.redeem();
        engine::step(Op::Unmask);
    }

    fn synchronize(&self) {
        engine::step(Op::Synchronize);
    }

    fn defer(&self, to: Deferral) {
        engine::step(Op::Defer(match to {
            Deferral::Softirq => SOFTIRQ,
            Deferral::Thread => THREAD,
            Deferral::Work => WORK,
            Deferral::Hold => HOLD,
            Deferral::Cpu => CPU,
        }));
    }

    fn arm_hold(&self, _: Span) {
        engine::step(Op::ArmHold);
    }

    fn poll_after(&self, _: Span) {
        engine::step(Op::PollAfter);
    }

    fn complete_poller(&self, pass: PollPass) -> PollEnd {
        engine::step(Op::CompletePoller);
        pass.completed()
    }

    fn join_deferred(&self) {
        engine::step(Op::JoinBegin);
        engine::step(Op::JoinEnd);
    }

    fn enable_deferred(&self) {
        engine::step(Op::EnableDeferred);
    }

    fn glance(&self) -> Glance {
        Glance::from_bits_retain(engine::step(Op::Glance) as u32)
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(engine::step(Op::Now))
    }

    fn switches(&self) -> u64 {
        0
    }

    fn on_cpu<R>(&self, f: impl FnOnce(&mut Cpu) -> R) -> R {
        engine::on_cpu(f)
    }

    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        engine::step(Op::Lock);
        let result = f();
        engine::step(Op::Unlock);
        result
    }

    fn relax(&self) {
        engine::step(Op::Relax);
    }

    fn sleep(&self, _: Span) {
        engine::step(Op::Relax);
    }
}
