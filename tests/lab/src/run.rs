// SPDX-License-Identifier: GPL-2.0

//! The main job: what each policy does to a completion storm.
//!
//! Each row of the table is a guest of its own, booted in virtual time, so that figures repeat and
//! a CPU that a row has locked up does not trouble the next one.

pub(crate) mod args;
mod boot;
mod chart;
mod host;
mod page;
mod plan;
mod result;
mod table;
mod verdict;
mod workload;

use crate::{
    failure::{
        At,
        Failure,
        Result, //
    },
    kernel::{
        self,
        Flavour,
        Kernel, //
    },
    lab::{
        replace_file,
        Lab, //
    },
};
use args::RunArgs;
use guest_agent::report::Report;
use plan::{
    Key,
    Plan, //
};
use result::{
    Meta,
    Repeat,
    Results,
    Row,
    Status, //
};
use std::{
    fs,
    path,
    path::{
        Path,
        PathBuf, //
    },
    time::Instant, //
};
use verdict::Outcome;

pub(crate) use workload::Workload;

/// Runs it.
pub(crate) fn main(lab: &Lab, args: &RunArgs) -> Result<()> {
    let start = Instant::now();
    let plan = Plan::new(args);
    if plan.rows.is_empty() {
        return Err(Failure::new("choose the rows", nothing(args)));
    }
    let kernel = kernel::get(lab, Flavour::Base, &args.from)?;
    if lab.dry_run {
        tell(lab, &plan, &folder(lab, args)?);
        return Ok(());
    }
    // What can't be kept is better known before the rows are measured than after.
    let out = folder(lab, args)?;
    try_to_write(&out)?;
    let exact = exact_shares(&kernel);
    let mut job = Job {
        lab,
        kernel: &kernel,
        plan: &plan,
        exact,
        release: kernel.release.clone(),
        notes: Vec::new(),
    };
    let rows = job.rows();
    let checks = match args.aa {
        true => verdict::judge_aa(&rows),
        false => verdict::judge(&rows),
    };
    let results = Results {
        meta: job.meta(start),
        rows,
        checks,
    };
    println!("{}", table::render(&results));
    let (json, page) = write(&out, &results)?;
    println!("figures: {json}\npage:    {page}");
    conclude(&results)
}

/// Why there is no row: the text that narrows them down fits none.
fn nothing(args: &RunArgs) -> String {
    let all = RunArgs {
        rows: None,
        ..args.clone()
    };
    let rows = Plan::new(&all).rows;
    let names: Vec<String> = rows.iter().map(ToString::to_string).collect();
    let text = args.rows.as_deref().unwrap_or_default();
    format!("none holds `{text}`; there are: {}", names.join(", "))
}

/// What a dry run prints.
fn tell(lab: &Lab, plan: &Plan, out: &Path) {
    let (mut guests, mut load_ms) = (0, 0);
    for (row, repeat) in plan.order() {
        let key = &plan.rows[row];
        guests += 1;
        load_ms += plan.ms(key.workload);
        lab.would(&format!(
            "boot a guest in virtual time for {key}, repeat {}, load {} ms, kernel words `{}`",
            repeat + 1,
            plan.ms(key.workload),
            boot::cmdline(key.workload, true)
        ));
    }
    lab.would(&format!(
        "boot {guests} guests in all, with {} s of load",
        load_ms.div_ceil(1000)
    ));
    lab.would(&format!(
        "write results.json and index.html to {}",
        out.display()
    ));
}

/// Where the results go: the user's folder, seen from where the user is.
fn folder(lab: &Lab, args: &RunArgs) -> Result<PathBuf> {
    match &args.out {
        Some(folder) => path::absolute(folder).at("find the folder for the results"),
        None => Ok(lab.root.join("target/lab/run")),
    }
}

/// Makes the folder, and a file in it.
fn try_to_write(folder: &Path) -> Result<()> {
    let file = folder.join("results.probe");
    replace_file(&file, b"")?;
    fs::remove_file(&file).at(format!("remove {}", file.display()))
}

/// A load with some policies as a test: all that is claimed of them there has to hold.
pub(crate) fn test(
    lab: &Lab,
    kernel: &Kernel,
    workload: Workload,
    policies: &[&str],
    ms: u64,
) -> Result<String> {
    let plan = Plan::of(workload, policies, ms);
    let mut job = Job {
        lab,
        kernel,
        plan: &plan,
        exact: exact_shares(kernel),
        release: kernel.release.clone(),
        notes: Vec::new(),
    };
    all_hold(&verdict::judge(&job.rows()))
}

