// SPDX-License-Identifier: GPL-2.0

//! Gets what is missing on the machine, or says exactly what that is and stops.

use crate::{
    apt,
    cli::From,
    failure::{
        Failure,
        Result, //
    },
    host::Host,
    lab::Lab,
    needs::{
        self,
        Need,
        ThisMachine, //
    },
};

const STEP: &str = "set the machine up";

/// Debian's names of the emulator and of what it needs in the same version.
const QEMU_PACKAGES: &str = "qemu-* seabios ipxe-qemu";

/// Sees to it that all needs are met that a kernel `from` there has, and those of a guest.
pub(crate) fn ensure_guest(lab: &Lab, from: &From) -> Result<()> {
    match from.built {
        Some(_) => ensure(lab, &[needs::BOOT]),
        None => ensure(lab, &[needs::BUILD, needs::BOOT]),
    }
}

/// Sees to it that all needs in some lists are met.
pub(crate) fn ensure(lab: &Lab, lists: &[&'static [Need]]) -> Result<()> {
    if needs::missing(lists, &ThisMachine).is_empty() {
        return Ok(());
    }
    // Another lab may be about to install the same.
    let _lock = lab.lock("packages")?;
    let missing = needs::missing(lists, &ThisMachine);
    if missing.is_empty() {
        return Ok(());
    }
    let host = Host::detect();
    if !host.can_install() {
        return Err(refusal(&missing, &host));
    }
    lab.say("installing packages that are missing on this machine:");
    for need in &missing {
        lab.say(&format!("  {}", need.line()));
    }
    install(lab, &missing, &host)?;
    if lab.dry_run {
        return Ok(());
    }
    let left = needs::missing(lists, &ThisMachine);
    if left.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        STEP,
        format!("still missing after the installation:\n{}", lines(&left)),
    ))
}

fn install(lab: &Lab, missing: &[&Need], host: &Host) -> Result<()> {
    let (own, backports) = packages(missing, host);
    if !own.is_empty() {
        apt::install(lab, &own)?;
    }
    if !backports.is_empty() {
        let suite = format!("{}-backports", host.codename);
        apt::Suite::open(lab, &host.codename, &suite)?.install(&backports, QEMU_PACKAGES)?;
    }
    Ok(())
}

/// The packages that the distribution itself has, and those that only its backports have.
fn packages(missing: &[&Need], host: &Host) -> (Vec<&'static str>, Vec<&'static str>) {
    let backported = |need: &&&Need| need.backport && host.codename == "bookworm";
    let of = |backports: bool| {
        let wanted = missing.iter().filter(|need| backported(need) == backports);
        wanted.map(|need| need.package).collect()
    };
    (of(false), of(true))
}

fn refusal(missing: &[&Need], host: &Host) -> Failure {
    let who = if host.root {
        "this is not Debian"
    } else {
        "this is not root"
    };
    let cause = format!(
        "missing here, and the lab can't install it ({who}); Debian's names:\n{}",
        lines(missing)
    );
    let failure = Failure::new(STEP, cause).exit_code(2);
    match host.distribution.as_str() {
        "debian" => failure.repeat(by_hand(missing, host)),
        _ => failure.repeat("install these, then name a tree of Linux 7.3 by --tree PATH"),
    }
}

/// What an administrator has to type.
fn by_hand(missing: &[&Need], host: &Host) -> String {
    let (own, backports) = packages(missing, host);
    let mut commands = Vec::new();
    if !own.is_empty() {
        commands.push(format!("sudo apt-get install {}", own.join(" ")));
    }
    if !backports.is_empty() {
        commands.push(format!(
            "sudo apt-get install -t {}-backports {}",
            host.codename,
            backports.join(" ")
        ));
    }
    commands.join(" && ")
}

fn lines(needs: &[&Need]) -> String {
    let lines: Vec<_> = needs
        .iter()
        .map(|need| format!("    {}", need.line()))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_lists_each_missing_thing_and_has_its_own_code() {
        let missing: Vec<_> = needs::BOOT.iter().collect();
        let mut host = Host {
            distribution: "debian".into(),
            codename: "bookworm".into(),
            root: false,
        };
        let failure = refusal(&missing, &host);
        let text = failure.to_string();
        for need in needs::BOOT {
            assert!(text.contains(need.package), "{text}");
        }
        assert!(text.contains("not root"));
        let command = "repeat: sudo apt-get install busybox-static fio \
            && sudo apt-get install -t bookworm-backports qemu-system-x86";
        assert!(text.ends_with(command), "{text}");
        assert_eq!(failure.code(), 2);
        host.distribution = "other".into();
        host.root = true;
        let text = refusal(&missing, &host).to_string();
        assert!(text.contains("not Debian") && !text.contains("sudo"));
        assert!(text.contains("--tree PATH"));
    }
}
