// SPDX-License-Identifier: GPL-2.0

// The planted bugs: one line of the crate each, and the scenario that must notice. Read by the
// build script, which makes the copies, and so by the tests.

/// One planted bug.
struct Bug {
    /// Name of the copy.
    name: &'static str,
    /// What it breaks.
    invariant: &'static str,
    /// File below irqmod/src.
    file: &'static str,
    /// Texts that occur there exactly once (whatever the white space), and what they become.
    changes: &'static [(&'static str, &'static str)],
    /// The scenario that notices, as an expression.
    caught_by: &'static str,
    /// What the failing model says. The kill matrix does not read it.
    #[allow(dead_code)]
    says: &'static str,
}

const BUGS: &[Bug] = &[
    Bug {
        name: "owned_source_is_drained",
        invariant: "single drainer: an interrupt leaves an owned source alone (MISS-04)",
        file: "moderator.rs",
        changes: &[("if now.is_owned() || now.is_shut() || unreachable", "if now.is_shut() || unreachable")],
        caught_by: "hand_back_relieved(Line::Late, softirq(1))",
        says: "Concurrent write accesses",
    },
    Bug {
        name: "look_without_proof",
        invariant: "single drainer: the look after an unmask needs HANDOFF",
        file: "state.rs",
        changes: &[("(now.may_claim() && now.contains(Snapshot::HANDOFF))", "now.may_claim()")],
        caught_by: "exclusive(Line::Latching, Config::HARDIRQ)",
        says: "Concurrent write accesses",
    },
    Bug {
        name: "handoff_is_not_used_up",
        invariant: "single drainer: a handler uses HANDOFF up before it drains",
        file: "state.rs",
        changes: &[(
            "now.contains(Snapshot::HANDOFF)\n                .then_some(now - Snapshot::HANDOFF)",
            "now.contains(Snapshot::HANDOFF).then_some(now)",
        )],
        caught_by: "exclusive_twice(Line::Latching, Config::HARDIRQ)",
        says: "Concurrent write accesses",
    },
    Bug {
        name: "exclusive_does_not_join",
        invariant: "single drainer: a task waits for the handler",
        file: "moderator.rs",
        changes: &[(
            "let token = platform.mask_sync();\n        platform.locked(|| {",
            "let token = platform.mask(crate::policy::Mask::Nosync);\n        platform.locked(|| {",
        )],
        caught_by: "exclusive(Line::Latching, Config::HARDIRQ)",
        says: "Concurrent write accesses",
    },
    Bug {
        name: "poller_does_not_lock",
        invariant: "single drainer: the queue lock keeps poller and tasks apart",
        file: "moderator.rs",
        changes: &[
            (
                "platform.locked(|| { if !self.may_drain(source) { return platform",
                "(|| { if !self.may_drain(source) { return platform",
            ),
            (
                "self.go_on_polling(platform, pass, drain, next) })",
                "self.go_on_polling(platform, pass, drain, next) })()",
            ),
        ],
        caught_by: "exclusive(Line::Latching, softirq(1))",
        says: "Concurrent write accesses",
    },
    Bug {
        name: "shut_source_is_drained",
        invariant: "nobody drains after stop",
        file: "moderator.rs",
        changes: &[("if now.is_owned() || now.is_shut() || unreachable", "if now.is_owned() || unreachable")],
        caught_by: "stop(Line::Latching, softirq(1))",
        says: "Concurrent write accesses",
    },
    Bug {
        name: "pause_does_not_join",
        invariant: "nobody drains after pause",
        file: "moderator.rs",
        changes: &[
            (
                "self.stats.on_pause();\n        platform.synchronize();\n        // If",
                "self.stats.on_pause();\n        // If",
            ),
            // Waits, too, but only where the line can't be masked.
            ("} else {\n            platform.synchronize();\n        }", "}"),
        ],
        caught_by: "pause_unreachable(Line::Latching, softirq(1))",
        says: "Concurrent write accesses",
    },
    Bug {
        name: "no_look_after_unmask",
        invariant: "no lost wake-up: a lost interrupt is made up for (MISS-03)",
        file: "moderator.rs",
        changes: &[("-> Reclaim {\n        if !source.pending() {", "-> Reclaim {\n        if true {")],
        caught_by: "hand_back(Line::Lossy, softirq(1))",
        says: "lost: a completion",
    },
    Bug {
        name: "look_before_unmask",
        invariant: "no lost wake-up: the look comes after the unmask (MISS-03)",
        file: "moderator.rs",
        changes: &[(
            "if let Some(token) = token { platform.unmask(token); } true }",
            "let looked = self.look_again(source, platform, Deferral::Softirq);
             if let Some(token) = token { platform.unmask(token); } looked == Reclaim::Won }",
        )],
        caught_by: "hand_back(Line::Lossy, softirq(1))",
        says: "lost: a completion",
    },
    Bug {
        name: "source_is_not_released",
        invariant: "no lost wake-up: an open line has no owner",
        file: "state.rs",
        changes: &[("(now - (Snapshot::POLL | Snapshot::MASKED)) | Snapshot::HANDOFF", "(now - Snapshot::MASKED) | Snapshot::HANDOFF")],
        caught_by: "hand_back(Line::Latching, softirq(1))",
        says: "masked at the end",
    },
    Bug {
        name: "resume_forgets_handoff",
        invariant: "no lost wake-up: resume looks at what came while paused",
        file: "state.rs",
        changes: &[(".then_some((now - Snapshot::MASKED) | Snapshot::HANDOFF)", ".then_some(now - Snapshot::MASKED)")],
        caught_by: "pause(Line::Lossy, softirq(1))",
        says: "lost: a completion",
    },
    Bug {
        name: "paused_source_is_claimed",
        invariant: "no lost wake-up: no claim whose poller is refused (POLL-02)",
        file: "state.rs",
        changes: &[("Self::POLL | Self::MASKED | Self::PAUSED)", "Self::POLL | Self::MASKED)")],
        caught_by: "pause_and_go_on(Line::Latching, softirq(1))",
        says: "Snapshot(INIT | POLL | MASKED)",
    },
    Bug {
        name: "poller_is_not_enabled",
        invariant: "no lost wake-up: resume enables the poller",
        file: "moderator.rs",
        changes: &[(
            "platform.enable_deferred(); let left", "let left",
        )],
        caught_by: "pause_and_go_on(Line::Latching, softirq(1))",
        says: "Snapshot(INIT | POLL | MASKED)",
    },
    Bug {
        name: "token_is_dropped",
        invariant: "mask balance: hand-back unmasks",
        file: "moderator.rs",
        changes: &[(
            "if let Some(token) = token {\n                    platform.unmask(token);",
            "if let Some(token) = token {\n                    token.redeem();",
        )],
        caught_by: "hand_back(Line::Latching, softirq(1))",
        says: "masked at the end",
    },
    Bug {
        name: "surplus_is_dropped",
        invariant: "mask balance: a second disable is ended",
        file: "moderator.rs",
        changes: &[(
            "match self.state.transition_to_masked(token) {\n            Deposit::Stored => (),\n            Deposit::Surplus(token) => platform.unmask(token),",
            "match self.state.transition_to_masked(token) {\n            Deposit::Stored => (),\n            Deposit::Surplus(token) => token.redeem(),",
        )],
        caught_by: "exclusive_unreachable(Line::Latching, softirq(1))",
        says: "masked at the end",
    },
    Bug {
        name: "stop_keeps_the_mask",
        invariant: "mask balance: a line is freed without a disable of ours",
        file: "moderator.rs",
        changes: &[(
            "// A replay is absorbed: the source is paused for good.\n                platform.unmask(token);",
            "token.redeem();",
        )],
        caught_by: "stop(Line::Latching, softirq(1))",
        says: "freed with a disable",
    },
    Bug {
        name: "stop_is_not_final",
        invariant: "no unmask of a stopped line",
        file: "state.rs",
        changes: &[("(now - Snapshot::INIT) | Snapshot::PAUSED", "now | Snapshot::PAUSED")],
        caught_by: "stop_and_resume(Line::Latching, softirq(1))",
        says: "a freed line",
    },
    Bug {
        name: "disown_without_lock",
        invariant: "no touch of a stopped line by a poller that was completed early",
        file: "moderator.rs",
        changes: &[(
            "platform.locked(|| self.state.transition_to_disowned())",
            "self.state.transition_to_disowned()",
        )],
        caught_by: "stop_polled(Line::Latching, softirq(1))",
        says: "defers a freed line",
    },
    Bug {
        name: "poller_is_not_joined",
        invariant: "the poller is joined before the source is taken from it",
        file: "moderator.rs",
        changes: &[("        platform.join_deferred();\n", "")],
        caught_by: "pause(Line::Latching, softirq(1))",
        says: "enabled, but not disabled",
    },
    Bug {
        name: "late_mask_of_an_open_source",
        invariant: "mask balance: only an owned source is masked by who absorbs",
        file: "state.rs",
        changes: &[("self.deposit(token, Snapshot::is_owned)", "self.deposit(token, |_| true)")],
        caught_by: "hand_back_relieved(Line::Latching, softirq(1))",
        says: "masked at the end",
    },
    Bug {
        name: "change_without_full_order",
        invariant: "no lost wake-up: the release is ordered before the look",
        file: "sync/core.rs",
        changes: &[
            ("fence(SeqCst); let result", "fence(Rust::Release); let result"),
            ("if result.is_ok() { fence(SeqCst); }", ""),
        ],
        caught_by: "order_of_the_look(Line::Latching, Config::HARDIRQ)",
        says: "lost: absorbed",
    },
    Bug {
        name: "entry_without_acquire",
        invariant: "the handler sees the queue as the poller left it",
        file: "state.rs",
        changes: &[("from_bits_retain(self.0.load(Acquire))", "from_bits_retain(self.0.load(Relaxed))")],
        caught_by: "order_of_the_queue(Line::Latching, Config::HARDIRQ)",
        says: "Causality violation",
    },
    Bug {
        name: "hand_back_without_release",
        invariant: "the handler sees the queue as the poller left it",
        file: "sync/core.rs",
        changes: &[("fence(SeqCst); let result", "let result")],
        caught_by: "order_of_the_queue(Line::Latching, Config::HARDIRQ)",
        says: "Causality violation",
    },
];