/// The same for single requests whose reports were made elsewhere, each under the policy it comes
/// with.
pub(crate) fn test_alone(reports: &[(&str, Report)]) -> Result<String> {
    let row = |(policy, report): &(&str, Report)| {
        let key = Key {
            workload: Workload::Qd1,
            driver: Workload::Qd1.ours(),
            policy: (*policy).to_owned(),
        };
        let repeat = Repeat::new(report, &[], false);
        Row::new(&key, report.window_ns / 1_000_000, vec![repeat])
    };
    let rows: Vec<Row> = reports.iter().map(row).collect();
    all_hold(&verdict::judge(&rows))
}

fn all_hold(checks: &[verdict::Check]) -> Result<String> {
    let failed: Vec<&verdict::Check> = checks
        .iter()
        .filter(|check| check.outcome == Outcome::Fail)
        .collect();
    match failed.is_empty() {
        true => Ok(format!("{} claims hold", checks.len())),
        false => {
            let lines = failed.iter().map(|c| format!("{}: {}", c.what, c.figures));
            let cause = lines.collect::<Vec<_>>().join("; ");
            Err(Failure::new("judge the figures", cause))
        }
    }
}

/// Whether the kernel accounts for the time of interrupts by the clock.
///
/// Ticks can't: they come when an interrupt has ended, and charge it to what it interrupted.
fn exact_shares(kernel: &Kernel) -> bool {
    fs::read_to_string(kernel.dir.join("config"))
        .is_ok_and(|text| text.lines().any(|l| l == "CONFIG_IRQ_TIME_ACCOUNTING=y"))
}

/// A run in progress.
struct Job<'a> {
    lab: &'a Lab,
    kernel: &'a Kernel,
    plan: &'a Plan,
    exact: bool,
    release: String,
    notes: Vec<String>,
}

impl Job<'_> {
    fn rows(&mut self) -> Vec<Row> {
        let order = self.plan.order();
        let bar = self.lab.bar(order.len() as u64, "measure");
        let mut repeats = vec![Vec::new(); self.plan.rows.len()];
        for (done, &(row, _)) in order.iter().enumerate() {
            let key = &self.plan.rows[row];
            bar.set_message(key.to_string());
            let start = Instant::now();
            let repeat = self.repeat(key);
            bar.inc(1);
            self.lab.say(&format!(
                "[{}/{}] {key}: {} ({:.0} s)",
                done + 1,
                order.len(),
                summary(&repeat),
                start.elapsed().as_secs_f64()
            ));
            repeats[row].push(repeat);
        }
        bar.finish_and_clear();
        self.plan
            .rows
            .iter()
            .zip(repeats)
            .map(|(key, repeats)| Row::new(key, self.plan.ms(key.workload), repeats))
            .collect()
    }

    /// One measurement; that it fails is a result as well, the other rows go on.
    fn repeat(&mut self, key: &Key) -> Repeat {
        let measured = boot::measure(self.lab, self.kernel, self.plan, key, self.exact);
        match measured {
            Ok(measured) => {
                self.release = measured.release;
                for note in measured.notes {
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
                measured.repeat
            }
            Err(failure) => {
                self.lab.say(&failure.to_string());
                Repeat::failed(reason(&failure))
            }
        }
    }

    fn meta(self, start: Instant) -> Meta {
        let time = "virtual time: 2 ns an instruction, all CPUs of the guest take turns on one of \
                    the host's; throughput and latency count the path of instructions, not caches \
                    or contention";
        let shares = match self.exact {
            true => {
                "shares of CPU 0: by the guest's clock at each interrupt; not in qd1, where that \
                 would be a part of what is measured"
            }
            false => {
                "shares of CPU 0: not measured, the kernel has no IRQ_TIME_ACCOUNTING and ticks \
                 do not see interrupts"
            }
        };
        Meta {
            date: host::date(),
            command: host::command(),
            commit: host::commit(&self.lab.root),
            kernel: self.release,
            qemu: host::qemu(),
            host_cpu: host::cpu(),
            time: time.into(),
            cpu_shares: shares.into(),
            qd1_ms: self.plan.qd1_ms,
            storm_ms: self.plan.storm_ms,
            cost_ns: self.plan.cost_ns,
            gap_ns: self.plan.gap_ns,
            repeats: self.plan.repeats,
            notes: self.notes,
            wall_seconds: start.elapsed().as_secs_f64(),
        }
    }
}

