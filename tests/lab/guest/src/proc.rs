// SPDX-License-Identifier: GPL-2.0

//! Readers of `/proc` and debugfs files, as pure functions on their text.

use crate::report::Shares;
use std::collections::BTreeMap;

/// The ticks of `cpu` in the text of `/proc/stat`.
pub fn cpu_ticks(stat: &str, cpu: usize) -> Option<Shares> {
    let name = format!("cpu{cpu}");
    let line = stat
        .lines()
        .find(|l| l.split_ascii_whitespace().next() == Some(&name))?;
    let n: Vec<f64> = line
        .split_ascii_whitespace()
        .skip(1)
        .map_while(|w| w.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal
    let [user, nice, system, idle, iowait, irq, softirq, ..] = n[..] else {
        return None;
    };
    Some(Shares {
        hardirq: irq,
        softirq,
        task: user + nice + system,
        idle: idle + iowait,
    })
}

/// Context switches in the text of `/proc/stat`.
pub fn context_switches(stat: &str) -> Option<u64> {
    stat.lines()
        .find_map(|l| l.strip_prefix("ctxt "))?
        .trim()
        .parse()
        .ok()
}

/// Counts by CPU, by the name of the action, of the text of `/proc/interrupts`.
///
/// The name is the last word of the line (`nvme0q1`); lines of the same name are summed.
pub fn interrupts(text: &str) -> BTreeMap<String, Vec<u64>> {
    table(text, |words| words.last().map(|w| (*w).to_owned()))
}

/// Counts by CPU, by kind, of the text of `/proc/softirqs`.
pub fn softirqs(text: &str) -> BTreeMap<String, Vec<u64>> {
    table(text, |words| {
        words.first().map(|w| w.trim_end_matches(':').to_owned())
    })
}

fn table(text: &str, name: impl Fn(&[&str]) -> Option<String>) -> BTreeMap<String, Vec<u64>> {
    let mut lines = text.lines();
    let cpus = lines
        .next()
        .map_or(0, |head| head.split_ascii_whitespace().count());
    let mut out: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let counts: Vec<u64> = words
            .iter()
            .skip(1)
            .take(cpus)
            .map_while(|w| w.parse().ok())
            .collect();
        if counts.len() != cpus {
            continue;
        }
        if let Some(name) = name(&words) {
            let sum = out.entry(name).or_insert_with(|| vec![0; cpus]);
            sum.iter_mut().zip(counts).for_each(|(s, c)| *s += c);
        }
    }
    out
}

/// Numbers by name in a text of `name: value` or `name value` lines; other lines are left out.
pub fn counters(text: &str) -> BTreeMap<String, u64> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split([':', '=', ' ', '\t']).filter(|w| !w.is_empty());
            let name = words.next()?;
            let value = words.next()?.parse().ok()?;
            Some((name.to_owned(), value))
        })
        .collect()
}

/// What was added to each counter from `before` to `after`; a counter that is new started at zero.
pub fn delta(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    after
        .iter()
        .map(|(k, v)| {
            (
                k.clone(),
                v.saturating_sub(before.get(k).copied().unwrap_or(0)),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  1 2 3 4 5 6 7 0 0 0\ncpu0 10 0 20 300 1 40 50 0 0 0\n\
                        cpu10 9 9 9 9 9 9 9 0 0 0\nintr 5 0 1\nctxt 4711\n";

    #[test]
    fn ticks_of_one_cpu() {
        let s = cpu_ticks(STAT, 0).unwrap();
        assert_eq!(
            (s.hardirq, s.softirq, s.task, s.idle),
            (40.0, 50.0, 30.0, 301.0)
        );
        assert_eq!(cpu_ticks(STAT, 10).unwrap().softirq, 9.0);
        assert_eq!(cpu_ticks(STAT, 1), None);
        assert_eq!(cpu_ticks("cpu0 1 2 x", 0), None);
        assert_eq!(cpu_ticks("", 0), None);
    }

    #[test]
    fn switches() {
        assert_eq!(context_switches(STAT), Some(4711));
        assert_eq!(context_switches("cpu0 1"), None);
    }

    const IRQS: &str =
        "           CPU0       CPU1\n  0:         12          0   IO-APIC   2-edge      timer\n \
                        26:        100          3   PCI-MSIX-0000:00:03.0   1-edge      nvme0q1\n \
                        27:          7          0   PCI-MSIX-0000:00:04.0   1-edge      nvme0q1\n\
                        NMI:          1          2   Non-maskable interrupts\nERR:          0\n";

    #[test]
    fn interrupts_are_summed_by_name() {
        let t = interrupts(IRQS);
        assert_eq!(t["nvme0q1"], [107, 3]);
        assert_eq!(t["timer"], [12, 0]);
        assert!(!t.contains_key("ERR:"));
        assert!(interrupts("").is_empty());
    }

    #[test]
    fn softirqs_by_kind() {
        let t = softirqs("     CPU0  CPU1\n  IRQ_POLL:  5  6\n TIMER: 1 2\n");
        assert_eq!(t["IRQ_POLL"], [5, 6]);
    }

    #[test]
    fn counters_take_both_spellings() {
        let t = counters("deferrals: 5\npolls 6\nstate INIT|POLL\n\nmax_batch=7\n");
        assert_eq!(t.len(), 3);
        assert_eq!((t["deferrals"], t["polls"], t["max_batch"]), (5, 6, 7));
    }

    #[test]
    fn deltas_never_go_negative() {
        let a = counters("x 5\ny 9");
        let b = counters("x 8\ny 1\nz 4");
        let d = delta(&a, &b);
        assert_eq!((d["x"], d["y"], d["z"]), (3, 0, 4));
    }
}
