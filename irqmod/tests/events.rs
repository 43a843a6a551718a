// SPDX-License-Identifier: GPL-2.0

//! What tracers are told, and that the kernel's tracepoints call it the same.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    event::Event,
    policy::Config,
    watch::Context,
    Deferral, //
};

fn events(rig: &Rig) -> Vec<Event> {
    rig.events.take()
}

fn poll(context: Context, found: u32) -> Event {
    Event::Poll { context, found }
}

fn defer(to: Deferral, found: u32) -> Event {
    Event::Defer { to, found }
}

#[test]
fn an_interrupt_that_is_simply_drained_is_no_event() {
    for policy in ["hardirq", "resched", "fair", "overflow"] {
        let rig = Rig::parsed(policy);
        rig.need_resched.set(false);
        rig.idle.set(true);
        rig.queue.post(3);
        rig.interrupt();
        assert_eq!(rig.queue.waiting(), 0);
        assert_eq!(events(&rig), [], "{policy}");
    }
}

#[test]
fn the_life_of_a_storm() {
    let rig = Rig::parsed("resched:budget=8");
    rig.queue.post(11);
    rig.interrupt();
    rig.settle();
    rig.interrupt();
    rig.interrupt();
    let expected = [
        defer(Deferral::Softirq, 0),
        poll(Context::Softirq, 8),
        poll(Context::Softirq, 3),
        Event::Rearm,
        Event::Empty { forgiven: true },
        Event::Empty { forgiven: false },
    ];
    assert_eq!(events(&rig), expected);
}

#[test]
fn what_the_handler_drained_first_is_said() {
    let rig = Rig::parsed("overflow:budget=8");
    rig.queue.post(11);
    rig.interrupt();
    rig.settle();
    let expected = [
        defer(Deferral::Thread, 8),
        poll(Context::Thread, 3),
        Event::Rearm,
    ];
    assert_eq!(events(&rig), expected);
}

#[test]
fn a_look_that_takes_the_source_again_defers_it() {
    let rig = Rig::parsed("irqpoll");
    rig.latches.set(false);
    *rig.on_complete.borrow_mut() = Some(Box::new(|rig: &Rig| rig.queue.post(1)));
    rig.queue.post(1);
    rig.interrupt();
    rig.settle();
    let expected = [
        defer(Deferral::Softirq, 0),
        poll(Context::Softirq, 1),
        Event::Rearm,
        defer(Deferral::Softirq, 0),
        poll(Context::Softirq, 1),
        Event::Rearm,
    ];
    assert_eq!(events(&rig), expected);
}

#[test]
fn the_life_of_a_line() {
    let rig = Rig::hardirq();
    rig.pause();
    rig.resume();
    rig.stop();
    assert_eq!(events(&rig), [Event::Pause, Event::Resume, Event::Stop]);
}

/// The names in the macro `irqmod_show_NAME` of the kernel's header, in the order of their numbers.
fn names_in_header(name: &str) -> Vec<String> {
    let header = include_str!("../../kbuild/files/rust/irqmod/trace.h");
    let start = format!("#define irqmod_show_{name}(");
    let rest = header.split(&start).nth(1).unwrap();
    let lines = rest.lines().skip(2);
    let entries = lines.map_while(|line| {
        let (number, rest) = line.trim().strip_prefix("{ ")?.split_once(", \"")?;
        Some((number.parse().unwrap(), rest.split('"').next().unwrap()))
    });
    let entries: Vec<(usize, &str)> = entries.collect();
    for (i, (number, name)) in entries.iter().enumerate() {
        assert_eq!(i, *number, "{name}");
    }
    entries.iter().map(|(_, name)| name.to_string()).collect()
}

#[test]
fn the_kernel_has_the_same_names() {
    assert_eq!(names_in_header("policy"), Config::NAMES);
    let contexts = Context::ALL.map(Context::name);
    assert_eq!(names_in_header("context"), contexts);
    for (i, name) in names_in_header("policy").iter().enumerate() {
        let number = irqmod::params::parse(name).unwrap().policy.number();
        assert_eq!(number as usize, i, "{name}");
    }
    let deferrals = [
        Deferral::Softirq,
        Deferral::Thread,
        Deferral::Work,
        Deferral::Hold,
        Deferral::Cpu,
    ];
    let names = deferrals.map(|to| format!("{to:?}").to_lowercase());
    assert_eq!(names_in_header("deferral"), names);
    for (i, to) in deferrals.iter().enumerate() {
        assert_eq!(*to as usize, i);
    }
}
