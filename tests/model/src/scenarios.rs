// SPDX-License-Identifier: GPL-2.0

// What happens in a world: two or three threads each. Included beside `world`.

use super::{
    irqmod::{
        policy::{
            resched,
            threaded,
            Config, //
        },
        state::{
            HandBack,
            Snapshot,
            State, //
        },
    },
    world::{
        Line,
        Order,
        World, //
    },
};
use loom::{
    cell::UnsafeCell,
    model::Builder,
    sync::{
        atomic::{
            fence,
            AtomicU32,
            Ordering::{
                Relaxed,
                SeqCst, //
            }, //
        },
        Arc, //
    },
    thread, //
};

/// One scenario: what its threads do with a world.
pub type Scenario = fn(Line, Config);

/// Defers on every interrupt, to a poller with this weight.
pub fn softirq(budget: u32) -> Config {
    Config::Resched(resched::Config::new(budget).unwrap())
}

/// Defers on every interrupt, to the thread.
pub fn thread() -> Config {
    Config::Threaded(threaded::Config::default())
}

/// More involuntary switches than this in one execution are not explored.
const PREEMPTIONS: usize = 3;

fn explore(line: Line, config: Config, scenario: fn(Arc<World>)) {
    explore_in(move |order| World::new(line, config, order), scenario);
}

/// Explores from both orders: of the accesses to one atomic loom remembers the last one only, so a
/// change that begins with a load is not tried before another thread's earlier load.
fn explore_in(world: impl Fn(Order) -> World + Copy + Send + Sync + 'static, scenario: fn(Arc<World>)) {
    for order in [Order::HereFirst, Order::OthersFirst] {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(PREEMPTIONS);
        builder.check(move || scenario(Arc::new(world(order))));
    }
}

/// Runs `f` on another CPU.
fn spawn(world: &Arc<World>, f: fn(&World)) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || f(&world))
}

/// Runs `others` on other CPUs and `here` on this one, and looks at what is left.
fn race(world: Arc<World>, others: &[fn(&World)], here: fn(&World)) {
    match world.order {
        Order::HereFirst => {
            let others: Vec<_> = others.iter().map(|f| spawn(&world, *f)).collect();
            here(&world);
            for other in others {
                other.join().unwrap();
            }
        }
        Order::OthersFirst => {
            let (first, rest) = others.split_first().unwrap();
            let here = spawn(&world, here);
            let rest: Vec<_> = rest.iter().map(|f| spawn(&world, *f)).collect();
            first(&world);
            for other in rest.into_iter().chain([here]) {
                other.join().unwrap();
            }
        }
    }
    world.assert_settled();
}

/// A completion comes while another one is polled and handed back.
pub fn hand_back(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], World::complete);
    });
}

/// As [`hand_back`], with two completions on one side.
pub fn hand_back_twice(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], |world| {
            world.complete();
            world.complete();
        });
    });
}

/// As [`hand_back_twice`], but only the first interrupt is deferred: the others drain in the handler.
pub fn hand_back_relieved(line: Line, config: Config) {
    explore(line, config, |world| {
        world.relieve();
        race(world, &[World::complete], |world| {
            world.complete();
            world.complete();
        });
    });
}

/// As [`pause`], but only the first interrupt is deferred.
pub fn pause_relieved(line: Line, config: Config) {
    explore(line, config, |world| {
        world.relieve();
        race(world, &[World::complete, World::complete], |world| {
            world.pause_and_reap();
            world.resume();
        });
    });
}

/// As [`exclusive`], but only the first interrupt is deferred.
pub fn exclusive_relieved(line: Line, config: Config) {
    explore(line, config, |world| {
        world.relieve();
        race(world, &[World::complete, World::complete], World::drain_exclusively);
    });
}

/// Pause and resume while completions come.
pub fn pause(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], |world| {
            world.pause_and_reap();
            world.resume();
        });
    });
}

/// As [`pause`], with more completions than the poller's weight.
pub fn pause_full(line: Line, config: Config) {
    explore(line, config, |world| {
        world.post();
        race(world, &[World::complete], |world| {
            world.pause_and_reap();
            world.resume();
        });
    });
}

/// As [`pause`], and a completion comes afterwards as well.
pub fn pause_and_go_on(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], |world| {
            world.pause_and_reap();
            world.resume();
            world.complete();
        });
    });
}

/// Everything twice, as error paths do.
pub fn pause_twice(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], |world| {
            world.pause();
            world.pause();
            world.resume();
            world.resume();
        });
    });
}

