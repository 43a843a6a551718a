// SPDX-License-Identifier: GPL-2.0

//! The models on the real crate: scenario by policy by kind of line.

#![cfg(loom)]

use model::real::{
    irqmod::policy::Config,
    scenarios::{
        self,
        softirq,
        thread, //
    },
    world::Line::{
        Latching,
        Late,
        Lossy, //
    }, //
};

/// One test per scenario and line, each for the policies given.
macro_rules! models {
    ($($name:ident: $scenario:ident($line:expr) for $($config:expr),+;)*) => {
        $(
            #[test]
            fn $name() {
                $(scenarios::$scenario($line, $config);)+
            }
        )*
    };
}

models! {
    miss_03_hand_back_with_replay: hand_back(Latching) for softirq(1), softirq(2), thread();
    miss_03_hand_back_edge_lost: hand_back(Lossy) for softirq(1), softirq(2), thread();
    miss_04_late_message: hand_back(Late) for softirq(1), thread();
    miss_04_late_message_twice: hand_back_twice(Late) for softirq(1);
    miss_03_relieved: hand_back_relieved(Latching) for softirq(1), softirq(2);
    miss_03_relieved_edge_lost: hand_back_relieved(Lossy) for softirq(1), softirq(2);
    miss_04_relieved_late: hand_back_relieved(Late) for softirq(1), softirq(2);
    poll_02_pause_relieved: pause_relieved(Latching) for softirq(1);
    tear_01_exclusive_relieved: exclusive_relieved(Latching) for softirq(1);
    hand_back_twice_with_replay: hand_back_twice(Latching) for softirq(2), thread();
    hardirq_is_not_reentrant: hand_back(Latching) for Config::HARDIRQ;
    poll_02_pause_with_replay: pause(Latching) for softirq(1), thread(), Config::HARDIRQ;
    poll_02_pause_edge_lost: pause(Lossy) for softirq(1), thread(), Config::HARDIRQ;
    poll_02_pause_late: pause(Late) for softirq(1), thread();
    poll_02_pause_and_go_on: pause_and_go_on(Latching) for softirq(1), thread();
    poll_02_twice: pause_twice(Latching) for softirq(1), thread();
    poll_02_full_weight: pause_full(Latching) for softirq(1);
    bal_03_pause_unreachable: pause_unreachable(Latching) for softirq(1), thread(), Config::HARDIRQ;
    tear_01_stop: stop(Latching) for softirq(1), thread(), Config::HARDIRQ;
    tear_01_stop_late: stop(Late) for softirq(1), thread();
    tear_01_stop_polled: stop_polled(Latching) for softirq(1), thread();
    tear_02_stop_paused: stop_paused(Latching) for softirq(1), thread();
    tear_02_stop_and_resume: stop_and_resume(Latching) for softirq(1), thread(), Config::HARDIRQ;
    bal_03_stop_unreachable: stop_unreachable(Latching) for softirq(1), thread();
    tear_01_exclusive: exclusive(Latching) for softirq(1), thread(), Config::HARDIRQ;
    tear_01_exclusive_edge_lost: exclusive(Lossy) for softirq(1), thread(), Config::HARDIRQ;
    tear_01_exclusive_late: exclusive(Late) for softirq(1), thread();
    exclusive_peek: exclusive_peek(Latching) for softirq(1), thread(), Config::HARDIRQ;
    exclusive_peek_edge_lost: exclusive_peek(Lossy) for softirq(1), thread(), Config::HARDIRQ;
    exclusive_twice: exclusive_twice(Latching) for softirq(1), thread(), Config::HARDIRQ;
    exclusive_paused: exclusive_paused(Lossy) for softirq(1), thread();
    bal_03_exclusive_unreachable: exclusive_unreachable(Latching) for softirq(1);
    order_of_the_look: order_of_the_look(Latching) for Config::HARDIRQ;
    order_of_the_queue: order_of_the_queue(Latching) for Config::HARDIRQ;
    tear_11_interrupt_during_request: request(Latching) for softirq(1), thread();
}
