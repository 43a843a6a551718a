// SPDX-License-Identifier: GPL-2.0

//! Rules that hold in every run, whatever the faults, and the one who watches them.
//!
//! The checker is told what happens and keeps books of its own; it looks at nothing of the machine.

use crate::Ns;
use serde::Serialize;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Rule {
    /// One context at a time drains a queue.
    SingleDrainer,
    /// A line is enabled as often as it was disabled, and ends up enabled.
    MaskBalance,
    /// A softirq poller is completed once, and then does not claim to go on.
    PollList,
    /// Every request is completed once.
    ExactlyOnce,
    /// The kernel does not switch a line off because nobody wanted its interrupts.
    Stray,
    /// A completion is not left in a queue that nobody will look at.
    LostWakeUp,
    /// One run of a handler is bounded.
    BoundedDrain,
    /// Ordinary tasks do not wait for longer than promised.
    BoundedWait,
    /// Ordinary tasks get their share of a CPU.
    FairShare,
    /// An empty interrupt is wanted once after an unmask, and not again.
    Verdict,
    /// After the faults have ended, all requests do.
    Liveness,
}

impl Rule {
    /// Whether it is about a CPU, and not about a line.
    pub fn is_about_cpu(self) -> bool {
        matches!(self, Self::BoundedWait | Self::FairShare)
    }
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// When.
    pub at: Ns,
    /// Which.
    pub rule: Rule,
    /// On which line, or CPU if the rule is about one.
    pub line: u32,
    /// How.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (ms, us) = (self.at / 1_000_000, self.at / 1_000 % 1_000);
        let place = if self.rule.is_about_cpu() {
            "CPU"
        } else {
            "line"
        };
        let (rule, line, what) = (self.rule, self.line, &self.what);
        write!(f, "{rule:?}, {place} {line}, at {ms}.{us:03} ms: {what}")
    }
}

/// What the policy promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// The longest run of a handler.
    pub handler: Option<Ns>,
    /// The longest wait of ordinary tasks.
    pub wait: Option<Ns>,
    /// What ordinary tasks that want a CPU get of it, of 1,000 parts.
    pub share: Option<u32>,
    /// The time for which they may get nothing of that.
    pub share_after: Ns,
}

/// The books on one line.
#[derive(Clone, Copy, Default)]
struct Line {
    drainers: u32,
    depth: i64,
    listed: bool,
    /// An empty interrupt is forgiven.
    forgiving: bool,
    /// The kernel's count: interrupts, and those that nobody wanted.
    recent: u32,
    strays: u32,
}

/// Interrupts that the kernel looks at together, and how many of them may be strays.
const WINDOW: u32 = 100_000;
const STRAYS: u32 = 99_900;
/// Violations that are kept.
const KEPT: usize = 20;

/// The one who watches.
#[derive(Default)]
pub(crate) struct Checker {
    lines: Vec<Line>,
    /// The line of each request that is under way.
    requests: Vec<Option<u32>>,
    promises: Promises,
    pub(crate) violations: Vec<Violation>,
}

/// How a handler answered.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) wanted: bool,
    pub(crate) took: Ns,
    /// It drained or deferred something, or left the line to someone who owns it.
    pub(crate) useful: bool,
}

impl Checker {
    pub(crate) fn new(lines: usize, promises: Promises) -> Self {
        Self {
            lines: vec![Line::default(); lines],
            promises,
            ..Self::default()
        }
    }

    /// A rule was broken.
    pub(crate) fn violate(&mut self, at: Ns, rule: Rule, line: u32, what: &str) {
        let known = self.violations.iter();
        if known.filter(|old| old.rule == rule).count() < KEPT {
            self.violations.push(Violation {
                at,
                rule,
                line,
                what: what.into(),
            });
        }
    }

    pub(crate) fn drain_begins(&mut self, at: Ns, line: u32) {
        let books = &mut self.lines[line as usize];
        books.drainers += 1;
        if books.drainers > 1 {
            self.violate(
                at,
                Rule::SingleDrainer,
                line,
                "two contexts drain one queue",
            );
        }
    }

    pub(crate) fn drain_ends(&mut self, line: u32) {
        let books = &mut self.lines[line as usize];
        books.drainers = books.drainers.saturating_sub(1);
    }

