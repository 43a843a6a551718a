// SPDX-License-Identifier: GPL-2.0

//! When to defer. One file per policy; pure decisions on plain values.
//!
//! A policy is asked in three places: when an interrupt comes, after a drain in the handler, and
//! after a deferred drain. In the handler it gets a [`Glance`] first, which costs next to nothing. A
//! policy that answers [`None`] is asked again with an [`Observation`], the state of its line and
//! the state of this CPU: only those who ask pay for a clock.
//!
//! # Adding one
//!
//! A file here with a `Config` that implements [`Policy`], and a line in `for_each_policy`. The
//! grammar, its errors, printing and the choice at run time follow from [`Policy::KEYS`].

pub mod fair;
pub mod flood;
pub mod hardirq;
pub mod inflight;
pub mod irqpoll;
pub mod overflow;
pub mod rate;
pub mod resched;
pub mod threaded;
pub mod timer;
pub mod workqueue;

use crate::{
    ledger::Ledger,
    observation::{
        Glance,
        Looks,
        Observation, //
    },
    reason::{
        Condition,
        Reason, //
    },
    verdict::{
        After,
        Deferral,
        Next,
        Placement,
        Verdict, //
    },
    watch,
    Budget,
    Drain, //
};
use core::fmt;

/// Most keys that a policy has.
pub const MAX_KEYS: usize = 7;

/// The values of a policy's keys, in the order of [`Policy::KEYS`]; what is beyond them is zero.
pub type Values = [u32; MAX_KEYS];

/// A parameter of a policy: a decimal number with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name, with the unit last.
    pub name: &'static str,
    /// Smallest value allowed.
    pub min: u32,
    /// Largest value allowed.
    pub max: u32,
    /// Its value if it is not given.
    pub default: u32,
}

/// The parameter of policies whose budget is that of a softirq pass.
pub(crate) const POLL_BUDGET: Key = Key {
    name: "budget",
    min: 1,
    max: Budget::POLL_DEFAULT.get(),
    default: Budget::POLL_DEFAULT.get(),
};

/// What is said of a value that [`Budget::polled`] refuses.
pub(crate) const POLL_CONFLICT: Conflict = Conflict("budget must be in 1..=256");

/// Refuses what no parameter string can say: a policy is never made of values out of their ranges.
pub(crate) fn ranged(keys: &[Key], values: &Values) -> Result<(), Conflict> {
    let allowed = |(key, value): (&Key, &u32)| (key.min..=key.max).contains(value);
    if keys.iter().zip(values).all(allowed) {
        Ok(())
    } else {
        Err(Conflict("a value is out of its range"))
    }
}

/// Values that are in their ranges but don't go together. [`fmt::Display`] says what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict(pub &'static str);

/// State of a line as plain words, which the moderator keeps for the policy.
pub trait Memory: Copy {
    /// Whether there is none, and nothing needs to be kept.
    const NONE: bool;

    /// The state that `words` stand for. All zero is the state of a line that was just opened.
    fn from_words(words: [u32; LINE_WORDS]) -> Self;

    /// The inverse of [`from_words`](Self::from_words).
    fn into_words(self) -> [u32; LINE_WORDS];
}

/// Room for the state of a line. Unit: words.
pub const LINE_WORDS: usize = 6;

impl Memory for () {
    const NONE: bool = true;

    fn from_words(_: [u32; LINE_WORDS]) -> Self {}

    fn into_words(self) -> [u32; LINE_WORDS] {
        [0; LINE_WORDS]
    }
}

/// A policy: decides, never acts. No clock, no atomics, no pointers; can't fail and can't sleep.
pub trait Policy: Copy {
    /// Its name in a parameter string.
    const NAME: &'static str;

    /// Its parameters, at most [`MAX_KEYS`].
    const KEYS: &'static [Key];

    /// Whether the line needs a work item: it may be deferred to [`Deferral::Work`].
    const WORK: bool = false;

    /// Whether [`on_interrupt`](Self::on_interrupt) and [`on_drained`](Self::on_drained) look at
    /// their glance. The handler gathers nothing for a policy that does not.
    const GLANCES: bool = true;

    /// Where a source belongs that the softirq poller has, and that it is not through with in one
    /// pass; [`None`] leaves it there. The poller stands in for others: after a resume or a time-out,
    /// and on a CPU that is not ready.
    const HOME: Option<Deferral> = None;

    /// Whether it keeps lines masked for a while: their list is the CPU's, and only in use where the
    /// CPU has its completion thread, which empties it when the CPU goes.
    const HOLDS: bool = false;

    /// What it remembers of a line from one question to the next.
    type Line: Memory;

