// SPDX-License-Identifier: GPL-2.0

//! Bugs that no loom model is for, beside those of `tests/model/bugs.rs`: what went wrong in the
//! field, and what the mechanisms warn of, as changes of one place each.

use crate::Bug;

/// One of them.
const fn bug(
    name: &'static str,
    invariant: &'static str,
    file: &'static str,
    changes: &'static [(&'static str, &'static str)],
) -> Bug {
    Bug {
        name,
        invariant,
        file,
        changes,
        caught_by: "",
        says: "",
    }
}

/// No bug, in a file that all checks go through.
pub(crate) const NONE: Bug = bug("none", "nothing", "moderator.rs", &[]);

/// All of them.
pub(crate) const MORE: &[Bug] = &[
    bug(
        "weight_after_completing",
        "poll contract: the whole weight means still listed (POLL-01)",
        "platform.rs",
        &[("self.found.min(self.budget.get() - 1)", "self.found.min(self.budget.get())")],
    ),
    bug(
        "less_than_weight_while_listed",
        "poll contract: less than the weight means completed (POLL-01)",
        "platform.rs",
        &[("PollEnd { work: self.budget.get(), }", "PollEnd { work: self.budget.get() - 1, }")],
    ),
    bug(
        "full_queue_is_left",
        "no lost wake-up: a drain stopped by its budget is gone on with (STORM-03)",
        "moderator/handler.rs",
        &[(
            "(After::Open, Drain::More(_)) => Deferral::Softirq,",
            "(After::Open, Drain::More(_)) => return Handled::Handled,",
        )],
    ),
    bug(
        "completion_is_forgiven",
        "the interrupt after an unmask that has a completion is not swallowed (SPUR-04)",
        "moderator.rs",
        &[("Entry::AfterUnmask(_) if !source.pending() => {", "Entry::AfterUnmask(_) if true => {")],
    ),
    bug(
        "hand_back_forgets_handoff",
        "the first empty interrupt after a hand-back is forgiven (SPUR-04)",
        "state.rs",
        &[(
            "(now - (Snapshot::POLL | Snapshot::MASKED)) | Snapshot::HANDOFF",
            "now - (Snapshot::POLL | Snapshot::MASKED)",
        )],
    ),
    bug(
        "empty_interrupt_is_deferred",
        "an interrupt about nothing is not said to be handled (SPUR-04)",
        "moderator/handler.rs",
        &[("if !self.source.pending() { return self.moderator", "if false { return self.moderator")],
    ),
    bug(
        "claim_without_mask",
        "a deferred source is masked (SPUR-01)",
        "moderator.rs",
        &[("self.keep(platform, platform.mask(how)); self.schedule(platform, to, found);",
           "let _ = how; self.schedule(platform, to, found);")],
    ),
    bug(
        "claim_without_schedule",
        "no lost wake-up: who masks schedules (POLL-02)",
        "moderator.rs",
        &[("self.keep(platform, platform.mask(how)); self.schedule(platform, to, found);",
           "self.keep(platform, platform.mask(how)); let _ = (to, found);")],
    ),
    bug(
        "reclaimed_and_not_scheduled",
        "no lost wake-up: who takes a source again schedules (MISS-03)",
        "moderator.rs",
        &[("if reclaim == Reclaim::Won { self.schedule(platform, to, 0); }", "")],
    ),
    bug(
        "running_before_the_poller_is_enabled",
        "no lost wake-up: claims are allowed once their poller is not refused (POLL-02)",
        "moderator.rs",
        &[(
            "platform.enable_deferred(); let left = self.state.transition_to_running();",
            "let left = self.state.transition_to_running(); platform.enable_deferred();",
        )],
    ),
    bug(
        "exclusive_reopens_after_the_unmask",
        "single drainer: HANDOFF is set while no handler can have begun",
        "moderator.rs",
        &[(
            "let reopened = self.state.transition_to_reopened();
        platform.unmask(token);",
            "platform.unmask(token);
        let reopened = self.state.transition_to_reopened();",
        )],
    ),
    bug(
        "exclusive_does_not_look",
        "no lost wake-up: what came while a task drained is looked at",
        "moderator.rs",
        &[("if reopened == Reopen::Done {", "if false && reopened == Reopen::Done {")],
    ),
    bug(
        "request_keeps_the_word",
        "no state bit survives a request (BAL-03)",
        "state.rs",
        &[("self.change(|_| Snapshot::empty()).token()", "self.change(|now| now & Snapshot::MASKED).token()")],
    ),
    bug(
        "second_pause_joins_again",
        "pause is idempotent (POLL-02)",
        "moderator.rs",
        &[("Pause::Already => (),", "Pause::Already => self.quiesce(source, platform),")],
    ),
    bug(
        "running_source_is_resumed",
        "resume is idempotent: the token of an owner is its own (POLL-02)",
        "state.rs",
        &[(
            "now.contains(paused | Snapshot::MASKED)
                .then_some",
            "now.contains(Snapshot::INIT | Snapshot::MASKED)
                .then_some",
        )],
    ),
    bug(
        "second_stop_goes_on",
        "stop is idempotent (POLL-02)",
        "moderator.rs",
        &[("Stop::Already => return,", "Stop::Already => (),")],
    ),
    bug(
        "stop_leaves_the_poller_disabled",
        "a line that is requested again can be deferred (BAL-03)",
        "moderator.rs",
        &[("platform.enable_deferred(); if !source.reachable()", "if !source.reachable()")],
    ),
    bug(
        "pause_leaves_the_owner",
        "pause takes the source from the poller that it joined (TEAR-01)",
        "state.rs",
        &[("self.change(|now| now - Snapshot::POLL)", "self.change(|now| now)")],
    ),
    bug(
        "pause_leaves_the_line_open",
        "nobody drains after a pause: the line is masked (TEAR-01)",
        "moderator.rs",
        &[(
            "if disowned == Disown::Unmasked { self.exclude_handler(source, platform); }",
            "let _ = disowned == Disown::Unmasked;",
        )],
    ),
    bug(
        "unreachable_pause_waits_once",
        "nobody drains after a pause of an unreachable device (BAL-03)",
        "moderator.rs",
        &[(
            "self.keep(platform, platform.mask_sync()); } else { platform.synchronize(); }",
            "self.keep(platform, platform.mask_sync()); }",
        )],
    ),
    bug(
        "second_pause_leaves_the_line_open",
        "a pause masks what one of an unreachable device could not (BAL-03)",
        "moderator.rs",
        &[("Pause::Already if !self.state.snapshot().is_shut() => {", "Pause::Already if false => {")],
    ),
    bug(
        "stop_after_a_pause_does_not_wait",
        "nobody drains after a stop (BAL-03)",
        "moderator.rs",
        &[("Stop::DedicatedPaused => platform.synchronize(),", "Stop::DedicatedPaused => (),")],
    ),
    bug(
        "unreachable_source_is_polled",
        "no doorbell of an unreachable device (TEAR-08)",
        "moderator.rs",
        &[(
            "now.is_owned() && !now.contains(Snapshot::PAUSED) && source.reachable()",
            "now.is_owned() && !now.contains(Snapshot::PAUSED)",
        )],
    ),
    bug(
        "paused_source_is_polled",
        "a pause ends a poller and a thread that never find the queue empty (TEAR-04)",
        "moderator.rs",
        &[(
            "now.is_owned() && !now.contains(Snapshot::PAUSED) && source.reachable()",
            "now.is_owned() && source.reachable()",
        )],
    ),
    bug(
        "unreachable_source_is_claimed",
        "lines of an unreachable device are not masked (TEAR-08)",
        "moderator.rs",
        &[("if !source.reachable() { return Claim::Refused; }", "")],
    ),
    bug(
        "unreachable_line_is_unmasked",
        "lines of an unreachable device stay masked (TEAR-08)",
        "moderator.rs",
        &[(
            "if !source.reachable() { return false; }",
            "",
        )],
    ),
    bug(
        "kept_source_is_claimed",
        "a source that a task keeps masked is not taken by the handler (BAL-03)",
        "state.rs",
        &[("Self::POLL | Self::MASKED | Self::PAUSED", "Self::POLL | Self::PAUSED")],
    ),
    bug(
        "thread_does_not_relax",
        "the thread lets others run between two drains (STORM-05)",
        "moderator.rs",
        &[("Pass::Again => platform.relax(),", "Pass::Again => (),")],
    ),
    bug(
        "thread_does_not_see_its_guests",
        "a task that drains need not wait for a storm to end (STORM-03)",
        "moderator.rs",
        &[("if self.guests.load(Relaxed) != 0 {", "if self.guests.load(Relaxed) == u32::MAX {")],
    ),
    bug(
        "rested_thread_is_done",
        "no lost wake-up: a thread that rests goes on",
        "moderator.rs",
        &[("Pass::Rest(span) => platform.sleep(span),", "Pass::Rest(_) => return Handled::Handled,")],
    ),
    bug(
        "rested_poller_is_not_timed",
        "no lost wake-up: a poller that rests is scheduled again",
        "moderator.rs",
        &[("platform.poll_after(span);", "let _ = span;")],
    ),
    bug(
        "hold_has_no_end",
        "no lost wake-up: a line that was held is given back",
        "moderator.rs",
        &[(
            "let _ = self.hand_back(source, platform, Deferral::Softirq);
    }",
            "let _ = (source, platform);
    }",
        )],
    ),
    bug(
        "hold_timer_is_not_started",
        "no lost wake-up: a line is held by a timer that runs",
        "moderator/handler.rs",
        &[("self.platform.arm_hold(span);", "let _ = span;")],
    ),
    bug(
        "pressure_is_not_seen",
        "resched: a handler that sees a pending reschedule defers (STORM-01)",
        "policy/resched.rs",
        &[("if glance.contains(Glance::RESCHED)", "if false")],
    ),
    bug(
        "resched_drain_is_unbounded",
        "resched: a drain in the handler is bounded (STORM-03)",
        "policy/resched.rs",
        &[("Verdict::Drain(self.budget)", "Verdict::Drain(Budget::UNLIMITED)")],
    ),
    bug(
        "overflow_drain_is_unbounded",
        "overflow: a drain in the handler is bounded (STORM-02)",
        "policy/overflow.rs",
        &[("Verdict::Drain(self.budget)", "Verdict::Drain(Budget::UNLIMITED)")],
    ),
    bug(
        "push_has_no_cap",
        "timer: the time that a line is held is bounded (HRT-03)",
        "policy/timer.rs",
        &[("self.sleep.times(self.kicks.into()).min(left)", "self.sleep.times(self.kicks.into()).min(left.plus(MAX_HOLD))")],
    ),
    bug(
        "expiry_never_pushes",
        "timer: a list that was joined is not released at once (STORM-02)",
        "policy/timer.rs",
        &[("if push < MIN_SLEEP {", "if true {")],
    ),
    bug(
        "timer_of_no_delay",
        "timer: a delay of zero is off (HRT-01)",
        "policy/timer.rs",
        &[("if self.sleep < MIN_SLEEP {", "if false {")],
    ),
    bug(
        "running_timer_is_started",
        "timer: a handler starts no timer that runs (HRT-01)",
        "policy/timer.rs",
        &[("if self.armed.is_some() {", "if false {")],
    ),
    bug(
        "lone_command_is_delayed",
        "timer: no delay at one command at a time (PERF-01)",
        "policy/timer.rs",
        &[("left < FLOOR_NS || period.is_alone()", "left < FLOOR_NS")],
    ),
    bug(
        "low_above_high",
        "inflight: low is less than high (HRT-04)",
        "policy/inflight.rs",
        &[("if low >= high {", "if low > high {")],
    ),
    bug(
        "loops_without_end",
        "inflight: the loop on a device that never completes ends (STORM-05)",
        "policy/inflight.rs",
        &[("line.low >= LOW_CHECKS || line.loops >= self.max_loops", "line.low >= LOW_CHECKS")],
    ),
    bug(
        "one_low_check_is_enough",
        "inflight: three low checks in a row end the loop",
        "policy/inflight.rs",
        &[("line.low = if few && drain.found() == 0 { line.low.saturating_add(1) } else { 0 };",
           "line.low = if few { line.low.saturating_add(1) } else { line.low };")],
    ),
    bug(
        "failed_trials_are_not_paid_for",
        "rate: two failed trials in a row back off",
        "policy/rate.rs",
        &[("self.back_off = BACK_OFF;", "self.back_off = 0;")],
    ),
    bug(
        "episode_without_end",
        "rate: an episode ends after so many good windows",
        "policy/rate.rs",
        &[("if self.good >= MAX_GOOD {", "if false {")],
    ),
    bug(
        "switch_is_not_seen",
        "flood: a CPU that switches tasks is not starved",
        "policy/flood.rs",
        &[("let flooded = over && busy && !cpu.has_switched(seen);", "let flooded = over && busy;")],
    ),
    bug(
        "direct_drain_is_unbounded",
        "workqueue: a drain in the handler is bounded (SWI-01)",
        "policy/workqueue.rs",
        &[("Some(direct) => Verdict::Drain(direct),", "Some(_) => Verdict::Drain(Budget::UNLIMITED),")],
    ),
    bug(
        "work_is_not_charged",
        "fair: the time of completions is accounted for (STORM-01)",
        "ledger.rs",
        &[("self.level = self.level.saturating_add(debit.as_nanos()).min(most);", "let _ = (debit, most);")],
    ),
    bug(
        "handler_is_not_bounded",
        "fair: a handler is bounded in time (STORM-02)",
        "ledger.rs",
        &[(
            "self.is_full() || self.handler >= Self::HANDLER || self.pieces >= Self::HANDLER_PIECES",
            "self.is_full()",
        )],
    ),
    bug(
        "piece_is_not_sized",
        "fair: a piece is bounded in time, whatever a completion costs (SWI-01)",
        "ledger.rs",
        &[("self.piece = fitting.min(self.piece);", "let _ = fitting;")],
    ),
    bug(
        "range_is_not_checked",
        "a value out of its range changes nothing (HRT-04)",
        "params.rs",
        &[("Ok(number) if (key.min..=key.max).contains(&number) => Ok(number),", "Ok(number) if number <= key.max => Ok(number),")],
    ),
];
