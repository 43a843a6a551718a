// SPDX-License-Identifier: GPL-2.0

//! Circumstances on the host, for the record.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{
        SystemTime,
        UNIX_EPOCH, //
    },
};

const UNKNOWN: &str = "unknown";

/// Now, in UTC.
pub(crate) fn date() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    stamp(now.map_or(0, |d| d.as_secs()))
}

/// Seconds since 1970 as a date and a time.
fn stamp(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let rest = seconds % 86_400;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since 1970.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let every = |y: u64, n| y.is_multiple_of(n);
    let leap = |y| (every(y, 4) && !every(y, 100)) || every(y, 400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1)
}

/// The words of the command line.
pub(crate) fn command() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("cargo lab {}", words.join(" "))
}

/// The commit of the checkout, and whether it was changed since.
pub(crate) fn commit(root: &Path) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(root);
    first_line(git.args(["describe", "--always", "--dirty", "--abbrev=12"]))
}

/// QEMU's version.
pub(crate) fn qemu() -> String {
    first_line(Command::new("qemu-system-x86_64").arg("--version"))
}

fn first_line(command: &mut Command) -> String {
    let output = command.output().ok().filter(|o| o.status.success());
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    text.as_deref()
        .and_then(|t| t.lines().next())
        .unwrap_or(UNKNOWN)
        .to_owned()
}

/// The host's CPU.
pub(crate) fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':'))
        .map_or(UNKNOWN, |(_, name)| name.trim())
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (1_796_083_199, "2026-11-30T23:59:59Z"),
        ] {
            assert_eq!(stamp(seconds), text);
        }
    }

    #[test]
    fn what_is_not_there_is_unknown() {
        assert_eq!(first_line(&mut Command::new("/nonexistent")), UNKNOWN);
        assert_eq!(first_line(&mut Command::new("false")), UNKNOWN);
        assert_eq!(first_line(Command::new("echo").arg("a\nb")), "a");
    }
}