    /// A policy with these values, which are in their ranges.
    fn from_values(values: &Values) -> Result<Self, Conflict>;

    /// The inverse of [`from_values`](Self::from_values).
    fn values(&self) -> Values;

    /// What the handler is to drain on a CPU that is [free](Glance::is_free), and to return if that
    /// emptied the queue, without another question. For the policy that is faster than its own
    /// answers.
    const LIGHT: Option<Budget> = None;

    /// Decides about one interrupt of a source that is neither owned nor paused; [`None`] asks for
    /// [`weigh_interrupt`](Self::weigh_interrupt).
    #[must_use = "a verdict does nothing until the moderator carries it out"]
    fn on_interrupt(&self, glance: Glance) -> Option<Verdict>;

    /// As [`on_interrupt`](Self::on_interrupt), with a closer look.
    fn weigh_interrupt(
        &self,
        _seen: &Observation,
        _line: &mut Self::Line,
        _cpu: &mut Cpu,
    ) -> Verdict {
        Verdict::Drain(self.budget())
    }

    /// Whether [`weigh_interrupt`](Self::weigh_interrupt) and [`weigh_drained`](Self::weigh_drained)
    /// look at what is kept of the CPU, which needs interrupts off. Otherwise they are given that of a CPU
    /// that has seen nothing.
    const OF_CPU: bool = false;

    /// What [`weigh_drained`](Self::weigh_drained) looks at after this drain, and
    /// [`weigh_interrupt`](Self::weigh_interrupt) before one, where nothing was found yet; the rest of
    /// their observation is empty.
    fn looks(&self, _line: &Self::Line, _drain: Drain) -> Looks {
        Looks::empty()
    }

    /// Decides after a drain in the handler; [`None`] asks for
    /// [`weigh_drained`](Self::weigh_drained).
    #[inline]
    fn on_drained(&self, _glance: Glance, drain: Drain) -> Option<After> {
        Some(match drain {
            Drain::Drained(_) => After::Open,
            Drain::More(_) => After::Defer(Deferral::Softirq),
        })
    }

    /// As [`on_drained`](Self::on_drained), with a closer look.
    fn weigh_drained(
        &self,
        _seen: &Observation,
        drain: Drain,
        _line: &mut Self::Line,
        _cpu: &mut Cpu,
    ) -> After {
        match drain {
            Drain::Drained(_) => After::Open,
            Drain::More(_) => After::Defer(Deferral::Softirq),
        }
    }

    /// Whether [`on_pass`](Self::on_pass) looks at its observation, which costs a clock read.
    const WEIGHS_PASSES: bool = false;

    /// Decides after a deferred drain. Without [`WEIGHS_PASSES`](Self::WEIGHS_PASSES) the
    /// observation is empty.
    fn on_pass(&self, _seen: &Observation, drain: Drain, _line: &mut Self::Line) -> Next {
        match drain {
            Drain::Drained(_) => Next::HandBack,
            Drain::More(_) => Next::Again,
        }
    }

    /// Where the line's interrupt thread may run.
    fn placement(&self) -> Placement {
        Placement::Follow
    }

    /// Budget of one deferred drain, and the weight of the softirq poller. Unit: completions.
    fn budget(&self) -> Budget;

    /// What it looks at before it acts, at most [`watch::MAX_CONDITIONS`].
    const CONDITIONS: &'static [Condition];

    /// Says which conditions were not met for a handler that found `found` completions in all, and left
    /// its line open. Only asked while somebody watches: it may take its time.
    ///
    /// The observation is that of the end of the handler, which began when it says; `line` and `cpu` are
    /// as they were then.
    fn why(
        &self,
        seen: &Observation,
        found: u32,
        line: &Self::Line,
        cpu: &Cpu,
        say: &mut dyn FnMut(Reason),
    );
}

/// What the policies remember of a CPU, over all sources of all drivers there.
///
/// Only ever touched on that CPU with interrupts off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// What completions took of it.
    pub ledger: Ledger,
    /// Its hold timer.
    pub timer: timer::Cpu,
    /// Whether its tasks are starved.
    pub flood: flood::Cpu,
    /// What lines that are watched took of it.
    pub watch: watch::Cpu,
}

impl Cpu {
    /// A CPU that has seen no interrupt yet.
    pub const fn new() -> Self {
        Self {
            ledger: Ledger::new(),
            timer: timer::Cpu::new(),
            flood: flood::Cpu::new(),
            watch: watch::Cpu::new(),
        }
    }
}

