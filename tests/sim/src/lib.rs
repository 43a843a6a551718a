// SPDX-License-Identifier: GPL-2.0

//! A machine that does not exist: the other platform of irqmod, in virtual time.
//!
//! CPUs, interrupts, softirqs, a scheduler, timers, controllers and the jobs that load them, as
//! discrete events; policy, moderator and state word are the ones that run in the kernel. One seed
//! makes one run, byte for byte.
//!
//! # Words
//!
//! - *Context*: something that takes CPU time: a hard interrupt, a softirq, a task. Each is a
//!   coroutine that runs its code at the right moment of virtual time, and gives the CPU back
//!   whenever the code takes time (`context`).
//! - *Core*: everything that is not a coroutine's stack; plain data and the events (`core`).
//! - *Line*: a completion queue with its interrupt, poller, thread and [`irqmod::Moderator`].
//! - *World*: the part of a machine that is simulated at once. Groups of CPUs that share no
//!   interrupt CPU do not meet, so a big machine is a few worlds, some of them many times
//!   ([`Machine::split`]).
//!
//! # What is not modelled
//!
//! - Memory, caches and locks: what they cost is in the costs ([`machine::Costs`]).
//! - Code between two costs takes no time: an interrupt that comes there is taken at the next one.
//! - Balancing of running tasks, priorities of ordinary tasks, groups of tasks.
//! - Jobs that leave the CPUs of their group.

#![deny(unsafe_code)]

pub mod calibration;
pub mod check;
mod context;
mod core;
pub mod explain;
pub mod fault;
pub mod field;
pub mod fuzz;
pub mod machine;
pub mod matrix;
pub mod metric;
pub mod page;
mod platform;
mod promise;
mod random;
pub mod replay;
pub mod report;
pub mod run;
pub mod scaling;
pub mod scenario;
pub mod shrink;
pub mod sweep;
pub mod trace;

pub use machine::{
    Machine,
    Workload, //
};
pub use metric::{
    Metric,
    Row, //
};
pub use report::Report;
pub use run::{
    run,
    Options, //
};

pub use scenario::Scenario;

/// Virtual time. Unit: nanoseconds since the start.
pub type Ns = u64;