/// The device is unreachable while it is paused.
pub fn pause_unreachable(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], |world| {
            world.set_reachable(false);
            world.pause_and_reap();
            world.resume();
            world.set_reachable(true);
            world.resume();
        });
    });
}

/// Stop and free while completions come.
pub fn stop(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], World::stop_and_free);
    });
}

/// As [`stop`], of a source that is polled and finds more.
pub fn stop_polled(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete, World::post], World::stop_and_free);
    });
}

/// As [`stop`], after a pause.
pub fn stop_paused(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], |world| {
            world.pause();
            world.stop_and_free();
        });
    });
}

/// As [`stop`], and a resume that comes too late.
pub fn stop_and_resume(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], |world| {
            world.stop_and_free();
            world.resume();
        });
    });
}

/// As [`stop`], while the device is unreachable.
pub fn stop_unreachable(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], |world| {
            world.set_reachable(false);
            world.stop_and_free();
            world.set_reachable(true);
            world.resume();
        });
    });
}

/// A task drains (a timeout, a reap) while completions come.
pub fn exclusive(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::complete], World::drain_exclusively);
    });
}

/// A task drains less than there is.
pub fn exclusive_peek(line: Line, config: Config) {
    explore(line, config, |world| {
        world.post();
        world.post();
        race(world, &[World::complete], World::peek_exclusively);
    });
}

/// Two tasks drain.
pub fn exclusive_twice(line: Line, config: Config) {
    explore(line, config, |world| {
        race(
            world,
            &[World::complete, World::drain_exclusively],
            World::drain_exclusively,
        );
    });
}

/// A task drains while another one pauses and resumes.
pub fn exclusive_paused(line: Line, config: Config) {
    explore(line, config, |world| {
        world.post();
        race(world, &[World::drain_exclusively], |world| {
            world.pause();
            world.resume();
        });
    });
}

/// A task drains an unreachable device, which keeps the line masked for the pause that follows.
pub fn exclusive_unreachable(line: Line, config: Config) {
    explore(line, config, |world| {
        race(world, &[World::drain_exclusively], |world| {
            world.set_reachable(false);
            world.pause();
            world.set_reachable(true);
            world.resume();
        });
    });
}

/// The first interrupt comes before the request is finished.
pub fn request(line: Line, config: Config) {
    explore_in(
        move |order| World::unrequested(line, config, order),
        |world| {
            world.moderator.prepare();
            race(world, &[World::complete], |world| world.moderator.start());
        },
    );
}

/// An owned source without a line around it, whose locks would order everything.
fn owned() -> Arc<State> {
    Arc::new(State::new(
        Snapshot::INIT | Snapshot::POLL | Snapshot::MASKED,
    ))
}

fn hand_over(state: &State) {
    if let HandBack::Released(Some(token)) = state.transition_to_handed_back() {
        token.redeem();
    }
}

/// Either the handler sees the source given back, or the look sees the completion.
pub fn order_of_the_look(_: Line, _: Config) {
    loom::model(|| {
        let (state, posted) = (owned(), Arc::new(AtomicU32::new(0)));
        let poller = {
            let (state, posted) = (state.clone(), posted.clone());
            thread::spawn(move || {
                hand_over(&state);
                posted.load(Relaxed) != 0
            })
        };
        posted.store(1, Relaxed);
        // The message comes after the completion it is about.
        fence(SeqCst);
        let absorbed = state.snapshot().is_owned();
        let seen = poller.join().unwrap();
        assert!(!absorbed || seen, "lost: absorbed, and not looked at");
    });
}

/// A handler that sees the source given back sees the queue as the poller left it.
pub fn order_of_the_queue(_: Line, _: Config) {
    struct Queue(UnsafeCell<u32>);
    // SAFETY: loom reports accesses that are not ordered.
    unsafe impl Sync for Queue {}
    // SAFETY: As above.
    unsafe impl Send for Queue {}

    loom::model(|| {
        let (state, queue) = (owned(), Arc::new(Queue(UnsafeCell::new(0))));
        let poller = {
            let (state, queue) = (state.clone(), queue.clone());
            thread::spawn(move || {
                drop(queue.0.get_mut());
                hand_over(&state);
            })
        };
        while state.snapshot().is_owned() {
            thread::yield_now();
        }
        drop(queue.0.get_mut());
        poller.join().unwrap();
    });
}