/// The list of all policies: passes `Variant => module` pairs on to a macro.
macro_rules! for_each_policy {
    ([$($callback:tt)+] $arguments:tt) => {
        $($callback)+! {
            $arguments
            Hardirq => hardirq,
            Resched => resched,
            Threaded => threaded,
            Irqpoll => irqpoll,
            Overflow => overflow,
            Inflight => inflight,
            Timer => timer,
            Workqueue => workqueue,
            Rate => rate,
            Flood => flood,
            Fair => fair,
        }
    };
}

macro_rules! define {
    (() $($variant:ident => $module:ident,)*) => {
        /// The choice among all policies.
        ///
        /// [`fmt::Display`] writes what [`crate::params::parse`] reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Config {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $variant($module::Config),
            )*
        }

        /// A policy without its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($variant,)*
        }

        impl Kind {
            /// All of them, in the order of their numbers.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        impl Config {
            /// The names of all policies.
            pub const NAMES: &'static [&'static str] = &[$($module::Config::NAME,)*];

            fn kind(&self) -> Kind {
                match self {
                    $(Self::$variant(_) => Kind::$variant,)*
                }
            }

            /// The policy of this kind with these values, which are in their ranges.
            pub(crate) fn from_values(kind: Kind, values: &Values) -> Result<Self, Conflict> {
                match kind {
                    $(Kind::$variant => $module::Config::from_values(values).map(Self::$variant),)*
                }
            }
        }

        $(
            impl From<$module::Config> for Config {
                fn from(config: $module::Config) -> Self {
                    Self::$variant(config)
                }
            }
        )*
    };
}

for_each_policy!([define]());

/// Runs `$body` with `$policy` as the type of the policy of a [`Kind`]: static dispatch, no table.
macro_rules! with_policy {
    ($kind:expr, $policy:ident => $body:expr) => {
        $crate::policy::for_each_policy!([$crate::policy::match_kind]($kind, $policy, $body))
    };
}

macro_rules! match_kind {
    (($kind:expr, $policy:ident, $body:expr) $($variant:ident => $module:ident,)*) => {
        match $kind {
            $(
                $crate::policy::Kind::$variant => {
                    type $policy = $crate::policy::$module::Config;
                    $body
                }
            )*
        }
    };
}

pub(crate) use {
    for_each_policy,
    match_kind,
    with_policy, //
};

macro_rules! dispatch {
    (($config:expr, $policy:ident, $body:expr) $($variant:ident => $module:ident,)*) => {
        match $config {
            $(Config::$variant($policy) => $body,)*
        }
    };
}

/// Numbers of the kinds that a handler looks for first.
// CAST: A variant's number.
impl Kind {
    pub(crate) const HARDIRQ: u32 = Self::Hardirq as u32;
    pub(crate) const RESCHED: u32 = Self::Resched as u32;
    pub(crate) const THREADED: u32 = Self::Threaded as u32;
    pub(crate) const FAIR: u32 = Self::Fair as u32;
}

impl Kind {
    /// Its name in a parameter string.
    pub(crate) fn name(self) -> &'static str {
        with_policy!(self, P => P::NAME)
    }

    /// Its parameters.
    pub(crate) fn keys(self) -> &'static [Key] {
        with_policy!(self, P => P::KEYS)
    }

    /// The inverse of `kind as u32`. Words that it never makes are the default policy.
    #[inline]
    pub(crate) fn from_word(word: u32) -> Self {
        // CAST: A variant's number.
        let is = |kind: &&Self| **kind as u32 == word;
        Self::ALL.iter().find(is).copied().unwrap_or(Self::Hardirq)
    }
}

impl Config {
    /// Drain in the handler until empty: the default, and the only policy that never defers.
    pub const HARDIRQ: Self = Self::Hardirq(hardirq::Config);

    /// Budget of one deferred drain, and the weight of the softirq poller. Unit: completions.
    pub fn budget(&self) -> Budget {
        for_each_policy!([dispatch](self, policy, policy.budget()))
    }

    /// Where the line's interrupt thread may run.
    pub fn placement(&self) -> Placement {
        for_each_policy!([dispatch](self, policy, policy.placement()))
    }

    /// Its number in [`NAMES`](Self::NAMES).
    pub fn number(&self) -> u32 {
        // CAST: A variant's number.
        self.kind() as u32
    }

    /// Whether the line needs a work item.
    pub fn wants_work(&self) -> bool {
        with_policy!(self.kind(), P => P::WORK)
    }

    /// Whether the line needs the completion threads of CPUs.
    pub fn wants_cpu(&self) -> bool {
        with_policy!(self.kind(), P => P::HOLDS || P::HOME == Some(Deferral::Cpu))
    }