/// What went wrong and where it is told, in a line.
fn reason(failure: &Failure) -> String {
    let text = failure.to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match lines.find(|line| line.starts_with("  log:")) {
        Some(log) => format!("{first}; {}", log.trim()),
        None => first.to_owned(),
    }
}

fn summary(repeat: &Repeat) -> String {
    let status = repeat.status.unwrap_or(Status::Error);
    match (status, repeat.iops) {
        (Status::Error, _) | (_, None) => format!(
            "{}: {}",
            status.text(),
            repeat.reason.as_deref().unwrap_or("unknown")
        ),
        (_, iops) => format!(
            "{}, {} IOPS, longest wait {} ms",
            status.text(),
            table::number(iops, 0),
            table::wait(repeat.wait_max_ms)
        ),
    }
}

/// Writes both files and returns their paths in words.
fn write(out: &Path, results: &Results) -> Result<(String, String)> {
    let json = out.join("results.json");
    let page = out.join("index.html");
    let text = serde_json::to_string_pretty(results).at("write the results")?;
    replace_file(&json, text.as_bytes())?;
    let text = page::render(results).at("draw the page")?;
    replace_file(&page, text.as_bytes())?;
    Ok((json.display().to_string(), page.display().to_string()))
}

fn conclude(results: &Results) -> Result<()> {
    let failed = results
        .checks
        .iter()
        .filter(|c| c.outcome == Outcome::Fail)
        .count();
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(
            "judge the results",
            format!(
                "{failed} of {} checks fail, see above",
                results.checks.len()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_is_a_failure() {
        let rows = verdict::tests::good();
        let mut results = Results {
            checks: verdict::judge(&rows),
            rows,
            ..Results::default()
        };
        assert!(conclude(&results).is_ok());
        results.checks[3].outcome = Outcome::Fail;
        let failure = conclude(&results).unwrap_err();
        let share = format!("1 of {}", verdict::tests::CLAIMS);
        assert!(failure.to_string().contains(&share));
        assert_ne!(failure.code(), 0);
    }

    #[test]
    fn a_claim_that_does_not_hold_fails_a_test() {
        let checks = verdict::judge(&verdict::tests::good());
        let all = format!("{} claims hold", verdict::tests::CLAIMS);
        assert_eq!(all_hold(&checks).unwrap(), all);
        let empty = [("hardirq", Report::default())];
        assert!(test_alone(&empty).is_err());
    }

    #[test]
    fn a_folder_that_takes_no_file_is_told_before_anything_runs() {
        let file = std::env::temp_dir().join(format!("irqmod-run-{}", std::process::id()));
        fs::write(&file, b"").unwrap();
        let failure = try_to_write(&file.join("below")).unwrap_err();
        assert!(failure.to_string().contains("irqmod-run-"));
        fs::remove_file(&file).unwrap();
        assert!(try_to_write(&file).is_ok());
        assert_eq!(fs::read_dir(&file).unwrap().count(), 0, "nothing stays");
        fs::remove_dir(&file).unwrap();
    }

    #[test]
    fn a_reason_names_the_log() {
        let failure = Failure::new("boot", "it hangs").said(vec!["a line".into()]);
        assert_eq!(reason(&failure), "boot: it hangs");
        let failure = failure.log("/x/console.log").repeat("again");
        assert_eq!(reason(&failure), "boot: it hangs; log:    /x/console.log");
    }

    #[test]
    fn a_row_that_is_not_there_is_told_with_those_that_are() {
        let mut args = plan::tests::args();
        args.quick = true;
        args.rows = Some("storm rust nice".into());
        let text = nothing(&args);
        assert!(text.contains("`storm rust nice`") && text.contains("storm rust resched,"));
    }

    #[test]
    fn a_measurement_is_told_in_a_line() {
        let repeat = Repeat {
            status: Some(Status::Stall),
            iops: Some(42_000.4),
            wait_max_ms: Some(2500.04),
            ..Repeat::default()
        };
        assert_eq!(
            summary(&repeat),
            "stall, 42,000 IOPS, longest wait 2,500.0 ms"
        );
        assert_eq!(summary(&Repeat::failed("gone".into())), "error: gone");
    }
}