    pub(crate) fn disabled(&mut self, line: u32) {
        self.lines[line as usize].depth += 1;
    }

    pub(crate) fn enabled(&mut self, at: Ns, line: u32) {
        let books = &mut self.lines[line as usize];
        books.depth -= 1;
        books.forgiving = true;
        if books.depth < 0 {
            books.depth = 0;
            self.violate(
                at,
                Rule::MaskBalance,
                line,
                "enabled more often than disabled",
            );
        }
    }

    /// The line is freed, and requested again before anything else happens to it.
    pub(crate) fn freed(&mut self, line: u32) {
        self.lines[line as usize].depth = 0;
    }

    pub(crate) fn poll_listed(&mut self, line: u32) {
        self.lines[line as usize].listed = true;
    }

    pub(crate) fn poll_completed(&mut self, at: Ns, line: u32) {
        if !std::mem::take(&mut self.lines[line as usize].listed) {
            self.violate(at, Rule::PollList, line, "completed twice");
        }
    }

    /// The poller returned its whole weight.
    pub(crate) fn poll_stays(&mut self, at: Ns, line: u32) {
        if !self.lines[line as usize].listed {
            let what = "whole weight returned after completing";
            self.violate(at, Rule::PollList, line, what);
        }
    }

    pub(crate) fn submitted(&mut self, line: u32, request: u32) {
        let place = request as usize;
        if self.requests.len() <= place {
            self.requests.resize(place + 1, None);
        }
        self.requests[place] = Some(line);
    }

    pub(crate) fn completed(&mut self, at: Ns, line: u32, request: u32) {
        if self.requests[request as usize].take().is_none() {
            self.violate(at, Rule::ExactlyOnce, line, "completed twice");
        }
    }

    pub(crate) fn answered(&mut self, at: Ns, line: u32, answer: Answer) {
        let books = &mut self.lines[line as usize];
        let forgiven = std::mem::take(&mut books.forgiving);
        books.recent += 1;
        books.strays += u32::from(!answer.wanted);
        let strays = books.strays;
        let full = books.recent == WINDOW;
        if full {
            (books.recent, books.strays) = (0, 0);
        }
        if full && strays > STRAYS {
            self.violate(at, Rule::Stray, line, "nobody cared");
        }
        if answer.wanted && !answer.useful && !forgiven {
            let what = "wanted an empty interrupt that nothing forgives";
            self.violate(at, Rule::Verdict, line, what);
        }
        if self.promises.handler.is_some_and(|most| answer.took > most) {
            let what = format!("the handler ran for {} us", answer.took / 1_000);
            self.violate(at, Rule::BoundedDrain, line, &what);
        }
    }

    pub(crate) fn waited(&mut self, at: Ns, cpu: u32, time: Ns) {
        if self.promises.wait.is_some_and(|most| time > most) {
            let what = format!("ordinary tasks waited for {} us", time / 1_000);
            self.violate(at, Rule::BoundedWait, cpu, &what);
        }
    }

    /// What ordinary tasks of a CPU lacked of their share at most. Unit: nanoseconds, times 1,000.
    pub(crate) fn lacked(&mut self, at: Ns, cpu: u32, lack: u64) {
        let Some(share) = self.promises.share else {
            return;
        };
        if lack > u64::from(share) * self.promises.share_after {
            let what = format!(
                "ordinary tasks lacked {} us of their share",
                lack / 1_000_000
            );
            self.violate(at, Rule::FairShare, cpu, &what);
        }
    }

    /// A line has a completion and nobody is on the way to it.
    pub(crate) fn forgotten(&mut self, at: Ns, line: u32) {
        let what = "a completion, and nobody who comes";
        self.violate(at, Rule::LostWakeUp, line, what);
    }

    /// The end of a run whose faults have ended, after a while without load.
    pub(crate) fn settled(&mut self, at: Ns) {
        for line in 0..self.lines.len() as u32 {
            if self.lines[line as usize].depth != 0 {
                self.violate(at, Rule::MaskBalance, line, "disabled at the end");
            }
        }
        for line in 0..self.lines.len() as u32 {
            let requests = self.requests.iter();
            let left = requests.filter(|&&open| open == Some(line)).count();
            if left != 0 {
                let what = format!("{left} requests did not end");
                self.violate(at, Rule::Liveness, line, &what);
            }
        }
    }
}