    /// What it looks at before it acts.
    pub fn conditions(&self) -> &'static [Condition] {
        with_policy!(self.kind(), P => P::CONDITIONS)
    }

    /// The name of the policy in a parameter string.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Its parameters, beside the [`Mask`].
    pub fn keys(&self) -> &'static [Key] {
        self.kind().keys()
    }

    fn values(&self) -> Values {
        for_each_policy!([dispatch](self, policy, policy.values()))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let values = self.values();
        for (i, (key, value)) in self.kind().keys().iter().zip(values).enumerate() {
            let separator = if i == 0 { ':' } else { ',' };
            write!(f, "{separator}{}={value}", key.name)?;
        }
        Ok(())
    }
}

/// How a line is masked while its source is deferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mask {
    /// Disabled in the interrupt core; the chip is masked only if an interrupt comes.
    #[default]
    Nosync,
    /// Masked at the chip at once, without waiting for the device to see it.
    Nowait,
}

impl Mask {
    /// The key that every policy has.
    pub const KEY: &'static str = "mask";

    /// All of them with their words.
    pub(crate) const ALL: [(&'static str, Self); 2] =
        [("nosync", Self::Nosync), ("nowait", Self::Nowait)];

    /// Its word in a parameter string.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nosync => "nosync",
            Self::Nowait => "nowait",
        }
    }
}

/// All that is chosen for a line: a policy, and how to mask.
///
/// [`fmt::Display`] writes what [`crate::params::parse`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// When to defer.
    pub policy: Config,
    /// How to mask meanwhile.
    pub mask: Mask,
}

impl Choice {
    /// Words that a [`Choice`] is packed in.
    pub(crate) const WORDS: usize = 1 + MAX_KEYS;

    /// Bit of the first word.
    const NOWAIT: u32 = 1 << 8;
    /// Bit of the first word, in the byte that a handler takes for the kind: so it does not match any,
    /// and a line that is not watched need not be tested for it.
    const WATCHED: u32 = 1 << 7;
    /// The rest of that byte: the policy's [`Kind`].
    const KIND: u32 = Self::WATCHED - 1;

    /// What is in words that begin with `first`, for a handler: the number of a [`Kind`], or another one
    /// if the line is watched.
    #[inline(always)]
    pub(crate) fn dispatch_of(first: u32) -> u32 {
        first & (Self::KIND | Self::WATCHED)
    }

    /// Whether somebody watches the line whose words begin with `first`.
    #[inline]
    pub(crate) fn is_watched(first: u32) -> bool {
        first & Self::WATCHED != 0
    }

    /// The same word for a line that is watched, or is not.
    pub(crate) fn with_watched(first: u32, watched: bool) -> u32 {
        if watched {
            first | Self::WATCHED
        } else {
            first & !Self::WATCHED
        }
    }

    /// The kind of the policy that is packed in words that begin with `first`.
    #[inline]
    pub(crate) fn kind_of(first: u32) -> Kind {
        Kind::from_word(first & Self::KIND)
    }

    /// The number of that kind.
    #[inline]
    pub(crate) fn number_of(first: u32) -> u32 {
        first & Self::KIND
    }

    /// How to mask, as packed in words that begin with `first`.
    #[inline]
    pub(crate) fn mask_of(first: u32) -> Mask {
        if first & Self::NOWAIT == 0 {
            Mask::Nosync
        } else {
            Mask::Nowait
        }
    }

    /// As words: kind and mask, then the values.
    pub(crate) fn pack(&self) -> [u32; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        // CAST: A variant's number, less than 128.
        words[0] = self.policy.kind() as u32;
        if self.mask == Mask::Nowait {
            words[0] |= Self::NOWAIT;
        }
        words[1..].copy_from_slice(&self.policy.values());
        words
    }

    /// The inverse of [`pack`](Self::pack).
    pub(crate) fn unpack(words: [u32; Self::WORDS]) -> Self {
        let mut values = Values::default();
        values.copy_from_slice(&words[1..]);
        let policy = Config::from_values(Self::kind_of(words[0]), &values);
        Self {
            policy: policy.unwrap_or(Config::HARDIRQ),
            mask: Self::mask_of(words[0]),
        }
    }
}

impl From<Config> for Choice {
    fn from(policy: Config) -> Self {
        Self {
            policy,
            mask: Mask::default(),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.policy)?;
        if self.mask == Mask::default() {
            return Ok(());
        }
        let separator = if self.policy.kind().keys().is_empty() {
            ':'
        } else {
            ','
        };
        write!(f, "{separator}{}={}", Mask::KEY, self.mask.name())
    }
}
